# SPDX-License-Identifier: Apache-2.0
"""Two programs in turns, on machines that do not exist: how often a verdict is wrong, how often a
difference is found, and when turning ends. What turns, stops and judges is what `compare` runs."""

import itertools
import json
import math

import numpy as np
import pytest

pytest.importorskip("pyencore.lab.pages")  # left out without the extra pyencore[plots]

from pyencore import lab
from pyencore.lab import comparison, measure, turns
from pyencore.lab.__main__ import main
from pyencore.lab.comparison import FASTER, INCONCLUSIVE, SAME, SLOWER, TOO_FEW
from synthetic_report import synthetic_report

ROWS, SECONDS_OF_A_TURN = 30, 5


class Machine:
    """Runs reports of 30 rows. Its speed drifts; each row has noise of its own. Unless calm, its
    speed steps by a fifth in one of 20 turns, and one of 20 runs of a row is beside a burst, at 0.5
    to 0.8 of its speed."""

    def __init__(self, seed, noise, speed_of_b=1.0, taken=0.0, trend=0.002, calm=False):
        self.random, self.noise, self.trend = np.random.default_rng(seed), noise, trend
        self.often = 0 if calm else 0.05
        self.speed_of_b = np.broadcast_to(speed_of_b, ROWS)
        self.turn, self.speed, self.seconds = 0, 1.0, 0.0
        report = synthetic_report(1, slots=1, targets=("AVX2",), threads=(1, 2))
        self.report = {**report, "noise": {**report["noise"], "busy_percent": 100 * taken}}
        self.rows = report["rows"][:ROWS]
        assert len(self.rows) == ROWS

    def bench(self, letter):
        draw = self.random
        self.speed *= math.exp(self.trend + self.noise / 2 * draw.standard_normal())
        if draw.random() < self.often:
            self.speed *= draw.choice((0.8, 1.25))
        bursts = np.where(draw.random(ROWS) < self.often, draw.uniform(0.5, 0.8, ROWS), 1)
        speeds = (self.speed * bursts * (self.speed_of_b if letter == "B" else 1) *
                  np.exp(self.noise * draw.standard_normal(ROWS)))
        self.seconds += SECONDS_OF_A_TURN
        return {**self.report, "rows": [{**row, "slots": [1 / speed]} for row, speed in zip(
            self.rows, speeds, strict=True)]}

    def turns(self, most=None, minutes=turns.BUDGET_MINUTES, tell=lambda text: None):
        return turns.until_told(self.bench, ("A", "B"), most, minutes, tell, lambda: self.seconds)


def verdicts(found):
    return [row.verdict for row in found.compared()]


@pytest.mark.parametrize(("noise", "taken"), [(0.01, 0), (0.03, 0), (0.1, 0), (0.3, 0), (0.3, 0.7)])
def test_one_program_differs_from_itself_in_one_of_100_runs(noise, taken):
    wrong = 0
    for seed in range(100):
        # However many rounds someone has time for: 3, 5, ... 59, and all.
        most = 2 * seed + 3 if seed < 29 else None
        found = Machine(seed, noise, taken=taken).turns(most)
        wrong += any(verdict in (FASTER, SLOWER) for verdict in verdicts(found))
    print(f"{wrong} of 100 runs of one program have a wrong verdict")
    assert wrong <= 1


@pytest.mark.parametrize("noise", [0.01, 0.03])
def test_ten_percent_are_found(noise):
    speed = np.ones(ROWS)
    speed[:3] = 1.1, 1 / 1.1, 1.1
    found = wrong = rounds = 0
    for seed in range(100):
        done = Machine(seed, noise, speed).turns()
        found += verdicts(done)[:3] == [FASTER, SLOWER, FASTER]
        wrong += any(verdict in (FASTER, SLOWER) for verdict in verdicts(done)[3:])
        rounds += len(done.rounds)
    print(f"all three found in {found} of 100 runs, {rounds / 100:.0f} rounds each")
    assert found >= 90
    assert wrong <= 1


