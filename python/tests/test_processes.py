# SPDX-License-Identifier: Apache-2.0
"""Threads, processes, pickling and Ctrl-C."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import many_threads
import numpy as np
import pytest
from conftest import MINILM, TEXTS, needs_minilm, own_environment, run_python
from pyencore import CrossEncoder, Encoder, TextEncoder, Tokenizer



@pytest.fixture(scope="module")
def model(folders: Any) -> TextEncoder:
    return TextEncoder(folders("base"), threads=2)


def test_threads_share_a_model(model: TextEncoder) -> None:
    wanted = model.encode(TEXTS)

    def work(i: int) -> bool:
        text = i % len(TEXTS)
        return np.array_equal(model.encode(TEXTS), wanted) and np.array_equal(
            model.encode(TEXTS[text]), wanted[text]
        )

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(work, range(400)))


@pytest.mark.skipif(sys.platform != "linux", reason="memory is read from /proc")
@pytest.mark.parametrize("threads", [1, 2])
def test_many_threads_for_seconds(folders: Any, threads: int) -> None:
    calls, grown = many_threads.run(TextEncoder(folders("base"), threads=threads), 3)
    assert calls > 0
    assert grown < 8  # MiB; python/tests/many_threads.py takes a minute


def test_the_gil_is_released(folders: Any) -> None:
    model = TextEncoder(folders("base"), threads=1)
    done = threading.Event()
    beats = 0

    def beat() -> None:
        nonlocal beats
        while not done.is_set():
            beats += 1
            time.sleep(0.001)

    thread = threading.Thread(target=beat)
    thread.start()
    started = time.perf_counter()
    while time.perf_counter() - started < 0.5:
        model.encode(TEXTS * 50)
    done.set()
    thread.join()
    assert beats > 20


def test_pickling(model: TextEncoder, folders: Any) -> None:
    again = pickle.loads(pickle.dumps(model))
    assert np.array_equal(again.encode(TEXTS), model.encode(TEXTS))
    assert again.threads == model.threads
    assert again.prompts == model.prompts
    ranker = CrossEncoder(folders("reranker"), threads=1)
    assert pickle.loads(pickle.dumps(ranker)).rank("a", ["b", "c"]) == ranker.rank("a", ["b", "c"])
    tokenizer = Tokenizer(folders("base"))
    assert pickle.loads(pickle.dumps(tokenizer)).encode("tea") == tokenizer.encode("tea")
    with pytest.raises(TypeError, match="pickle the model"):
        pickle.dumps(model.tokenizer)
    with pytest.raises(TypeError, match="make it again"):
        pickle.dumps(Encoder.__new__(Encoder))


def encode(model: TextEncoder, texts: list[str]) -> Any:
    return model.encode(texts)


@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_multiprocessing(model: TextEncoder, method: str) -> None:
    wanted = model.encode(TEXTS)
    context = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        for found in pool.starmap(encode, [(model, TEXTS)] * 3):
            assert np.array_equal(found, wanted)


def test_fork_while_others_compute(model: TextEncoder) -> None:
    wanted = model.encode(TEXTS)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            model.encode(TEXTS * 4)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0 if np.array_equal(model.encode(TEXTS), wanted) else 1)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        for thread in threads:
            thread.join()


INTERRUPTED = """
import signal, sys, time
from pyencore import TextEncoder
signal.signal(signal.SIGINT, signal.default_int_handler)  # a job of a script ignores it
model = TextEncoder(sys.argv[1], threads=1)
model.encode(["warm up"] * 300)
print("ready", flush=True)
try:
    model.encode(["a sentence of some words that is computed for ever " * 3] * 2_000_000)
except KeyboardInterrupt:
    print("stopped", time.time(), flush=True)
    assert model.encode("still works").shape
    print("works", flush=True)
"""


@needs_minilm
def test_ctrl_c() -> None:
    command = [sys.executable, "-c", INTERRUPTED, str(MINILM)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=own_environment())
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    time.sleep(1.5)
    sent = time.time()
    process.send_signal(signal.SIGINT)
    word, at = process.stdout.readline().split()
    assert word == "stopped"
    # 0.2 s on a machine of one's own; a shared one may take the core away.
    assert float(at) - sent < (1.0 if os.environ.get("CI") else 0.5)
    assert process.stdout.readline() == "works\n"
    assert process.wait() == 0


def test_import_is_quick() -> None:
    program = (
        "import time, numpy; t = time.perf_counter(); import pyencore; "
        "from pyencore import TextEncoder; print(time.perf_counter() - t)"
    )
    seconds = min(float(run_python(program).stdout) for _ in range(5))
    assert seconds < 0.060
