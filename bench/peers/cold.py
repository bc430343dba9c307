# SPDX-License-Identifier: Apache-2.0
"""Cold weights: the layers of a model larger than the caches, in one call whose time is divided by
their number. `encore bench --cold` has copies of a layer, one a call, and times their overhead too.

"""

import pathlib

import numpy

# Weights that no cache keeps are so many times the L3, and so many bytes at most, as CopiesForCold
# and kMostColdBytes (bench/measure/forward.h) have it.
TIMES_L3, MOST_BYTES = 4, 1 << 30
# A model has at least that many layers to go through before it meets the first one again ...
MIN_LAYERS = 12
# ... and at most so many, for engines take minutes to compile more. Where these fit into the cache,
# it is swept before each call.
MAX_LAYERS = 128
BYTES = {"f32": 4, "bf16": 2, "int8": 1}  # of a weight
DEFAULT_L3 = 32 << 20


def l3_bytes():
    """Of the cache that cpu0 has; a guess where the system does not tell."""
    for folder in sorted(pathlib.Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            if (folder / "level").read_text().strip() == "3":
                text = (folder / "size").read_text().strip()
                return int(text.removesuffix("K")) << 10
        except (OSError, ValueError):
            pass
    return DEFAULT_L3


def bytes_for_cold():
    """That memory is read through to meet none of it in a cache."""
    return min(TIMES_L3 * l3_bytes(), MOST_BYTES)


def weight_bytes(workload, precision):
    return workload.weight_elements * BYTES[precision]


def layers(workload, precision):
    """How many layers a model has for its weights to come from memory."""
    wanted = bytes_for_cold() // weight_bytes(workload, precision) + 2
    return min(max(wanted, MIN_LAYERS), MAX_LAYERS)


class Sweep:
    """Call it to replace what is in the caches, if the layers of a cold model fit into them.

    One core sweeps: with more threads, other cores keep what is in their L2.
    """

    def __init__(self, workload, precision):
        cold_bytes = layers(workload, precision) * weight_bytes(workload, precision)
        self.other = None
        if cold_bytes < bytes_for_cold():
            self.other = numpy.ones(bytes_for_cold() // 8)

    def __call__(self):
        if self.other is not None:
            self.other.sum()
