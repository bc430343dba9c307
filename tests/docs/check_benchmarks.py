#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks the benchmarks against docs/benchmarks.md: their names, counters and operations an
element. No time is judged.

    check_benchmarks.py --root DIR --benchmarks DIR
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

TYPES = {"f32", "bf16", "f16", "int8", "int4"}
# One quick benchmark with each counter.
QUICK = {"bench_elementwise": "exp/f32/n:4096/", "bench_max_sim": "max_sim/int8/1x1000",
         "bench_tokenizer": "tokenizer/one_query",
         "bench_layers": "stages/f32/example_32x10",
         "bench_matmul": "linear_cold/f32/M:1/N:768/K:768"}


def distinct(pairs):
    names = [name for name, _ in pairs]
    assert len(names) == len(set(names)), f"a name is there twice: {names}"
    return dict(pairs)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--benchmarks", type=pathlib.Path, required=True)
    options = parser.parse_args()
    if not (options.benchmarks / "bench_matmul").exists():
        sys.exit(77)  # they were not built
    page = (options.root / "docs/benchmarks.md").read_text("utf-8")

    def run(program, *flags, status=0):
        done = subprocess.run([options.benchmarks / program, *flags], capture_output=True,
                              text=True, check=False)
        assert done.returncode == status, f"{program} {flags}: {done.stderr}"
        return done.stdout + (done.stderr if status else "")

    programs = sorted(path.stem for path in (options.root / "bench").glob("bench_*.cc"))
    assert sorted(set(re.findall(r"^\| `(bench_\w+)` \|", page, re.M))) == programs
    for program in programs:
        names = run(program, "--benchmark_list_tests").split()
        assert names
        for name in names:
            parts = name.split("/")
            known = [part for part in parts[:3] if part in TYPES]
            assert known or parts[0] == "tokenizer", f"{program}: {name} has no type"
            if parts[0] not in ("contract", "free", "tokenizer") and program != "bench_layers":
                assert f"`{parts[0].removesuffix('_cold')}`" in page, f"{name} is not in the page"

    counters = set()
    for program, pattern in QUICK.items():
        report = json.loads(run(program, f"--benchmark_filter={pattern}", "--threads=1",
                                "--benchmark_min_time=0.001", "--benchmark_format=json"),
                            object_pairs_hook=distinct)
        row, = report["benchmarks"]
        counters |= set(row) - {"name", "run_name", "run_type", "threads", "iterations", "label",
                                "real_time", "cpu_time", "time_unit", "repetitions",
                                "repetition_index", "family_index", "per_family_instance_index"}
    section = page.split("## Counters")[1].split("\n\n")[2]
    documented = set(re.findall(r"`([^`]+)`", re.sub(r"^(\|[^|]*\|).*$", r"\1", section,
                                                     flags=re.M)))
    assert counters == documented, f"{sorted(counters ^ documented)}"

    source = (options.root / "bench/elementwise.h").read_text("utf-8")
    counts = {re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower(): count
              for name, count in re.findall(r"k(\w+)Flops = (\d+);", source)}
    table = dict(re.findall(r"^\| `(\w+)`[^|]*\| (\d+)", page, re.M))
    assert table == counts, f"{table} in the page, {counts} in the source"

    assert "docs/benchmarks.md" in run("bench_elementwise", "--help")
    refused = run("bench_elementwise", "--benchmark_min_time=much", status=2)
    assert "--benchmark_min_time=much: found a flag" in refused, refused


main()
