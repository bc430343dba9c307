# SPDX-License-Identifier: Apache-2.0
"""Thread plans replayed for machines with more cores than this one: tasks cost what they cost here
on one thread, and a stage's hand-over what it costs here on two.

Plans are `encore info --plan`'s. Tasks are taken as a pool's threads take them (stage_board.cc):
from the own range first, then from the others'."""

from __future__ import annotations

import dataclasses
import heapq
import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from . import measure
from .reports import LabError

QUERY_BLOCK = 64  # attention's, where it is a stage of its own
# Rows for which a block is timed on one thread.
TIMED_ROWS = (8, 16, 32, 64, 128)
MODELS = {"minilm": (384, 12, 1536), "base": (768, 12, 3072), "large": (1024, 16, 4096)}


@dataclasses.dataclass(frozen=True)
class Shape:
    """A layer and a batch."""
    name: str
    d_model: int
    heads: int
    d_ff: int
    lengths: tuple[int, ...]

    @property
    def tokens(self) -> int:
        return sum(self.lengths)

    def flags(self, lengths: Sequence[int] | None = None) -> list[str]:
        given = self.lengths if lengths is None else lengths
        return ["--d-model", str(self.d_model), "--heads", str(self.heads), "--d-ff",
                str(self.d_ff), "--lengths", ",".join(map(str, given))]

    def before(self, rows: int) -> float:
        """Operations up to queries, keys and values."""
        return 6.0 * rows * self.d_model ** 2

    def after(self, rows: int) -> float:
        """Of what follows attention."""
        return rows * (2.0 * self.d_model ** 2 + 4.0 * self.d_model * self.d_ff)

    def attention(self, queries: int, keys: int) -> float:
        return 4.0 * queries * keys * self.d_model

    def layer(self, length: int) -> float:
        return self.before(length) + self.after(length) + self.attention(length, length)


def shape(name: str) -> Shape:
    """base_8x128 and the like; base_ragged_64: 64 lengths around 64 tokens, from 8 to 512, drawn as
    those of `encore bench` are, but others."""
    parts = name.split("_")
    if len(parts) < 2 or parts[0] not in MODELS:
        raise LabError(f"found '{name}', wanted {', '.join(MODELS)}, and _8x128 or _ragged_64 "
                       "behind it")
    if parts[1] == "ragged" and len(parts) == 3 and parts[2].isdigit() and int(parts[2]) > 0:
        drawn = np.random.default_rng(2026).lognormal(math.log(64), 0.8, int(parts[2]))
        return Shape(name, *MODELS[parts[0]], tuple(int(n) for n in np.clip(drawn, 8, 512)))
    sizes = parts[1].split("x")
    if len(parts) != 2 or len(sizes) != 2 or not all(s.isdigit() and int(s) > 0 for s in sizes):
        raise LabError(f"found '{name}', wanted sequences x tokens, such as base_8x128")
    return Shape(name, *MODELS[parts[0]], (int(sizes[1]),) * int(sizes[0]))


@dataclasses.dataclass(frozen=True)
class Machine:
    """What cannot be measured here is assumed, and told apart in docs/scaling.md."""
    hand_over: float  # measured: seconds of a stage's beginning and end, on two threads
    domain_cores: int = 8
    socket_cores: int = 96
    # Assumed: seconds in which a cache line passes from core to core; each thread that has done
    # something adds to one word at the end of a stage, one after another.
    line_in_domain: float = 50e-9
    line_across: float = 200e-9
    line_sockets: float = 500e-9

    def hand_over_of(self, threads: int) -> float:
        """Threads beyond the second one add a line each; they wake in a tree."""
        if threads < 2:
            return 0.0
        near = min(threads, self.domain_cores) - 2
        across = min(threads, self.socket_cores) - self.domain_cores
        far = threads - self.socket_cores
        levels = math.ceil(math.log2(threads))
        return (self.hand_over * levels + max(near, 0) * self.line_in_domain +
                max(across, 0) * self.line_across + max(far, 0) * self.line_sockets)


@dataclasses.dataclass(frozen=True)
class Stage:
    """Tasks' seconds on one core; in order: whoever is free takes the next."""
    tasks: Sequence[float]
    in_order: bool = False


