#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `encore bench` of one or more programs in turns, calm and while another process, pinned to
one core, spins and sleeps. "Allowed" is what the cores' speeds allow together: the calm time by
threads / (threads - the part of the core that the process had).

    bench/disturbed.py -- --workload minilm_1x128 --warm
    bench/disturbed.py old/bin/encore new/bin/encore --rounds 3 -- --warm
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time

from pyencore.lab import measure, reports
from pyencore.lab.reports import LabError

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


def allowed(calm, threads, taken):
    """Seconds with as many cores as threads, of one of which another process has this part."""
    return calm * threads / (threads - taken)


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        fields = file.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextlib.contextmanager
def disturber(core, spin, sleep):
    """The process. What it yields says which part of the core it had so far."""
    process = subprocess.Popen([sys.executable, "-c", DISTURBER, str(core), str(spin), str(sleep)])
    try:
        time.sleep(0.2)  # until Python has begun
        if process.poll() is not None:
            raise LabError(f"core {core}: no process can be pinned to it")
        start, before = time.perf_counter(), cpu_seconds(process.pid)
        yield lambda: (cpu_seconds(process.pid) - before) / (time.perf_counter() - start)
    finally:
        process.kill()
        process.wait()


def in_turns(args, flags):
    """All programs calm, then all disturbed, and so on. Of each program the reports of its rounds:
    calm, disturbed, and the parts of the core that were taken."""
    found = [([], [], []) for _ in args.programs]
    for i in range(args.rounds):
        print(f"round {i + 1} of {args.rounds}", file=sys.stderr, flush=True)
        for program, (calm, _, _) in zip(args.programs, found):
            calm.append(measure.bench(program, flags))
        for program, (_, disturbed, taken) in zip(args.programs, found):
            with disturber(args.core, args.spin, args.sleep) as part:
                disturbed.append(measure.bench(program, flags))
                taken.append(part())
    return found


def table(programs, found):
    """The lines, the head first; a row's programs follow each other. Microseconds."""
    lines = [["workload", "precision", "threads", "program", "core taken", "calm", "disturbed",
              "p99", "allowed", "disturbed over allowed"]]
    for r, row in enumerate(found[0][0][0]["rows"]):
        if row["threads"] < 2:
            raise LabError(f"{row['workload']}: found 1 thread, wanted 2 or more: a disturbed "
                           "core leaves one thread no other to turn to")
        for program, (calm, disturbed, taken) in zip(programs, found):
            def median(runs, key, r=r):
                values = [report["rows"][r]["seconds"][key] for report in runs]
                return None if None in values else statistics.median(values)

            part, before, after = statistics.median(taken), median(calm, "p50"), median(
                disturbed, "p50")
            most = allowed(before, row["threads"], part)
            times = (before, after, median(disturbed, "p99"), most)
            lines.append([row["workload"], reports.precision_of(row), str(row["threads"]), program,
                          f"{part:.2f}",
                          *("" if t is None else f"{t * 1e6:,.0f}" for t in times),
                          f"{after / most:.2f}"])
    return lines


def main(arguments):
    """Exit status: 0; 2 with one sentence for unfit flags and programs."""
    at = arguments.index("--") if "--" in arguments else len(arguments)
    flags = arguments[at + 1:]
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help="[the one that is found]")
    parser.add_argument("--core", type=int, default=max(os.sched_getaffinity(0)), metavar="N",
                        help="which core is slowed [the last]")
    parser.add_argument("--spin", type=float, default=500, metavar="US", help="[500]")
    parser.add_argument("--sleep", type=float, default=500, metavar="US", help="[500]")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="[5]")
    parser.add_argument("--format", choices=("table", "markdown"), default="table")
    args = parser.parse_args(arguments[:at])
    try:
        if not (args.spin > 0 and args.sleep > 0 and args.rounds > 0):
            raise LabError(f"found --spin {args.spin:g}, --sleep {args.sleep:g} and --rounds "
                           f"{args.rounds}, wanted all above 0")
        args.programs = [measure.find_encore(name) for name in args.programs or [None]]
        if not any(flag.split("=")[0] == "--threads" for flag in flags):
            flags = [*flags, "--threads", "2"]
        lines = table(args.programs, in_turns(args, flags))
    except LabError as error:
        print(f"disturbed: {error}", file=sys.stderr)
        return 2
    print(reports.table_text(lines, (2, *range(4, 10)), args.format == "markdown"))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
