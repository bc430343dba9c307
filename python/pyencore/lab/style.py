# SPDX-License-Identifier: Apache-2.0
"""How figures look: light and dark colours, the figure's class, and places for labels."""

from __future__ import annotations

import dataclasses
import functools
import inspect
import io
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure as BaseFigure
from matplotlib.figure import SubFigure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from pyencore._inputs import flag

from . import reports


@dataclasses.dataclass(frozen=True)
class Theme:
    ground: str
    ink: str
    muted: str
    grid: str
    band: str
    # Okabe and Ito's colours, which people with any kind of colour blindness tell apart; darker
    # or lighter where the ground wants it. The order is that of reports.PRECISIONS, then others.
    series: tuple[str, ...]
    heat: tuple[str, ...]  # from nothing to most

    @functools.cached_property
    def colormap(self) -> LinearSegmentedColormap:
        return LinearSegmentedColormap.from_list("heat", self.heat)


LIGHT = Theme("#ffffff", "#1f2328", "#59636e", "#dfe4ea", "#e9edf1",
              ("#0072b2", "#c25100", "#008060", "#a8488a", "#8a6d00", "#57606a", "#2a8fc4",
               "#222222"),
              ("#ffffff", "#cfe3f3", "#5aa2d2", "#0b4a85", "#072848"))
DARK = Theme("#0f1419", "#e6edf3", "#9aa6b2", "#2a343f", "#222c36",
             ("#56b4e9", "#f0883e", "#2fc79c", "#dd95c4", "#e8d34c", "#aab4bf", "#9ad7f5",
              "#f5f5f5"),
             ("#161d25", "#1d4468", "#2f7fb8", "#7cc4ee", "#e8f6ff"))

DPI = 100


class Figure(BaseFigure):
    """A figure that notebooks show without pyplot. `label` says what it shows, for those who cannot
    see it."""

    label: str = ""

    def as_bytes(self, form: str = "svg") -> bytes:
        """As "svg", "png" or another form that matplotlib writes."""
        out = io.BytesIO()
        # A date would make every file differ from the last.
        metadata = {"Date": None} if form == "svg" else None
        with matplotlib.rc_context({"svg.hashsalt": "encore", "svg.fonttype": "none"}):
            self.savefig(out, format=form, facecolor=self.get_facecolor(), metadata=metadata,
                         dpi=2 * DPI if form == "png" else DPI)
        if form != "svg":
            return out.getvalue()
        # Text as text is a tenth of its outlines. Other fonts are narrower than this one.
        return out.getvalue().replace(b"'DejaVu Sans'", b"'DejaVu Sans', Verdana, sans-serif")

    def _repr_svg_(self) -> str:
        return self.as_bytes().decode("utf-8")


Draw = TypeVar("Draw", bound=Callable[..., "Figure | None"])


def themed(draw: Draw) -> Draw:
    """Draws under the rules of one theme: the argument dark chooses it."""
    @functools.wraps(draw)
    def drawn(*arguments: Any, dark: bool = False, **named: Any) -> Any:
        theme = DARK if flag("dark", dark) else LIGHT
        rules: dict[Any, Any] = {"font.family": ["DejaVu Sans"], "font.size": 9, "figure.dpi": DPI,
                 "figure.facecolor": theme.ground, "axes.facecolor": theme.ground,
                 "text.color": theme.ink, "axes.labelcolor": theme.muted,
                 "xtick.color": theme.muted, "ytick.color": theme.muted,
                 "axes.edgecolor": theme.grid, "grid.color": theme.grid, "grid.linewidth": 0.8,
                 "axes.axisbelow": True, "axes.spines.top": False, "axes.spines.right": False,
                 "xtick.major.size": 0, "ytick.major.size": 0, "axes.titlelocation": "left",
                 "axes.titlesize": 9.5, "axes.titleweight": "bold", "axes.titlecolor": theme.ink,
                 "legend.frameon": False, "text.parse_math": False, "path.simplify": True}
        with matplotlib.rc_context(rules):
            return draw(*arguments, theme=theme, **named)
    signature = inspect.signature(draw)
    chosen = inspect.Parameter("dark", inspect.Parameter.KEYWORD_ONLY, default=False)
    vars(drawn)["__signature__"] = signature.replace(parameters=[
        chosen if name == "theme" else one for name, one in signature.parameters.items()])
    return drawn  # type: ignore[return-value]


