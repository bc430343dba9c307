# SPDX-License-Identifier: Apache-2.0
"""What the tasks of layers cost here."""

import dataclasses
import functools
import json

import numpy as np
from pyencore.lab import measure

from replay import FEW_ROWS, MANY_ROWS, Costs, Machine, Replayed, makespan, simulated, stages

# Rows for which a task is timed on one thread.
TIMED_ROWS = (8, 16, 32, 64, 128)
# Above it, the second core was not free.
MOST_BUSY = 1.1
SHORT = 16  # tokens of sequences whose attention takes next to nothing

@functools.cache
def plan_of(encore, layer, threads):
    found = json.loads(measure.run([encore, "info", "--plan", "--json", "--threads", str(threads),
                                    *layer.flags()]))
    return found["plan"]


def bench_seconds(encore, layer, threads, seconds, weights="--warm"):
    """Of the fastest call: what disturbs calls is no part of a simulation."""
    report = measure.bench(encore, ["--workload", "custom", weights, "--seconds", str(seconds),
                                    "--threads", ",".join(map(str, threads)), *layer.flags()])
    return [row["seconds"]["min"] for row in report["rows"]]


@dataclasses.dataclass(frozen=True)
class Timed:
    """Seconds of layers of one model. Sequences are of 16 tokens where nothing else is said."""
    alone: dict  # by tokens: one sequence of so many tokens, on one thread
    few: float  # FEW_ROWS rows, one thread
    many: float  # MANY_ROWS rows, one thread
    long: float  # the same rows as one sequence, one thread
    both: float  # MANY_ROWS rows for each of two threads
    small: float  # one sequence on two threads, by columns


def costs_of(layer, timed):
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


def hand_over_of(layer, plan, costs, seconds):
    """Of a stage, from the seconds of a small layer by columns on two threads, which has the most
    stages for its work."""
    here = stages(layer, plan, costs.seconds(2, layer.tokens / 2))
    return max(seconds - sum(makespan(stage, 2) for stage in here), 0.0) / len(here)


def calibrate(encore, layer, seconds, tell):
    """Of the layer's model."""

    def of(lengths, threads=(1,)):
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


def replayed(layer, plan, costs, machine):
    return Replayed({"layers": simulated(layer, plan, costs, machine)},
                    (plan["threads"]["kind"],))


class Layers:
    """Layers, for simulate.py."""

    parts = ()

    def __init__(self, encore, seconds, tell):
        self.encore, self.seconds, self.tell = encore, seconds, tell

    def costs(self, layer):
        """Of its model."""
        return calibrate(self.encore, layer, self.seconds, self.tell)

    def simulate(self, layer, threads, costs):
        return replayed(layer, plan_of(self.encore, layer, threads), *costs)

    def measure(self, layer, threads, _alone):
        return bench_seconds(self.encore, layer, threads, self.seconds)
