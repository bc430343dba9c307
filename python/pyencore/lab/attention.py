# SPDX-License-Identifier: Apache-2.0
"""Figures of attention, from the JSON that `encore attend --json` prints: of a real model, every
head small and one large; of an example with drawn or given matrices, every step."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from pyencore._inputs import checked

from . import reports
from .reports import LabError, explained
from .style import Figure, Theme, new_figure, themed

Attention = dict[str, Any]
Weights = npt.NDArray[np.float64]

MOST_TOKENS = 64  # more would be unreadable
MOST_LABEL = 16
LEAST_CURVE = 0.02


@checked
def load(source: str | os.PathLike[str] | Attention) -> Attention:
    """What `encore attend --json` printed, from a file or as a dict; raises LabError."""
    if not isinstance(source, dict):
        source = reports.read_json(source)
    if not isinstance(source, dict) or not {"tokens", "weights"} <= source.keys():
        raise LabError("found no tokens and weights, wanted the output of `encore attend --json`; "
                       "--file's block cases have neither")
    reports.check_integers(source, "attention")
    return source


def is_model(attention: Attention) -> bool:
    return "model" in attention


def labels(attention: Attention) -> list[str]:
    tokens = attention["tokens"]
    return [reports.shortened(reports.clean(token["token"] if is_model(attention) else token),
                              MOST_LABEL) for token in tokens]


def title(attention: Attention) -> str:
    if is_model(attention):
        return reports.clean(f"Who attends to whom: {attention['text']}")
    return reports.clean(f"Self-attention, step by step: {attention['title']}")


def all_weights(attention: Attention) -> Weights:
    """[layers, heads, T, T] of a model, [heads, T, S] of an example."""
    weights = np.asarray(attention["weights"], dtype=float)
    wanted = 4 if is_model(attention) else 3
    if is_model(attention) and ("layer" in attention or weights.ndim != wanted):
        raise LabError("the weights are those of one layer, wanted all: run `encore attend "
                       "--model` without --layer")
    return weights.reshape((1,) * (wanted - weights.ndim) + weights.shape)


# ---- Of a model ---------------------------------------------------------------------------------

def most_telling_head(attention: Attention) -> tuple[int, int]:
    """The head whose words give the largest weight to one of the other words (in a pair: of the
    other text), mean over words: it picks out words. Words beside each other and the same word
    again tell nothing. Counted from 0."""
    tokens, weights = attention["tokens"], all_weights(attention)
    words = [i for i, token in enumerate(tokens) if not token["special"]]
    pair = len({tokens[i]["text"] for i in words}) > 1

    def tells(i: int, j: int) -> bool:
        if abs(i - j) <= 1 or tokens[i]["id"] == tokens[j]["id"]:
            return False
        return not pair or tokens[i]["text"] != tokens[j]["text"]

    telling = np.array([[tells(i, j) for j in words] for i in words])
    if not telling.any():
        return 0, 0
    focus = (weights[:, :, words][:, :, :, words] * telling).max(axis=3).mean(axis=2)
    layer, head = np.unravel_index(int(np.argmax(focus)), focus.shape)
    return int(layer), int(head)


def habit(attention: Attention, layer: int, head: int) -> str:
    """"next 71 %", of what the head's words look at most; "" without words."""
    if not attention["kinds"]:
        return ""
    shares = attention["shares_of_heads"][layer][head]
    most = int(np.argmax(shares))
    return f"{reports.clean(attention['kinds'][most])} {100 * shares[most]:.0f} %"


def _chosen(attention: Attention, layer: int | None, head: int | None) -> tuple[int, int | None]:
    weights = all_weights(attention)
    for name, number, count in (("layer", layer, weights.shape[0]),
                                ("head", head, weights.shape[1])):
        if number is not None and not 1 <= number <= count:
            raise LabError(f"{name} is {number}, wanted 1 to {count}")
    if head is not None and layer is None:
        raise LabError("found a head without its layer")
    if layer is None:
        return most_telling_head(attention)
    return layer - 1, None if head is None else head - 1