def test_a_look_after_every_round_costs_nothing():
    # 60 fair coins, judged after each; a level of 0.1, so that some are wrong.
    draw = np.random.default_rng(3)
    ever = 0
    for coins in draw.choice((-1.0, 1.0), (2000, 60)):
        intervals = (comparison.interval(list(coins[:n]), 0.1, looks=True) for n in range(1, 61))
        ever += any(low > 0 or high < 0 for low, high in filter(None, intervals))
    print(f"{ever} of 2,000 ever without zero")
    assert 40 < ever <= 200  # more than not at all: the level is used


def test_as_many_rounds_as_the_rows_want():
    assert comparison.interval([1.0] * 5, 0.05) is None
    assert comparison.interval([1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 0.05) == (1.0, 6.0)
    few = turns.Turns()
    one_row = {**Machine(1, 0.01).bench("A")}
    one_row["rows"] = one_row["rows"][:1]
    few.add(one_row, one_row)
    many = Machine(1, 0.01, calm=True).turns(most=1)
    assert few.least_rounds() == 9
    assert many.least_rounds() == 14
    assert set(verdicts(Machine(1, 0.01, 1.5, calm=True).turns(most=13))) == {TOO_FEW}
    assert set(verdicts(Machine(1, 0.01, 1.5, calm=True).turns(most=20))) == {FASTER}


def test_times_that_contradict_the_ratio_are_told():
    def report(seconds):
        one = synthetic_report(1, targets=("AVX2",), threads=(1,))
        one["rows"] = [{**one["rows"][0], "slots": [seconds]}]
        return one

    rounds = [[report(a), report(b)] for a, b in
              ((1.1, 1), (5.5, 5), (11, 10), (1, 20), (1, 20))]  # medians 1.1 and 10, ratio 1.1
    found = turns.compare_in_turns(rounds)
    assert found.rows[0].ratio.value == pytest.approx(1.1)
    note = "1 row: the times say the other way round than the ratio."
    assert any(one.startswith(note) for one in found.notes())
    assert not any(note in one for one in turns.compare_in_turns(rounds[:3]).notes())
    head = comparison.table(found)[0]
    assert head[5:8] == ["A, median of slots", "B, median of slots", "speed of B over A (by round)"]


def test_turning_ends_when_all_is_told():
    said = []
    done = Machine(2, 0.002, 1.1, calm=True).turns(tell=said.append)
    assert set(verdicts(done)) == {FASTER}
    assert 14 <= len(done.rounds) < 60
    assert ("a round takes 10 s, and a verdict 13 more or many more: from 2.2 minutes on; "
            "--budget ends it after 10") in said
    same = Machine(3, 0.002, calm=True).turns()
    assert set(verdicts(same)) == {SAME}


def test_turning_ends_with_the_budget():
    said = []
    done = Machine(4, 0.3).turns(minutes=5, tell=said.append)
    assert len(done.rounds) == 30
    assert INCONCLUSIVE in verdicts(done)
    assert said[-1].startswith("after 30 rounds nothing can be told of 30 rows")
    assert "--budget" in said[-1]
    assert "after 20 rounds, 3.3 of 5 minutes: 0 of 30 rows told" in said


def test_rounds_that_were_kept_take_no_time():
    machine, said, now = Machine(4, 0.3), [], [0.0]

    def bench(letter):
        now[0] += 0 if len(said) <= 2 * 4 else 5  # of the first four rounds
        return machine.bench(letter)

    found = turns.until_told(bench, "AB", None, 1, said.append, lambda: now[0])
    assert len(found.rounds) == 4 + 6
    assert ("a round takes 10 s, and a verdict 9 more or many more: from 1.5 minutes on; "
            "--budget ends it after 1") in said


def test_where_other_work_is_the_band_is_what_a_differs_from_itself_by():
    quiet, busy = (Machine(5, 0.05, 1.15, taken).turns().compared() for taken in (0, 0.5))
    assert all(row.band.high == 1.01 for row in quiet)
    assert all(1.02 < row.band.high < 1.2 for row in busy)
    assert sum(row.verdict == FASTER for row in quiet) > sum(row.verdict == FASTER for row in busy)


def test_who_is_first_is_drawn():
    said = []
    list(itertools.islice(turns.rounds_of(lambda letter: {}, said.append), 12))
    first = "".join(text[-1] for text in said[::2])
    assert 3 <= first.count("A") <= 9
    assert all(a[-1] != b[-1] for a, b in zip(said[::2], said[1::2], strict=True))


def test_a_drifting_machine_hides_nothing():
    pairing = Machine(6, 0.005, 1.05, trend=0.02, calm=True).turns().pairing()
    assert pairing.count(FASTER) == len(pairing.rows)
    assert all(1.03 < row.ratio.value < 1.07 for row in pairing.rows)
    assert len(pairing.rows[0].base["slots"]) == pairing.rounds
    assert any(f"{pairing.rounds} rounds" in note for note in pairing.notes())
    again = lab.compare_in_turns(Machine(6, 0.005, 1.05, trend=0.02, calm=True).turns().rounds)
    assert [row.ratio for row in again.rows] == [row.ratio for row in pairing.rows]


def test_the_worst_round_is_told():
    machine = Machine(7, 0.01)
    rounds = machine.turns(most=2).rounds
    rounds[1][0]["noise"] = {**machine.report["noise"], "busy_percent": 60}
    assert lab.compare_in_turns(rounds).base["noise"]["busy_percent"] == 60


def test_ctrl_c_keeps_the_rounds_that_are_whole():
    machine, calls, said = Machine(8, 0.01), itertools.count(1), []

    def bench(letter):
        if next(calls) == 6:  # in the third round
            raise KeyboardInterrupt
        return machine.bench(letter)

    done = turns.until_told(bench, ("A", "B"), None, 10, said.append, lambda: 0)
    assert len(done.rounds) == 2
    assert said[-1] == "interrupted after 2 rounds"


@pytest.mark.parametrize("spoil", [
    list.pop, list.reverse, lambda rows: rows.append(rows[0]),
    lambda rows: rows.__setitem__(3, {**rows[3], "target": "AVX3"}),
    lambda rows: rows.__setitem__(3, {**rows[3], "threads": 7})])
@pytest.mark.parametrize("of", [0, 1])
def test_other_rows_than_before_are_refused(spoil, of):
    rounds = Machine(9, 0.01).turns(most=2).rounds
    spoil(rounds[1][of]["rows"])
    with pytest.raises(lab.LabError, match="other rows from round to round"):
        lab.compare_in_turns(rounds)


@pytest.mark.parametrize("why", [KeyboardInterrupt, lab.LabError("the disk is full")])
def test_a_report_that_was_ended_goes_on(why, tmp_path, monkeypatch, capsys):
    asked, report = [], synthetic_report(1, targets=("AVX2",), threads=(1,))

    def bench(encore, flags):
        asked.append(tuple(flags))
        if len(asked) == 3:
            raise why
        return report

    monkeypatch.setattr(measure, "bench", bench)
    monkeypatch.setattr(measure, "targets", lambda encore: ["AVX2"])
    command = ["report", "--encore", "/bin/true", "--json", str(tmp_path / "report.json")]
    assert main(command) == (130 if why is KeyboardInterrupt else 2)
    said = capsys.readouterr().err
    assert "part 3 of 4: AVX2, int8\n" in said
    kept = f"the parts that were done are in {tmp_path / 'report.json.kept'}; the same command"
    assert (kept in said) == (why is KeyboardInterrupt)
    with (tmp_path / "report.json.kept").open("a") as file:
        file.write('[["/bin/true"')  # a line that was cut
    assert main(command) == 0
    said = capsys.readouterr().err
    assert "part 2 of 4: AVX2, bf16 (kept)\npart 3 of 4: AVX2, int8\n" in said
    assert len(asked) == 5
    assert asked[2] == asked[3]
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]
    assert len(lab.load(tmp_path / "report.json")["rows"]) == 4 * len(report["rows"])
    capsys.readouterr()


