# SPDX-License-Identifier: Apache-2.0
"""SparseEncoder, TokenClassifier and static embeddings on the folders of tests/data/heads, beside
what sentence-transformers and transformers' pipeline computed."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, has, needs_reference, reference_of

import pyencore

HEADS = DATA / "heads"


def expected(name: str) -> dict[str, Any]:
    answers: dict[str, Any] = json.loads((HEADS / name / "expected.json").read_text())
    return answers


@pytest.mark.parametrize("name", ["static_f16", "model2vec"])
def test_static_embeddings(name: str) -> None:
    answers = expected(name)
    model = pyencore.TextEncoder(HEADS / name)
    wanted = np.array(answers["vectors"])
    found = model.encode(answers["texts"])
    assert np.abs(found - wanted).max() <= 1e-6 * np.abs(wanted).max()
    assert model.compute == "f32"


@pytest.mark.parametrize("name", ["splade_bert", "splade_distilbert", "splade_gte", "router"])
def test_sparse(name: str) -> None:
    answers = expected(name)
    model = pyencore.SparseEncoder(HEADS / name)
    for result in answers["results"]:
        found = model.encode(answers["texts"], task=result["task"])
        assert found.shape == (len(answers["texts"]), model.get_embedding_dimension())
        largest = max(max(row["values"], default=0.0) for row in result["rows"])
        for i, row in enumerate(result["rows"]):
            indices, values = found.row(i)
            assert indices.tolist() == row["indices"]
            assert np.allclose(values, row["values"], rtol=0, atol=1e-6 * largest)
        dense = found.to_dense()
        assert (dense != 0).sum() == len(found.values)
        assert dense[1, found.row(1)[0][0]] == found.row(1)[1][0]


def test_sparse_of_queries_and_documents() -> None:
    model = pyencore.SparseEncoder(HEADS / "router")
    text = "The harbour lies between two hills."
    query, document = model.encode_query(text), model.encode_document(text)
    assert query.indices.tolist() != document.indices.tolist()
    prompted = model.encode("find: " + text, task="query")
    assert query.indices.tolist() == prompted.indices.tolist()
    assert model.encode(text, max_active_dims=3).values.size == 3
    words = model.decode(model.encode(text, prompt="", task="query"), top_k=4)[0]
    assert len(words) == 4
    assert [w for _, w in words] == sorted((w for _, w in words), reverse=True)
    with pytest.raises(ValueError, match="task"):
        model.encode(text, task="passage")
    again = pickle.loads(pickle.dumps(model))
    assert again.encode(text).indices.tolist() == model.encode(text).indices.tolist()


TEXTS = ["The harbour lies between two hills.", "tea", ""]


def test_forms_of_sparse_vectors() -> None:
    model = pyencore.SparseEncoder(HEADS / "splade_bert", threads=1)
    matrix = model.encode(TEXTS)
    dense = matrix.to_dense()
    assert np.array_equal(model.encode(TEXTS, convert_to_sparse_tensor=False), dense)
    assert np.array_equal(model.encode(TEXTS[0], convert_to_sparse_tensor=False), dense[0])
    assert np.array_equal(matrix.rows(1, 9).to_dense(), dense[1:])
    assert model.encode([]).shape == (0, model.get_embedding_dimension())
    for options in ({"max_active_dims": 0}, {"max_active_dims": -1}):
        with pytest.raises(ValueError, match="max_active_dims is .*; wanted at least 1"):
            model.encode(TEXTS, **options)
        with pytest.raises(ValueError, match="wanted at least 1"):
            pyencore.SparseEncoder(HEADS / "splade_bert", **options)
    for name in ("similarity_fn_name", "default_prompt_name"):
        with pytest.raises(ValueError, match="none"):
            pyencore.SparseEncoder(HEADS / "splade_bert", **{name: "none"})


@pytest.mark.skipif(not has("scipy"), reason="scipy is not installed")
def test_sparse_vectors_to_scipy() -> None:
    matrix = pyencore.SparseEncoder(HEADS / "splade_bert", threads=1).encode(TEXTS)
    compressed = matrix.to_scipy()
    assert np.array_equal(compressed.toarray(), matrix.to_dense())
    assert np.shares_memory(compressed.data, matrix.values)
    assert np.shares_memory(compressed.indices, matrix.indices)


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
def test_sparse_vectors_to_torch() -> None:
    import torch

    model = pyencore.SparseEncoder(HEADS / "splade_bert", threads=1)
    matrix = model.encode(TEXTS)
    tensor = matrix.to_torch()
    assert tensor.is_sparse and tensor.is_coalesced()
    assert np.array_equal(tensor.to_dense().numpy(), matrix.to_dense())
    assert torch.equal(model.encode(TEXTS, convert_to_tensor=True).to_dense(), tensor.to_dense())
    single = model.encode(TEXTS[0], convert_to_tensor=True)
    assert single.shape == tensor.shape[1:]
    assert torch.equal(single.to_dense(), tensor[0].to_dense())
    scores = model.similarity(tensor, tensor)
    assert isinstance(scores, torch.Tensor)
    assert np.array_equal(scores.numpy(), model.similarity(matrix, matrix))


@pytest.mark.parametrize("name", ["dot", "cosine", "euclidean", "manhattan"])
def test_similarity_of_sparse_vectors(name: Any) -> None:
    model = pyencore.SparseEncoder(HEADS / "splade_bert", similarity_fn_name=name, threads=1)
    matrix = model.encode(TEXTS * 100)  # more than a block of rows
    scores = model.similarity(matrix, matrix)
    few = model.similarity(matrix.rows(0, 3).to_dense(), matrix.rows(0, 3))
    assert np.allclose(scores, np.tile(few, (100, 100)), rtol=1e-5, atol=1e-5)
    pairs = model.similarity_pairwise(matrix, model.encode(TEXTS[::-1] * 100))
    assert np.allclose(pairs[:3], few[[0, 1, 2], [2, 1, 0]], rtol=1e-5, atol=1e-5)
    with pytest.raises(ValueError, match="wanted as many"):
        model.similarity_pairwise(matrix, matrix.rows(0, 2))
    single = matrix.rows(0, 1).to_dense()[0]
    for one, shape in ((single, ()), (matrix.rows(0, 1), (1,))):  # a matrix of one row is none
        assert model.similarity_pairwise(single, one).shape == shape
        assert model.similarity(single, one).shape == (1, 1)


@needs_reference
@pytest.mark.parametrize("name", ["splade_bert", "splade_distilbert", "splade_gte", "router"])
def test_sparse_calls_are_those_of_sentence_transformers(name: str) -> None:
    import torch

    theirs = reference_of("SparseEncoder", HEADS / name)
    ours = pyencore.SparseEncoder(HEADS / name, threads=1)
    assert ours.prompts == theirs.prompts
    assert ours.similarity_fn_name == theirs.similarity_fn_name
    for call in ("encode", "encode_query", "encode_document"):
        for options in ({}, {"max_active_dims": 3}, {"convert_to_sparse_tensor": False}):
            for inputs in (TEXTS, TEXTS[0]):
                found = getattr(ours, call)(inputs, convert_to_tensor=True, **options)
                wanted = getattr(theirs, call)(inputs, **options)
                assert found.is_sparse == wanted.is_sparse
                assert found.shape == wanted.shape
                bound = 1e-6 * max(1.0, float(wanted.to_dense().abs().max()))
                assert (found.to_dense() - wanted.to_dense()).abs().max() <= bound
    tensors = theirs.encode(TEXTS)
    scores = theirs.similarity(tensors, tensors)
    assert torch.allclose(ours.similarity(tensors, tensors), scores, rtol=1e-6, atol=1e-6)
    pairs = theirs.similarity_pairwise(tensors, tensors)
    assert torch.allclose(ours.similarity_pairwise(tensors, tensors), pairs, rtol=1e-6, atol=1e-6)
    single = tensors[0]
    for first in (single, single.to_dense(), single.to_dense()[None], [single]):
        for second in (single, single.to_dense(), single.to_dense()[None]):
            for call in ("similarity", "similarity_pairwise"):
                try:
                    wanted = getattr(theirs, call)(first, second)
                except RuntimeError:  # torch multiplies no sparse vectors of other shapes
                    continue
                found = getattr(ours, call)(first, second)
                assert found.shape == wanted.shape
                assert torch.allclose(found, wanted, rtol=1e-6, atol=1e-6)


def test_caches_of_heads(tmp_path: Path) -> None:
    for model, folder in (
        (pyencore.SparseEncoder, HEADS / "splade_bert"),
        (pyencore.TokenClassifier, HEADS / "ner_bert"),
        (pyencore.MultiVectorEncoder, HEADS.parent / "late" / "own"),
    ):
        for options in ({}, {"compare_cache": True}, {"trust_cache": True}):
            opened = model(folder, threads=1, cache=tmp_path / model.__name__, **options)
            assert any(d.what == "packed weights" for d in opened.describe())
        kinds = sorted(path.suffix for path in (tmp_path / model.__name__).iterdir())
        assert kinds == [".packed", ".tokenizer"]


@pytest.mark.parametrize("name", sorted(f.name for f in HEADS.glob("ner_*")))
def test_entities(name: str) -> None:
    answers = expected(name)
    model = pyencore.TokenClassifier(HEADS / name)
    assert model.labels[1] == "B-PER"
    for strategy, rows in answers["entities"].items():
        found = model.predict(answers["texts"], strategy, ignore_labels=())
        key = "entity" if strategy == "none" else "entity_group"
        for text, entities, wanted in zip(answers["texts"], found, rows, strict=True):
            assert [e[key] for e in entities] == [w["label"] for w in wanted]
            for entity, w in zip(entities, wanted, strict=True):
                raw = text.encode()
                assert entity["start"] == len(raw[: w["start"]].decode())
                assert entity["word"] == raw[w["start"] : w["end"]].decode()
                assert text[entity["start"] : entity["end"]] == entity["word"]
                assert entity["score"] == pytest.approx(w["score"], abs=2e-6)
    logits = model.logits(answers["texts"][0])
    assert np.allclose(logits, answers["logits"][0], rtol=0, atol=1e-5)
    assert all(e["entity_group"] != "O" for e in model.predict(answers["texts"][1]))
    with pytest.raises(ValueError, match="aggregation_strategy"):
        model.predict("x", "last")  # type: ignore[arg-type]


def test_folders_of_another_class() -> None:
    with pytest.raises(pyencore.UnsupportedError, match="token classification"):
        pyencore.TokenClassifier(HEADS / "splade_bert")
    with pytest.raises(pyencore.UnsupportedError):
        pyencore.TextEncoder(HEADS / "splade_bert").encode("tea")


def test_sparse_and_token_vectors_of_bge_m3() -> None:
    answers = expected("m3")
    sparse = pyencore.SparseEncoder(HEADS / "m3").encode(answers["texts"])
    largest = max(max(row["values"], default=0.0) for row in answers["sparse"])
    for i, row in enumerate(answers["sparse"]):
        indices, values = sparse.row(i)
        assert indices.tolist() == row["indices"]
        assert np.allclose(values, row["values"], rtol=0, atol=1e-6 * largest)
    late = pyencore.MultiVectorEncoder(HEADS / "m3")
    assert late.similarity_fn_name == "meanmaxsim"
    for found, rows in zip(late.encode(answers["texts"]), answers["vectors"], strict=True):
        assert found.shape == (len(rows), 8)
        assert np.allclose(found, rows, rtol=0, atol=1e-6)
    assert pyencore.TextEncoder(HEADS / "m3").encode("tea").shape == (32,)
