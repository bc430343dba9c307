# SPDX-License-Identifier: Apache-2.0
"""Reading reports: what was written comes back, and damage is one sentence that names file and
member."""

import copy
import json
import pathlib

import pytest

pytest.importorskip("pyencore.lab.pages")  # left out without the extra pyencore[plots]
pytest.importorskip("jsonschema")

from pyencore import lab
from pyencore.lab import reports
from synthetic_report import synthetic_report

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reports"
REPORT = synthetic_report(threads=(1,), slots=5)


def refusal(report):
    with pytest.raises(lab.LabError) as caught:
        reports.check(report, "r.json")
    sentence = str(caught.value)
    assert sentence.startswith("r.json: ")
    assert "\n" not in sentence
    assert len(sentence) < 300
    return sentence


def with_value(place, value):
    """The report with another value at this place; without it for None."""
    changed = copy.deepcopy(REPORT)
    *path, last = place
    part = changed
    for step in path:
        part = part[step]
    if value is None:
        del part[last]
    else:
        part[last] = value
    return changed


def test_the_schema_is_one():
    import jsonschema

    jsonschema.Draft202012Validator.check_schema(lab.schema())
    assert lab.schema()["properties"]["encore_report"]["const"] == reports.VERSION


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "r.json"
    path.write_text(json.dumps(REPORT))
    assert lab.load(path) == REPORT == lab.load(REPORT)


@pytest.mark.parametrize("name", ["best", "best_again", "avx2", "busy"])
def test_recorded_reports_are_read(name):
    report = lab.load(RECORDED / f"{name}.json")
    assert report["machine"]["cpu"] == "Intel(R) Xeon(R) Processor"
    assert [row["workload"] for row in report["rows"]] == ["minilm_1x16", "base_1x16"]
    for row in report["rows"]:
        assert len(row["slots"]) >= 3
        assert len(row["quantiles"]) == 101
        assert row["verified"]
        assert row["roof"]
    assert len(report["roofs"]) > 4


def test_a_busy_machine_is_named():
    (sentence,) = reports.noise_sentences(lab.load(RECORDED / "busy.json"))
    assert sentence.startswith("Other processes took 78 %")
    assert reports.noise_sentences(lab.load(RECORDED / "best.json")) == []
    busy = copy.deepcopy(REPORT)
    busy["noise"].update(busy_percent=40, steal_percent=3, peak_drift_percent=14,
                         memory_drift_percent=25)
    sentences = reports.noise_sentences(busy)
    assert [part in sentences[i] for i, part in enumerate(
        ("40 %", "3.0 %", "14 %", "25 %"))] == [True] * 4


@pytest.mark.parametrize(("text", "words"), [
    ("", "JSON"), ("[", "JSON"), ("[" * 100000, "JSON"), ('{"encore_report": NaN}', "NaN"),
    ("{}", "encore_report is absent"), ('{"encore_report": 1, "noise": 1e999}', "machine")])
def test_what_is_no_report_is_refused(tmp_path, text, words):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(lab.LabError) as caught:
        lab.load(path)
    assert "r.json" in str(caught.value) or "NaN" in str(caught.value)


def test_files_that_are_none_are_refused(tmp_path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(lab.LabError, match="cannot be read"):
            lab.load(path)


def test_a_newer_version_is_refused_by_its_number():
    sentence = refusal(with_value(["encore_report"], 2))
    assert "encore_report is 2" in sentence
    assert "newer" in sentence
    assert "version 1" in sentence


@pytest.mark.parametrize("place", [
    *([key] for key in ("machine", "run", "noise", "roofs", "rows")), ["machine", "cpu"],
    *(["rows", 3, key] for key in ("engine", "workload", "layers", "tokens", "precision", "threads",
                                   "weights", "flops", "weight_bytes", "seconds", "slots",
                                   "gflops")),
    ["rows", 0, "seconds", "p99"]])
def test_absent_members_are_named(place):
    sentence = refusal(with_value(place, None))
    assert f"'{place[-1]}' is a required property" in sentence
    assert "".join(f"[{step}]" if isinstance(step, int) else f".{step}"
                   for step in place[:-1]) in sentence


@pytest.mark.parametrize(("place", "value"), [
    (["rows"], {}), (["rows", 2], 7), (["rows", 2, "threads"], "two"),
    (["rows", 2, "threads"], 1.5), (["rows", 2, "threads"], 0), (["rows", 2, "amx_bf16"], 1),
    (["rows", 2, "slots"], "fast"), (["rows", 2, "slots", 1], "fast"), (["rows", 2, "roof"], 3),
    (["noise", "notes"], [1]), (["rows", 0, "flops"], 0), (["rows", 0, "flops"], float("inf")),
    (["rows", 0, "weight_bytes"], -5), (["rows", 0, "seconds", "p50"], -1e-3),
    (["rows", 0, "slots"], []), (["rows", 0, "slots"], [1e-3] * 65),
    (["rows", 0, "quantiles"], [1, 2]), (["rows", 0, "weights"], "hot"),
    (["noise", "busy_percent"], -3), (["noise", "more"], 1), (["roofs", 0, "level"], "L1"),
    (["roofs", 0, "flops_per_s"], 1e300), (["rows"], [{}] * 2001), (["roofs"], [{}] * 501)])
def test_other_values_are_refused(place, value):
    sentence = refusal(with_value(place, value))
    assert str(place[0]) in sentence


def test_what_may_be_absent():
    for place, value in ((["rows", 0, "quantiles"], None), (["noise", "busy_percent"], -1),
                         (["roofs"], [])):
        reports.check(with_value(place, value))


LOOP = {"hz": 60, "p99_9": None, "late": 0, "minor_faults": 0.1, "major_faults": 0,
        "allocations": None, "voluntary_switches": 1, "involuntary_switches": 0,
        "control": REPORT["rows"][0]["seconds"]}


def test_rows_in_frames():
    budget = {"seconds": 0.016, "fits": True, "max_length": 256}
    report = with_value(["rows", 0, "loop"], LOOP)
    report["rows"][0]["budget"] = budget
    reports.check(report)
    for key, value in (("hz", 1001), ("late", 0.5), ("allocations", -1), ("control", 1)):
        assert key in refusal(with_value(["rows", 0, "loop"], {**LOOP, key: value}))
    for key, value in (("seconds", 0), ("fits", 1), ("max_length", -1)):
        assert key in refusal(with_value(["rows", 0, "budget"], {**budget, key: value}))


def test_words():
    assert [reports.number(value) for value in (0, 0.25, 40, 2500)] == ["0", "0.25", "40", "2,500"]
    assert [reports.time_text(value) for value in (812e-6, 3.41e-3, 1.2, 0.99996e-3)] == [
        "812 us", "3.41 ms", "1.20 s", "1.00 ms"]
    assert [reports.bytes_text(count) for count in (0, 48 << 10, 3 << 19)] == [
        "unknown", "48 KiB", "1.5 MiB"]
    assert reports.clean("a\x1b[31m\u202e") == "a\ufffd[31m\ufffd"
