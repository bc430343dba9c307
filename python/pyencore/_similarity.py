# SPDX-License-Identifier: Apache-2.0
"""The four similarities of sentence-transformers, of all pairs or row by row."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyencore._arguments import plain
from pyencore._arrays import Floats, as_floats
from pyencore._inputs import one_of

SimilarityName = Literal["cosine", "dot", "euclidean", "manhattan"]
NAMES = ("cosine", "dot", "euclidean", "manhattan")

# Values of differences in memory at once.
_BLOCK = 1 << 24


def _unit(x: Floats) -> Floats:
    length = np.sqrt(np.square(x).sum(axis=-1, keepdims=True))
    return np.asarray(x / np.maximum(length, np.float32(1e-12)), np.float32)


def _distances(a: Floats, b: Floats, euclidean: bool) -> Floats:
    distances = np.empty((len(a), len(b)), np.float32)
    rows = max(1, _BLOCK // max(1, b.size))
    for begin in range(0, len(a), rows):
        difference = a[begin : begin + rows, None, :] - b[None, :, :]
        if euclidean:
            distances[begin : begin + rows] = np.linalg.norm(difference, axis=-1)
        else:
            distances[begin : begin + rows] = np.abs(difference).sum(axis=-1)
    return distances


def _both(first: Any, second: Any) -> tuple[Floats, Floats]:
    return as_floats("embeddings1", first), as_floats("embeddings2", second)


def all_pairs(name: str, first: Any, second: Any) -> NDArray[np.float32]:
    """[len(first), len(second)]; a single vector counts as a matrix of one row."""
    a, b = (np.atleast_2d(one) for one in _both(first, second))
    if a.ndim != 2 or b.ndim != 2 or a.shape[1] != b.shape[1]:
        raise ValueError(
            f"embeddings1 is {list(a.shape)}, embeddings2 is {list(b.shape)}; wanted [n, D] and "
            "[m, D]"
        )
    if name == "cosine":
        a, b = _unit(a), _unit(b)
    if name in ("cosine", "dot"):
        product: Floats = a @ b.T
        return product
    return -_distances(a, b, name == "euclidean")


def pairwise(name: str, first: Any, second: Any) -> NDArray[np.float32]:
    """[len(first)]: of first[i] and second[i]."""
    a, b = _both(first, second)
    try:
        np.broadcast_shapes(a.shape, b.shape)
        fit = a.shape[-1:] == b.shape[-1:] != ()
    except ValueError:
        fit = False
    if not fit:
        raise ValueError(
            f"embeddings1 is {list(a.shape)}, embeddings2 is {list(b.shape)}; wanted the same shape"
        )
    if name == "cosine":
        a, b = _unit(a), _unit(b)
    if name in ("cosine", "dot"):
        return np.asarray((a * b).sum(axis=-1))
    if name == "euclidean":
        return np.asarray(-np.linalg.norm(a - b, axis=-1))
    return np.asarray(-np.abs(a - b).sum(axis=-1))


def known(name: Any, names: tuple[str, ...], absent: str) -> str:
    """The name, or that of an enum; of None the one that holds without a choice."""
    return one_of("similarity_fn_name", absent if name is None else plain(name), names)
