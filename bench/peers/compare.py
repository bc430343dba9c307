#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times encore and its peers side by side on the workloads of `encore bench`, in every precision.

    tools/python_env.sh peers
    .deps/venv/bin/python bench/peers/compare.py --markdown --json peers.json [--encore BIN]

Every engine in every precision computes the same weights and input and is held against the block
in float64: the largest and the rms error of its output, by the output's rms. One that is too far
off is left out, aloud, as is one that cannot be had. Then all take turns for some rounds, one at a
time, peers in processes of their own; a turn that other processes disturbed is taken again. With
--busy N they take them beside N processes that only burn time, and none again. p50 is the median
over the rounds of the median call, p99 of the call that 1 in 100 is slower than, min the fastest
call, GFLOP/s are of p50. "to encore"
is the peer's p50 by encore's in the same precision (above 1: encore is faster), in brackets the
lowest and the highest of a round. Each has as many cores as threads (one thread: the last core).
With more threads than one, encore is timed twice: as it is, and with its threads spinning between
calls; and twice in bf16 where there is AMX: as it is, and with --amx-bf16. Warm: the same layer
again and again. Cold: the layers of a model larger than the caches.

Peers use AMX where the machine has it, encore for int8, and for bf16 where told to. --max-isa
AVX512_CORE_BF16 takes AMX from all of them. The column ISA gives that limit, and AMX where the
peer's process asked for it and got it; f32 products do not use it all the same. --explain shows the
primitives that they chose.
Not here: the engines (<peer>_peer.py, encore_side.py), a peer's process (peer_process.py), tables
(results.py).
"""

import argparse
import contextlib
import datetime
import functools
import json
import pathlib
import shlex
import subprocess
import sys
import tempfile
import time

import remote

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# In the order of the table, with the precisions that each can compute in.
PEERS = {"onnxruntime": ("f32", "int8"), "openvino": ("f32", "bf16", "int8"),
         "torch": ("f32", "bf16")}
PRECISIONS = ("f32", "bf16", "int8")
WEIGHTS = ("warm", "cold")

numpy = remote.import_or_leave("numpy")
blocks = remote.import_or_leave("blocks")
encore_side = remote.import_or_leave("encore_side")
isa = remote.import_or_leave("isa")
reference = remote.import_or_leave("reference")
results = remote.import_or_leave("results")
tables = remote.import_or_leave("tables")
turn = remote.import_or_leave("quiet").turn


def say(*words):
    print("compare:", *words, file=sys.stderr)


class Peer:
    """A peer in its process."""

    def __init__(self, args, name, precision, workload, threads, folder):
        self.remote = remote.Remote(
            f"{name} {precision}",
            [*shlex.split(args.through), sys.executable,
             pathlib.Path(__file__).with_name("peer_process.py"), "--peer", name, "--precision",
             precision, "--workload", workload.name, "--graph", args.graph, "--threads",
             str(threads), "--seconds", str(args.seconds), "--retakes", str(args.retakes),
             "--max-isa", args.max_isa, "--folder", folder],
            remote.last_cores(threads),
            # Large pages, as encore takes them: 1 to 5 % for a peer whose weights are many.
            {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "OMP_NUM_THREADS": str(threads)})
        self.about = {**self.remote.ready, "precision": precision, "is_encore": False}

    def times(self, weights):
        return self.remote.ask("times", weights)

    def explain(self):
        return self.remote.ask("explain")

    def close(self):
        self.remote.close()


class Encore:
    """encore's command line, computing and its threads waiting in one way."""

    def __init__(self, args, compute, wait, precision, workload, threads, folder, wanted):
        self.args, self.flags, self.precision = args, (*compute, *wait), precision
        self.workload, self.threads = workload, threads
        largest, rms = None, None
        if precision in args.encore_checked:
            found = encore_side.output(args.encore, folder / "weights.safetensors",
                                       blocks.random_input(workload), threads, precision,
                                       args.encore_target, compute)
            largest, rms = reference.errors(found, wanted)
        name = " ".join(["encore", *map(str, self.flags)])
        self.about = {"engine": name, "version": args.encore_version, "precision": precision,
                      "is_encore": True, "graph": "", "isa": args.encore_target,
                      "max_error": largest, "rms_error": rms}

    def times(self, weights):
        time.sleep(remote.REST_SECONDS)
        (row, peak), load = turn(lambda: encore_side.bench(
            self.args.encore, self.workload, self.threads, self.args.seconds, self.precision,
            weights, self.args.encore_target, self.flags), self.args.retakes)
        self.about["isa"] = row["target"]
        seconds = row["seconds"]
        return {"median": seconds["p50"], "min": seconds["min"], "p99": seconds["p99"],
                "others": load, **({} if peak is None else {"peak_gflops": peak * 1e-9})}

    def explain(self):
        return []

    def close(self):
        pass


