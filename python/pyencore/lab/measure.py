# SPDX-License-Identifier: Apache-2.0
"""Runs of the `encore` command: all that a machine can do, attention."""

from __future__ import annotations

import collections
import contextlib
import functools
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from typing import Any

from pyencore._inputs import checked, shown

from . import reports
from .reports import LabError, Report

# For targets that are not the best, and for a quick run.
FEW_WORKLOADS = "minilm_1x16,minilm_1x128,base_1x128"
SECONDS, QUICK_SECONDS = 0.3, 0.05
PRECISIONS = ("f32", "bf16", "int8", "int4")

Tell = Callable[[str], None]


@checked
def find_encore(path: str | None = None) -> str:
    """The command: the path that is given, of the environment (ENCORE), beside this Python, or on
    the PATH. Raises LabError where there is none."""
    beside = pathlib.Path(sys.executable).with_name("encore")
    for candidate in (path or os.environ.get("ENCORE"), str(beside), "encore"):
        found = shutil.which(candidate) if candidate else None
        if found:
            return found
        if candidate and candidate == path:
            raise LabError(f"path is {shown(path)}: found no program there, wanted the encore "
                           "command")
    raise LabError("found no encore command on the PATH; --encore says where it is")


def run(command: Sequence[str]) -> str:
    """What the command prints. Raises LabError with its own sentence where it fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else "an argument has a zero byte"
        raise LabError(f"{shown(command[0])} cannot be run: {why}") from None
    if done.returncode != 0:
        last = (done.stderr.strip() or "it said nothing").splitlines()[-1]
        raise LabError(f"{' '.join(command[:2])} ended with status {done.returncode}: {last}")
    return done.stdout


@checked
def bench(encore: str, flags: Sequence[str]) -> Report:
    """The report of one `encore bench` with these flags."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        run([encore, "bench", *flags, "--json", path])
        if not os.path.exists(path):
            raise LabError(f"{encore}: `bench` wrote no report; wanted an encore command")
        return reports.load(path)


def targets(encore: str) -> list[str]:
    """SIMD targets that this machine runs, best first."""
    for line in run([encore, "info"]).splitlines():
        words = line.replace(",", " ").split("(")[0].split()
        if words[:1] == ["supported"]:
            return words[1:]
    raise LabError(f"{encore} info names no supported target")


def merged(parts: Sequence[Report]) -> Report:
    """One report of several runs on one machine. Of a roof that several measured, the first
    counts."""
    roofs: dict[Any, dict[str, Any]] = {}
    for part in parts:
        for roof in part["roofs"]:
            key = tuple(roof.get(name) for name in ("kind", "target", "precision", "level",
                                                    "threads"))
            roofs.setdefault(key, roof)
    return reports.check({
        **with_noise_of(parts),
        "run": {**parts[0]["run"], "seconds": sum(part["run"]["seconds"] for part in parts)},
        "roofs": list(roofs.values()), "rows": [row for part in parts for row in part["rows"]]})


def with_noise_of(parts: Sequence[Report]) -> Report:
    """The first of several runs, with the most noise of all."""
    names = ("steal_percent", "busy_percent", "peak_drift_percent", "memory_drift_percent")
    noise = {name: max(part["noise"][name] for part in parts) for name in names
             if all(name in part["noise"] for part in parts)}
    # A note of several runs is told once: its sentence, without the rows behind the colon.
    told = [(note.split(": ")[0], note) for part in parts for note in part["noise"]["notes"]]
    counts = collections.Counter(sentence for sentence, _ in told)
    notes = [note if counts[sentence] == 1 else
             f"{sentence}: in {counts[sentence]} of {len(parts)} runs"
             for sentence, note in dict(told).items()]
    return {**parts[0], "noise": {**noise, "notes": notes}}


class Kept:
    """What is done, in a file as it is done: the same command, given again, goes on after it.
    Where the file cannot be written: tell says so, and what follows is not kept."""

    def __init__(self, path: str | os.PathLike[str] | None, whose: Sequence[Any],
                 tell: Tell | None = None) -> None:
        self._path, self._whose, self._tell = path, list(whose), tell
        self._done: dict[tuple[Any, ...], Any] = {}
        if path and os.path.exists(path):
            for line in pathlib.Path(path).read_text("utf-8").splitlines():
                with contextlib.suppress(ValueError):  # where the disk was full a line is cut
                    whose, what, found = json.loads(line)
                    if whose == self._whose:
                        self._done[tuple(what)] = found
        if self._done and tell:
            tell(f"goes on after what {path} has")

    def has(self, what: Sequence[Any]) -> bool:
        return tuple(what) in self._done

    def value(self, what: Sequence[Any], make: Callable[[], Any]) -> Any:
        """Of this name: from the file, or made and kept. Raises LabError where it cannot be, and
        there is no tell."""
        if tuple(what) not in self._done:
            self._done[tuple(what)] = found = make()
            if self._path:
                try:
                    with open(self._path, "a", encoding="utf-8") as file:
                        file.write("\n" + json.dumps([self._whose, list(what), found]) + "\n")
                except OSError as error:
                    why = f"{self._path}: cannot be written: {error.strerror}"
                    if self._tell is None:
                        raise LabError(why) from None
                    self._tell(f"{why}; what follows is not kept")
                    self._path = None
        return self._done[tuple(what)]

    def drop(self) -> None:
        """All is done."""
        if self._path:
            pathlib.Path(self._path).unlink(missing_ok=True)


def changed(program: str) -> list[Any]:
    """A program and its time, of which another build has another."""
    found = shutil.which(program)
    return [program, os.stat(found).st_mtime if found else 0]


@checked
def everything(encore: str, quick: bool = False, tell: Tell = lambda text: None,
               kept: str | None = None) -> Report:
    """The best target runs every workload of `encore bench`, warm and cold, in every precision, on
    one thread and on all; every other target a few of them, warm. quick: the few on the best target
    too, and shorter rows. kept: a file that keeps what is done, for a call that ends early."""
    done = Kept(kept, changed(encore), tell)
    bound = hasattr(os, "sched_getaffinity")
    cores = len(os.sched_getaffinity(0)) if bound else os.cpu_count() or 1
    threads = "1" if cores == 1 else f"1,{cores}"
    wanted = []
    for i, target in enumerate(targets(encore)):
        for precision in PRECISIONS:
            flags = ["--target", target, "--precision", precision, "--threads", threads,
                     "--seconds", str(QUICK_SECONDS if quick else SECONDS)]
            if quick or i > 0:
                flags += ["--workload", FEW_WORKLOADS, "--warm"]
            wanted.append((f"{target}, {precision}", flags))
    parts = []
    for i, (name, flags) in enumerate(wanted):
        tell(f"part {i + 1} of {len(wanted)}: {name}{' (kept)' * done.has(flags)}")
        parts.append(done.value(flags, functools.partial(bench, encore, flags)))
    return merged(parts)


@checked
def attend(encore: str, flags: Sequence[str]) -> dict[str, Any]:
    """What `encore attend` computes with these flags, as in its JSON."""
    found: dict[str, Any] = json.loads(run([encore, "attend", *flags, "--json"]))
    return found
