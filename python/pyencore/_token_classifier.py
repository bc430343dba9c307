# SPDX-License-Identifier: Apache-2.0
"""TokenClassifier: names and other entities in texts, as transformers' pipeline finds them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable
from typing import Any, Literal

from pyencore._arguments import FOLDER_NAMES, renamed
from pyencore._arrays import Floats
from pyencore._call import Call, CallStats, Progress
from pyencore._errors import UnsupportedError
from pyencore._inputs import checked, one_of
from pyencore._opened import TextModel
from pyencore._texts import texts_of

Aggregation = Literal["none", "simple", "first", "average", "max"]


class TokenClassifier(TextModel):
    """A model for token classification (NER, personal data)."""

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(self, model_name_or_path: str | os.PathLike[str], **options: Any) -> None:
        super().__init__(model_name_or_path, **options)
        if not self._core.labels_tokens:
            raise UnsupportedError(
                f"{self.folder} has no head for token classification, or one that encore does not "
                "compute for its family"
            )

    @property
    def labels(self) -> list[str]:
        return list(self._core.labels)

    @checked
    def predict(
        self,
        inputs: str | Iterable[str],
        aggregation_strategy: Aggregation = "simple",
        ignore_labels: Collection[str] = ("O",),
        show_progress_bar: bool | None = None,
        *,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> list[Any]:
        """The entities of a text, or of each: dicts of entity_group (with "none": entity), score,
        word, and start and end in characters. word is the text between these. cancel and what
        follows are as of TextEncoder.encode."""
        call = Call(cancel, deadline, background, progress, stats)
        known = ("none", "simple", "first", "average", "max")
        one_of("aggregation_strategy", aggregation_strategy, known)
        texts, single = texts_of("inputs", inputs)
        key = "entity" if aggregation_strategy == "none" else "entity_group"
        ignored = list(ignore_labels)
        with call.watched(show_progress_bar, texts) as watch:
            rows = self._core.entities(
                texts, aggregation_strategy, ignored, self._max_length, watch
            )
        found = [
            [_entity(key, text.encode(), *entity) for entity in row]
            for text, row in zip(texts, rows, strict=True)
        ]
        return found[0] if single else found

    @checked
    def logits(self, text: str) -> Floats:
        """[tokens, labels] of one text, special tokens included."""
        return self._core.label_tokens(text, self._max_length, Call().watch(len(text)))


def _entity(
    key: str, text: bytes, label: str, score: float, begin: int, end: int
) -> dict[str, Any]:
    start, word = len(text[:begin].decode()), text[begin:end].decode()
    return {key: label, "score": score, "word": word, "start": start, "end": start + len(word)}
