# SPDX-License-Identifier: Apache-2.0
"""Calls at the edges of what sentence-transformers takes, beside it: no texts in each form of the
result, quantized vectors of tokens, numbers of tokens, places of arguments. tests/compare's
check_calls.py draws such calls at random."""

from __future__ import annotations

import logging
from typing import Any

import numpy as np
import pytest
from conftest import DATA, TEXTS, needs_reference
from pyencore import CrossEncoder, SparseEncoder, TextEncoder, Tokenizer

FORMS = [
    {"convert_to_numpy": numpy, "convert_to_tensor": tensor}
    for numpy in (True, False)
    for tensor in (True, False)
]


def reference_of(name: str, folder: Any) -> Any:
    import sentence_transformers
    import torch

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)
    return getattr(sentence_transformers, name)(
        str(folder), device="cpu", model_kwargs={"dtype": "float32"}
    )


def same(found: Any, wanted: Any) -> None:
    assert type(found) is type(wanted)
    if isinstance(wanted, list):
        assert len(found) == len(wanted)
        return
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype


@needs_reference
def test_no_texts_and_no_pairs(folders: Any) -> None:
    ours = TextEncoder(folders("base"), threads=1)
    theirs = reference_of("SentenceTransformer", folders("base"))
    ranker = CrossEncoder(folders("reranker")), reference_of("CrossEncoder", folders("reranker"))
    for options in FORMS:
        for none in ([], (), np.array([], str)):
            same(ours.encode(none, **options), theirs.encode(none, **options))
        same(ranker[0].predict([], **options), ranker[1].predict([], **options))


@needs_reference
@pytest.mark.parametrize("precision", ["float32", "int8", "uint8", "binary", "ubinary"])
def test_vectors_of_tokens_in_fewer_bits(folders: Any, precision: Any) -> None:
    ours = TextEncoder(folders("base"), threads=1)
    theirs = reference_of("SentenceTransformer", folders("base"))
    options = {"output_value": "token_embeddings", "precision": precision}
    for inputs in (TEXTS, TEXTS[0]):
        found, wanted = ours.encode(inputs, **options), theirs.encode(inputs, **options)
        several = (found, wanted) if inputs is TEXTS else ([found], [wanted])
        for a, b in zip(*several, strict=True):
            b = np.asarray(b)
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            off = np.abs(a.astype(np.float64) - b)
            assert off.max() <= (4e-6 if precision == "float32" else 1)
            assert precision == "float32" or (off > 0).mean() <= 0.2
    if precision != "float32":
        with pytest.raises(ValueError, match="with output_value None; wanted 'float32'"):
            ours.encode(TEXTS, output_value=None, precision=precision)


def test_numbers_of_tokens() -> None:
    model = SparseEncoder(DATA / "heads" / "splade_bert", threads=1)
    rows = model.encode(["tea", "bread"])
    assert [len(row) for row in model.decode(rows, top_k=2)] == [2, 2]
    for top_k in (0, -1):
        with pytest.raises(ValueError, match=rf"top_k is {top_k}; wanted at least 1"):
            model.decode(rows, top_k=top_k)


def test_places_of_the_tokenizers_arguments(folders: Any) -> None:
    """tokenizers has is_pretokenized where add_special_tokens was."""
    tokenizer = Tokenizer(folders("base"))
    bare = tokenizer.encode("tea", None, add_special_tokens=False)
    assert bare.ids == tokenizer.encode_batch(["tea"], add_special_tokens=False)[0].ids
    assert len(bare) == len(tokenizer.encode("tea")) - 2
    with pytest.raises(TypeError, match="positional"):
        tokenizer.encode("tea", None, False)  # type: ignore[misc]
    with pytest.raises(TypeError, match="positional"):
        tokenizer.encode_batch(["tea"], False)  # type: ignore[misc]


@needs_reference
@pytest.mark.parametrize("name", ["sentence_t5", "base", "qwen3_embedding", "embedding_gemma"])
def test_offsets_of_pairs(folders: Any, name: str) -> None:
    """Also where the second text's tokens have the first's type."""
    import transformers

    ours = Tokenizer(folders(name))
    theirs = transformers.AutoTokenizer.from_pretrained(folders(name)).backend_tokenizer
    theirs.no_padding()
    theirs.no_truncation()
    texts = ["tea", "", "😀 東京 Ana", "éé tea", "x [SEP] </s> é", "😀"]
    for first in texts:
        for second in texts:
            found, wanted = ours.encode(first, second), theirs.encode(first, second)
            assert found.ids == wanted.ids
            assert found.offsets == wanted.offsets, (first, second)
