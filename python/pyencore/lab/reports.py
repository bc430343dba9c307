# SPDX-License-Identifier: Apache-2.0
"""Reports of `encore bench --json`: reading them, their words, and what figures pick from them.

A report is the dict that report.schema.json describes, which is the whole definition of the form.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import importlib.resources
import inspect
import json
import os
import pathlib
import re
import unicodedata
from collections.abc import Callable, Iterable, Sequence
from typing import Any, ParamSpec, TypeVar

from pyencore._inputs import checked, shown

P = ParamSpec("P")
R = TypeVar("R")
Report = dict[str, Any]
Row = dict[str, Any]

VERSION = 1
HELD = "data:application/json;base64,"  # before the report that a page holds


class LabError(ValueError):
    """One sentence for whoever gave the file or the flag."""


@functools.cache
def schema() -> dict[str, Any]:
    text = importlib.resources.files(__package__).joinpath("report.schema.json").read_text("utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


@functools.cache
def _validator() -> Any:
    import jsonschema
    return jsonschema.Draft202012Validator(schema())


def _refuse_constant(name: str) -> float:
    raise LabError(f"{name} is no number of JSON")


def check(report: Report, name: str = "report") -> Report:
    """The report itself if it is one; raises LabError with file, member and what is wrong."""
    check_integers(report, name)
    if isinstance(report, dict):
        version = report.get("encore_report")
        if version is None:
            raise LabError(f"{name}: encore_report is absent, wanted a report of "
                           "`encore bench --json`")
        if isinstance(version, int) and version > VERSION:
            raise LabError(f"{name}: encore_report is {version}, a report of a newer version; "
                           f"pyencore reads version {VERSION}")
    error = next(iter(sorted(_validator().iter_errors(report), key=_depth)), None)
    if error is None:
        return report
    # The alternative that fits best says most.
    while error.context:
        error = min(error.context, key=_depth)
    message = error.message if len(error.message) < 160 else f"{error.message[:150]} ..."
    raise LabError(f"{name}: {error.json_path}: {clean(message)}")


def _depth(error: Any) -> tuple[int, str]:
    return -len(error.absolute_path), error.json_path


@checked
def load(source: str | os.PathLike[str] | Report) -> Report:
    """A report from a file, a page of one, or a dict that is one; raises LabError."""
    if isinstance(source, dict):
        return check(source)
    return check(read_json(source, parse_constant=_refuse_constant), str(source))


def read_json(source: str | os.PathLike[str], **options: Any) -> Any:
    """A file's value; raises LabError."""
    if "\0" in str(source):
        raise LabError(f"source is {shown(str(source))}; wanted a path without a zero byte")
    try:
        text = pathlib.Path(source).read_text("utf-8")
        page = text.startswith("<!DOCTYPE html>")
        held = page and re.search(f'"{HELD}([^"]*)"', text)
        if page and not held:
            raise LabError(f"{clean(str(source))}: a page that holds no report, as those of "
                           "comparisons and of attention; wanted a report or its page")
        return json.loads(base64.b64decode(held[1]) if held else text, **options)
    except LabError:
        raise
    except OSError as error:
        raise LabError(f"{source}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise LabError(f"{clean(str(source))}: no JSON: {error}") from None


def check_integers(value: Any, name: str) -> None:
    """Refuses integers beyond 64 bits, which figures cannot count with."""
    parts: list[tuple[str, Any]] = [(f"{name}: $", value)]
    while parts:
        path, one = parts.pop()
        if isinstance(one, dict):
            parts.extend((f"{path}.{key}", inside) for key, inside in one.items())
        elif isinstance(one, list):
            parts.extend((f"{path}[{i}]", inside) for i, inside in enumerate(one))
        elif isinstance(one, int) and not -2**63 <= one < 2**63:
            raise LabError(f"{clean(path)} is {shown(one)}; wanted an integer of at most 64 bits")


_FAULTS = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


def explained(function: Callable[P, R]) -> Callable[P, R]:
    """The function with checked arguments. Where it fails on a report that is none, LabError says
    what is wrong with the report."""
    names = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except LabError:
            raise
        except _FAULTS:
            for name, value in [*zip(names, args, strict=False), *named.items()]:
                _check_inside(name, value)
            raise

    return checked(call)


def _check_inside(name: str, value: Any) -> None:
    if name == "attention":
        check_integers(value, name)
        raise LabError("attention has other members or shapes; wanted the output of `encore attend "
                       "--json`")
    if isinstance(value, dict):
        check(value, name)
    elif isinstance(value, list):
        for i, one in enumerate(value):
            _check_inside(f"{name}[{i}]", one)


# ---- What figures pick --------------------------------------------------------------------------

# The colour of a series, and the order of bars.
PRECISIONS = ("f32", "bf16", "int8", "bf16 (AMX)", "int4")


def precision_of(row: Row) -> str:
    return f"{row['precision']}{' (AMX)' if row['amx_bf16'] else ''}"


def precision_rank(row: Row) -> int:
    name = precision_of(row)
    return PRECISIONS.index(name) if name in PRECISIONS else len(PRECISIONS)


def engine_of(row: Row) -> str:
    """"AVX2" of encore; a peer's name of the others."""
    return str(row["target"] if row["engine"] == "encore" else row["engine"])


def workload_of(row: Row) -> str:
    """"base_1x128, 1 layer", "onnxruntime base_1x128, 12 layers"."""
    name = row["workload"] if row["engine"] == "encore" else f"{row['engine']} {row['workload']}"
    return clean(f"{name}, {counted(row['layers'], 'layer')}")


def operations_of(row: Row) -> str:
    """The unit of a row's or a roof's speed."""
    return "GOP/s" if row["precision"].startswith("int") else "GFLOP/s"


def best_target(report: Report) -> str:
    """The first of the machine's targets that encore has a row of; "" without any."""
    measured = [row["target"] for row in report["rows"] if row["engine"] == "encore"]
    return next((target for target in report["machine"]["targets"] if target in measured),
                measured[0] if measured else "")


def of_best_target(report: Report) -> list[Row]:
    """Rows of the best target, and of peers."""
    best = best_target(report)
    return [row for row in report["rows"] if row["engine"] != "encore" or row["target"] == best]


def warm(rows: Iterable[Row]) -> list[Row]:
    """Those with weights in cache, or all if none are."""
    rows = list(rows)
    return [row for row in rows if row["weights"] == "warm"] or rows


def back_to_back(rows: Iterable[Row]) -> list[Row]:
    """Without a server's under load, which is as fast as calls arrive."""
    return [row for row in rows if "server" not in row or row["server"]["load_percent"] is None]


def with_threads(rows: Iterable[Row], threads: int) -> list[Row]:
    return [row for row in rows if row["threads"] == threads]


def thread_counts(report: Report) -> list[int]:
    return sorted({row["threads"] for row in report["rows"]})


def workloads(report: Report) -> list[str]:
    """Their names, in the rows' order."""
    return list(dict.fromkeys(row["workload"] for row in report["rows"]))


def slot_range(row: Row) -> tuple[float, float]:
    """Seconds that 10 % and 90 % of a row's slots did not exceed."""
    slots = sorted(row["slots"])
    low, high = (float(slots[round(share * (len(slots) - 1))]) for share in (0.1, 0.9))
    return low, high


def disturbed(row: Row) -> bool:
    """Whether its slots are further apart than on a quiet machine."""
    low, high = slot_range(row)
    return high > (1 + MUCH_DRIFT / 100) * low


# ---- Words --------------------------------------------------------------------------------------

def clean(text: str) -> str:
    """Without control characters, bidirectional ones included: safe in a terminal and in XML."""
    return "".join("\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Cs")
                   else c for c in str(text))


