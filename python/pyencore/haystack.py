# SPDX-License-Identifier: Apache-2.0
"""Haystack's embedders by encore: pip install '.[haystack]'."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from haystack import Document, component, default_from_dict, default_to_dict

from pyencore._arrays import as_array
from pyencore._inputs import checked, vector_options
from pyencore._text_encoder import TextEncoder


class _Embedder:
    @checked
    def __init__(
        self,
        model: str | os.PathLike[str],
        prefix: str = "",
        encode_options: dict[str, Any] | None = None,
        options: dict[str, Any] | None = None,
    ) -> None:
        self.model = str(model)
        self.prefix = prefix
        self.encode_options = vector_options(encode_options)
        self.options = dict(options or {})
        self._encoder: TextEncoder | None = None

    def warm_up(self) -> None:
        """Opens the model."""
        if self._encoder is None:
            self._encoder = TextEncoder(self.model, **self.options)

    def opened(self) -> TextEncoder:
        self.warm_up()
        assert self._encoder is not None
        return self._encoder

    def to_dict(self) -> dict[str, Any]:
        return default_to_dict(
            self,
            model=self.model,
            prefix=self.prefix,
            encode_options=self.encode_options,
            options=self.options,
        )

    @classmethod
    @checked
    def from_dict(cls, data: dict[str, Any]) -> Any:
        return default_from_dict(cls, data)


@component
class EncoreTextEmbedder(_Embedder):
    """The vector of a query. model: a folder or hub name; options are TextEncoder's."""

    @component.output_types(embedding=list[float])
    @checked
    def run(self, text: str) -> dict[str, Any]:
        vector = self.opened().encode_query(self.prefix + text, **self.encode_options)
        return {"embedding": as_array("", vector).tolist()}


@component
class EncoreDocumentEmbedder(_Embedder):
    """Documents with their vectors. model: a folder or hub name; options are TextEncoder's."""

    @component.output_types(documents=list[Document])
    @checked
    def run(self, documents: list[Document]) -> dict[str, Any]:
        texts = [self.prefix + (document.content or "") for document in documents]
        vectors = as_array("", self.opened().encode_document(texts, **self.encode_options))
        return {
            "documents": [
                replace(document, embedding=vector.tolist())
                for document, vector in zip(documents, vectors, strict=True)
            ]
        }
