# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side, row by row: ratios of speeds with their intervals, and verdicts."""

from __future__ import annotations

import collections
import dataclasses
import functools
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import reports
from .reports import LabError, Report, Row, explained

RULE = (
    "A row's ratio is the median of A's slots (each the median of some 20 ms) over that of B's, "
    "with a 95 % interval of order statistics; where the programs ran in turns, it is the median "
    "of the rounds' ratios, with the interval that leaves 1 % for any wrong verdict in the "
    "comparison, whatever the number of its rows and rounds. "
    "Its noise band is what runs of one program differ by: in turns 1 %, and where other work took "
    "more than 5 % of the time also what A's rounds differ by from one to the next; otherwise the "
    "most of 3 %, half of both runs' drifts, the time that other work took (a factor of 2 where it "
    "wanted the row's cores) and what rows on as many threads moved by while they were measured; "
    "on one machine it then also reaches to the ratio of the two runs' roofs. "
    "A row is faster or slower where its whole interval lies outside its band; otherwise there is "
    "no real difference (in turns: where the whole interval lies within 3 % of 1, otherwise where "
    "it reaches to within 5 % of 1), or nothing can be told: \"inconclusive\" in turns, and where "
    "other work took more than 5 % of either run; "
    "\"too few\" below 6 slots, or below the rounds that such an interval wants (9 for one row, 14 "
    "for 30).")

FASTER, SLOWER, SAME = "faster", "slower", "no real difference"
INCONCLUSIVE, TOO_FEW = "inconclusive", "too few to tell"

LEAST_NOISE = 0.03
EQUAL_WITHIN = 0.05  # of 1, an interval reaches to what is called equal
UNKNOWN_NOISE = 0.05  # where two runs on one machine have no roof in common
LEVEL = 0.01  # in turns, of any wrong verdict in a comparison
LEVEL_OF_SLOTS = 0.05  # of an interval; most of what two runs differ by is in the band


@dataclasses.dataclass(frozen=True)
class Ratio:
    """Speed of the other over that of the base: above 1 the other is faster."""
    value: float
    low: float
    high: float
    enough: bool = True  # slots, or rounds, for an interval

    def __str__(self) -> str:
        return f"{self.value:.2f} ({self.low:.2f} to {self.high:.2f})"


@dataclasses.dataclass(frozen=True)
class Band:
    """Ratios within it may be noise."""
    low: float
    high: float
    moved: float = 0.0       # by how much rows like these moved in the course of a run
    crowded: bool = False    # other work had a core that the row's threads wanted
    disturbed: bool = False  # other work took much of a run
    same_within: float | None = None  # in turns: an interval within it excludes a difference

    def __str__(self) -> str:
        return f"{self.low:.2f} to {self.high:.2f}"


@dataclasses.dataclass(frozen=True)
class ComparedRow:
    base: Row
    other: Row
    ratio: Ratio
    band: Band

    @property
    def verdict(self) -> str:
        if not self.ratio.enough:
            return TOO_FEW
        if self.ratio.low > self.band.high:
            return FASTER
        if self.ratio.high < self.band.low:
            return SLOWER
        within = self.band.same_within
        if within is None:  # a wide band alone makes no two speeds equal
            told = (not self.band.disturbed and self.ratio.low <= 1 + EQUAL_WITHIN and
                    self.ratio.high >= 1 / (1 + EQUAL_WITHIN))
        else:
            told = 1 / (1 + within) <= self.ratio.low and self.ratio.high <= 1 + within
        return SAME if told else INCONCLUSIVE

    @property
    def verdict_text(self) -> str:
        real = self.verdict in (FASTER, SLOWER)
        return f"{self.verdict}: {self.ratio.value:.2f} x A's speed" if real else self.verdict

    @property
    def precisions(self) -> str:
        return _both(reports.precision_of(self.base), reports.precision_of(self.other))

    @property
    def targets(self) -> str:
        return _both(self.base["target"], self.other["target"])


def _both(base: str, other: str) -> str:
    return reports.clean(base if base == other else f"{base} / {other}")


