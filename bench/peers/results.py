# SPDX-License-Identifier: Apache-2.0
"""The rows of a comparison: figures of the rounds, ratios to encore, tables, and the report that
python -m pyencore.lab reads (python/pyencore/lab/report.schema.json).

"""

import statistics

from pyencore.lab import measure, reports

import cold
import tables

TITLES = ("workload", "threads", "weights", "precision", "engine", "graph", "ISA", "p50 us",
          "p99 us", "min us", "GFLOP/s")
ERRORS = ("max error", "rms error")
LEFT = {0, 2, 3, 4, 5, 6}
# So many medians of consecutive calls tell a reader how a turn swung.
SLOTS_OF_TURN = 10
MAX_SLOTS = 64  # of a row, by the schema
CALLS_FOR_P99 = 100  # likewise: of fewer in a turn there is none


def summary(samples):
    """Of the calls of one turn, in the order they were made: seconds, calls and slots of a row."""
    ordered, parts = sorted(samples), min(len(samples), SLOTS_OF_TURN)

    def at(part):
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)]

    return {"seconds": {"min": ordered[0], "p50": statistics.median(ordered), "p90": at(0.9),
                        "p99": at(0.99) if len(ordered) >= CALLS_FOR_P99 else None,
                        "max": ordered[-1]},
            "calls": len(samples),
            "slots": [statistics.median(samples[len(samples) * i // parts:
                                                len(samples) * (i + 1) // parts])
                      for i in range(parts)]}


def row(workload, threads, weights, about, turns):
    """turns: of each round what summary() gives, and "others": of a core."""
    seconds = {key: statistics.median(turn["seconds"][key] for turn in turns)
               for key in ("p50", "p90")}
    p99 = [turn["seconds"]["p99"] for turn in turns if turn["seconds"]["p99"] is not None]
    seconds["p99"] = statistics.median(p99) if p99 else None
    seconds["min"] = min(turn["seconds"]["min"] for turn in turns)
    seconds["max"] = max(turn["seconds"]["max"] for turn in turns)
    return {"workload": workload, "threads": threads, "weights": weights, **about,
            "seconds": seconds, "calls": sum(turn["calls"] for turn in turns),
            "slots": [slot for turn in turns for slot in turn["slots"]],
            "rounds": [turn["seconds"]["p50"] for turn in turns],
            "others": [turn["others"] for turn in turns], "ratios": {}}


def same_cell(a, b):
    return all(a[key] == b[key] for key in ("workload", "threads", "weights", "precision"))


def add_ratios(rows):
    """To each peer's row: its times by those of encore in the same cell and precision."""
    for ours in (r for r in rows if r["is_encore"]):
        for theirs in (r for r in rows if not r["is_encore"] and same_cell(r, ours)):
            rounds = [t / o for t, o in zip(theirs["rounds"], ours["rounds"])]
            theirs["ratios"][ours["engine"]] = {
                "p50": theirs["seconds"]["p50"] / ours["seconds"]["p50"], "lowest": min(rounds),
                "highest": max(rounds)}


def gflops(r):
    return r["workload"].flops / r["seconds"]["p50"] * 1e-9


def table(rows):
    """A row for each engine, a ratio's column for each way of timing encore."""
    names = list(dict.fromkeys(name for r in rows for name in r["ratios"]))
    lines = [[*TITLES, *(f"to {name}" for name in names), *ERRORS]]
    for r in rows:
        line = [r["workload"].name, str(r["threads"]), r["weights"], r["precision"], r["engine"],
                r["graph"], r["isa"],
                *("" if r["seconds"][key] is None else f"{r['seconds'][key] * 1e6:.1f}"
                  for key in ("p50", "p99", "min")),
                f"{gflops(r):.0f}"]
        for name in names:
            found = r["ratios"].get(name)
            line.append(f"{found['p50']:.2f} ({found['lowest']:.2f} - {found['highest']:.2f})"
                        if found else "")
        for key in ("max_error", "rms_error"):
            line.append(f"{r[key]:.1e}")
        lines.append(line)
    return tables.write(lines, LEFT, False)


def markdown(rows, head):
    """The table of docs/performance.md: a row a workload, precision and number of threads, a
    column an engine: microseconds, and for peers how many times as fast encore is."""
    engines = sorted(dict.fromkeys(r["engine"] for r in rows),
                     key=lambda name: not name.startswith("encore"))
    lines = {}
    for r in rows:
        found = next(iter(r["ratios"].values()), None)
        key = f"{r['workload'].name}, {r['weights']}", r["precision"], str(r["threads"])
        lines.setdefault(key, {})[r["engine"]] = (
            f"{r['seconds']['p50'] * 1e6:,.0f}" + (f" ({found['p50']:.2f})" if found else ""))
    return "; ".join(f"{key}: {value}" for key, value in head.items()) + "\n\n" + tables.write(
        [["us (times as fast encore is)", "precision", "threads", *engines],
         *([*key, *(cells.get(engine, "") for engine in engines)]
           for key, cells in lines.items())], {0, 1}, True)


def report_row(r):
    """A row as the schema has it."""
    workload, seconds = r["workload"], r["seconds"]
    tokens = workload.batch * workload.seq
    amx_bf16 = r["is_encore"] and "--amx-bf16" in r["engine"]
    return {"engine": r["engine"].replace(" --amx-bf16", ""), "engine_version": r["version"],
            "workload": workload.name, "d_model": workload.d_model, "heads": workload.heads,
            "d_ff": workload.d_ff, "activation": workload.activation, "layers": workload.layers,
            "sequences": workload.batch, "tokens": tokens, "useful_tokens": tokens,
            "precision": r["precision"], "amx_bf16": amx_bf16,
            "target": r["isa"] + (f"; {r['graph']}" if r["graph"] else ""),
            "threads": r["threads"], "weights": r["weights"], "calls": r["calls"],
            "flops": workload.flops, "weight_bytes": cold.weight_bytes(workload, r["precision"]),
            "seconds": {key: seconds[key] for key in ("min", "p50", "p90", "p99", "max")},
            "slots": r["slots"][::-(-len(r["slots"]) // MAX_SLOTS)], "gflops": gflops(r),
            "tokens_per_s": tokens / seconds["p50"], "useful_tokens_per_s": tokens / seconds["p50"],
            "roof": None, "verified": True}  # others are left out


def frame(threads, target):
    """A report of `encore bench` in the same run: the machine and its roofs."""
    return measure.bench(measure.find_encore(), [
        "--workload", "example_32x10", "--seconds", "0", "--threads",
        ",".join(map(str, sorted(set(threads)))), *(("--target", target) if target else ())])


def report(base, rows, notes):
    """The rows in the frame of that machine."""
    others = [part for r in rows for part in r["others"]]
    noise = {**base["noise"], "notes": [*base["noise"]["notes"], *notes], "steal_percent": -1,
             "busy_percent": 100 * statistics.mean(others) / base["machine"]["cores"]}
    return reports.check({**base, "noise": noise, "rows": [report_row(r) for r in rows]})
