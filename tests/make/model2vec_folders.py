# SPDX-License-Identifier: Apache-2.0
"""Tiny folders of Model2Vec without modules.json, and what model2vec 0.10 computes with them on a
table in float64. For make_head_fixtures.py and tests/compare/check_heads.py.
"""
import json

from make_text_fixtures import write_json


def draw_model2vec(rng, folder, dtype, width, shared, weighted, changes, unknown="[UNK]"):
    """shared: tokens share rows. changes: of config.json. unknown: None for a tokenizer whose model
    names none."""
    from make_head_fixtures import TOKENIZER
    from safetensors.numpy import save_file
    import numpy as np
    folder.mkdir(parents=True, exist_ok=True)
    file = json.loads(TOKENIZER.read_text())
    size = len({**file["model"]["vocab"], **{t["content"]: t["id"] for t in file["added_tokens"]}})
    if unknown is None:  # as BPE may have it
        file["model"]["unk_token"] = "tea"
    write_json(folder / "tokenizer.json", file)
    rows = size // 2 if shared else size
    table = rng.standard_normal((rows, width))
    table = np.clip(np.rint(table * 40), -127, 127) if dtype == np.int8 else table
    tensors = {"embeddings": table.astype(dtype)}
    if shared:
        tensors["mapping"] = rng.randint(0, rows, size).astype(np.int64)
    if weighted:
        tensors["weights"] = rng.random_sample(size).astype(np.float32)
    save_file(tensors, folder / "model.safetensors")
    write_json(folder / "config.json", {
        "model_type": "model2vec", "architectures": ["StaticModel"], "apply_zipf": True, **changes})


def model2vec_vectors(folder, texts):
    import numpy as np
    from model2vec import StaticModel
    model = StaticModel.from_pretrained(folder)
    model.embedding = model.embedding.astype(np.float64)
    return model.encode(texts).astype(np.float64)
