#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a call from Python costs, and how fast texts are beside sentence-transformers.

    python python/benchmarks/calls.py MODEL [--texts N] [--rounds N] [--threads N] [--encore FILE]

Three measurements, each in turns within one run, as medians with the lowest and highest ratio of a
round: one query by TextEncoder.encode and by the compiled call that it makes; N sentences by
encode() and by `encore embed`; the same sentences by sentence-transformers' backends that are
installed (torch, onnx, openvino).
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from pyencore import TextEncoder
from texts import sentences

TINY = Path(__file__).resolve().parents[2] / "tests/data/text/base"


def seconds(call: Callable[[], Any]) -> float:
    started = time.perf_counter()
    call()
    return time.perf_counter() - started


def in_turns(calls: dict[str, Callable[[], Any]], rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(seconds(call))
    return found


def ratios(a: list[float], b: list[float]) -> str:
    each = [x / y for x, y in zip(a, b, strict=True)]
    return f"{statistics.median(each):.3f} ({min(each):.3f} to {max(each):.3f})"


def one_query(model: TextEncoder, rounds: int) -> None:
    core, columns = model._core, model.dimension
    row = np.empty(columns, np.float32)
    query = "Which road leads to the old lighthouse, and how long does it take?"
    calls = {
        "encode": lambda: model.encode(query),
        "compiled": lambda: core.encode_one(query, row, None, None, columns, 0),
    }
    found = in_turns(calls, 30 * rounds)
    medians = {name: statistics.median(times) * 1e6 for name, times in found.items()}
    print(
        f"one query, p50: encode {medians['encode']:.1f} us, compiled {medians['compiled']:.1f} us"
    )
    # What Python adds is below the noise of a model's call. The whole call of a model of two tiny
    # layers bounds it.
    if TINY.is_dir():
        tiny = TextEncoder(TINY, threads=1)
        found = in_turns({"encode": lambda: tiny.encode("tea")}, 1000 * rounds)
        print(f"a tiny model's whole call, p50: {statistics.median(found['encode']) * 1e6:.1f} us")


def bulk(model: TextEncoder, texts: list[str], encore: str, threads: int, rounds: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        lines, vectors = Path(folder) / "texts.txt", Path(folder) / "v.npy"
        lines.write_text("\n".join(texts) + "\n")
        command = [encore, "embed", "--model", model.folder, "--input", str(lines)]
        command += ["--output", str(vectors), "--threads", str(threads or os.cpu_count())]

        def embed() -> None:
            subprocess.run(
                command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            )

        found = in_turns({"encode": lambda: model.encode(texts), "embed": embed}, rounds)
        opening = seconds(lambda: TextEncoder(model.folder, threads=threads))
        found["embed"] = [t - opening for t in found["embed"]]  # the command opens the model too
        assert np.array_equal(np.load(vectors), model.encode(texts))
    rate = {name: len(texts) / statistics.median(times) for name, times in found.items()}
    print(
        f"{len(texts)} sentences: encode {rate['encode']:.0f}/s, embed {rate['embed']:.0f}/s; ",
        end="",
    )
    print(f"encode / embed {ratios(found['embed'], found['encode'])}")


def beside(model: TextEncoder, texts: list[str], threads: int, rounds: int) -> None:
    if importlib.util.find_spec("sentence_transformers") is None:
        print("sentence-transformers is not installed: left out")
        return
    import sentence_transformers
    import torch

    if threads:
        torch.set_num_threads(threads)
    calls: dict[str, Callable[[], Any]] = {"encore": lambda: model.encode(texts)}
    for backend in ("torch", "onnx", "openvino"):
        try:
            peer = sentence_transformers.SentenceTransformer(
                model.folder, device="cpu", backend=backend
            )
            difference = np.abs(peer.encode(texts[:64]) - model.encode(texts[:64])).max()
        except Exception as error:  # a backend that lacks its packages or files
            print(f"{backend}: left out: {str(error).splitlines()[0][:120]}")
            continue
        print(f"{backend}: vectors within {difference:.1e}")
        calls[backend] = lambda peer=peer: peer.encode(texts)
    found = in_turns(calls, rounds)
    for name, times in found.items():
        rate = len(texts) / statistics.median(times)
        print(f"{name:10} {rate:8.0f}/s  encore / it {ratios(times, found['encore'])}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--encore", default=shutil.which("encore"))
    parser.add_argument("--peers", type=int, default=1000, help="sentences beside others; 0: none")
    options = parser.parse_args()
    model = TextEncoder(options.model, threads=options.threads)
    one_query(model, options.rounds)
    texts = sentences(options.texts)
    if options.encore:
        bulk(model, texts, options.encore, options.threads, options.rounds)
    else:
        print("no encore command: left out (--encore FILE)", file=sys.stderr)
    if options.peers:
        beside(model, texts[: options.peers], options.threads, options.rounds)


if __name__ == "__main__":
    main()
