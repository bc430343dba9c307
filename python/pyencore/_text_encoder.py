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
from pyencore._image_encoder import ImageEncoder
from pyencore._images import PillowImage
from pyencore._inputs import checked, shown
from pyencore._opened import Compute, check_batch_size, check_device
from pyencore._padding import Padding
from pyencore._quantize import Precision, quantize_embeddings
from pyencore._retriever import Retriever, check_task
from pyencore._texts import blocks_of, lists_of_ids, texts_of
from pyencore._vectors import Vectors, checked_precision, converted

Inputs = str | PillowImage | Iterable[str | PillowImage]

# Texts of an iterator that are in memory at once.
_STREAMED = 4096


class TextEncoder(Retriever, Vectors):
    """A model folder, or a name on the Hugging Face hub, opened for texts.

    compute is the precision of the matrix products; threads 0 is all usable cores; keep lists
    matrices that int8 and int4 leave in bf16 ("0.linear1"); max_length, pooling and normalize
    replace the folder's. cache is a folder that keeps packed weights: the next opening is without
    packing, and processes share them; compare_cache compares all of them with the weights, and
    trust_cache leaves the check of all their bytes out. task is an adapter of the folder's that is
    added to the weights, "retrieval.query" for instance. The other arguments are those of
    SentenceTransformer.
    """

    _images: ImageEncoder | None = None

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

        As SentenceTransformer.encode. Folders of CLIP and SigLIP take Pillow's images too, alone or
        among texts, but no paths: a str is a text. batch_size is checked and then encore's own
        choice: a text's bits do not depend on it. pool is None, and neither chunk_size nor task
        changes anything. out is an array (or anything that speaks DLPack) of the result's shape and
        type, which is filled and returned. output_value "token_embeddings" gives a text's
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
        precision = checked_precision(precision)
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
        if isinstance(inputs, (str, PillowImage)):
            row = np.empty((1, self._width(truncate_dim)), np.float32)
            if isinstance(inputs, str):
                self._encode_one(inputs, row[0], text, normalize, call)
            else:
                with call.seen(show_progress_bar, 1) as watch:
                    self._rows([inputs], row, text, normalize, watch)
            result = self._finish_one(row, precision, out)
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
        return converted(result, convert_to_numpy, convert_to_tensor)

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

    def _encode_one(
        self, text: str, row: NDArray[np.float32], prompt: str, normalize: bool | None, call: Call
    ) -> None:
        watch = call.watch(len(text))
        self._core.encode_one(text, row, prompt, normalize, len(row), self._max_length, watch)

    def _rows(
        self,
        inputs: list[Any],
        vectors: NDArray[np.float32],
        prompt: str | None,
        normalize: bool | None,
        watch: Any,
    ) -> None:
        columns = vectors.shape[1]
        pictures = [i for i, one in enumerate(inputs) if not isinstance(one, str)]
        if not pictures:
            self._core.encode(inputs, vectors, prompt, normalize, columns, self._max_length, watch)
            return
        images = ((i, inputs[i]) for i in pictures)
        vectors[pictures] = self._image_side()._rows("inputs", images, columns, normalize, watch)
        texts = [i for i, one in enumerate(inputs) if isinstance(one, str)]
        if texts:
            rows = np.empty((len(texts), columns), np.float32)
            self._rows([inputs[i] for i in texts], rows, prompt, normalize, watch)
            vectors[texts] = rows

    def _image_side(self) -> ImageEncoder:
        """The folder's other side, opened for the first picture."""
        if self._images is None:
            both = ("compute", "threads", "normalize", "ignore_unknown_keys", "compare_cache",
                    "trust_cache")  # fmt: skip
            options = {name: self._options[name] for name in both}
            self._images = ImageEncoder(
                self.folder, cache=self._options["cache"] or None, **options
            )
        return self._images

    def _stream(
        self,
        texts: Inputs,
        width: int,
        prompt: str | None,
        normalize: bool | None,
        watch: Any,
    ) -> NDArray[np.float32]:
        blocks = []
        for block in blocks_of("inputs", texts, _STREAMED, pictures=True):
            vectors = np.empty((len(block), width), np.float32)
            self._rows(block, vectors, prompt, normalize, watch)
            blocks.append(vectors)
        return np.concatenate(blocks) if blocks else np.empty((0, width), np.float32)

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


def _list_of(inputs: Any) -> list[Any] | None:
    """A list of the caller's inputs that nobody else changes; None of an iterator."""
    return texts_of("inputs", inputs, pictures=True)[0] if hasattr(inputs, "__len__") else None
