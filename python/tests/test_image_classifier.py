# SPDX-License-Identifier: Apache-2.0
"""Classifiers of pictures, and zero-shot ones, beside what transformers' pipelines gave in float64
(tests/make/make_vision_folders.py)."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, copy_with
from numpy.typing import NDArray
from pyencore import CallStats, ImageClassifier, ImageEncoder, UnsupportedError

VISION = DATA / "vision"
HEADS = ["vit_classifier", "deit_classifier", "deit_labels", "dinov2_gated", "dinov2_labels",
         "siglip_labels", "clip_labels"]  # fmt: skip
ZERO_SHOT = ["clip_zero_shot", "siglip_zero_shot"]
SIZES = [(1, 30, 91, 3), (4, 80, 21, 3), (3, 2, 3, 3), (6, 301, 257, 3), (9, 32, 32, 3),
         (7, 50, 41, 1), (5, 45, 64, 3), (10, 37, 33, 4), (12, 64, 45, 3)]  # fmt: skip


def drawn(seed: int, *shape: int) -> NDArray[np.uint8]:
    """As tests/make/make_image_fixtures.py draws them."""
    values = np.frombuffer(np.random.RandomState(seed).bytes(int(np.prod(shape))), np.uint8)
    if seed % 3 == 1:
        values = (values.astype(np.uint32) * (np.arange(values.size) % 256) // 255).astype(np.uint8)
    elif seed % 3 == 2:
        values = np.where(values < 128, 0, 255).astype(np.uint8)
    return values.reshape(shape)


PICTURES = [drawn(*size) for size in SIZES]


def expected(folder: Path) -> dict[str, NDArray[np.float64]]:
    data = (folder / "expected.safetensors").read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    found = {}
    for name, entry in json.loads(data[8:start]).items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        found[name] = np.frombuffer(data[begin:end]).reshape(entry["shape"])
    return found


def close(found: Any, wanted: Any) -> None:
    wanted = np.asarray(wanted)
    assert found.dtype == np.float32 and found.shape == wanted.shape
    assert np.abs(found - wanted).max() <= 2e-6 * np.abs(wanted).max()


def ranked(rows: Any, labels: list[str], top_k: int) -> list[list[str]]:
    return [[labels[i] for i in np.argsort(-row, kind="stable")[:top_k]] for row in rows]


@pytest.mark.parametrize("name", HEADS)
def test_heads(name: str) -> None:
    model = ImageClassifier(VISION / name, threads=2)
    wanted = expected(VISION / name)
    scores = model.predict(PICTURES)
    close(scores, wanted["scores"])
    close(model.predict(PICTURES, function_to_apply="none"), wanted["logits"])
    assert model.num_labels == len(model.labels) == scores.shape[1]
    for top_k in (None, 1, 2, 99):
        found = model.classify(iter(PICTURES), top_k)
        labels = [[one["label"] for one in of_picture] for of_picture in found]
        assert labels == ranked(scores, model.labels, top_k or 5)
        assert [one["score"] for one in found[3]] == sorted(map(float, scores[3]))[::-1][:top_k]
    assert model.classify(PICTURES[3]) == model.classify(PICTURES)[3]
    assert np.array_equal(model.predict(PICTURES[3]), scores[3])
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(PICTURES), scores)


@pytest.mark.parametrize("name", ZERO_SHOT)
def test_zero_shot(name: str) -> None:
    wanted = json.loads((VISION / name / "zero_shot.json").read_text("utf-8"))
    template = wanted["hypothesis_template"]
    model = ImageClassifier(
        VISION / name, candidate_labels=wanted["candidate_labels"], hypothesis_template=template
    )
    scores = model.predict(PICTURES)
    close(scores, wanted["scores"])
    found = model.classify(PICTURES)
    assert model.labels == wanted["candidate_labels"]
    assert [[one["label"] for one in row] for row in found] == ranked(scores, model.labels, 4)
    assert [one["label"] for one in model.classify(PICTURES[2], top_k=1)] == ranked(
        scores[2:3], model.labels, 1
    )[0]
    assert np.array_equal(np.stack([model.predict(one) for one in PICTURES]), scores)
    logits = model.predict(PICTURES, function_to_apply="none")
    shares = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
    assert np.allclose(model.predict(PICTURES, "softmax"), shares, atol=1e-6)
    assert np.allclose(model.predict(PICTURES, "sigmoid"), 1 / (1 + np.exp(-logits)), atol=1e-6)
    one = ImageClassifier(VISION / name, candidate_labels=["tea"], hypothesis_template=template)
    index = model.labels.index("tea")
    assert np.array_equal(one.predict(PICTURES, "none")[:, 0], logits[:, index])
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(PICTURES), scores)


def test_settings(tmp_path: Path) -> None:
    folder = VISION / "siglip_labels"
    model = ImageClassifier(folder, function_to_apply="sigmoid")
    logits = model.predict(PICTURES, function_to_apply="NONE")
    assert np.allclose(model.predict(PICTURES), 1 / (1 + np.exp(-logits)), atol=1e-6)
    assert model.predict([]).shape == (0, 3) and model.classify([]) == []
    assert model.size == (32, 32)
    stats = CallStats()
    seen: list[tuple[int, ...]] = []
    many = PICTURES * 8
    rows = model.predict(many, stats=stats, progress=lambda *done: seen.append(done))
    assert stats.texts == 72 and seen[-1][:2] == (72, 72)
    assert np.array_equal(rows, np.concatenate([model.predict(PICTURES)] * 8))
    cached = [
        ImageClassifier(folder, compute="int8", cache=tmp_path).predict(PICTURES) for _ in range(2)
    ]
    assert np.array_equal(*cached) and not np.array_equal(cached[0], model.predict(PICTURES))


def test_what_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedError, match="has no classification head; wanted one$"):
        ImageClassifier(VISION / "vit")
    clip = VISION / "clip_zero_shot"
    with pytest.raises(UnsupportedError, match="head; wanted one, or candidate_labels$"):
        ImageClassifier(clip)
    with pytest.raises(UnsupportedError, match="no model of texts and pictures, .*candidate_la"):
        ImageClassifier(VISION / "deit_labels", candidate_labels=["a"])
    with pytest.raises(ValueError, match="candidate_labels is empty"):
        ImageClassifier(clip, candidate_labels=[])
    with pytest.raises(TypeError, match=r"candidate_labels\[1\] is of type int; wanted"):
        ImageClassifier(clip, candidate_labels=["a", 3])
    for template in ("{", "{x}", "{1}", "{.a}"):
        with pytest.raises(ValueError, match="hypothesis_template is .*; wanted a text with {}"):
            ImageClassifier(clip, candidate_labels=["a"], hypothesis_template=template)
    with pytest.raises(TypeError, match="hypothesis_template is of type int"):
        ImageClassifier(clip, hypothesis_template=3)
    with pytest.raises(ValueError, match="function_to_apply is 'tanh'"):
        ImageClassifier(VISION / "deit_labels", function_to_apply="tanh")
    folder = copy_with(VISION / "deit_labels", tmp_path / "f", "config.json", problem_type="guess")
    model = ImageClassifier(folder)
    assert model.predict(PICTURES, function_to_apply="softmax").shape == (9, 3)
    with pytest.raises(ValueError, match="problem_type is 'guess'"):
        model.predict(PICTURES)
    with pytest.raises(TypeError, match=r"images\[1\] is of type NoneType; wanted a path"):
        model.classify([PICTURES[0], None])
    assert ImageEncoder(VISION / "deit_labels").encode(PICTURES).shape == (9, 16)
