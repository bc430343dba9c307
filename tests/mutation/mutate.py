#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Mutation test of engine/ apart from its kernels: small wrong changes, each of which some test
# should notice. All are compiled into one build of a copy of the sources, and a variable of the
# environment makes one of them active (header.py). Where the changes are is in sites.py. A tool for
# developers; needs Clang and ninja; nothing runs it by itself.
#
#   mutate.py make [--count N] [--seed N] [--headers] [--without REGEX]
#                          draw, build in build/mutants, drop what does not compile, learn which
#                          tests reach which mutant; in headers as well; without some files
#   mutate.py run [--seconds S] [--slowest S] [--only ID ...]
#                          run tests on those that have no result, or survived
#   mutate.py show         the results by folder, and the survivors
#
# A mutant is killed when a test fails that reaches it, crashes, or takes ten times as long. Tests
# that take more than --slowest seconds are left out, and so are all after --seconds of one mutant's
# tests. A survivor is equivalent, or asks for a test. The command line and its tests are left out.

import argparse
import collections
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import threading

import header
import sites
from units import Tests, in_parallel

ROOT = pathlib.Path(__file__).resolve().parents[2]
HERE = ROOT / "build/mutants"
SOURCES, BUILD = HERE / "src", HERE / "bin"
TABLE, UNITS, RESULTS = HERE / "mutants.json", HERE / "units.json", HERE / "results.json"
FOLDERS = ["nn", "ops", "io", "base", "platform", "text", "tokenizer",
           "models", "c_api"]
CMAKE = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release", "-DENCORE_QUICK_BUILD=ON",
         "-DENCORE_SIMD=widths", "-DENCORE_FEW_TILES=ON", "-DENCORE_BUILD_BENCHMARKS=OFF",
         "-DENCORE_BUILD_TOOLS=OFF", "-DENCORE_INSTALL=OFF",
         "-DCMAKE_CXX_FLAGS=-w -Wno-c++11-narrowing"]


def load(path, default):
    return json.loads(path.read_text()) if path.exists() else default


def write_copy(mutants, without):
    """The tree with these mutants in it; files that stay the same keep their time."""
    edits = collections.defaultdict(list)
    for mutant in mutants:
        edits[mutant["file"]].append(mutant)
    for top in ["CMakeLists.txt", "engine", "examples", "include", "reference", "tests", "tools"]:
        for path in [ROOT / top] if (ROOT / top).is_file() else sorted((ROOT / top).rglob("*")):
            name = path.relative_to(ROOT).as_posix()
            if not path.is_file() or "__pycache__" in path.parts or without.search(name):
                continue
            data = path.read_bytes()
            if name in edits:
                data = sites.apply(data.decode(), edits[name]).encode()
            copy = SOURCES / name
            if not copy.exists() or copy.read_bytes() != data:
                copy.parent.mkdir(parents=True, exist_ok=True)
                copy.write_bytes(data)
                shutil.copymode(path, copy)
    if not (SOURCES / header.NAME).exists():
        (SOURCES / header.NAME).parent.mkdir(parents=True, exist_ok=True)
        (SOURCES / header.NAME).write_text(header.TEXT)
    if not (SOURCES / ".deps").exists() and (ROOT / ".deps").exists():
        (SOURCES / ".deps").symlink_to((ROOT / ".deps").resolve())


def draw(count, seed, suffixes):
    """About as many mutants of each folder, at most one a line."""
    rng = random.Random(seed)
    drawn = []
    for nth, folder in enumerate(FOLDERS):
        found = {}
        for path in sorted((ROOT / "engine" / folder).glob("*")):
            if path.suffix in suffixes:
                for site in sites.find(path.read_text()):
                    name = path.relative_to(ROOT).as_posix()
                    found.setdefault((name, site["line"]), []).append(site | {"file": name})
        lines = sorted(found)
        rng.shuffle(lines)
        wanted = (count - len(drawn)) // (len(FOLDERS) - nth)
        drawn += [rng.choice(found[line]) for line in lines[:wanted]]
    return [mutant | {"id": number} for number, mutant in enumerate(drawn, start=1)]


def broken(output, mutants):
    """The mutants that the compiler's errors point at; where none does, all of the file."""
    bad = set()
    for block in re.split(r"\n(?=\S*: error:|\S+:\d+:\d+: error:)", output):
        if ": error:" not in block:
            continue
        places = re.findall(r"src/(engine/[\w/.-]+):(\d+):\d+: (?:error|note)", block)
        if "error: too many errors" in block or "error: static_assert" in block and not places:
            continue
        hit = set()
        for file, line in places:
            line = int(line) - 1  # the first line is an #include
            hit = {m["id"] for m in mutants
                   if m["file"] == file and m["line"] <= line <= m["last_line"]}
            if hit:
                break
        if not hit and places:
            hit = {m["id"] for m in mutants if m["file"] == places[0][0]}
        bad |= hit
    return bad


