# SPDX-License-Identifier: Apache-2.0
"""The rows of a comparison of blocks: figures of the rounds, ratios to encore, the table.

Not here: measuring (compare.py), how a table looks (tables.py).
"""

import statistics

import tables

TITLES = ("workload", "threads", "weights", "precision", "engine", "graph", "ISA", "p50 us",
          "p99 us", "min us", "GFLOP/s")
ERRORS = ("max error", "rms error")
LEFT = {0, 2, 3, 4, 5, 6}


def row(workload, threads, weights, about, turns):
    """turns: of each round {"median", "p99", "min": seconds of a layer, "others": of a core}."""
    medians = [turn["median"] * 1e6 for turn in turns]
    p50 = statistics.median(medians)
    found = {"workload": workload.name, "threads": threads, "weights": weights, **about,
             "us_p50": p50, "us_p99": statistics.median(turn["p99"] for turn in turns) * 1e6,
             "us_min": min(turn["min"] for turn in turns) * 1e6,
             "gflops": workload.flops / p50 * 1e-3, "rounds_us": medians,
             "others": [turn["others"] for turn in turns], "ratios": {}}
    if "layers" in turns[0]:
        found["layers"] = turns[0]["layers"]
    peaks = [turn["peak_gflops"] for turn in turns if "peak_gflops" in turn]
    if peaks:
        found["peak_gflops"] = statistics.median(peaks)
    return found


def same_cell(a, b):
    return all(a[key] == b[key] for key in ("workload", "threads", "weights", "precision"))


def add_ratios(rows):
    """To each peer's row: its times by those of encore in the same cell and precision."""
    for ours in (r for r in rows if r["is_encore"]):
        for theirs in (r for r in rows if not r["is_encore"] and same_cell(r, ours)):
            rounds = [t / o for t, o in zip(theirs["rounds_us"], ours["rounds_us"])]
            theirs["ratios"][ours["engine"]] = {
                "p50": theirs["us_p50"] / ours["us_p50"], "lowest": min(rounds),
                "highest": max(rounds)}


def table(rows, markdown):
    """A row for each engine, a ratio's column for each way of timing encore."""
    names = list(dict.fromkeys(name for r in rows for name in r["ratios"]))
    lines = [[*TITLES, *(f"to {name}" for name in names), *ERRORS]]
    for r in rows:
        line = [r["workload"], str(r["threads"]), r["weights"], r["precision"], r["engine"],
                r["graph"], r["isa"], f"{r['us_p50']:.1f}", f"{r['us_p99']:.1f}",
                f"{r['us_min']:.1f}", f"{r['gflops']:.0f}"]
        for name in names:
            found = r["ratios"].get(name)
            line.append(f"{found['p50']:.2f} ({found['lowest']:.2f} - {found['highest']:.2f})"
                        if found else "")
        for key in ("max_error", "rms_error"):
            line.append("unchecked" if r[key] is None else f"{r[key]:.1e}")
        lines.append(line)
    return tables.write(lines, LEFT, markdown)
