# SPDX-License-Identifier: Apache-2.0
"""The post-norm encoder block in float64, and how far an engine's output is from it.

"""

import math
import pathlib
import sys

import numpy

import blocks

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tests/make"))

from golden import plain  # noqa: E402  pylint: disable=wrong-import-position

# Largest rms error of an engine that computes the right thing, by precision. f32 gives 5e-7; GELU
# by tanh instead of erf 1e-4; a wrong layout more than 1.
MAX_RMS_ERROR = {"f32": 1e-5, "bf16": 0.03, "int8": 0.15}


def output(workload, tensors, x):
    """y [B, S, D], float64, from the float32 tensors of a block and x [B, S, D]."""
    weights = {name: array.astype(numpy.float64) for name, array in tensors.items()}
    config = {"num_heads": workload.heads, "activation": workload.activation,
              "norm_placement": "kPost", "norm": {"type": "kLayerNorm", "epsilon": blocks.EPSILON}}
    return numpy.stack([plain.layer(weights, config, part) for part in x.astype(numpy.float64)])


def errors(found, wanted):
    """(largest, rms) of found - wanted, by the rms of what is wanted."""
    scale = math.sqrt(numpy.square(wanted).mean())
    difference = found.astype(numpy.float64) - wanted
    return (float(numpy.abs(difference).max() / scale),
            float(math.sqrt(numpy.square(difference).mean()) / scale))


def is_right(rms_error, precision):
    return rms_error <= MAX_RMS_ERROR[precision]  # false for NaN