def new_figure(width: float, height: float, label: str) -> Figure:
    """So many inches."""
    figure = Figure(figsize=(width, height))
    FigureCanvasAgg(figure)
    figure.label = reports.clean(label)
    return figure


def headed_figure(width: float, height: float, label: str, lines: Sequence[str]
                  ) -> tuple[Figure, SubFigure]:
    """A figure that says what and whose it is, should it be shown alone; and the part of so many
    inches below that, to draw in."""
    head = 0.3 + 0.17 * len(lines)
    figure = new_figure(width, head + height, label)
    figure.text(0.01, 1 - 0.05 / (head + height), figure.label, fontsize=11, fontweight="bold",
                va="top")
    for i, line in enumerate(lines):
        figure.text(0.01, 1 - (0.26 + 0.17 * i) / (head + height), reports.clean(line), fontsize=8,
                    va="top")
    grid = figure.add_gridspec(2, 1, height_ratios=(head, height), hspace=0)
    return figure, figure.add_subfigure(grid[1])


def log_axis(axis: Any, low: float, high: float) -> None:
    """Plain numbers at 1, 2, 5, 10, or at powers of ten where there are many."""
    import math
    ticks = [digit * 10.0 ** power
             for power in range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
             for digit in ((1,) if high / low > 3000 else (1, 2, 5))]
    if len(ticks) > 12 and high / low > 1e8:
        ticks = ticks[::len(ticks) // 8]
    axis.set_major_locator(FixedLocator([tick for tick in ticks if low <= tick <= high]))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: reports.number(value)))


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """The wanted places moved as little as keeps a gap between neighbours, in their order."""
    order = sorted(range(len(wanted)), key=lambda i: wanted[i])
    places = [0.0] * len(wanted)
    least = low
    for i in order:
        places[i] = max(wanted[i], least)
        least = places[i] + gap
    most = high
    for i in reversed(order):
        places[i] = min(places[i], most)
        most = places[i] - gap
    return places


class Places:
    """Remembers what is drawn in axes, in pixels, and finds places for labels beside it."""

    # Of a label's middle from its mark, in pixels: near ones first.
    _AROUND = [(dx * distance, dy * distance) for distance in (11, 16, 22, 29, 37, 46)
               for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1), (0.8, 0.8), (0.8, -0.8),
                              (-0.8, 0.8), (-0.8, -0.8), (1, 0.45), (-1, 0.45), (1, -0.45),
                              (-1, -0.45))]

    def __init__(self, axes: Axes) -> None:
        self.axes = axes
        self.area = axes.get_window_extent()
        self.taken: list[tuple[float, float, float, float]] = []

    def pixels(self, x: float, y: float) -> tuple[float, float]:
        return tuple(self.axes.transData.transform((x, y)))

    def take(self, left: float, bottom: float, right: float, top: float) -> None:
        self.taken.append((left, bottom, right, top))

    def free(self, left: float, bottom: float, right: float, top: float) -> bool:
        return (left >= self.area.x0 and right <= self.area.x1 and bottom >= self.area.y0 and
                top <= self.area.y1 and
                not any(left < x1 and x0 < right and bottom < y1 and y0 < top
                        for x0, y0, x1, y1 in self.taken))

    def label(self, x: float, y: float, text: str, color: str) -> None:
        """Beside the mark, with a thin line to it where the label is far; nothing where no place is
        free."""
        px, py = self.pixels(x, y)
        wide, high = 3.6 * len(text) + 1, 7.5  # halves
        for dx, dy in self._AROUND:
            cx, cy = px + dx + (wide - 3 if dx > 0 else 3 - wide if dx < 0 else 0), py + dy
            box = (cx - wide, cy - high, cx + wide, cy + high)
            if not self.free(*box):
                continue
            self.take(*box)
            points = 72 / DPI
            far = abs(dx) + abs(dy) > 24
            self.axes.annotate(text, (x, y), ((cx - px) * points, (cy - py) * points),
                               textcoords="offset points", ha="center", va="center", color=color,
                               fontsize=8, arrowprops={"arrowstyle": "-", "color": color,
                                                       "linewidth": 0.5} if far else None)
            return
