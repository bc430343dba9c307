# SPDX-License-Identifier: Apache-2.0
"""Tiny folders in the shape of BGE-M3 with every tensor random, and what FlagEmbedding 1.4 defines
of them, in float64. For make_head_fixtures.py and tests/compare/check_heads.py.
"""
import shutil

import numpy as np

from make_text_fixtures import write_json


def draw_m3(family, rng, folder, columns, dtype, modules=True, **changes):
    """dtype: of the two heads, "float32", "float16" or "bfloat16"."""
    import torch
    import transformers
    from head_families import (DISTILBERT, FAMILIES, SIZES, TOKENIZER, vocabulary_size)
    from make_model_fixtures import randomise
    sizes = DISTILBERT if family == "DistilBert" else SIZES
    config = getattr(transformers, family + "Config")(
        **{**sizes, "vocab_size": vocabulary_size(), **FAMILIES[family], **changes})
    model = getattr(transformers, family + "Model")(config).eval()
    randomise(model, rng, torch.float16)
    model.to(torch.float16).save_pretrained(folder)
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    tokens = {"unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]",
              "pad_token": "[PAD]", "mask_token": "[MASK]"}
    if rng.randint(2):
        tokens["eos_token"] = "[SEP]"
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64, **tokens})
    width = 32
    for name, outputs in (("sparse", 1), ("colbert", columns)):
        linear = torch.nn.Linear(width, outputs)
        with torch.no_grad():
            for parameter in linear.parameters():
                parameter.copy_(torch.tensor(rng.standard_normal(tuple(parameter.shape))))
        torch.save(linear.to(getattr(torch, dtype)).state_dict(), folder / f"{name}_linear.pt")
    if not modules:
        return
    names = ["Transformer", "Pooling", "Normalize"]
    write_json(folder / "modules.json", [
        {"idx": i, "name": str(i), "path": f"{i}_{name}" if i else "",
         "type": f"sentence_transformers.models.{name}"} for i, name in enumerate(names)])
    (folder / "1_Pooling").mkdir(exist_ok=True)
    write_json(folder / "1_Pooling/config.json", {
        "word_embedding_dimension": width, "pooling_mode_cls_token": True,
        "pooling_mode_mean_tokens": False})


def m3_answers(folder, texts, single=False):
    """Sparse vectors as {id: weight} and token vectors of each text, by itself; in float32 if
    `single`."""
    import torch
    import transformers
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    dtype = torch.float32 if single else torch.float64
    model = transformers.AutoModel.from_pretrained(
        folder, dtype=dtype, attn_implementation="eager")
    heads = {name: {key: value.to(dtype) for key, value in torch.load(
        folder / f"{name}_linear.pt", weights_only=True).items()} for name in ("sparse", "colbert")}
    dropped = {tokenizer.convert_tokens_to_ids(tokenizer.special_tokens_map[key]) for key in
               ("cls_token", "eos_token", "pad_token", "unk_token")
               if key in tokenizer.special_tokens_map}
    sparse, vectors = [], []
    for text in texts:
        given = tokenizer(text, return_tensors="pt", truncation=True)
        with torch.no_grad():
            hidden = model(**given).last_hidden_state[0]
        weights = torch.relu(torch.nn.functional.linear(hidden, **heads["sparse"]))[:, 0]
        row = {}
        for index, weight in zip(given["input_ids"][0].tolist(), weights.tolist(), strict=True):
            if index not in dropped and weight > 0:
                row[index] = max(weight, row.get(index, 0))
        sparse.append(dict(sorted(row.items())))
        tokens = torch.nn.functional.linear(hidden[1:], **heads["colbert"])
        vectors.append(torch.nn.functional.normalize(tokens, dim=-1).numpy())
    return sparse, vectors


def m3_score(query, document):
    return float((query @ document.T).max(1).sum() / len(query)) if len(query) else 0.0


def near(found, wanted):
    """The largest difference, of the largest magnitude."""
    largest = max((np.abs(row).max(initial=0.0) for row in wanted), default=1.0) or 1.0
    return max((np.abs(np.asarray(a) - b).max(initial=0.0) for a, b in
                zip(found, wanted, strict=True)), default=0.0) / largest
