# SPDX-License-Identifier: Apache-2.0
"""The post-norm encoder block in float64, and how far an engine's output is from it.

Not here: sizes and weights (blocks.py), engines.
"""

import math

import numpy

import blocks

# Largest rms error of an engine that computes the right thing, by precision. f32 gives 5e-7; GELU
# by tanh instead of erf 1e-4; a wrong layout more than 1.
MAX_RMS_ERROR = {"f32": 1e-5, "bf16": 0.03, "int8": 0.15}

_erf = numpy.vectorize(math.erf, otypes=[numpy.float64])


def activate(x, activation):
    if activation == "relu":
        return numpy.maximum(x, 0)
    return 0.5 * x * (1 + _erf(x / math.sqrt(2)))


def layer_norm(x, gamma, beta):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred * centred).mean(-1, keepdims=True)
    return centred / numpy.sqrt(variance + blocks.EPSILON) * gamma + beta


def attention(x, weights, heads):
    """[B, S, D] -> [B, S, D]: all of attention except the output projection."""
    b, s, d = x.shape
    qkv = x @ weights["self_attn.in_proj_weight"].T + weights["self_attn.in_proj_bias"]
    q, k, v = qkv.reshape(b, s, 3, heads, d // heads).transpose(2, 0, 3, 1, 4)
    scores = q @ k.transpose(0, 1, 3, 2) / math.sqrt(d // heads)
    scores = numpy.exp(scores - scores.max(-1, keepdims=True))
    probabilities = scores / scores.sum(-1, keepdims=True)
    return (probabilities @ v).transpose(0, 2, 1, 3).reshape(b, s, d)


def output(workload, tensors, x):
    """y [B, S, D], float64, from the float32 tensors of a block and x [B, S, D]."""
    weights = {name: array.astype(numpy.float64) for name, array in tensors.items()}
    x = x.astype(numpy.float64)

    def linear(value, name):
        return value @ weights[f"{name}.weight"].T + weights[f"{name}.bias"]

    def norm(value, name):
        return layer_norm(value, weights[f"{name}.weight"], weights[f"{name}.bias"])

    x = norm(x + linear(attention(x, weights, workload.heads), "self_attn.out_proj"), "norm1")
    hidden = activate(linear(x, "linear1"), workload.activation)
    return norm(x + linear(hidden, "linear2"), "norm2")


def errors(found, wanted):
    """(largest, rms) of found - wanted, by the rms of what is wanted."""
    scale = math.sqrt(numpy.square(wanted).mean())
    difference = found.astype(numpy.float64) - wanted
    return (float(numpy.abs(difference).max() / scale),
            float(math.sqrt(numpy.square(difference).mean()) / scale))


def is_right(rms_error, precision):
    return rms_error <= MAX_RMS_ERROR[precision]  # false for NaN
