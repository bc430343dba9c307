# SPDX-License-Identifier: Apache-2.0
"""Tables of reports: a line a row for spreadsheets, programs and databases, a line a CPU for
people."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from typing import Any

from . import reports
from .reports import LabError, Report

FORMATS = ("table", "markdown", "csv", "jsonl", "sql")
USUAL = "minilm_1x128"

# Where a column's value is in a report, and its type. Units are those of the report's schema.
COLUMNS = [one.split(":") for one in """
encore:TEXT created:TEXT machine.cpu:TEXT machine.architecture:TEXT machine.cores:INTEGER
machine.l1d_bytes:INTEGER machine.l2_bytes:INTEGER machine.l3_bytes:INTEGER machine.system:TEXT
machine.compiler:TEXT machine.commit:TEXT machine.flags:TEXT machine.hardware.vendor:TEXT
machine.hardware.family:TEXT machine.hardware.model:TEXT machine.hardware.stepping:TEXT
machine.hardware.microcode:TEXT machine.hardware.hypervisor:TEXT run.threads_from:TEXT
run.idle_spin_us:INTEGER noise.steal_percent:REAL noise.busy_percent:REAL
noise.peak_drift_percent:REAL row.engine:TEXT row.engine_version:TEXT row.workload:TEXT
row.d_model:INTEGER row.heads:INTEGER row.d_ff:INTEGER row.activation:TEXT row.layers:INTEGER
row.sequences:INTEGER row.tokens:INTEGER row.useful_tokens:INTEGER row.precision:TEXT
row.amx_bf16:INTEGER row.target:TEXT row.threads:INTEGER row.weights:TEXT row.calls:INTEGER
row.flops:REAL row.weight_bytes:REAL row.seconds.min:REAL row.seconds.p50:REAL row.seconds.p90:REAL
row.seconds.p99:REAL row.seconds.max:REAL row.slots.p10:REAL row.slots.p90:REAL row.gflops:REAL
row.tokens_per_s:REAL row.useful_tokens_per_s:REAL row.texts_per_s:REAL row.roof.name:TEXT
row.roof.value:REAL row.roof.share:REAL row.verified:INTEGER""".split()]
NAMES = [path.removeprefix("row.").replace(".", "_") for path, _ in COLUMNS]


def records(found: Sequence[Report]) -> Iterator[list[Any]]:
    """Of each row a value for each of NAMES; None where the report has none."""
    for report in found:
        for row in report["rows"]:
            low, high = reports.slot_range(row)
            whole = {**report, "row": {**row, "slots": {"p10": low, "p90": high}}}
            yield [_value(whole, path.split(".")) for path, _ in COLUMNS]


def _value(value: Any, names: Sequence[str]) -> Any:
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return (reports.clean(value) if isinstance(value, str) else
            int(value) if isinstance(value, bool) else value)


def _sql(value: Any) -> str:
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return "NULL" if value is None else json.dumps(value)


def as_text(found: Sequence[Report], form: str, workload: str | None = None) -> str:
    """In one of FORMATS; workload: of the line a CPU."""
    if form in ("table", "markdown"):
        return reports.table_text(cpus(found, workload), range(2, 13), form == "markdown") + "\n"
    if form == "jsonl":
        return "".join(json.dumps(dict(zip(NAMES, line, strict=True))) + "\n"
                       for line in records(found))
    if form == "csv":
        out = io.StringIO()
        csv.writer(out, lineterminator="\n").writerows([NAMES, *records(found)])
        return out.getvalue()
    columns = ", ".join(f"{name} {kind}" for name, (_, kind) in zip(NAMES, COLUMNS, strict=True))
    # Rows of a report that is loaded again take the place of the old ones.
    old = dict.fromkeys((report["created"], report["machine"]["cpu"]) for report in found)
    return f"CREATE TABLE IF NOT EXISTS encore_rows ({columns});\n" + "".join(
        f"DELETE FROM encore_rows WHERE created = {_sql(reports.clean(created))} AND "
        f"machine_cpu = {_sql(reports.clean(cpu))};\n" for created, cpu in old) + "".join(
        f"INSERT INTO encore_rows VALUES ({', '.join(map(_sql, line))});\n"
        for line in records(found))


def cpus(found: Sequence[Report], workload: str | None = None) -> list[list[str]]:
    """The head, and a line for each report and number of threads: encore's best target, warm."""
    chosen = [[row for row in reports.warm(reports.of_best_target(report))
               if row["engine"] == "encore"] for report in found]
    labels = [list(dict.fromkeys(map(reports.workload_of, rows))) for rows in chosen]
    common = [one for one in labels[0] if all(one in others for others in labels)]
    wanted = [one for one in common if one.rpartition(",")[0] == (workload or USUAL)]
    label = next(iter(wanted or ([] if workload else common)), None)
    if label is None:
        have = ", ".join(dict.fromkeys(one.rpartition(",")[0] for one in common)) or "none"
        raise LabError(f"found no workload {reports.clean(workload or '')} that all reports have; "
                       f"they have {have} in common")
    lines = [["CPU", "target", "threads", "peak: f32, GFLOP/s", "bf16", "int8, GOP/s", "int4",
              "memory, GB/s", f"{label}: f32", "bf16", "int8", "int4", "other work", "measured"]]
    for report, rows in zip(found, chosen, strict=True):
        rows = [row for row in rows if reports.workload_of(row) == label]
        machine, best = report["machine"], reports.best_target(report)
        hardware = machine.get("hardware", {})
        which = [f"{name} {hardware[name]}" for name in ("family", "model") if hardware.get(name)]
        for threads in sorted({row["threads"] for row in rows}):
            roofs = {roof.get("precision", roof.get("level")):
                     roof.get("flops_per_s", roof.get("bytes_per_s")) for roof in report["roofs"]
                     if roof["threads"] == threads and roof.get("target", best) == best}
            times = {reports.precision_of(row): reports.time_text(row["seconds"]["p50"])
                     for row in rows if row["threads"] == threads}
            lines.append([
                reports.clean(machine["cpu"] + f" ({', '.join(which)})" * bool(which)), best,
                str(threads), *(reports.number(roofs[name] * 1e-9) if name in roofs else ""
                                for name in ("f32", "bf16", "int8", "int4",
                                                 "memory")),
                *(times.get(name, "") for name in ("f32", "bf16", "int8", "int4")),
                f"{100 * reports.taken_share(report):.0f} %, drift "
                f"{report['noise']['peak_drift_percent']:.0f} %",
                reports.clean(f"{report['created'][:10]}, encore {report['encore']}")])
    return lines
