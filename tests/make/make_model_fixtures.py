#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the tiny model folders of tests/data/models with transformers, and what transformers
computes from them in float64. The format is in tests/data/models/README.md.

Holds generation. tests/models/model_golden_test.cc runs encore on the folders. Needs the packages
below, from PyPI. Random numbers come from numpy's RandomState, whose stream never
changes. transformers' own initialisation sets biases to 0 and norms to 1, which hides mistakes:
here every tensor is random, then rounded to the type that its file has.

  tests/make/make_model_fixtures.py [FOLDER [NAME ...]]   default: all of tests/data/models
"""
import copy
import json
import os
import pathlib
import shutil
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np
import torch
import transformers
from safetensors.numpy import save_file

from made_files import SENTENCES, other_versions
from model_fixture_families import (FAMILIES, JinaBert, Voyage, old_albert, old_bert, old_ernie,
                                    set_exact, write_config)
import nomic_moe
from whole_models import Whole, whole_gemma

LENGTHS = [1, 2, 7, 60, 130]
LONG = [1, 2, 7, 60, 230, 700]  # past windows and buckets
VOCABULARY = 120
CONDITION = 5e-7  # torch in float32 must be at most so far from float64,
LONG_CONDITION = 7e-7  # after some hundred tokens

BERT = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2,
        "num_attention_heads": 4, "intermediate_size": 37, "max_position_embeddings": 160,
        "type_vocab_size": 2, "pad_token_id": 0}
ROBERTA = {**BERT, "type_vocab_size": 1, "pad_token_id": 1, "layer_norm_eps": 1e-5}
DISTILBERT = {"vocab_size": VOCABULARY, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37,
              "max_position_embeddings": 160, "pad_token_id": 0}
# Of sublayers whose norms come first.
OUTPUTS = ("o_proj.weight", "down_proj.weight", "wo.weight", "SelfAttention.o.weight")


@dataclass
class Case:
    name: str
    family: str  # the start of the class names of transformers
    base: dict
    changes: dict = field(default_factory=dict)
    labels: int = 0  # of a sequence classifier; 0: the bare model
    dtype: torch.dtype = torch.float16
    shards: str = ""  # the size of a shard
    kind: str = ""  # the end of the class name, where it is neither of the usual two
    lengths: list = field(default_factory=lambda: LENGTHS)
    published: Callable = None  # makes config.json and the file what published folders have
    rope: dict = None  # a scaling that transformers has not


CASES = [
    Case("bert", "Bert", BERT, dtype=torch.float32),
    Case("bert_old", "Bert", BERT, labels=3, published=old_bert,
         changes={"hidden_size": 48, "intermediate_size": 64, "hidden_act": "gelu_new",
                  "layer_norm_eps": 0.03, "pad_token_id": 5}),
    Case("bert_shards", "Bert", BERT, labels=1, dtype=torch.bfloat16, shards="20KB",
         changes={"hidden_act": "relu"}),
    Case("albert", "Albert", BERT, changes={"embedding_size": 24, "num_hidden_layers": 3}),
    Case("albert_1", "Albert", BERT, labels=1, dtype=torch.bfloat16, published=old_albert,
         changes={"embedding_size": 32}),
    Case("ernie", "Ernie", BERT, changes={"use_task_id": True, "type_vocab_size": 4,
                                          "layer_norm_eps": 1e-5}),
    Case("ernie_3", "Ernie", BERT, labels=3, dtype=torch.bfloat16, published=old_ernie,
         changes={"use_task_id": True, "task_type_vocab_size": 16, "hidden_act": "relu"}),
    Case("ernie_1", "Ernie", BERT, labels=1),
    Case("electra", "Electra", BERT, changes={"embedding_size": 24, "hidden_act": "silu"}),
    Case("electra_1", "Electra", BERT, labels=1, changes={"embedding_size": 40}),
    Case("electra_3", "Electra", BERT, labels=3, dtype=torch.bfloat16,
         changes={"embedding_size": 32}),
    Case("distilbert", "DistilBert", DISTILBERT, dtype=torch.float64,
         changes={"sinusoidal_pos_embds": True, "n_heads": 2}),
    Case("distilbert_1", "DistilBert", DISTILBERT, labels=1),
    Case("distilbert_3", "DistilBert", DISTILBERT, labels=3, changes={"hidden_dim": 64}),
    Case("roberta", "Roberta", ROBERTA, changes={"pad_token_id": 5, "type_vocab_size": 2}),
    Case("roberta_1", "Roberta", ROBERTA, labels=1),
    Case("roberta_3", "Roberta", ROBERTA, labels=3, changes={"pad_token_id": 0}),
    Case("xlm_roberta_1", "XLMRoberta", ROBERTA, labels=1, dtype=torch.float32),
    Case("xlm_roberta_3", "XLMRoberta", ROBERTA, labels=3, dtype=torch.bfloat16),
    Case("camembert_1", "Camembert", ROBERTA, labels=1, dtype=torch.bfloat16),
    Case("camembert_3", "Camembert", ROBERTA, labels=3),
    Case("nomic_moe", "NomicMoe", nomic_moe.SETTINGS),
    Case("nomic_moe_sum", "NomicMoe", nomic_moe.SETTINGS, dtype=torch.bfloat16, lengths=LONG,
         changes={"moe_normalize_expert_weights": True, "qkv_proj_bias": False, "n_layer": 2,
                  "mlp_fc1_bias": False, "mlp_fc2_bias": False, "type_vocab_size": 2,
                  "num_experts": 4, "moe_top_k": 3, "n_inner": 37}),
    Case("nomic_moe_none", "NomicMoe", nomic_moe.SETTINGS,
         changes={"moe_every_n_layers": 0, "n_layer": 2, "rotary_emb_base": 1000}),
    *(Case(name, family, base, lengths=LONG, **fields) for name, family, base, fields in FAMILIES),
]


def build(case):
    settings = copy.deepcopy({**case.base, **case.changes})
    if case.family == "JinaBert":
        return JinaBert(settings, case.labels)
    if case.family == "NomicMoe":
        nomic_moe.check()
        return nomic_moe.NomicMoe(settings)
    if case.family in ("CLIP", "Siglip", "Siglip2"):
        return Whole(case.family, settings).eval()
    if case.family == "EmbeddingGemma2":
        return whole_gemma(settings).eval()
    if case.family == "Voyage":
        config = transformers.Qwen3Config(**settings)
        config._attn_implementation = "eager"
        return Voyage(config).eval()
    if case.labels:
        settings["id2label"] = {i: f"name {i}" for i in range(case.labels)}
        settings["label2id"] = {f"name {i}": i for i in range(case.labels)}
    config = getattr(transformers, case.family + "Config")(**settings)
    config._attn_implementation = "eager"
    kind = case.kind or ("ForSequenceClassification" if case.labels else "Model")
    return getattr(transformers, case.family + kind)(config).eval()


def randomise(model, rng, dtype):
    """Every tensor. Embeddings are small, as in published models, so that the epsilon of their norm
    shows; matrices large enough for softmax and GELU to bend."""
    offset = 1 if type(model).__name__.startswith("Gemma") else 0  # of what norms multiply by
    with torch.no_grad():
        for name, p in model.named_parameters():
            n = rng.standard_normal(tuple(p.shape))
            if "rel_embeddings." in name:  # as rows that a norm makes
                value = n
            elif "embeddings." in name and p.dim() == 2:
                value = 0.05 * n
            elif "embed_tokens" in name or "shared" in name:  # no norm follows
                value = n / (1 + 2 * offset)
            elif "SelfAttention.q" in name:  # T5's scores have no scale
                value = n / p.shape[1]
            elif name.endswith(OUTPUTS):  # adds less to x than there is
                value = 0.5 * n / np.sqrt(p.shape[1])
            elif p.dim() > 1:  # a convolution has three
                value = n / np.sqrt(np.prod(p.shape[1:]))
            elif "q_norm" in name or "k_norm" in name:  # their product is squared in scores
                value = 0.6 - offset + 0.3 * n
                if type(model).__name__.startswith("EmbeddingGemma2"):  # whose scores have no scale
                    value = value / 2
            elif name.endswith("weight") and ("norm" in name.lower() or "emb_ln" in name):
                value = 1 - offset + 0.5 * n
            else:
                value = 0.1 * n
            p.copy_(torch.tensor(value).to(dtype).to(p.dtype))
        for name, buffer in model.named_buffers():
            if name in model.state_dict() and buffer.is_floating_point():  # frequencies
                if name.endswith("layer_scalar"):
                    buffer.copy_(torch.tensor(1 + 0.3 * rng.standard_normal(buffer.shape)))
                buffer.copy_(buffer.to(dtype).to(buffer.dtype))


def draw_tokens(case, rng):
    """Ids with padding among them, at the start and end too, and type ids of pairs."""
    settings = {**case.base, **case.changes}
    pad = settings["pad_token_id"] or 0
    ids, types = [], []
    for length in case.lengths:
        sequence = rng.randint(0, VOCABULARY, length)
        sequence[rng.random_sample(length) < 0.15] = pad
        sequence[-1] = VOCABULARY - 1  # the table's last row
        if length > 2:
            sequence[0] = sequence[-2] = pad
        ids.append(sequence)
        kinds = max(settings.get("type_vocab_size", 1), 1)
        types.append((np.arange(length) * kinds // max(length, 1)).astype(np.uint8))
    return ids, types


def expected_rows(lengths):
    """All of the short sequences; some of the long ones, with the first and last."""
    rows, start = [], 0
    step = 13 if lengths is LENGTHS else 31
    for length in lengths:
        rows += [start + t for t in range(length)
                 if length < 10 or t % step == 0 or t == length - 1]
        start += length
    return rows


def states_of(output):
    """The last one after the final norm, which some families leave out."""
    last = getattr(output, "last_hidden_state", None)
    return output.hidden_states if last is None else [*output.hidden_states[:-1], last]


def run(model, case, ids, types):
    """Each sequence by itself: the hidden states, embeddings first, and logits."""
    outputs = []
    with_types = {**case.base, **case.changes}.get("type_vocab_size", 0) > 1
    for sequence, kinds in zip(ids, types):
        inputs = {"input_ids": torch.tensor(sequence[None])}
        if with_types:
            inputs["token_type_ids"] = torch.tensor(kinds[None].astype(np.int64))
        with torch.no_grad():
            outputs.append(model(**inputs, output_hidden_states=True))
    layers = zip(*(states_of(output) for output in outputs))
    embeddings, *hidden = (torch.cat(states, dim=1)[0].double().numpy() for states in layers)
    result = {"embeddings": embeddings, **{f"hidden.{i}": h for i, h in enumerate(hidden)}}
    if case.labels:
        result["logits"] = torch.cat([output.logits for output in outputs]).double().numpy()
    return result


def run_exact(model, case, ids, types):
    """As run(), with all arithmetic in float64. transformers has some of it in float32 whatever
    the model: angles, RMSNorm, softmax. Of models that have angles, `vectors` are from
    transformers as it is: the means of the tokens' last states, at length 1."""
    set_exact(model, True, case.rope)
    result = run(model, case, ids, types)
    set_exact(model, False, case.rope)
    if not any(type(m).__name__.endswith("RotaryEmbedding") for m in model.modules()):
        return result
    rough = run(model, case, ids, types)
    last = rough[f"hidden.{len(rough) - 2 - bool(case.labels)}"]
    parts = np.split(last, np.cumsum(case.lengths)[:-1])
    means = np.stack([part.mean(axis=0) for part in parts])
    result["vectors"] = means / np.linalg.norm(means, axis=1, keepdims=True)
    return result


