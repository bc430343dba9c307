# SPDX-License-Identifier: Apache-2.0
"""SparseEncoder: texts to sparse vectors, with the calls of sentence_transformers.SparseEncoder."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyencore._arrays import torch_module
from pyencore._errors import UnsupportedError
from pyencore._folder import read_json
from pyencore._loop import in_pieces, lengths_of, progress_bar
from pyencore._opened import Compute, Opened, check_batch_size, check_device


class SparseMatrix(NamedTuple):
    """Compressed rows: row i has the entries from indptr[i] to indptr[i + 1]."""

    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]
    values: NDArray[np.float32]
    shape: tuple[int, int]

    def row(self, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Token ids of a text's vector, which rise, and their weights."""
        begin, end = self.indptr[i], self.indptr[i + 1]
        return self.indices[begin:end], self.values[begin:end]

    def to_scipy(self) -> Any:
        """scipy.sparse.csr_matrix of the same memory."""
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped, unused-ignore]

        return csr_matrix((self.values, self.indices, self.indptr), shape=self.shape)

    def to_torch(self) -> Any:
        """A sparse COO tensor, as sentence-transformers gives."""
        torch = torch_module("to_torch")
        rows = np.repeat(np.arange(self.shape[0]), np.diff(self.indptr))
        places = torch.from_numpy(np.stack([rows, self.indices.astype(np.int64)]))
        values = torch.from_numpy(self.values)
        return torch.sparse_coo_tensor(places, values, self.shape, is_coalesced=True)

    def to_dense(self) -> NDArray[np.float32]:
        dense = np.zeros(self.shape, np.float32)
        dense[np.repeat(np.arange(self.shape[0]), np.diff(self.indptr)), self.indices] = self.values
        return dense


class SparseEncoder(Opened):
    """A model folder, or a name on the Hugging Face hub, that gives sparse vectors."""

    def __init__(
        self,
        folder_or_hub_name: str | os.PathLike[str],
        *,
        compute: Compute | None = None,
        threads: int = 0,
        max_length: int | None = None,
        ignore_unknown_keys: bool = False,
        device: Any = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        max_active_dims: int | None = None,
    ) -> None:
        super().__init__(
            folder_or_hub_name,
            compute=compute,
            threads=threads,
            max_length=max_length,
            ignore_unknown_keys=ignore_unknown_keys,
            device=device,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
            token=token,
            language_head=True,
        )
        if not self._core.sparse_dimensions:
            raise UnsupportedError(f"{self.folder} gives no sparse vectors; TextEncoder opens it")
        self.prompts: dict[str, str] = {"query": "", "document": ""}
        self.prompts.update(self._core.prompts)
        settings = read_json(self.folder, "config_sentence_transformers.json")
        self.default_prompt_name: str | None = settings.get("default_prompt_name")
        self.max_active_dims = max_active_dims

    def get_embedding_dimension(self) -> int:
        """Columns of a vector: the vocabulary."""
        return int(self._core.sparse_dimensions)

    def get_sentence_embedding_dimension(self) -> int:
        return self.get_embedding_dimension()

    def encode(
        self,
        inputs: str | Sequence[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        convert_to_tensor: bool = False,
        device: Any = None,
        max_active_dims: int | None = None,
        task: str | None = None,
    ) -> Any:
        """A SparseMatrix with a row for each text, also for a single one; or, with
        convert_to_tensor, torch's sparse tensor, as SparseEncoder.encode gives."""
        check_batch_size(batch_size)
        check_device(device)
        single = isinstance(inputs, str)
        texts: list[str] = [inputs] if isinstance(inputs, str) else list(inputs)
        before = self._resolve_prompt(prompt_name, prompt)
        most = max_active_dims if max_active_dims is not None else self.max_active_dims
        parts: list[Any] = []

        def step(begin: int, end: int) -> None:
            parts.append(
                self._core.encode_sparse(
                    texts, begin, end, before, task, most or 0, self._max_length
                )
            )

        in_pieces(lengths_of(texts), step, self._pace, progress_bar(show_progress_bar, len(texts)))
        matrix = _joined(parts, len(texts), self.get_embedding_dimension())
        if not convert_to_tensor:
            return matrix
        tensor = matrix.to_torch()
        return tensor[0] if single else tensor

    def encode_query(self, inputs: str | Sequence[str], **options: Any) -> Any:
        """encode() of queries: the prompt "query" and, of a Router, the route."""
        return self._encode_as("query", ("query",), inputs, options)

    def encode_document(self, inputs: str | Sequence[str], **options: Any) -> Any:
        """encode() of documents: the first prompt of "document", "passage" and "corpus"."""
        return self._encode_as("document", ("document", "passage", "corpus"), inputs, options)

    def decode(
        self, embeddings: SparseMatrix, top_k: int | None = None
    ) -> list[list[tuple[str, float]]]:
        """Of each row its tokens and weights, the largest first."""
        tokenizer = self.tokenizer
        found = []
        for i in range(embeddings.shape[0]):
            indices, values = embeddings.row(i)
            order = np.argsort(-values, kind="stable")[:top_k]
            tokens = [tokenizer.id_to_token(int(indices[j])) or "" for j in order]
            found.append(list(zip(tokens, (float(values[j]) for j in order), strict=True)))
        return found

    def _encode_as(
        self, task: str, names: Sequence[str], inputs: str | Sequence[str], options: dict[str, Any]
    ) -> Any:
        if options.get("prompt") is None and options.get("prompt_name") is None:
            options["prompt_name"] = next((n for n in names if n in self.prompts), None)
        return self.encode(inputs, task=task, **options)

    def _resolve_prompt(self, name: str | None, prompt: str | None) -> str | None:
        if prompt is not None or (name is None and self.default_prompt_name is None):
            return prompt
        try:
            return self.prompts[name or self.default_prompt_name or ""]
        except KeyError:
            raise ValueError(
                f"Prompt name '{name}' not found in the configured prompts dictionary with keys "
                f"{list(self.prompts)!r}."
            ) from None


def _joined(parts: list[Any], rows: int, columns: int) -> SparseMatrix:
    starts = [np.zeros(1, np.int64)]
    for indptr, _, _ in parts:
        starts.append(indptr[1:] + starts[-1][-1])
    return SparseMatrix(
        np.concatenate(starts),
        np.concatenate([part[1] for part in parts] or [np.empty(0, np.int32)]),
        np.concatenate([part[2] for part in parts] or [np.empty(0, np.float32)]),
        (rows, columns),
    )