def engines(args, workload, threads, folder, wanted):
    """Those that there are, and are right; in the order of the table."""
    def makers():
        for precision in args.precision:
            if precision in args.encore_precision:
                for compute, wait in encore_side.variants(args.encore, precision, threads,
                                                          args.encore_target):
                    yield functools.partial(Encore, args, compute, wait, precision, workload,
                                            threads, folder, wanted)
            for name in args.peer:
                if precision in PEERS[name]:
                    yield functools.partial(Peer, args, name, precision, workload, threads, folder)

    made, cell = [], f"{workload.name}, {threads} threads"
    for make in makers():
        try:
            engine = make()
        except (remote.RemoteError, encore_side.Failed) as error:
            say(f"{cell}: left out: {error}")
            continue
        precision, rms_error = engine.about["precision"], engine.about["rms_error"]
        if rms_error is None or reference.is_right(rms_error, precision):
            made.append(engine)
            continue
        say(f"{cell}: left out: {engine.about['engine']} {precision} has an rms error of "
            f"{rms_error:.2g}; {reference.MAX_RMS_ERROR[precision]} is allowed")
        engine.close()
    return made


def run_cell(args, name, threads):
    """Every engine on a workload with so many threads: dicts, one for each row of the table."""
    workload = blocks.WORKLOADS[name]
    tensors = blocks.random_weights(workload)
    wanted = reference.output(workload, tensors, blocks.random_input(workload))
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        blocks.write_weights(folder / "weights.safetensors", workload, tensors)
        numpy.save(folder / "reference.npy", wanted)
        alive = engines(args, workload, threads, folder, wanted)
        try:
            if args.explain:
                explain(workload, threads, alive)
            with busy_processes(args.busy):
                turns = take_turns(args, workload, threads, alive)
        finally:
            for engine in alive:
                engine.close()
    rows = [results.row(workload, threads, weights, engine.about, found)
            for (engine, weights), found in turns.items() if len(found) == args.rounds]
    results.add_ratios(rows)
    return rows


