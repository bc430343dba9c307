# SPDX-License-Identifier: Apache-2.0
"""Pages: one HTML document each, that needs no other file, no script and no network, light or dark
as the reader's system is."""

from __future__ import annotations

import base64
import dataclasses
import functools
import json
from collections.abc import Callable, Sequence
from typing import Any

import jinja2

from . import attention as attentions
from . import comparison, figures, reports
from .comparison import Pairing
from .reports import Report, explained
from .style import Figure

Draw = Callable[..., "Figure | None"]


@dataclasses.dataclass(frozen=True)
class Picture:
    """A figure in both themes, with the words below it."""
    name: str  # of a file
    light: Figure
    dark: Figure
    caption: str


def picture(name: str, caption: str, draw: Draw, *arguments: Any) -> list[Picture]:
    """None of them where there is nothing to draw."""
    light = draw(*arguments)
    if light is None:
        return []
    dark = draw(*arguments, dark=True)
    assert dark is not None
    return [Picture(name, light, dark, reports.clean(caption))]


@dataclasses.dataclass(frozen=True)
class Table:
    """lines[0] is the head."""
    lines: list[list[str]]
    numbers: range = range(0)  # columns that are set flush right


@dataclasses.dataclass
class Section:
    title: str = ""
    text: Sequence[str] = ()
    notes: Sequence[str] = ()   # as a list
    warnings: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    table: Table | None = None
    held: Report | None = None


def _address(figure: Figure) -> str:
    return "data:image/svg+xml;base64," + base64.b64encode(figure.as_bytes("svg")).decode("ascii")


@functools.cache
def _template() -> jinja2.Template:
    environment = jinja2.Environment(loader=jinja2.PackageLoader("pyencore.lab", "."),
                                     autoescape=True, trim_blocks=True, lstrip_blocks=True,
                                     undefined=jinja2.StrictUndefined)
    environment.filters["address"] = _address
    environment.filters["held"] = lambda report: reports.HELD + base64.b64encode(
        json.dumps(report).encode()).decode("ascii")
    environment.filters["clean"] = reports.clean
    return environment.get_template("page.html.j2")


def page(title: str, sections: Sequence[Section]) -> str:
    return _template().render(title=reports.clean(title), sections=sections)


# ---- A report -----------------------------------------------------------------------------------

def report_sections(report: Report) -> list[Section]:
    counts = reports.thread_counts(report)
    ends = sorted({*counts[:1], *counts[-1:]})  # the fewest and the most threads
    rooflines = [one for threads in ends for one in picture(
        f"roofline_{threads}", "Bytes are those of the weights alone.", figures.roofline, report,
        threads)]
    speed = [one for threads in counts[:1] for one in picture(
        "speed", "Weights in cache. Each panel has its own scale. More workloads may be in the "
        "table.", figures.speed, report, threads)]
    scaling = picture("scaling", "Speed over that of the fewest threads, weights in cache.",
                      figures.scaling, report)
    latency = [one for threads in ends for one in picture(
        f"latency_{threads}", "Weights in cache. Axes end a little above p99, which wants 100 "
        "calls. More workloads may be in the table.", figures.latency, report, threads)]
    sections = [_head(report)]
    if rooflines:
        sections.append(Section("Roofline", pictures=rooflines))
    if speed:
        sections.append(Section("Speed by precision and SIMD target", pictures=speed))
    sections.append(Section("Scaling by threads", pictures=scaling, text=() if scaling else
                            ("Only one number of threads was measured. `encore bench --threads "
                             "1..all` measures each.",)))
    if latency:
        sections.append(Section("Latency", pictures=latency))
    return [*sections, *_models(report), *_servers(report), _all_rows(report), *_sensors(report),
            *_hardware(report["machine"].get("hardware", {}))]


def _models(report: Report) -> list[Section]:
    lines = {(row["model"]["name"], reports.precision_of(row)): [
        row["model"]["name"], reports.precision_of(row), _megabytes(row["model"]["bytes"]),
        _megabytes(opening["packed_bytes"]), _megabytes(opening["resident_bytes"]),
        *(reports.time_text(opening[name]) if opening[name] else ""
          for name in ("seconds", "cached", "first_call"))]
        for row in report["rows"] if (opening := row.get("opening"))}
    return [Section("Opening and memory", text=(
        "Opening packs the weights, or maps packed ones where they are cached; files were read "
        "before. Packed: the layers' matrices. Resident: by how much the process grew until the "
        "first call was over, pages of mapped files included.",), table=Table(
            [["model", "precision", "file", "packed", "resident", "opening", "cached",
              "first call"], *lines.values()], range(2, 8)))] if lines else []


