# SPDX-License-Identifier: Apache-2.0
"""python -m pyencore.lab table: the same values in every form, a line a CPU as docs/cpus.md has
them, and pages that hold their reports."""

import csv
import io
import json
import pathlib
import sqlite3

import pytest

pytest.importorskip("pyencore.lab.pages")  # left out without the extra pyencore[plots]

from pyencore import lab
from pyencore.lab import reports, tables
from pyencore.lab.__main__ import main
from synthetic_report import synthetic_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
HOSTILE = "O'Neil, \"x\"\n</a>; DROP TABLE encore_rows; --"


def two():
    first, second = synthetic_report(1), synthetic_report(2, threads=(1,))
    first["machine"]["cpu"] = HOSTILE
    first["rows"][0]["seconds"]["p99"] = None
    return [first, second]


def test_csv_jsonl_and_sql_have_the_same_values():
    found = two()
    lines = [json.loads(line) for line in tables.as_text(found, "jsonl").splitlines()]
    rows = [row for report in found for row in report["rows"]]
    assert len(lines) == len(rows)
    assert list(lines[0]) == tables.NAMES
    for line, row in zip(lines, rows, strict=True):
        assert (line["workload"], line["seconds_p50"], line["seconds_p99"], line["roof_name"]) == (
            row["workload"], row["seconds"]["p50"], row["seconds"]["p99"], row["roof"]["name"])
        assert (line["slots_p10"], line["slots_p90"]) == reports.slot_range(row)
        assert line["verified"] == 1 and line["texts_per_s"] is None
    read = list(csv.DictReader(io.StringIO(tables.as_text(found, "csv"))))
    assert read == [{name: "" if value is None else str(value) for name, value in line.items()}
                    for line in lines]
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    for _ in range(2):  # loaded again, a report takes the place of itself
        database.executescript(tables.as_text(found, "sql"))
        assert [dict(row) for row in database.execute("SELECT * FROM encore_rows")] == lines
    other = {**found[1], "created": "2026-11-24T00:00:00Z"}  # a second file goes into the table
    database.executescript(tables.as_text([other], "sql"))
    count = database.execute("SELECT count(*) FROM encore_rows").fetchone()[0]
    assert count == len(lines) + len(other["rows"])
    assert lines[0]["machine_cpu"] == reports.clean(HOSTILE)


def test_every_column_is_in_the_schema():
    text = {**synthetic_report(1)["rows"][0], "slots": {"p10": 1, "p90": 1}, "texts_per_s": 1}
    for path, kind in tables.COLUMNS:
        assert kind in ("TEXT", "INTEGER", "REAL")
        first, *names = path.split(".")
        if first == "row":
            assert tables._value(text, names) is not None, path
            continue
        node = lab.schema()
        for name in (first, *names):
            node = node["properties"][name]


def test_a_line_for_each_report_and_number_of_threads():
    found = two()
    found[1]["machine"]["hardware"] = {"family": "25", "model": "17"}
    found[1]["noise"] |= {"busy_percent": 31, "peak_drift_percent": 7}
    head, *lines = tables.cpus(found, "base_1x128")
    assert head[8] == "base_1x128, 1 layer: f32"
    assert [line[0] for line in lines] == [reports.clean(HOSTILE)] * 2 + [
        "Synthetic 9000 (family 25, model 17)"]
    row = next(row for row in found[1]["rows"] if row["workload"] == "base_1x128" and
               row["precision"] == "bf16")
    assert lines[2][1:8] == ["AVX3_ZEN4", "1", "250", "500", "1,000", "", "22"]
    assert lines[2][9] == reports.time_text(row["seconds"]["p50"])
    for line, threads in zip(lines, (1, 2), strict=False):
        row = next(row for row in found[0]["rows"] if row["workload"] == "base_1x128" and
                   row["precision"] == "f32" and row["threads"] == threads)
        assert line[8] == reports.time_text(row["seconds"]["p50"])
    assert lines[2][11:] == ["", "31 %, drift 7 %", "2026-11-23, encore 0.1.0"]
    found[1]["rows"] = [row for row in found[1]["rows"] if row["workload"] != "minilm_1x16"]
    assert tables.cpus(found)[0][8] == "base_1x16, 1 layer: f32", "the first that all have"
    with pytest.raises(lab.LabError, match="no workload minilm_1x16 that all.*they have base_1x16"):
        tables.cpus(found, "minilm_1x16")


def test_a_page_holds_its_report(tmp_path, capsys):
    report = two()[0]
    page = tmp_path / "page.html"
    page.write_text(lab.report_page(report))
    assert lab.load(page) == report
    assert main(["compare", str(page), str(page), "--format", "json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["pairings"][0]["rows"]) == len(report["rows"])
    assert main(["table", str(page), "--workload", "base_1x16"]) == 0
    assert capsys.readouterr().out.startswith("| CPU | target |")
    page.write_text("<!DOCTYPE html>\n<p>another page</p>")
    assert main(["table", str(page)]) == 2
    assert "a page that holds no report" in capsys.readouterr().err
    assert main(["table", str(page), "--", "x"]) == 2


def test_the_page_of_cpus_has_the_columns_that_are_printed():
    page = (ROOT / "docs" / "cpus.md").read_text().split("\n## ")[0]
    head, _, *lines = [line for line in page.splitlines() if line.startswith("|")]
    report = synthetic_report(1)
    for row in report["rows"]:
        row["workload"] = row["workload"].replace("minilm_1x16", "minilm_1x128")
    printed = tables.as_text([report], "markdown").splitlines()
    assert head == printed[0]
    for line in lines:
        assert line.count(" |") == head.count(" |")
