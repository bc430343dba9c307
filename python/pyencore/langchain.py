# SPDX-License-Identifier: Apache-2.0
"""LangChain's embeddings by encore: pip install '.[langchain]'."""

from __future__ import annotations

import os
from typing import Any, cast

from langchain_core.embeddings import Embeddings

from pyencore._arrays import as_array
from pyencore._inputs import checked, vector_options
from pyencore._text_encoder import TextEncoder


class EncoreEmbeddings(Embeddings):
    """A TextEncoder, or what one is opened with, as LangChain's Embeddings.

    encode_options are encode()'s, such as {"normalize_embeddings": True}.
    """

    @checked
    def __init__(
        self,
        model: TextEncoder | str | os.PathLike[str],
        *,
        encode_options: dict[str, Any] | None = None,
        **options: Any,
    ) -> None:
        self.model = model if isinstance(model, TextEncoder) else TextEncoder(model, **options)
        self.encode_options = vector_options(encode_options)

    @checked
    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors = self.model.encode_document(texts, **self.encode_options)
        return cast("list[list[float]]", as_array("", vectors).tolist())

    @checked
    def embed_query(self, text: str) -> list[float]:
        vector = self.model.encode_query(text, **self.encode_options)
        return cast("list[float]", as_array("", vector).tolist())
