# SPDX-License-Identifier: Apache-2.0
"""SparseEncoder: texts to sparse vectors, with the calls of sentence_transformers.SparseEncoder."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyencore import _similarity
from pyencore._arguments import FOLDER_NAMES, check_one_process, renamed
from pyencore._arrays import Floats, as_array, as_floats, torch_module
from pyencore._call import Call, CallStats, Progress
from pyencore._errors import UnsupportedError
from pyencore._inputs import checked, elements, integer, is_tensor, kind, shown
from pyencore._opened import Compute, check_batch_size, check_device
from pyencore._prompts import sentence_settings
from pyencore._retriever import Retriever, check_task
from pyencore._texts import texts_of

# Rows of either side that similarity() has as dense vectors at once.
_BLOCK = 256


class _Compressed(NamedTuple):
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    shape: tuple[int, int]


class SparseMatrix(_Compressed):
    """Compressed rows: row i has the entries from indptr[i] to indptr[i + 1]."""

    __slots__ = ()

    def __new__(cls, indptr: Any, indices: Any, values: Any, shape: Any) -> SparseMatrix:
        arrays = [
            as_array(name, one)
            for name, one in (("indptr", indptr), ("indices", indices), ("values", values))
        ]
        sizes = [integer("shape", one, 0) for one in elements("shape", shape, "[rows, columns]")]
        _check_compressed(arrays, sizes)
        return cls._make((*arrays, tuple(sizes)))

    @checked
    def row(self, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Token ids of a text's vector, which rise, and their weights."""
        i = integer("i", i, -self.shape[0], self.shape[0] - 1) % self.shape[0]
        begin, end = self.indptr[i], self.indptr[i + 1]
        return self.indices[begin:end], self.values[begin:end]

    @checked
    def rows(self, begin: int, end: int) -> SparseMatrix:
        """The rows [begin, end), which share this one's memory."""
        integer("begin", begin, 0, self.shape[0])
        end = min(integer("end", end, begin), self.shape[0])
        first, last = self.indptr[begin], self.indptr[end]
        return SparseMatrix._make(
            (
                self.indptr[begin : end + 1] - first,
                self.indices[first:last],
                self.values[first:last],
                (end - begin, self.shape[1]),
            )
        )

    def to_scipy(self) -> Any:
        """scipy.sparse.csr_matrix. It shares values and indices; scipy may copy indptr."""
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped, unused-ignore]

        return csr_matrix((self.values, self.indices, self.indptr), shape=self.shape)

    def to_torch(self) -> Any:
        """A sparse COO tensor, as sentence-transformers gives."""
        torch = torch_module("to_torch")
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        places = torch.from_numpy(np.stack([rows, self.indices.astype(np.int64)]))
        values = torch.from_numpy(self.values)
        return torch.sparse_coo_tensor(
            places, values, self.shape, is_coalesced=True, check_invariants=False
        )

    def to_dense(self) -> NDArray[np.float32]:
        dense = np.zeros(self.shape, np.float32)
        dense[np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices] = self.values
        return dense


def _check_compressed(arrays: list[NDArray[Any]], sizes: list[int]) -> None:
    indptr, indices, values = arrays
    if len(sizes) != 2:
        raise ValueError(f"shape is {shown(sizes)}; wanted [rows, columns]")
    for name, array in (("indptr", indptr), ("indices", indices)):
        if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
            raise ValueError(f"{name} is {kind(array)}; wanted an array of integers of one axis")
    if values.shape != indices.shape:
        raise ValueError(f"values is {list(values.shape)}; wanted {list(indices.shape)}")
    ends = indptr[[0, -1]].tolist() if len(indptr) else []
    if len(indptr) != sizes[0] + 1 or ends != [0, len(indices)] or (np.diff(indptr) < 0).any():
        raise ValueError(
            f"indptr has {len(indptr)} numbers with the ends {ends}; wanted {sizes[0] + 1}, which "
            f"rise from 0 to {len(indices)}"
        )
    if indices.size and not 0 <= indices.min() <= indices.max() < sizes[1]:
        raise ValueError(f"indices has {indices.min()} to {indices.max()}; wanted 0 to {sizes[1]}")


