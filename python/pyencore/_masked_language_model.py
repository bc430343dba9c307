# SPDX-License-Identifier: Apache-2.0
"""MaskedLanguageModel: what fits in place of a token, in the shape of transformers' pipeline."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from typing import Any

import numpy as np

from pyencore._arguments import FOLDER_NAMES, renamed
from pyencore._arrays import Floats
from pyencore._call import Call
from pyencore._folder import read_json
from pyencore._inputs import checked, integer, shown
from pyencore._opened import TextModel
from pyencore._texts import texts_of


class MaskedLanguageModel(TextModel):
    """A masked language model (BERT, RoBERTa, ModernBERT ...) with its head."""

    @staticmethod
    def _wants_language_head(folder: str) -> bool:
        return True

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(self, model_name_or_path: str | os.PathLike[str], **options: Any) -> None:
        super().__init__(model_name_or_path, **options)
        tokenizer = self.tokenizer
        settings = (
            read_json(self.folder, "tokenizer_config.json"),
            read_json(self.folder, "special_tokens_map.json"),
        )
        named = [one["mask_token"] for one in settings if one.get("mask_token")]
        names = [one["content"] if isinstance(one, dict) else str(one) for one in named]
        known = [name for name in [*names, "[MASK]", "<mask>"] if tokenizer.token_to_id(name)]
        if not known:
            raise ValueError(f"{self.folder}: the tokenizer has no mask_token")
        self._mask_token = known[0]
        decoder = read_json(self.folder, "tokenizer.json").get("decoder") or {}
        steps = decoder.get("decoders", [decoder])
        self._spelling = [str(step.get("type")) for step in steps]

    @property
    def mask_token(self) -> str:
        return self._mask_token

    @checked
    def logits(self, text: str, positions: Sequence[int]) -> Floats:
        """[positions, vocabulary]: of these tokens of the text, counted with special ones."""
        places = [integer(f"positions[{i}]", p, 0) for i, p in enumerate(positions)]
        return self._core.predict_tokens(
            text, places, self._max_length, Call().watch(len(text))
        )

    @checked
    def fill_mask(
        self,
        inputs: str | Iterable[str],
        top_k: int = 5,
        targets: str | Collection[str] | None = None,
    ) -> list[Any]:
        """Of a text the likeliest tokens at its mask: dicts of score, token, token_str and
        sequence. Of a text with several masks a list of these lists, of several texts a list.

        targets: only these tokens, whose scores stay what they are among all. sequence is the text
        with token_str in place of the mask; transformers makes it anew of all tokens.
        """
        integer("top_k", top_k, 1)
        chosen = None if targets is None else self._ids_of(targets)
        texts, single = texts_of("inputs", inputs)
        masked = [
            self._masked("inputs" if single else f"inputs[{i}]", text)
            for i, text in enumerate(texts)
        ]  # each is refused before the first is computed
        found = [
            self._fill(text, places, offsets, top_k, chosen)
            for text, (places, offsets) in zip(texts, masked, strict=True)
        ]
        return found[0] if single else found

    def _ids_of(self, targets: str | Collection[str]) -> list[int]:
        tokenizer, ids = self.tokenizer, []
        for target in [targets] if isinstance(targets, str) else targets:
            known = tokenizer.token_to_id(target)
            first = tokenizer.encode(target, add_special_tokens=False).ids[:1]
            ids += [known] if known is not None else first  # as transformers, which warns
        if not ids:
            raise ValueError(f"targets is {shown(targets)}; wanted at least one token")
        return sorted(set(ids))

    def _masked(self, name: str, text: str) -> tuple[list[int], list[tuple[int, int]]]:
        """Where the masks are among the tokens that the model is given, and in the text."""
        tokenizer = self.tokenizer
        mask = tokenizer.token_to_id(self.mask_token)
        tokens = tokenizer.encode(text, max_length=self.max_length)
        places = [i for i, token in enumerate(tokens.ids) if token == mask]
        count = len(places)
        if tokens.cut:
            count = sum(token == mask for token in tokenizer.encode(text).ids)
        if not count:
            raise ValueError(
                f"{name} has no mask token: {shown(text)}; wanted {self.mask_token} at least once"
            )
        if count != len(places):
            raise ValueError(
                f"{name} has {len(tokens) + tokens.cut} tokens, and {count - len(places)} of its "
                f"{count} masks come after the model's {self.max_length}; wanted each mask among "
                "these, or a shorter text"
            )
        return places, [tokens.offsets[place] for place in places]

    def _fill(
        self,
        text: str,
        places: list[int],
        offsets: list[tuple[int, int]],
        top_k: int,
        targets: list[int] | None,
    ) -> list[Any]:
        rows = [
            self._likeliest(text, offset, row, top_k, targets)
            for offset, row in zip(offsets, self.logits(text, places), strict=True)
        ]
        return rows[0] if len(rows) == 1 else rows

    def _likeliest(
        self,
        text: str,
        place: tuple[int, int],
        logits: Floats,
        top_k: int,
        targets: list[int] | None,
    ) -> list[dict[str, Any]]:
        weights = np.exp(logits.astype(np.float64) - logits.max())
        scores = weights / weights.sum()
        ids = np.arange(len(scores)) if targets is None else np.array(targets)
        best = ids[np.argsort(-scores[ids], kind="stable")[:top_k]]
        found = []
        for token in best.tolist():
            word = self._word(token)
            sequence = text[: place[0]] + word + text[place[1] :]
            found.append(
                {
                    "score": float(scores[token]),
                    "token": token,
                    "token_str": word,
                    "sequence": sequence,
                }
            )
        return found

    def _word(self, token: int) -> str:
        """The token as text, as tokenizers decodes it alone."""
        word = self.tokenizer.id_to_token(token) or ""
        return spelled(word, self._spelling)


def spelled(token: str, decoders: Sequence[str]) -> str:
    """A vocabulary's token by the decoders of tokenizer.json: of bytes, of "\u2581" for a space."""
    if "ByteLevel" in decoders:
        known = _bytes_by_letter()
        if all(letter in known for letter in token):
            return bytes(known[letter] for letter in token).decode(errors="replace")
    if "Metaspace" in decoders or "ByteFallback" in decoders:
        word = token.replace("\u2581", " ")
        return word[1:] if "Metaspace" in decoders and word.startswith(" ") else word
    return token


def _bytes_by_letter() -> dict[str, int]:
    """GPT-2's letters for bytes: printable ones are themselves, others come from 256 on."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    letters = {chr(byte): byte for byte in plain}
    return letters | {chr(256 + i): byte for i, byte in enumerate(others)}
