# SPDX-License-Identifier: Apache-2.0
"""Vectors of tokens below each other: in float32, and of documents in bf16 or int8."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyencore import _core
from pyencore._arrays import as_array, as_floats, maybe_floats
from pyencore._inputs import checked, elements, integer, is_tensor, kind, shown

StoredType = Literal["bf16", "int8"]


class StoredVectors:
    """Documents' token vectors in half (bf16) or a quarter (int8) of the memory.

    vectors [rows, dimension] are int8, with scales [rows]: a row is scale times its integers; or
    uint16, the bits of bf16. Text i has the rows from row_starts[i] to row_starts[i + 1]. The
    arrays of a file by `encore embed --output-type int8` are these:
    StoredVectors(**numpy.load("out.npz")).
    """

    @checked
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
        self.scales = maybe_floats("scales", scales)
        if self.scales is not None and self.scales.shape != vectors.shape[:1]:
            raise ValueError(f"scales is {list(self.scales.shape)}; wanted [{len(vectors)}]")
        self.row_starts = _starts_of(row_starts, len(vectors))

    def __len__(self) -> int:
        return len(self.row_starts) - 1

    @property
    def tensors(self) -> bool:
        return False

    @property
    def nbytes(self) -> int:
        return self.vectors.nbytes + (0 if self.scales is None else self.scales.nbytes)

    @checked
    def one(self, i: int) -> StoredVectors:
        integer("i", i, 0, len(self) - 1)
        begin, end = self.row_starts[i : i + 2]
        scales = None if self.scales is None else self.scales[begin:end]
        return StoredVectors(self.vectors[begin:end], [0, end - begin], scales)


def _starts_of(row_starts: Any, rows: int) -> NDArray[np.int64]:
    starts = as_array("row_starts", row_starts)
    if starts.ndim != 1 or starts.dtype.kind not in "iu" or not len(starts):
        raise ValueError(
            f"row_starts is {kind(starts)}; wanted the first row of each text, and {rows}"
        )
    starts = starts.astype(np.int64)
    if starts[0] != 0 or starts[-1] != rows or (np.diff(starts) < 0).any():
        raise ValueError(
            f"row_starts is {shown(starts.tolist())}; wanted numbers that rise from 0 to {rows}"
        )
    return starts


@checked
def store_vectors(embeddings: Any, precision: StoredType) -> StoredVectors:
    """One matrix [rows, dimension] of a text, or a list of these, in bf16 or int8.

    bf16 numbers are rounded to nearest. An int8 row has the scale of its largest magnitude over
    127. MultiVectorEncoder.similarity takes them as documents.
    """
    if precision not in ("bf16", "int8"):
        raise ValueError(f"precision is {shown(precision)}; wanted 'bf16' or 'int8'")
    rows = Ragged("embeddings", embeddings)
    vectors, scales = _core.store_vectors(rows.rows, precision == "int8")
    return StoredVectors(vectors, rows.starts, scales)


class Ragged:
    """Matrices below each other, with their starts."""

    def __init__(self, name: str, given: Any) -> None:
        one = getattr(given, "ndim", 0) == 2
        self.tensors = is_tensor(given) or (
            isinstance(given, (list, tuple)) and bool(given) and is_tensor(given[0])
        )
        wanted = "a matrix [rows, dimension], or a list of these"
        listed = [given] if one else _matrices(name, given, wanted)
        self.parts = [
            as_floats(name if one else f"{name}[{i}]", part) for i, part in enumerate(listed)
        ]
        for i, part in enumerate(self.parts):
            if part.ndim != 2:
                raise ValueError(
                    f"{name}[{i}] is an embedding of shape {list(part.shape)}; wanted "
                    "[rows, dimension]"
                )
            if part.shape[1] != self.parts[0].shape[1]:
                raise ValueError(
                    f"{name}[{i}] has {part.shape[1]} columns, and {name}[0] has "
                    f"{self.parts[0].shape[1]}; wanted the same"
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
        return Ragged("", self.parts[i])


def _matrices(name: str, given: Any, wanted: str) -> list[Any]:
    if getattr(given, "ndim", 0) == 3:
        return list(given)
    return elements(name, given, wanted)