@contextlib.contextmanager
def busy_processes(count):
    """So many processes that only burn time, on any core."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def explain(workload, threads, alive):
    for engine in alive:
        about = engine.about
        lines = engine.explain()
        if lines:
            print(f"{workload.name}, {threads} threads: {about['engine']} {about['precision']}, "
                  f"{about['graph']}; {about['isa']}")
            print("".join(f"  {line}\n" for line in lines))


def take_turns(args, workload, threads, alive):
    """What each found in each round: lists by (engine, warm or cold)."""
    turns = {(engine, weights): [] for weights in args.weights for engine in alive}
    failed = set()
    for index in range(args.rounds):
        order = list(turns)
        # Each round begins with another one.
        shift = index * len(order) // args.rounds
        for engine, weights in order[shift:] + order[:shift]:
            if engine in failed:
                continue
            try:
                turns[engine, weights].append(engine.times(weights))
            except (remote.RemoteError, encore_side.Failed) as error:
                failed.add(engine)
                say(f"{workload.name}, {threads} threads: left out from here: {error}")
    return turns


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)

    def some(option, choices, default, what):
        parser.add_argument(option, action="append", choices=choices, metavar="NAME",
                            help=f"only {what}: {' '.join(choices)}")
        defaults[option.strip("-")] = list(default)

    defaults = {"threads": [1, 2]}
    parser.add_argument("--encore", type=pathlib.Path, default=ROOT / "build/release/bin/encore",
                        help="the command line to time (default: %(default)s)")
    parser.add_argument("--encore-target", default="", metavar="NAME",
                        help="encore's SIMD target, e.g. AVX2; else its best")
    parser.add_argument("--max-isa", default="", metavar="NAME",
                        help="the peers' instruction sets at most, as ONEDNN_MAX_CPU_ISA names "
                             f"them: {' '.join(isa.NAMES)}; those without AMX deny it to every "
                             "peer")
    some("--peer", PEERS, PEERS, "these peers")
    some("--precision", PRECISIONS, PRECISIONS, "these precisions")
    some("--weights", WEIGHTS, WEIGHTS, "weights in cache, or out of it")
    some("--workload", blocks.WORKLOADS, blocks.DEFAULT_WORKLOADS, "these workloads")
    parser.add_argument("--threads", action="append", type=int, metavar="N",
                        help="only these numbers of threads (default: 1 and 2)")
    parser.add_argument("--graph", default="best",
                        help="one of an adapter's graphs, or best: the fastest in each cell")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn in a round")
    parser.add_argument("--retakes", type=int, default=3, help="of a turn that was disturbed")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="beside N processes that only burn time")
    parser.add_argument("--markdown", action="store_true", help="the table for a README")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every round's figures")
    parser.add_argument("--explain", action="store_true",
                        help="the operators and primitives of each peer")
    parser.add_argument("--through", default="", metavar="COMMAND",
                        help="runs each peer through a command, such as one that traces it")
    args = parser.parse_args()
    for name, default in defaults.items():
        setattr(args, name, getattr(args, name) or default)
    if isa.is_without_amx(args.max_isa) and not args.encore_target:
        args.encore_target = encore_side.best_target_without_amx(args.encore)
    if args.rounds < 1 or min(args.threads) < 1 or not args.seconds > 0:
        parser.error("--rounds, --threads and --seconds must be above zero")
    if args.retakes < 0 or args.busy < 0:
        parser.error("--retakes and --busy must not be below zero")
    if args.busy:
        args.retakes = 0
    return args


def probe_encore(args):
    """Which precisions the command line can time, and which of these it can compute to a file."""
    args.encore_precision, args.encore_checked = [], []
    for precision in args.precision:
        try:
            encore_side.check_bench(args.encore, precision, args.encore_target)
            args.encore_precision.append(precision)
            encore_side.check_run(args.encore, precision)
            args.encore_checked.append(precision)
        except encore_side.Failed as error:
            lost = "left out" if precision not in args.encore_precision else "timed, but unchecked"
            say(f"encore {precision} is {lost}: {error}")


def main():
    args = parse_args()
    try:
        args.encore_version = encore_side.version(args.encore)
    except encore_side.Failed as error:
        raise SystemExit(f"compare: {error}") from error
    probe_encore(args)
    rows = []
    for name in args.workload:
        for threads in args.threads:
            rows += run_cell(args, name, threads)
            say(f"{name}, {threads} threads: done")
    if not rows:
        raise SystemExit("compare: nothing was measured")
    head = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
            "cpu": tables.cpu_name(), "encore": args.encore_version,
            "rounds": args.rounds, "seconds of a turn": args.seconds,
            "busy processes": args.busy,
            "limit of the peers' instruction sets": args.max_isa or "none",
            "other processes": f"{max(max(row['others']) for row in rows):.2f} of a core in the "
                               "worst turn"}
    for row in rows:
        if not row["is_encore"]:
            head[row["engine"]] = f"{row['version']}; between calls {row['wait_policy']}"
    print("\n".join(f"{key}: {value}" for key, value in head.items()) + "\n")
    print(results.table(rows, args.markdown))
    if args.json:
        args.json.write_text(json.dumps({**head, "rows": rows}, indent=1) + "\n",
                             encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