def _megabytes(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count else ""


def _servers(report: Report) -> list[Section]:
    rows = [row for row in report["rows"] if "server" in row]
    lines = [[reports.clean(row["workload"]), reports.precision_of(row), str(row["threads"]),
              f"{load} %" if (load := row["server"]["load_percent"]) else "back to back",
              f"{row['server']['calls_per_s']:,.1f}", f"{row['useful_tokens_per_s']:,.0f}",
              *(reports.time_text(seconds) if seconds else "" for seconds in (
                  *(row["seconds"][name] for name in ("p50", "p90", "p99")),
                  row["server"]["p99_9"], row["seconds"]["max"]))] for row in rows]
    return [Section("As a server", text=(
        "Copies of the model, one thread each. Under load calls arrive at random, in percent of "
        "what is done back to back, and times count from their arrival.",), table=Table(
            [["workload", "precision", "copies", "load", "calls/s", "tokens/s", "p50", "p90",
              "p99", "p99.9", "max"], *lines], range(2, 11)))] if rows else []


def _head(report: Report) -> Section:
    machine, run, noise = report["machine"], report["run"], report["noise"]
    return Section(text=(
        reports.machine_text(report),
        f"L1d {reports.bytes_text(machine['l1d_bytes'])}, L2 "
        f"{reports.bytes_text(machine['l2_bytes'])}, L3 {reports.bytes_text(machine['l3_bytes'])}; "
        f"{machine['architecture']}; SIMD targets, best first: {', '.join(machine['targets'])}; "
        f"cores: {machine['cores_text'] or machine['cores']}",
        f"Measured {report['created']} in {run['seconds']:.0f} s"
        + (f", about {reports.time_text(run['seconds_per_row'])} a row"
           if run["seconds_per_row"] else "") + f". Threads from: {run['threads_from']}; "
        f"{run['binding']}",
        "Time of all cores that other processes took: "
        f"{reports.percent_text(noise['busy_percent'])}, other virtual machines: "
        f"{reports.percent_text(noise['steal_percent'])}. Drift of one core's peak in the course "
        f"of the run: {reports.percent_text(noise['peak_drift_percent'])}.",
        *(["; ".join(run["settings"])] if "settings" in run else [])),
        warnings=reports.noise_sentences(report))


def _sensors(report: Report) -> list[Section]:
    """Energy, clock and temperature, if anything of them is known."""
    columns = (("watts", "W"), ("joules_per_text", "J/text"), ("joules_per_token", "J/token"),
               ("tokens_per_joule", "tokens/J"), ("clock_mhz", "MHz"), ("temperature_c", "C"))
    lines = [["workload", "precision", "target", "weights", "threads",
              *(title for _, title in columns), "throttled"]]
    for row in report["rows"]:
        found = row.get("sensors", {})
        if all(value is None for value in found.values()):
            continue
        lines.append([row["workload"], reports.precision_of(row), row["target"], row["weights"],
                      str(row["threads"]),
                      *("" if found[name] is None else reports.number(found[name])
                        for name, _ in columns),
                      {None: "", True: "yes", False: "no"}[found["throttled"]]])
    source, idle = report["run"].get("energy_source"), report["run"].get("idle_watts")
    text = (f"Energy is that of {source}, the idle machine's included: "
            f"{'unknown' if idle is None else reports.number(idle)} W.",) if source else ()
    return [Section("Energy, clock and temperature", text, table=Table(lines, range(4, 11)))
            ] if lines[1:] else []


def _hardware(facts: dict[str, Any]) -> list[Section]:
    """None of a report without them, which an older program wrote."""
    def words(fact: Any) -> list[str]:
        texts = fact if isinstance(fact, list) else ["not known" if fact is None else str(fact)]
        return texts or ["none"]

    lines = [[name.replace("_", " ").replace("mhz", "MHz") if i == 0 else "", text]
             for name, fact in facts.items() for i, text in enumerate(words(fact))]
    return [Section("The machine", table=Table([["", "as kernel and firmware have it"], *lines]))
            ] if lines else []


def _of_roof(roof: dict[str, Any] | None) -> str:
    """A cache's bandwidth can be measured too low while other work had the cache."""
    if not roof:
        return ""
    share = 100 * roof["share"]
    return (f"{share:.0f} % of {roof['name']}" if share < 105 else
            f"more than the {roof['name']} that was measured")


def _all_rows(report: Report) -> Section:
    lines = [["engine", "workload", "precision", "target", "weights", "checked", "layers",
              "threads", "calls", "p50", "p99", "operations", "tokens/s", "texts/s",
              "of its roof"]]
    for row in report["rows"]:
        seconds, roof = row["seconds"], row["roof"]
        lines.append([f"{row['engine']} {row['engine_version']}", row["workload"],
                      reports.precision_of(row), row["target"], row["weights"],
                      "yes" if row["verified"] else "no", str(row["layers"]), str(row["threads"]),
                      f"{row['calls']:,}", reports.time_text(seconds["p50"]),
                      reports.time_text(seconds["p99"]) if seconds["p99"] else "",
                      f"{reports.number(row['gflops'])} {reports.operations_of(row)}",
                      f"{row['useful_tokens_per_s']:,.0f}",
                      f"{row['texts_per_s']:,.1f}" if "texts_per_s" in row else "",
                      _of_roof(roof)])
    # What all rows have in common is said once, so that the table fits a page.
    columns = [column for column in zip(*lines, strict=True)
               if any(column[1:]) or not report["rows"]]
    once = [column for column in columns if column[0] in ("engine", "checked") and
            len(set(column[1:])) == 1]
    kept = [column for column in columns if column not in once]
    first = [column[0] for column in kept].index("layers")
    return Section("All rows", text=(
        *(f"{column[0].capitalize()}, of all rows: {column[1]}." for column in once),
        "Times and tokens are those of one call of so many layers; padding is no token. Checked: "
        "before timing, the " +
        ("model's first layers on four tokens agreed with a reference in double precision, and the "
         "output was finite and, bit for bit, what one thread alone computes."
         if {row["engine"] for row in report["rows"]} == {"encore"} else
         "output was as near to a reference as the precision's bound asks."),),
        table=Table([list(line) for line in zip(*kept, strict=True)],
                    range(first, len(kept) - 1)), held=report)


@explained
def report_page(report: Report) -> str:
    return page(f"encore on {report['machine']['cpu']}", report_sections(report))


# ---- A comparison -------------------------------------------------------------------------------

def comparison_sections(pairings: Sequence[Pairing], runs: Sequence[Report],
                        names: Sequence[str]) -> list[Section]:
    sections = [Section(text=(f"{chr(65 + i)}: {name}, {reports.machine_text(run)}, "
                              f"{run['created']}",), warnings=reports.noise_sentences(run))
                for i, (name, run) in enumerate(zip(names, runs, strict=True))]
    sections.append(Section(text=(comparison.RULE,)))
    for pairing in pairings:
        sections.append(Section(
            f"{pairing.letter} against A", notes=pairing.notes(),
            pictures=picture(f"ratios_{pairing.letter}", pairing.summary() + ".", figures.ratios,
                             pairing),
            table=Table(comparison.table(pairing), comparison.NUMBER_COLUMNS)))
    return sections


@explained
def comparison_page(pairings: Sequence[Pairing], runs: Sequence[Report],
                    names: Sequence[str]) -> str:
    if len(names) != len(runs):
        raise reports.LabError(f"names has {len(names)}; wanted one for each of {len(runs)} runs")
    return page("Reports side by side", comparison_sections(pairings, runs, names))


# ---- Attention ----------------------------------------------------------------------------------

def attention_sections(attention: attentions.Attention, layer: int | None = None,
                       head: int | None = None) -> list[Section]:
    if not attentions.is_model(attention):
        return [Section("The weights", pictures=picture("weights", "", attentions.weights,
                                                        attention)),
                Section("Every step", pictures=picture("steps", "", attentions.steps, attention))]
    kinds = attention["kinds"]
    sections = [Section(pictures=picture("attention", "Framed: the head that is shown large.",
                                         attentions.heads, attention, layer, head))]
    if kinds:
        shares = [[str(i + 1), *(f"{100 * share:.0f}" for share in shares)]
                  for i, shares in enumerate(attention["shares_of_layers"])]
        sections.append(Section("What the words look at", text=(
            "In percent, mean over words and heads.",),
            table=Table([["layer", *kinds], *shares], range(0, len(kinds) + 1))))
        heads = range(attention["heads"])
        habits = [[str(i + 1), *(attentions.habit(attention, i, j) for j in heads)]
                  for i in range(attention["layers"])]
        sections.append(Section(
            "What each head's words look at most",
            table=Table([["layer", *(f"head {j + 1}" for j in heads)], *habits], range(0, 1))))
    return sections


@explained
def attention_page(attention: attentions.Attention, layer: int | None = None,
                   head: int | None = None) -> str:
    return page(attentions.title(attention), attention_sections(attention, layer, head))
