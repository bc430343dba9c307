# SPDX-License-Identifier: Apache-2.0
"""Comparisons: nothing is found where nothing is, what is there is found, rows are paired as
promised."""

import copy
import pathlib

import numpy as np
import pytest

pytest.importorskip("pyencore.lab.pages")  # left out without the extra pyencore[plots]

from pyencore import lab
from pyencore.lab import comparison
from pyencore.lab.comparison import (
    FASTER,
    INCONCLUSIVE,
    SAME,
    SLOWER,
    TOO_FEW,
    pair_rows,
    ratio_of_speeds,
)
from synthetic_report import noisy_run, synthetic_report

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "tests" / "data" / "reports"


def recorded(name):
    return lab.load(RECORDED / f"{name}.json")


def compared(base, other):
    return lab.compare([base, other])[0]


def has(sentences, part):
    return any(part in sentence for sentence in sentences)


# ---- Ratios -------------------------------------------------------------------------------------

def test_a_ratio_is_that_of_speeds():
    ratio = ratio_of_speeds([3.0] * 9, [2.0] * 7)
    assert (ratio.value, ratio.low, ratio.high, ratio.enough) == (1.5, 1.5, 1.5, True)


def test_the_interval_holds_the_truth():
    random = np.random.default_rng(7)
    ratios = [ratio_of_speeds(1.2 * np.exp(0.02 * random.standard_normal(25)),
                              np.exp(0.02 * random.standard_normal(25))) for _ in range(200)]
    held = sum(ratio.low <= 1.2 <= ratio.high for ratio in ratios)
    print(f"the truth in {held} of 200 intervals")
    assert held >= 180  # 190 on average; a binomial's three deviations
    assert all(ratio.low <= ratio.value <= ratio.high for ratio in ratios)
    assert max(ratio.high / ratio.low for ratio in ratios) < 1.08


def test_few_slots_say_little():
    many = [1.0] * 20
    assert not ratio_of_speeds(many, [1.0, 1.0]).enough
    assert not ratio_of_speeds([2.0], many).enough
    assert not ratio_of_speeds(many, [1.0] * 5).enough
    six = ratio_of_speeds(many, [1.0] * 5 + [1.3])
    assert six.enough
    assert six.low == pytest.approx(1 / 1.3)


# ---- Verdicts -----------------------------------------------------------------------------------

def test_runs_of_one_program_do_not_differ():
    quiet = 0
    for i in range(20):
        pairing = compared(noisy_run(2 * i + 1, 1), noisy_run(2 * i + 2, 1))
        assert len(pairing.rows) == 90
        quiet += pairing.count(FASTER) + pairing.count(SLOWER) == 0
    print(f"{quiet} of 20 pairs without a verdict")
    assert quiet >= 19


def test_ten_percent_are_found():
    pairs = found = rows = 0
    for i in range(20):
        pairing = compared(noisy_run(2 * i + 1, 1), noisy_run(2 * i + 2, 1.1))
        assert pairing.count(SLOWER) == 0
        pairs += pairing.count(FASTER) > len(pairing.rows) / 2
        found += pairing.count(FASTER)
        rows += len(pairing.rows)
    print(f"{pairs} of 20 pairs, {found} of {rows} rows")
    assert pairs >= 18
    assert found > 0.8 * rows


def test_ten_percent_on_a_quiet_machine_are_found_everywhere():
    pairing = compared(synthetic_report(1, slot_noise=0.01),
                       synthetic_report(2, speed=1 / 1.1, slot_noise=0.01))
    assert pairing.count(SLOWER) == len(pairing.rows)
    assert pairing.rows[0].verdict_text.startswith("slower: 0.9")


def test_the_band_reaches_to_the_ratio_of_roofs():
    # All of the machine is 20 % slower in B, as beside a busy neighbour: not the program's doing.
    base = synthetic_report(3, slot_noise=0.01)
    slower = synthetic_report(4, speed=0.8, slot_noise=0.01)
    for roof in slower["roofs"]:
        for name in ("flops_per_s", "bytes_per_s"):
            if name in roof:
                roof[name] *= 0.8
    pairing = compared(base, slower)
    assert pairing.count(INCONCLUSIVE) == len(pairing.rows)
    assert pairing.peak_ratio == pytest.approx(0.8, abs=0.02)
    # On another machine the same is a difference.
    slower["machine"]["cpu"] = "Other"
    other = compared(base, slower)
    assert other.count(SLOWER) == len(other.rows)
    assert has(other.notes(), "another machine")


