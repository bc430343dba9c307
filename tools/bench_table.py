#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns results of the benchmarks into a Markdown table.

Holds the table only; how things are measured is said in bench/common.h.

    build/bench/bench_encoder --benchmark_out=a1.json
    tools/bench_table.py a1.json [a2.json ...] [--filter REGEX] [--columns GFLOP/s,peak,share]

Several files, or repetitions in one file, of the same benchmarks give the medians over all of
them: to compare two builds run them in turn (A B A B) and make a table of each.
"""

import argparse
import json
import re
import statistics
import sys


def read_runs(path):
    """Yields (plain name, SIMD target, counters) of each run that measured something."""
    with open(path, encoding="utf-8") as file:
        runs = json.load(file)["benchmarks"]
    for run in runs:
        if run.get("run_type", "iteration") == "iteration" and not run.get("error_occurred"):
            yield re.sub(r"/(manual_time|repeats:\d+)", "", run["name"]), run.get("label", ""), run


def format_number(column, value):
    if column.endswith("share"):
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="what --benchmark_out wrote")
    parser.add_argument("--filter", default="", metavar="REGEX",
                        help="only benchmarks whose name matches")
    parser.add_argument("--columns", default="GFLOP/s,best,peak,share,Gelem/s,tokens/s",
                        help="counters to show, where there are any (default: %(default)s)")
    args = parser.parse_args()

    rows = {}  # (name, target) -> counter -> values; in order of appearance
    for path in args.files:
        for name, target, run in read_runs(path):
            if re.search(args.filter, name):
                counters = rows.setdefault((name, target), {})
                for column in args.columns.split(","):
                    if column in run:
                        counters.setdefault(column, []).append(run[column])
    if not rows:
        print("bench_table: no benchmark matches", file=sys.stderr)
        return 1

    columns = [c for c in args.columns.split(",") if any(c in row for row in rows.values())]
    print("| benchmark | target |" + "".join(f" {c} |" for c in columns))
    print("|---|---|" + "---:|" * len(columns))
    for (name, target), counters in rows.items():
        cells = [format_number(c, statistics.median(counters[c])) if c in counters else ""
                 for c in columns]
        print(f"| {name} | {target} |" + "".join(f" {cell} |" for cell in cells))
    return 0


if __name__ == "__main__":
    sys.exit(main())
