# SPDX-License-Identifier: Apache-2.0
"""Tiny folders of late interaction with random tensors, in the spellings of sentence-transformers,
PyLate and Stanford's ColBERT, and what sentence-transformers computes from them in float64. For
make_late_fixtures.py and tests/compare/check_late.py.
"""
import json
import pathlib

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file, save_file
from sentence_transformers import MultiVectorEncoder
from sentence_transformers.base.modules import Dense, Normalize, Transformer
from sentence_transformers.multi_vector_encoder.modules import MultiVectorMask

import shapes
from make_model_fixtures import randomise
from make_text_fixtures import CORPUS, write_json
from model_fixture_families import MODERNBERT, by_type, set_exact

BASE = pathlib.Path(__file__).resolve().parents[1] / "data/text/base"
WIDTH = 32
IDENTITY = torch.nn.Identity
QUERIES = ["", "tea", "Which road leads to the old lighthouse, and how long does it take?",
           "[MASK] or [SEP]? When do trains stop!"]
DOCUMENTS = ["The harbour lies between two hills, and boats come in.", "tea; bread & rye!", "...",
             "One two three. " * 6]

BERT = {"hidden_size": WIDTH, "num_hidden_layers": 2, "num_attention_heads": 4,
        "intermediate_size": 37, "max_position_embeddings": 80, "type_vocab_size": 2,
        "pad_token_id": 0}


def write_backbone(folder, family, rng, marked=False, positions=None):
    """Model and tokenizer. `marked`: with PyLate's added tokens, "[Q] " and "[D] ". `positions`:
    of longer texts than usual."""
    folder.mkdir(parents=True)
    if family == "bert":
        tree = json.loads((BASE / "tokenizer.json").read_text())
        # Two words that become Stanford's markers, which no text gives.
        vocabulary = tree["model"]["vocab"]
        size = max(vocabulary.values()) + 1
        vocabulary |= {"[unused0]": size, "[unused1]": size + 1}
        tokenizer = json.loads((BASE / "tokenizer_config.json").read_text())
    else:
        def corpus():
            return iter(CORPUS.strip().splitlines() * 3)
        tree = json.loads(shapes.modernbert(corpus, 420).to_str())
        tokenizer = {"tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 96,
                     "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
                     "pad_token": "[PAD]", "unk_token": "[UNK]"}
    if marked:
        first = 1 + max(max(tree["model"]["vocab"].values()),
                        *(token["id"] for token in tree["added_tokens"]))
        tree["added_tokens"] += [
            {"id": first + i, "content": text, "single_word": False, "lstrip": False,
             "rstrip": False, "normalized": True, "special": False}
            for i, text in enumerate(["[Q] ", "[D] "])]
    if positions is not None:
        tokenizer["model_max_length"] = positions
    write_json(folder / "tokenizer.json", tree)
    write_json(folder / "tokenizer_config.json", tokenizer)
    size = 1 + max(max(tree["model"]["vocab"].values()),
                   *(token["id"] for token in tree["added_tokens"]))
    if family == "bert":
        changes = {"max_position_embeddings": positions} if positions else {}
        config = transformers.BertConfig(**{**BERT, **changes}, vocab_size=size)
        model = transformers.BertModel(config, add_pooling_layer=False)
    else:
        config = transformers.ModernBertConfig(**{
            **MODERNBERT, "hidden_size": WIDTH, "vocab_size": size, "local_attention": 8,
            **by_type(5000.0, 300.0)})
        model = transformers.ModernBertModel(config)
    randomise(model.eval(), rng, torch.float16)
    model.to(torch.float16).save_pretrained(folder)


def matrix(rng, rows, columns):
    return (rng.standard_normal((rows, columns)) / np.sqrt(columns)).astype(np.float32)


def new_dense(rng, dense):
    module = Dense(dense["in"], dense["out"], bias=dense.get("bias", False),
                   activation_function=dense.get("activation", IDENTITY)(),
                   module_input_name="token_embeddings",
                   use_residual=dense.get("residual", False))
    with torch.no_grad():
        for parameter in module.parameters():
            shape = parameter.shape
            value = matrix(rng, *shape) if len(shape) == 2 else matrix(rng, 1, shape[0])[0]
            parameter.copy_(torch.tensor(value))
    return module


def write_own(folder, drawn, rng):
    """As sentence-transformers saves it."""
    backbone = folder.parent / "backbone"
    write_backbone(backbone, drawn["family"], rng, positions=drawn.get("positions"))
    modules = [Transformer(str(backbone), **drawn["transformer"])]
    modules += [new_dense(rng, dense) for dense in drawn["dense"]]
    if drawn["mask"] is not None:
        modules.append(MultiVectorMask(**drawn["mask"]))
    if drawn["normalize"]:
        modules.append(Normalize(module_input_name="token_embeddings"))
    model = MultiVectorEncoder(modules=modules, prompts=drawn["prompts"], device="cpu",
                               similarity_fn_name=drawn.get("similarity"))
    model.save_pretrained(str(folder), create_model_card=False)


