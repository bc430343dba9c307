# SPDX-License-Identifier: Apache-2.0
"""What models that make vectors share: how these are compared, and what calls give of them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyencore import _similarity
from pyencore._arrays import torch_module, writable
from pyencore._inputs import integer, is_tensor, shown
from pyencore._opened import Opened
from pyencore._prompts import sentence_settings
from pyencore._quantize import PRECISIONS, Precision, columns_of, dtype_of, quantize_embeddings


class Compared(Opened):
    """A model whose vectors have a similarity."""

    _similarities: tuple[str, ...] = _similarity.NAMES
    _similarity_without_choice = "cosine"
    _has_vectors = True

    def _open(self, arguments: Mapping[str, Any]) -> None:
        super()._open(arguments)
        chosen = arguments["similarity_fn_name"]
        self.similarity_fn_name = self._own_similarity() if chosen is None else chosen

    def _own_similarity(self) -> str:
        """The folder's."""
        own = sentence_settings(self.folder).get("similarity_fn_name")
        return own if own in self._similarities else self._similarity_without_choice

    @property
    def similarity_fn_name(self) -> str:
        """How `similarity` compares vectors: "cosine", "dot", "euclidean" or "manhattan", and
        "maxsim" or "meanmaxsim" of vectors of tokens."""
        return self._similarity_fn_name

    @similarity_fn_name.setter
    def similarity_fn_name(self, name: str | Enum | None) -> None:
        self._similarity_fn_name = _similarity.known(
            name, self._similarities, self._similarity_without_choice
        )


class Vectors(Compared):
    """A model of one dense vector for each input."""

    def _open(self, arguments: Mapping[str, Any]) -> None:
        super()._open(arguments)
        self._columns = int(self._core.max_dimensions)
        given = arguments["truncate_dim"]
        own = sentence_settings(self.folder).get("truncate_dim")
        self.truncate_dim = own if given is None else given

    @property
    def truncate_dim(self) -> int | None:
        """The first columns of vectors that calls give, unless they say otherwise; None: all."""
        return self._truncate_dim

    @truncate_dim.setter
    def truncate_dim(self, columns: int | None) -> None:
        self._truncate_dim = None if columns is None else integer("truncate_dim", columns, 1)

    @property
    def dimension(self) -> int:
        """Columns of a vector."""
        return self._width(self.truncate_dim)

    def get_sentence_embedding_dimension(self) -> int:
        """The older name of get_embedding_dimension."""
        return self.dimension

    def get_embedding_dimension(self) -> int:
        """Columns of a vector."""
        return self.dimension

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[len(embeddings1), len(embeddings2)], by similarity_fn_name; a tensor for tensors."""
        return _like(
            embeddings1, _similarity.all_pairs(self.similarity_fn_name, embeddings1, embeddings2)
        )

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[len(embeddings1)]: the similarities of embeddings1[i] and embeddings2[i]."""
        return _like(
            embeddings1, _similarity.pairwise(self.similarity_fn_name, embeddings1, embeddings2)
        )

    def _width(self, truncate_dim: int | None) -> int:
        if truncate_dim is not None:
            return min(integer("truncate_dim", truncate_dim, 1), self._columns)
        return min(self._truncate_dim or self._columns, self._columns)

    def _finish(self, vectors: NDArray[np.float32], precision: Precision, out: Any) -> NDArray[Any]:
        result: NDArray[Any] = vectors
        if precision != "float32":
            result = quantize_embeddings(vectors, precision)
        if out is not None:
            shape = (len(vectors), columns_of(precision, vectors.shape[1]))
            writable(out, shape, dtype_of(precision))[...] = result
        return result

    def _finish_one(self, row: NDArray[np.float32], precision: Precision, out: Any) -> NDArray[Any]:
        """The same of a matrix of one row, as a vector."""
        result: NDArray[Any] = self._finish(row, precision, None)[0]
        if out is not None:
            writable(out, result.shape, result.dtype)[...] = result
        return result


def checked_precision(precision: Precision | None) -> Precision:
    precision = "float32" if precision is None else precision
    if precision not in PRECISIONS:
        raise ValueError(
            f"Precision {shown(precision)} is not supported, must be one of {PRECISIONS}"
        )
    return precision


def converted(result: NDArray[Any], to_numpy: bool, to_tensor: bool) -> Any:
    if to_tensor:
        torch = torch_module("convert_to_tensor")
        return torch.from_numpy(result) if result.size else torch.tensor([])
    if to_numpy:
        return result
    tensor = torch_module("convert_to_numpy=False").from_numpy(result)
    return list(tensor) if result.ndim > 1 or not result.size else tensor


def _like(given: Any, result: NDArray[np.float32]) -> Any:
    first = given[0] if isinstance(given, (list, tuple)) and given else given
    return torch_module("").from_numpy(np.asarray(result)) if is_tensor(first) else result
