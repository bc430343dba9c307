#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds reports of `encore bench --json` and `encore report --json` against their JSON Schema, by
the package jsonschema. Then spoils each report in some ways that the schema must see.

    tools/python_env.sh jsonschema==4.26.0
    .deps/venv/bin/python tools/check_report.py --encore build/release/bin/encore
    .deps/venv/bin/python tools/check_report.py a.json [b.json ...]

Exit status: 0 all fit; 1 one does not, with a line for each offence; 2 bad usage.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import sys
import tempfile

import jsonschema

SCHEMA = pathlib.Path(__file__).resolve().parent / "encore" / "report.schema.json"
# What --encore writes: each kind of row, and every target.
RUNS = (
    ["bench", "--workload", "example_32x10,minilm_1x16,minilm_6_layers_1x128", "--seconds", "0.02"],
    ["bench", "--workload", "custom", "--d-model", "32", "--heads", "2", "--d-ff", "40",
     "--lengths", "5,1,9", "--threads", "1", "--precision", "int8", "--seconds", "0"],
    ["bench", "--model", str(SCHEMA.parent.parent.parent / "tests/data/text/base"), "--seconds",
     "0", "--threads", "1"],
    ["report", "--quick"],
)


def ways_to_spoil(report):
    """Pairs of words and a function, of the parts that the report has: a row, its quantiles and a
    roof may be missing."""
    yield "of version 2", lambda r: r.update(encore_report=2)
    yield "without roofs", lambda r: r.pop("roofs")
    yield "with a member that nobody knows", lambda r: r["noise"].update(more=1)
    if report["rows"]:
        yield "with a row that took no time", lambda r: r["rows"][0]["seconds"].update(p50=0)
        yield "with a row of no engine", lambda r: r["rows"][0].pop("engine")
    for i in [i for i, row in enumerate(report["rows"]) if row.get("quantiles")][:1]:
        yield "with 100 quantiles", lambda r: r["rows"][i]["quantiles"].pop()
    for i in [i for i, roof in enumerate(report["roofs"]) if roof["kind"] == "compute"][:1]:
        yield "with a roof of both kinds", lambda r: r["roofs"][i].update(level="L1")


def offences(validator, name, report):
    """A line for each: of a report that does not fit, or of a spoiled one that does."""
    errors = list(validator.iter_errors(report))
    for error in errors:
        yield f"{name}: {error.json_path}: {error.message[:200]}"
    for what, spoil in ways_to_spoil(report) if not errors else ():
        spoiled = copy.deepcopy(report)
        spoil(spoiled)
        if validator.is_valid(spoiled):
            yield f"{name}: the schema takes it {what}"


def written_by(encore):
    """Yields (name, report) of what the program writes."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "report.json")
        for run in RUNS:
            command = [str(encore), *run, "--json", str(path)]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            yield " ".join(["encore", *run]), json.loads(path.read_text(encoding="utf-8"))


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="reports")
    parser.add_argument("--encore", type=pathlib.Path, help="a program that is to write some")
    args = parser.parse_args()
    if bool(args.files) == bool(args.encore):
        parser.error("found both or neither of files and --encore, wanted one of them")

    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    validator = jsonschema.Draft202012Validator(schema)
    reports = written_by(args.encore) if args.encore else (
        (name, json.loads(pathlib.Path(name).read_text(encoding="utf-8"))) for name in args.files)
    found = []
    for name, report in reports:
        found += offences(validator, name, report)
        print(f"check_report: {name}: {len(report.get('rows', ()))} rows, "
              f"{len(report.get('roofs', ()))} roofs")
    print("\n".join(found), end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