def draw(case, seed):
    """A model with its tokens, what it computes in float64, and how far float32 is from that."""
    rng = np.random.RandomState(seed)
    model = build(case)
    if case.dtype == torch.float64:
        model = model.double()
    randomise(model, rng, case.dtype)
    ids, types = draw_tokens(case, rng)
    expected = run_exact(model.double(), case, ids, types)
    stored = model.state_dict()
    single = run_exact(model.float(), case, ids, types)
    worst = max(np.abs(single[n] - e).max() / np.abs(e).max() for n, e in expected.items())
    model.to(case.dtype).load_state_dict(stored)  # F64 lost bits on the way
    return model, ids, types, expected, worst


def generate(root, names):
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    for case in CASES:
        if names and case.name not in names:
            continue
        folder = root / case.name
        shutil.rmtree(folder, ignore_errors=True)
        # A few logits may all be small by chance, and softmax sharper in some models than in
        # others: the best of some seeds.
        seed = zlib.crc32(case.name.encode())
        short = case.lengths is LENGTHS
        attempts, condition = (20, CONDITION) if short else (8, LONG_CONDITION)
        best = None
        for attempt in range(attempts):
            drawn = draw(case, seed + attempt)
            if best is None or drawn[-1] < best[-1]:
                best = drawn
            if short and drawn[-1] <= condition:
                break
        model, ids, types, expected, worst = best
        assert worst <= condition, f"{case.name}: torch in f32 differs by {worst:.1e}"
        model.save_pretrained(folder, **({"max_shard_size": case.shards} if case.shards else {}))
        if case.published:
            config = json.loads((folder / "config.json").read_text())
            case.published(folder, config)
            write_config(folder, config)
        rows = expected_rows(case.lengths)
        tensors = {n: (e if n in ("logits", "vectors") else e[rows].astype(np.float32))
                   for n, e in expected.items()}
        starts = np.cumsum([0, *case.lengths]).astype(np.int64)
        save_file({**tensors, "ids": np.concatenate(ids).astype(np.int32),
                   "type_ids": np.concatenate(types), "seq_starts": starts,
                   "rows": np.array(rows, np.int64)}, folder / "expected.safetensors")
        files = [file for file in folder.rglob("*") if file.is_file()]
        for file in files:
            file.chmod(0o644)
        size = sum(file.stat().st_size for file in files)
        print(f"{case.name:16} {size:7} bytes, torch in f32 differs by {worst:.1e}")


if __name__ == "__main__":
    for sentence in other_versions({name: SENTENCES[name] for name in ("torch", "transformers")}):
        print(sentence, file=sys.stderr)
    here = pathlib.Path(__file__).resolve().parents[2]
    generate(pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else here / "tests" / "data" / "models",
             sys.argv[2:])
