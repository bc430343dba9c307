# SPDX-License-Identifier: Apache-2.0
"""LangChain's, LlamaIndex's and Haystack's classes, each with the real package."""

from __future__ import annotations

import asyncio
from typing import Any

import numpy as np
import pytest
from conftest import TEXTS, has
from pyencore import TextEncoder


@pytest.fixture
def wanted(folders: Any) -> Any:
    return TextEncoder(folders("base"), threads=1).encode(TEXTS)


@pytest.mark.skipif(not has("langchain_core"), reason="langchain-core is not installed")
def test_langchain(folders: Any, wanted: Any) -> None:
    from langchain_core.vectorstores import InMemoryVectorStore
    from pyencore.langchain import EncoreEmbeddings

    embeddings = EncoreEmbeddings(folders("base"), threads=1)
    assert np.array_equal(np.float32(embeddings.embed_documents(TEXTS)), wanted)
    assert np.array_equal(np.float32(embeddings.embed_query(TEXTS[1])), wanted[1])
    assert np.array_equal(np.float32(asyncio.run(embeddings.aembed_query(TEXTS[1]))), wanted[1])
    store = InMemoryVectorStore.from_texts(TEXTS, embeddings)
    assert store.similarity_search(TEXTS[3], k=1)[0].page_content == TEXTS[3]


@pytest.mark.skipif(not has("llama_index"), reason="llama-index-core is not installed")
def test_llama_index(folders: Any, wanted: Any) -> None:
    from pyencore.llama_index import EncoreEmbedding

    embedding = EncoreEmbedding(folders("base"), threads=1)
    assert np.array_equal(np.float32(embedding.get_text_embedding_batch(TEXTS)), wanted)
    assert np.array_equal(np.float32(embedding.get_query_embedding(TEXTS[2])), wanted[2])
    found = asyncio.run(embedding.aget_text_embedding(TEXTS[1]))
    assert np.array_equal(np.float32(found), wanted[1])


@pytest.mark.skipif(not has("haystack"), reason="haystack-ai is not installed")
def test_haystack(folders: Any, wanted: Any) -> None:
    from haystack import Document, Pipeline
    from pyencore.haystack import EncoreDocumentEmbedder, EncoreTextEmbedder

    folder = str(folders("base"))
    embedder = EncoreDocumentEmbedder(folder, options={"threads": 1})
    pipeline = Pipeline()
    pipeline.add_component("embedder", embedder)
    again = Pipeline.loads(pipeline.dumps(), allowed_modules=["pyencore.haystack"])
    documents = again.run({"embedder": {"documents": [Document(content=t) for t in TEXTS]}})
    vectors = [d.embedding for d in documents["embedder"]["documents"]]
    assert np.array_equal(np.float32(vectors), wanted)
    found = EncoreTextEmbedder(folder, options={"threads": 1}).run(TEXTS[1])
    assert np.array_equal(np.float32(found["embedding"]), wanted[1])
