# SPDX-License-Identifier: Apache-2.0
"""The tokenizer by itself, with the names of the `tokenizers` library."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyencore import _core as core_module
from pyencore._arguments import FOLDER_NAMES, KnownAttributes, renamed
from pyencore._folder import find_folder
from pyencore._inputs import checked, elements, integer
from pyencore._texts import check_texts, texts_or_pairs_of


class Encoding(NamedTuple):
    """The tokens of a text or pair. Offsets are characters of the text, (0, 0) of special ones."""

    ids: list[int]
    type_ids: list[int]
    tokens: list[str]
    offsets: list[tuple[int, int]]
    cut: int  # tokens left out because of max_length

    @property
    def attention_mask(self) -> list[int]:
        return [1] * len(self.ids)

    def __len__(self) -> int:
        return len(self.ids)


class Tokenizer(KnownAttributes):
    """A folder's tokenizer, as transformers' AutoTokenizer chooses it. Immutable."""

    _core: core_module.Tokenizer
    _folder: str | None = None

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(
        self, model_name_or_path: str | os.PathLike[str], *, lowercase: bool = False
    ) -> None:
        self._folder = find_folder(model_name_or_path)
        self._lowercase = lowercase
        self._core = core_module.Tokenizer.open(self._folder, lowercase)

    @classmethod
    @renamed(pretrained_model_name_or_path="model_name_or_path", **FOLDER_NAMES)
    @checked
    def from_pretrained(cls, model_name_or_path: str | os.PathLike[str]) -> Tokenizer:
        """The same as Tokenizer(model_name_or_path)."""
        return cls(model_name_or_path)

    @classmethod
    def _of(cls, core: core_module.Tokenizer) -> Tokenizer:
        tokenizer = cls.__new__(cls)
        tokenizer._core = core
        return tokenizer

    def __reduce__(self) -> tuple[object, ...]:
        if self._folder is None:
            raise TypeError("a model's tokenizer cannot be pickled by itself; pickle the model")
        return _opened, (self._folder, self._lowercase)

    @checked
    def encode(
        self,
        sequence: str,
        pair: str | None = None,
        *,
        add_special_tokens: bool = True,
        max_length: int = 0,
        plain_text: bool = False,
    ) -> Encoding:
        """The tokens of a text or pair, cut to max_length (0: not at all). With plain_text,
        "[SEP]" in a text is ordinary text."""
        integer("max_length", max_length, 0)
        ids, types, offsets, cut = self._core.encode(
            sequence, pair, max_length, False, add_special_tokens, plain_text
        )
        tokens = [self._core.id_to_token(i) or "" for i in ids]
        return Encoding(ids, types, tokens, offsets, cut)

    @checked
    def encode_batch(
        self,
        input: Iterable[str | Sequence[str]],  # noqa: A002 (tokenizers' name)
        *,
        add_special_tokens: bool = True,
        max_length: int = 0,
        plain_text: bool = False,
    ) -> list[Encoding]:
        """encode() of each text or pair."""
        return [
            self.encode(
                first,
                second,
                add_special_tokens=add_special_tokens,
                max_length=max_length,
                plain_text=plain_text,
            )
            for first, second in texts_or_pairs_of("input", input)
        ]

    @checked
    def encode_batch_to_array(
        self,
        input: Iterable[str],  # noqa: A002 (tokenizers' name)
        add_special_tokens: bool = True,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The ids of all texts, one text after another and uncut, and how many each has."""
        texts = elements("input", input, "several texts")
        check_texts("input", texts)
        return self._core.encode_many(texts, add_special_tokens)

    @checked
    def token_to_id(self, token: str) -> int | None:
        """The id of a token, or None."""
        return self._core.token_to_id(token)

    @checked
    def id_to_token(self, id: int) -> str | None:  # noqa: A002 (tokenizers' name)
        """The token of an id, or None."""
        integer("id", id, 0, 2**31 - 1)
        return self._core.id_to_token(id)

    @checked
    def get_vocab_size(self, with_added_tokens: bool = True) -> int:
        """The number of tokens, added ones included."""
        if not with_added_tokens:
            raise ValueError("with_added_tokens is False; encore counts added tokens: wanted True")
        return self._core.vocab_size

    @checked
    def num_special_tokens_to_add(self, is_pair: bool) -> int:
        """The special tokens that the template puts around a text or pair."""
        return self._core.special_tokens_of_pair if is_pair else self._core.special_tokens_of_text

    @property
    def model_max_length(self) -> int | None:
        return self._core.model_max_length

    def describe(self) -> list[tuple[str, str, str]]:
        """Every setting: what, value and the file that it is from."""
        return [(what, value, source) for what, value, source in self._core.describe()]


def _opened(folder: str, lowercase: bool) -> Tokenizer:
    return Tokenizer(folder, lowercase=lowercase)
