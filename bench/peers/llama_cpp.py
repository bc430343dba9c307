# SPDX-License-Identifier: Apache-2.0
"""A BERT's folder in llama.cpp, by way of xllamacpp: `pip install xllamacpp gguf safetensors`.

The GGUF file is as llama.cpp's converter and `llama-quantize` make it of such a folder: matrices in
the given type, embeddings of tokens in Q8_0 where that has 4 bits, vectors in f32. Words have
U+2581 before them, in place of "##" before pieces.
"""

import atexit
import json
import shutil
import tempfile
from pathlib import Path

import numpy as np

NAMES = {
    "embeddings.word_embeddings": "token_embd",
    "embeddings.position_embeddings": "position_embd",
    "embeddings.token_type_embeddings": "token_types",
    "embeddings.LayerNorm": "token_embd_norm",
    "attention.self.query": "attn_q",
    "attention.self.key": "attn_k",
    "attention.self.value": "attn_v",
    "attention.output.dense": "attn_output",
    "attention.output.LayerNorm": "attn_output_norm",
    "intermediate.dense": "ffn_up",
    "output.dense": "ffn_down",
    "output.LayerNorm": "layer_output_norm",
}
F32_ALONE = ("position_embd.weight", "token_types.weight")
TOKENS = "token_embd.weight"
# Tokens and texts that the server computes at once. MiniLM is slower with fewer or more.
BATCH, TEXTS = 2048, 16


def gguf_name(name):
    """encoder.layer.3.output.dense.weight is blk.3.ffn_down.weight; None: llama.cpp lacks it."""
    module, _, kind = name.rpartition(".")
    block = ""
    if module.startswith("encoder.layer."):
        _, _, number, module = module.split(".", 3)
        block = f"blk.{number}."
    return f"{block}{NAMES[module]}.{kind}" if module in NAMES else None


def as_llama_cpp_has_it(token):
    if token.startswith("[") and token.endswith("]"):
        return token
    return token[2:] if token.startswith("##") else "\u2581" + token


def write_gguf(folder, kind, path):
    """kind: f32, Q8_0, Q4_0 and so on: a type of gguf's that its quantize() can make."""
    import gguf
    import safetensors.numpy

    config = json.loads((folder / "config.json").read_text("utf-8"))
    if config["model_type"] != "bert":
        raise ValueError(f"{folder}: its model_type is {config['model_type']}, wanted bert")
    pooling = json.loads((folder / "1_Pooling/config.json").read_text("utf-8"))
    if not pooling.get("pooling_mode_mean_tokens"):
        raise ValueError(f"{folder}: its pooling is not the mean of tokens")
    tokenizer = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    vocabulary = sorted(tokenizer["model"]["vocab"].items(), key=lambda item: item[1])
    special = {token["content"] for token in tokenizer["added_tokens"]}
    ids = dict(vocabulary)

    writer = gguf.GGUFWriter(path, "bert")
    for name, key in (("context_length", "max_position_embeddings"),
                      ("embedding_length", "hidden_size"),
                      ("feed_forward_length", "intermediate_size"),
                      ("block_count", "num_hidden_layers"), ("head_count", "num_attention_heads"),
                      ("layer_norm_eps", "layer_norm_eps"),
                      ("token_type_count", "type_vocab_size")):
        getattr(writer, f"add_{name}")(config[key])
    writer.add_causal_attention(False)
    writer.add_pooling_type(gguf.PoolingType.MEAN)
    writer.add_tokenizer_model("bert")
    writer.add_tokenizer_pre("default")
    writer.add_token_list([as_llama_cpp_has_it(token) for token, _ in vocabulary])
    writer.add_token_types([gguf.TokenType.CONTROL if token in special else gguf.TokenType.NORMAL
                            for token, _ in vocabulary])
    writer.add_bos_token_id(ids["[CLS]"])
    for name in ("unk", "sep", "pad", "mask"):
        getattr(writer, f"add_{name}_token_id")(ids[f"[{name.upper()}]"])
    tensors = safetensors.numpy.load_file(folder / "model.safetensors")
    if not any(gguf_name(name) == TOKENS for name in tensors):
        raise ValueError(f"{folder}: found no embeddings.word_embeddings.weight")
    for name, tensor in tensors.items():
        to = gguf_name(name)
        if to is None:
            continue
        tensor = tensor.astype(np.float32)
        if kind == "f32" or tensor.ndim == 1 or to in F32_ALONE:
            writer.add_tensor(to, tensor)
        else:
            as_kind = "Q8_0" if to == TOKENS and kind.startswith("Q4") else kind
            number = gguf.GGMLQuantizationType[as_kind]
            writer.add_tensor(to, gguf.quants.quantize(tensor, number), raw_dtype=number)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()


def opened(folder, kind, threads):
    """encode(texts): vectors of length 1."""
    import xllamacpp

    scratch = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, scratch, ignore_errors=True)
    path = Path(scratch, "model.gguf")
    write_gguf(Path(folder), kind, path)
    params = xllamacpp.CommonParams()
    params.model.path = str(path)
    params.embedding = True
    params.n_ctx = params.n_batch = params.n_ubatch = BATCH
    params.n_parallel = TEXTS
    params.kv_unified = True
    params.warmup = False
    params.verbosity = 0
    params.pooling_type = xllamacpp.llama_pooling_type.LLAMA_POOLING_TYPE_MEAN
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = threads
    server = xllamacpp.Server(params)

    def encode(texts):
        found = server.handle_embeddings({"input": texts, "model": "here"})
        if "data" not in found:
            raise ValueError(str(found))
        rows = sorted(found["data"], key=lambda row: row["index"])
        return np.array([row["embedding"] for row in rows], np.float32)

    return encode
