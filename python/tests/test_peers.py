# SPDX-License-Identifier: Apache-2.0
"""bench/peers/compare.py: what was measured is kept when it is ended, and when a peer hangs."""

import importlib

import pytest
from conftest import ROOT
from pyencore.lab import LabError

pytestmark = pytest.mark.skipif(not hasattr(__import__("os"), "sched_getaffinity"),
                                reason="engines are bound to cores")

# Two cases of two engines, of which one hangs in the first case once it is asked.
BENCHMARK = """\"\"\"Made up.\"\"\"
import time, types
import compare

ENGINES_ACROSS = True
def add_options(parser): parser.add_argument("--hang", action="store_true")
def prepare(case, folder): pass
def cases(options):
    for name in ("first", "second"):
        yield compare.Case(name, 1, {"": (1, "call")})
def engines(options, case):
    for name in ("base", "peer"):
        yield {"engine": name, "precision": "f32", "is_base": name == "base",
               "hang": options.hang and (case.name, name) == ("first", "peer")}
def opened(job):
    made = []
    def call():
        if job["hang"] and made:
            time.sleep(1000)
        made.append(1)
    return types.SimpleNamespace(calls={"": call}, output=None, about={})
"""
COMMAND = ["made_up", "--rounds", "2", "--seconds", "0.01", "--retakes", "0", "--markdown"]


@pytest.fixture
def peers(tmp_path, monkeypatch):
    (tmp_path / "made_up.py").write_text(BENCHMARK)
    for folder in (ROOT / "bench" / "peers", tmp_path):
        monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), ":")
    compare = importlib.import_module("compare")
    monkeypatch.setattr(compare, "BENCHMARKS", ("made_up",))
    return compare


def lines_of(text):
    return [[cell.strip() for cell in line.split("|")[1:-1]]
            for line in text.splitlines() if line.startswith(("| first", "| second"))]


def test_a_peer_that_hangs_is_left_out(peers, monkeypatch, capsys):
    ask = peers.remote.Remote.ask

    def ask_briefly(self, *request):
        with monkeypatch.context() as brief:
            brief.setattr(peers.remote, "ANSWER_SECONDS", 5)
            return ask(self, *request)

    monkeypatch.setattr(peers.remote.Remote, "ask", ask_briefly)
    assert peers.main([*COMMAND, "--hang"]) == 0
    said = capsys.readouterr()
    assert "left out from here: peer f32 did not answer within 5 s" in said.err
    first, second = lines_of(said.out)
    assert first[3] and not any(first[4:])
    assert all(second)


@pytest.mark.parametrize("why", [KeyboardInterrupt(), LabError("the disk is full")])
def test_the_same_command_goes_on(peers, why, tmp_path, monkeypatch, capsys):
    run_case, asked = peers.run_case, []

    def run_some(options, module, case):
        asked.append(case.name)
        if len(asked) == 2:
            raise why
        return run_case(options, module, case)

    monkeypatch.setattr(peers, "run_case", run_some)
    kept = tmp_path / "rows.kept"
    command = [*COMMAND, "--kept", str(kept)]
    assert peers.main(command) == 1
    said = capsys.readouterr()
    assert f"goes on from {kept}" in said.err
    before = lines_of(said.out)
    assert [line[0] for line in before] == ["first"]
    assert peers.main(command) == 0
    assert asked == ["first", "second", "second"]
    after = lines_of(capsys.readouterr().out)
    assert after[0] == before[0] and [line[0] for line in after] == ["first", "second"]
    assert not kept.exists()