class SparseEncoder(Retriever):
    """A model folder, or a name on the Hugging Face hub, that gives sparse vectors.

    compute, threads, keep, max_length, cache, compare_cache and trust_cache are as TextEncoder's.
    The other arguments are those of sentence-transformers.
    """

    _organization = "sparse-encoder"
    _similarity_without_choice = "dot"

    @staticmethod
    def _wants_language_head(folder: str) -> bool:
        """Not beside weights of tokens, which BGE-M3 has."""
        return not os.path.exists(os.path.join(folder, "sparse_linear.pt"))

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        compute: Compute | None = None,
        threads: int = 0,
        keep: Collection[str] = (),
        max_length: int | None = None,
        ignore_unknown_keys: bool = False,
        cache: str | os.PathLike[str] | None = None,
        compare_cache: bool = False,
        trust_cache: bool = False,
        device: Any = None,
        prompts: Mapping[str, str | None] | None = None,
        default_prompt_name: str | None = None,
        cache_folder: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        similarity_fn_name: _similarity.SimilarityName | Enum | None = None,
        max_active_dims: int | None = None,
        **others: Any,
    ) -> None:
        self._open(locals())
        if not self._core.sparse_dimensions:
            # Says what is wrong with the folder's file of them, if it has one.
            self._core.encode_sparse([], None, None, 0, 0, None)
            raise UnsupportedError(f"{self.folder} gives no sparse vectors; TextEncoder opens it")
        settings = sentence_settings(self.folder)
        if max_active_dims is None:
            max_active_dims = settings.get("max_active_dims")
        self.max_active_dims = max_active_dims

    @property
    def max_active_dims(self) -> int | None:
        """Entries of a vector at most, unless a call says otherwise; None: all."""
        return self._max_active_dims

    @max_active_dims.setter
    def max_active_dims(self, entries: int | None) -> None:
        self._max_active_dims = None if entries is None else integer("max_active_dims", entries, 1)

    def get_embedding_dimension(self) -> int:
        """Columns of a vector: the vocabulary."""
        return int(self._core.sparse_dimensions)

    def get_sentence_embedding_dimension(self) -> int:
        """The older name of get_embedding_dimension."""
        return self.get_embedding_dimension()

    @renamed(sentences="inputs")
    @checked
    def encode(
        self,
        inputs: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = False,
        convert_to_sparse_tensor: bool = True,
        save_to_cpu: bool = False,
        device: Any = None,
        max_active_dims: int | None = None,
        pool: None = None,
        chunk_size: int | None = None,
        *,
        task: Literal["query", "document"] | None = None,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> Any:
        """A SparseMatrix with a row for each text, also for a single one.

        As sentence-transformers' encode, but for convert_to_tensor, which is false, as tensors need
        torch. With it: a sparse tensor [texts, vocabulary], or [vocabulary] of a single text.
        convert_to_sparse_tensor=False gives dense tensors, or without convert_to_tensor dense
        arrays. batch_size is checked and then encore's own choice; pool is None; save_to_cpu and
        chunk_size change nothing. task is the route of a Router. cancel and what follows are as of
        TextEncoder.encode.
        """
        call = Call(cancel, deadline, background, progress, stats)
        check_batch_size(batch_size)
        check_device(device)
        check_task(task)
        check_one_process(pool, chunk_size)
        texts, single = texts_of("inputs", inputs)
        before = self._resolve_prompt(prompt_name, prompt)
        if max_active_dims is None:
            max_active_dims = self._max_active_dims
        columns = self.get_embedding_dimension()
        most = columns
        if max_active_dims is not None:
            most = integer("max_active_dims", max_active_dims, 1)
        with call.watched(show_progress_bar, texts) as watch:
            found = self._core.encode_sparse(texts, before, task, most, self._max_length, watch)
        matrix = SparseMatrix._make((*found, (len(texts), columns)))
        if convert_to_sparse_tensor and not convert_to_tensor:
            return matrix
        result = matrix.to_torch() if convert_to_sparse_tensor else matrix.to_dense()
        if convert_to_tensor and not convert_to_sparse_tensor:
            result = torch_module("convert_to_tensor").from_numpy(result)
        return result[0] if single else result

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[len(embeddings1), len(embeddings2)], by similarity_fn_name: of SparseMatrix, tensors or
        dense arrays; a tensor for tensors."""
        first, second = _Rows("embeddings1", embeddings1), _Rows("embeddings2", embeddings2)
        scores = np.empty((first.count, second.count), np.float32)
        for i in range(0, first.count, _BLOCK):
            block = first.dense(i, i + _BLOCK)
            for j in range(0, second.count, _BLOCK):
                scores[i : i + _BLOCK, j : j + _BLOCK] = _similarity.all_pairs(
                    self.similarity_fn_name, block, second.dense(j, j + _BLOCK)
                )
        return torch_module("").from_numpy(scores) if first.tensors else scores

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[len(embeddings1)]: the similarities of embeddings1[i] and embeddings2[i].

        Two single vectors give [].
        """
        first, second = _Rows("embeddings1", embeddings1), _Rows("embeddings2", embeddings2)
        if first.count != second.count:
            raise ValueError(
                f"embeddings1 has {first.count} rows and embeddings2 {second.count}; wanted as many"
            )
        scores: Floats = np.empty(first.count, np.float32)
        for i in range(0, first.count, _BLOCK):
            scores[i : i + _BLOCK] = _similarity.pairwise(
                self.similarity_fn_name, first.dense(i, i + _BLOCK), second.dense(i, i + _BLOCK)
            )
        if first.single and second.single:
            scores = scores.reshape(())
        return torch_module("").from_numpy(scores) if first.tensors else scores

    @checked
    def decode(
        self, embeddings: SparseMatrix, top_k: int | None = None
    ) -> list[list[tuple[str, float]]]:
        """The tokens and weights of each row, the largest first. Tensors are refused."""
        if top_k is not None:
            integer("top_k", top_k, 1)
        tokenizer = self.tokenizer
        found = []
        for i in range(embeddings.shape[0]):
            indices, values = embeddings.row(i)
            order = np.argsort(-values, kind="stable")[:top_k]
            tokens = [tokenizer.id_to_token(int(indices[j])) or "" for j in order]
            found.append(list(zip(tokens, (float(values[j]) for j in order), strict=True)))
        return found


class _Rows:
    """Vectors of either kind, dense a block at a time."""

    def __init__(self, name: str, given: Any) -> None:
        listed = isinstance(given, (list, tuple)) and not isinstance(given, SparseMatrix)
        self.tensors = is_tensor(given[0] if listed and given else given)
        if self.tensors and listed:
            given = torch_module("").stack(list(given))
        if self.tensors and given.is_sparse:
            self.single, given = given.ndim < 2, _of_tensor(given)
        elif isinstance(given, SparseMatrix):
            self.single = False
        else:
            given = as_floats(name, given)
            self.single, given = given.ndim < 2, np.atleast_2d(given)
        self._rows: Any = given
        self.count: int = self._rows.shape[0]

    def dense(self, begin: int, end: int) -> Floats:
        if isinstance(self._rows, SparseMatrix):
            return self._rows.rows(begin, end).to_dense()
        block: Floats = self._rows[begin:end]
        return block


def _of_tensor(tensor: Any) -> SparseMatrix:
    """A sparse COO tensor's."""
    tensor = (tensor if tensor.ndim == 2 else tensor.unsqueeze(0)).detach().cpu().coalesce()
    rows, columns = tensor.indices().numpy()
    indptr = np.searchsorted(rows, np.arange(tensor.shape[0] + 1))
    return SparseMatrix._make((indptr, columns, tensor.values().numpy(), tuple(tensor.shape)))
