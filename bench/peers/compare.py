#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times encore and its peers side by side, in every precision: blocks, the workloads of `encore
bench`; the products of a block alone; and whole models from token ids, for engines that compute no
block by itself. Never one of these beside another.

    tools/python_env.sh peers && .deps/venv/bin/pip install .
    .deps/venv/bin/python bench/peers/compare.py --markdown --json peers.json

Every engine in every precision computes the same weights and input and is held against float64:
the largest and the rms error of its output, by the output's rms. One that is too far off is left
out, aloud, as is one that cannot be had. Then all take turns for some rounds, one at a time, peers
in processes of their own; a turn that other processes disturbed is taken again. With --busy N they
take them beside N processes that only burn time, and none again. p50 is the median over the rounds
of the median call, p99 of the call that 1 in 100 is slower than, min the fastest call, GFLOP/s are
of p50. "to encore" is the peer's p50 by encore's in the same precision (above 1: encore is
faster), in brackets the lowest and the highest of a round. Each has as many cores as threads (one
thread: the last core).
With more threads than one, encore is timed twice: as it is, and with its threads spinning between
calls; and twice in bf16 where there is AMX: as it is, and with --amx-bf16. Warm: the same layer
again and again. Cold: the layers of a model larger than the caches, all in one call. Whole models
are warm alone.
--markdown writes a table with a column for each engine; --json a report as `encore bench` does,
with rows of every engine, which pyencore.lab shows. The errors are in the table that is printed
without --markdown.

Peers use AMX where the machine has it, encore for int8, and for bf16 where told to. --max-isa
AVX512_CORE_BF16 takes AMX from all of them. The column ISA gives that limit, and AMX where the
peer's process asked for it and got it; f32 products do not use it all the same. --explain shows the
primitives that they chose.
"""

import argparse
import datetime
import importlib.util
import pathlib
import shlex
import sys
import tempfile
import time

import remote

# In the order of the table: what each is held to, and the precisions that it can compute in.
PEERS = {"onnxruntime": ("block", ("f32", "int8")), "openvino": ("block", ("f32", "bf16", "int8")),
         "torch": ("block", ("f32", "bf16")), "onednn": ("products", ("f32", "bf16", "int8")),
         "openblas": ("products", ("f32",)), "ctranslate2": ("model", ("f32", "int8"))}
PACKAGES = {"onednn": ("torch",), "openblas": ("scipy_openblas32",),
            "ctranslate2": ("ctranslate2", "torch", "transformers")}
PRECISIONS = ("f32", "bf16", "int8")
WEIGHTS = ("warm", "cold")

blocks = remote.import_or_leave("blocks")
cases = remote.import_or_leave("cases")
encore_peer = remote.import_or_leave("encore_peer")
isa = remote.import_or_leave("isa")
reference = remote.import_or_leave("reference")
results = remote.import_or_leave("results")
tables = remote.import_or_leave("tables")


def say(*words):
    print("compare:", *words, file=sys.stderr)


class Peer:
    """A peer in its process."""

    def __init__(self, args, name, graph, precision, workload, threads, folder):
        self.remote = remote.Remote(
            f"{name} {precision}",
            [*shlex.split(args.through), sys.executable,
             pathlib.Path(__file__).with_name("peer_process.py"), "--peer", name, "--precision",
             precision, "--workload", workload.name, "--graph", graph, "--threads",
             str(threads), "--seconds", str(args.seconds), "--retakes", str(args.retakes),
             "--max-isa", args.max_isa, "--folder", folder,
             *(("--encore-target", args.encore_target) if name == "encore" else ())],
            remote.last_cores(threads),
            # Large pages, as encore takes them: 1 to 5 % for a peer whose weights are many.
            {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "OMP_NUM_THREADS": str(threads)})
        self.about = {**self.remote.ready, "precision": precision, "is_encore": name == "encore"}
        if name == "encore":
            self.about.update(engine=graph, graph="")

    def times(self, weights):
        return self.remote.ask("times", weights)

    def explain(self):
        return self.remote.ask("explain")

    def close(self):
        self.remote.close()


def engines(args, workload, threads, folder):
    """Those that there are, and are right; in the order of the table."""
    def choices():
        for precision in args.precision:
            for variant in encore_peer.variants(workload.kind, precision, threads,
                                                args.encore_target):
                yield "encore", variant, precision
            for name in args.peer:
                if PEERS[name][0] == workload.kind and precision in PEERS[name][1]:
                    yield name, args.graph, precision

    made, cell = [], f"{workload.name}, {threads} threads"
    for name, graph, precision in choices():
        try:
            engine = Peer(args, name, graph, precision, workload, threads, folder)
        except remote.RemoteError as error:
            say(f"{cell}: left out: {error}")
            continue
        rms_error = engine.about["rms_error"]
        if reference.is_right(rms_error, precision):
            made.append(engine)
            continue
        say(f"{cell}: left out: {engine.about['engine']} {precision} has an rms error of "
            f"{rms_error:.2g}; {reference.MAX_RMS_ERROR[precision]} is allowed")
        engine.close()
    return made


def run_cell(args, name, threads):
    """Every engine on a workload with so many threads: dicts, one for each row of the table."""
    workload = blocks.WORKLOADS[name]
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        cases.write(folder, workload)
        alive = engines(args, workload, threads, folder)
        try:
            if args.explain:
                explain(workload, threads, alive)
            with remote.busy_processes(args.busy):
                turns = take_turns(args, workload, threads, alive)
        finally:
            for engine in alive:
                engine.close()
    rows = [results.row(workload, threads, weights, engine.about, found)
            for (engine, weights), found in turns.items() if len(found) == args.rounds]
    results.add_ratios(rows)
    return rows


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
    turns = {(engine, weights): [] for weights in args.weights for engine in alive
             if weights == "warm" or workload.kind != "model"}
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
            except remote.RemoteError as error:
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
    parser.add_argument("--markdown", action="store_true",
                        help="a table in Markdown, a column for each engine")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE",
                        help="a report with every engine's rows")
    parser.add_argument("--explain", action="store_true",
                        help="the operators and primitives of each peer")
    parser.add_argument("--through", default="", metavar="COMMAND",
                        help="runs each peer through a command, such as one that traces it")
    args = parser.parse_args()
    for name, default in defaults.items():
        setattr(args, name, getattr(args, name) or default)
    if isa.is_without_amx(args.max_isa) and not args.encore_target:
        args.encore_target = encore_peer.target_without_amx()
    if args.rounds < 1 or min(args.threads) < 1 or not args.seconds > 0:
        parser.error("--rounds, --threads and --seconds must be above zero")
    if args.retakes < 0 or args.busy < 0:
        parser.error("--retakes and --busy must not be below zero")
    if args.json and not args.json.parent.is_dir():  # before the work rather than after it
        parser.error(f"--json {args.json}: there is no folder {args.json.parent}")
    if args.busy:
        args.retakes = 0
    return args


def leave_out_missing(args):
    """Says which peers' packages are not installed."""
    for name in list(args.peer):
        missing = [package for package in PACKAGES.get(name, (name,))
                   if importlib.util.find_spec(package) is None]
        if missing:
            say(f"{name} is left out: found no Python package {', '.join(missing)}; "
                "`tools/python_env.sh peers` installs it")
            args.peer.remove(name)


def main():
    args = parse_args()
    begin = time.monotonic()
    frame = args.json and results.frame(args.threads, args.encore_target)
    leave_out_missing(args)
    rows, kinds = [], {PEERS[name][0] for name in args.peer}
    for name in args.workload:
        for threads in args.threads if blocks.WORKLOADS[name].kind in kinds else ():
            rows += run_cell(args, name, threads)
            say(f"{name}, {threads} threads: done")
    if not rows:
        raise SystemExit("compare: nothing was measured")
    how = {"rounds": args.rounds, "seconds of a turn": args.seconds,
           "busy processes": args.busy,
           "limit of the peers' instruction sets": args.max_isa or "none",
           "other processes": f"{max(max(row['others']) for row in rows):.2f} of a core in the "
                              "worst turn"}
    head = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
            "cpu": tables.cpu_name(), "encore": encore_peer.VERSION, **how}
    for row in rows:
        if not row["is_encore"]:
            head[row["engine"]] = f"{row['version']}; between calls {row['wait_policy']}"
    if args.markdown:
        print(results.markdown(rows, head))
    else:
        print("\n".join(f"{key}: {value}" for key, value in head.items()) + "\n")
        print(results.table(rows))
    if args.json:
        frame["run"].update(seconds=time.monotonic() - begin,
                            seconds_per_row=args.rounds * args.seconds)
        tables.write_whole(args.json, results.report(
            frame, rows, [f"{key}: {value}" for key, value in how.items()]))
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit("compare: interrupted; nothing was written")
