# SPDX-License-Identifier: Apache-2.0
"""bench/replay and bench/disturbed.py: how tasks are taken, what a stage costs, what a slower core
allows."""

import dataclasses
import os
import pathlib
import sys
import time

import pytest
from pyencore.lab.reports import LabError

pytest.importorskip("jsonschema")
BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"
sys.path[:0] = [str(BENCH), str(BENCH / "replay")]

disturbed = pytest.importorskip("disturbed")
replay = pytest.importorskip("replay")
replay_costs = pytest.importorskip("replay_costs")
simulate = pytest.importorskip("simulate")

ENCORE = os.environ.get("ENCORE")


def test_threads_take_their_own_and_then_help():
    assert replay.makespan(replay.Stage([1.0] * 8), 4) == 2
    assert replay.makespan(replay.Stage([1.0] * 5), 4) == 2
    assert replay.makespan(replay.Stage([1.0] * 3), 16) == 1
    # Whoever is free takes the next: 3 | 2 1.
    assert replay.makespan(replay.Stage([3.0, 2.0, 1.0], in_order=True), 2) == 3


def rows_plan(blocks, threads, apart=False):
    return {"threads": {"kind": "rows", "threads": threads, "row_blocks": blocks,
                        "attention_apart": apart}}


def test_stages_have_all_operations():
    layer = replay.shape("base_2x96")
    whole = layer.products(192) + 2 * layer.attention(96, 96)
    columns = {"threads": {"kind": "columns", "threads": 16, "heads_together": False},
               "matrices": [{"name": name, "panels": panels} for name, panels in (
                   ("in_proj", 48), ("out_proj", 16), ("linear1", 64), ("linear2", 16))]}
    together = {**columns, "threads": {**columns["threads"], "heads_together": True}}
    groups = {"threads": {"kind": "sequences", "threads": 2, "groups": [
        {"first_sequence": 0, "sequences": 1, "rows": 96},
        {"first_sequence": 1, "sequences": 1, "rows": 96}]}}
    for plan, count in ((rows_plan([64, 64, 64], 3), 2), (rows_plan([48] * 4, 4, True), 3),
                        (columns, 7), (together, 6), (groups, 1)):
        found = replay.stages(layer, plan, lambda products, attention, rows: products + attention)
        assert len(found) == count
        assert sum(sum(stage.tasks) for stage in found) == pytest.approx(whole)


def test_a_layer_is_its_stages_and_their_hand_overs():
    layer = replay.shape("base_1x128")
    machine = replay.Machine(hand_over=1e-5)
    costs = replay.Costs(lambda rows: 1e11, attention=1e11)
    alone = replay.simulated(layer, rows_plan([128], 1), costs, machine)
    assert alone == pytest.approx((layer.products(128) + layer.attention(128, 128)) / 1e11)
    two = replay.simulated(layer, rows_plan([64, 64], 2), costs, machine)
    assert two == pytest.approx(alone / 2 + 2e-5)
    assert machine.hand_over_of(1) == 0
    hand_overs = [machine.hand_over_of(threads) for threads in (2, 4, 8, 16, 64, 96, 192)]
    assert hand_overs[0] == pytest.approx(1e-5) and hand_overs == sorted(set(hand_overs))
    # Fewer rows at a lower rate.
    slow = dataclasses.replace(costs, products=lambda rows: 5e10 if rows == 16 else 1e11)
    found = replay.simulated(layer, rows_plan([16] * 8, 2), slow, machine)
    assert found == pytest.approx((layer.products(128) / 5e10 +
                                   layer.attention(128, 128) / 1e11) / 2 + 2e-5)


def test_costs_beyond_the_rate_of_products():
    costs = replay.Costs(lambda rows: 1e11, attention=5e10, many_rows=1.02, busy=1.03)
    # A thread's rows lie in L2, in L3, and half of the way; one thread has its clock for itself.
    assert costs.seconds(1, 128)(1e11, 0, 128) == pytest.approx(1)
    assert costs.seconds(1, 512)(1e11, 0, 128) == pytest.approx(1.02)
    assert costs.seconds(2, 320)(1e11, 0, 128) == pytest.approx(1.01 * 1.03)
    assert costs.seconds(2, 2048)(0, 1e11, 128) == pytest.approx(2 * 1.03)


