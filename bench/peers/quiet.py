# SPDX-License-Identifier: Apache-2.0
"""Turns of a measurement on a machine that does nothing else, as far as it can be seen.

"""

import os
import time

# A turn during which other processes took more than this part of one core is taken again ...
MAX_OTHERS = 0.05
# ... so many times at most.
RETAKES = 3


def busy_seconds():
    """CPU time since the machine started, stolen time included, and how much of it was ours."""
    try:
        with open("/proc/stat", encoding="ascii") as file:
            fields = [int(field) for field in file.readline().split()[1:9]]
    except OSError:
        return 0.0, 0.0
    idle = fields[3] + fields[4]
    return (sum(fields) - idle) / os.sysconf("SC_CLK_TCK"), sum(os.times()[:4])


def turn(run, retakes=RETAKES):
    """run() on a machine that does nothing else, and the part of a core that others took."""
    for _ in range(1 + retakes):
        start, (all_start, our_start) = time.monotonic(), busy_seconds()
        result = run()
        elapsed, (all_end, our_end) = time.monotonic() - start, busy_seconds()
        others = max(0.0, ((all_end - all_start) - (our_end - our_start)) / elapsed)
        if others <= MAX_OTHERS:
            break
    return result, others
