# SPDX-License-Identifier: Apache-2.0
"""What tasks cost here, and layers replayed beside the measured ones: in each round the costs are
measured anew, then the layers, so that a clock that moves counts for both."""

from __future__ import annotations

import dataclasses
import functools
import json
import statistics
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import measure
from .replay import (
    FEW_ROWS,
    MANY_ROWS,
    Costs,
    Machine,
    ReplayedRow,
    Shape,
    makespan,
    simulated,
    stages,
)

# Rows for which a task is timed on one thread.
TIMED_ROWS = (8, 16, 32, 64, 128)
# Above it, the second core was not free.
MOST_BUSY = 1.1
SHORT = 16  # tokens of sequences whose attention takes next to nothing

Tell = Callable[[str], None]


@functools.cache
def plan_of(encore: str, layer: Shape, threads: int) -> dict[str, Any]:
    found = json.loads(measure.run([encore, "info", "--plan", "--json", "--threads", str(threads),
                                    *layer.flags()]))
    plan: dict[str, Any] = found["plan"]
    return plan


def bench_seconds(encore: str, layer: Shape, threads: Sequence[int], seconds: float,
                  weights: str = "--warm") -> list[float]:
    """Of the fastest call: what disturbs calls is no part of a simulation."""
    report = measure.bench(encore, ["--workload", "custom", weights, "--seconds", str(seconds),
                                    "--threads", ",".join(map(str, threads)), *layer.flags()])
    return [row["seconds"]["min"] for row in report["rows"]]


@dataclasses.dataclass(frozen=True)
class Timed:
    """Seconds of layers of one model. Sequences are of 16 tokens where nothing else is said."""
    alone: dict[int, float]  # one sequence of so many tokens, on one thread
    few: float  # FEW_ROWS rows, one thread
    many: float  # MANY_ROWS rows, one thread
    long: float  # the same rows as one sequence, one thread
    both: float  # MANY_ROWS rows for each of two threads
    small: float  # one sequence on two threads, by columns


def costs_of(layer: Shape, timed: Timed) -> Costs:
    """Attention is what a long sequence takes beyond short ones of as many rows. Products are what
    is left of a layer without it; norms and activations are counted among them."""
    more = layer.attention(MANY_ROWS, MANY_ROWS) - layer.attention(MANY_ROWS, SHORT)
    # A disturbed measurement may find nothing: it costs half of the average at least.
    average = timed.many / (layer.products(MANY_ROWS) + layer.attention(MANY_ROWS, SHORT))
    attention = 1 / max((timed.long - timed.many) / more, average / 2)
    rates = [layer.products(rows) / (timed.alone[rows] - layer.attention(rows, rows) / attention)
             for rows in TIMED_ROWS]
    return Costs(
        products=lambda rows: float(np.interp(rows, TIMED_ROWS, rates)),
        attention=attention,
        many_rows=timed.many / timed.few * FEW_ROWS / MANY_ROWS,
        busy=timed.both / timed.many)


def hand_over_of(layer: Shape, plan: dict[str, Any], costs: Costs, seconds: float) -> float:
    """Of a stage, from the seconds of a small layer by columns on two threads, which has the most
    stages for its work."""
    here = stages(layer, plan, costs.seconds(2, layer.tokens / 2))
    return max(seconds - sum(makespan(stage, 2) for stage in here), 0.0) / len(here)


def calibrate(encore: str, layer: Shape, seconds: float,
              tell: Tell) -> tuple[Costs, Machine]:
    """Of the layer's model."""

    def of(lengths: Sequence[int], threads: Sequence[int] = (1,)) -> list[float]:
        return bench_seconds(encore, dataclasses.replace(layer, lengths=tuple(lengths)), threads,
                             seconds)

    small = dataclasses.replace(layer, lengths=(SHORT,))
    alone = {rows: of((rows,))[0] for rows in TIMED_ROWS if rows != SHORT}
    alone[SHORT], on_two = of(small.lengths, (1, 2))
    timed = Timed(alone, of([SHORT] * (FEW_ROWS // SHORT))[0],
                  of([SHORT] * (MANY_ROWS // SHORT))[0], of([MANY_ROWS])[0],
                  of([SHORT] * (2 * MANY_ROWS // SHORT), [2])[0], on_two)
    costs = costs_of(layer, timed)
    if costs.busy > MOST_BUSY:
        tell(f"two threads took {costs.busy:.2f} times as long as one took for half of their work: "
             "other processes have a core, and all rows of two threads and more come out slow")
    return costs, Machine(hand_over_of(small, plan_of(encore, small, 2), costs, on_two))


def replay(encore: str, layers: Sequence[Shape], threads: Sequence[int], seconds: float,
           cores: int, rounds: int = 3, tell: Tell = lambda text: None) -> list[ReplayedRow]:
    """Rows of every shape and number of threads; measured too where this machine has the cores."""
    here = [count for count in threads if count <= cores]
    took: dict[tuple[str, int], list[float]] = {}
    alone: dict[str, list[float]] = {}
    found: dict[tuple[str, int], list[float]] = {}
    for i in range(rounds):
        known: dict[tuple[int, int, int], tuple[Costs, Machine]] = {}
        for layer in layers:
            model = (layer.d_model, layer.heads, layer.d_ff)
            if model not in known:
                tell(f"round {i + 1} of {rounds}: {layer.name}: costs of tasks")
                known[model] = calibrate(encore, layer, seconds, tell)
            tell(f"round {i + 1} of {rounds}: {layer.name}")
            if here:
                for count, value in zip(here, bench_seconds(encore, layer, here, seconds),
                                        strict=True):
                    found.setdefault((layer.name, count), []).append(value)
            alone.setdefault(layer.name, []).append(
                simulated(layer, plan_of(encore, layer, 1), *known[model]))
            for count in threads:
                took.setdefault((layer.name, count), []).append(
                    simulated(layer, plan_of(encore, layer, count), *known[model]))
    rows = []
    for layer in layers:
        for count in threads:
            key = (layer.name, count)
            rows.append(ReplayedRow(
                layer.name, count, plan_of(encore, layer, count)["threads"]["kind"],
                statistics.median(took[key]),
                statistics.median(alone[layer.name]) / statistics.median(took[key]) / count,
                *beside(found.get(key), took[key])))
    return rows


def beside(found: Sequence[float] | None, took: Sequence[float]
           ) -> tuple[float, float] | tuple[None, None]:
    """The median of what was measured, and of measured over simulated of the same rounds."""
    if not found:
        return None, None
    return statistics.median(found), statistics.median(
        f / t for f, t in zip(found, took, strict=True))
