# SPDX-License-Identifier: Apache-2.0
"""An engine in a process of its own that answers requests, one JSON value a line; both ends. And
how calls are timed on a machine that does nothing else, as far as it can be seen.
"""

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import tempfile
import time

# Until the threads of a pool that spins for a while after its last call have gone to sleep.
REST_SECONDS = 0.05
# A process that was asked to end, and computes, is killed after so long.
CLOSE_SECONDS = 1
# One that has not answered after so long hangs: opening a large model takes minutes.
ANSWER_SECONDS = 600

# A turn during which other processes took more than this part of one core is taken again.
MAX_OTHERS = 0.05
CALLS_FOR_P99 = 100  # of a turn: of fewer there is none
SLOTS_OF_TURN = 10  # medians of consecutive calls, which show how a turn swung

PR_SET_PDEATHSIG = 1  # of linux/prctl.h
LIBC = ctypes.CDLL(None)


def end_with(parent):
    """From now on the system kills this process when its parent ends, however that ends."""
    if hasattr(LIBC, "prctl"):
        LIBC.prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # which has ended meanwhile
        os._exit(1)


def begin(cores=None):
    """What a new process of ours does first (preexec_fn): ends with us, on these cores or all."""
    parent = os.getpid()

    def first():
        end_with(parent)
        if cores:
            os.sched_setaffinity(0, cores)

    return first


def run(command, cores=None, **options):
    """subprocess.run of a process that ends with this one."""
    return subprocess.run(command, check=False, preexec_fn=begin(cores), **options)


def import_or_leave(name):
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise SystemExit(f"{error}; run `tools/python_env.sh peers`, then this script with "
                         ".deps/venv/bin/python") from error


class RemoteError(RuntimeError):
    """A process that ended, with the end of what it said."""


class Remote:
    """The asking end. `ready` is the answer that the process gives by itself at first."""

    def __init__(self, name, command, cores, environment):
        self.name = name
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            command, env={**os.environ, **environment}, text=True, stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=self.log,
            preexec_fn=begin(cores))
        try:
            self.ready = self.answer()
        except (RemoteError, KeyboardInterrupt):
            self.close()
            raise

    def answer(self):
        # An answer is written at once: what can be read has a whole line, or is the end.
        if not select.select([self.process.stdout], [], [], ANSWER_SECONDS)[0]:
            self.process.kill()
            raise RemoteError(f"{self.name} did not answer within {ANSWER_SECONDS} s")
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.log.seek(0)
            said = self.log.read().strip()[-2000:]
            raise RemoteError(f"{self.name} ended with {self.process.returncode}: {said}")
        return json.loads(line)

    def ask(self, *request):
        time.sleep(REST_SECONDS)
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            pass  # answer() says why
        return self.answer()

    def close(self):
        try:
            self.process.stdin.close()
        except BrokenPipeError:
            pass
        self.process.stdout.close()
        try:
            self.process.wait(CLOSE_SECONDS)
        except subprocess.TimeoutExpired:  # it computes an answer that nobody waits for
            self.process.kill()
            self.process.wait()
        self.log.close()


@contextlib.contextmanager
def busy_processes(count):
    """So many processes that only burn time, on any core."""
    burning = [subprocess.Popen([sys.executable, "-c", "while True: pass"],
                                preexec_fn=begin()) for _ in range(count)]
    try:
        yield
    finally:
        for process in burning:
            process.kill()
            process.wait()


def last_cores(threads):
    """As many cores as threads, the last of those that this process may use."""
    return sorted(os.sched_getaffinity(0))[-threads:]


def serve(make):
    """The answering end. make() gives the first answer and the function that answers requests."""
    end_with(os.getppid())  # a command that this one was started through
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # engines that print do not get between the answers
    first, answer = make()
    print(json.dumps(first), file=out, flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(*json.loads(line))), file=out, flush=True)
    return 0


# ---- Timing -------------------------------------------------------------------------------------

def call_times(call, seconds, least=3, timed=False):
    """Seconds of each of many calls, for about so long, `least` of them at least. timed: call()
    returns the seconds itself."""
    samples = []
    while sum(samples) < seconds or len(samples) < least:
        start = time.perf_counter()
        found = call()
        samples.append(found if timed else time.perf_counter() - start)
    return samples


def busy_seconds():
    """CPU time since the machine started, stolen time included, and how much of it was ours."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
    except OSError:
        return 0.0, 0.0
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def turn(run, retakes):
    """run() on a machine that does nothing else, and the part of a core that others took."""
    for _ in range(1 + retakes):
        start, (all_start, our_start) = time.monotonic(), busy_seconds()
        result = run()
        elapsed, (all_end, our_end) = time.monotonic() - start, busy_seconds()
        others = max(0.0, ((all_end - all_start) - (our_end - our_start)) / elapsed)
        if others <= MAX_OTHERS:
            break
    return result, others


def summary(samples):
    """Of the calls of one turn, in the order they were made: seconds, calls and slots of a row."""
    ordered, parts = sorted(samples), min(len(samples), SLOTS_OF_TURN)

    def at(part):
        return ordered[min(int(len(ordered) * part), len(ordered) - 1)]

    return {"seconds": {"min": ordered[0], "p50": statistics.median(ordered), "p90": at(0.9),
                        "p99": at(0.99) if len(ordered) >= CALLS_FOR_P99 else None,
                        "max": ordered[-1]},
            "calls": len(samples),
            "slots": [statistics.median(samples[len(samples) * i // parts:
                                                len(samples) * (i + 1) // parts])
                      for i in range(parts)]}