@themed
@explained
def heads(attention: Attention, layer: int | None = None, head: int | None = None, *,
          theme: Theme) -> Figure:
    """Every head as a small heat map, and one of them large, as curves between the tokens: the
    chosen one, the mean of the chosen layer, or the most telling head. Layers and heads are counted
    from 1."""
    names = labels(attention)
    if len(names) > MOST_TOKENS:
        raise LabError(f"the text has {len(names)} tokens, and the figure shows {MOST_TOKENS} at "
                       "most")
    weights = all_weights(attention)
    count, across, n, _ = weights.shape
    chosen_layer, chosen_head = _chosen(attention, layer, head)

    cell = min(max(6.4 / across, 0.22), 0.6)
    maps_wide, maps_high = cell * across, cell * count
    diagram_high = 0.24 * n
    high = max(maps_high, diagram_high + 0.6)
    wide = 0.6 + maps_wide + 1.7 + 2.0 + 1.5
    figure = new_figure(wide, high + 1.35, title(attention))
    total = high + 1.35
    figure.text(0.2 / wide, 1 - 0.3 / total, reports.shortened(title(attention), 90), fontsize=12,
                fontweight="bold")
    figure.text(0.2 / wide, 1 - 0.55 / total, reports.clean(
        f"{attention['model']}: {reports.counted(count, 'layer')} of "
        f"{reports.counted(across, 'head')}. In each small map a row is a token that attends, a "
        "column one attended to."), color=theme.muted)
    axes = figure.add_axes((0.6 / wide, 1 - (1.0 + maps_high) / total, maps_wide / wide,
                            maps_high / total))
    _maps(axes, weights, theme)
    picked = weights[chosen_layer] if chosen_head is None else weights[chosen_layer, chosen_head]
    first = 0 if chosen_head is None else chosen_head
    axes.add_patch(Rectangle((first + 0.01, chosen_layer + 0.01),
                             (across if chosen_head is None else 1) - 0.02, 0.98, fill=False,
                             edgecolor=theme.series[1], linewidth=2, clip_on=False))
    words = f"Layer {chosen_layer + 1}, " + ("mean over heads" if chosen_head is None else
                                             f"head {chosen_head + 1}")
    if chosen_head is not None and habit(attention, chosen_layer, chosen_head):
        words += f"\nwords look at: {habit(attention, chosen_layer, chosen_head)}"
    left = 0.6 + maps_wide + 1.7
    figure.text((left - 1.2) / wide, 1 - 0.85 / total, words, fontweight="bold", va="top")
    axes = figure.add_axes((left / wide, 1 - (1.55 + diagram_high) / total, 2.0 / wide,
                            diagram_high / total))
    special = [token["special"] for token in attention["tokens"]]
    _curves(axes, picked.mean(axis=0) if chosen_head is None else picked, names, special, theme)
    return figure


def _maps(axes: Axes, weights: Weights, theme: Theme) -> None:
    """All heads in one image, a layer a row. Where a row's sum of 1 is shared by many tokens, the
    scale ends below 1."""
    count, across, n, _ = weights.shape
    axes.set(xlim=(0, across), ylim=(count, 0))
    most = min(1.0, 0.7 * max(12 / n, 0.15) + 0.1)
    for layer in range(count):
        for head in range(across):
            axes.imshow(weights[layer, head], cmap=theme.colormap, vmin=0, vmax=most,
                        interpolation="nearest", aspect="auto",
                        extent=(head + 0.04, head + 0.96, layer + 0.96, layer + 0.04))
            axes.add_patch(Rectangle((head + 0.04, layer + 0.04), 0.92, 0.92, fill=False,
                                     edgecolor=theme.grid, linewidth=0.6))
    axes.set(xlim=(0, across), ylim=(count, 0))
    axes.set_xticks(np.arange(across) + 0.5, [str(i + 1) for i in range(across)])
    axes.set_yticks(np.arange(count) + 0.5, [str(i + 1) for i in range(count)])
    axes.xaxis.tick_top()
    axes.tick_params(labelsize=8)
    axes.set_ylabel("layer")
    axes.set_xlabel("head")
    axes.xaxis.set_label_position("top")
    axes.spines[:].set_visible(False)


