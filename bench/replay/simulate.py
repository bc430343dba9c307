#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Replays the plans of `encore info --plan` for machines with more cores: tasks cost what they cost
here on one thread, a stage's hand-over what it costs here on two. A shape is a layer and a batch,
or minilm_encode_10000: the whole of `encode` of so many texts, which wants --model. Where this
machine has the threads, the shape is measured too (`encode` of up to 1,024 texts and 12 s).
docs/measurements/simulation.md says what is assumed.

    bench/replay/simulate.py
    bench/replay/simulate.py base_1x128 minilm_8x128 --threads 1,2,16 --format markdown
    bench/replay/simulate.py minilm_encode_500 minilm_encode_10000 --model all-MiniLM-L6-v2
"""

import argparse
import collections
import os
import statistics
import sys
import tempfile

from pyencore.lab import measure
from pyencore.lab.reports import LabError, table_text

import replay
import replay_costs
import replay_encode
import replay_encode_costs


def tell(text):
    print(text, file=sys.stderr, flush=True)


def in_rounds(kind, works, threads, rounds):
    """What each round simulated and measured, by (name, threads). In each the costs are measured
    anew, then the works, so that a clock that moves counts for both."""
    simulated, measured = collections.defaultdict(list), collections.defaultdict(list)
    cores = len(os.sched_getaffinity(0))
    here = [count for count in threads if count <= cores]
    for i in range(rounds):
        known = {}
        for work in works:
            tell(f"round {i + 1} of {rounds}: {work.name}")
            model = getattr(work, "layer", work).d_model
            if model not in known:
                known[model] = kind.costs(work)
            for count in dict.fromkeys([1, *threads]):
                simulated[work.name, count].append(kind.simulate(work, count, known[model]))
            alone = simulated[work.name, 1][0].seconds
            for count, value in zip(here, kind.measure(work, here, alone) if here else ()):
                measured[work.name, count].append(value)
    return simulated, measured


def table(parts, found, names, threads):
    """The lines, the head first: of the round in the middle; measured over simulated: the median of
    the rounds' ratios."""
    simulated, measured = found
    unit, factor, digits = ("ms", 1e3, 1) if parts else ("us", 1e6, 0)
    lines = [["shape", "threads", "plan by", f"simulated {unit}", "efficiency", *parts,
              f"measured {unit}", "measured over simulated"]]
    middle = {key: sorted(calls, key=lambda call: call.seconds)[len(calls) // 2]
              for key, calls in simulated.items()}
    for name in names:
        for count in threads:
            call, took = middle[name, count], measured.get((name, count))
            kinds = collections.Counter(call.kinds)
            beside = ["", ""]
            if took:
                ratios = [a / b.seconds for a, b in zip(took, simulated[name, count])]
                beside = [f"{statistics.median(took) * factor:,.{digits}f}",
                          f"{statistics.median(ratios):.3f}"]
            lines.append([name, str(count),
                          ", ".join(f"{n} {kind}" for kind, n in kinds.items()) if parts else
                          call.kinds[0], f"{call.seconds * factor:,.{digits}f}",
                          f"{100 * middle[name, 1].seconds / call.seconds / count:.0f} %",
                          *(f"{100 * call.parts[part] / call.seconds:.1f} %" for part in parts),
                          *beside])
    return lines


def parse_args(arguments):
    parser = argparse.ArgumentParser(prog="simulate", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shapes", nargs="*", metavar="SHAPE",
                        default=["base_1x128", "base_8x128", "base_ragged_64"])
    parser.add_argument("--threads", default="1,2,4,8,16,32,64,128,192", metavar="N,...")
    parser.add_argument("--seconds", type=float, default=0.5, help="of each measurement [0.5]")
    parser.add_argument("--rounds", type=int, default=3,
                        help="of costs and measured shapes in turns [3]")
    parser.add_argument("--model", metavar="FOLDER",
                        help="a BERT's folder, for shapes such as minilm_encode_10000")
    parser.add_argument("--encore", metavar="PROGRAM", help="the encore command")
    parser.add_argument("--format", choices=("table", "markdown"), default="table")
    args = parser.parse_args(arguments)
    counts = args.threads.split(",")
    if not all(count.isdigit() and 0 < int(count) <= 1024 for count in counts):
        raise LabError(f"--threads: found '{args.threads}', wanted numbers from 1 to 1024: 1,2,16")
    if not (args.seconds > 0 and args.rounds > 0):
        raise LabError(f"found --seconds {args.seconds:g} and --rounds {args.rounds}, wanted both "
                       "above 0")
    args.threads = list(dict.fromkeys(map(int, counts)))
    return args


def run(args):
    names = dict.fromkeys(args.shapes)
    works = [replay_encode.workload(name) for name in names if replay_encode.is_workload(name)]
    layers = [replay.shape(name) for name in names if not replay_encode.is_workload(name)]
    if works and not args.model:
        raise LabError(f"{works[0].name}: found no --model, wanted a BERT's folder, whose "
                       "tokenizer makes tokens of the texts")
    encore = measure.find_encore(args.encore)
    with tempfile.TemporaryDirectory() as path:
        bench = replay_encode_costs.Bench(encore, args.model, path, args.seconds)
        for kind, wanted in ((replay_costs.Layers(encore, args.seconds, tell), layers),
                             (replay_encode_costs.Calls(encore, bench, args.seconds, tell), works)):
            if wanted:
                found = in_rounds(kind, wanted, args.threads, args.rounds)
                lines = table(kind.parts, found, [work.name for work in wanted], args.threads)
                print(table_text(lines, [1, *range(3, len(lines[0]))], args.format == "markdown"))


def main(arguments):
    """Exit status: 0; 2 with one sentence for unfit flags, files and programs."""
    try:
        run(parse_args(arguments))
    except LabError as error:
        print(f"simulate: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
