# SPDX-License-Identifier: Apache-2.0
"""LlamaIndex's embeddings by encore: pip install '.[llama-index]'."""

from __future__ import annotations

import asyncio
import os
from typing import Any, cast

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import Field, PrivateAttr

from pyencore._arrays import as_array
from pyencore._inputs import checked, integer, vector_options
from pyencore._text_encoder import TextEncoder


class EncoreEmbedding(BaseEmbedding):
    """A TextEncoder, or what one is opened with, as LlamaIndex's BaseEmbedding."""

    encode_options: dict[str, Any] = Field(
        default_factory=dict, description="Arguments of TextEncoder.encode"
    )
    _model: TextEncoder = PrivateAttr()

    @checked
    def __init__(
        self,
        model: TextEncoder | str | os.PathLike[str],
        *,
        encode_options: dict[str, Any] | None = None,
        embed_batch_size: int = 512,
        callback_manager: Any = None,
        **options: Any,
    ) -> None:
        encoder = model if isinstance(model, TextEncoder) else TextEncoder(model, **options)
        super().__init__(
            model_name=encoder.folder,
            embed_batch_size=integer("embed_batch_size", embed_batch_size, 1, 2048),
            callback_manager=callback_manager,
            encode_options=vector_options(encode_options),
        )
        self._model = encoder

    @classmethod
    def class_name(cls) -> str:
        return "EncoreEmbedding"

    @checked
    def _get_query_embedding(self, query: str) -> list[float]:
        vector = self._model.encode_query(query, **self.encode_options)
        return cast("list[float]", as_array("", vector).tolist())

    @checked
    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    @checked
    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        vectors = self._model.encode_document(texts, **self.encode_options)
        return cast("list[list[float]]", as_array("", vectors).tolist())

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return await asyncio.to_thread(self._get_query_embedding, query)

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return await asyncio.to_thread(self._get_text_embedding, text)
