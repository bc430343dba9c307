# SPDX-License-Identifier: Apache-2.0
"""Vectors in fewer bits, as sentence_transformers.util.quantize_embeddings makes them."""

from __future__ import annotations

import logging
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyencore._arrays import as_array
from pyencore._inputs import kind, shown

Precision = Literal["float32", "float16", "int8", "uint8", "binary", "ubinary"]
PRECISIONS = ("float32", "float16", "int8", "uint8", "binary", "ubinary")

_log = logging.getLogger("pyencore")


def dtype_of(precision: str) -> type[Any]:
    return {
        "float32": np.float32,
        "float16": np.float16,
        "int8": np.int8,
        "uint8": np.uint8,
        "binary": np.int8,
        "ubinary": np.uint8,
    }[precision]


def columns_of(precision: str, dimensions: int) -> int:
    """Columns of a vector of that many dimensions: binary ones have eight in a byte."""
    return (dimensions + 7) // 8 if precision.endswith("binary") else dimensions


def _numbers(value: Any, name: str) -> NDArray[Any]:
    array = as_array(name, value)
    if array.ndim == 0:
        raise TypeError(f"{name} is {kind(value)}; wanted an array of numbers")
    return array


def _ranges_of(vectors: NDArray[Any], precision: str, calibration: Any) -> NDArray[Any]:
    if calibration is None:
        if vectors.ndim == 1 or vectors.shape[0] == 1:
            raise ValueError(
                f"Cannot compute {precision} quantization ranges from a single embedding. Call "
                "`quantize_embeddings` with `ranges` or `calibration_embeddings` from a "
                "representative set of embeddings instead."
            )
        if vectors.shape[0] < 100:
            _log.warning(
                "Computing %s quantization buckets based on %d embeddings; `ranges` or "
                "`calibration_embeddings` from more make it more stable.",
                precision,
                len(vectors),
            )
        calibration = vectors
    calibration = _numbers(calibration, "calibration_embeddings")
    if calibration.ndim != 2 or not len(calibration) or calibration.shape[1] != vectors.shape[-1]:
        raise ValueError(
            f"calibration_embeddings is {list(calibration.shape)}; wanted [embeddings, dimensions] "
            f"of {vectors.shape[-1]} dimensions"
        )
    return np.vstack((np.min(calibration, axis=0), np.max(calibration, axis=0)))


def _matrices_of(embeddings: Any) -> list[NDArray[Any]] | None:
    """Those of several texts, a row for each token; None of anything else."""
    if not isinstance(embeddings, (list, tuple)) or not embeddings:
        return None
    if any(getattr(one, "ndim", 0) != 2 for one in embeddings):
        return None
    return [_numbers(one, f"embeddings[{i}]") for i, one in enumerate(embeddings)]


def quantize_embeddings(
    embeddings: Any,
    precision: Precision,
    ranges: NDArray[Any] | None = None,
    calibration_embeddings: Any = None,
) -> Any:
    """Vectors [n, dimensions] in `precision`, or a list of such matrices, a text's tokens each.

    int8 and uint8 cut each column's range into 255 steps: that of `ranges` [2, dimensions] (least
    and largest), else of `calibration_embeddings`, else of the vectors themselves, of all matrices
    together. binary and ubinary keep the signs, eight in a byte.
    """
    if not isinstance(precision, str) or precision not in PRECISIONS:
        raise ValueError(
            f"Precision {shown(precision)} is not supported, must be one of {PRECISIONS}"
        )
    if isinstance(embeddings, list) and not embeddings:
        return []  # as sentence-transformers
    matrices = _matrices_of(embeddings)
    if matrices is None:
        vectors = _numbers(embeddings, "embeddings")
        return _quantized(vectors, precision, ranges, calibration_embeddings)
    if ranges is None and precision.endswith("int8") and any(map(len, matrices)):
        rows = np.concatenate(matrices)
        ranges = _ranges_of(rows, precision, calibration_embeddings)
    return [_quantized(one, precision, ranges, calibration_embeddings) for one in matrices]


def _quantized(
    vectors: NDArray[Any], precision: Precision, ranges: Any, calibration: Any
) -> NDArray[Any]:
    if vectors.dtype in (np.uint8, np.int8):
        raise ValueError("Embeddings to quantize must be float rather than int8 or uint8.")
    if vectors.ndim == 2 and len(vectors) == 0:
        return np.zeros((0, columns_of(precision, vectors.shape[1])), dtype_of(precision))
    if precision in ("float32", "float16"):
        return vectors.astype(dtype_of(precision))
    if precision == "binary":
        bits: NDArray[np.uint8] = np.packbits(vectors > 0, axis=-1)
        return (bits - np.uint8(128)).view(np.int8)
    if precision == "ubinary":
        return np.packbits(vectors > 0, axis=-1)
    if ranges is None:
        ranges = _ranges_of(vectors, precision, calibration)
    limits = _numbers(ranges, "ranges").astype(np.float32, copy=False)
    if limits.shape != (2, vectors.shape[-1]):
        raise ValueError(f"ranges is {list(limits.shape)}; wanted [2, {vectors.shape[-1]}]")
    steps = (limits[1] - limits[0]) / 255
    steps = np.where(steps == 0, 1, steps)
    levels = np.clip(np.floor((vectors - limits[0]) / steps), 0, 255)
    if precision == "uint8":
        return np.asarray(levels, np.uint8)
    return np.asarray(levels - 128, np.int8)
