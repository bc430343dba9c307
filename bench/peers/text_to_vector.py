#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times encore and its peers from text to vector, side by side in one run, vectors compared first.

    tools/fetch_model.sh && tools/python_env.sh peers && .deps/venv/bin/pip install .
    .deps/venv/bin/python bench/peers/text_to_vector.py --markdown

Each engine lives in a process of its own with as many cores as threads (one thread: the last core).
They take turns for some rounds, and one of them works at a time; a turn that other processes
disturbed is taken again. Measured: one query of 15 tokens, again and again (p50 and p99), and
sentences of mixed lengths, all in one call (sentences/s); with --shape BxS instead of these B texts
of S tokens each, in one call (p50). A figure is the median over the rounds; a ratio is encore's
advantage (above 1: encore is faster), in brackets the lowest and the highest of a
round. All compute in f32 and must agree to 2e-6 in every number of the unit vectors. With --encore
the command line is timed too, `encore embed` as a whole: start, reading, opening, writing.
"""

import argparse
import datetime
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile
import time

import remote
import tables

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# By the names of their files.
ENGINES = ("encore", "sentence_transformers", "onnxruntime", "openvino")
# Of a number of a unit vector.
MAX_DIFFERENCE = 2e-6
# So many sentences are compared, or as many as are timed.
COMPARED = 200
WARM_UP = 10


# ---- In the process of one engine ---------------------------------------------------------------

def call_times(encode, batch, calls, seconds=0.0):
    """Sorted, in s: of so many calls, and of so many seconds of them."""
    times = []
    while len(times) < calls or sum(times) < seconds:
        start = time.perf_counter()
        encode(batch)
        times.append(time.perf_counter() - start)
    return sorted(times)


def latency(engine, query, calls):
    call_times(engine.encode, query, WARM_UP)
    times = call_times(engine.encode, query, calls)
    return {"p50": times[len(times) // 2] * 1e3, "p99": times[int(len(times) * 0.99)] * 1e3}


def throughput(encode, sentences):
    return {str(len(sentences)): len(sentences) / call_times(encode, sentences, 1)[0]}


def serve(args):
    """Answers requests for vectors and measurements of one engine: figures by name, in ms or
    sentences/s, and the part of a core that others took."""
    def make():
        texts, turn = remote.import_or_leave("texts"), remote.import_or_leave("quiet").turn
        numpy = remote.import_or_leave("numpy")
        module = remote.import_or_leave(f"text_{args.as_engine}")
        engine = module.Engine(args.model, args.threads[-1])
        sentences = texts.mixed_sentences(args.model, max(args.sentences, default=COMPARED))
        batches = {shape: texts.of_shape(args.model, *map(int, shape.split("x")))
                   for shape in args.shape}

        def answer(what, *rest):
            if what == "vectors":
                # One of each shape, by itself: with padding some models become NaN in OpenVINO.
                calls = ([[batch[0]] for batch in batches.values()] or
                         [[texts.QUERY, *sentences[:COMPARED]]])
                numpy.save(rest[0], numpy.concatenate([engine.encode(call) for call in calls]))
                return [module.NAME, engine.version]
            run = {"latency": lambda: latency(engine, [texts.QUERY], args.calls),
                   "shape": lambda shape: {shape: statistics.median(
                       call_times(engine.encode, batches[shape], 3, 2.0)) * 1e3},
                   "throughput": lambda count: throughput(engine.encode, sentences[:count])}[what]
            return turn(lambda: run(*rest), args.retakes)

        engine.encode(sentences[:COMPARED])
        return "ready", answer

    return remote.serve(make)


# ---- In the process that compares ---------------------------------------------------------------

def start(name, threads):
    """An engine in its process, which reads the same command line."""
    environment = {"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(threads),
                   "RAYON_NUM_THREADS": str(threads),
                   "TOKENIZERS_PARALLELISM": "true" if threads > 1 else "false"}
    command = [sys.executable, *sys.argv, "--as-engine", name, "--threads", str(threads)]
    return remote.Remote(name, command, remote.last_cores(threads), environment)


class CommandLine:
    """`encore embed` as a whole; answers what an engine answers."""

    def __init__(self, args, threads):
        self.args, self.threads = args, threads
        texts = remote.import_or_leave("texts")
        self.sentences = texts.mixed_sentences(args.model, max(args.sentences))
        self.version = subprocess.run([args.encore, "--version"], capture_output=True, text=True,
                                      check=True).stdout.strip()

    def ask(self, _, count):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "texts.txt")
            path.write_text("\n".join(self.sentences[:count]) + "\n", encoding="utf-8")
            command = [self.args.encore, "embed", "--model", self.args.model, "--input", path,
                       "--output", pathlib.Path(folder, "out.npy"), "--threads",
                       str(self.threads)]
            return throughput(lambda _: remote.run(
                command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).check_returncode(),
                self.sentences[:count]), 0.0


def compare_vectors(remotes):
    """Largest difference of each engine's vectors from the first peer's; leaves where too large."""
    numpy = remote.import_or_leave("numpy")
    vectors, about = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        for name, engine in remotes.items():
            path = pathlib.Path(folder, f"{name}.npy")
            about[name] = engine.ask("vectors", str(path))
            vectors[name] = numpy.load(path)
    reference = vectors["sentence_transformers" if "sentence_transformers" in vectors
                        else next(iter(vectors))]
    differences = {name: float(numpy.abs(found - reference).max())
                   for name, found in vectors.items()}
    for name, difference in differences.items():
        if not difference <= MAX_DIFFERENCE:
            raise SystemExit(f"text_to_vector: vectors of {name} differ by {difference:.2g}; "
                             f"{MAX_DIFFERENCE:.0e} is allowed")
    return about, differences


def run_threads(args, threads):
    """Everything found with so many threads: a dict."""
    remotes = {}
    try:
        for name in args.engine:
            remotes[name] = start(name, threads)
            print(f"{threads} threads: {name} is ready", file=sys.stderr)
        about, differences = compare_vectors(remotes)
        batches = [("throughput", count) for count in args.sentences]
        requests = dict.fromkeys(remotes, [("latency",), *(("shape", s) for s in args.shape),
                                           *batches])
        askable = dict(remotes)
        if args.encore and batches:
            askable["command line"] = CommandLine(args, threads)
            about["command line"] = ["encore embed", askable["command line"].version]
            requests["command line"] = batches
        keys = ["p50", "p99", *args.shape, *map(str, args.sentences)]
        rounds = {name: {key: [] for key in keys} for name in askable}
        others = []
        for turn in range(args.rounds):
            names = list(remotes)
            shift = turn % len(names)
            for name in names[shift:] + names[:shift] + list(askable)[len(names):]:
                for request in requests[name]:
                    found, load = askable[name].ask(*request)
                    others.append(load)
                    for key, value in found.items():
                        rounds[name][key].append(value)
            print(f"{threads} threads: round {turn + 1} of {args.rounds}", file=sys.stderr)
    finally:
        for engine in remotes.values():
            engine.close()
    return {"threads": threads, "engines": about, "differences": differences, "rounds": rounds,
            "largest_load_of_others": max(others)}


def ratios(cell, key):
    """Ours by the best peer's in each round, or the reverse for times; None without both."""
    peers = [name for name in cell["rounds"] if name not in ("encore", "command line")]
    if "encore" not in cell["rounds"] or not peers:
        return None
    best = (max if key.isdigit() else min)(
        peers, key=lambda name: statistics.median(cell["rounds"][name][key]))
    slow, fast = cell["rounds"][best][key], cell["rounds"]["encore"][key]
    if key.isdigit():  # sentences/s
        slow, fast = fast, slow
    pairs = [s / f for s, f in zip(slow, fast)]
    return statistics.median(slow) / statistics.median(fast), min(pairs), max(pairs)


