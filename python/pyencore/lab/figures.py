# SPDX-License-Identifier: Apache-2.0
"""Figures of reports and comparisons. Each function returns a figure, or None where the report has
nothing for it; dark=True draws it for a dark page."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from . import comparison, reports
from .comparison import Pairing
from .reports import Report, Row, explained
from .style import Figure, Places, Theme, headed_figure, log_axis, spread, themed

WIDTH = 10.4  # inches
MOST_PANELS = 12  # the table has the other workloads
MOST_LINES = 8
MARKS = "os^Dv<>Phd"  # of engines, of lines
LEGEND_COLUMNS = 7
SAME_PEAK = 0.02  # two measurements of one instruction differ by less

_plain = FuncFormatter(lambda value, _: reports.number(value))


def _intensity(row: Row) -> float:
    return float(row["flops"] / row["weight_bytes"])


def _gflops(row: Row) -> float:
    return float(row["gflops"])


def _colour(row: Row, theme: Theme) -> str:
    return theme.series[reports.precision_rank(row)]


def _precision_legend(figure: SubFigure, rows: Sequence[Row], theme: Theme,
                      extra: Sequence[Any] = ()) -> None:
    names = {reports.precision_rank(row): reports.precision_of(row) for row in rows}
    handles = [Patch(color=theme.series[rank], label=names[rank]) for rank in sorted(names)]
    figure.legend(handles=[*handles, *extra], loc="upper left", bbox_to_anchor=(0.005, 1),
                  ncols=LEGEND_COLUMNS, fontsize=8.5, handlelength=1, columnspacing=1.4,
                  borderaxespad=0.3)


def _whisker(theme: Theme) -> Line2D:
    return Line2D([], [], color=theme.ink, label="p10 to p90 of the slots")


# ---- The roofline -------------------------------------------------------------------------------

@themed
@explained
def roofline(report: Report, threads: int | None = None, *, theme: Theme) -> Figure | None:
    """The roofline of the machine (Williams, Waterman & Patterson 2009) with the rows of so many
    threads (or the fewest) on the best target, a panel a precision. Workloads are numbers, in the
    order of reports.workloads; engines are marks."""
    threads = threads if threads is not None else next(iter(reports.thread_counts(report)), 1)
    rows = reports.with_threads(reports.back_to_back(reports.of_best_target(report)), threads)
    if not rows:
        return None
    best = reports.best_target(report)
    panels = sorted({row["precision"] for row in rows}, key=reports.PRECISIONS.index)
    names = reports.workloads(report)
    shown = [name for name in names if any(row["workload"] == name for row in rows)]
    key = textwrap.wrap(", ".join(f"{names.index(name) + 1}\N{NO-BREAK SPACE}{reports.clean(name)}"
                                   for name in shown), 150)
    columns = min(len(panels), 2)
    down = math.ceil(len(panels) / 2)
    marks = dict(zip(dict.fromkeys(["encore", *(row["engine"] for row in rows)]), MARKS,
                     strict=False))
    above = 0.2 * math.ceil((len(panels) + 3 + len(marks)) / LEGEND_COLUMNS)
    total = above + 4.2 * down + 0.16 * len(key)
    figure, body = headed_figure(
        WIDTH, total, f"Roofline of {report['machine']['cpu']} on {reports.threads_text(threads)}",
        [reports.identity(report, reports.threads_text(threads), best)])
    body.text(0.01, 0.04 / total, "\n".join(key), fontsize=8, color=theme.muted, va="bottom")
    roofs = [roof for roof in report["roofs"] if roof["threads"] == threads and
             roof.get("target", best) == best]
    for i, precision in enumerate(panels):
        axes = body.add_axes(((i % columns) / columns + 0.07,
                              1 - (above + 4.2 * (i // 2) + 3.8) / total,
                              0.925 / columns - 0.045 * (columns - 1), 3.5 / total))
        _roofline_panel(axes, [row for row in rows if row["precision"] == precision], precision,
                        roofs, names, marks, theme)

    def mark(shape: str, filled: bool, words: str) -> Line2D:
        return Line2D([], [], linestyle="", marker=shape, markersize=6.5, label=words,
                      markeredgecolor=theme.muted,
                      markerfacecolor=theme.muted if filled else theme.ground)

    extra: list[Any] = [_whisker(theme), mark("o", True, "weights in cache (warm)")]
    if any(row["weights"] == "cold" for row in rows):
        extra.append(mark("o", False, "weights from memory (cold)"))
    extra += [mark(marks[engine], True, engine) for engine in list(marks)[1:]]
    _precision_legend(body, rows, theme, extra)
    return figure


def _roofline_panel(axes: Axes, rows: Sequence[Row], precision: str,
                    roofs: Sequence[dict[str, Any]], names: Sequence[str], marks: dict[str, str],
                    theme: Theme) -> None:
    unit = reports.operations_of(rows[0])
    peaks = {roof["precision"]: roof["flops_per_s"] * 1e-9 for roof in roofs
             if roof["kind"] == "compute"}
    read = _read_in_order([roof for roof in roofs if roof["kind"] == "read"])
    # Precisions that multiply with the same instruction have one line.
    same = {name: peak for name, peak in peaks.items()
            if reports.operations_of({"precision": name}) == unit and
            abs(peaks.get(precision, 0) / peak - 1) < SAME_PEAK}
    peak = next((peaks[name] for name in reports.PRECISIONS if name in same), 0.0)
    top = max([*map(_gflops, rows), peak])
    # So far to the left that the slopes are seen.
    x_low = min([*map(_intensity, rows), *(0.4 * top / (roof["bytes_per_s"] * 1e-9)
                                           for roof in read)]) / 2
    x_high = max(map(_intensity, rows)) * 2
    y_low, y_high = min(map(_gflops, rows)) / 3, top * 1.7
    axes.set(xscale="log", yscale="log", xlim=(x_low, x_high), ylim=(y_low, y_high),
             title=precision)
    axes.set_ylabel(f"speed ({unit})", fontsize=8, labelpad=1)
    axes.set_xlabel("operations for each byte of weights", fontsize=8, labelpad=1)
    axes.tick_params(labelsize=8)
    log_axis(axes.xaxis, x_low, x_high)
    log_axis(axes.yaxis, y_low, y_high)
    axes.grid(True)
    places = Places(axes)
    _read_roofs(axes, places, read, top, theme)
    if peak:
        others = " and ".join(name for name in same if name != precision)
        axes.set_title(f"{precision} (peak {reports.number(round(peak))} {unit}"
                       f"{f', as of {others}' if others else ''})")
        colour = theme.series[reports.PRECISIONS.index(precision)]
        fastest = max((roof["bytes_per_s"] for roof in read), default=0) * 1e-9
        left = max(x_low, peak / fastest) if fastest else x_low
        axes.plot([min(left, x_high), x_high], [peak, peak], color=colour, linewidth=1.4)
        y = places.pixels(x_low, peak)[1]
        places.take(places.area.x0, y - 2, places.area.x1, y + 2)
    for row in rows:
        x, y, colour = _intensity(row), _gflops(row), _colour(row, theme)
        filled = row["weights"] == "warm"
        ends = [min(max(y * row["seconds"]["p50"] / seconds, y_low), y_high)
                for seconds in reports.slot_range(row)]
        axes.plot([x, x], ends, color=colour, linewidth=1, zorder=2.5)
        axes.plot(x, y, marker=marks.get(row["engine"], MARKS[-1]), markersize=7, color=colour,
                  markeredgewidth=1.6, markerfacecolor=colour if filled else theme.ground,
                  markeredgecolor=theme.ground if filled else colour, zorder=3, clip_on=False)
        px, py = places.pixels(x, y)
        places.take(px - 6, py - 6, px + 6, py + 6)
    for row in rows:
        places.label(_intensity(row), _gflops(row), str(names.index(row["workload"]) + 1),
                     _colour(row, theme))


def _read_in_order(roofs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Without a cache that was no faster than what is behind it: other work had it."""
    return [roof for i, roof in enumerate(roofs)
            if all(roof["bytes_per_s"] > further["bytes_per_s"] for further in roofs[i + 1:])]


