# SPDX-License-Identifier: Apache-2.0
"""`encode` of many texts replayed: tokenizing, batches, embedding, layers and pooling as
engine/text/stream.cc has them, with what each takes here on one thread."""

from __future__ import annotations

import collections
import dataclasses
import os
import statistics
import tempfile
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from . import measure, replay_texts
from .replay import (
    FEW_ROWS,
    MODELS,
    Costs,
    Machine,
    Shape,
    Stage,
    makespan,
    simulated,
)
from .replay_costs import Tell, bench_seconds, beside, calibrate, plan_of
from .reports import LabError

LAYERS = {"minilm": 6, "base": 12, "large": 24}

# Of engine/text/stream.cc, token_store.cc and models/embeddings.cc.
CHUNK_TEXTS = 8192
LEAST_TOKENS, TOKENS_OF_THREAD = 2048, 512  # of a batch
TEXTS_OF_TASK, ROWS_OF_TASK = 16, 32  # tokenizing, embedding

MOST_MEASURED = 1024  # texts, which `encore bench --texts` takes
MOST_SECONDS = 12.0  # of a call that is measured
# Models by which costs outside of layers are told: narrow, with heads of 16 and almost without a
# feed-forward network, so that layers hide little. Calls take some milliseconds.
NARROW, WIDE, THIN = 16, 64, 16
TIMED_TEXTS = 400


@dataclasses.dataclass(frozen=True)
class Workload:
    """`encode` of so many texts. layer: of its model, with no batch yet."""
    layer: Shape
    layers: int
    texts: int

    @property
    def name(self) -> str:
        return self.layer.name


def is_workload(name: str) -> bool:
    return name.split("_")[1:2] == ["encode"]


def workload(name: str) -> Workload:
    """minilm_encode_10000 and the like."""
    parts = name.split("_")
    if len(parts) != 3 or parts[0] not in MODELS or not parts[2].isdigit() or not int(parts[2]):
        raise LabError(f"found '{name}', wanted {', '.join(MODELS)}, and _encode_10000 behind it")
    return Workload(Shape(name, *MODELS[parts[0]], ()), LAYERS[parts[0]], int(parts[2]))


@dataclasses.dataclass(frozen=True)
class TextCosts:
    """Seconds on one core, measured."""
    tokenizing: float  # a token
    rows: float  # an element of a token's row: its embedding, and its part of pooling
    serial: float  # a token: what the caller does alone
    cold: float  # a layer: its weights come from memory


def chunks(lengths: Sequence[int]) -> Iterator[Sequence[int]]:
    """Texts whose tokens are held at once."""
    for begin in range(0, len(lengths), CHUNK_TEXTS):
        yield lengths[begin:begin + CHUNK_TEXTS]


def batches(lengths: Sequence[int], threads: int) -> list[tuple[int, ...]]:
    """Of one chunk: the longest texts first, as many as fit."""
    most = max(LEAST_TOKENS, TOKENS_OF_THREAD * threads)
    made: list[list[int]] = []
    tokens = 0
    for length in sorted(lengths, reverse=True):
        if not made or tokens + length > most:
            made.append([])
            tokens = 0
        made[-1].append(length)
        tokens += length
    return [tuple(batch) for batch in made]


@dataclasses.dataclass(frozen=True)
class Replayed:
    """Seconds of a call, by its parts."""
    tokenizing: float
    rows: float
    layers: float
    serial: float
    kinds: tuple[str, ...]  # of batches' plans

    @property
    def seconds(self) -> float:
        return self.tokenizing + self.rows + self.layers + self.serial


