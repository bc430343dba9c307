# SPDX-License-Identifier: Apache-2.0
"""What `encode` takes here beyond layers."""

import contextlib
import dataclasses
import mmap
import os
import time

import numpy as np
from pyencore.lab import measure

import replay_texts
from replay import FEW_ROWS
from replay_costs import bench_seconds, calibrate, plan_of
from replay_encode import TextCosts, batches, replayed

MOST_MEASURED = 1024  # texts, which `encore bench --texts` takes
MOST_SECONDS = 12.0  # of a call that is measured
# Models that show the costs outside of layers: narrow, with heads of 16 and almost without a
# feed-forward network, so that layers hide little. Calls take some milliseconds.
NARROW, WIDE, THIN = 16, 64, 16
TIMED_TEXTS = 400


@dataclasses.dataclass(frozen=True)
class TimedTexts:
    """Seconds a token, of models of one layer and of two on one thread."""
    narrow: float
    narrow_two_layers: float
    narrow_on_two: float  # one layer, two threads
    wide: float
    wide_two_layers: float


def fresh_seconds():
    """Of a byte of new memory that is filled with zeros, by the fastest of some. In large pages
    where the system has them, as base/aligned_buffer.cc asks for."""
    size, best = 1 << 26, float("inf")
    for _ in range(8):
        with mmap.mmap(-1, size) as memory:
            if hasattr(mmap, "MADV_HUGEPAGE"):
                with contextlib.suppress(OSError):  # a kernel without them
                    memory.madvise(mmap.MADV_HUGEPAGE)
            zeros = np.frombuffer(memory, np.uint8)
            start = time.perf_counter()
            zeros.fill(0)
            best = min(best, time.perf_counter() - start)
            del zeros  # before the memory is given back
    return best / size


def costs_of_texts(timed, hand_overs, cold, fresh):
    """What a model of one layer takes beyond that layer. What two threads do not halve is taken for
    the caller's alone. hand_overs: seconds a token of it that are the stages'."""
    narrow = max(2 * timed.narrow - timed.narrow_two_layers, 0.0)
    wide = max(2 * timed.wide - timed.wide_two_layers, 0.0)
    rows = max(wide - narrow, 0.0) / (WIDE - NARROW)
    left = max(narrow - NARROW * rows, 0.0)  # tokenizing, and what the caller does
    serial = min(max(2 * (timed.narrow_on_two - hand_overs) - timed.narrow, 0.0), left)
    return TextCosts(left - serial, rows, serial, cold, fresh)


class Bench:
    """Texts and folders in a temporary folder, and their timing."""

    def __init__(self, encore, source, path, seconds):
        self.encore, self.source, self.path, self.seconds = encore, source, path, seconds
        self._lengths = {}

    def texts(self, count):
        path = os.path.join(self.path, f"{count}.txt")
        if not os.path.exists(path):
            replay_texts.write_texts(path, replay_texts.drawn(self.source, count))
        return path

    def lengths(self, count):
        if count not in self._lengths:
            self._lengths[count] = replay_texts.token_counts(self.encore, self.source,
                                                             self.texts(count))
        return self._lengths[count]

    def folder(self, d_model, heads, d_ff, layers):
        path = os.path.join(self.path, "_".join(map(str, (d_model, heads, d_ff, layers))))
        if not os.path.exists(path):
            replay_texts.write_folder(self.source, path, d_model, heads, d_ff, layers)
        return path

    def seconds_of(self, folder, texts, threads):
        """Of a call, the fastest one."""
        report = measure.bench(self.encore, [
            "--model", folder, "--texts", self.texts(texts), "--precision", "f32", "--threads",
            ",".join(map(str, threads)), "--seconds", str(self.seconds)])
        # The first rows are of one query.
        return [row["seconds"]["min"] for row in report["rows"][len(threads):]]

    def text_costs(self, work, machine):
        lengths = self.lengths(TIMED_TEXTS)

        def of(d_model, layers, threads=(1,)):
            folder = self.folder(d_model, d_model // 16, THIN, layers)
            found = self.seconds_of(folder, TIMED_TEXTS, threads)
            return [seconds / sum(lengths) for seconds in found]

        narrow, on_two = of(NARROW, 1, (1, 2))
        # Embedding, one layer and pooling of each batch; tokenizing once.
        hand_overs = 3 * len(batches(lengths, 2)) + 1
        one = dataclasses.replace(work.layer, lengths=(FEW_ROWS,))
        cold, warm = (bench_seconds(self.encore, one, (1,), self.seconds, weights)[0]
                      for weights in ("--cold", "--warm"))
        return costs_of_texts(
            TimedTexts(narrow, of(NARROW, 2)[0], on_two, of(WIDE, 1)[0], of(WIDE, 2)[0]),
            hand_overs * machine.hand_over / sum(lengths), max(cold - warm, 0.0),
            fresh_seconds())

    def measured(self, work, threads):
        layer = work.layer
        folder = self.folder(layer.d_model, layer.heads, layer.d_ff, work.layers)
        return self.seconds_of(folder, work.texts, threads)


class Calls:
    """Calls of `encode`, for simulate.py."""

    parts = ("tokenizing", "embedding and pooling", "one thread", "new memory")

    def __init__(self, encore, bench, seconds, tell):
        self.encore, self.bench, self.seconds, self.tell = encore, bench, seconds, tell

    def costs(self, work):
        costs, machine = calibrate(self.encore, work.layer, self.seconds, self.tell)
        return costs, self.bench.text_costs(work, machine), machine

    def simulate(self, work, threads, costs):
        return replayed(work, self.bench.lengths(work.texts), threads,
                        lambda layer, count: plan_of(self.encore, layer, count), *costs)

    def measure(self, work, threads, alone):
        if work.texts > MOST_MEASURED or alone > MOST_SECONDS:
            return []
        return self.bench.measured(work, threads)