def _read_roofs(axes: Axes, places: Places, roofs: Sequence[dict[str, Any]], top: float,
                theme: Theme) -> None:
    """Slopes from the left or lower edge up to the highest roof, with names along them."""
    (x_low, x_high), (y_low, _) = axes.get_xlim(), axes.get_ylim()
    last = None  # of the last name at the start of its slope: bytes a second
    for roof in roofs:
        rate = roof["bytes_per_s"] * 1e-9
        left, right = max(x_low, y_low / rate), min(x_high, top / rate)
        if left >= right:
            continue
        axes.plot([left, right], [left * rate, right * rate], color=theme.muted, linewidth=1.4)
        start, end = np.array(places.pixels(left, left * rate)), np.array(
            places.pixels(right, right * rate))
        length = float(np.hypot(*(end - start)))
        along = (end - start) / length
        digits = 1 if rate < 10 else 0
        name = f"{roof['level']} {reports.number(round(rate, digits))} GB/s"
        wide = 6.2 * len(name)
        # Behind that of a neighbour which is too near for two names side by side.
        near = last is not None and abs(places.pixels(left, rate)[1] -
                                        places.pixels(left, last)[1]) < 30
        offset = 10 + (wide + 20 if near else 0)
        if not near:
            last = rate
        for step in np.arange(0, length, 5):  # no label on the line
            x, y = start + along * step
            places.take(x - 3, y - 3, x + 3, y + 3)
        if offset + wide > length:
            continue
        normal = np.array([-along[1], along[0]])
        at = axes.transData.inverted().transform(start + along * offset + normal * 4)
        axes.text(at[0], at[1], name, color=theme.muted, fontsize=8, rotation_mode="anchor",
                  rotation=math.degrees(math.atan2(along[1], along[0])), va="bottom", ha="left")
        for step in np.arange(offset, offset + wide, 5):
            x, y = start + along * step + normal * 10
            places.take(x - 5, y - 7, x + 5, y + 7)