@dataclasses.dataclass
class Pairing:
    """One report against the base, which is A."""
    letter: str
    base: Report
    other: Report
    rows: list[ComparedRow]
    base_alone: int  # rows that the other report lacks
    other_alone: int
    across_precisions: bool
    names: tuple[str, str] = ("", "")  # of the files or programs
    rounds: int = 0  # of runs in turns; 0: two runs one after the other

    def count(self, verdict: str) -> int:
        return sum(row.verdict == verdict for row in self.rows)

    @property
    def same_machine(self) -> bool:
        return same_machine(self.base, self.other)

    @property
    def peak_ratio(self) -> float | None:
        return f32_peak_ratio(self.base, self.other)

    def notes(self) -> list[str]:
        letter, ratio = self.letter, self.peak_ratio
        peak = ("was not measured with one target by both, and is not compared." if ratio is None
                else f"was {ratio:.2f} of A's.")
        notes = [f"{letter} ran on a machine like A's. Its f32 peak on one thread {peak}"
                 if self.same_machine else
                 f"{letter} ran on another machine than A, so ratios are those of machines too. "
                 f"Its f32 peak on one thread {peak}"]
        if self.rounds:
            notes.append(f"The programs ran in turns, {reports.counted(self.rounds, 'round')}. "
                         f"Times of A and {letter} are medians of all rounds, ratios medians of "
                         "each round's.")
            other = sum((statistics.median(row.base["slots"]) - statistics.median(
                row.other["slots"])) * (row.ratio.value - 1) < 0 for row in self.rows
                if abs(row.ratio.value - 1) >= 0.01)
            if other:
                notes.append(f"{reports.counted(other, 'row')}: the times say the other way round "
                             "than the ratio. The machine moved between rounds; quote the ratio.")
        else:
            share = noise_share(self.base, self.other)
            notes.append(f"Noise between the runs: {100 * share:.1f} %, and what the roofs moved.")
            most = max(self.rows, key=lambda row: row.band.moved)
            if most.band.moved > share:
                notes.append(f"Rows of {reports.threads_text(most.base['threads'])} moved by up to "
                             f"{100 * most.band.moved:.0f} % while they were measured: what "
                             "differs by less may be that.")
        if any(row.band.crowded for row in self.rows):
            notes.append("Other work had a part of the cores: rows whose threads want all of them "
                         "may differ by a factor of 2 for that alone.")
        if any(row.base["target"] != row.other["target"] for row in self.rows):
            notes.append(f"Targets that differ are those of A / {letter}: the best that each "
                         "report has of the workload.")
        if self.across_precisions:
            notes.append(f"Rows are compared across precisions, A / {letter}: results differ, not "
                         "speeds alone.")
        if self.base_alone + self.other_alone:
            notes.append(f"Rows without a partner: {self.base_alone} of A, {self.other_alone} of "
                         f"{letter}.")
        return notes

    def summary(self) -> str:
        text = (f"{reports.counted(len(self.rows), 'row')}: {self.count(FASTER)} faster, "
                f"{self.count(SLOWER)} slower, {self.count(SAME)} without a real difference")
        for verdict, words in ((INCONCLUSIVE, "inconclusive"), (TOO_FEW, "with too few to tell")):
            if self.count(verdict):
                text += f", {self.count(verdict)} {words}"
        return text


# ---- Pairs --------------------------------------------------------------------------------------

# What the rows of a pair agree in, beside products and target. Operations distinguish lengths that
# have one sum.
_KEY = ("engine", "workload", "d_model", "heads", "d_ff", "activation", "layers", "sequences",
        "tokens", "flops", "threads", "weights")


def _products(row: Row) -> tuple[str, bool]:
    return row["precision"], row["amx_bf16"]


def key_of(row: Row | None) -> tuple[Any, ...] | None:
    """What no two rows of a report have in common; None of no row."""
    return (_products(row), row["target"], *(row[name] for name in _KEY)) if row else None


def _best(rows: Sequence[Row], targets: Sequence[str]) -> Row:
    """The row of the target that the report's machine names first."""
    return min(rows, key=lambda row: targets.index(row["target"]) if row["target"] in targets
               else len(targets))


