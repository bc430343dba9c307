# SPDX-License-Identifier: Apache-2.0
"""TextEncoder: texts to vectors, with the calls of sentence_transformers.SentenceTransformer."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import Enum
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from pyencore import _similarity
from pyencore._arguments import FOLDER_NAMES, check_one_process, renamed
from pyencore._arrays import torch_module, writable
from pyencore._call import Call, CallStats, Progress
from pyencore._inputs import checked, integer, is_tensor, shown
from pyencore._opened import Compute, check_batch_size, check_device
from pyencore._padding import Padding
from pyencore._prompts import sentence_settings
from pyencore._quantize import PRECISIONS, Precision, columns_of, dtype_of, quantize_embeddings
from pyencore._retriever import Retriever, check_task
from pyencore._texts import blocks_of, lists_of_ids, texts_of

Inputs = str | Iterable[str]

# Texts of an iterator that are in memory at once.
_STREAMED = 4096


class TextEncoder(Retriever):
    """A model folder, or a name on the Hugging Face hub, opened for texts.

    compute is the precision of the matrix products; threads 0 is all usable cores; keep lists
    matrices that int8 and int4 leave in bf16 ("0.linear1"); max_length, pooling and normalize
    replace the folder's. cache is a folder that keeps packed weights: the next opening is without
    packing, and processes share them; compare_cache compares all of them with the weights, and
    trust_cache leaves the check of all their bytes out. task is an adapter of the folder's that is
    added to the weights, "retrieval.query" for instance. The other arguments are those of
    SentenceTransformer.
    """

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
        pooling: str | Sequence[str] | None = None,
        normalize: bool | None = None,
        ignore_unknown_keys: bool = False,
        cache: str | os.PathLike[str] | None = None,
        compare_cache: bool = False,
        trust_cache: bool = False,
        task: str | None = None,
        device: Any = None,
        prompts: Mapping[str, str | None] | None = None,
        default_prompt_name: str | None = None,
        cache_folder: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        similarity_fn_name: _similarity.SimilarityName | Enum | None = None,
        truncate_dim: int | None = None,
        **others: Any,
    ) -> None:
        self._open(locals())
        settings = sentence_settings(self.folder)
        self._columns = int(self._core.max_dimensions)
        self.truncate_dim = settings.get("truncate_dim") if truncate_dim is None else truncate_dim

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

    @renamed(sentences="inputs")
    @checked
    def encode(
        self,
        inputs: Inputs,
        prompt_name: str | None = None,
        prompt: str | None = None,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        output_value: Literal["sentence_embedding", "token_embeddings"]
        | None = "sentence_embedding",
        precision: Precision | None = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        pool: None = None,
        chunk_size: int | None = None,
        *,
        task: Literal["query", "document"] | None = None,
        out: Any = None,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> Any:
        """The vector of a text, or the matrix of a list's or an iterator's texts.

        As SentenceTransformer.encode. batch_size is checked and then encore's own choice: a text's
        bits do not depend on it. pool is None, and neither chunk_size nor task changes anything.
        out is an array (or anything that speaks DLPack) of the result's
        shape and type, which is filled and returned. output_value "token_embeddings" gives a text's
        [tokens, d_model], None a dict of all that was computed of it: ids, masks and both kinds of
        vectors, without padding.

        cancel, a Stop or threading.Event, ends the call with CancelledError once it is set, and
        deadline after so many seconds with TimeoutError. background gives way to the model's other
        calls. progress(texts, all_texts, tokens, all_tokens) is called between batches by the
        calling thread: what is done, of all texts, and of the tokens known so far. stats is a
        CallStats, which is filled.
        """
        if (
            isinstance(inputs, str)
            and out is None
            and precision == "float32"
            and output_value == "sentence_embedding"
            and convert_to_numpy
            and not convert_to_tensor
        ):  # one query: nothing that it does not need
            call = Call(cancel, deadline, background, progress, stats)
            if batch_size is not None or device is not None or task is not None:
                check_batch_size(batch_size)
                check_device(device)
                check_task(task)
            if pool is not None or chunk_size is not None:
                check_one_process(pool, chunk_size)
            vector = np.empty(self._width(truncate_dim), np.float32)
            before = self._resolve_prompt(prompt_name, prompt)
            self._encode_one(inputs, vector, before, True if normalize_embeddings else None, call)
            return vector
        call = Call(cancel, deadline, background, progress, stats)
        check_batch_size(batch_size)
        check_device(device)
        check_task(task)
        check_one_process(pool, chunk_size)
        precision = "float32" if precision is None else precision
        if precision not in PRECISIONS:
            raise ValueError(
                f"Precision {shown(precision)} is not supported, must be one of {PRECISIONS}"
            )
        text = self._resolve_prompt(prompt_name, prompt)
        if output_value == "token_embeddings":
            if precision == "float32":
                return self._token_vectors(inputs, text, convert_to_tensor, call)
            of_tokens = self._token_vectors(inputs, text, False, call)
            if isinstance(inputs, str):
                return quantize_embeddings([of_tokens], precision)[0]
            return quantize_embeddings(of_tokens, precision)  # ranges of all texts' together
        if output_value is None:
            if precision != "float32":
                raise ValueError(
                    f"precision is {precision!r} with output_value None; wanted 'float32'"
                )
            return self._features(inputs, text, self._width(truncate_dim), convert_to_tensor, call)
        if output_value != "sentence_embedding":
            raise ValueError(
                f"output_value is {shown(output_value)}; wanted 'sentence_embedding', "
                "'token_embeddings' or None"
            )
        normalize = True if normalize_embeddings else None
        if isinstance(inputs, str):
            row = np.empty((1, self._width(truncate_dim)), np.float32)
            self._encode_one(inputs, row[0], text, normalize, call)
            result = self._finish(row, precision, None)[0]
            if out is not None:
                writable(out, result.shape, result.dtype)[...] = result
        else:
            texts = _list_of(inputs)
            width = self._width(truncate_dim)
            direct = texts is not None and out is not None and precision == "float32"
            with call.watched(show_progress_bar, texts) as watch:
                if texts is None:
                    vectors = self._stream(inputs, width, text, normalize, watch)
                else:
                    shape = (len(texts), width)
                    vectors = (
                        writable(out, shape, np.float32) if direct else np.empty(shape, np.float32)
                    )
                    self._rows(texts, vectors, text, normalize, watch)
            if texts == [] and out is None:
                result = np.array([])  # as sentence-transformers
            else:
                result = vectors if direct else self._finish(vectors, precision, out)
        if out is not None:
            return out
        return _converted(result, convert_to_numpy, convert_to_tensor)

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

    @checked
    def encode_ids(
        self,
        ids: Any,
        *,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> NDArray[np.float32]:
        """The vectors of lists of token ids, as they are: no prompt, special tokens or cut. cancel
        and what follows are as of encode."""
        lists = lists_of_ids("ids", ids)
        watch = Call(cancel, deadline, background, progress, stats).watch(sum(map(len, lists)))
        return self._core.encode_ids(
            lists, True if normalize_embeddings else None, self._width(truncate_dim), watch
        )

    @checked
    def tokenize(self, texts: str | Iterable[str]) -> dict[str, NDArray[np.int64]]:
        """input_ids, attention_mask and, where the model has them, token_type_ids, padded."""
        return Padding(self.folder).of(self.tokenizer, texts, self.max_length)

    # ---- What encode is made of ---------------------------------------------------------------

    def _width(self, truncate_dim: int | None) -> int:
        if truncate_dim is not None:
            return min(integer("truncate_dim", truncate_dim, 1), self._columns)
        return min(self._truncate_dim or self._columns, self._columns)

    def _encode_one(
        self, text: str, row: NDArray[np.float32], prompt: str, normalize: bool | None, call: Call
    ) -> None:
        watch = call.watch(len(text))
        self._core.encode_one(text, row, prompt, normalize, len(row), self._max_length, watch)

    def _rows(
        self,
        texts: list[str],
        vectors: NDArray[np.float32],
        prompt: str | None,
        normalize: bool | None,
        watch: Any,
    ) -> None:
        columns = vectors.shape[1]
        self._core.encode(texts, vectors, prompt, normalize, columns, self._max_length, watch)

    def _stream(
        self,
        texts: Iterable[str],
        width: int,
        prompt: str | None,
        normalize: bool | None,
        watch: Any,
    ) -> NDArray[np.float32]:
        blocks = []
        for block in blocks_of("inputs", texts, _STREAMED):
            vectors = np.empty((len(block), width), np.float32)
            self._rows(block, vectors, prompt, normalize, watch)
            blocks.append(vectors)
        return np.concatenate(blocks) if blocks else np.empty((0, width), np.float32)

    def _finish(self, vectors: NDArray[np.float32], precision: Precision, out: Any) -> NDArray[Any]:
        result: NDArray[Any] = vectors
        if precision != "float32":
            result = quantize_embeddings(vectors, precision)
        if out is not None:
            shape = (len(vectors), columns_of(precision, vectors.shape[1]))
            writable(out, shape, dtype_of(precision))[...] = result
        return result

    def _token_vectors(self, inputs: Inputs, prompt: str, tensors: bool, call: Call) -> Any:
        texts, single = texts_of("inputs", inputs)
        with call.watched(False, texts) as watch:
            found: list[Any] = [
                self._core.encode_tokens(text, prompt, self._max_length, watch) for text in texts
            ]
        if tensors:
            torch = torch_module("convert_to_tensor")
            found = [torch.from_numpy(vectors) for vectors in found]
        return found[0] if single else found

    def _features(
        self, inputs: Inputs, prompt: str, width: int, tensors: bool, call: Call
    ) -> Any:
        texts, single = texts_of("inputs", inputs)
        with call.watched(False, texts) as watch, call.unseen().watched(False, texts) as again:
            found = [
                self._features_of(text, prompt, width, tensors, watch, again) for text in texts
            ]
        return found[0] if single else found

    def _features_of(
        self, inputs: str, prompt: str, width: int, tensors: bool, watch: Any, again: Any
    ) -> dict[str, Any]:
        row = np.empty(width, np.float32)
        self._core.encode_one(inputs, row, prompt, None, width, self._max_length, watch)
        token_vectors = self._core.encode_tokens(inputs, prompt, self._max_length, again)
        tokens = self.tokenize((prompt or "") + inputs)
        features: dict[str, Any] = {name: rows[0] for name, rows in tokens.items()}
        features |= {"token_embeddings": token_vectors, "sentence_embedding": row}
        if tensors:
            torch = torch_module("convert_to_tensor")
            features = {name: torch.from_numpy(array) for name, array in features.items()}
        features["modality"] = "text"
        if prompt:
            of_prompt = self.tokenizer.encode(prompt, max_length=self.max_seq_length or 0)
            # Without the special token that ends a text.
            ended = bool(of_prompt.offsets) and of_prompt.offsets[-1] == (0, 0)
            features["prompt_length"] = len(of_prompt) - int(ended)
        return features


def _list_of(inputs: Any) -> list[str] | None:
    """A list of the caller's texts that nobody else changes; None of an iterator."""
    return texts_of("inputs", inputs)[0] if hasattr(inputs, "__len__") else None


def _converted(result: NDArray[Any], to_numpy: bool, to_tensor: bool) -> Any:
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