def makespan(stage: Stage, threads: int, speeds: Sequence[float] | None = None) -> float:
    """Seconds until all tasks are done, taken as StageBoard has it. speeds: of each thread."""
    tasks = stage.tasks
    threads = min(threads, len(tasks))
    ranges = 1 if stage.in_order else threads
    left = [[len(tasks) * r // ranges, len(tasks) * (r + 1) // ranges] for r in range(ranges)]
    free = [(0.0, t) for t in range(threads)]
    end = 0.0
    while free:
        now, thread = heapq.heappop(free)
        for i in range(ranges):
            own = left[(thread + i) % ranges]
            if own[0] == own[1]:
                continue
            size = 1 if stage.in_order else (own[1] - own[0] + 3) // 4
            if i == 0:
                taken = range(own[0], own[0] + size)
                own[0] += size
            else:
                taken = range(own[1] - size, own[1])
                own[1] -= size
            speed = 1.0 if speeds is None else speeds[thread]
            now += sum(tasks[t] for t in taken) / speed
            end = max(end, now)
            heapq.heappush(free, (now, thread))
            break
    return end


def _even(count: int, parts: int) -> list[int]:
    return [count // parts + (i < count % parts) for i in range(parts)]


def stages(layer: Shape, plan: dict[str, Any],
           seconds: Callable[[float, int], float]) -> list[Stage]:
    """A layer's stages under `encore info --plan --json`'s plan. seconds(operations, rows): of a
    task on one core."""
    threads = plan["threads"]
    kind, count = threads["kind"], threads["threads"]
    starts = list(itertools.accumulate(layer.lengths, initial=0))
    if kind == "sequences":
        tasks = []
        for group in threads["groups"]:
            first = group["first_sequence"]
            lengths = layer.lengths[first:first + group["sequences"]]
            tasks.append(seconds(sum(map(layer.layer, lengths)), min(group["rows"], 128)))
        return [Stage(tasks, in_order=True)]
    if kind == "rows":
        blocks = threads["row_blocks"]
        before = Stage([seconds(layer.before(rows), rows) for rows in blocks])
        if threads["attention_apart"]:
            apart = []
            for length in sorted(layer.lengths, reverse=True):
                for _ in range(layer.heads):
                    apart += [seconds(layer.attention(min(QUERY_BLOCK, length - q), length) /
                                      layer.heads, 128) for q in range(0, length, QUERY_BLOCK)]
            after = Stage([seconds(layer.after(rows), rows) for rows in blocks])
            return [before, Stage(apart, in_order=True), after]
        tasks, row = [], 0
        for rows in blocks:
            flops = layer.after(rows)
            for b, length in enumerate(layer.lengths):
                queries = min(row + rows, starts[b + 1]) - max(row, starts[b])
                flops += layer.attention(max(queries, 0), length)
            tasks.append(seconds(flops, rows))
            row += rows
        return [before, Stage(tasks)]
    panels = {matrix["name"]: matrix["panels"] for matrix in plan["matrices"]}
    attention = sum(layer.attention(n, n) for n in layer.lengths)

    def product(name: str, flops: float) -> Stage:
        total = panels[name]
        return Stage([seconds(flops * part / total, layer.tokens)
                      for part in _even(total, min(total, count))])

    heads = min(layer.heads, count)
    if threads["heads_together"]:
        each = (layer.before(layer.tokens) + attention) / count
        first = [Stage([seconds(each, layer.tokens)] * count)]
    else:
        first = [product("in_proj", layer.before(layer.tokens)),
                 Stage([seconds(attention * part / layer.heads, layer.tokens)
                        for part in _even(layer.heads, heads)])]
    square = 2.0 * layer.tokens * layer.d_model ** 2
    wide = 2.0 * layer.tokens * layer.d_model * layer.d_ff
    norm = Stage([0.0] * min(layer.tokens, count))  # its time is in the products' rate
    return [*first, product("out_proj", square), norm, product("linear1", wide),
            product("linear2", wide), norm]


def simulated(layer: Shape, plan: dict[str, Any], rate: Callable[[int], float],
              machine: Machine) -> float:
    """Seconds of a layer. rate(rows): operations a second of one core on so many rows."""
    count = plan["threads"]["threads"]

    def seconds(flops: float, rows: int) -> float:
        return flops / rate(rows)

    return sum(makespan(stage, count) + machine.hand_over_of(min(count, len(stage.tasks)))
               for stage in stages(layer, plan, seconds))


def rate_of(rows: Sequence[float], rates: Sequence[float]) -> Callable[[int], float]:
    """Between the rows that were timed, along a straight line."""
    return lambda wanted: float(np.interp(wanted, rows, rates))


# ---- What is measured here ----------------------------------------------------------------------

def plan_of(encore: str, layer: Shape, threads: int) -> dict[str, Any]:
    found = json.loads(measure.run([encore, "info", "--plan", "--json", "--threads", str(threads),
                                    *layer.flags()]))
    plan: dict[str, Any] = found["plan"]
    return plan


def bench_seconds(encore: str, layer: Shape, threads: Sequence[int], seconds: float,
                  lengths: Sequence[int] | None = None) -> list[float]:
    report = measure.bench(encore, ["--workload", "custom", "--warm", "--seconds", str(seconds),
                                    "--threads", ",".join(map(str, threads)),
                                    *layer.flags(lengths)])
    return [row["seconds"]["p50"] for row in report["rows"]]


@dataclasses.dataclass(frozen=True)
class Calibration:
    """Of one model on this machine."""
    rate: Callable[[int], float]
    hand_over: float


def calibrate(encore: str, layer: Shape, seconds: float) -> Calibration:
    """Rates of blocks of some rows on one thread; the hand-over from 16 tokens by columns on two
    threads, which has the most of them for its work."""
    small = dataclasses.replace(layer, lengths=(16,))
    plan = plan_of(encore, small, 2)
    two = 0.0
    rates = []
    for rows in TIMED_ROWS:
        found = bench_seconds(encore, layer, (1, 2) if rows == 16 else (1,), seconds, (rows,))
        rates.append(layer.layer(rows) / found[0])
        if rows == 16:
            two = found[1]
    rate = rate_of(TIMED_ROWS, rates)
    here = stages(small, plan, lambda flops, _: flops / rate(16))
    work = sum(makespan(stage, 2) for stage in here)
    return Calibration(rate, max(two - work, 0.0) / len(here))


@dataclasses.dataclass(frozen=True)
class ReplayedRow:
    shape: str
    threads: int
    plan: str
    simulated: float
    efficiency: float  # of one thread's simulated time
    measured: float | None


def replay(encore: str, layers: Sequence[Shape], threads: Sequence[int], seconds: float,
           cores: int, tell: Callable[[str], None] = lambda text: None) -> list[ReplayedRow]:
    """Rows of every shape and number of threads; measured too where this machine has the cores."""
    known: dict[tuple[int, int, int], Calibration] = {}
    rows = []
    for layer in layers:
        model = (layer.d_model, layer.heads, layer.d_ff)
        if model not in known:
            tell(f"{layer.name}: costs of tasks")
            known[model] = calibrate(encore, layer, seconds)
        machine = Machine(known[model].hand_over)
        rate = known[model].rate
        tell(layer.name)
        here = [n for n in threads if n <= cores]
        found = dict(zip(here, bench_seconds(encore, layer, here, seconds) if here else [],
                         strict=True))
        alone = simulated(layer, plan_of(encore, layer, 1), rate, machine)
        for count in threads:
            plan = plan_of(encore, layer, count)
            took = simulated(layer, plan, rate, machine)
            rows.append(ReplayedRow(layer.name, count, plan["threads"]["kind"], took,
                                    alone / took / count, found.get(count)))
    return rows


def table(rows: Sequence[ReplayedRow]) -> list[list[str]]:
    lines = [["shape", "threads", "plan by", "simulated us", "efficiency", "measured us",
              "measured over simulated"]]
    for row in rows:
        measured = ["", ""]
        if row.measured is not None:
            measured = [f"{row.measured * 1e6:,.0f}", f"{row.measured / row.simulated:.3f}"]
        lines.append([row.shape, str(row.threads), row.plan, f"{row.simulated * 1e6:,.0f}",
                      f"{100 * row.efficiency:.0f} %", *measured])
    return lines


NUMBER_COLUMNS = (1, 3, 4, 5, 6)