def pair_rows(base: Report, other: Report) -> tuple[list[tuple[Row, Row]], bool]:
    """Pairs in the order of the base's rows, and whether they are across precisions.

    Rows of one target are a pair; where the best target of one report is not that of the other,
    these two rows are a pair as well. Of rows that are alike in all this, the first counts.
    """
    across_precisions = not ({_products(row) for row in base["rows"]} &
                             {_products(row) for row in other["rows"]})

    def key(row: Row, products: tuple[str, bool]) -> tuple[Any, ...]:
        return products, *(row[name] for name in _KEY)

    def by_key(report: Report) -> dict[Any, list[Row]]:
        rows = collections.defaultdict(list)
        for row in report["rows"]:
            rows[key(row, _products(row))].append(row)
        return rows

    ours, theirs = by_key(base), by_key(other)
    their_products = sorted({_products(row) for row in other["rows"]})

    def partners(row: Row) -> Iterator[Row]:
        alike = ours[key(row, _products(row))]
        for products in their_products if across_precisions else [_products(row)]:
            candidates = theirs.get(key(row, products))
            if not candidates:
                continue
            first = next(one for one in alike if one["target"] == row["target"])
            same = next((one for one in candidates if one["target"] == row["target"]), None)
            if same is not None and first is row:
                yield same
            best = _best(candidates, other["machine"]["targets"])
            if (best["target"] != row["target"] and
                    _best(alike, base["machine"]["targets"]) is row):
                yield best

    pairs = [(row, partner) for row in base["rows"] for partner in partners(row)]
    return pairs, across_precisions


# ---- Noise --------------------------------------------------------------------------------------

def same_machine(base: Report, other: Report) -> bool:
    """Processor, cores and caches are alike; virtual machines on different hosts may be."""
    names = ("cpu", "architecture", "cores", "l1d_bytes", "l2_bytes", "l3_bytes")
    return all(base["machine"][name] == other["machine"][name] for name in names)


def noise_share(base: Report, other: Report) -> float:
    drift = sum(float(one["noise"]["peak_drift_percent"]) for one in (base, other)) / 200
    return max(LEAST_NOISE, drift, reports.taken_share(base), reports.taken_share(other))


def _roof_ratio(base: Report, other: Report, fit: Any) -> float | None:
    """Of the roof that both reports have and that fits best: theirs over ours. A fit of 0 is
    none."""
    def same(one: dict[str, Any]) -> tuple[Any, ...]:
        return tuple(one.get(name) for name in ("kind", "target", "precision", "level", "threads"))

    def rate(one: dict[str, Any]) -> float:
        return float(one["flops_per_s"] if one["kind"] == "compute" else one["bytes_per_s"])

    theirs: dict[Any, dict[str, Any]] = {}
    for roof in other["roofs"]:
        theirs.setdefault(same(roof), roof)
    ours = max((roof for roof in base["roofs"] if same(roof) in theirs and fit(roof) > 0),
               key=fit, default=None)
    return None if ours is None else rate(theirs[same(ours)]) / rate(ours)


def f32_peak_ratio(base: Report, other: Report) -> float | None:
    """Of one thread: on the base's best target, or another that both measured."""
    best = base["machine"]["targets"][0]
    return _roof_ratio(base, other, lambda roof: 0 if roof["kind"] != "compute" or
                       roof["precision"] != "f32" or roof["threads"] != 1 else
                       1 + (roof["target"] == best))


def _peak_ratio(base: Report, other: Report, row: Row) -> float | None:
    """Of the roof that is most like the row's."""
    return _roof_ratio(base, other, lambda roof: 0 if roof["kind"] != "compute" else
                       1 + 4 * (roof["threads"] == row["threads"]) +
                       2 * (roof["precision"] == row["precision"]) +
                       (roof["target"] == row["target"]))


def _memory_ratio(base: Report, other: Report, threads: int) -> float | None:
    return _roof_ratio(base, other, lambda roof: roof["threads"] == threads and
                       roof.get("level") == "memory")


def _row_roof_ratio(base: Row, other: Row) -> float | None:
    """The ratio of the roofs in the rows themselves."""
    ours, theirs = base["roof"], other["roof"]
    if (not ours or not theirs or ours["name"] != theirs["name"] or
            base["target"] != other["target"]):
        return None
    return float(theirs["value"] / ours["value"])


