#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times encore and a peer side by side on the workloads of `encore bench`, outputs compared first.

    tools/python_env.sh peers
    .deps/venv/bin/python bench/peers/compare.py --json peers.json [--encore BIN]

A cell is a workload and a number of threads, in a process of its own. There both compute the same
weights and input, and must agree; then peer and encore take turns for some rounds. A turn that
other processes disturbed is taken again. A figure is the median over the rounds of the median call,
a ratio the peer's figure by encore's (above 1: encore is faster), in brackets the lowest and the
highest ratio of a round. With one thread all runs on the last core; with more, encore is timed
twice: as it is, and with its threads spinning between calls as the peer's do. Weights are in cache
as far as they fit.
Not here: the engines (onnxruntime_peer.py, encore_side.py).
"""

import argparse
import datetime
import importlib
import json
import os
import pathlib
import shlex
import statistics
import subprocess
import sys
import tempfile
import time


def import_or_leave(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SystemExit(f"compare: {error}; run `tools/python_env.sh peers`, then this "
                         "script with .deps/venv/bin/python") from error


blocks = import_or_leave("blocks")
encore_side = import_or_leave("encore_side")
turn = import_or_leave("quiet").turn

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# Largest difference of outputs over the largest output. Two correct f32 engines differ by up to
# 2e-6 here; the other GELU by 1e-4, a wrong layout by far more.
MAX_DIFFERENCE = 1e-5
# Until the threads of a pool that spins for a while after its last call have gone to sleep.
REST_SECONDS = 0.05


def fastest(module, args, workload, weights_path, x):
    """The peer with the graph that is fastest here, and the median seconds of each graph."""
    graphs = module.GRAPHS if args.graph == "best" else (args.graph,)
    peers = {g: module.Peer(workload, weights_path, x, args.threads[0], g) for g in graphs}
    times = {g: [] for g in graphs}
    for _ in range(3 if len(graphs) > 1 else 1):
        for graph, peer in peers.items():
            times[graph].append(statistics.median(peer.times(args.seconds / 8)))
    medians = {graph: statistics.median(values) for graph, values in times.items()}
    best = min(medians, key=medians.get)
    return peers[best], best, medians


def run_cell(args):
    """One workload and thread count: a dict of everything found."""
    workload, threads = blocks.WORKLOADS[args.workload[0]], args.threads[0]
    if threads == 1:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    module = import_or_leave(f"{args.peer}_peer")
    x = blocks.random_input(workload)
    with tempfile.TemporaryDirectory() as folder:
        weights_path = pathlib.Path(folder, "weights.safetensors")
        blocks.write_weights(weights_path, workload, blocks.random_weights(workload))
        ours = encore_side.output(args.encore, weights_path, x, threads)
        peer, graph, graphs = fastest(module, args, workload, weights_path, x)
    theirs = peer.output()
    difference = float(abs(ours - theirs).max() / abs(ours).max())
    if not difference <= MAX_DIFFERENCE:
        raise SystemExit(f"compare: {workload.name}, {threads} threads: outputs differ by "
                         f"{difference:.3g} of the largest; {MAX_DIFFERENCE:.0e} is allowed")

    policies = encore_side.WAIT_POLICIES if threads > 1 else {"encore": ()}
    rounds = {name: [] for name in ("peer", *policies)}  # microseconds
    others = {name: [] for name in rounds}
    peaks, target = [], None
    for _ in range(args.rounds):
        times, load = turn(lambda: peer.times(args.seconds))
        rounds["peer"].append(statistics.median(times) * 1e6)
        others["peer"].append(load)
        for name, flags in policies.items():
            time.sleep(REST_SECONDS)
            row, load = turn(lambda flags=flags: encore_side.bench(
                args.encore, workload, threads, args.seconds, flags))
            rounds[name].append(row["us_median"])
            others[name].append(load)
            peaks.append(row["peak_gflops"])
            target = row["target"]
    medians = {name: statistics.median(values) for name, values in rounds.items()}
    return {"workload": workload.name, "threads": threads, "target": target,
            "peer": module.NAME, "peer_version": module.VERSION,
            "peer_wait_policy": module.WAIT_POLICY, "graph": graph,
            "graphs_us": {name: seconds * 1e6 for name, seconds in graphs.items()},
            "difference": difference, "rounds_us": rounds, "us_median": medians,
            "gflops": {name: workload.flops / us * 1e-3 for name, us in medians.items()},
            "peak_gflops": statistics.median(peaks), "others": others,
            "ratio": {name: medians["peer"] / medians[name] for name in policies},
            "round_ratios": {name: [theirs_us / ours_us for theirs_us, ours_us
                                    in zip(rounds["peer"], rounds[name])] for name in policies}}


def cell_in_process(args, workload, threads):
    """run_cell in a process of its own, through args.through if there is such a command."""
    # Large pages, as encore takes them: 1 to 5 % for a peer whose weights are many.
    environment = {**os.environ, "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    command = [*shlex.split(args.through), sys.executable, __file__, "--as-cell",
               "--encore", str(args.encore), "--peer", args.peer, "--graph", args.graph,
               "--workload", workload, "--threads", str(threads),
               "--rounds", str(args.rounds), "--seconds", str(args.seconds)]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise SystemExit(done.returncode)
    return json.loads(done.stdout)


def cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(l.split(":", 1)[1].strip() for l in lines if l.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown CPU"


def table(cells):
    """Markdown; a column for each way of timing encore that any cell has."""
    names = list(dict.fromkeys(name for cell in cells for name in cell["ratio"]))
    lines = ["| workload | threads | graph | peer us | GFLOP/s |" +
             "".join(f" {name} us | GFLOP/s | ratio |" for name in names) + " difference |",
             "|---|---:|---|---:|---:|" + "---:|---:|---:|" * len(names) + "---:|"]
    for cell in cells:
        def pair(name, cell=cell):
            return f" {cell['us_median'][name]:.1f} | {cell['gflops'][name]:.0f} |"

        def ratio(name, cell=cell):
            rounds = cell["round_ratios"][name]
            return f" {cell['ratio'][name]:.2f} ({min(rounds):.2f} - {max(rounds):.2f}) |"

        ours = "".join(pair(name) + ratio(name) if name in cell["ratio"] else " | | |"
                       for name in names)
        lines.append(f"| {cell['workload']} | {cell['threads']} | {cell['graph']} |" +
                     pair("peer") + ours + f" {cell['difference']:.1e} |")
    return "\n".join(lines)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--encore", type=pathlib.Path, default=ROOT / "build/release/bin/encore",
                        help="the command line to time (default: %(default)s)")
    parser.add_argument("--peer", default="onnxruntime", help="an adapter <peer>_peer.py")
    parser.add_argument("--graph", default="best",
                        help="one of the adapter's graphs, or best: the fastest in each cell")
    parser.add_argument("--workload", action="append", choices=blocks.WORKLOADS, metavar="NAME",
                        help="only these: " + " ".join(blocks.WORKLOADS))
    parser.add_argument("--threads", action="append", type=int, metavar="N",
                        help="only these numbers of threads (default: 1 and 2)")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn in a round")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE")
    parser.add_argument("--through", default="", metavar="COMMAND",
                        help="runs each cell through a command, such as one that waits for quiet")
    parser.add_argument("--as-cell", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.rounds < 1 or min(args.threads or [1]) < 1 or not args.seconds > 0:
        parser.error("--rounds, --threads and --seconds must be above zero")
    args.workload = args.workload or list(blocks.WORKLOADS)
    args.threads = args.threads or [1, 2]
    return args


def main():
    args = parse_args()
    if args.as_cell:
        json.dump(run_cell(args), sys.stdout)
        return 0
    version = encore_side.version(args.encore)
    cells = []
    for workload in args.workload:
        for threads in args.threads:
            cells.append(cell_in_process(args, workload, threads))
            ratios = ", ".join(f"{name} {ratio:.2f}" for name, ratio in cells[-1]["ratio"].items())
            print(f"{workload}, {threads} threads: {ratios}", file=sys.stderr)
    first = cells[0]
    head = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
            "cpu": cpu_name(), "encore": version,
            "target": first["target"], "peer": f"{first['peer']} {first['peer_version']}",
            "peer_wait_policy": first["peer_wait_policy"], "rounds": args.rounds,
            "seconds": args.seconds}
    print("\n".join(f"{key}: {value}" for key, value in head.items()) + "\n")
    print(table(cells))
    if args.json:
        args.json.write_text(json.dumps({**head, "cells": cells}, indent=1) + "\n",
                             encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