def test_costs_are_found_again():
    layer = replay.shape("base_1x128")

    def layer_of(rows, length, many=1.0):
        return layer.products(rows) / 1e11 * many + layer.attention(rows, length) / 5e10

    timed = replay_costs.Timed(
        alone={rows: layer_of(rows, rows) for rows in replay_costs.TIMED_ROWS},
        few=layer_of(128, 16), many=layer_of(512, 16, 1.02), long=layer_of(512, 512, 1.02),
        both=1.03 * layer_of(512, 16, 1.02), small=0)
    found = replay_costs.costs_of(layer, timed)
    assert found.attention == pytest.approx(5e10) and found.products(100) == pytest.approx(1e11)
    assert found.many_rows == pytest.approx(1.02, abs=2e-4)
    assert found.busy == pytest.approx(1.03)
    # 2 us after each of two stages.
    plan = rows_plan([64, 64], 2)
    work = 1.03 * layer_of(128, 128) / 2
    assert replay_costs.hand_over_of(layer, plan, found, work + 4e-6) == pytest.approx(2e-6)


def test_shapes():
    ragged = replay.shape("minilm_ragged_64")
    assert len(ragged.lengths) == 64 and min(ragged.lengths) >= 8 and max(ragged.lengths) <= 512
    assert replay.shape("base_8x128").tokens == 1024
    # As `encore bench --help` counts them.
    one = replay.shape("base_1x128")
    assert one.products(128) == 8 * 128 * 768 ** 2 + 4 * 128 * 768 * 3072
    assert one.attention(128, 128) == 4 * 128 ** 2 * 768
    for name in ("base", "tiny_1x16", "base_8", "base_0x5", "base_ragged_0", "base_1x2x3"):
        with pytest.raises(LabError, match=name):
            replay.shape(name)


def test_what_the_speeds_allow():
    assert disturbed.allowed(1150e-6, 2, 0.5) == pytest.approx(1533e-6, rel=1e-3)
    row = {"workload": "minilm_1x128", "precision": "f32", "amx_bf16": False, "threads": 2}
    calm, slow = ([{"rows": [{**row, "seconds": {"p50": seconds, "p99": None}}]}]
                  for seconds in (1150e-6, 2245e-6))
    head, line = disturbed.table(["encore"], [(calm, slow, [0.5])])
    assert len(head) == len(line) and line[-1] == "1.46" and line[7] == ""


def test_the_disturber_takes_a_part_of_its_core():
    with disturbed.disturber(max(os.sched_getaffinity(0)), 500, 500) as part:
        time.sleep(0.5)
        taken = part()
    assert 0.05 < taken < 0.75


@pytest.mark.parametrize("command, arguments, words", [
    (disturbed, ["--rounds", "0"], "--rounds 0"),
    (disturbed, ["--spin", "0"], "found --spin 0"),
    (disturbed, ["no/such/encore"], "no/such/encore"),
    (simulate, ["base_1x128", "--threads", "2,x"], "--threads: found '2,x'"),
    (simulate, ["--seconds", "0"], "--seconds 0"),
    (simulate, ["--rounds", "0"], "--rounds 0"),
    (simulate, ["minilm_encode_9"], "minilm_encode_9: found no --model"),
    (simulate, ["minilm_encode_0"], "minilm_encode_0"),
    (simulate, ["huge_1x1"], "huge_1x1"),
])
def test_refused(capsys, command, arguments, words):
    assert command.main(arguments) == 2
    output = capsys.readouterr()
    assert output.out == "" and words in output.err and output.err.count("\n") == 1


@pytest.mark.skipif(not ENCORE, reason="wants the encore command: ENCORE")
def test_with_the_command(capsys):
    flags = ["--workload", "minilm_1x16", "--warm", "--seconds", "0.01"]
    assert disturbed.main([ENCORE, "--rounds", "1", "--format", "markdown", "--", *flags]) == 0
    assert "| minilm_1x16 | f32 | 2 |" in capsys.readouterr().out
    assert simulate.main(["minilm_1x64", "--threads", "1,16", "--seconds", "0.01", "--rounds", "1",
                          "--encore", ENCORE]) == 0
    head, one, many = capsys.readouterr().out.splitlines()
    assert "efficiency" in head and "100 %" in one and many.split()[:3] == ["minilm_1x64", "16",
                                                                           "columns"]
