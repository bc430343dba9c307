# SPDX-License-Identifier: Apache-2.0
"""Two runs side by side, row by row: ratios of speeds with their intervals, and verdicts."""

from __future__ import annotations

import collections
import dataclasses
import math
import statistics
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from . import reports
from .reports import LabError, Report, Row, explained

RULE = (
    "A row's ratio is the median of A's slots (each the median of some 20 ms) over that of B's, "
    "with the 95 % interval of scipy's bootstrap; where the programs ran in turns (A B A B), it is "
    "the median of the rounds' ratios. "
    "Its noise band is what runs of one program differ by: 1 % in turns, and otherwise the most of "
    "3 %, half of both runs' drifts, the time that other work took (a factor of 2 where it wanted "
    "the row's cores) and what rows on as many threads moved by while they were measured; on one "
    "machine it also reaches to the ratio of the two runs' roofs. "
    "A row is faster or slower where its whole interval lies outside its band; otherwise there is "
    "no real difference, or nothing can be told: \"inconclusive\" where other work took more than "
    "5 % of either run, \"too few slots\" below 3.")

FASTER, SLOWER, SAME = "faster", "slower", "no real difference"
INCONCLUSIVE, TOO_FEW = "inconclusive", "too few slots to tell"

LEAST_NOISE = 0.03
NOISE_IN_TURNS = 0.01
UNKNOWN_NOISE = 0.05  # where two runs on one machine have no roof in common
LEAST_SLOTS = 3
DRAWS = 2000


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
        return INCONCLUSIVE if self.band.disturbed else SAME

    @property
    def verdict_text(self) -> str:
        real = self.verdict in (FASTER, SLOWER)
        return f"{self.verdict} {self.ratio.value:.2f}x" if real else self.verdict

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
        peak = "is not in both reports." if ratio is None else f"was {ratio:.2f} of A's."
        notes = [f"{letter} ran on a machine like A's. Its f32 peak on one thread {peak}"
                 if self.same_machine else
                 f"{letter} ran on another machine than A, so ratios are those of machines too. "
                 f"Its f32 peak on one thread {peak}"]
        if self.rounds:
            notes.append(f"The programs ran in turns, {reports.counted(self.rounds, 'round')}.")
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
        for verdict, words in ((INCONCLUSIVE, "inconclusive"), (TOO_FEW, "with too few slots")):
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

def _bootstrap(data: Sequence[Any], statistic: Any) -> tuple[float, float]:
    from scipy import stats
    found = stats.bootstrap(data, statistic, n_resamples=DRAWS, method="percentile",
                            vectorized=True, rng=np.random.default_rng(1)).confidence_interval
    return float(found.low), float(found.high)


def ratio_of_speeds(base: Sequence[float], other: Sequence[float]) -> Ratio:
    """Of times of consecutive slots. The draws are the same in every call."""
    value = statistics.median(base) / statistics.median(other)
    if min(len(base), len(other)) < LEAST_SLOTS:
        return Ratio(value, value, value, enough=False)
    low, high = _bootstrap((base, other), lambda a, b, axis: np.median(a, axis=axis) /
                           np.median(b, axis=axis))
    return Ratio(value, low, high)


def ratio_of_rounds(base: Sequence[Sequence[float]], other: Sequence[Sequence[float]]) -> Ratio:
    """Of times of slots, round by round of programs that ran in turns: what slows the machine
    for longer than a round slows both."""
    ratios = [statistics.median(a) / statistics.median(b) for a, b in zip(base, other, strict=True)]
    value = statistics.median(ratios)
    if len(ratios) < LEAST_SLOTS:
        return Ratio(value, value, value, enough=False)
    return Ratio(value, *_bootstrap((ratios,), np.median))


# ---- Comparisons --------------------------------------------------------------------------------

@explained
def compare(runs: Sequence[Report], names: Sequence[str] | None = None) -> list[Pairing]:
    """Each further report against the first. Raises LabError if two have no row in common."""
    names = names or [_letter(i) for i in range(len(runs))]
    if not runs or len(names) != len(runs):
        raise LabError(f"runs has {len(runs)} reports, and names has {len(names)}; wanted at least "
                       "one report, and a name for each")
    return [_pairing(runs[0], runs[i], _letter(i), names[0], names[i])
            for i in range(1, len(runs))]


@explained
def compare_in_turns(rounds: Sequence[Sequence[Report]],
                     names: Sequence[str] = ("A", "B")) -> Pairing:
    """Of runs A B A B: each round is a report of A and one of B."""
    if not rounds or any(len(pair) != 2 for pair in rounds) or len(names) != 2:
        raise LabError(f"rounds has {len(rounds)}, and names has {len(names)}; wanted at least one "
                       "round of a report of A and one of B, and two names")
    pairing = _pairing(rounds[0][0], rounds[0][1], "B", names[0], names[1])
    # Rows have one order in every run of one program.
    for a, b in rounds:
        if len(a["rows"]) != len(rounds[0][0]["rows"]) or len(b["rows"]) != len(
                rounds[0][1]["rows"]):
            raise LabError("a program's runs have other numbers of rows from round to round")
    places = [{id(row): i for i, row in enumerate(report["rows"])} for report in rounds[0]]
    taken = max(reports.taken_share(report) for pair in rounds for report in pair)
    disturbed = 100 * taken > reports.MUCH_BUSY

    def in_turns(row: ComparedRow) -> ComparedRow:
        base = [a["rows"][places[0][id(row.base)]]["slots"] for a, _ in rounds]
        other = [b["rows"][places[1][id(row.other)]]["slots"] for _, b in rounds]
        band = Band(1 / (1 + NOISE_IN_TURNS), 1 + NOISE_IN_TURNS, disturbed=disturbed)
        return ComparedRow({**row.base, "slots": [slot for slots in base for slot in slots]},
                           {**row.other, "slots": [slot for slots in other for slot in slots]},
                           ratio_of_rounds(base, other), band)

    return dataclasses.replace(pairing, rows=[in_turns(row) for row in pairing.rows],
                               rounds=len(rounds))


def _letter(index: int) -> str:
    return chr(ord("A") + index)


def _pairing(base: Report, other: Report, letter: str, base_name: str, name: str) -> Pairing:
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
    return Pairing(letter, base, other, rows, alone[0], alone[1], across_precisions)


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
    lines = [["workload", "precision", "target", "weights", "threads", "A", letter,
              f"speed of {letter} over A", "noise band", "verdict"]]
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
