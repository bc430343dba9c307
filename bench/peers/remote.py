# SPDX-License-Identifier: Apache-2.0
"""An engine in a process of its own that answers requests, one JSON value a line; both ends.

"""

import contextlib
import ctypes
import importlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

# Until the threads of a pool that spins for a while after its last call have gone to sleep.
REST_SECONDS = 0.05
# A process that was asked to end, and computes, is killed after so long.
CLOSE_SECONDS = 1

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
