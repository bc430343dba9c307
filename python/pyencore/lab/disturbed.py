# SPDX-License-Identifier: Apache-2.0
"""Calls on several threads while another process takes a part of one core: how long they take
beside what the cores' speeds allow together."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence

from . import measure, reports
from .reports import LabError, Report

# Spins and sleeps so many microseconds in turns, on one core, until its parent ends. By the clock:
# on a core that it must wait for, it takes less than its part.
DISTURBER = """
import ctypes, os, sys, time
core, spin, rest = int(sys.argv[1]), float(sys.argv[2]) * 1e-6, float(sys.argv[3]) * 1e-6
parent, clock = os.getppid(), time.perf_counter
os.sched_setaffinity(0, {core})
libc = ctypes.CDLL(None)
if hasattr(libc, "prctl"):
    libc.prctl(29, 1, 0, 0, 0)  # PR_SET_TIMERSLACK: sleeps end on time
while os.getppid() == parent:
    end = clock() + spin
    while clock() < end:
        pass
    time.sleep(rest)
"""


@dataclasses.dataclass(frozen=True)
class Disturbance:
    core: int
    spin_us: float
    sleep_us: float


@dataclasses.dataclass(frozen=True)
class DisturbedRow:
    """One row of a program, in seconds: medians over the rounds of the median call."""
    name: str
    workload: str
    precision: str
    threads: int
    calm: float
    disturbed: float
    p99: float | None  # disturbed
    taken: float  # of the disturbed core: what the other process really had of it

    @property
    def allowed(self) -> float:
        """With as many cores as threads, one of which is slower."""
        return self.calm * self.threads / (self.threads - self.taken)

    @property
    def over_allowed(self) -> float:
        return self.disturbed / self.allowed


def last_core() -> int:
    if not hasattr(os, "sched_getaffinity"):
        raise LabError("this system does not pin processes, which a disturbance wants")
    return max(os.sched_getaffinity(0))


def _cpu_seconds(pid: int) -> float:
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def disturber(what: Disturbance) -> Iterator[Callable[[], float]]:
    """The process. What it yields says which part of the core it had so far."""
    process = subprocess.Popen([sys.executable, "-c", DISTURBER, str(what.core), str(what.spin_us),
                                str(what.sleep_us)])
    try:
        time.sleep(0.2)  # until Python has begun
        if process.poll() is not None:
            raise LabError(f"core {what.core}: no process can be pinned to it")
        start, before = time.perf_counter(), _cpu_seconds(process.pid)
        yield lambda: (_cpu_seconds(process.pid) - before) / (time.perf_counter() - start)
    finally:
        process.kill()
        process.wait()


def in_turns(programs: Sequence[str], rounds: int, what: Disturbance, flags: Sequence[str],
             tell: Callable[[str], None] = lambda text: None) -> list[DisturbedRow]:
    """All programs calm, then all disturbed, and so on; the row order is that of `encore bench`,
    and a row's programs follow each other."""
    calm: list[list[Report]] = [[] for _ in programs]
    disturbed: list[list[Report]] = [[] for _ in programs]
    taken: list[list[float]] = [[] for _ in programs]
    for i in range(rounds):
        tell(f"round {i + 1} of {rounds}")
        for p, program in enumerate(programs):
            calm[p].append(measure.bench(program, flags))
        for p, program in enumerate(programs):
            with disturber(what) as part:
                disturbed[p].append(measure.bench(program, flags))
                taken[p].append(part())
    rows = []
    for r, first in enumerate(calm[0][0]["rows"]):
        if first["threads"] < 2:
            raise LabError(f"{first['workload']}: found 1 thread, wanted 2 or more: a disturbed "
                           "core leaves one thread no other to turn to")
        for p, program in enumerate(programs):
            def median(found: Sequence[Report], key: str, r: int = r) -> float | None:
                values = [report["rows"][r]["seconds"][key] for report in found]
                return None if None in values else statistics.median(values)

            p50, after = median(calm[p], "p50"), median(disturbed[p], "p50")
            assert p50 is not None and after is not None  # of every row
            rows.append(DisturbedRow(program, first["workload"], reports.precision_of(first),
                                     first["threads"], p50, after, median(disturbed[p], "p99"),
                                     statistics.median(taken[p])))
    return rows


def table(rows: Sequence[DisturbedRow]) -> list[list[str]]:
    """The lines, the head first. Times in microseconds."""
    lines = [["workload", "precision", "threads", "program", "core taken", "calm", "disturbed",
              "p99", "allowed", "disturbed over allowed"]]
    for row in rows:
        lines.append([row.workload, row.precision, str(row.threads), row.name, f"{row.taken:.2f}",
                      f"{row.calm * 1e6:,.0f}", f"{row.disturbed * 1e6:,.0f}",
                      "" if row.p99 is None else f"{row.p99 * 1e6:,.0f}",
                      f"{row.allowed * 1e6:,.0f}", f"{row.over_allowed:.2f}"])
    return lines


NUMBER_COLUMNS = (2, 4, 5, 6, 7, 8, 9)