def _curves(axes: Axes, weights: Weights, names: Sequence[str], special: Sequence[bool],
            theme: Theme) -> None:
    n = len(names)
    axes.set(xlim=(0, 1), ylim=(n - 0.5, -0.5))
    for i in range(n):
        for j in range(n):
            if weights[i, j] < LEAST_CURVE:
                continue
            path = Path([(0, i), (0.5, i), (0.5, j), (1, j)],
                        [Path.MOVETO, Path.CURVE4, Path.CURVE4, Path.CURVE4])
            axes.add_patch(PathPatch(path, fill=False, clip_on=False,
                                     linewidth=0.8 + 3.4 * weights[i, j],
                                     alpha=float(0.06 + 0.94 * min(weights[i, j], 1)),
                                     edgecolor=theme.series[4 if special[j] else 0]))
    for i, name in enumerate(names):
        colour = theme.muted if special[i] else theme.ink
        axes.text(-0.04, i, name, ha="right", va="center", color=colour)
        axes.text(1.04, i, name, ha="left", va="center", color=colour)
    axes.text(-0.04, -1, "attends", ha="right", va="center", color=theme.muted, fontsize=8)
    axes.text(1.04, -1, "to", ha="left", va="center", color=theme.muted, fontsize=8)
    axes.set_axis_off()


# ---- Of an example ------------------------------------------------------------------------------

@themed
@explained
def weights(attention: Attention, *, theme: Theme) -> Figure:
    """The weights of an example: a heat map a head, with numbers where they fit."""
    rows = labels(attention)
    values = all_weights(attention)
    columns = rows if values.shape[2] == len(rows) and "X" in attention else [
        f"k{i}" for i in range(values.shape[2])]
    panels = [(f"head {i + 1}" if len(values) > 1 else "", values[i], rows, columns, theme.colormap)
              for i in range(len(values))]
    return _panels(f"Attention weights: {reports.clean(attention['title'])}",
                   "A row attends to the columns; a row sums to 1.", panels, theme,
                   top=float(np.nan_to_num(values).max()) or 1.0)


@themed
@explained
def steps(attention: Attention, *, theme: Theme) -> Figure:
    """Every matrix of an example in the order of computing: X, Q, K and V, then scores and weights
    of each head, and the output."""
    rows = labels(attention)
    panels = []

    def add(name: str, words: str, value: Any, own: Sequence[str] | None = None) -> None:
        panels.append((f"{name}: {words}" if words else name, value, rows, own, theme.colormap))

    for name, words in (("X", "embeddings"), ("Q", "queries"), ("K", "keys"), ("V", "values")):
        if name in attention:
            add(name, words, np.asarray(attention[name], dtype=float))
    scores = np.asarray(attention["scores"], dtype=float)
    scores = scores.reshape((1,) * (3 - scores.ndim) + scores.shape)
    values = all_weights(attention)
    columns = rows if values.shape[2] == len(rows) and "X" in attention else [
        f"k{i}" for i in range(values.shape[2])]
    for head in range(len(values)):
        of = f" of head {head + 1}" if len(values) > 1 else ""
        add(f"scores{of}", "", scores[head], columns)
        add(f"weights{of}", "rows sum to 1", values[head], columns)
    add("output", "weights V", np.asarray(attention["output"], dtype=float))
    seed = f"; drawn from seed {attention['seed']}" if "seed" in attention else ""
    return _panels(title(attention), f"{reports.counted(len(rows), 'token')}, "
                                     f"{reports.counted(len(values), 'head')}{seed}. Each matrix "
                                     "has its own scale of colours.", panels, theme)