def replayed(work: Workload, lengths: Sequence[int], threads: int,
             plan: Callable[[Shape, int], dict[str, Any]], costs: Costs, text: TextCosts,
             machine: Machine) -> Replayed:
    """encode of texts of these lengths. plan(layer with a batch, threads): the engine's."""
    tokenizing = rows = layers = 0.0
    kinds = []

    def stage(tasks: list[float], in_order: bool = False) -> float:
        return (makespan(Stage(tasks, in_order), threads) +
                machine.hand_over_of(min(threads, len(tasks))))

    for chunk in chunks(lengths):
        tokenizing += stage([text.tokenizing * sum(chunk[i:i + TEXTS_OF_TASK])
                             for i in range(0, len(chunk), TEXTS_OF_TASK)], in_order=True)
        for batch in batches(chunk, threads):
            layer = dataclasses.replace(work.layer, lengths=batch)
            # Both are in one cost, and in two stages.
            of_row = text.rows * layer.d_model
            rows += (stage([of_row * min(ROWS_OF_TASK, layer.tokens - row)
                            for row in range(0, layer.tokens, ROWS_OF_TASK)]) +
                     machine.hand_over_of(min(threads, len(batch))))
            found = plan(layer, threads)
            kinds.append(found["threads"]["kind"])
            layers += work.layers * (simulated(layer, found, costs, machine) + text.cold)
    return Replayed(tokenizing, rows, layers, text.serial * sum(lengths), tuple(kinds))


@dataclasses.dataclass(frozen=True)
class TimedTexts:
    """Seconds a token, of models of one layer and of two on one thread."""
    narrow: float
    narrow_two_layers: float
    narrow_on_two: float  # one layer, two threads
    wide: float
    wide_two_layers: float


def text_costs(timed: TimedTexts, hand_overs: float, cold: float) -> TextCosts:
    """What a model of one layer takes beyond that layer. What two threads do not halve is taken for
    the caller's alone. hand_overs: seconds a token of it that are the stages'."""
    narrow = max(2 * timed.narrow - timed.narrow_two_layers, 0.0)
    wide = max(2 * timed.wide - timed.wide_two_layers, 0.0)
    rows = max(wide - narrow, 0.0) / (WIDE - NARROW)
    left = max(narrow - NARROW * rows, 0.0)  # tokenizing, and what the caller does
    serial = min(max(2 * (timed.narrow_on_two - hand_overs) - timed.narrow, 0.0), left)
    return TextCosts(left - serial, rows, serial, cold)


