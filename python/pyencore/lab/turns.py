# SPDX-License-Identifier: Apache-2.0
"""Two programs in turns, A B, B A, ...: rounds until every row has a verdict."""

from __future__ import annotations

import dataclasses
import itertools
import random
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from pyencore._inputs import checked, integer

from . import measure, reports
from .comparison import (
    INCONCLUSIVE,
    LEVEL,
    TOO_FEW,
    Band,
    ComparedRow,
    Pairing,
    Ratio,
    interval,
    key_of,
    pair_reports,
)
from .measure import Tell
from .reports import LabError, Report, explained

NOISE = 0.01         # two builds of one source differ by as much
SAME_WITHIN = 0.03   # where the interval excludes more, there is no real difference
BUDGET_MINUTES = 10.0
INSTANT = 1e-3       # seconds; a round takes longer, and one that is kept less

Bench = Callable[[str], Report]  # of "A" or "B"
Round = tuple[Report, Report]


def rounds_of(bench: Bench, tell: Tell = lambda text: None) -> Iterator[Round]:
    """Rounds without end. Who is first in a round is drawn: were A and B one program, each round
    would favour either as a coin falls, however the machine drifts, steps and jumps."""
    draw = random.Random(1)
    for i in itertools.count(1):
        found = {}
        for letter in draw.choice(("AB", "BA")):
            tell(f"round {i}: {letter}")
            found[letter] = bench(letter)
        yield found["A"], found["B"]


@checked
def in_turns(programs: Sequence[str], rounds: int, flags: Sequence[str] = (),
             tell: Tell = lambda text: None) -> list[Round]:
    """A B, B A, ...: each round is a run of A's `encore bench` and one of B's."""
    integer("rounds", rounds, 0)
    if len(programs) != 2:
        raise LabError(f"programs has {len(programs)} elements; wanted A's and B's")
    found = rounds_of(lambda letter: measure.bench(programs["AB".index(letter)], flags), tell)
    return list(itertools.islice(found, rounds))


class Turns:
    """What the rounds so far say of each row."""

    def __init__(self, names: Sequence[str] = ("A", "B")) -> None:
        self.names = names
        self.rounds: list[Round] = []
        self.failure: LabError | None = None  # that ended them
        self._rows: list[_RowInTurns] = []

    def add(self, a: Report, b: Report) -> None:
        """Raises LabError where the two have no row in common, or other rows than before."""
        if not self.rounds:
            self._first = pair_reports(a, b, "B", *self.names)
            places = [{id(row): i for i, row in enumerate(report["rows"])} for report in (a, b)]
            self._rows = [_RowInTurns(row, places[0][id(row.base)], places[1][id(row.other)])
                          for row in self._first.rows]
        # Rows have one order in every run of one program.
        elif any(key_of(row) != key_of(first)
                 for runs in zip((a, b), self.rounds[0], strict=True)
                 for row, first in itertools.zip_longest(*(run["rows"] for run in runs))):
            raise LabError("a program's runs have other rows from round to round")
        self.rounds.append((a, b))
        for row in self._rows:
            row.add(a["rows"][row.place], b["rows"][row.other_place])

    def least_rounds(self) -> int:
        """With fewer no row can have a verdict."""
        return next(n for n in itertools.count(1) if interval(range(n), self._level, looks=True))

    def compared(self) -> list[ComparedRow]:
        taken = statistics.median(max(map(reports.taken_share, pair)) for pair in self.rounds)
        return [row.compared(self._level, 100 * taken > reports.MUCH_BUSY) for row in self._rows]

    def untold(self) -> int:
        """How many rows more rounds may tell more of."""
        return sum(row.verdict in (INCONCLUSIVE, TOO_FEW) for row in self.compared())

    def pairing(self) -> Pairing:
        base, other = (measure.with_noise_of(runs) for runs in zip(*self.rounds, strict=True))
        return dataclasses.replace(
            self._first, base=base, other=other, rounds=len(self.rounds),
            rows=[row.with_slots(self.rounds, found)
                  for row, found in zip(self._rows, self.compared(), strict=True)])

    @property
    def _level(self) -> float:
        return LEVEL / len(self._rows)


