# SPDX-License-Identifier: Apache-2.0
#
# The test binaries of a build with mutants: which mutants each reaches, and whether it notices one.
# A unit is {"binary", "filter", "seconds", "reaches"}: a whole binary, or one of its tests. Not
# here: which mutants there are.

import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import tempfile
import threading
import time

WHOLE = 3.0  # seconds: binaries that take longer run test by test
GRACE = 15.0  # seconds that any unit may take
NOBODY = 65534  # the user that tests run as where this is root
MARKS = 1 << 16  # bytes that say what is reached, as in header.py


class Killed(Exception):
    """Why a unit failed."""


def in_parallel(work):
    """Calls work(n) in as many threads as there are cores."""
    threads = [threading.Thread(target=work, args=(n,)) for n in range(os.cpu_count())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class Tests:
    def __init__(self, build, place):
        self.folder = pathlib.Path(build) / "tests"
        self.place = pathlib.Path(place)

    def run(self, unit, worker, limit, variables):
        """Runs a unit in a folder of the worker's. Returns its seconds, or raises Killed."""
        # Not below the tree: errors that tests look at show so much of a path and no more.
        room = pathlib.Path(tempfile.gettempdir()) / f"mutants{os.getpid()}-{worker}"
        shutil.rmtree(room, ignore_errors=True)
        room.mkdir(parents=True)
        if os.geteuid() == 0:
            os.chown(room, NOBODY, NOBODY)

        def bounds():
            # A mutant may write where the original refuses to, and root may write anywhere.
            if os.geteuid() == 0:
                os.setgroups([])
                os.setgid(NOBODY)
                os.setuid(NOBODY)
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 31, 1 << 31))
            resource.setrlimit(resource.RLIMIT_AS, (1 << 33, 1 << 33))

        command = [self.folder / unit["binary"], "--gtest_fail_fast", "--gtest_brief=1",
                   f"--gtest_filter={unit['filter']}"]
        env = {**os.environ, "TMPDIR": str(room), "TEST_TMPDIR": str(room), **variables}
        with open(room / "log", "w") as log:
            started, waited = time.monotonic(), 0.0
            child = subprocess.Popen(command, stdout=log, stderr=log, cwd=room, env=env,
                                     preexec_fn=bounds, start_new_session=True)
            while child.poll() is None:
                time.sleep(0.01)
                waited += 0.011  # not the clock: both processes may have been stopped for a while
                if waited > limit:
                    os.killpg(child.pid, signal.SIGKILL)  # with what it forked
                    child.wait()
                    raise Killed("time")
        output = (room / "log").read_text(errors="replace")
        shutil.rmtree(room, ignore_errors=True)
        if child.returncode != 0:
            failed = re.search(r"\[  FAILED  \] ([^\s,]+)", output)
            raise Killed(failed[1] if failed else f"exit {child.returncode}")
        return time.monotonic() - started

    def kill(self, mutant, units, worker, seconds):
        """Runs units until one fails, for about so many seconds: (which, or "", how many ran)."""
        spent, ran = 0.0, 0
        for unit in units:
            if spent > seconds:
                break
            try:
                limit = max(GRACE, 10 * unit["seconds"])
                spent += self.run(unit, worker, limit, {"ENCORE_MUTANT": str(mutant)})
                ran += 1
            except Killed as why:
                return f"{unit['binary']}: {why}", ran
        return "", ran

    def split(self, unit):
        """A whole binary as a unit for each of its tests."""
        listed = subprocess.run([self.folder / unit["binary"], "--gtest_list_tests"],
                                capture_output=True, text=True, check=True).stdout
        suite, result = "", []
        for line in listed.splitlines():
            name = line.split("#")[0].strip()
            if line.startswith("  "):
                result.append({"binary": unit["binary"], "filter": suite + name})
            elif name.endswith("."):
                suite = name
        return result

    def learn(self, mutants):
        """Every unit that passes, with its time and the mutants that it reaches."""
        units = []
        pending = [{"binary": path.name, "filter": "*"}
                   for path in sorted(self.folder.glob("*_test"), reverse=True)]

        def learner(worker):
            marks = self.place / f"reached{worker}"
            while True:
                try:
                    unit = pending.pop()
                except IndexError:
                    return
                marks.write_bytes(bytes(MARKS))
                marks.chmod(0o666)
                whole = unit["filter"] == "*"
                try:
                    seconds = self.run(unit, worker, 1800, {"ENCORE_MUTANT_REACHED": str(marks)})
                except Killed as why:
                    print(f"fails by itself: {unit['binary']} {unit['filter']}: {why}", flush=True)
                    seconds = None
                if whole and (seconds is None or seconds > WHOLE):
                    pending.extend(self.split(unit))
                elif seconds is not None:
                    reached = marks.read_bytes()
                    units.append(unit | {"seconds": seconds,
                                         "reaches": [m for m in mutants if reached[m]]})

        in_parallel(learner)
        return units
