# SPDX-License-Identifier: Apache-2.0
"""MaskedLanguageModel beside transformers' fill-mask pipeline in float64."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest
from conftest import DATA, needs_reference
from pyencore import MaskedLanguageModel, UnsupportedError
from pyencore._masked_language_model import spelled

HEADS = DATA / "heads"
TEXTS = ["the harbour lies [MASK] two hills.", "[MASK]", "tea and [MASK]; boats [MASK] in."]


def pipeline(name: str) -> Any:
    import torch
    import transformers

    tokenizer = transformers.AutoTokenizer.from_pretrained(HEADS / name)
    model = transformers.AutoModelForMaskedLM.from_pretrained(HEADS / name, dtype=torch.float64)
    return transformers.pipeline("fill-mask", model=model, tokenizer=tokenizer)


@needs_reference
@pytest.mark.parametrize("name", ["splade_bert", "splade_distilbert"])
@pytest.mark.parametrize("targets", [None, ["the", "tea", "##s", "nonesuchx"]])
def test_beside_transformers(name: str, targets: list[str] | None) -> None:
    model, reference = MaskedLanguageModel(HEADS / name), pipeline(name)
    options: dict[str, Any] = {"top_k": 7}
    if targets:
        options["targets"] = targets
    for text in TEXTS:
        found, wanted = model.fill_mask(text, **options), reference(text, **options)
        lists = [(found, wanted)] if isinstance(wanted[0], dict) else zip(found, wanted)
        for ours, theirs in lists:
            assert [one["token"] for one in ours] == [one["token"] for one in theirs]
            assert [one["token_str"] for one in ours] == [one["token_str"] for one in theirs]
            assert np.allclose(
                [one["score"] for one in ours], [one["score"] for one in theirs], rtol=5e-6, atol=0
            )


def test_shapes() -> None:
    model = MaskedLanguageModel(HEADS / "splade_bert")
    one, both = model.fill_mask(TEXTS[0]), model.fill_mask(TEXTS[2], top_k=2)
    assert len(one) == 5
    assert one[0]["score"] >= one[1]["score"]
    assert one[0]["sequence"] == f"the harbour lies {one[0]['token_str']} two hills."
    assert [len(row) for row in both] == [2, 2]
    assert both[1][0]["sequence"] == f"tea and [MASK]; boats {both[1][0]['token_str']} in."
    assert model.fill_mask(TEXTS, top_k=2)[2] == both
    assert model.fill_mask(TEXTS[0], targets="the")[0]["token_str"] == "the"
    assert pickle.loads(pickle.dumps(model)).fill_mask(TEXTS[0]) == one
    logits = model.logits(TEXTS[1], [0, 1, 2])
    assert logits.shape[0] == 3
    place = model.tokenizer.encode(TEXTS[0]).tokens.index("[MASK]")
    assert one[0]["token"] == int(model.logits(TEXTS[0], [place])[0].argmax())
    found = model.fill_mask("naïve café [MASK] tea", top_k=1)[0]
    assert found["sequence"] == f"naïve café {found['token_str']} tea"


def test_refusals() -> None:
    model = MaskedLanguageModel(HEADS / "splade_bert")
    with pytest.raises(ValueError, match="no mask token"):
        model.fill_mask("tea")
    with pytest.raises(ValueError, match="top_k is 0"):
        model.fill_mask(TEXTS[0], top_k=0)
    with pytest.raises(ValueError, match="at least one token"):
        model.fill_mask(TEXTS[0], targets=[""])
    with pytest.raises(ValueError, match="positions"):
        model.logits("tea", [9])
    with pytest.raises((UnsupportedError, ValueError)):
        MaskedLanguageModel(HEADS / "ner_bert")


@pytest.mark.parametrize(
    ("token", "decoders", "word"),
    [
        ("##ing", ["WordPiece"], "##ing"),
        ("\u0120tea", ["ByteLevel"], " tea"),
        ("caf\u00c3\u00a9", ["ByteLevel"], "caf\u00e9"),
        ("<mask> \u2581", ["ByteLevel"], "<mask> \u2581"),  # an added token
        ("\u2581tea", ["Metaspace"], "tea"),
        ("\u2581tea", ["Replace", "ByteFallback", "Fuse"], " tea"),
        ("tea", ["None"], "tea"),
    ],
)
def test_spelling(token: str, decoders: list[str], word: str) -> None:
    assert spelled(token, decoders) == word
