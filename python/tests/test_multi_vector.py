# SPDX-License-Identifier: Apache-2.0
"""MultiVectorEncoder against what sentence-transformers computed in float64 (tests/data/late), and
its calls against sentence-transformers itself."""

from __future__ import annotations

import json
import pathlib
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import needs_reference
from pyencore import MultiVectorEncoder, TextEncoder, UnsupportedError

DATA = pathlib.Path(__file__).resolve().parents[2] / "tests/data/late"
NAMES = ("own", "windows", "pylate", "stanford")


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((DATA / name / "expected.json").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_vectors_and_scores(name: str) -> None:
    model = MultiVectorEncoder(DATA / name, threads=2)
    wanted = expected(name)
    calls = {"query": model.encode_query, "document": model.encode_document, "none": model.encode}
    rows = {}
    for task, call in calls.items():
        texts = [one["text"] for one in wanted[task]]
        rows[task] = call(texts)
        largest = max(np.abs(one["rows"]).max() for one in wanted[task] if one["rows"])
        for found, one in zip(rows[task], wanted[task], strict=True):
            assert found.shape == (len(one["rows"]), model.dimension)
            if one["rows"]:
                assert np.abs(found - np.array(one["rows"])).max() <= 1e-6 * largest
        single = call(texts[1])
        assert np.array_equal(single, rows[task][1])
    scores = model.similarity(rows["query"], rows["document"])
    assert scores.dtype == np.float32
    largest = max(1.0, np.array(wanted["scores"]).max())
    assert np.abs(scores - np.array(wanted["scores"])).max() <= 1e-6 * largest
    pairs = model.similarity_pairwise(rows["query"], rows["document"])
    assert np.array_equal(pairs, scores.diagonal())
    assert np.array_equal(model.similarity(rows["query"][1], rows["document"][0]), scores[1:2, :1])


def test_prompts_and_options() -> None:
    model = MultiVectorEncoder(DATA / "own", threads=1)
    texts = ["tea", "bread"]
    assert model.prompts == {"query": "[MASK] ", "document": "tea "}
    own = model.encode_document(texts)
    for found, again in zip(own, model.encode_document(texts, prompt_name="document"), strict=True):
        assert np.array_equal(found, again)
    bare = model.encode(texts, task="document")
    assert len(bare[0]) < len(own[0])
    with pytest.raises(ValueError, match="none such"):
        model.encode(texts, prompt_name="none such")
    with pytest.raises(ValueError, match="task"):
        model.encode(texts, task="both")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="similarity_fn_name"):
        MultiVectorEncoder(DATA / "own", similarity_fn_name="cosine")  # type: ignore[arg-type]
    assert model.encode([]) == []
    assert model.similarity([], own).shape == (0, 2)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.encode_query("tea"), model.encode_query("tea"))


def test_each_class_refuses_the_others_folders(folders: Any) -> None:
    with pytest.raises(UnsupportedError, match="MultiVectorEncoder"):
        TextEncoder(DATA / "own")
    with pytest.raises(UnsupportedError, match="TextEncoder"):
        MultiVectorEncoder(folders("base"))


@needs_reference
def test_calls_are_those_of_sentence_transformers() -> None:
    import sentence_transformers
    import torch

    theirs = sentence_transformers.MultiVectorEncoder(
        str(DATA / "own"), device="cpu", model_kwargs={"dtype": torch.float32}
    )
    ours = MultiVectorEncoder(DATA / "own", threads=1)
    texts = ["tea", "Which road leads to the lighthouse?"]
    for name in ("encode_query", "encode_document", "encode"):
        for options in ({}, {"normalize_embeddings": True}, {"prompt": "bread "}):
            wanted = getattr(theirs, name)(texts, convert_to_numpy=True, **options)
            found = getattr(ours, name)(texts, convert_to_numpy=True, **options)
            for a, b in zip(found, wanted, strict=True):
                assert np.abs(a - b).max() <= 2e-6
    tensors = ours.encode_query(texts, convert_to_numpy=False)
    assert all(isinstance(one, torch.Tensor) for one in tensors)
    scores = ours.similarity(tensors, tensors)
    assert torch.allclose(scores, theirs.similarity(tensors, tensors), atol=1e-5)
