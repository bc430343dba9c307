#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How evenly calls of encore take their time: one layer, call after call, each of them timed, in a
process of its own, so that the first call is the first thing that threads and caches see of it.

    .deps/venv/bin/pip install .
    .deps/venv/bin/python bench/peers/latency.py --workload minilm_1x16 --busy 4 --beside-inline

With --busy N once more beside N processes that only burn time. With --beside-inline each call
follows one of the same work on the calling thread alone, so that both meet the same machine.
Beside each row stands "arithmetic": exponentials in L1 on one thread for as long as a median call,
again and again. What it loses is lost to the machine: interrupts, other guests, other processes.

A call's share: T threads and N busy processes on C cores should each get min(1, C / (T + N)) of a
core. A call that takes p50 alone then takes p50 * max(1, (T + N) / C): its share. p50 is that of
the same run without the busy processes.
"""

import argparse
import pathlib
import random
import resource
import subprocess
import sys
import time

import remote
import tables

blocks = remote.import_or_leave("blocks")
numpy = remote.import_or_leave("numpy")
pyencore = remote.import_or_leave("pyencore")

FLOPS_OF_LARGE = 1e9  # of a call, from which on there are fewer by default
ARITHMETIC_CALLS = 2000


def seconds_of(calls, count):
    """Seconds of each of so many turns of all calls; which comes first is drawn: a call that slept
    leaves the next one a longer stay on a core."""
    draw, clock = random.Random(1), time.perf_counter
    found = [[] for _ in calls]
    for turn in range(count):
        order = range(len(calls))
        if turn > 0 and draw.random() < 0.5:
            order = reversed(order)
        for i in order:
            start = clock()
            calls[i]()
            found[i].append(clock() - start)
    return found


def arithmetic(seconds, count):
    """Seconds of so many runs of exponentials of about that length."""
    x = numpy.full(4096, 0.5, numpy.float32)
    y = numpy.empty_like(x)
    one = min(seconds_of([lambda: pyencore.ops.exp(x, out=y)], 1000)[0])
    times = max(1, round(seconds / one))

    def run():
        for _ in range(times):
            pyencore.ops.exp(x, out=y)

    return seconds_of([run], count)[0]


def measure(args):
    """In the process of one row: the times of calls, of those between them, of arithmetic, and how
    often a thread was sent off its core."""
    import encore_peer  # pylint: disable=import-outside-toplevel
    if args.target:
        pyencore.set_target(args.target)
    workload = blocks.WORKLOADS[args.workload[0]]
    weights, x = blocks.random_weights(workload), blocks.random_input(workload)
    calls = [encore_peer.Blocks(workload, weights, x, threads, args.precision, 1,
                                {"idle_spin": args.idle_spin}).call
             for threads in ([args.threads[0], 1] if args.beside_inline else args.threads)]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw
    found = seconds_of(calls, args.calls)
    switches = resource.getrusage(resource.RUSAGE_SELF).ru_nivcsw - before
    p50 = float(numpy.median(found[0][1:]))
    return {"seconds": found[0], "inline": found[1] if args.beside_inline else [],
            "switches": switches, "arithmetic": arithmetic(p50, min(args.calls, ARITHMETIC_CALLS))}


def row(args, name, threads, busy, alone):
    """The figures of one workload; alone: its p50 in us without the busy processes."""
    calls = args.calls or (2000 if blocks.WORKLOADS[name].flops > FLOPS_OF_LARGE else 10000)
    command = [sys.executable, __file__, "--as-row", "--workload", name, "--threads", str(threads),
               "--calls", str(calls), "--precision", args.precision, "--target", args.target,
               "--idle-spin", str(args.idle_spin), *["--beside-inline"] * args.beside_inline]
    with remote.busy_processes(busy):
        process = remote.Remote(name, command, None, {})
    found = process.ready
    process.close()

    def at(times, *parts):
        return [float(numpy.quantile(times, part, method="inverted_cdf")) * 1e6 for part in parts]

    first, times, idle = found["seconds"][0] * 1e6, found["seconds"][1:], found["arithmetic"]
    least, p50, p90, p99, p999, most = at(times, 0, 0.5, 0.9, 0.99, 0.999, 1)
    figures = {"workload": name, "precision": args.precision, "threads": threads, "busy": busy,
               "calls": calls, "us_first": first, "us_min": least, "us_p50": p50, "us_p90": p90,
               "us_p99": p99, "us_p999": p999, "us_max": most, "first_over_p50": first / p50,
               "p99_over_p50": p99 / p50, "involuntary_switches": found["switches"],
               "arithmetic_p99_over_p50": at(idle, 0.99)[0] / at(idle, 0.5)[0],
               "arithmetic_us_max": at(idle, 1)[0]}
    if args.beside_inline:
        for key, value, beside in zip(("p50", "p99"), (p50, p99), at(found["inline"], 0.5, 0.99)):
            figures.update({f"inline_us_{key}": beside, f"{key}_over_inline": value / beside})
    if busy:
        share = alone * max(1, (threads + busy) / pyencore.cores())
        figures.update(us_share=share, max_over_share=most / share,  # wanted: 10 at most
                       calls_over_ten_shares=sum(t * 1e6 > 10 * share for t in times))
    return figures


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--workload", nargs="+", default=["minilm_1x16", "base_1x128"],
                        choices=[name for name, w in blocks.WORKLOADS.items() if w.kind == "block"],
                        metavar="NAME")
    parser.add_argument("--threads", nargs="+", type=int, default=[2], metavar="N")
    parser.add_argument("--calls", type=int, default=0, metavar="N",
                        help="of each; else 10000, of workloads over 1 GFLOP 2000")
    parser.add_argument("--precision", choices=("f32", "bf16", "int8"), default="f32")
    parser.add_argument("--target", default="", help="SIMD target, e.g. AVX2; else the best")
    parser.add_argument("--idle-spin", type=int, default=0, metavar="US",
                        help="how long threads look for the next call before they sleep")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="again with so many busy processes beside it")
    parser.add_argument("--beside-inline", action="store_true",
                        help="alternates with calls on the calling thread alone")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--as-row", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.as_row:
        return remote.serve(lambda: (measure(args), None))
    if args.calls == 1 or min(args.calls, args.busy, args.idle_spin) < 0 or min(args.threads) < 1:
        parser.error("--calls must be 2 or more, --threads above zero, the others not below it")
    rows = []
    try:
        for name in args.workload:
            for threads in args.threads:
                alone = row(args, name, threads, 0, 0)
                rows += [alone] + ([row(args, name, threads, args.busy, alone["us_p50"])]
                                   if args.busy else [])
    except remote.RemoteError as error:
        raise SystemExit(f"latency: {error}") from error
    context = {"cpu": tables.cpu_name(), "encore": pyencore.__version__,
               "target": args.target or pyencore.active_target(), "cores": pyencore.cores(),
               "idle_spin": args.idle_spin}
    for figures in [context, *rows]:
        print("\n".join(f"{key:24} {value if not isinstance(value, float) else f'{value:.2f}'}"
                        for key, value in figures.items()) + "\n")
    if args.json:
        tables.write_whole(args.json, {"context": context, "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
