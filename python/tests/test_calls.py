# SPDX-License-Identifier: Apache-2.0
"""Calls at the edges of what sentence-transformers takes, beside it: no texts in each form of the
result, quantized vectors of tokens, numbers of tokens, places of arguments. tests/compare's
check_calls.py draws such calls at random."""

from __future__ import annotations

import concurrent.futures
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyencore
import pytest
from conftest import DATA, LAYER_SHAPES, TEXTS, has, needs_reference, reference_of
from pyencore import (
    CrossEncoder,
    Encoder,
    MaskedLanguageModel,
    SparseEncoder,
    TextEncoder,
    Tokenizer,
    _inputs,
)

FORMS = [
    {"convert_to_numpy": numpy, "convert_to_tensor": tensor}
    for numpy in (True, False)
    for tensor in (True, False)
]


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


def test_numbers_of_tensors_and_arrays() -> None:
    """What is a list of ints may be an array or a tensor of one axis, of no other kind."""
    layer = torch_layer()
    x = np.linspace(-1, 1, 5 * 16, dtype=np.float32).reshape(5, 16)
    masked = MaskedLanguageModel(DATA / "heads" / "splade_bert", threads=1)
    wanted = layer.forward(x, lengths=[2, 3]), masked.logits("a tea", [1, 2])
    forms: list[Any] = [np.array, lambda ints: np.array(ints, np.uint8), tuple]
    wrong: list[Any] = [np.array([[2, 3]]), np.array([2.0, 3.0]), np.array(5), np.array([True])]
    if has("torch"):
        import torch

        forms += [torch.tensor, lambda ints: torch.tensor(ints, dtype=torch.int32)]
        wrong += [torch.tensor(value) for value in wrong]
    for form in forms:
        assert np.array_equal(layer.forward(x, lengths=form([2, 3])), wanted[0])
        assert np.array_equal(masked.logits("a tea", form([1, 2])), wanted[1])
    for value in wrong:
        with pytest.raises(TypeError, match="lengths"):
            layer.forward(x, lengths=value)
        with pytest.raises(TypeError, match="positions"):
            masked.logits("tea", value)


def torch_layer() -> Encoder:
    draw = np.random.default_rng(1)
    weights = {name: draw.normal(size=of).astype(np.float32) for name, of in LAYER_SHAPES.items()}
    return Encoder(weights, num_heads=4, activation="gelu", threads=1)


def test_first_calls_of_two_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """Arguments are checked once by each: an iterator has its elements once."""
    both, checks_of = threading.Barrier(2), _inputs._checks_of

    def together(function: Any) -> Any:
        both.wait(10)
        return checks_of(function)

    def listed(numbers: Sequence[int]) -> list[int]:
        return list(numbers)

    monkeypatch.setattr(_inputs, "_checks_of", together)
    call = _inputs.checked(listed)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        calls = [pool.submit(call, iter([1, 2, 3])) for _ in range(2)]
        assert [one.result() for one in calls] == [[1, 2, 3]] * 2
    assert call(iter([4])) == [4]  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["CrossEncoder", "TextEncoder"])
def test_matrices_that_are_kept_may_be_a_set(folders: Any, name: str) -> None:
    folder = folders("reranker" if name == "CrossEncoder" else "base")
    kinds: tuple[Any, ...] = (set, frozenset, tuple)
    for kind in kinds:
        getattr(pyencore, name)(folder, keep=kind(["0.linear1"]), compute="int8", threads=1)
