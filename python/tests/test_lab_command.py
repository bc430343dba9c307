# SPDX-License-Identifier: Apache-2.0
"""python -m pyencore.lab: what it prints and writes, what it refuses, and every command and block
of Python in docs/pictures.md."""

import json
import os
import pathlib
import re
import shlex
import subprocess
import sys

import pytest

pytest.importorskip("pyencore.lab.pages")  # left out without the extra pyencore[plots]

from pyencore import lab
from pyencore.lab.__main__ import main
from synthetic_report import synthetic_report

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENCORE = os.environ.get("ENCORE")


@pytest.fixture(autouse=True)
def in_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def write(name, *arguments, **named):
    pathlib.Path(name).write_text(json.dumps(synthetic_report(*arguments, **named)))
    return name


def small(name, seed=1, **named):
    return write(name, seed, **{"slot_noise": 0.01, "targets": ("AVX2",), "threads": (1,), **named})


def printed(capsys, *arguments):
    assert main(arguments) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def refused(capsys, arguments, *words):
    before = sorted(os.listdir())
    assert main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.count("\n") == 1
    assert all(word in output.err for word in words), output.err
    assert sorted(os.listdir()) == before


def test_reports_side_by_side(capsys):
    a, b = small("a.json", 1), small("b.json", 2, speed=1.3)
    c = small("c.json", 3, speed=0.4)
    out = printed(capsys, "compare", a, b, c, "--out", "page.html")
    for words in ("A  a.json", "B against A", "C against A", "faster: 1.", "slower: 0.4",
                  "base_8x128, 12 layers", "30 rows: 30 faster, 0 slower, 0 without a real "
                  "difference.", "  noise band  verdict", "0.97 to 1.03  faster: 1."):
        assert words in out
    page = pathlib.Path("page.html").read_text()
    assert page.rstrip().endswith("</html>")
    assert "b.json" in page
    assert sorted(os.listdir()) == ["a.json", "b.json", "c.json", "page.html"]


def test_a_report_is_no_different_from_itself(capsys):
    a = small("a.json")
    assert "30 rows: 0 faster, 0 slower, 30 without" in printed(capsys, "compare", a, a)


def test_markdown_and_json(capsys):
    a, b = small("a.json", 1), small("b.json", 2, speed=1.3)
    table = printed(capsys, "compare", a, b, "--format", "markdown")
    assert ("| workload | precision | target | weights | threads | A, median of slots | "
            "B, median of slots | speed of B over A | noise band | verdict |\n"
            "| :--- | :--- | :--- | :--- | "
            "---: | ---: | ---: | ---: | ---: | :--- |\n| ") in table
    found = json.loads(printed(capsys, "compare", a, b, "--format", "json"))
    assert len(found["reports"]) == 2
    assert len(found["pairings"][0]["rows"]) == 30
    for row in found["pairings"][0]["rows"]:
        assert row["verdict"] == "faster"
        assert row["ratio"]["value"] == pytest.approx(1.3, abs=0.05)
        assert row["band"]["high"] < row["ratio"]["low"]


def test_two_precisions(capsys):
    a = small("a.json")
    out = printed(capsys, "compare", a, a, "--precision", "f32,int8")
    assert " f32 / int8 " in out
    assert "bf16" not in out
    refused(capsys, ["compare", a, a, "--precision", "f32"], "--precision")
    refused(capsys, ["compare", a, a, "--precision", "f32,f8"], "a.json", "no row in f8")


def test_a_report_as_page_and_figures(capsys):
    a = small("a.json", threads=(1, 2))
    assert printed(capsys, "report", a, "--out", "a.html", "--figures", "p", "--image", "png",
                   "--dark") == ""
    assert "All rows" in pathlib.Path("a.html").read_text()
    names = sorted(os.listdir("p"))
    assert names == ["latency_1.png", "latency_2.png", "roofline_1.png", "roofline_2.png",
                     "scaling.png", "speed.png"]
    assert all(pathlib.Path("p", name).read_bytes().startswith(b"\x89PNG") for name in names)