def moved_share(slots: Sequence[float]) -> float:
    """By how much a row moved while it was measured: the medians of its quarters, the highest by
    the lowest, where that is more than chance. What lasts for a part of one row (a neighbour on a
    core's other thread, say) may last for all of another."""
    if len(slots) < 8:  # two in a quarter
        return 0.0
    quarters = [float(np.median(quarter)) for quarter in np.array_split(np.asarray(slots), 4)]
    # Of normal noise, the median step from slot to slot is 0.95 standard deviations of a slot, and
    # a median of n slots has 1.25 / sqrt(n) of one. The extremes of four lie more than five of
    # these apart in 1 of 400 rows.
    step = float(np.median(np.abs(np.diff(slots))))
    error = 1.25 * step / 0.95 / math.sqrt(len(slots) / 4)
    apart = max(quarters) - min(quarters)
    return apart / min(quarters) if apart > 5 * error else 0.0


Moved = dict[tuple[int, str], float]


def _moved_by_threads(report: Report) -> Moved:
    """The most that any row of an engine on so many threads moved by."""
    most: Moved = {}
    for row in report["rows"]:
        key = row["threads"], row["engine"]
        most[key] = max(most.get(key, 0.0), moved_share(row["slots"]))
    return most


def _crowded(report: Report, threads: int) -> bool:
    """Whether other work shared cores with so many threads for some part of the run."""
    taken = reports.taken_share(report)
    return (100 * taken > reports.MUCH_BUSY and
            threads > (1 - taken) * report["machine"]["cores"])


def _band(base: Report, other: Report, row: Row, partner: Row, moved: float) -> Band:
    crowded = _crowded(base, row["threads"]) or _crowded(other, partner["threads"])
    share = max(noise_share(base, other), moved, 1.0 if crowded else 0.0)
    reach = [1.0]
    if same_machine(base, other):
        peak = _peak_ratio(base, other, row)
        if peak is None:
            share = max(share, UNKNOWN_NOISE)
        found = [peak, _row_roof_ratio(row, partner)]
        if any(one["weights"] == "cold" or (one["roof"] or {}).get("kind") == "read"
               for one in (row, partner)):
            found.append(_memory_ratio(base, other, row["threads"]))
        reach += [ratio for ratio in found if ratio is not None]
    taken = max(reports.taken_share(base), reports.taken_share(other))
    return Band(min(reach) / (1 + share), max(reach) * (1 + share), moved, crowded,
                100 * taken > reports.MUCH_BUSY)


# ---- Ratios -------------------------------------------------------------------------------------

@functools.cache
def _rank(count: int, level: float, looks: bool) -> int:
    """The k of `interval`; 0 where not even the extremes are as sure."""
    tail, rank = 0.0, 0
    while rank < count // 2:
        tail += 2 * math.comb(count, rank) / 2**count
        if tail > (level / ((rank + 1) * (rank + 2)) if looks else level):
            break
        rank += 1
    return rank


def interval(values: Sequence[float], level: float, looks: bool = False
             ) -> tuple[float, float] | None:
    """From the k-th lowest to the k-th highest value: the true median is outside by a chance of at
    most level, as each value is above it as a coin falls. None where they are too few.

    looks: for whoever looks after every value and may stop at any. The values on either side never
    become fewer, so that of all looks with one k only the first counts; each k has
    level / (k (k + 1)), which is no more than level in all.
    """
    rank = _rank(len(values), level, looks)
    if rank == 0:
        return None
    ordered = sorted(values)
    return ordered[rank - 1], ordered[-rank]


def ratio_of_speeds(base: Sequence[float], other: Sequence[float]) -> Ratio:
    """Of times of consecutive slots. What the two medians may be off by adds up as independent
    errors do (the method of variance estimates recovery)."""
    ours, theirs = statistics.median(base), statistics.median(other)
    mine, other_one = interval(base, LEVEL_OF_SLOTS), interval(other, LEVEL_OF_SLOTS)
    value = ours / theirs
    if mine is None or other_one is None:
        return Ratio(value, value, value, enough=False)
    down = math.hypot(math.log(ours / mine[0]), math.log(other_one[1] / theirs))
    up = math.hypot(math.log(mine[1] / ours), math.log(theirs / other_one[0]))
    return Ratio(value, value * math.exp(-down), value * math.exp(up))


# ---- Comparisons --------------------------------------------------------------------------------

