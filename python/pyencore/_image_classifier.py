# SPDX-License-Identifier: Apache-2.0
"""ImageClassifier: pictures to labels and scores, as transformers' pipelines give them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from pyencore import ops
from pyencore._arguments import FOLDER_NAMES, renamed
from pyencore._arrays import Floats
from pyencore._call import Call, CallStats, Progress
from pyencore._cross_encoder import function_of, labelled, softmax
from pyencore._errors import UnsupportedError
from pyencore._image_encoder import BLOCK, Pictures
from pyencore._images import Pixels, decoded, pictures_of, pixels_of
from pyencore._inputs import checked, integer, shown, text
from pyencore._text_encoder import TextEncoder
from pyencore._texts import texts_of


class ImageClassifier(Pictures):
    """A model that gives pictures labels, as transformers' pipeline "image-classification"; with
    candidate_labels, a folder of CLIP or SigLIP, as "zero-shot-image-classification".

    Each of the candidate_labels is put into hypothesis_template, and the folder's text side says
    how well that fits a picture. function_to_apply: "sigmoid", "softmax" or "none", what follows
    the logits; None: as the pipelines have it. The other arguments are those of ImageEncoder.
    """

    _texts: Floats | None = None  # of the candidates, [labels, dimensions]

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        candidate_labels: Iterable[str] | None = None,
        hypothesis_template: str = "This is a photo of {}.",
        function_to_apply: str | None = None,
        **options: Any,
    ) -> None:
        self._function = function_of(function_to_apply)
        template = text("hypothesis_template", hypothesis_template)
        super().__init__(model_name_or_path, **options)
        self._labels = list(self._core.labels)
        if candidate_labels is not None:
            self._read_candidates(candidate_labels, template)
        elif not self._labels:
            raise UnsupportedError(
                f"{self.folder} has no classification head; wanted one"
                + (", or candidate_labels" if self._core.text_scale else "")
            )

    @property
    def labels(self) -> list[str]:
        """Names of the head's outputs, or the candidates."""
        return list(self._labels)

    @property
    def num_labels(self) -> int:
        return len(self._labels)

    @checked
    def predict(
        self,
        images: Any,
        function_to_apply: str | None = None,
        *,
        show_progress_bar: bool | None = None,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> Floats:
        """Scores [images, labels], or [labels] of a single picture. Pictures are as those of
        ImageEncoder.encode, and so are cancel and what follows."""
        call = Call(cancel, deadline, background, progress, stats)
        function = function_of(function_to_apply) or self._function
        pictures, count, single = pictures_of("images", images)
        with call.seen(show_progress_bar, count, unit="image") as watch:
            if single:
                return self._scores([pixels_of("images", next(pictures))], function, watch)[0]
            numbered = enumerate(pictures)
            blocks = [
                self._scores(block, function, watch)
                for block in decoded("images", numbered, BLOCK)
            ]
        return np.concatenate(blocks) if blocks else np.empty((0, self.num_labels), np.float32)

    @checked
    def classify(
        self,
        images: Any,
        top_k: int | None = None,
        function_to_apply: str | None = None,
        *,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> list[dict[str, Any]] | list[list[dict[str, Any]]]:
        """The top_k labels of a picture, or of each: label and score, the highest first. None: as
        the pipelines, 5 of a head's and all candidates. The other arguments are predict's."""
        if top_k is None:
            top_k = 5 if self._texts is None else self.num_labels
        top_k = integer("top_k", top_k, 1)
        scores = self.predict(
            images,
            function_to_apply,
            cancel=cancel,
            deadline=deadline,
            background=background,
            progress=progress,
            stats=stats,
        )
        found = labelled(np.atleast_2d(scores), self._labels, top_k)
        return found[0] if scores.ndim == 1 else found

    def _read_candidates(self, labels: Iterable[str], template: str) -> None:
        if self._core.text_scale is None:
            raise UnsupportedError(
                f"{self.folder} is no model of texts and pictures, which candidate_labels want"
            )
        self._labels, _ = texts_of("candidate_labels", labels)
        if not self._labels:
            raise ValueError("candidate_labels is empty; wanted one or more")
        try:
            texts = [template.format(label) for label in self._labels]
        except (AttributeError, IndexError, KeyError, TypeError, ValueError):
            raise ValueError(
                f"hypothesis_template is {shown(template)}; wanted a text with {{}} for a label"
            ) from None
        both = ("compute", "threads", "ignore_unknown_keys", "compare_cache", "trust_cache")
        options = {name: self._options[name] for name in both}
        side = TextEncoder(self.folder, cache=self._options["cache"] or None, **options)
        self._texts = side.encode(texts, normalize_embeddings=True)

    def _scores(self, images: list[Pixels], function: str | None, watch: Any) -> Floats:
        if self._texts is None:
            return self._core.classify(images, function or "as classifier", watch)
        scale, bias = self._core.text_scale
        vectors = self._core.encode(images, True, self._texts.shape[1], watch)
        cosines: Floats = ops.matmul(vectors, self._texts.T)
        logits = cosines * np.float32(np.exp(scale)) + np.float32(bias or 0)
        function = function or ("softmax" if bias is None else "sigmoid")
        if function == "softmax":
            return softmax(logits)
        return logits if function == "none" else 1 / (1 + np.exp(-logits))
