# SPDX-License-Identifier: Apache-2.0
"""Vectors of tokens below each other: in float32, and of documents in bf16 or int8."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyencore import _core
from pyencore._arrays import as_floats, is_tensor

StoredType = Literal["bf16", "int8"]


class StoredVectors:
    """Documents' token vectors in half (bf16) or a quarter (int8) of the memory.

    vectors [rows, dimension] are int8, with scales [rows]: a row is scale times its integers; or
    uint16, the bits of bf16. Text i has the rows from row_starts[i] to row_starts[i + 1]. The
    arrays of a file by `encore embed --output-type int8` are these:
    StoredVectors(**numpy.load("out.npz")).
    """

    def __init__(
        self,
        vectors: NDArray[Any],
        row_starts: Any,
        scales: NDArray[np.float32] | None = None,
    ) -> None:
        if vectors.ndim != 2 or vectors.dtype not in (np.int8, np.uint16):
            raise ValueError(
                f"vectors are {vectors.dtype} {list(vectors.shape)}; wanted int8, or uint16 (the "
                "bits of bf16), and [rows, dimension]"
            )
        if (scales is None) == (vectors.dtype == np.int8):
            raise ValueError(
                f"vectors are {vectors.dtype} {'without' if scales is None else 'with'} scales; "
                "wanted int8 with, or uint16 without"
            )
        self.vectors = vectors
        self.scales = scales
        self.row_starts: NDArray[np.int64] = np.asarray(row_starts, np.int64)

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    @property
    def tensors(self) -> bool:
        return False

    @property
    def nbytes(self) -> int:
        return self.vectors.nbytes + (0 if self.scales is None else self.scales.nbytes)

    def one(self, i: int) -> StoredVectors:
        begin, end = self.row_starts[i : i + 2]
        scales = None if self.scales is None else self.scales[begin:end]
        return StoredVectors(self.vectors[begin:end], [0, end - begin], scales)


def store_vectors(embeddings: Any, precision: StoredType) -> StoredVectors:
    """One matrix [rows, dimension] of a text, or a list of these, in bf16 or int8.

    bf16 numbers are rounded to nearest. An int8 row has the scale of its largest magnitude over
    127. MultiVectorEncoder.similarity takes them as documents.
    """
    if precision not in ("bf16", "int8"):
        raise ValueError(f"precision is {precision!r}; wanted 'bf16' or 'int8'")
    rows = Ragged(embeddings)
    vectors, scales = _core.store_vectors(rows.rows, precision == "int8")
    return StoredVectors(vectors, rows.starts, scales)


class Ragged:
    """Matrices below each other, with their starts."""

    def __init__(self, given: Any) -> None:
        one = getattr(given, "ndim", 0) == 2
        self.tensors = is_tensor(given) or (
            isinstance(given, (list, tuple)) and bool(given) and is_tensor(given[0])
        )
        self.parts = [as_floats(given)] if one else [as_floats(part) for part in given]
        for part in self.parts:
            if part.ndim != 2:
                raise ValueError(
                    f"found an embedding of shape {list(part.shape)}; wanted [rows, dimension]"
                )
        self.starts = [0, *np.cumsum([len(part) for part in self.parts]).tolist()]
        width = self.parts[0].shape[1] if self.parts else 0
        self.rows = (
            self.parts[0]
            if len(self.parts) == 1
            else np.concatenate(self.parts)
            if self.parts
            else np.empty((0, width), np.float32)
        )

    def __len__(self) -> int:
        return len(self.parts)

    def one(self, i: int) -> Ragged:
        return Ragged(self.parts[i])
