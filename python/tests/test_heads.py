# SPDX-License-Identifier: Apache-2.0
"""CrossEncoder's predict and rank against sentence-transformers, and Classifier."""

from __future__ import annotations

import logging
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import CASES, DATA, PAIRS, RERANKERS, TEXTS, needs_reference
from pyencore import Classifier, CrossEncoder, UnsupportedError


@pytest.fixture(scope="module")
def ours(folders: Any) -> CrossEncoder:
    return CrossEncoder(folders("reranker"), threads=1)


@cache
def reference_of(folder: Any) -> Any:
    import sentence_transformers
    import torch

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)  # its threads spin, which slows tests down where others compute
    return sentence_transformers.CrossEncoder(
        str(folder), device="cpu", model_kwargs={"dtype": "float32"}
    )


def close(found: Any, wanted: Any, bound: float = 1e-6) -> None:
    assert type(found) is type(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    assert np.abs(found - wanted).max() <= bound * max(1.0, float(np.abs(wanted).max()))


@needs_reference
@pytest.mark.parametrize("name", ["reranker", *RERANKERS])
class TestAgainstReference:
    """Each argument, on a tiny folder of each family."""

    @pytest.fixture
    def ours(self, folders: Any, name: str) -> CrossEncoder:
        return CrossEncoder(folders(name), threads=1)

    @pytest.fixture
    def theirs(self, folders: Any, name: str) -> Any:
        return reference_of(folders(name))

    def test_predict(self, ours: CrossEncoder, theirs: Any) -> None:
        for options in (
            {},
            {"batch_size": 3},
            {"show_progress_bar": False},
            {"prompt": "find: "},
            {"apply_softmax": True},
            {"device": "cpu"},
        ):
            close(ours.predict(PAIRS, **options), theirs.predict(PAIRS, **options))
        for inputs in ([list(p) for p in PAIRS], tuple(PAIRS), np.array(PAIRS), PAIRS[1]):
            close(ours.predict(inputs), theirs.predict(inputs))

    def test_activations(self, ours: CrossEncoder, theirs: Any) -> None:
        import torch

        for function in (torch.nn.Identity(), torch.nn.Sigmoid(), torch.nn.Tanh(), torch.exp):
            found = ours.predict(PAIRS, activation_fn=function)
            close(found, theirs.predict(PAIRS, activation_fn=function), 2e-6)
        identity = ours.predict(PAIRS, activation_fn="identity")
        assert np.array_equal(identity, ours.predict(PAIRS, activation_fn=lambda logits: logits))

    def test_tensors(self, ours: CrossEncoder, theirs: Any) -> None:
        for inputs in (PAIRS, PAIRS[0]):
            for options in ({"convert_to_tensor": True}, {"convert_to_numpy": False}):
                found, wanted = ours.predict(inputs, **options), theirs.predict(inputs, **options)
                assert type(found) is type(wanted)
                assert len(np.shape(found)) == len(np.shape(wanted))
                close(np.array([float(f) for f in np.ravel(found)]),
                      np.array([float(w) for w in np.ravel(wanted)]))
        assert ours.predict([]).shape == theirs.predict([]).shape

    def test_rank(self, ours: CrossEncoder, theirs: Any) -> None:
        import torch

        for options in (
            {},
            {"top_k": 3},
            {"return_documents": True},
            {"batch_size": 2},
            {"prompt": "a "},
            {"show_progress_bar": False},
            {"activation_fn": torch.nn.Tanh()},
            {"device": "cpu"},
        ):
            found = ours.rank(CASES["query"], TEXTS, **options)
            wanted = theirs.rank(CASES["query"], TEXTS, **options)
            assert [f["corpus_id"] for f in found] == [w["corpus_id"] for w in wanted]
            assert [f.keys() for f in found] == [w.keys() for w in wanted]
            for f, w in zip(found, wanted, strict=True):
                assert abs(f["score"] - w["score"]) <= 1e-6 * max(1.0, abs(w["score"]))
                assert f.get("text") == w.get("text")


@needs_reference
class TestOtherFolders:
    def test_named_prompts(self, folders: Any, tmp_path: Path) -> None:
        written = reference_of.__wrapped__(folders("reranker"))
        written.prompts = {"find": "find: ", "none": ""}
        written.save_pretrained(str(tmp_path))
        mine, theirs = CrossEncoder(tmp_path, threads=1), reference_of(tmp_path)
        for name in ("find", "none"):
            found = mine.predict(PAIRS, prompt_name=name)
            close(found, theirs.predict(PAIRS, prompt_name=name))
            assert np.array_equal(found, mine.predict(PAIRS)) == (name == "none")
            ranked = [model.rank("tea", TEXTS, prompt_name=name) for model in (mine, theirs)]
            assert [r["corpus_id"] for r in ranked[0]] == [r["corpus_id"] for r in ranked[1]]

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