# ---- Panels -------------------------------------------------------------------------------------

@themed
@explained
def speed(report: Report, threads: int | None = None, *, theme: Theme) -> Figure | None:
    """One panel a workload: tokens a second of each precision and target, and of peers, warm."""
    threads = threads if threads is not None else next(iter(reports.thread_counts(report)), 1)
    panels: dict[tuple[str, int], list[Row]] = {}
    for row in reports.with_threads(reports.back_to_back(reports.warm(report["rows"])), threads):
        panels.setdefault((row["workload"], row["layers"]), []).append(row)
    if not panels:
        return None
    kept = [(key, sorted(rows, key=reports.precision_rank))
            for key, rows in list(panels.items())[:MOST_PANELS]]
    # A row of panels is as high as its higher one.
    heights = [max(len(rows) for _, rows in kept[i:i + 2]) for i in range(0, len(kept), 2)]
    inches = [0.185 * height + 0.75 for height in heights]
    total = sum(inches) + 0.35
    figure, body = headed_figure(WIDTH, total, "Tokens a second by precision and target, on "
                                 f"{reports.threads_text(threads)}",
                                 [reports.identity(report, reports.threads_text(threads))])
    above = 0.35
    for i, (key, rows) in enumerate(kept):
        height = 0.185 * len(rows)
        left = 0.16 + 0.5 * (i % 2)
        axes = body.add_axes((left, 1 - (above + 0.3 + height) / total, 0.31, height / total))
        _bars(axes, rows, theme)
        axes.set_title(reports.shortened(reports.clean(key[0]), 40) +
                       f", {reports.counted(key[1], 'layer')}")
        if i % 2 == 1:
            above += inches[i // 2]
    shown = [row for _, rows in kept for row in rows]
    hatched = Patch(facecolor=theme.ground, edgecolor=theme.muted, hatch="/////",
                    label="disturbed: p10 and p90 more than 10 % apart")
    _precision_legend(body, shown, theme,
                      [_whisker(theme), *([hatched] if any(map(reports.disturbed, shown)) else [])])
    return figure


def _bars(axes: Axes, rows: Sequence[Row], theme: Theme) -> None:
    speeds = [row["tokens_per_s"] for row in rows]
    most = 1.3 * max(speeds)
    bars = axes.barh(range(len(rows)), speeds, height=0.74, edgecolor=theme.ground, linewidth=0,
                     color=[_colour(row, theme) for row in rows])
    axes.set(ylim=(len(rows) - 0.5, -0.5), xlim=(0, most))
    axes.set_yticks(range(len(rows)),
                    [reports.shortened(reports.clean(f"{reports.precision_of(row)}  "
                                                     f"{reports.engine_of(row)}"), 26)
                     for row in rows])
    axes.tick_params(axis="y", labelcolor=theme.ink, labelsize=8)
    axes.tick_params(axis="x", labelsize=8)
    axes.xaxis.set_major_locator(MaxNLocator(3))
    axes.xaxis.set_major_formatter(_plain)
    axes.set_xlabel("tokens/s", fontsize=8, labelpad=1)
    axes.spines["bottom"].set_visible(False)
    for i, (row, value, bar) in enumerate(zip(rows, speeds, bars, strict=True)):
        if reports.disturbed(row):
            bar.set_hatch("/////")
        ends = [min(value * row["seconds"]["p50"] / seconds, most / 1.22)
                for seconds in reports.slot_range(row)]
        axes.plot(ends, [i, i], color=theme.ink, linewidth=1.2)
        axes.annotate(reports.number(value), (max(value, *ends), i), (4, 0),
                      textcoords="offset points", va="center", fontsize=8)


@themed
@explained
def latency(report: Report, threads: int | None = None, *, theme: Theme) -> Figure | None:
    """A row of panels a workload, a panel a precision: seconds at each percentile of the calls,
    best target, warm, with p50 and p99 marked. The axis ends a little above p99; the text has the
    maximum."""
    threads = threads if threads is not None else next(iter(reports.thread_counts(report)), 1)
    rows = [row for row in reports.with_threads(reports.warm(reports.of_best_target(report)),
                                                threads) if row.get("quantiles")]
    if not rows:
        return None
    names = list(dict.fromkeys(map(reports.workload_of, rows)))
    rows.sort(key=lambda row: (names.index(reports.workload_of(row)), reports.precision_rank(row)))
    columns = min(max(len({reports.precision_of(row) for row in rows}), 3), 4)
    rows = rows[:MOST_PANELS]
    down = math.ceil(len(rows) / columns)
    figure, body = headed_figure(
        WIDTH, 2.35 * down, f"Latency of calls on {reports.threads_text(threads)}",
        [reports.identity(report, reports.threads_text(threads), reports.best_target(report)),
         "Axes begin a little below the fastest call and end a little above p99."])
    for i, row in enumerate(rows):
        left, bottom = (i % columns + 0.2) / columns, 1 - (i // columns + 1) / down
        axes = body.add_axes((left, bottom + 0.21 / down, 0.75 / columns, 0.58 / down))
        _curve(axes, row, 110 // columns, theme)
    return figure


def _curve(axes: Axes, row: Row, letters: int, theme: Theme) -> None:
    seconds = row["seconds"]
    unit, factor = next(((name, size) for name, size, most in
                         (("us", 1e6, 1e-3), ("ms", 1e3, 1)) if seconds["p50"] < most), ("s", 1))
    times = np.asarray(row["quantiles"]) * factor
    low = times[0]
    high = max((seconds["p99"] or seconds["p90"]) * factor, low * 1.02)
    margin = 0.15 * (high - low)
    axes.set(xlim=(0, 100), ylim=(max(low - margin, 0), high + 1.6 * margin))
    axes.plot(range(101), times, color=_colour(row, theme), linewidth=1.6)
    axes.text(-0.24, 1.17, reports.shortened(f"{reports.precision_of(row)}  "
                                             f"{reports.workload_of(row)}", letters),
              transform=axes.transAxes, fontweight="bold", fontsize=9)
    p99 = (f"p99 {reports.time_text(seconds['p99'])}" if seconds["p99"] else
           f"no p99 of {reports.counted(row['calls'], 'call')}")
    axes.text(-0.24, 1.05, f"p50 {reports.time_text(seconds['p50'])}, {p99}, max "
                           f"{reports.time_text(seconds['max'])}", transform=axes.transAxes,
              color=theme.muted, fontsize=7.5)
    for percent, name in ((50, "p50"), (99, "p99")):
        if seconds[name]:
            at = min(max(seconds[name] * factor, low - margin), high + margin)
            axes.plot(percent, at, marker="o", markersize=5, color=_colour(row, theme),
                      clip_on=False)
            axes.annotate(name, (percent, at), (-5, 3), textcoords="offset points", ha="right",
                          va="bottom", fontsize=8)
    axes.xaxis.set_major_locator(FixedLocator([0, 25, 50, 75, 100]))
    axes.yaxis.set_major_locator(MaxNLocator(4))
    axes.yaxis.set_major_formatter(_plain)
    axes.tick_params(labelsize=8)
    axes.set_xlabel("percentile of the calls", fontsize=8, labelpad=1)
    axes.set_ylabel(f"latency ({unit})", fontsize=8, labelpad=2)
    axes.grid(True, axis="y")


# ---- Threads ------------------------------------------------------------------------------------

@themed
@explained
def scaling(report: Report, *, theme: Theme) -> Figure | None:
    """Speed over that of one thread (or the fewest), best target, warm; one line a workload, at
    most MOST_LINES, in f32, or in the precision of the most such rows if none is in f32."""
    rows = reports.back_to_back(reports.warm(reports.of_best_target(report)))
    precisions = [reports.precision_of(row) for row in rows]
    if not rows:
        return None
    precision = "f32" if "f32" in precisions else max(sorted(set(precisions)),
                                                      key=precisions.count)
    lines: dict[str, dict[int, Row]] = {}
    for row in rows:
        if reports.precision_of(row) == precision:
            lines.setdefault(reports.workload_of(row), {}).setdefault(row["threads"], row)
    lines = {name: dict(sorted(found.items())) for name, found in lines.items() if len(found) > 1}
    lines = dict(list(lines.items())[:MOST_LINES])
    if not lines:
        return None
    least = min(min(found) for found in lines.values())
    most = max(max(found) for found in lines.values())
    ups = {name: [row["tokens_per_s"] / next(iter(found.values()))["tokens_per_s"]
                  for row in found.values()] for name, found in lines.items()}
    top = max(most / least, *(max(up) for up in ups.values())) * 1.06

    figure, body = headed_figure(
        WIDTH, 3.9, "Speed by number of threads",
        [reports.identity(report, reports.counted(report["machine"]["cores"], "core"),
                          reports.best_target(report))])
    axes = body.add_axes((0.06, 0.13, 0.6, 0.83))
    wide = most / least > 8
    bottom = min(1.0, *(min(up) for up in ups.values())) / 1.06 if wide else 0.0
    axes.set(xlim=(least, most), ylim=(bottom, top),
             xlabel="threads (whiskers: p10 to p90 of the slots)",
             ylabel=f"speed-up over {reports.threads_text(least)}, {precision}")
    if wide:
        axes.set(xscale="log", yscale="log")
        log_axis(axes.yaxis, bottom, top)

    def share(value: float, low: float, high: float) -> float:  # of an axis
        return (math.log(value / low) / math.log(high / low) if wide else
                (value - low) / (high - low))

    ticks: list[int] = []
    for count in sorted({count for found in lines.values() for count in found}):
        if not ticks or share(count, least, most) - share(ticks[-1], least, most) > 0.05:
            ticks.append(count)
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_locator(FixedLocator(ticks))
    axes.xaxis.set_major_formatter(_plain)
    axes.grid(True)
    ends = [(most / least, "ideal", theme.muted, "--")]
    axes.plot([least, most], [1, most / least], "--", color=theme.muted, linewidth=1.2)
    for i, (name, found) in enumerate(lines.items()):
        colour = theme.series[i]
        for (count, row), up in zip(found.items(), ups[name], strict=True):
            axes.plot([count] * 2, [min(max(up * row["seconds"]["p50"] / seconds, bottom), top)
                                    for seconds in reports.slot_range(row)],
                      color=colour, clip_on=False)
        axes.plot(list(found), ups[name], marker=MARKS[i], markersize=5.5, color=colour,
                  clip_on=False, markeredgecolor=theme.ground, zorder=3)
        ends.append((ups[name][-1], f"{reports.shortened(name, 36)}  {ups[name][-1]:.2f}", colour,
                     "-"))
    heights = spread([share(end[0], bottom, top) for end in ends], 0.06, 0.02, 0.98)
    for (value, words, colour, dashes), height in zip(ends, heights, strict=True):
        axes.plot([1.01, 1.04], [share(value, bottom, top), height], dashes, color=colour,
                  linewidth=1.2, transform=axes.transAxes, clip_on=False)
        axes.text(1.048, height, words, color=colour, va="center", transform=axes.transAxes)
    return figure


# ---- Comparisons --------------------------------------------------------------------------------

def _run_words(name: str, report: Report) -> str:
    """The file or program, and what two builds of one commit may differ in."""
    flags = report["machine"].get("flags", "")
    return reports.shortened(", ".join(filter(None, [
        name, reports.identity(report, reports.best_target(report)),
        report["machine"]["compiler"], flags])), 150)


def _ratio_ticks(low: float, high: float) -> list[float]:
    """With one at 1."""
    if high / low >= 2.5:
        return [tick for tick in (0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 5, 7, 10)
                if low <= tick <= high]
    step = next(one for one in (0.01, 0.02, 0.05, 0.1, 0.2, 0.5) if (high - low) / one <= 7)
    return [round(1 + k * step, 2) for k in range(math.ceil((low - 1) / step),
                                                  math.floor((high - 1) / step) + 1)]


@themed
@explained
def ratios(pairing: Pairing, *, theme: Theme) -> Figure:
    """Dots and whiskers on noise bands, one line a row. The axis is logarithmic: a ratio of 2 is
    as far from 1 as one of 0.5."""
    rows = pairing.rows
    high_inches = 0.2 * len(rows)
    total = high_inches + 0.95
    figure, body = headed_figure(
        WIDTH + 0.6, total, f"Ratios of speeds, {pairing.letter} over A",
        [f"{letter}: {_run_words(name * (name != letter), report)}" for letter, name, report in
         zip(("A", pairing.letter), pairing.names, (pairing.base, pairing.other), strict=True)])
    axes = body.add_axes((0.44, 0.55 / total, 0.34, high_inches / total))
    lows = [min(row.ratio.low, row.band.low) for row in rows]
    highs = [max(row.ratio.high, row.band.high) for row in rows]
    # Both sides seen, and at least a tenth of either.
    low, high = min(min(lows) / 1.02, 0.9), max(max(highs) * 1.02, 1.1)
    axes.set(xscale="log", xlim=(low, high), ylim=(len(rows) - 0.5, -0.5),
             xlabel=f"speed of {pairing.letter} over A (log scale; right of 1 "
                    f"{pairing.letter} is faster)")
    log_axis(axes.xaxis, low, high)
    if high / low < 10:
        axes.xaxis.set_major_locator(FixedLocator(_ratio_ticks(low, high)))
    colours = {comparison.FASTER: theme.series[2], comparison.SLOWER: theme.series[1]}
    marks = {comparison.FASTER: ">", comparison.SLOWER: "<", comparison.INCONCLUSIVE: "D",
             comparison.TOO_FEW: "x"}
    axes.barh(range(len(rows)), [row.band.high - row.band.low for row in rows], height=0.86,
              left=[row.band.low for row in rows], color=theme.band)
    axes.axvline(1, color=theme.ink, linewidth=1)
    for i, row in enumerate(rows):
        colour = colours.get(row.verdict, theme.muted)
        axes.plot([row.ratio.low, row.ratio.high], [i, i], color=colour, linewidth=1.5)
        axes.plot(row.ratio.value, i, marker=marks.get(row.verdict, "o"), markersize=5.5,
                  color=colour)
        words = "" if row.verdict == comparison.SAME else row.verdict.removesuffix(" to tell")
        axes.text(1.02, i, f"{row.ratio}  {words}".rstrip(), color=colour, va="center", fontsize=8,
                  transform=axes.get_yaxis_transform())
    axes.set_yticks(range(len(rows)), [
        reports.shortened(f"{reports.workload_of(row.base)}  {row.precisions}  {row.targets}  "
                          f"{row.base['weights']}  {reports.threads_text(row.base['threads'])}",
                          68) for row in rows])
    axes.tick_params(axis="y", labelcolor=theme.ink, labelsize=8)
    axes.grid(True, axis="x")
    handles = [Line2D([], [], linestyle="", marker=marks.get(verdict, "o"), markersize=6,
                      color=colours.get(verdict, theme.muted), label=verdict)
               for verdict in (comparison.FASTER, comparison.SLOWER, comparison.SAME,
                               comparison.INCONCLUSIVE, comparison.TOO_FEW)]
    body.legend(handles=[*handles, Patch(color=theme.band, label="noise band")],
                  loc="upper left", bbox_to_anchor=(0.005, 1), ncols=6, fontsize=8.5,
                  borderaxespad=0.3, columnspacing=1.4)
    return figure
