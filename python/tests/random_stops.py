#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Calls that end early at random moments, by a Stop, an Event, a deadline or Ctrl-C: how soon they
return, and that the next call's bits are right.

    python python/tests/random_stops.py --count 1000 [--model FOLDER] [--threads N]

python/tests/test_ended_calls.py runs the same a hundred times.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import os
import random
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
from pyencore import Stop, TextEncoder

TINY = Path(__file__).resolve().parents[2] / "tests" / "data" / "text" / "base"
WAYS = ("Stop", "Event", "deadline", "Ctrl-C")
ENDED = (concurrent.futures.CancelledError, TimeoutError, KeyboardInterrupt)


def ended_call(model: TextEncoder, texts: list[str], way: str, after: float) -> float | None:
    """Seconds from the end that was wanted to that of the call; None where it was done before."""
    at = time.perf_counter() + after
    done = threading.Event()
    options: dict[str, Any] = {}
    if way == "deadline":
        options["deadline"] = after
    elif way in ("Stop", "Event"):
        options["cancel"] = Stop() if way == "Stop" else threading.Event()

    def end() -> None:
        nonlocal at
        if done.wait(after):
            return
        at = time.perf_counter()
        if way == "Ctrl-C":
            os.kill(os.getpid(), signal.SIGINT)
        elif way != "deadline":
            options["cancel"].set()

    thread = threading.Thread(target=end)
    late = None
    try:
        thread.start()
        try:
            model.encode(texts, **options)
            done.set()
        except ENDED:
            late = time.perf_counter() - at
        done.set()
        thread.join()
        time.sleep(0)  # Ctrl-C that came after the call
    except KeyboardInterrupt:
        thread.join()
    return late


def run(model: TextEncoder, count: int) -> dict[str, list[float]]:
    """Of each way the seconds, sorted."""
    texts = [f"text {i} " + "some more words " * (i % 7) for i in range(400)]
    begin = time.perf_counter()
    right = model.encode(texts)
    whole = time.perf_counter() - begin
    drawn = random.Random(7)
    late: dict[str, list[float]] = {way: [] for way in WAYS}
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        for i in range(count):
            way = WAYS[i % len(WAYS)]
            seconds = ended_call(model, texts, way, drawn.random() * whole)
            if seconds is not None:
                late[way].append(seconds)
            if i % 5 == 0:
                assert np.array_equal(model.encode(texts), right)
        assert np.array_equal(model.encode(texts), right)
    finally:
        signal.signal(signal.SIGINT, handler)
    return {way: sorted(seconds) for way, seconds in late.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--model", default=TINY)
    parser.add_argument("--threads", type=int, default=0)
    given = parser.parse_args()
    for way, late in run(TextEncoder(given.model, threads=given.threads), given.count).items():
        ms = [1e3 * seconds for seconds in late]
        print(
            f"{way}: {len(ms)} ended, after {ms[len(ms) // 2]:.2f} ms (median), "
            f"{ms[len(ms) * 99 // 100]:.2f} (99 %), {ms[-1]:.2f} (last)"
        )


if __name__ == "__main__":
    main()