class Bench:
    """Texts and folders in a temporary folder, and their timing."""

    def __init__(self, encore: str, source: str, path: str, seconds: float) -> None:
        self.encore, self.source, self.path, self.seconds = encore, source, path, seconds
        self._lengths: dict[int, tuple[int, ...]] = {}

    def texts(self, count: int) -> str:
        path = os.path.join(self.path, f"{count}.txt")
        if not os.path.exists(path):
            replay_texts.write_texts(path, replay_texts.drawn(self.source, count))
        return path

    def lengths(self, count: int) -> tuple[int, ...]:
        if count not in self._lengths:
            self._lengths[count] = replay_texts.token_counts(self.encore, self.source,
                                                             self.texts(count))
        return self._lengths[count]

    def folder(self, d_model: int, heads: int, d_ff: int, layers: int) -> str:
        path = os.path.join(self.path, "_".join(map(str, (d_model, heads, d_ff, layers))))
        if not os.path.exists(path):
            replay_texts.write_folder(self.source, path, d_model, heads, d_ff, layers)
        return path

    def seconds_of(self, folder: str, texts: int, threads: Sequence[int]) -> list[float]:
        """Of a call, the fastest one."""
        report = measure.bench(self.encore, [
            "--model", folder, "--texts", self.texts(texts), "--precision", "f32", "--threads",
            ",".join(map(str, threads)), "--seconds", str(self.seconds)])
        # The first rows are of one query.
        return [row["seconds"]["min"] for row in report["rows"][len(threads):]]

    def text_costs(self, work: Workload, machine: Machine) -> TextCosts:
        lengths = self.lengths(TIMED_TEXTS)

        def of(d_model: int, layers: int, threads: Sequence[int] = (1,)) -> list[float]:
            folder = self.folder(d_model, d_model // 16, THIN, layers)
            found = self.seconds_of(folder, TIMED_TEXTS, threads)
            return [seconds / sum(lengths) for seconds in found]

        narrow, on_two = of(NARROW, 1, (1, 2))
        # Embedding, one layer and pooling of each batch; tokenizing once.
        hand_overs = 3 * len(batches(lengths, 2)) + 1
        one = dataclasses.replace(work.layer, lengths=(FEW_ROWS,))
        cold, warm = (bench_seconds(self.encore, one, (1,), self.seconds, weights)[0]
                      for weights in ("--cold", "--warm"))
        return text_costs(
            TimedTexts(narrow, of(NARROW, 2)[0], on_two, of(WIDE, 1)[0], of(WIDE, 2)[0]),
            hand_overs * machine.hand_over / sum(lengths), max(cold - warm, 0.0))

    def measured(self, work: Workload, threads: Sequence[int]) -> list[float]:
        layer = work.layer
        folder = self.folder(layer.d_model, layer.heads, layer.d_ff, work.layers)
        return self.seconds_of(folder, work.texts, threads)


@dataclasses.dataclass(frozen=True)
class EncodeRow:
    workload: str
    threads: int
    replayed: Replayed
    efficiency: float
    measured: float | None
    ratio: float | None


def replay_encode(encore: str, source: str, works: Sequence[Workload], threads: Sequence[int],
                  seconds: float, cores: int, rounds: int = 3,
                  tell: Tell = lambda text: None) -> list[EncodeRow]:
    """As replay_costs.replay, of whole calls. source: a BERT's folder, with its tokenizer."""
    took: dict[tuple[str, int], list[Replayed]] = {}
    found: dict[tuple[str, int], list[float]] = {}

    def plan(layer: Shape, count: int) -> dict[str, Any]:
        return plan_of(encore, layer, count)

    with tempfile.TemporaryDirectory() as path:
        bench = Bench(encore, source, path, seconds)
        for i in range(rounds):
            known: dict[int, tuple[Costs, Machine, TextCosts]] = {}
            for work in works:
                model = work.layer.d_model
                if model not in known:
                    tell(f"round {i + 1} of {rounds}: {work.name}: costs of tasks")
                    costs, machine = calibrate(encore, work.layer, seconds)
                    known[model] = costs, machine, bench.text_costs(work, machine)
                costs, machine, text = known[model]
                tell(f"round {i + 1} of {rounds}: {work.name}")
                lengths = bench.lengths(work.texts)
                for count in dict.fromkeys([1, *threads]):
                    took.setdefault((work.name, count), []).append(
                        replayed(work, lengths, count, plan, costs, text, machine))
                here = [count for count in threads if count <= cores]
                if (work.texts > MOST_MEASURED or not here or
                        took[(work.name, 1)][-1].seconds > MOST_SECONDS):
                    continue
                for count, value in zip(here, bench.measured(work, here), strict=True):
                    found.setdefault((work.name, count), []).append(value)
    rows = []
    for work in works:
        alone = statistics.median(one.seconds for one in took[(work.name, 1)])
        for count in threads:
            key = (work.name, count)
            made = sorted(took[key], key=lambda one: one.seconds)[len(took[key]) // 2]
            rows.append(EncodeRow(work.name, count, made, alone / made.seconds / count,
                                  *beside(found.get(key), [one.seconds for one in took[key]])))
    return rows


def encode_table(rows: Sequence[EncodeRow]) -> list[list[str]]:
    lines = [["encode", "threads", "batches, by", "simulated ms", "efficiency", "tokenizing",
              "embedding and pooling", "one thread", "measured ms", "measured over simulated"]]
    for row in rows:
        call = row.replayed
        kinds = collections.Counter(call.kinds)
        measured = ["", ""]
        if row.measured is not None:
            measured = [f"{row.measured * 1e3:,.1f}", f"{row.ratio:.3f}"]
        lines.append([row.workload, str(row.threads),
                      ", ".join(f"{n} {kind}" for kind, n in kinds.items()),
                      f"{call.seconds * 1e3:,.1f}", f"{100 * row.efficiency:.0f} %",
                      *(f"{100 * part / call.seconds:.1f} %"
                        for part in (call.tokenizing, call.rows, call.serial)), *measured])
    return lines


ENCODE_NUMBER_COLUMNS = (1, 3, 4, 5, 6, 7, 8, 9)