@pytest.mark.parametrize("why", [KeyboardInterrupt, lab.LabError("the disk is full")])
def test_a_comparison_that_was_ended_goes_on(why, tmp_path, monkeypatch, capsys):
    asked, machine = [], Machine(6, 0.005, 1.3, calm=True)

    def bench(program, flags):
        asked.append(program)
        if len(asked) == 6:  # in the third round
            raise why
        return machine.bench("A" if program == "/bin/true" else "B")

    monkeypatch.setattr(measure, "bench", bench)
    kept = tmp_path / "rounds"
    command = ["compare", "/bin/true", "/bin/false", "--kept", str(kept), "--format", "json"]
    failed = why is not KeyboardInterrupt
    assert main(command) == (2 if failed else 0)
    said = capsys.readouterr()
    assert json.loads(said.out)["pairings"][0]["rounds"] == 2
    assert f"the same command goes on from {kept}" in said.err
    assert ("the disk is full" in said.err) == failed
    assert main(command) == 0
    (pairing,) = json.loads(capsys.readouterr().out)["pairings"]
    assert pairing["rounds"] == 14
    assert {row["verdict"] for row in pairing["rows"]} == {FASTER}
    assert len(asked) == 2 * 14 + 1
    assert not kept.exists()


def test_rounds_are_compared_where_they_cannot_be_kept(tmp_path, monkeypatch, capsys):
    resource = pytest.importorskip("resource")
    machine = Machine(6, 0.005, calm=True)
    monkeypatch.setattr(measure, "bench", lambda program, flags: machine.bench("A"))
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (64 << 10, limits[1]))
    try:
        assert main(["compare", "/bin/true", "/bin/false", "--rounds", "3", "--kept",
                     str(tmp_path / "rounds")]) == 0
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    said = capsys.readouterr()
    assert f"{tmp_path / 'rounds'}: cannot be written: " in said.err
    assert "3 rounds" in said.out