def write_pylate(folder, drawn, rng):
    """As PyLate 1 saves it: [Transformer, Dense], all else in one file."""
    write_backbone(folder, drawn["family"], rng, marked=drawn["marked"],
                   positions=drawn.get("positions"))
    dense = drawn["dense"][0]
    write_json(folder / "modules.json", [
        {"idx": 0, "name": "0", "path": "", "type": "sentence_transformers.models.Transformer"},
        {"idx": 1, "name": "1", "path": "1_Dense", "type": "pylate.models.Dense.Dense"}])
    write_json(folder / "1_Dense/config.json", {
        "in_features": dense["in"], "out_features": dense["out"], "bias": False,
        "activation_function": "torch.nn.modules.linear.Identity"})
    save_file({"linear.weight": matrix(rng, dense["out"], dense["in"])},
              folder / "1_Dense/model.safetensors")
    write_json(folder / "sentence_bert_config.json",
               {"max_seq_length": drawn.get("positions") or 47, "do_lower_case": False})
    write_json(folder / "config_sentence_transformers.json", {
        "__version__": {"sentence_transformers": "4.0.1"}, "prompts": {},
        "default_prompt_name": None, "similarity_fn_name": "MaxSim", **drawn["keys"]})


def write_stanford(folder, drawn, rng):
    """As Stanford's ColBERT saves it: the projection among the model's tensors."""
    write_backbone(folder, "bert", rng, positions=drawn.get("positions"))
    tensors = {f"bert.{name}": value for name, value in
               load_file(folder / "model.safetensors").items()}
    dense = drawn["dense"][0]
    tensors["linear.weight"] = matrix(rng, dense["out"], dense["in"])
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    config["architectures"] = ["HF_ColBERT"]
    write_json(folder / "config.json", config)
    if drawn["keys"] is not None:
        write_json(folder / "artifact.metadata", drawn["keys"])


WRITERS = {"own": write_own, "pylate": write_pylate, "stanford": write_stanford}


def write(drawn, folder, seed):
    WRITERS[drawn["spelling"]](folder, drawn, np.random.RandomState(seed))


def nudge(module, _, features):
    """Hidden states that are off by 2^-22 of their largest number, each up or down."""
    hidden = features["token_embeddings"]
    signs = torch.randint(0, 2, hidden.shape, generator=torch.Generator().manual_seed(1)) * 2 - 1
    features["token_embeddings"] = hidden + 2.0**-22 * hidden.abs().max() * signs
    return features


def compute(folder, queries=tuple(QUERIES), documents=tuple(DOCUMENTS), single=False,
            nudged=False):
    """In float64, or as torch computes it in float32: for "query", "document" and "none" a list of
    one dict for each text, with its ids, the places of the ids that have rows, and the rows. And
    scores of all queries and documents. `nudged`: from hidden states that are 2^-22 off."""
    model = MultiVectorEncoder(str(folder), device="cpu", local_files_only=True,
                               model_kwargs={"dtype": torch.float32})
    model = model if single else model.double()
    set_exact(model[0].auto_model, not single)
    if nudged:
        model[0].register_forward_hook(nudge)
    found = {"query": [], "document": [], "none": []}
    texts = {"query": queries, "document": documents, "none": documents[:2]}
    for task, own in texts.items():
        encode = {"query": model.encode_query, "document": model.encode_document,
                  "none": model.encode}[task]
        for text in own:
            rows = encode([text], convert_to_numpy=True)[0]
            features = encode([text], output_value=None)[0]
            found[task].append({
                "text": text, "ids": features["input_ids"].tolist(),
                "places": features["attention_mask"].bool().nonzero()[:, 0].tolist(),
                "rows": rows})
            assert len(found[task][-1]["places"]) == len(rows)
    set_exact(model[0].auto_model, False)
    scores = [[score(query["rows"], document["rows"], model.similarity_fn_name)
               for document in found["document"]] for query in found["query"]]
    own = model.similarity([torch.tensor(q["rows"]) for q in found["query"]],
                           [torch.tensor(d["rows"]) for d in found["document"]]).numpy()
    assert np.allclose(own, scores, rtol=1e-5, atol=1e-5), (own, scores)
    return found, scores


def score(query, document, name):
    """In float64; sentence-transformers adds up in float32."""
    total = (query @ document.T).max(1).sum() if len(query) and len(document) else 0.0
    if len(document) == 0:
        total = -1e9
    return float(total / max(len(query), 1) if name == "meanmaxsim" else total)