def test_a_busy_neighbour_counts():
    base, busy = synthetic_report(5), synthetic_report(6, speed=0.8)
    busy["noise"].update(busy_percent=40, steal_percent=3, peak_drift_percent=14)
    # A row may be slower for the other work or for another reason: there is no telling.
    pairing = compared(base, busy)
    assert pairing.count(INCONCLUSIVE) == 90
    assert "90 inconclusive" in pairing.summary()
    # What no other work explains is real all the same.
    for row in busy["rows"]:
        row["slots"] = [4 * slot for slot in row["slots"]]
    assert compared(base, busy).count(SLOWER) == 90


# A core that is shared runs at half its speed; where most cores are free, nothing shares one.
def test_other_work_counts_where_threads_want_all_cores():
    base = synthetic_report(22, slot_noise=0.01)
    other = synthetic_report(23, speed=1 / 1.8, slot_noise=0.01)

    def slower(of_all_cores):
        return sum(row.verdict == SLOWER and (row.base["threads"] == 2) == of_all_cores
                   for row in compared(base, other).rows)

    of_all = slower(True)
    assert of_all > 0
    other["noise"]["busy_percent"] = 4
    assert slower(True) == of_all
    other["noise"]["busy_percent"] = 8
    assert slower(True) == 0
    assert slower(False) > 0, "a single thread has a core of its own"
    assert has(compared(base, other).notes(), "a factor of 2")
    base["machine"]["cores"] = other["machine"]["cores"] = 64
    assert slower(True) == of_all