def shortened(text: str, length: int) -> str:
    return text if len(text) <= length else text[:length - 3] + "..."


def counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


def number(value: float) -> str:
    """Three digits, and plain: "0.25", "40", "2,500"."""
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.1e}"


def time_text(seconds: float) -> str:
    """"812 us", "3.41 ms", "1.20 s"."""
    for unit, factor in (("us", 1e6), ("ms", 1e3), ("s", 1)):
        value = seconds * factor
        if value < 999.5 or unit == "s":
            break
    return f"{value:.{2 if value < 9.995 else 1 if value < 99.95 else 0}f} {unit}"


def bytes_text(count: int) -> str:
    if count == 0:
        return "unknown"
    value = float(count)
    for unit in ("B", "KiB", "MiB", "GiB"):
        if value < 1024 or unit == "GiB":
            break
        value /= 1024
    return f"{value:.4g} {unit}"


def percent_text(percent: float) -> str:
    return "unknown" if percent < 0 else f"{percent:.1f} %"


def threads_text(threads: int) -> str:
    return counted(threads, "thread")


def machine_text(report: Report) -> str:
    machine = report["machine"]
    return clean(", ".join([machine["cpu"], counted(machine["cores"], "core"), machine["system"],
                            machine["compiler"], f"encore {report['encore']}"]))