def _panels(heading: str, below: str, panels: Sequence[Any], theme: Theme,
            top: float | None = None) -> Figure:
    """Heat maps, three abreast at most. top: the end of one common scale of colours."""
    across = min(len(panels), 3)
    most = max(max(np.shape(panel[1])) for panel in panels)
    cell = 0.5 if most <= 8 else 0.42 if most <= 12 else 0.28 if most <= 24 else 0.14
    label = 0.075 * max(len(name) for panel in panels for name in panel[2]) + 0.2
    column_label = 0.075 * max(len(name) for panel in panels
                               for name in (panel[3] or ["0"])) * 0.75 + 0.25
    lines = [list(panels[i:i + across]) for i in range(0, len(panels), across)]
    widths = [max(max(np.shape(line[i][1])[1] * cell, 0.095 * len(line[i][0]))
                  for line in lines if i < len(line)) + label + 0.35 for i in range(across)]
    heights = [max(np.shape(panel[1])[0] for panel in line) * cell + column_label + 0.5
               for line in lines]
    wide, total = max(sum(widths) + 0.3, 7.5), sum(heights) + (1.4 if top is not None else 0.8)
    figure = new_figure(wide, total, heading)
    figure.text(0.2 / wide, 1 - 0.3 / total, reports.shortened(heading, int(wide * 9)),
                fontsize=12, fontweight="bold")
    figure.text(0.2 / wide, 1 - 0.53 / total, reports.shortened(below, int(wide * 14)),
                color=theme.muted)
    y = 0.65
    for line, height in zip(lines, heights, strict=True):
        x = 0.2
        for (name, values, rows, columns, colours), width in zip(line, widths, strict=False):
            high, long = np.shape(values)
            axes = figure.add_axes(((x + label) / wide,
                                    1 - (y + 0.3 + column_label + high * cell) / total,
                                    long * cell / wide, high * cell / total))
            image = _heat_map(axes, values, rows, columns, cell, colours, theme, top)
            figure.text((x + label) / wide, 1 - (y + 0.22) / total, name, fontweight="bold",
                        va="center")
            x += width
        y += height
    if top is not None:
        bar = figure.add_axes((0.4 / wide, 0.42 / total, 1.8 / wide, 0.13 / total))
        figure.colorbar(image, cax=bar, orientation="horizontal", ticks=[0, top / 2, top],
                        format=lambda value, _: f"{value:.3g}", label="weight")
        bar.tick_params(labelsize=8)
    return figure


def _heat_map(axes: Axes, values: Any, rows: Sequence[str], columns: Sequence[str] | None,
              cell: float, colours: Any, theme: Theme, top: float | None) -> Any:
    # NaN is drawn as nothing.
    finite = np.asarray(values)[np.isfinite(values)]
    low = 0.0 if top is not None else float(finite.min(initial=0.0))
    high = top if top is not None else float(finite.max(initial=0.0))
    high = high if high > low else low + 1.0
    image = axes.imshow(values, cmap=colours, vmin=low, vmax=high, interpolation="nearest",
                        aspect="auto")
    long = np.shape(values)[1]
    names = list(columns) if columns else [str(i + 1) for i in range(long)]
    narrow = max(map(len, names)) * 0.075 > cell - 0.06
    axes.xaxis.tick_top()
    if cell >= 0.2:
        axes.set_xticks(range(long), names, rotation=45 if narrow else 0,
                        ha="left" if narrow else "center", rotation_mode="anchor", fontsize=8)
        axes.set_yticks(range(len(rows)), rows, fontsize=8)
    else:
        axes.set_xticks([])
        axes.set_yticks([])
    axes.tick_params(colors=theme.ink)
    axes.spines[:].set_visible(False)
    if cell >= 0.4:
        dark = theme.ground != "#ffffff"
        for (i, j), value in np.ndenumerate(values):
            share = (value - low) / (high - low)
            light_text = share > 0.5 if not dark else share < 0.62
            axes.text(j, i, f"{value:.2f}", ha="center", va="center",
                      fontsize=8 if cell >= 0.5 else 7,
                      color="#ffffff" if light_text else "#0f1419")
    return image
