# SPDX-License-Identifier: Apache-2.0
"""The test profile of packaging/phoronix/: its files are whole, the command that it installs runs
with every option that it offers, and its parser finds the result."""

import os
import pathlib
import re
import subprocess
import xml.etree.ElementTree

import pytest
from pyencore import __version__

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "packaging" / "phoronix"
ENCORE = os.environ.get("ENCORE")


def tree(name):
    return xml.etree.ElementTree.parse(FOLDER / name).getroot()


def options():
    return [[(option.findtext("ArgumentPrefix") or "") + entry.findtext("Value")
             for entry in option.iter("Entry")] for option in tree("test-definition.xml").iter(
                 "Option")]


def test_the_profile_is_whole():
    root = tree("test-definition.xml")
    assert root.tag == tree("results-definition.xml").tag == "PhoronixTestSuite"
    for path in ("TestInformation/Title", "TestInformation/Description", "TestProfile/Version",
                 "TestInformation/ResultScale", "TestProfile/SupportedPlatforms",
                 "TestProfile/SoftwareType", "TestProfile/TestType", "TestProfile/License",
                 "TestProfile/Status", "TestProfile/Maintainer",
                 "TestSettings/Default/Arguments"):  # what the suite's schema requires
        assert root.findtext(path), path
    assert root.findtext("TestInformation/AppVersion") == __version__
    assert root.findtext("TestInformation/Proportion") == "HIB"
    assert [len(entries) for entries in options()] == [3, 4]


@pytest.mark.skipif(not ENCORE, reason="LEFT OUT: ENCORE names no encore command")
def test_what_it_installs_runs_and_has_a_result(tmp_path):
    environment = {**os.environ, "HOME": str(tmp_path), "ENCORE": os.path.abspath(ENCORE),
                   "LOG_FILE": str(tmp_path / "log")}
    subprocess.run([FOLDER / "install.sh"], cwd=tmp_path, env=environment, check=True)
    assert (tmp_path / "install-exit-status").read_text() == "0\n"
    known = subprocess.run([ENCORE, "bench", "--list"], text=True, stdout=subprocess.PIPE,
                           check=True).stdout.split()
    layers, precisions = options()
    assert {layer.split()[1] for layer in layers} < set(known)
    arguments = tree("test-definition.xml").findtext("TestSettings/Default/Arguments")
    parser = tree("results-definition.xml").find("ResultsParser")
    place = parser.findtext("OutputTemplate").split().index("#_RESULT_#")
    for precision in precisions:
        words = f"{arguments} {layers[0]} {precision} --seconds 0.01".replace("--seconds 2 ", "")
        subprocess.run(["./encore", *words.split()], cwd=tmp_path, env=environment, check=True)
        assert (tmp_path / "test-exit-status").read_text() == "0\n"
        lines = [line.replace(parser.findtext("TurnCharsToSpace"), " ").split()
                 for line in (tmp_path / "log").read_text().splitlines()
                 if parser.findtext("LineHint") in line]
        assert len(lines) == 1, "a row, and so a result"
        assert re.fullmatch(r"\d+\.\d+", lines[0][place])
