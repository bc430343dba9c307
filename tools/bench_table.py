#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns results of `encore bench`, or of the benchmarks in bench/, into a Markdown table.

Holds the tables only; how things are measured is said by `encore bench --help` and bench/common.h.

    encore bench --json a1.json
    tools/bench_table.py a1.json [a2.json ...] [--filter REGEX]

    build/bench/bench_matmul --benchmark_out=a1.json
    tools/bench_table.py a1.json [a2.json ...] [--filter REGEX] [--columns GFLOP/s,peak,share]

Several files, or repetitions in one file, of the same measurements give the medians over all of
them: to compare two builds run them in turn (A B A B) and make a table of each.
"""

import argparse
import json
import re
import statistics
import sys


REPORT_VERSION = 1  # of tools/encore/report.schema.json


def format_number(column, value):
    if column.endswith("share"):
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def markdown(header, rows, alignment):
    print("| " + " | ".join(header) + " |")
    print("|" + "|".join(alignment) + "|")
    for row in rows:
        print("| " + " | ".join(row) + " |")


def google_table(results, pattern, wanted):
    """Of Google Benchmark's results; whether there was anything to show."""
    rows = {}  # (name, target) -> counter -> values; in order of appearance
    for run in (run for result in results for run in result["benchmarks"]):
        if run.get("run_type", "iteration") != "iteration" or run.get("error_occurred"):
            continue
        name = re.sub(r"/(manual_time|repeats:\d+)", "", run["name"])
        if re.search(pattern, name):
            counters = rows.setdefault((name, run.get("label", "")), {})
            for column in wanted:
                if column in run:
                    counters.setdefault(column, []).append(run[column])
    columns = [c for c in wanted if any(c in row for row in rows.values())]
    if rows:
        markdown(["benchmark", "target", *columns],
                 [[*key, *(format_number(c, statistics.median(counters[c])) if c in counters else ""
                           for c in columns)] for key, counters in rows.items()],
                 ["---", "---", *["---:"] * len(columns)])
    return bool(rows)


def encore_cell(runs):
    """GFLOP/s with the share in brackets, medians over the runs; the roof where it is no peak."""
    if not runs:
        return ""
    gflops = statistics.median(run["gflops"] for run in runs)
    roofs = [run["roof"] for run in runs if run["roof"]]
    if not roofs:
        return f"{gflops:.0f}"
    share = 100 * statistics.median(roof["share"] for roof in roofs)
    kinds = {f" of {roof['name']}" for roof in roofs if roof["kind"] == "read"}
    return f"{gflops:.0f} ({share:.0f} %{' and'.join(sorted(kinds))})"


def encore_table(results, pattern):
    """Of `encore bench`'s reports; whether there was anything to show."""
    rows = {}  # (workload, target, precision, sizes) -> (weights, threads) -> runs
    for run in (run for result in results for run in result["rows"]):
        if re.search(pattern, run["workload"]):
            sizes = (f"{run['d_model']}, {run['heads']}, {run['d_ff']}; {run['sequences']}, "
                     f"{run['tokens']} tokens")
            key = (run["workload"], run["target"], run["precision"], sizes)
            cells = rows.setdefault(key, {})
            cells.setdefault((run["weights"] == "cold", run["threads"]), []).append(run)
    if not rows:
        return False
    columns = sorted({column for cells in rows.values() for column in cells})
    targets = sorted({target for _, target, _, _ in rows})
    precisions = sorted({precision for _, _, precision, _ in rows})
    header = ["workload", "d_model, heads, d_ff; sequences"]
    for cold, threads in columns:
        header.append(f"{threads} thread{'s' if threads > 1 else ''}, {'cold' if cold else 'warm'}")
    body = []
    for (workload, target, precision, sizes), cells in rows.items():
        name = ", ".join([workload, *([target] if len(targets) > 1 else []),
                          *([precision] if len(precisions) > 1 else [])])
        body.append([name, sizes, *(encore_cell(cells.get(column)) for column in columns)])
    markdown(header, body, ["---", "---", *["---:"] * len(columns)])

    said = []
    for values in ([r["machine"]["cpu"] for r in results],
                   [r["machine"]["compiler"] for r in results], targets, precisions,
                   [r["created"][:10] for r in results], [r["run"]["binding"] for r in results]):
        said.append(" and ".join(dict.fromkeys(values)))
    print("\nGFLOP/s from the median call, in brackets the share of the multiply-add peak, or of "
          f"the bandwidth that is named, of the same run and threads. {'; '.join(said)}; "
          f"{len(results)} run{'s' if len(results) > 1 else ''}.")
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="what --json or --benchmark_out wrote")
    parser.add_argument("--filter", default="", metavar="REGEX",
                        help="only workloads or benchmarks whose name matches")
    parser.add_argument("--columns", default="GFLOP/s,best,peak,share,Gelem/s,tokens/s",
                        help="counters of the benchmarks in bench/ to show, where there are any "
                             "(default: %(default)s)")
    args = parser.parse_args()

    results = {"encore_report": [], "benchmarks": []}
    for path in args.files:
        with open(path, encoding="utf-8") as file:
            result = json.load(file)
        kind = next((key for key in results if key in result), None)
        if kind is None:
            print(f"bench_table: {path}: neither a report nor benchmarks", file=sys.stderr)
            return 1
        if kind == "encore_report" and result[kind] != REPORT_VERSION:
            print(f"bench_table: {path}: found a report of version {result[kind]}, wanted "
                  f"{REPORT_VERSION}", file=sys.stderr)
            return 1
        results[kind].append(result)

    reports = results["encore_report"]
    shown = bool(reports) and encore_table(reports, args.filter)
    if google_table(results["benchmarks"], args.filter, args.columns.split(",")):
        shown = True
    if not shown:
        print("bench_table: nothing matches", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
