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

import pyencore

HEADS = Path(__file__).resolve().parents[2] / "tests/data/heads"


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


@pytest.mark.parametrize("name", ["splade_bert", "splade_distilbert", "router"])
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


@pytest.mark.parametrize("name", ["ner_bert", "ner_modernbert"])
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
