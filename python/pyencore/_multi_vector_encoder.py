# SPDX-License-Identifier: Apache-2.0
"""MultiVectorEncoder: texts to a vector for each token, with the calls of
sentence_transformers.MultiVectorEncoder."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping
from enum import Enum
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from pyencore import _core
from pyencore._arguments import FOLDER_NAMES, check_one_process, renamed
from pyencore._arrays import torch_module
from pyencore._call import Call, CallStats, Progress
from pyencore._inputs import checked, integer, shown
from pyencore._opened import Compute, check_batch_size, check_device
from pyencore._retriever import Retriever, check_task
from pyencore._texts import texts_of
from pyencore._token_vectors import Ragged, StoredVectors

Similarity = Literal["maxsim", "meanmaxsim"]


class MultiVectorEncoder(Retriever):
    """A folder of late interaction (ColBERT), or a name on the Hugging Face hub.

    compute is the precision of the encoder's matrix products; threads 0 is all usable cores;
    max_length replaces the lengths of documents, and of queries that are not expanded; cache,
    compare_cache and trust_cache are as TextEncoder's. The other arguments are those of
    sentence-transformers. The rows of a call's texts are views into one matrix.
    """

    _core_class = _core.LateModel
    _organization = None
    _similarities = get_args(Similarity)
    _similarity_without_choice = "maxsim"

    def _own_similarity(self) -> str:
        return "meanmaxsim" if self._core.mean_similarity else self._similarity_without_choice

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
        normalize: bool | None = None,
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
        similarity_fn_name: Similarity | Enum | None = None,
        **others: Any,
    ) -> None:
        self._open(locals())
        self._max_seq_length = 0  # the folder's

    @property
    def max_length(self) -> int:
        """Tokens of a document, special ones included; longer ones are cut."""
        return self._length_of("document") or int(self._core.max_length_of("document"))

    @max_length.setter
    def max_length(self, tokens: int) -> None:
        self._max_length = integer("max_length", tokens, 1)

    @property
    def max_seq_length(self) -> int:
        """Tokens of a text without a task, and of queries and documents for which the folder has no
        length of their own."""
        return self._length_of("") or int(self._core.max_length_of(""))

    @max_seq_length.setter
    def max_seq_length(self, tokens: int) -> None:
        self._max_seq_length = integer("max_seq_length", tokens, 1)

    def _length_of(self, task: str) -> int:
        """What was set; 0 is the folder's."""
        if self._max_length:
            return self._max_length
        return 0 if self._core.has_own_length(task) else self._max_seq_length

    @property
    def dimension(self) -> int:
        """Columns of a vector."""
        return int(self._core.dimensions)

    def get_embedding_dimension(self) -> int:
        """Columns of a token's vector."""
        return self.dimension

    @renamed(sentences="inputs")
    @checked
    def encode(
        self,
        inputs: str | Iterable[str],
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        output_value: Literal["token_embeddings"] = "token_embeddings",
        convert_to_numpy: bool = True,
        device: Any = None,
        normalize_embeddings: bool = False,
        pool: None = None,
        chunk_size: int | None = None,
        token_pooling: None = None,
        task: Literal["query", "document"] | None = None,
        *,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> Any:
        """[rows, dimension] of a text, or a list of these: a row for each token that is scored.

        As sentence-transformers' encode, but for convert_to_numpy, which is true. batch_size is
        checked and then encore's own choice, chunk_size changes nothing. pool and token_pooling
        are None, and there is no output_value None. cancel and what follows are as of
        TextEncoder.encode.
        """
        call = Call(cancel, deadline, background, progress, stats)
        check_batch_size(batch_size)
        check_device(device)
        if output_value != "token_embeddings":
            raise ValueError(f"output_value is {shown(output_value)}; wanted 'token_embeddings'")
        check_task(task)
        check_one_process(pool, chunk_size)
        if token_pooling is not None:
            raise ValueError(
                f"token_pooling is of type {type(token_pooling).__name__}; encore keeps all "
                "tokens: wanted None"
            )
        texts, single = texts_of("inputs", inputs)
        rows = self._rows(
            texts,
            task or "",
            self._resolve_prompt(prompt_name, prompt),
            True if normalize_embeddings else None,
            show_progress_bar,
            call,
        )
        if not convert_to_numpy:
            torch = torch_module("convert_to_numpy=False")
            rows = [torch.from_numpy(one) for one in rows]
        return rows[0] if single else rows

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[queries, documents]: MaxSim, or its mean by similarity_fn_name; a tensor for tensors.

        Either is one matrix [rows, dimension], or a list of these; the second may be
        StoredVectors.
        """
        queries, documents = Ragged("embeddings1", embeddings1), _documents(embeddings2)
        _check_widths(queries, documents)
        scores = np.zeros((len(queries), len(documents)), np.float32)
        if scores.size:
            self._max_sim(queries, documents, scores)
        tensors = queries.tensors or documents.tensors
        return torch_module("").from_numpy(scores) if tensors else scores

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[queries]: the similarities of embeddings1[i] and embeddings2[i]."""
        first, second = Ragged("embeddings1", embeddings1), _documents(embeddings2)
        if len(first) != len(second):
            raise ValueError(
                f"embeddings1 has {len(first)} texts and embeddings2 {len(second)}; wanted as many"
            )
        _check_widths(first, second)
        scores = np.zeros(len(first), np.float32)
        for i in range(len(first)):
            self._max_sim(first.one(i), second.one(i), scores[i : i + 1, None])
        tensors = first.tensors or second.tensors
        return torch_module("").from_numpy(scores) if tensors else scores

    # ---- What encode is made of ---------------------------------------------------------------

    def _max_sim(
        self, queries: Ragged, documents: Ragged | StoredVectors, scores: NDArray[np.float32]
    ) -> None:
        mean = self.similarity_fn_name == "meanmaxsim"
        if isinstance(documents, StoredVectors):
            self._core.max_sim_stored(
                queries.rows,
                queries.starts,
                documents.vectors,
                documents.scales,
                documents.row_starts.tolist(),
                scores,
                mean,
            )
            return
        self._core.max_sim(
            queries.rows, queries.starts, documents.rows, documents.starts, scores, mean
        )

    def _rows(
        self,
        texts: list[str],
        task: str,
        prompt: str,
        normalize: bool | None,
        show: bool | None,
        call: Call,
    ) -> list[NDArray[np.float32]]:
        with call.watched(show, texts) as watch:
            matrix, starts = self._core.encode(
                texts, task, prompt, normalize, self._length_of(task), watch
            )
        return [matrix[a:b] for a, b in zip(starts, starts[1:], strict=False)]


def _documents(given: Any) -> Ragged | StoredVectors:
    return given if isinstance(given, StoredVectors) else Ragged("embeddings2", given)


def _check_widths(queries: Ragged, documents: Ragged | StoredVectors) -> None:
    rows = documents.vectors if isinstance(documents, StoredVectors) else documents.rows
    if len(queries) and len(documents) and queries.rows.shape[1] != rows.shape[1]:
        raise ValueError(
            f"embeddings1 has {queries.rows.shape[1]} columns and embeddings2 {rows.shape[1]}; "
            "wanted as many"
        )