def test_unfit_flags_and_files(capsys):
    a, other = small("a.json"), small("other.json", threads=(3,))
    pathlib.Path("broken.json").write_text('{"encore_report": 1, "machine": {')
    pathlib.Path("newer.json").write_text('{"encore_report": 7}')
    pathlib.Path("page.html").write_text("before")
    out = ["--out", "page.html"]
    refused(capsys, ["compare", a, *out], "RUN", "1 run", "2 to 8")
    refused(capsys, ["compare", *[a] * 9], "9 runs", "2 to 8")
    refused(capsys, ["compare", a, "none.json", *out], "none.json")
    refused(capsys, ["compare", a, "broken.json", *out], "broken.json", "JSON")
    refused(capsys, ["compare", a, "newer.json", *out], "newer.json", "7", "version 1")
    refused(capsys, ["compare", a, other, *out], "other.json", "no row in common")
    refused(capsys, ["compare", a, a, "--out", "no/page.html"], "--out", "no/page.html")
    refused(capsys, ["compare", a, a, "--out", "c.docx"], "--out", "c.docx", ".html")
    refused(capsys, ["compare", a, a, "--", "--warm"], "behind --", "reports")
    refused(capsys, ["compare", "old/encore", "new/encore", "--", "--warm"], "old/encore: no such")
    assert main(["compare", "true", "false", "--", "--warm"]) == 2
    assert "true: `bench` wrote no report" in capsys.readouterr().err
    for option in ("--rounds", "--budget", "--kept"):
        refused(capsys, ["compare", a, a, option, "3"], f"{option} is for programs")
    refused(capsys, ["compare", a, sys.executable], "1 program", "two programs or none")
    refused(capsys, ["report", a], "--out", "--json")
    refused(capsys, ["report", a, "--json", "j.json"], "--json is", "a.json was given")
    refused(capsys, ["report", a, "--out", "r.html", "--quick"], "--quick is", "a.json was given")
    refused(capsys, ["report", "--out", "r.pdf"], "--out", "r.pdf", ".html")
    refused(capsys, ["report", "--out", "r.html", "--encore", "./none"], "./none", "encore command")
    refused(capsys, ["attention", "--out", "a.svg"], "neither")
    refused(capsys, ["attention", a, "--out", "a.svg"], "encore attend")
    refused(capsys, ["attention", a, "--out", "a.bmp"], "--out", ".svg")
    assert pathlib.Path("page.html").read_text() == "before"
    os.symlink("a.json", "link.html")
    refused(capsys, ["compare", a, a, "--out", "link.html"], "another file")


def test_help_tells_the_rule(capsys):
    with pytest.raises(SystemExit):
        main(["compare", "--help"])
    out = capsys.readouterr().out
    for words in ("order statistics", "noise band", "--out", "turns", "  python -m pyencore.lab"):
        assert words in out
    assert max(map(len, out.splitlines())) <= 100


def test_what_is_not_installed_is_named():
    code = ("import sys; sys.modules['jinja2'] = None\n"
            "from pyencore.lab.__main__ import main; sys.exit(main(['report', 'a', '--out', 'b']))")
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False,
                          env={**os.environ, "PYTHONPATH": str(ROOT / "python")})
    assert done.returncode == 2
    assert "pip install matplotlib jinja2 jsonschema numpy" in done.stderr


# ---- The pages of docs/ -------------------------------------------------------------------------

def blocks(language):
    text = (ROOT / "docs" / "pictures.md").read_text()
    return re.findall(rf"^```{language}\n(.*?)^```$", text, re.M | re.S)


# A report of one quick row stands for those that take minutes.
FAKE = """#!/bin/bash
set -e
case "$1" in
  attend) exec "$REAL" "$@" ;;
  info) echo '  supported  AVX2, SSE4  (by this machine)' ;;
  bench) for last; do :; done; cp "$SOURCE" "$last" ;;
esac
"""


