# SPDX-License-Identifier: Apache-2.0
"""MultiVectorEncoder against what sentence-transformers computed in float64 (tests/data/late), and
its calls against sentence-transformers itself."""

from __future__ import annotations

import json
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import DATA, needs_reference, reference_of
from pyencore import (
    MultiVectorEncoder, StoredVectors, TextEncoder, UnsupportedError, store_vectors,
)  # fmt: skip

LATE = DATA / "late"
NAMES = ("own", "windows", "pylate", "stanford")


def expected(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((LATE / name / "expected.json").read_text())
    return found


@pytest.mark.parametrize("name", NAMES)
def test_vectors_and_scores(name: str) -> None:
    model = MultiVectorEncoder(LATE / name, threads=2)
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
    model = MultiVectorEncoder(LATE / "own", threads=1)
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
        MultiVectorEncoder(LATE / "own", similarity_fn_name="cosine")  # type: ignore[arg-type]
    assert model.encode([]) == []
    assert model.similarity([], own).shape == (0, 2)
    copy = pickle.loads(pickle.dumps(model))
    assert np.array_equal(copy.encode_query("tea"), model.encode_query("tea"))


def test_each_class_refuses_the_others_folders(folders: Any) -> None:
    with pytest.raises(UnsupportedError, match="MultiVectorEncoder"):
        TextEncoder(LATE / "own")
    with pytest.raises(UnsupportedError, match="TextEncoder"):
        MultiVectorEncoder(folders("base"))


def test_documents_in_fewer_bytes() -> None:
    model = MultiVectorEncoder(LATE / "own", threads=2)
    queries = model.encode_query(["tea", "Which road leads to the lighthouse?"])
    documents = model.encode_document(["tea", "bread and tea", "The road to the sea."])
    exact = model.similarity(queries, documents)
    scale = len(queries[1]) * max(np.linalg.norm(one, axis=1).max() for one in documents)
    for precision, bytes_, lost in (("bf16", 2, 0.005), ("int8", 1, 0.02)):
        stored = store_vectors(documents, precision)  # type: ignore[arg-type]
        rows = sum(len(one) for one in documents)
        assert len(stored) == 3
        scales = 0 if precision == "bf16" else 4 * rows
        assert stored.nbytes == bytes_ * rows * model.dimension + scales
        scores = model.similarity(queries, stored)
        assert 0 < np.abs(scores - exact).max() <= lost * scale
        again = StoredVectors(stored.vectors.copy(), stored.row_starts.tolist(), stored.scales)
        assert np.array_equal(model.similarity(queries, again), scores)
        two = StoredVectors(
            stored.vectors[: stored.row_starts[2]],
            stored.row_starts[:3],
            None if stored.scales is None else stored.scales[: stored.row_starts[2]],
        )
        assert np.array_equal(model.similarity_pairwise(queries, two), scores[:, :2].diagonal())
    int8 = store_vectors(documents[0], "int8")
    assert len(int8) == 1
    with pytest.raises(ValueError, match="wanted int8 with, or uint16 without"):
        StoredVectors(int8.vectors, int8.row_starts)
    with pytest.raises(ValueError, match="wanted int8, or uint16"):
        StoredVectors(documents[0], [0, len(documents[0])])
    with pytest.raises(ValueError, match="wanted 'bf16' or 'int8'"):
        store_vectors(documents, "f16")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"row_starts is \[0, 1\]; wanted"):
        StoredVectors(int8.vectors, [0, 1], int8.scales)
    with pytest.raises(ValueError, match="row 0 of vectors has NaN"):
        store_vectors(np.full((2, 4), np.nan, np.float32), "int8")


@needs_reference
def test_calls_are_those_of_sentence_transformers() -> None:
    import torch

    theirs = reference_of("MultiVectorEncoder", LATE / "own")
    ours = MultiVectorEncoder(LATE / "own", threads=1)
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
