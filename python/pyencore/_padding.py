# SPDX-License-Identifier: Apache-2.0
"""Padded arrays of token ids, as transformers' tokenizers return them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyencore._folder import read_json
from pyencore._inputs import checked
from pyencore._texts import texts_of
from pyencore._tokenizer import Tokenizer


class Padding:
    """Which token pads, and on which side: from the folder's files."""

    @checked
    def __init__(self, folder: str) -> None:
        self._config = read_json(folder, "config.json")
        self._tokenizer = read_json(folder, "tokenizer_config.json")
        self._special = read_json(folder, "special_tokens_map.json")

    def _pad_id(self, tokenizer: Tokenizer) -> int:
        for source in (self._tokenizer, self._special):
            token = source.get("pad_token")
            if isinstance(token, dict):
                token = token.get("content")
            if isinstance(token, str):
                found = tokenizer.token_to_id(token)
                if found is not None:
                    return found
        return int(self._config.get("pad_token_id") or 0)

    @checked
    def of(
        self, tokenizer: Tokenizer, texts: str | Iterable[str], max_length: int
    ) -> dict[str, NDArray[np.int64]]:
        listed, _ = texts_of("texts", texts)
        encodings = tokenizer.encode_batch(listed, max_length=max_length)
        longest = max((len(e) for e in encodings), default=0)
        left = self._tokenizer.get("padding_side") == "left"

        def padded(rows: list[list[int]], value: int) -> NDArray[np.int64]:
            array = np.full((len(rows), longest), value, np.int64)
            for place, row in zip(array, rows, strict=True):
                place[longest - len(row) if left else 0 :][: len(row)] = row
            return array

        result: dict[str, Any] = {
            "input_ids": padded([e.ids for e in encodings], self._pad_id(tokenizer)),
            "attention_mask": padded([e.attention_mask for e in encodings], 0),
        }
        if int(self._config.get("type_vocab_size") or 0) > 1:
            result["token_type_ids"] = padded([e.type_ids for e in encodings], 0)
        return result