@pytest.mark.skipif(not ENCORE, reason="LEFT OUT: ENCORE names no encore command")
def test_every_command_of_the_page(monkeypatch):
    small("before.json", 1)
    small("after.json", 2)
    small("bench.json", 3)
    for folder in ("old/bin", "new/bin", "build/release/bin", "build/clang/bin"):
        os.makedirs(folder)
        program = pathlib.Path(folder, "encore")
        program.write_text(FAKE)
        program.chmod(0o755)
    os.makedirs(".deps/models")
    os.symlink(ROOT / "tests/data/text/base", ".deps/models/all-MiniLM-L6-v2")
    monkeypatch.setenv("REAL", os.path.abspath(ENCORE) if os.path.isabs(ENCORE) else
                       str(ROOT / ENCORE))
    monkeypatch.setenv("SOURCE", os.path.abspath("bench.json"))
    monkeypatch.setenv("ENCORE", os.path.abspath("old/bin/encore"))
    commands = [shlex.split(line, comments=True) for block in blocks("sh")
                for line in block.splitlines()]
    own = [words for words in commands if words[:3] == ["python", "-m", "pyencore.lab"]]
    assert len(own) >= 8
    for words in commands:
        if words in own:
            assert main(words[3:]) == 0, words
        elif words[:2] == ["encore", "attend"]:
            assert subprocess.run(["bash", "-c", shlex.join(words[:-2]) + " > " + words[-1]],
                                  env={**os.environ, "PATH": "old/bin:" + os.environ["PATH"]},
                                  check=False).returncode == 0
    for name in ("page.html", "weights.png", "steps.html", "bench.html", "report.html"):
        assert pathlib.Path(name).stat().st_size > 10000
    for block in blocks("python"):
        exec(compile(block, "pictures.md", "exec"), {})


# ---- The command itself -------------------------------------------------------------------------

RUNS = (
    ["--workload", "example_32x10,minilm_1x16,minilm_6_layers_1x128", "--warm", "--seconds",
     "0.02"],
    ["--workload", "custom", "--d-model", "32", "--heads", "2", "--d-ff", "40", "--lengths",
     "5,1,9", "--threads", "1", "--precision", "int8", "--warm", "--seconds", "0"],
    ["--model", str(ROOT / "tests/data/text/base"), "--seconds", "0", "--threads", "1"],
)


@pytest.mark.skipif(not ENCORE, reason="LEFT OUT: ENCORE names no encore command")
@pytest.mark.parametrize("flags", RUNS, ids=("workloads", "custom", "model"))
def test_what_bench_writes_is_a_report(flags, capsys):
    program = ENCORE if os.path.isabs(ENCORE) else str(ROOT / ENCORE)
    report = lab.bench(program, flags)
    assert report["rows"]
    assert report["roofs"]
    assert len(lab.report_page(report)) > 50000
    pathlib.Path("b.json").write_text(json.dumps(report))
    assert f"{len(report['rows'])} row" in printed(capsys, "compare", "b.json", "b.json")


WAYS_TO_SPOIL = (
    lambda r: r.update(encore_report=2),
    lambda r: r.pop("roofs"),
    lambda r: r["noise"].update(more=1),
    lambda r: r["rows"][0]["seconds"].update(p50=0),
    lambda r: r["rows"][0].pop("engine"),
    lambda r: r["rows"][0]["quantiles"].pop(),
    lambda r: next(x for x in r["roofs"] if x["kind"] == "compute").update(level="L1"),
)


@pytest.mark.parametrize("spoil", WAYS_TO_SPOIL, ids=range(7))
def test_the_schema_sees_what_is_spoiled(spoil):
    report = synthetic_report(1, targets=("AVX2",), threads=(1,))
    lab.check(report)
    spoil(report)
    with pytest.raises(lab.LabError):
        lab.check(report)