def table(cells, markdown):
    """A row a measurement and number of threads, a column an engine, the ratio to the best peer."""
    names = list(cells[0]["rounds"])
    titles = [cells[0]["engines"][name][0] for name in names]
    rows = [["threads", "measured", *titles, "encore to the best peer"]]
    for cell in cells:
        for key in next(iter(cell["rounds"].values())):
            what = f"{key} texts, sentences/s" if key.isdigit() else (
                f"{key} tokens, ms" if "x" in key else f"one query, {key}, ms")
            row = [str(cell["threads"]), what]
            for name in names:
                values = cell["rounds"][name][key]
                digits = 0 if key.isdigit() else 2
                row.append(f"{statistics.median(values):.{digits}f}" if values else "")
            found = ratios(cell, key)
            row.append("%.2f (%.2f - %.2f)" % found if found else "")
            rows.append(row)
    return tables.write(rows, {1}, markdown)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path,
                        default=ROOT / ".deps/models/all-MiniLM-L6-v2", metavar="DIR",
                        help="a folder as sentence-transformers has it (default: %(default)s)")
    parser.add_argument("--encore", type=pathlib.Path, metavar="BINARY",
                        help="the command line, to time `encore embed` too")
    parser.add_argument("--engine", action="append", choices=ENGINES, metavar="NAME",
                        help="only these: " + " ".join(ENGINES))
    parser.add_argument("--threads", action="append", type=int, metavar="N",
                        help="only these numbers of threads (default: 1 and 2)")
    parser.add_argument("--sentences", action="append", type=int, metavar="N",
                        help="only so many at once (default: 2000 and 20000)")
    parser.add_argument("--shape", action="append", metavar="BxS", default=[],
                        help="B texts of S tokens each, in place of sentences, e.g. 8x128")
    parser.add_argument("--calls", type=int, default=200, help="of a query in each round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--retakes", type=int, default=3, help="of a turn that was disturbed")
    parser.add_argument("--markdown", action="store_true", help="the table for a README")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="every round's figures")
    parser.add_argument("--as-engine", help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.engine = args.engine or list(ENGINES)
    args.threads = args.threads or [1, 2]
    args.sentences = args.sentences or ([] if args.shape else [2000, 20000])
    if not all(re.fullmatch(r"[1-9]\d*x[1-9]\d*", shape) for shape in args.shape):
        parser.error(f"--shape must be like 8x128, found {' '.join(args.shape)}")
    if args.encore and not args.sentences:
        parser.error("--encore is timed on --sentences, found none beside --shape")
    if min(args.rounds, args.calls, *args.threads, *args.sentences) < 1 or args.retakes < 0:
        parser.error("--rounds, --calls, --threads and --sentences must be above zero")
    return args


def main():
    args = parse_args()
    if args.as_engine:
        return serve(args)
    if not args.model.is_dir():
        raise SystemExit(f"text_to_vector: there is no {args.model}; tools/fetch_model.sh fetches "
                         "one")
    try:
        cells = [run_threads(args, threads) for threads in args.threads]
    except remote.RemoteError as error:
        raise SystemExit(f"text_to_vector: {error}") from error
    head = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
            "cpu": tables.cpu_name(), "model": args.model.name,
            "rounds": args.rounds, "calls of a query in a round": args.calls}
    for name, (title, version) in cells[0]["engines"].items():
        difference = cells[0]["differences"].get(name)
        head[title] = version + (f"; vectors within {difference:.1e}" if difference else "")
    load = max(cell["largest_load_of_others"] for cell in cells)
    head["other processes"] = f"{load:.2f} of a core in the worst turn"
    print("\n".join(f"{key}: {value}" for key, value in head.items()) + "\n")
    print(table(cells, args.markdown))
    if args.json:
        tables.write_whole(args.json, {**head, "cells": cells})
    return 0


if __name__ == "__main__":
    sys.exit(main())
