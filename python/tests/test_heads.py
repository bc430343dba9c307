# SPDX-License-Identifier: Apache-2.0
"""CrossEncoder's predict and rank against sentence-transformers, and Classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import (
    CASES, DATA, PAIRS, RERANKERS, TEXTS, copy_with, needs_reference, reference_of,
)  # fmt: skip
from pyencore import Classifier, CrossEncoder


@pytest.fixture(scope="module")
def ours(folders: Any) -> CrossEncoder:
    return CrossEncoder(folders("reranker"), threads=1)


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
        return reference_of("CrossEncoder", folders(name))

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
        written = reference_of.__wrapped__("CrossEncoder", folders("reranker"))
        written.prompts = {"find": "find: ", "none": ""}
        written.save_pretrained(str(tmp_path))
        mine = CrossEncoder(tmp_path, threads=1)
        theirs = reference_of("CrossEncoder", tmp_path)
        for name in ("find", "none"):
            found = mine.predict(PAIRS, prompt_name=name)
            close(found, theirs.predict(PAIRS, prompt_name=name))
            assert np.array_equal(found, mine.predict(PAIRS)) == (name == "none")
            ranked = [model.rank("tea", TEXTS, prompt_name=name) for model in (mine, theirs)]
            assert [r["corpus_id"] for r in ranked[0]] == [r["corpus_id"] for r in ranked[1]]

    def test_more_labels(self, folders: Any) -> None:
        mine = CrossEncoder(folders("classifier"), threads=1)
        theirs = reference_of("CrossEncoder", folders("classifier"))
        for options in ({}, {"apply_softmax": True}):
            found, wanted = mine.predict(PAIRS, **options), theirs.predict(PAIRS, **options)
            assert found.shape == wanted.shape
            assert np.abs(found - wanted).max() <= 1e-6 * max(1, np.abs(wanted).max())
        for model in (mine, theirs):
            with pytest.raises(ValueError, match="num_labels=1"):
                model.rank("a", ["b"])


def test_pairs_that_are_none(ours: CrossEncoder) -> None:
    with pytest.raises(TypeError, match=r"inputs\[1\] is of type str; wanted a pair of texts"):
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
    pairs = [("the harbour", "tea"), ("boats", "The old road")]
    own = model.predict(pairs)  # test_settings.py has the reference's
    assert not np.array_equal(model.predict(pairs, prompt="find: "), own)
    ranked = [model.rank("boats", ["tea"], prompt=prompt)[0] for prompt in ("find: ", "", "tea")]
    assert len({one["score"] for one in ranked}) == 3
    if name == "reranker_qwen3":
        for options in ({"prompt_name": "mine"}, {"prompt": "Find the boat"}, {"prompt": None}):
            assert np.array_equal(model.predict(pairs, **options), own)
        assert not np.array_equal(model.predict(pairs, prompt=""), own)


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


PROBLEM_TYPES = [
    None, "regression", "single_label_classification", "multi_label_classification",
]  # fmt: skip


def after_logits(name: str, logits: Any) -> Any:
    if name == "softmax":
        shifted = np.exp(logits - logits.max())
        return shifted / shifted.sum()
    return 1 / (1 + np.exp(-logits)) if name == "sigmoid" else logits


@pytest.mark.parametrize("base", ["classifier", "reranker"])
@pytest.mark.parametrize("problem_type", PROBLEM_TYPES)
def test_what_follows_the_logits(
    folders: Any, tmp_path: Path, base: str, problem_type: str | None
) -> None:
    one = base == "reranker"
    if one and problem_type == "single_label_classification":
        problem_type = None  # transformers refuses it of one label
    folder = copy_with(folders(base), tmp_path / "model", "config.json", problem_type=problem_type)
    default = {
        None: "sigmoid" if one else "softmax",
        "regression": "none",
        "single_label_classification": "softmax",
        "multi_label_classification": "sigmoid",
    }[problem_type]
    model = Classifier(folder, threads=1)
    logits = model.predict(TEXTS, activation_fn="identity")
    if one:  # by CrossEncoder's rules
        assert np.array_equal(model.predict(TEXTS), model.predict(TEXTS, activation_fn="sigmoid"))
    else:
        assert np.array_equal(model.predict(TEXTS), logits)

    def check(found: Any, function: str) -> None:
        for text, row in zip(found, logits, strict=True):
            wanted = after_logits(function, row.astype(float))
            order = np.argsort(-wanted, kind="stable")
            assert [x["label"] for x in text] == [model.labels[i] for i in order]
            assert [x["score"] for x in text] == pytest.approx(list(wanted[order]), abs=1e-6)

    check(model.classify(TEXTS, top_k=None), default)
    for function in ("none", "sigmoid", "softmax", "SOFTMAX"):
        check(model.classify(TEXTS, None, function), function.lower())
        mine = Classifier(folder, threads=1, function_to_apply=function)
        check(mine.classify(TEXTS, top_k=None), function.lower())
        check(mine.classify(TEXTS, top_k=None, function_to_apply="none"), "none")
    # A reranker's scores are CrossEncoder's.
    if one:
        scores = CrossEncoder(folder, threads=1).predict(PAIRS)
        assert np.array_equal(scores, CrossEncoder(folders(base), threads=1).predict(PAIRS))


@needs_reference
@pytest.mark.parametrize("base", ["classifier", "reranker"])
@pytest.mark.parametrize("problem_type", PROBLEM_TYPES)
def test_classes_are_the_pipelines(
    folders: Any, tmp_path: Path, base: str, problem_type: str | None
) -> None:
    import torch
    import transformers

    if base == "reranker" and problem_type == "single_label_classification":
        pytest.skip("transformers wants two labels")
    folder = copy_with(folders(base), tmp_path / "model", "config.json", problem_type=problem_type)
    torch.set_num_threads(1)
    pipeline = transformers.pipeline(
        "text-classification", str(folder), device="cpu", dtype=torch.float32
    )
    model = Classifier(folder, threads=1)
    texts = ["tea", "The harbour lies between two hills."]
    for function in (None, "none", "sigmoid", "softmax"):
        for top_k in (None, 1, 2):
            options = {"top_k": top_k, "function_to_apply": function}
            for found, wanted in zip(
                model.classify(texts, **options), pipeline(texts, **options), strict=True
            ):
                assert [x["label"] for x in found] == [x["label"] for x in wanted]
                scores = [x["score"] for x in wanted]
                assert [x["score"] for x in found] == pytest.approx(scores, abs=2e-6)


def test_functions_that_are_none(folders: Any, tmp_path: Path) -> None:
    folder = folders("classifier")
    model = Classifier(folder, threads=1)
    for wrong in ("default", "identity", "", 3, ["none"], np.tanh):
        kind, wanted = (ValueError, "'sigmoid'") if isinstance(wrong, str) else (TypeError, "str")
        with pytest.raises(kind, match=f"function_to_apply is .*; wanted {wanted}"):
            model.classify(TEXTS, function_to_apply=wrong)  # type: ignore[arg-type]
        with pytest.raises(kind, match=f"function_to_apply is .*; wanted {wanted}"):
            Classifier(folder, function_to_apply=wrong)  # type: ignore[arg-type]
    for wrong in ("tanh", "", "Sigmoid", "torch.nn.GELU", "\ud800"):
        with pytest.raises(ValueError, match="activation_fn"):
            model.predict(TEXTS, activation_fn=wrong)
    for wrong in (3, ["sigmoid"], int):
        with pytest.raises(TypeError, match="activation_fn is .*; wanted"):
            model.predict(TEXTS, activation_fn=wrong)  # type: ignore[arg-type]
    unknown = copy_with(folder, tmp_path / "model", "config.json", problem_type="several")
    odd = Classifier(unknown, threads=1)
    with pytest.raises(ValueError, match="problem_type is 'several'; wanted 'regression'"):
        odd.classify(TEXTS)
    assert odd.classify(TEXTS, function_to_apply="none") == model.classify(
        TEXTS, function_to_apply="none"
    )


@pytest.mark.parametrize(
    ("name", "same"),
    [
        ("torch.nn.Sigmoid", "sigmoid"),
        ("torch.nn.modules.activation.Sigmoid", "sigmoid"),
        ("torch.nn.modules.linear.Identity", "identity"),
        ("none", "identity"),
        ("torch.nn.Softmax", "softmax"),
    ],
)
def test_names_of_activations(folders: Any, name: str, same: str) -> None:
    for model in (
        CrossEncoder(folders("classifier"), threads=1),
        Classifier(folders("classifier"), threads=1),
    ):
        found = model.predict(PAIRS, activation_fn=name)
        assert np.array_equal(found, model.predict(PAIRS, activation_fn=same))
        logits = model.predict(PAIRS, activation_fn="identity")
        wanted = [after_logits(same, row) for row in logits]
        assert np.allclose(found, wanted, atol=1e-6)


def test_arrays_of_pairs(folders: Any) -> None:
    model = Classifier(folders("classifier"), threads=1)
    wanted = model.predict(PAIRS), model.classify(PAIRS)
    for kind in (None, object):
        pairs = np.array([list(pair) for pair in PAIRS], kind)
        assert np.array_equal(model.predict(pairs), wanted[0])
        assert model.classify(pairs) == wanted[1]
        texts = pairs[:, 0]
        assert np.array_equal(model.predict(texts), model.predict(texts.tolist()))
        for wrong in (pairs[:, :1], np.array([["a", "b", "c"]], kind), pairs[None]):
            with pytest.raises((TypeError, ValueError), match="inputs.* wanted .*pair"):
                model.predict(wrong)
    with pytest.raises(TypeError, match=r"inputs\[0\].* is of type .*; wanted str"):
        model.predict(np.array([[1, 2]]))