class _RowInTurns:
    """A row's medians, round by round: what slows the machine for longer slows both programs."""

    def __init__(self, first: ComparedRow, place: int, other_place: int) -> None:
        self.first, self.place, self.other_place = first, place, other_place
        self._base: list[float] = []
        self._ratios: list[float] = []

    def add(self, base: dict[str, Any], other: dict[str, Any]) -> None:
        self._base.append(statistics.median(base["slots"]))
        self._ratios.append(self._base[-1] / statistics.median(other["slots"]))

    def compared(self, level: float, disturbed: bool) -> ComparedRow:
        value = statistics.median(self._ratios)
        found = interval(self._ratios, level, looks=True)
        low, high = found or (min(self._ratios), max(self._ratios))
        share = NOISE
        if disturbed and len(self._base) > 1:
            # What A differs from itself by, from one round to the next.
            share = max(share, statistics.median(
                max(a, b) / min(a, b) - 1 for a, b in itertools.pairwise(self._base)))
        band = Band(1 / (1 + share), 1 + share, disturbed=disturbed, same_within=SAME_WITHIN)
        return dataclasses.replace(self.first, ratio=Ratio(value, low, high, found is not None),
                                   band=band)

    def with_slots(self, rounds: Sequence[Round], found: ComparedRow) -> ComparedRow:
        """With the slots of all rounds."""
        base = [slot for a, _ in rounds for slot in a["rows"][self.place]["slots"]]
        other = [slot for _, b in rounds for slot in b["rows"][self.other_place]["slots"]]
        return dataclasses.replace(found, base={**found.base, "slots": base},
                                   other={**found.other, "slots": other})


@explained
def compare_in_turns(rounds: Sequence[Sequence[Report]],
                     names: Sequence[str] = ("A", "B")) -> Pairing:
    """Of runs in turns: each round is a report of A and one of B."""
    if not rounds or any(len(pair) != 2 for pair in rounds) or len(names) != 2:
        raise LabError(f"rounds has {len(rounds)}, and names has {len(names)}; wanted at least one "
                       "round of a report of A and one of B, and two names")
    turns = Turns(names)
    for a, b in rounds:
        turns.add(a, b)
    return turns.pairing()


def until_told(bench: Bench, names: Sequence[str], most: int | None, minutes: float, tell: Tell,
               clock: Callable[[], float] = time.monotonic) -> Turns:
    """Rounds until every row has a verdict, or so many, or the minutes, are over. Ctrl-C, or a
    program that fails, ends them after the last whole round."""
    turns = Turns(names)
    took: list[float] = []  # without rounds of a run before, which are kept and take no time
    before = clock()
    try:
        for a, b in rounds_of(bench, tell):
            now = clock()
            took, before = took + [now - before] * (now - before >= INSTANT), now
            turns.add(a, b)
            done, rows = len(turns.rounds), len(turns.compared())
            each, total = statistics.mean(took or [0]), sum(took)
            if len(took) == 1:
                left = max(turns.least_rounds() - done, 0)
                tell(f"a round takes {each:.0f} s, and a verdict {left} more or many more: from "
                     f"{left * each / 60:.1f} minutes on; --budget ends it after {minutes:g}")
            untold = turns.untold()
            if not untold:
                break
            if done % 10 == 0 and took:
                taken = statistics.median(max(map(reports.taken_share, pair))
                                          for pair in turns.rounds)
                tell(f"after {done} rounds, {total / 60:.1f} of {minutes:g} minutes: "
                     f"{rows - untold} of {reports.counted(rows, 'row')} told"
                     + (f"; other work takes {100 * taken:.0f} %, which makes it long or vain"
                        if 100 * taken > reports.MUCH_BUSY else ""))
            if done == most or total + each > 60 * minutes:
                tell(f"after {reports.counted(done, 'round')} nothing can be told of "
                     f"{reports.counted(untold, 'row')}; wanted more "
                     f"{'rounds: --rounds' if done == most else 'minutes: --budget'}")
                break
    except (KeyboardInterrupt, LabError) as ended:
        if not turns.rounds:
            raise
        turns.failure = ended if isinstance(ended, LabError) else None
        tell(f"{'failed' if turns.failure else 'interrupted'} after "
             f"{reports.counted(len(turns.rounds), 'round')}")
    return turns