def test_what_slows_one_row_for_a_while_may_slow_all_of_another():
    base, other = synthetic_report(20, slot_noise=0.01), synthetic_report(21, slot_noise=0.01)

    def slow_down(row, begin):
        row["slots"] = row["slots"][:begin] + [1.3 * slot for slot in row["slots"][begin:]]

    def verdict():
        return compared(base, other).rows[0].verdict

    all_slow = other["rows"][0]
    slow_down(all_slow, 0)
    assert verdict() == SLOWER
    for same_threads, wanted in ((False, SLOWER), (True, INCONCLUSIVE)):
        row = next(row for row in other["rows"][1:]
                   if (row["threads"] == all_slow["threads"]) == same_threads)
        slow_down(row, len(row["slots"]) // 2)
        assert verdict() == wanted


def test_few_slots_get_no_verdict():
    pairing = compared(synthetic_report(1, slots=2), synthetic_report(2, speed=2, slots=2))
    assert pairing.count(TOO_FEW) == len(pairing.rows)
    assert "90 with too few to tell" in pairing.summary()


def test_recorded_runs_of_one_program_do_not_differ():
    # A neighbour on the host slowed all of the second by a quarter and more, which no counter of
    # this system shows. Rows of the first moved by as much in the course of their run.
    pairing = compared(recorded("best"), recorded("best_again"))
    assert pairing.same_machine
    assert len(pairing.rows) == 2
    # The second's interval reaches to 1; the first's is far from it, and no equal speed.
    assert [row.verdict for row in pairing.rows] == [INCONCLUSIVE, SAME]
    assert pairing.rows[0].ratio.value < 0.8
    assert pairing.rows[0].ratio.high < 0.81


def test_recorded_avx512_is_twice_as_fast_as_avx2():
    pairing = compared(recorded("avx2"), recorded("best"))
    assert len(pairing.rows) == 2
    for row in pairing.rows:
        assert row.targets == "AVX2 / AVX3_DL"
        assert 1.75 < row.ratio.value < 2.25
        assert row.verdict == FASTER


def test_a_recorded_busy_run_is_inconclusive():
    pairing = compared(recorded("best"), recorded("busy"))
    assert [row.verdict for row in pairing.rows] == [INCONCLUSIVE] * 2


# ---- Pairs --------------------------------------------------------------------------------------

def test_targets_are_paired_and_told():
    # A has AVX2 alone; B's best is AVX3_ZEN4, twice as fast, and B has AVX2 too.
    pairing = compared(synthetic_report(8, slot_noise=0.01, targets=("AVX2",)),
                       synthetic_report(7, slot_noise=0.01))
    same = [row for row in pairing.rows if row.other["target"] == "AVX2"]
    across = [row for row in pairing.rows if row.other["target"] != "AVX2"]
    assert len(same) == 30
    assert len(across) == 60
    for row in pairing.rows:
        for name in ("precision", "threads", "weights", "workload"):
            assert row.base[name] == row.other[name]
    for row in same:
        assert row.ratio.value == pytest.approx(1, abs=0.03)
        assert row.verdict == SAME
    for row in across:
        assert row.targets == "AVX2 / AVX3_ZEN4"
        if row.base["weights"] == "warm":
            assert row.ratio.value == pytest.approx(2.5 / 1.27, abs=0.06)
            assert row.verdict == FASTER
    assert has(pairing.notes(), "Targets that differ")


def test_rows_of_one_engine_are_pairs():
    own = synthetic_report(9, targets=("AVX2",))
    peer = copy.deepcopy(own)
    for row in peer["rows"]:
        row.update(engine="onnxruntime", target="", roof=None)
    with pytest.raises(lab.LabError, match="no row in common"):
        compared(own, peer)
    peer["rows"].append(own["rows"][0])
    common = compared(own, peer)
    assert len(common.rows) == 1
    assert (common.base_alone, common.other_alone) == (len(own["rows"]) - 1, len(own["rows"]))


def test_precisions_are_paired_where_none_is_in_both():
    both = synthetic_report(31, slot_noise=0.01)
    base = comparison.keep_precision(both, "f32", "a")
    faster = copy.deepcopy(comparison.keep_precision(both, "int8", "b"))
    for row in faster["rows"]:
        row["slots"] = [slot / 3 for slot in row["slots"]]
    pairing = compared(base, faster)
    assert pairing.across_precisions
    assert has(pairing.notes(), "across precisions")
    assert len(pairing.rows) == len(base["rows"])
    for row in pairing.rows:
        assert row.precisions == "f32 / int8"
        assert row.verdict == FASTER
        assert row.band.high < 1.2, "peaks of two precisions are no noise"
    assert not compared(both, faster).across_precisions


@pytest.mark.parametrize("name", ["d_model", "heads", "d_ff", "layers", "sequences", "tokens",
                                  "flops", "activation"])
def test_work_of_other_sizes_is_no_pair(name):
    base = synthetic_report(1, targets=("AVX2",), threads=(1,))
    base["rows"] = [{**base["rows"][0], "workload": "custom"}]
    other = copy.deepcopy(base)
    assert len(pair_rows(base, other)[0]) == 1
    other["rows"][0][name] = "relu" if name == "activation" else other["rows"][0][name] * 2
    assert pair_rows(base, other)[0] == []


def test_the_peak_that_is_told_is_of_f32_on_one_thread_alone():
    base = synthetic_report(1, targets=("AVX2",))
    other = copy.deepcopy(base)

    def is_it(roof):
        return roof.get("precision") == "f32" and roof["threads"] == 1

    for roof in filter(is_it, other["roofs"]):
        roof["flops_per_s"] *= 0.9
    assert compared(base, other).peak_ratio == pytest.approx(0.9)
    other["roofs"] = [roof for roof in other["roofs"] if not is_it(roof)]
    without = compared(base, other)
    assert without.peak_ratio is None
    assert has(without.notes(), "was not measured with one target by both")


def test_every_further_report_is_compared_with_the_first():
    pairings = lab.compare([synthetic_report(1, slot_noise=0.01),
                            synthetic_report(2, speed=1.5, slot_noise=0.01),
                            synthetic_report(3, speed=0.5, slot_noise=0.01)])
    assert [pairing.letter for pairing in pairings] == ["B", "C"]
    assert pairings[0].count(FASTER) == pairings[1].count(SLOWER) == 90


def test_reports_without_a_common_row_are_refused():
    with pytest.raises(lab.LabError, match="no row in common"):
        compared(synthetic_report(1, threads=(1,)), synthetic_report(1, threads=(4,)))


def test_the_rule_is_three_sentences():
    assert comparison.RULE.count(". ") == 2
    assert comparison.RULE.endswith(".")
