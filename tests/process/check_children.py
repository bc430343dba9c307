#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks that the processes which bench/peers starts end with the script that started them, however
# that ends: SIGTERM, SIGINT and SIGKILL come while a process is asked and works. One that worked on
# would disturb whatever is measured next.
#
#   tests/process/check_children.py   exit 1 with one line for each that was left. Linux only.

import os
import pathlib
import signal
import subprocess
import sys
import time

PEERS = pathlib.Path(__file__).resolve().parents[2] / "bench/peers"
PATIENCE_SECONDS = 5
# Each prints the number of the process that works, and then works until it is ended.
ENGINE = """
import os, sys
import remote
def work():
    while True: pass
remote.serve(lambda: (os.getpid(), work))
"""
SCRIPTS = {
    "an engine that is asked": f"""
import sys, remote
engine = remote.Remote("engine", [sys.executable, "-c", {ENGINE!r}], remote.last_cores(1), {{}})
print(engine.ready, flush=True)
try:
    engine.ask()
finally:
    engine.close()
""",
    "an engine behind another command": f"""
import sys, remote
behind = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]])"
engine = remote.Remote("engine", [sys.executable, "-c", behind, {ENGINE!r}],
                       remote.last_cores(1), {{}})
print(engine.ready, flush=True)
engine.ask()
""",
    "a command line": """
import sys, remote
remote.run([sys.executable, "-c", "import os\\nprint(os.getpid(), flush=True)\\nwhile True: pass"])
""",
}


def is_there(process):
    """A zombie is not: whoever inherits it has yet to ask for its status."""
    try:
        stat = pathlib.Path(f"/proc/{process}/stat").read_text(encoding="ascii")
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rsplit(")", 1)[1].split()[0] != "Z"


def is_left(script, number):
    """Whether the process that the script started works on after the script was ended."""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL, text=True,
                          env={**os.environ, "PYTHONPATH": str(PEERS)}) as parent:
        child = int(parent.stdout.readline())
        time.sleep(0.2)  # until it has been asked
        parent.send_signal(number)
        end = time.monotonic() + PATIENCE_SECONDS
        while is_there(child) and time.monotonic() < end:
            time.sleep(0.02)
        left = is_there(child)
        if left:
            os.kill(child, signal.SIGKILL)
        parent.kill()
    return left


def main():
    offences = [f"bench/peers: {name} was left by a script that {number.name} ended"
                for name, script in SCRIPTS.items()
                for number in (signal.SIGTERM, signal.SIGINT, signal.SIGKILL)
                if is_left(script, number)]
    print("\n".join(offences) or "check_children: no process is left")
    return bool(offences)


if __name__ == "__main__":
    sys.exit(main())