PROGRAM = """#!/bin/bash
for last; do :; done
cp {report} "$last"
"""


# The program runs what --target says at a speed of its own.
def test_flags_of_one_alone(tmp_path, capsys):
    for target, speed in (("AVX2", 1.0), ("AVX3_ZEN4", 2.0)):
        report = synthetic_report(1, speed, targets=(target,), threads=(1,))
        (tmp_path / f"{target}.json").write_text(json.dumps(report))
    program = tmp_path / "encore"
    program.write_text(PROGRAM.format(report=f'{tmp_path}/"${{@:(-3):1}}".json') +
                       f'echo "$*" >> {tmp_path}/asked\n')
    program.chmod(0o755)
    flags = ["--", "--warm", "--b", "--target", "AVX3_ZEN4", "--a", "--target", "AVX2"]
    command = ["compare", str(program), "--format", "json", "--rounds", "14"]
    assert main([*command, *flags]) == 0
    found = json.loads(capsys.readouterr().out)
    (pairing,) = found["pairings"]
    assert {row["verdict"] for row in pairing["rows"]} == {FASTER}
    assert all(row["target"] == ["AVX2", "AVX3_ZEN4"] for row in pairing["rows"])
    assert [one["name"] for one in found["reports"]] == [
        f"{program} --warm --target {target}" for target in ("AVX2", "AVX3_ZEN4")]
    asked = (tmp_path / "asked").read_text().splitlines()
    assert sorted({line.split(" --json")[0] for line in asked}) == [
        f"bench --warm --target {target}" for target in ("AVX2", "AVX3_ZEN4")]
    for wrong, words in ((["--", "--warm"], "--a and --b"), (["--", "--a", "--b"], "--a and --b"),
                         (["--", "--a", "x", "--a", "y"], "--a twice")):
        assert main([*command, *wrong]) == 2
        assert words in capsys.readouterr().err


def test_the_command_turns_until_it_can_tell(tmp_path, capsys):
    for name, speed in (("a", 1.0), ("b", 1.3)):
        report = tmp_path / f"{name}.json"
        report.write_text(json.dumps(synthetic_report(1, speed, targets=("AVX2",), threads=(1,))))
        (tmp_path / name).write_text(PROGRAM.format(report=report))
        (tmp_path / name).chmod(0o755)
    command = ["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--format", "json"]
    assert main(command) == 0
    output = capsys.readouterr()
    (pairing,) = json.loads(output.out)["pairings"]
    assert pairing["rounds"] == 14
    assert {row["verdict"] for row in pairing["rows"]} == {FASTER}
    assert "round 14: " in output.err
    assert main([*command, "--rounds", "2"]) == 0
    assert json.loads(capsys.readouterr().out)["pairings"][0]["rounds"] == 2
    assert main([*command, "--budget", "0"]) == 0
    assert json.loads(capsys.readouterr().out)["pairings"][0]["rounds"] == 1
    for wrong in (["--rounds", "0"], ["--budget", "-1"], ["--budget", "nan"]):
        assert main([*command, *wrong]) == 2
        assert "--rounds" in capsys.readouterr().err