def make(count, seed, headers, without):
    mutants = draw(count, seed, [".cc", ".h"] if headers else [".cc"])
    print(f"{len(mutants)} drawn", flush=True)
    while True:
        write_copy(mutants, re.compile(without))
        if not (BUILD / "build.ninja").exists():
            subprocess.run(["cmake", "-S", SOURCES, "-B", BUILD, *CMAKE], check=True,
                           stdout=subprocess.DEVNULL, env={"CXX": "clang++", **os.environ})
        built = subprocess.run(["ninja", "-C", BUILD, "-k", "0", "-j", str(os.cpu_count())],
                               capture_output=True, text=True)
        if built.returncode == 0:
            break
        bad = broken(built.stdout, mutants)
        (HERE / "build.log").write_text(built.stdout)
        if not bad:
            sys.exit(f"mutate.py: the copy does not compile; see {HERE / 'build.log'}")
        mutants = [m for m in mutants if m["id"] not in bad]
        print(f"{len(bad)} do not compile, {len(mutants)} left", flush=True)
    TABLE.write_text(json.dumps(mutants, indent=1))
    RESULTS.unlink(missing_ok=True)
    units = Tests(BUILD, HERE).learn([m["id"] for m in mutants])
    UNITS.write_text(json.dumps(units))
    print(f"{len(units)} units of tests, {sum(u['seconds'] for u in units):.0f} s")


def run(seconds, slowest, only):
    mutants, units, results = load(TABLE, []), load(UNITS, []), load(RESULTS, {})
    pending = [m for m in mutants
               if (m["id"] in only if only else not results.get(str(m["id"]), [""])[0])]
    random.Random(0).shuffle(pending)  # so that the first are of all folders
    tests = Tests(BUILD, HERE)
    writing = threading.Lock()
    rooms = {str(m["id"]): m["file"].split("/")[1] for m in mutants}

    def runner(worker):
        while True:
            try:
                mutant = pending.pop()
            except IndexError:
                return
            room = mutant["file"].split("/")[1]
            with writing:
                kills = collections.Counter(
                    result[0].split(":")[0] for number, result in results.items()
                    if rooms[number] == room)
            mine = [u for u in units if mutant["id"] in u["reaches"] and u["seconds"] <= slowest]
            # Fast ones first, and those that killed others of the room.
            mine.sort(key=lambda u: u["seconds"] / (1 + 3 * kills[u["binary"]]))
            killer, ran = tests.kill(mutant["id"], mine, worker, seconds)
            reaching = sum(mutant["id"] in u["reaches"] for u in units)
            with writing:
                results[str(mutant["id"])] = [killer, ran, reaching]
                RESULTS.write_text(json.dumps(results))
            print(f"{mutant['id']:4} {'killed by ' + killer if killer else 'SURVIVED'} "
                  f"({ran} of {reaching} ran)  {mutant['file']}:{mutant['line']} "
                  f"{mutant['change']}", flush=True)

    in_parallel(runner)


def show():
    results = load(RESULTS, {})
    rows = collections.defaultdict(lambda: [0, 0, 0])
    for mutant in load(TABLE, []):
        killer, ran, reaching = results.get(str(mutant["id"]), ["", 0, 0])
        row = rows[mutant["file"].split("/")[1]]
        row[0] += 1
        row[1] += bool(killer)
        row[2] += not reaching
        if not killer:
            print(f"{mutant['id']:4} {mutant['file']}:{mutant['line']} {mutant['change']}   "
                  f"({ran} of {reaching})\n       {mutant['text']}")
    for folder, (built, killed, unreached) in rows.items():
        print(f"{folder:10} {built:4} built {killed:4} killed {built - killed:4} alive, of them "
              f"{unreached} that no test reaches")


def main():
    parser = argparse.ArgumentParser(description="Mutation test of the engine.")
    commands = parser.add_subparsers(dest="command", required=True)
    making = commands.add_parser("make")
    making.add_argument("--count", type=int, default=440)
    making.add_argument("--seed", type=int, default=1)
    making.add_argument("--headers", action="store_true")
    making.add_argument("--without", default="^$", metavar="REGEX")
    running = commands.add_parser("run")
    running.add_argument("--seconds", type=float, default=1e9)
    running.add_argument("--slowest", type=float, default=1e9)
    running.add_argument("--only", type=int, nargs="*", default=[])
    commands.add_parser("show")
    arguments = vars(parser.parse_args())
    {"make": make, "run": run, "show": show}[arguments.pop("command")](**arguments)


if __name__ == "__main__":
    main()
