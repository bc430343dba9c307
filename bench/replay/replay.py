# SPDX-License-Identifier: Apache-2.0
"""Thread plans replayed for machines with more cores than this one. What a task costs is measured
here (replay_costs.py).

Plans are `encore info --plan`'s. Tasks are taken as a pool's threads take them (stage_board.cc):
from the own range first, then from the others'."""

import dataclasses
import heapq
import itertools
import math

import numpy as np

from pyencore.lab.reports import LabError

QUERY_BLOCK = 64  # attention's, where it is a stage of its own
ROWS_OF_TASK = 128  # at most: kRowsOfTask of nn/thread_plan.h
# So many rows fit into L2; MANY_ROWS do not.
FEW_ROWS, MANY_ROWS = ROWS_OF_TASK, 512
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
    def tokens(self):
        return sum(self.lengths)

    def flags(self):
        return ["--d-model", str(self.d_model), "--heads", str(self.heads), "--d-ff",
                str(self.d_ff), "--lengths", ",".join(map(str, self.lengths))]

    def before(self, rows):
        """Operations up to queries, keys and values."""
        return 6.0 * rows * self.d_model ** 2

    def after(self, rows):
        """Of what follows attention."""
        return rows * (2.0 * self.d_model ** 2 + 4.0 * self.d_model * self.d_ff)

    def products(self, rows):
        return self.before(rows) + self.after(rows)

    def attention(self, queries, keys):
        return 4.0 * queries * keys * self.d_model


def shape(name):
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
    """What cannot be measured here is assumed; docs/measurements/simulation.md says which."""
    hand_over: float  # measured: seconds of a stage's beginning and end, on two threads
    domain_cores: int = 8
    socket_cores: int = 96
    # Assumed: seconds in which a cache line passes from core to core; each thread that has done
    # something adds to one word at the end of a stage, one after another.
    line_in_domain: float = 50e-9
    line_across: float = 200e-9
    line_sockets: float = 500e-9

    def hand_over_of(self, threads):
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
    tasks: list
    in_order: bool = False


def makespan(stage, threads):
    """Seconds until all tasks are done, taken as StageBoard has it."""
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
            now += sum(tasks[t] for t in taken)
            end = max(end, now)
            heapq.heappush(free, (now, thread))
            break
    return end


def _even(count, parts):
    return [count // parts + (i < count % parts) for i in range(parts)]


# `seconds` below: of a task on one core, by its operations of products and attention and its rows.

def _by_sequences(layer, plan, seconds):
    tasks = []
    # The largest first, as threads take them; equals as they are.
    for group in sorted(plan["threads"]["groups"], key=lambda group: -int(group["rows"])):
        first = group["first_sequence"]
        lengths = layer.lengths[first:first + group["sequences"]]
        tasks.append(seconds(layer.products(group["rows"]),
                             sum(layer.attention(n, n) for n in lengths),
                             min(group["rows"], ROWS_OF_TASK)))
    return [Stage(tasks, in_order=True)]


def _by_rows(layer, plan, seconds):
    blocks = plan["threads"]["row_blocks"]
    before = Stage([seconds(layer.before(rows), 0.0, rows) for rows in blocks])
    if plan["threads"]["attention_apart"]:
        apart = []
        for length in sorted(layer.lengths, reverse=True):
            queries = [min(QUERY_BLOCK, length - q) for q in range(0, length, QUERY_BLOCK)]
            apart += [seconds(0.0, layer.attention(n, length) / layer.heads, ROWS_OF_TASK)
                      for n in queries] * layer.heads
        after = Stage([seconds(layer.after(rows), 0.0, rows) for rows in blocks])
        return [before, Stage(apart, in_order=True), after]
    starts = list(itertools.accumulate(layer.lengths, initial=0))
    tasks, row = [], 0
    for rows in blocks:
        attention = 0.0
        for b, length in enumerate(layer.lengths):
            queries_here = min(row + rows, starts[b + 1]) - max(row, starts[b])
            attention += layer.attention(max(queries_here, 0), length)
        tasks.append(seconds(layer.after(rows), attention, rows))
        row += rows
    return [before, Stage(tasks)]


def _by_columns(layer, plan, seconds):
    threads = plan["threads"]
    count, tokens = threads["threads"], layer.tokens
    panels = {matrix["name"]: matrix["panels"] for matrix in plan["matrices"]}
    attention = sum(layer.attention(n, n) for n in layer.lengths)

    def product(name, flops):
        total = panels[name]
        return Stage([seconds(flops * part / total, 0.0, tokens)
                      for part in _even(total, min(total, count))])

    if threads["heads_together"]:
        each = seconds(layer.before(tokens) / count, attention / count, tokens)
        first = [Stage([each] * count)]
    else:
        first = [product("in_proj", layer.before(tokens)),
                 Stage([seconds(0.0, attention * part / layer.heads, tokens)
                        for part in _even(layer.heads, min(layer.heads, count))])]
    square = 2.0 * tokens * layer.d_model ** 2
    wide = 2.0 * tokens * layer.d_model * layer.d_ff
    norm = Stage([0.0] * min(tokens, count))  # its time is in the products' rate
    return [*first, product("out_proj", square), norm, product("linear1", wide),
            product("linear2", wide), norm]


def stages(layer, plan, seconds):
    """A layer's stages under `encore info --plan --json`'s plan."""
    by = {"sequences": _by_sequences, "rows": _by_rows, "columns": _by_columns}
    return by[plan["threads"]["kind"]](layer, plan, seconds)


@dataclasses.dataclass(frozen=True)
class Costs:
    """Of one model on this machine, measured (replay_costs.py)."""
    products: object  # function of rows: operations a second of one core on so many rows
    attention: float  # the same of attention
    # Factor on products whose thread has MANY_ROWS or more: they are read from L3.
    many_rows: float = 1.0
    busy: float = 1.0  # and any task while the other core works

    def seconds(self, threads, rows_of_thread):
        """Under a plan of so many threads with so many rows each."""
        many = float(np.interp(rows_of_thread, (FEW_ROWS, MANY_ROWS), (1.0, self.many_rows)))
        busy = self.busy if threads > 1 else 1.0
        return lambda products, attention, rows: busy * (
            many * products / self.products(rows) + attention / self.attention)


def simulated(layer, plan, costs, machine):
    """Seconds of a layer."""
    count = plan["threads"]["threads"]
    seconds = costs.seconds(count, layer.tokens / count)
    return sum(makespan(stage, count) + machine.hand_over_of(min(count, len(stage.tasks)))
               for stage in stages(layer, plan, seconds))


@dataclasses.dataclass(frozen=True)
class Replayed:
    """Seconds of a call, by its parts, and the kinds of its batches' plans."""
    parts: dict
    kinds: tuple

    @property
    def seconds(self):
        return sum(self.parts.values())
