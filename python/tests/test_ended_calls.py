# SPDX-License-Identifier: Apache-2.0
"""cancel, deadline, background, progress and stats of every method that has them, and Ctrl-C."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyencore
import pytest
import random_stops
from conftest import DATA, TEXTS
from pyencore import CallStats, Stop, TextEncoder

SOURCES = str(Path(sys.modules["pyencore"].__file__ or "").parents[1])
MANY = [f"{text} {i}" for i in range(60) for text in TEXTS]
IMAGES = [np.full((3 + i % 9, 5 + i % 7, 3), i, np.uint8) for i in range(40)]

# Each method with these arguments: its model, and what it computes.
METHODS: dict[str, tuple[Callable[[], Any], Callable[..., Any]]] = {
    "encode": (
        lambda: TextEncoder(DATA / "text" / "base"),
        lambda model, **options: model.encode(MANY, **options),
    ),
    "encode of an iterator": (
        lambda: TextEncoder(DATA / "text" / "base"),
        lambda model, **options: model.encode((text for text in MANY), **options),
    ),
    "encode of one text": (
        lambda: TextEncoder(DATA / "text" / "base"),
        lambda model, **options: model.encode(MANY[0], **options),
    ),
    "encode_query": (
        lambda: TextEncoder(DATA / "text" / "base"),
        lambda model, **options: model.encode_query(MANY, **options),
    ),
    "token_embeddings": (
        lambda: TextEncoder(DATA / "text" / "base"),
        lambda model, **options: np.concatenate(
            model.encode(TEXTS, output_value="token_embeddings", **options)
        ),
    ),
    "encode_ids": (
        lambda: TextEncoder(DATA / "text" / "base"),
        lambda model, **options: model.encode_ids([[2, 3, 4]] * 30, **options),
    ),
    "predict": (
        lambda: pyencore.CrossEncoder(DATA / "text" / "reranker"),
        lambda model, **options: model.predict([("who?", text) for text in MANY], **options),
    ),
    "rank": (
        lambda: pyencore.CrossEncoder(DATA / "text" / "reranker"),
        lambda model, **options: np.array(
            [one["score"] for one in model.rank("who?", MANY, **options)]
        ),
    ),
    "classify": (
        lambda: pyencore.Classifier(DATA / "text" / "classifier"),
        lambda model, **options: np.array(
            [one[0]["score"] for one in model.classify(MANY, **options)]
        ),
    ),
    "sparse": (
        lambda: pyencore.SparseEncoder(DATA / "heads" / "splade_bert"),
        lambda model, **options: model.encode(MANY, **options).values,
    ),
    "late": (
        lambda: pyencore.MultiVectorEncoder(DATA / "late" / "stanford"),
        lambda model, **options: np.concatenate(model.encode_document(MANY, **options)),
    ),
    "images": (
        lambda: pyencore.ImageEncoder(DATA / "vision" / "clip"),
        lambda model, **options: model.encode(IMAGES, batch_size=7, **options),
    ),
    "classes of images": (
        lambda: pyencore.ImageClassifier(DATA / "vision" / "siglip_labels"),
        lambda model, **options: np.array(
            [one[0]["score"] for one in model.classify(IMAGES, **options)]
        ),
    ),
    "entities": (
        lambda: pyencore.TokenClassifier(DATA / "heads" / "ner_bert"),
        lambda model, **options: np.array(
            [one["score"] for found in model.predict(MANY, **options) for one in found]
        ),
    ),
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method(name: str) -> None:
    make, compute = METHODS[name]
    model = make()
    wanted = compute(model)
    stats, seen = CallStats(), []
    here = threading.get_ident()

    def progress(*done: int) -> None:
        assert threading.get_ident() == here
        seen.append(done)

    begin = time.perf_counter()
    found = compute(
        model, cancel=Stop(), deadline=60.0, background=True, progress=progress, stats=stats
    )
    wall = time.perf_counter() - begin
    assert np.array_equal(found, wanted)
    times = (stats.tokenizing, stats.embedding, stats.layers, stats.pooling, stats.waiting)
    assert 0 < sum(times) <= wall
    assert min(times[:4]) > 0
    assert stats.scratch_bytes > 0
    assert stats.helpers < model.threads
    assert seen == sorted(seen)
    texts, all_texts, tokens, all_tokens = seen[-1]
    assert texts == all_texts == stats.texts > 0
    assert tokens == all_tokens == stats.tokens >= texts
    assert f"texts={texts}, tokens={tokens}" in repr(stats)

    stop, event = Stop(), threading.Event()
    stop.set()
    event.set()
    for cancel in (stop, event):
        with pytest.raises(concurrent.futures.CancelledError):
            compute(model, cancel=cancel)
    with pytest.raises(TimeoutError):
        compute(model, deadline=0)

    def refuse(*done: int) -> None:
        raise LookupError("enough")

    with pytest.raises(LookupError, match="enough"):
        compute(model, progress=refuse)
    stop.clear()
    assert not stop.is_set()
    assert np.array_equal(compute(model, cancel=stop), wanted)


def test_arguments() -> None:
    model = TextEncoder(DATA / "text" / "base", threads=1)
    for inputs in (TEXTS, TEXTS[0]):
        with pytest.raises(TypeError, match="cancel is of type int; wanted a pyencore.Stop"):
            model.encode(inputs, cancel=3)
        for seconds in (-1, float("nan"), float("inf"), 1e12):
            with pytest.raises(ValueError, match="deadline is"):
                model.encode(inputs, deadline=seconds)
        for name, value in (("deadline", "1"), ("progress", 3), ("stats", True), ("background", 2)):
            with pytest.raises(TypeError, match=f"{name} is"):
                model.encode(inputs, **{name: value})


def test_progress_between_batches_and_the_end_of_a_stream() -> None:
    model = TextEncoder(DATA / "text" / "base", threads=1)
    seen: list[tuple[int, ...]] = []
    texts = ["some words " * 9] * 9000
    stats = CallStats()
    model.encode(iter(texts), progress=lambda *done: seen.append(done), stats=stats)
    assert len(seen) > 3
    assert seen[0][0] < 4096
    assert seen[-1][:2] == (9000, 9000)
    assert stats.texts == 9000
    # The deadline is that of all blocks together.
    with pytest.raises(TimeoutError):
        model.encode((text for text in texts * 1000), deadline=0.2)


def test_another_thread_cancels() -> None:
    model = TextEncoder(DATA / "text" / "base")
    for cancel in (Stop(), threading.Event()):
        threading.Timer(0.2, cancel.set).start()
        with pytest.raises(concurrent.futures.CancelledError):
            model.encode(TEXTS * 200_000, cancel=cancel)


def test_random_stops() -> None:
    model = TextEncoder(DATA / "text" / "base")
    late = random_stops.run(model, 100)
    assert sum(map(len, late.values())) > 20
    for seconds in late.values():
        assert not seconds or seconds[len(seconds) // 2] < 0.1


INTERRUPTED = """
import signal, sys, time
from pyencore import TextEncoder
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of a script ignores it
model = TextEncoder(sys.argv[1], threads=1)
texts = ["some words " * 9] * 300_000
right = model.encode("still works").tobytes()
for _ in range(5):
    print("ready", flush=True)
    try:
        model.encode(texts)
        print("done", flush=True)
    except KeyboardInterrupt:
        print(time.time(), flush=True)
    assert model.encode("still works").tobytes() == right
"""


def test_ctrl_c_ends_a_call_within_some_ms() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, str(DATA / "text" / "base")],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": SOURCES},
    )
    assert process.stdout is not None
    late = []
    for _ in range(5):
        assert process.stdout.readline() == "ready\n"
        time.sleep(0.5)
        sent = time.time()
        process.send_signal(signal.SIGINT)
        late.append(float(process.stdout.readline()) - sent)
    assert process.wait() == 0
    assert min(late) < 0.05  # a shared machine may take the core away
