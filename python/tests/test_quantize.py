# SPDX-License-Identifier: Apache-2.0
"""quantize_embeddings against sentence-transformers', of every kind of embeddings, and what it
refuses."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conftest import needs_reference
from pyencore import quantize_embeddings

RNG = np.random.default_rng(3)
PRECISIONS = ["float32", "int8", "uint8", "binary", "ubinary"]


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


@needs_reference
@pytest.mark.parametrize("precision", PRECISIONS)
def test_beside_sentence_transformers(precision: Any) -> None:
    import torch
    from sentence_transformers.util import quantize_embeddings as reference

    matrix, ranges = normal(40, 13), np.sort(normal(2, 13), axis=0)
    texts = [normal(7, 13), normal(1, 13), normal(0, 13), normal(30, 13)]  # a row for each token
    for given in (
        matrix,
        matrix.astype(np.float64),
        torch.from_numpy(matrix),
        list(matrix),
        list(torch.from_numpy(matrix)),
        matrix.tolist(),
        matrix[:0],
        texts,
        [torch.from_numpy(one) for one in texts],
        [],
    ):
        for options in (
            {},
            {"ranges": ranges},
            {"calibration_embeddings": normal(120, 13)},
            {"ranges": ranges, "calibration_embeddings": normal(120, 13)},
        ):
            found = quantize_embeddings(given, precision, **options)
            wanted = reference(given, precision, **options)
            assert type(found) is type(wanted)
            several = isinstance(wanted, list)
            for a, b in zip(*((found, wanted) if several else ([found], [wanted])), strict=True):
                assert a.dtype == b.dtype
                assert np.array_equal(a, b)
    for options in ({}, {"calibration_embeddings": normal(1, 13)[0]}):
        if precision.endswith("int8"):
            with pytest.raises(ValueError, match="single embedding|wanted .embeddings, dimensions"):
                quantize_embeddings(matrix[0], precision, **options)


@pytest.mark.parametrize(
    ("embeddings", "options", "kind", "words"),
    [
        (None, {}, TypeError, "embeddings is of type NoneType; wanted an array of numbers"),
        ("tea", {}, TypeError, "embeddings is of type str"),
        ([["a"]], {}, TypeError, "embeddings is of type list"),
        ([[1.0], [1.0, 2.0]], {}, TypeError, "embeddings is of type list"),
        (2.5, {}, TypeError, "embeddings is of type float"),
        ({}, {}, TypeError, "embeddings is of type dict"),
        ([normal(2, 3), np.array([["x"]])], {}, TypeError, r"embeddings\[1\] is an array of <U1"),
        (normal(4, 3), {"ranges": 3}, TypeError, "ranges is of type int"),
        (normal(4, 3), {"ranges": normal(2, 2)}, ValueError, r"is \[2, 2\]; wanted \[2, 3\]"),
        (normal(4, 3), {"ranges": normal(3)}, ValueError, r"ranges is \[3\]; wanted \[2, 3\]"),
        (normal(4, 3), {"calibration_embeddings": "x"}, TypeError, "calibration_embeddings is of"),
        (normal(4, 3), {"calibration_embeddings": normal(0, 3)}, ValueError, r"is \[0, 3\]; "),
        (normal(4, 3).astype(np.int8), {}, ValueError, "must be float rather than int8"),
    ],
)
def test_refusals(embeddings: Any, options: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        quantize_embeddings(embeddings, "int8", **options)


@pytest.mark.parametrize("precision", ["int4", None, 8, ["int8"], np.array([1, 2])])
def test_precisions_that_are_none(precision: Any) -> None:
    with pytest.raises(ValueError, match=r"Precision .* is not supported, must be one of"):
        quantize_embeddings(normal(4, 3), precision)
