# SPDX-License-Identifier: Apache-2.0
"""Weights, inputs and the output in float64 of each kind of workload, in a folder for the engines.

"""

import json

import numpy
import safetensors.numpy

import blocks
import reference

# Of a block, each with the input that it takes: x [B S, D], or what linear2 reads [B S, d_ff].
PRODUCTS = ("self_attn.in_proj_weight", "self_attn.out_proj.weight", "linear1.weight",
            "linear2.weight")
VOCABULARY = 1000


def product_inputs(workload):
    """Of each product, float32."""
    x = blocks.random_input(workload).reshape(-1, workload.d_model)
    hidden = numpy.random.default_rng(3).standard_normal((len(x), workload.d_ff))
    return [x, x, x, hidden.astype(numpy.float32)]


def joined(outputs):
    """[B S, all columns] of the four products."""
    return numpy.concatenate(outputs, axis=1)


def token_ids(workload):
    """[B, S]."""
    return numpy.random.default_rng(2).integers(5, VOCABULARY, (workload.batch, workload.seq))


def write_model(folder, workload):
    """A BERT as Hugging Face's folders have it, with random weights; the mean of its last hidden
    states [B, D], float64."""
    import torch  # slow to load, and needed by whole models alone
    import transformers
    transformers.utils.logging.disable_progress_bar()
    torch.manual_seed(1)
    config = transformers.BertConfig(
        vocab_size=VOCABULARY, hidden_size=workload.d_model, num_hidden_layers=workload.layers,
        num_attention_heads=workload.heads, intermediate_size=workload.d_ff,
        hidden_act=workload.activation, max_position_embeddings=512,
        initializer_range=0.05,  # 0.02 leaves the layers little to say beside the residuals
        position_embedding_type="absolute")  # CTranslate2's converter asks
    model = transformers.BertModel(config, add_pooling_layer=False).eval()
    model.save_pretrained(folder)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [f"w{i}" for i in range(VOCABULARY - len(words))]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "BertTokenizer", "model_max_length": 512}),
        encoding="utf-8")
    with torch.inference_mode():
        hidden = model.double()(torch.from_numpy(token_ids(workload))).last_hidden_state
    return hidden.mean(dim=1).numpy()


def write(folder, workload):
    """The files that inputs() reads, and reference.npy, which is returned."""
    if workload.kind == "model":
        wanted = write_model(folder, workload)
    else:
        tensors = blocks.random_weights(workload)
        blocks.write_weights(folder / "weights.safetensors", workload, tensors)
        if workload.kind == "products":
            wanted = joined([a.astype(numpy.float64) @ tensors[name].T.astype(numpy.float64)
                             for a, name in zip(product_inputs(workload), PRODUCTS)])
        else:
            wanted = reference.output(workload, tensors, blocks.random_input(workload))
    numpy.save(folder / "reference.npy", wanted)
    return wanted


def inputs(folder, workload):
    """(weights, x) as an engine of that kind takes them: tensors by name, or a model's folder."""
    if workload.kind == "model":
        return folder, token_ids(workload)
    weights = safetensors.numpy.load_file(folder / "weights.safetensors")
    if workload.kind == "products":
        return [weights[name] for name in PRODUCTS], product_inputs(workload)
    return weights, blocks.random_input(workload)