@explained
def compare(runs: Sequence[Report], names: Sequence[str] | None = None) -> list[Pairing]:
    """Each further report against the first. Raises LabError if two have no row in common."""
    names = names or [_letter(i) for i in range(len(runs))]
    if not runs or len(names) != len(runs):
        raise LabError(f"runs has {len(runs)} reports, and names has {len(names)}; wanted at least "
                       "one report, and a name for each")
    return [pair_reports(runs[0], runs[i], _letter(i), names[0], names[i])
            for i in range(1, len(runs))]


def _letter(index: int) -> str:
    return chr(ord("A") + index)


def pair_reports(base: Report, other: Report, letter: str, base_name: str, name: str) -> Pairing:
    """As reports of two runs, one after the other."""
    pairs, across_precisions = pair_rows(base, other)
    if not pairs:
        raise LabError(f"{name}: found no row in common with {base_name}; wanted a workload of "
                       "the same sizes, precision, threads, weights and layers in both; "
                       "--precision compares rows of two precisions")
    ours, theirs = _moved_by_threads(base), _moved_by_threads(other)

    def compared(row: Row, partner: Row) -> ComparedRow:
        moved = max(ours[row["threads"], row["engine"]],
                    theirs[partner["threads"], partner["engine"]])
        return ComparedRow(row, partner, ratio_of_speeds(row["slots"], partner["slots"]),
                           _band(base, other, row, partner, moved))

    rows = [compared(row, partner) for row, partner in pairs]
    paired = {id(row) for pair in pairs for row in pair}
    alone = [sum(id(row) not in paired for row in report["rows"]) for report in (base, other)]
    return Pairing(letter, base, other, rows, alone[0], alone[1], across_precisions,
                   (base_name, name))


def keep_precision(report: Report, precision: str, name: str) -> Report:
    """The report with its rows of one precision ("bf16 (AMX)" is one); raises LabError."""
    rows = [row for row in report["rows"] if reports.precision_of(row) == precision]
    if not rows:
        raise LabError(f"{name}: found no row in {reports.clean(precision)}, which --precision "
                       "wants of it")
    return {**report, "rows": rows}


# ---- As text ------------------------------------------------------------------------------------

def table(pairing: Pairing) -> list[list[str]]:
    """The lines of a pairing's table, its head first."""
    letter = pairing.letter
    by_round = " (by round)" if pairing.rounds else ""
    lines = [["workload", "precision", "target", "weights", "threads",
              *(f"{one}, median of slots" for one in ("A", letter)),
              f"speed of {letter} over A{by_round}", "noise band", "verdict"]]
    for row in pairing.rows:
        lines.append([reports.workload_of(row.base), row.precisions, row.targets,
                      row.base["weights"], str(row.base["threads"]),
                      *(reports.time_text(statistics.median(one["slots"]))
                        for one in (row.base, row.other)),
                      str(row.ratio), str(row.band), row.verdict_text])
    return lines


NUMBER_COLUMNS = range(4, 9)


def as_json(pairings: Sequence[Pairing], runs: Sequence[Report],
            names: Sequence[str]) -> dict[str, Any]:
    """For programs: numbers are ratios of speeds, above 1 where the other report is faster."""
    def row_json(row: ComparedRow) -> dict[str, Any]:
        both = (row.base, row.other)
        return {"engine": row.base["engine"], "workload": row.base["workload"],
                "layers": row.base["layers"],
                "precision": [reports.precision_of(one) for one in both],
                "target": [one["target"] for one in both], "weights": row.base["weights"],
                "threads": row.base["threads"],
                "seconds": [statistics.median(one["slots"]) for one in both],
                "ratio": {"value": row.ratio.value, "low": row.ratio.low, "high": row.ratio.high},
                "band": {"low": row.band.low, "high": row.band.high}, "verdict": row.verdict}

    return {"encore_comparison": 1,
            "reports": [{"name": name, "commit": report["machine"].get("commit", ""),
                         "noise": reports.noise_sentences(report)}
                        for name, report in zip(names, runs, strict=True)],
            "pairings": [{"base": 0, "other": i + 1, "rounds": pairing.rounds,
                          "notes": pairing.notes(), "rows": [row_json(r) for r in pairing.rows]}
                         for i, pairing in enumerate(pairings)]}
