#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two builds of the encore command, timed in turns: is any workload slower with the second?

    bench/compare_builds.py build/before/bin/encore build/release/bin/encore
    bench/compare_builds.py A B --rounds 10 --precision f32,int8 --workload minilm_1x16 -- --warm

Each round runs `encore bench` of both builds for each precision, one after the other, and the next
round in the other order: A B, B A, A B ... A row's figure is the median over the rounds of
(p50 of A) / (p50 of B) within the round: above 1, B is faster. What slows the machine for longer
than a round slows both. Arguments after -- go to both. Exit status 1 if a ratio is below --least.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile


def rows_of(command, options):
    """Seconds (p50) by (workload, precision, threads, weights) of one run of `encore bench`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "bench.json"
        done = subprocess.run([command, "bench", *options, "--json", str(path)],
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            sys.exit(f"compare_builds: {command} bench ended with {done.returncode}: {done.stderr}")
        report = json.loads(path.read_text())
    return {(row["workload"], row["precision"], row["threads"], row["weights"]):
            row["seconds"]["p50"] for row in report["rows"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--precision", default="f32,bf16,int8")
    parser.add_argument("--workload", default="", help="names with commas; else the standard set")
    parser.add_argument("--threads", default="1,2")
    parser.add_argument("--seconds", default="0.1", help="of each row and turn")
    parser.add_argument("--least", type=float, default=0.0, help="the smallest ratio that passes")
    arguments = sys.argv[1:]
    extra = []
    if "--" in arguments:
        extra = arguments[arguments.index("--") + 1:]
        arguments = arguments[:arguments.index("--")]
    args = parser.parse_args(arguments)

    ratios, seconds = {}, {}
    for turn in range(args.rounds):
        for precision in args.precision.split(","):
            options = ["--precision", precision, "--threads", args.threads,
                       "--seconds", args.seconds, *extra]
            if args.workload:
                options += ["--workload", args.workload]
            builds = {"before": args.before, "after": args.after}
            order = list(builds) if turn % 2 == 0 else list(builds)[::-1]
            found = {side: rows_of(builds[side], options) for side in order}
            for key, before in found["before"].items():
                after = found["after"][key]
                ratios.setdefault(key, []).append(before / after)
                seconds.setdefault(key, []).append((before, after))
        print(f"compare_builds: round {turn + 1} of {args.rounds}", file=sys.stderr)

    print(f"{'workload':<28}{'precision':<11}{'threads':<9}{'weights':<9}"
          f"{'A us':>11}{'B us':>11}{'A / B':>8}   of the minima")
    worst = min(statistics.median(found) for found in ratios.values())
    for key, found in ratios.items():
        before, after = zip(*seconds[key])
        print(f"{key[0]:<28}{key[1]:<11}{key[2]:<9}{key[3]:<9}"
              f"{statistics.median(before) * 1e6:>11.1f}{statistics.median(after) * 1e6:>11.1f}"
              f"{statistics.median(found):>8.3f}   {min(before) / min(after):.3f}")
    print(f"smallest median ratio: {worst:.3f}")
    return 1 if worst < args.least else 0


if __name__ == "__main__":
    sys.exit(main())
