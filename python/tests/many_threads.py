#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""16 Python threads on one model: every result has the bits that one thread gets, and memory does
not grow.

    python python/tests/many_threads.py --seconds 60 [--model FOLDER] [--threads N]

python/tests/test_processes.py runs the same for some seconds. On a free-threaded interpreter the
threads run truly at once.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from pathlib import Path

import numpy as np
from pyencore import TextEncoder

TINY = Path(__file__).resolve().parents[2] / "tests" / "data" / "text" / "base"
PYTHON_THREADS = 16


def resident_mib() -> float:
    """Of this process, now."""
    status = Path("/proc/self/status").read_text()
    return float(status.split("VmRSS:")[1].split()[0]) / 1024


def run(model: TextEncoder, seconds: float) -> tuple[int, float]:
    """Calls that were made, and by how many MiB memory has grown in the last three quarters."""
    texts = [f"text {i} " + "some more words " * (i % 7) for i in range(64)]
    wanted = model.encode(texts)
    calls = [0] * PYTHON_THREADS
    errors: list[BaseException] = []
    end = time.monotonic() + seconds

    def work(number: int) -> None:
        rng = np.random.default_rng(number)
        out = np.empty((len(texts), model.dimension), np.float32)
        try:
            while time.monotonic() < end and not errors:
                first = int(rng.integers(len(texts)))
                chosen = slice(first, first + int(rng.integers(1, 9)))
                assert np.array_equal(model.encode(texts[chosen]), wanted[chosen])
                assert np.array_equal(model.encode(texts[first]), wanted[first])
                rows = out[chosen]
                model.encode(texts[chosen], out=rows)
                assert np.array_equal(rows, wanted[chosen])
                calls[number] += 3
        except BaseException as error:  # raised again in the main thread
            errors.append(error)

    threads = [threading.Thread(target=work, args=(i,)) for i in range(PYTHON_THREADS)]
    for thread in threads:
        thread.start()
    time.sleep(seconds / 4)
    before = resident_mib()
    time.sleep(max(0.0, end - time.monotonic() - 0.1))
    grown = resident_mib() - before
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]
    return sum(calls), grown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--model", type=Path, default=TINY)
    parser.add_argument("--threads", type=int, default=2, help="of the model")
    options = parser.parse_args()
    calls, grown = run(TextEncoder(options.model, threads=options.threads), options.seconds)
    gil = getattr(sys, "_is_gil_enabled", lambda: True)()
    print(
        f"{calls} calls by {PYTHON_THREADS} threads in {options.seconds:g} s, "
        f"{'with' if gil else 'without'} the GIL: same bits, memory {grown:+.1f} MiB"
    )


if __name__ == "__main__":
    main()
