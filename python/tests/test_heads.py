# SPDX-License-Identifier: Apache-2.0
"""CrossEncoder's predict and rank against sentence-transformers, and Classifier."""

from __future__ import annotations

import logging
from functools import cache
from typing import Any

import numpy as np
import pytest
from conftest import CASES, DATA, PAIRS, TEXTS, needs_reference
from pyencore import Classifier, CrossEncoder, UnsupportedError


@pytest.fixture(scope="module")
def ours(folders: Any) -> CrossEncoder:
    return CrossEncoder(folders("reranker"), threads=1)


@cache
def reference_of(folder: Any) -> Any:
    import sentence_transformers

    logging.disable(logging.WARNING)
    return sentence_transformers.CrossEncoder(
        str(folder), device="cpu", model_kwargs={"dtype": "float32"}
    )


@needs_reference
class TestAgainstReference:
    @pytest.fixture
    def theirs(self, folders: Any) -> Any:
        return reference_of(folders("reranker"))

    @pytest.mark.parametrize(
        "options",
        [
            {},
            {"batch_size": 3},
            {"show_progress_bar": False},
            {"prompt": "find: "},
            {"apply_softmax": True},
            {"device": "cpu"},
        ],
        ids=str,
    )
    def test_predict(self, ours: CrossEncoder, theirs: Any, options: dict[str, Any]) -> None:
        for inputs in (PAIRS, [list(p) for p in PAIRS], tuple(PAIRS), np.array(PAIRS), PAIRS[1]):
            found, wanted = ours.predict(inputs, **options), theirs.predict(inputs, **options)
            assert type(found) is type(wanted)
            assert found.shape == wanted.shape
            assert found.dtype == wanted.dtype
            assert np.abs(found - wanted).max() <= 1e-6

    def test_activations(self, ours: CrossEncoder, theirs: Any) -> None:
        import torch

        for function in (torch.nn.Identity(), torch.nn.Sigmoid(), torch.nn.Tanh(), torch.exp):
            found = ours.predict(PAIRS, activation_fn=function)
            wanted = theirs.predict(PAIRS, activation_fn=function)
            assert np.abs(found - wanted).max() <= 2e-6
        identity = ours.predict(PAIRS, activation_fn="identity")
        assert np.array_equal(identity, ours.predict(PAIRS, activation_fn=lambda logits: logits))

    def test_tensors(self, ours: CrossEncoder, theirs: Any) -> None:
        for inputs in (PAIRS, PAIRS[0]):
            for options in ({"convert_to_tensor": True}, {"convert_to_numpy": False}):
                found, wanted = ours.predict(inputs, **options), theirs.predict(inputs, **options)
                assert type(found) is type(wanted)
                assert len(np.shape(found)) == len(np.shape(wanted))
        assert ours.predict([]).shape == theirs.predict([]).shape

    @pytest.mark.parametrize(
        "options",
        [{}, {"top_k": 3}, {"return_documents": True}, {"batch_size": 2}, {"prompt": "a "}],
        ids=str,
    )
    def test_rank(self, ours: CrossEncoder, theirs: Any, options: dict[str, Any]) -> None:
        found = ours.rank(CASES["query"], TEXTS, **options)
        wanted = theirs.rank(CASES["query"], TEXTS, **options)
        assert [f["corpus_id"] for f in found] == [w["corpus_id"] for w in wanted]
        assert [f.keys() for f in found] == [w.keys() for w in wanted]
        for f, w in zip(found, wanted, strict=True):
            assert abs(f["score"] - w["score"]) <= 1e-6
            assert f.get("text") == w.get("text")

    def test_more_labels(self, folders: Any) -> None:
        mine = CrossEncoder(folders("classifier"), threads=1)
        theirs = reference_of(folders("classifier"))
        for options in ({}, {"apply_softmax": True}):
            found, wanted = mine.predict(PAIRS, **options), theirs.predict(PAIRS, **options)
            assert found.shape == wanted.shape
            assert np.abs(found - wanted).max() <= 1e-6 * max(1, np.abs(wanted).max())
        for model in (mine, theirs):
            with pytest.raises(ValueError, match="num_labels=1"):
                model.rank("a", ["b"])


def test_pairs_that_are_none(ours: CrossEncoder) -> None:
    with pytest.raises(ValueError, match=r"inputs\[1\] is 'b'; wanted a pair of texts"):
        ours.predict([("a", "b"), "b"])
    with pytest.raises(ValueError, match="wanted a pair of texts"):
        ours.predict([("a", "b", "c")])
    with pytest.raises(ValueError, match="activation_fn is 'tanh'"):
        ours.predict(PAIRS, activation_fn="tanh")
    with pytest.raises(ValueError, match="Prompt name 'none' not found"):
        ours.predict(PAIRS, prompt_name="none")


@pytest.mark.parametrize("name", ["reranker_llama", "reranker_qwen3"])
def test_prompts_beside_a_chat_template(name: str) -> None:
    model = CrossEncoder(DATA / "heads" / name, threads=1)
    assert model.predict([("the harbour", "tea")]).shape == (1,)
    with pytest.raises(UnsupportedError, match="renders pairs by a chat template"):
        model.predict([("the harbour", "tea")], prompt="find: ")
    with pytest.raises(UnsupportedError, match="renders pairs by a chat template"):
        model.rank("the harbour", ["tea"], prompt="find: ")
    if name == "reranker_qwen3":
        with pytest.raises(UnsupportedError, match="renders pairs by a chat template"):
            model.predict([("the harbour", "tea")], prompt_name="mine")


def test_classifier(folders: Any) -> None:
    model = Classifier(folders("classifier"), threads=1)
    assert model.num_labels == len(model.labels) == 3
    logits = model.predict(TEXTS)
    assert logits.shape == (len(TEXTS), 3)
    assert np.array_equal(model.predict(TEXTS[1]), logits[1])
    shares = model.predict(TEXTS, apply_softmax=True)
    assert np.allclose(shares.sum(axis=1), 1, atol=1e-6)
    found = model.classify(TEXTS, top_k=2)
    assert len(found) == len(TEXTS)
    assert len(found[0]) == 2
    best = model.classify(TEXTS[1])[0]
    assert best["label"] == model.labels[int(shares[1].argmax())]
    assert best["score"] == pytest.approx(float(shares[1].max()), abs=1e-6)
    assert model.predict(PAIRS).shape == (len(PAIRS), 3)
