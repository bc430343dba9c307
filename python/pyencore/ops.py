# SPDX-License-Identifier: Apache-2.0
"""encore's operations on arrays, by themselves: f32, on the calling thread (PackedLinear on several
where asked to), the same bits on every machine with FMA."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyencore import _core
from pyencore._arguments import KnownAttributes
from pyencore._arrays import Floats, as_floats, mask_of, maybe_floats, writable
from pyencore._inputs import check_threads, checked, integer
from pyencore._opened import forget_threads_after_fork

__all__ = [
    "PackedLinear", "add", "attention", "exp", "gelu", "gelu_tanh", "layer_norm", "matmul", "relu",
    "rms_norm", "silu", "softmax", "tanh",
]


def _unary(operation: Any, x: Any, out: Any) -> Any:
    values = as_floats("x", x)
    y = np.empty(values.shape, np.float32) if out is None else writable(out, values.shape, "f4")
    operation(values, y)
    return y if out is None else out


def exp(x: Any, *, out: Any = None) -> Any:
    """e^x"""
    return _unary(_core.ops_exp, x, out)


def tanh(x: Any, *, out: Any = None) -> Any:
    return _unary(_core.ops_tanh, x, out)


def relu(x: Any, *, out: Any = None) -> Any:
    """max(x, 0)"""
    return _unary(_core.ops_relu, x, out)


def gelu(x: Any, *, out: Any = None) -> Any:
    """x Phi(x), the erf form"""
    return _unary(_core.ops_gelu, x, out)


def gelu_tanh(x: Any, *, out: Any = None) -> Any:
    """x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3)))"""
    return _unary(_core.ops_gelu_tanh, x, out)


def silu(x: Any, *, out: Any = None) -> Any:
    """x / (1 + e^-x)"""
    return _unary(_core.ops_silu, x, out)


def softmax(x: Any, *, out: Any = None) -> Any:
    """Over the last axis."""
    return _unary(_core.ops_softmax, x, out)


def add(a: Any, b: Any) -> Floats:
    """a + b, of one shape."""
    first, second = as_floats("a", a), as_floats("b", b)
    c = np.empty(first.shape, np.float32)
    _core.ops_add(first, second, c)
    return c


def matmul(a: Any, b: Any, bias: Any = None) -> Floats:
    """a [M, K] times b [K, N], plus bias [N]: one chain of FMAs over k = 0, 1, 2 ..."""
    left, right = as_floats("a", a), as_floats("b", b)
    if left.ndim != 2 or right.ndim != 2:
        raise ValueError(
            f"a is {list(left.shape)}, b is {list(right.shape)}; wanted [M, K], [K, N]"
        )
    c = np.empty((left.shape[0], right.shape[1]), np.float32)
    _core.ops_matmul(left, right, maybe_floats("bias", bias), c)
    return c


class PackedLinear(KnownAttributes):
    """x [M, K] -> x weight^T + bias [M, N], of a weight [N, K] that is packed once.

    As torch.nn.Linear has it. Any number of threads may call it at once.
    """

    @checked
    def __init__(self, weight: Any, bias: Any = None, *, threads: int = 1) -> None:
        check_threads(threads)
        self._core = _core.Linear(as_floats("weight", weight), maybe_floats("bias", bias), threads)
        forget_threads_after_fork(self._core)

    def __call__(self, x: Any, *, out: Any = None) -> Any:
        rows = as_floats("x", x)
        if rows.ndim != 2:
            raise ValueError(f"x is {list(rows.shape)}; wanted [M, K]")
        shape = (len(rows), self._core.out_features)
        y = np.empty(shape, np.float32) if out is None else writable(out, shape, "f4")
        self._core.apply(rows, y)
        return y if out is None else out

    def __reduce__(self) -> Any:
        raise TypeError("a PackedLinear cannot be pickled, as it has no copy of its weight")


@checked
def layer_norm(x: Any, weight: Any = None, bias: Any = None, epsilon: float = 1e-5) -> Floats:
    """(x - mean) / sqrt(variance + epsilon) * weight + bias over the last axis."""
    values = as_floats("x", x)
    y = np.empty(values.shape, np.float32)
    _core.ops_layer_norm(
        values, maybe_floats("weight", weight), maybe_floats("bias", bias), epsilon, y
    )
    return y


@checked
def rms_norm(x: Any, weight: Any = None, epsilon: float = 1e-5) -> Floats:
    """x / sqrt(mean of x^2 + epsilon) * weight over the last axis."""
    values = as_floats("x", x)
    y = np.empty(values.shape, np.float32)
    _core.ops_rms_norm(values, maybe_floats("weight", weight), epsilon, y)
    return y


@checked
def attention(
    q: Any,
    k: Any,
    v: Any,
    attn_mask: Any = None,
    *,
    causal: bool = False,
    window: int | None = None,
    scale: float | None = None,
    return_weights: bool = False,
) -> Any:
    """softmax(q k^T * scale + mask) v: q [..., Sq, D], k [..., Sk, D], v [..., Sk, Dv].

    attn_mask [Sq, Sk] is boolean (true: may not be seen) or added to scores. scale is
    1 / sqrt(D) by default. With return_weights also the weights [..., Sq, Sk].
    """
    queries, keys, values = as_floats("q", q), as_floats("k", k), as_floats("v", v)
    for name, array in (("q", queries), ("k", keys), ("v", values)):
        if array.ndim < 2:
            raise ValueError(f"{name} is {list(array.shape)}; wanted [..., tokens, D]")
    if window is not None:
        integer("window", window, 0)
    out = np.empty((*queries.shape[:-1], values.shape[-1]), np.float32)
    weights = None
    if return_weights:
        weights = np.empty((*queries.shape[:-1], keys.shape[-2]), np.float32)
    blocked, additive = mask_of("attn_mask", attn_mask)
    _core.ops_attention(
        queries, keys, values, causal, blocked, additive, window, scale or 0.0, weights, out
    )
    return (out, weights) if return_weights else out