def identity(report: Report, *words: str) -> str:
    """Whose a figure is: processor, words, date, program, and how busy the machine was."""
    commit = report["machine"].get("commit", "")
    parts = [report["machine"]["cpu"], *words, report["created"][:10],
             f"encore {report['encore']}" + f" ({commit})" * bool(commit)]
    taken = 100 * taken_share(report)
    if taken > MUCH_BUSY:
        parts.append(f"beside other work, which took {min(taken, 100):.0f} % of the time")
    return clean(", ".join(part for part in parts if part))


def table_text(lines: Sequence[Sequence[str]], numbers: Sequence[int], markdown: bool) -> str:
    """lines[0] is the head; numbers: the columns that are set flush right."""
    columns = range(len(lines[0]))
    if markdown:
        rows = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        rows.insert(1, ["---:" if i in numbers else ":---" for i in columns])
        return "\n".join("| " + " | ".join(row) + " |" for row in rows)
    widths = [max(len(line[i]) for line in lines) for i in columns]
    return "\n".join("  ".join(line[i].rjust(widths[i]) if i in numbers else
                               line[i].ljust(widths[i]) for i in columns).rstrip()
                     for line in lines)


def write(path: str | os.PathLike[str], data: str | bytes) -> None:
    """A file, whole or not at all; raises LabError."""
    part = f"{os.fspath(path)}.part"
    try:
        with open(part, "wb") as file:
            file.write(data.encode("utf-8") if isinstance(data, str) else data)
        os.replace(part, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            os.remove(part)  # of a full disk
        raise LabError(f"{path}: cannot be written: {error.strerror}") from None


# ---- Noise --------------------------------------------------------------------------------------

# From here on a run counts as disturbed, in percent.
MUCH_BUSY, MUCH_STEAL, MUCH_DRIFT = 5, 1, 10


def taken_share(report: Report) -> float:
    """Of all cores' time, what other processes and other machines took."""
    noise = report["noise"]
    return sum(max(float(noise[name]), 0) for name in ("busy_percent", "steal_percent")) / 100


def noise_sentences(report: Report) -> list[str]:
    """About a run that was disturbed; none of a quiet one. The report's own notes are first."""
    noise = report["noise"]
    sentences = [clean(note) for note in noise["notes"]]
    if noise["busy_percent"] > MUCH_BUSY:
        sentences.append(f"Other processes took {noise['busy_percent']:.0f} % of all cores' time: "
                         "speeds are lower than on a quiet machine.")
    if noise["steal_percent"] > MUCH_STEAL:
        sentences.append(f"Other virtual machines took {noise['steal_percent']:.1f} % of all "
                         "cores' time: speeds are lower than on a quiet host.")
    if noise["peak_drift_percent"] > MUCH_DRIFT:
        sentences.append(f"The peak of one core moved by {noise['peak_drift_percent']:.0f} % in "
                         "the course of the run: clocks changed, or the core was shared.")
    if noise.get("memory_drift_percent", 0) > MUCH_DRIFT:
        sentences.append(f"Memory's bandwidth moved by {noise['memory_drift_percent']:.0f} % in "
                         "the course of the run: other programs or machines had a part of it.")
    return sentences
