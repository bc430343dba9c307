# SPDX-License-Identifier: Apache-2.0
"""MultiVectorEncoder: texts to a vector for each token, with the calls of
sentence_transformers.MultiVectorEncoder."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyencore import _core
from pyencore._arrays import torch_module
from pyencore._loop import in_pieces, lengths_of, progress_bar
from pyencore._opened import Compute, Opened, check_batch_size, check_device
from pyencore._token_vectors import Ragged, StoredVectors

Similarity = Literal["maxsim", "meanmaxsim"]
_SIMILARITIES = ("maxsim", "meanmaxsim")


class MultiVectorEncoder(Opened):
    """A folder of late interaction (ColBERT), or a name on the Hugging Face hub.

    compute is the precision of the encoder's matrix products; threads 0 is all usable cores;
    max_length replaces the lengths of documents, and of queries that are not expanded; cache,
    compare_cache and trust_cache are as TextEncoder's. The other arguments are those of
    sentence-transformers. A long call is computed in pieces; the rows of a piece's texts are views
    into one matrix.
    """

    _core_class = _core.LateModel

    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        compute: Compute | None = None,
        threads: int = 0,
        keep: Sequence[str] = (),
        max_length: int | None = None,
        normalize: bool | None = None,
        ignore_unknown_keys: bool = False,
        cache: str | os.PathLike[str] | None = None,
        compare_cache: bool = False,
        trust_cache: bool = False,
        device: Any = None,
        prompts: Mapping[str, str] | None = None,
        default_prompt_name: str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        similarity_fn_name: Similarity | None = None,
    ) -> None:
        super().__init__(
            model_name_or_path,
            compute=compute,
            threads=threads,
            keep=keep,
            max_length=max_length,
            normalize=normalize,
            ignore_unknown_keys=ignore_unknown_keys,
            cache=cache,
            compare_cache=compare_cache,
            trust_cache=trust_cache,
            device=device,
            cache_folder=cache_folder,
            revision=revision,
            local_files_only=local_files_only,
            token=token,
        )
        self.prompts: dict[str, str] = {"query": "", "document": ""}
        self.prompts.update(self._core.prompts)
        self.prompts.update(prompts or {})
        self.default_prompt_name = default_prompt_name
        if default_prompt_name is not None and default_prompt_name not in self.prompts:
            raise ValueError(
                f"default_prompt_name is {default_prompt_name!r}; wanted one of "
                f"{list(self.prompts)!r}"
            )
        name = "meanmaxsim" if self._core.mean_similarity else "maxsim"
        self.similarity_fn_name: str = similarity_fn_name or name
        if self.similarity_fn_name not in _SIMILARITIES:
            raise ValueError(
                f"similarity_fn_name is {self.similarity_fn_name!r}; wanted one of "
                f"{', '.join(_SIMILARITIES)}"
            )

    @property
    def dimension(self) -> int:
        """Columns of a vector."""
        return int(self._core.dimensions)

    def get_embedding_dimension(self) -> int:
        return self.dimension

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
        *,
        task: Literal["query", "document"] | None = None,
    ) -> Any:
        """[rows, dimension] of a text, or a list of these: a row for each token that is scored.

        As sentence-transformers' encode, but for convert_to_numpy, which is true. batch_size is
        checked and then encore's own choice. pool, chunk_size, token_pooling and output_value None
        are not there.
        """
        check_batch_size(batch_size)
        check_device(device)
        if output_value != "token_embeddings":
            raise ValueError(f"output_value is {output_value!r}; wanted 'token_embeddings'")
        if task not in ("query", "document", None):
            raise ValueError(f"task is {task!r}; wanted 'query', 'document' or None")
        single = isinstance(inputs, str)
        texts = [inputs] if isinstance(inputs, str) else list(inputs)
        rows = self._rows(
            texts,
            task or "",
            self._resolve_prompt(prompt_name, prompt),
            True if normalize_embeddings else None,
            show_progress_bar,
        )
        if not convert_to_numpy:
            torch = torch_module("convert_to_numpy=False")
            rows = [torch.from_numpy(one) for one in rows]
        return rows[0] if single else rows

    def encode_query(self, inputs: str | Iterable[str], *args: Any, **options: Any) -> Any:
        """encode() with the prompt "query", if no other is asked for, and the task "query"."""
        return self._encode_as("query", ("query",), inputs, args, options)

    def encode_document(self, inputs: str | Iterable[str], *args: Any, **options: Any) -> Any:
        """encode() with the first prompt of "document", "passage" and "corpus" that there is, and
        the task "document"."""
        return self._encode_as("document", ("document", "passage", "corpus"), inputs, args, options)

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[queries, documents]: MaxSim, or its mean by similarity_fn_name; a tensor for tensors.

        Either is one matrix [rows, dimension], or a list of these; the second may be
        StoredVectors.
        """
        queries, documents = Ragged("embeddings1", embeddings1), _documents(embeddings2)
        scores = np.zeros((len(queries), len(documents)), np.float32)
        if scores.size:
            self._max_sim(queries, documents, scores)
        tensors = queries.tensors or documents.tensors
        return torch_module("").from_numpy(scores) if tensors else scores

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """[queries]: of embeddings1[i] and embeddings2[i]."""
        first, second = Ragged("embeddings1", embeddings1), _documents(embeddings2)
        if len(first) != len(second):
            raise ValueError(
                f"found {len(first)} and {len(second)} embeddings; wanted as many of either"
            )
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

    def _resolve_prompt(self, name: str | None, prompt: str | None) -> str:
        if prompt is not None:
            return prompt
        name = self.default_prompt_name if name is None else name
        if name is None:
            return self._default_prompt()
        if name not in self.prompts:
            raise ValueError(
                f"Prompt name '{name}' not found in the configured prompts dictionary with keys "
                f"{list(self.prompts)!r}."
            )
        return self.prompts[name]

    def _default_prompt(self) -> str:
        from pyencore._folder import read_json

        settings = read_json(self.folder, "config_sentence_transformers.json")
        return self.prompts.get(settings.get("default_prompt_name") or "", "")

    def _encode_as(
        self,
        task: Literal["query", "document"],
        candidates: Sequence[str],
        inputs: str | Iterable[str],
        args: Any,
        options: dict[str, Any],
    ) -> Any:
        if not args and options.get("prompt") is None and options.get("prompt_name") is None:
            known = {name for name, _ in self._core.prompts} | {
                name for name, text in self.prompts.items() if text
            }
            name = next((name for name in candidates if name in known), None)
            options["prompt_name"] = name
            if name is None:
                options["prompt"] = ""
        return self.encode(inputs, *args, task=task, **options)

    def _rows(
        self, texts: list[str], task: str, prompt: str, normalize: bool | None, show: bool | None
    ) -> list[NDArray[np.float32]]:
        rows: list[NDArray[np.float32]] = []

        def step(begin: int, end: int) -> None:
            matrix, starts = self._core.encode(
                texts, begin, end, task, prompt, normalize, self._max_length
            )
            rows.extend(matrix[a:b] for a, b in zip(starts, starts[1:], strict=False))

        in_pieces(lengths_of(texts), step, self._pace, progress_bar(show, len(texts)))
        return rows


def _documents(given: Any) -> Ragged | StoredVectors:
    return given if isinstance(given, StoredVectors) else Ragged("embeddings2", given)
