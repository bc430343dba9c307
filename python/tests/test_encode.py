# SPDX-License-Identifier: Apache-2.0
"""Every argument of encode() against sentence-transformers, on the real MiniLM and on tiny folders
of each family."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import (
    DATA, FAMILIES, MINILM, TEXTS, WHOLE, family_folder, has, needs_minilm, needs_reference,
    reference_of,
)  # fmt: skip
from pyencore import TextEncoder

NAME = "SentenceTransformer"
BOUND = 1e-6  # of 1, or of the largest number where that is more


def close(found: Any, wanted: Any, bound: float = BOUND) -> None:
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape
    assert found.dtype == wanted.dtype
    limit = bound * max(1.0, float(np.abs(wanted).max(initial=0)))
    assert np.abs(found - wanted).max(initial=0) <= limit


@cache
def encore_of(folder: Any, **options: Any) -> TextEncoder:
    return TextEncoder(folder, threads=1, **options)


def both(folder: Any) -> tuple[TextEncoder, Any]:
    return encore_of(folder), reference_of(NAME, folder)


def features_are_close(found: list[dict[str, Any]], wanted: list[dict[str, Any]]) -> None:
    assert len(found) == len(wanted)
    for a, b in zip(found, wanted, strict=True):
        assert a.keys() == b.keys()
        seen = b["attention_mask"].numpy() == 1  # the reference pads a batch's texts
        for name, value in a.items():
            if isinstance(value, (str, int)):
                assert value == b[name]
            elif name == "sentence_embedding":
                close(value, b[name].numpy())
            else:
                close(value, b[name].numpy()[seen], 4e-6)  # before they are normalized


@needs_reference
@pytest.mark.parametrize(
    "name", [pytest.param("minilm", marks=needs_minilm), "base", *WHOLE]
)
def test_features(folders: Any, name: str) -> None:
    """output_value=None"""
    import torch

    ours, theirs = both(folders(name))
    for options in ({}, {"prompt": "road: "}, {"truncate_dim": 7, "normalize_embeddings": True}):
        found = ours.encode(TEXTS, output_value=None, **options)
        wanted = theirs.encode(TEXTS, output_value=None, **options)
        features_are_close(found, wanted)
        for a, vector, tokens in zip(
            found,
            ours.encode(TEXTS, **{**options, "normalize_embeddings": False}),
            ours.encode(TEXTS, output_value="token_embeddings", prompt=options.get("prompt")),
            strict=True,
        ):
            assert np.array_equal(a["sentence_embedding"], vector)
            assert np.array_equal(a["token_embeddings"], tokens)
    one = ours.encode(TEXTS[1], output_value=None, convert_to_tensor=True)
    assert isinstance(one["token_embeddings"], torch.Tensor)
    features_are_close([one], [theirs.encode(TEXTS[1], output_value=None)])
    assert ours.encode([], output_value=None) == theirs.encode([], output_value=None)


def test_ids_as_they_are() -> None:
    model = encore_of(DATA / "text" / "base")
    longest = model.max_length
    ids = [model.tokenizer.encode(text, max_length=longest).ids for text in TEXTS]
    # The same bits as those of the texts, whatever the batch.
    assert np.array_equal(model.encode_ids(ids), model.encode(TEXTS))
    assert np.array_equal(model.encode_ids(np.array([ids[0], ids[0]]))[1], model.encode(TEXTS[0]))
    options: dict[str, Any] = {"normalize_embeddings": True, "truncate_dim": 7}
    assert np.array_equal(model.encode_ids(ids, **options), model.encode(TEXTS, **options))
    with pytest.raises(ValueError, match="ids"):
        model.encode_ids([[1, 10**6]])
    with pytest.raises(ValueError, match="ids"):
        model.encode_ids([[]])


def test_arguments_are_those_of_the_reference() -> None:
    """Names, order and defaults, but those that the documentation says are not there."""
    pytest.importorskip("sentence_transformers", reason="the reference is not installed")
    import inspect

    import sentence_transformers as reference
    from pyencore import CrossEncoder, MultiVectorEncoder, SparseEncoder

    pooled = {"kwargs"}
    # Absent here, added here, and with a default of its own: batch_size is encore's own choice, and
    # tensors need torch.
    for ours, theirs, absent, added, others in (
        (TextEncoder.encode, reference.SentenceTransformer.encode, pooled, {"out", "task"}, set()),
        (CrossEncoder.predict, reference.CrossEncoder.predict, pooled, set(), set()),
        (CrossEncoder.rank, reference.CrossEncoder.rank, pooled, set(), set()),
        (
            MultiVectorEncoder.encode,
            reference.MultiVectorEncoder.encode,
            pooled,
            set(),
            {"convert_to_numpy"},
        ),
        (
            SparseEncoder.encode,
            reference.SparseEncoder.encode,
            pooled,
            {"task"},  # one of the reference's kwargs
            {"convert_to_tensor"},
        ),
    ):
        found = inspect.signature(ours).parameters
        wanted = inspect.signature(inspect.unwrap(theirs)).parameters
        names = [name for name in wanted if name not in absent]
        added |= {"cancel", "deadline", "background", "progress", "stats"}
        assert [name for name in found if name not in added] == names
        assert added <= set(found)
        for name in names:
            if name != "batch_size":
                same = found[name].default == wanted[name].default
                assert same == (name not in others), name


@needs_reference
@pytest.mark.parametrize(
    "name", [pytest.param("minilm", marks=needs_minilm), "base", *WHOLE, *FAMILIES]
)
class TestArguments:
    """Each of encode(), on the real model and a tiny folder of each family."""

    @pytest.fixture
    def ours(self, folders: Any, name: str) -> TextEncoder:
        return encore_of(folders(name))

    @pytest.fixture
    def theirs(self, folders: Any, name: str) -> Any:
        return reference_of(NAME, folders(name))

    def test_arguments(self, ours: TextEncoder, theirs: Any) -> None:
        for options in (
            {},
            {"batch_size": 2},
            {"show_progress_bar": False},
            {"prompt": "query: "},
            {"prompt_name": "query"},
            {"prompt": "a", "prompt_name": "ignored"},
            {"normalize_embeddings": True},
            {"truncate_dim": 7},
            {"truncate_dim": 7, "normalize_embeddings": True},
            {"truncate_dim": 999},
            {"device": "cpu"},
            {"output_value": "sentence_embedding"},
            {"precision": "float32"},
        ):
            close(ours.encode(TEXTS, **options), theirs.encode(TEXTS, **options))
        for method in ("encode_query", "encode_document"):
            close(getattr(ours, method)(TEXTS), getattr(theirs, method)(TEXTS))
        assert ours.dimension == theirs.get_embedding_dimension()
        assert ours.similarity_fn_name == theirs.similarity_fn_name
        assert ours.prompts == theirs.prompts

    def test_kinds_of_inputs(self, ours: TextEncoder, theirs: Any) -> None:
        for inputs in (TEXTS[2], tuple(TEXTS), np.array(TEXTS), TEXTS[:1]):
            close(ours.encode(inputs), theirs.encode(inputs))
        assert ours.encode([]).shape == theirs.encode([]).shape

    @pytest.mark.parametrize("precision", ["int8", "uint8", "binary", "ubinary"])
    def test_quantised(self, ours: TextEncoder, theirs: Any, precision: str) -> None:
        texts = [f"{text} {i}" for i in range(15) for text in TEXTS]
        found, wanted = (
            ours.encode(texts, precision=precision),
            theirs.encode(texts, precision=precision),
        )
        assert found.shape == wanted.shape
        assert found.dtype == wanted.dtype
        floats = theirs.encode(texts)
        bound = BOUND * max(1.0, float(np.abs(floats).max()))
        if precision.endswith("binary"):
            bits = np.unpackbits(found.view(np.uint8) ^ wanted.view(np.uint8), axis=-1) != 0
            assert np.all(np.abs(floats[bits[:, : floats.shape[1]]]) < bound)
        else:
            # A float within the bound of a level's edge may fall to either side.
            low, high = floats.min(axis=0), floats.max(axis=0)
            place = (floats - low) / ((high - low) / 255)
            edge = np.abs(place - np.round(place)) * ((high - low) / 255) < 4 * bound
            different = found != wanted
            assert np.all(edge[different])
            assert np.abs(found.astype(int) - wanted.astype(int)).max() <= 1

    def test_one_vector_in_bits(self, ours: TextEncoder, theirs: Any) -> None:
        for precision in ("binary", "ubinary"):
            a = ours.encode(TEXTS[1], precision=precision)
            b = theirs.encode(TEXTS[1], precision=precision)
            assert a.shape == b.shape
            assert a.dtype == b.dtype
        for model in (ours, theirs):
            with pytest.raises(ValueError, match="from a single embedding"):
                model.encode(TEXTS[1], precision="int8")

    def test_token_vectors(self, ours: TextEncoder, theirs: Any) -> None:
        found = ours.encode(TEXTS, output_value="token_embeddings")
        wanted = theirs.encode(TEXTS, output_value="token_embeddings")
        assert len(found) == len(wanted)
        for a, b in zip(found, wanted, strict=True):
            close(a, b.numpy(), 4e-6)  # before they are normalized
        one = ours.encode(TEXTS[1], output_value="token_embeddings")
        assert np.array_equal(one, found[1])

    def test_tensors(self, ours: TextEncoder, theirs: Any) -> None:
        import torch

        for inputs in (TEXTS, TEXTS[1]):
            a = ours.encode(inputs, convert_to_tensor=True)
            b = theirs.encode(inputs, convert_to_tensor=True)
            assert isinstance(a, torch.Tensor)
            assert a.shape == b.shape
            assert a.dtype == b.dtype
            close(a.numpy(), b.numpy())
            a = ours.encode(inputs, convert_to_numpy=False)
            b = theirs.encode(inputs, convert_to_numpy=False)
            assert type(a) is type(b)
            close(np.stack(list(a)), np.stack(list(b)))


@needs_reference
@needs_minilm
class TestMiniLM:
    @pytest.fixture
    def ours(self) -> TextEncoder:
        return encore_of(MINILM)

    @pytest.fixture
    def theirs(self) -> Any:
        return reference_of(NAME, MINILM)

    def test_similarities(self, ours: TextEncoder, theirs: Any) -> None:
        a, b = ours.encode(TEXTS), ours.encode(TEXTS[::-1])
        for name in ("cosine", "dot", "euclidean", "manhattan"):
            first = TextEncoder(MINILM, threads=1, similarity_fn_name=name)
            second = reference_of(NAME, MINILM, similarity_fn_name=name)
            # Sums of 384 differences, and torch's root of a difference near 0.
            bound = {"manhattan": 1e-5, "euclidean": 1e-3}.get(name, 1e-6)
            close(first.similarity(a, b), second.similarity(a, b).numpy(), bound)
            close(first.similarity(a[0], b), second.similarity(a[0], b).numpy(), bound)
            close(first.similarity_pairwise(a, b), second.similarity_pairwise(a, b).numpy(), 1e-5)

    def test_prompts_of_the_caller(self) -> None:
        options: dict[str, Any] = {
            "prompts": {"query": "find: ", "odd": "x "},
            "default_prompt_name": "odd",
        }
        ours = TextEncoder(MINILM, threads=1, **options)
        theirs = reference_of.__wrapped__(NAME, MINILM, **options)
        assert ours.prompts == theirs.prompts
        close(ours.encode(TEXTS), theirs.encode(TEXTS))
        close(ours.encode_query(TEXTS), theirs.encode_query(TEXTS))
        close(ours.encode_document(TEXTS), theirs.encode_document(TEXTS))
        for model in (ours, theirs):
            with pytest.raises(ValueError, match="Prompt name 'none' not found"):
                model.encode(TEXTS, prompt_name="none")

    def test_lengths(self, ours: TextEncoder, theirs: Any) -> None:
        long = ["a long text of many words " * 100, "short"]
        close(ours.encode(long), theirs.encode(long))
        assert ours.max_length == ours.max_seq_length == theirs.max_seq_length
        shorter = TextEncoder(MINILM, threads=1)
        shorter.max_seq_length = 16
        theirs.max_seq_length = 16
        try:
            close(shorter.encode(long), theirs.encode(long))
        finally:
            theirs.max_seq_length = 256

    def test_tokenize(self, ours: TextEncoder, theirs: Any) -> None:
        found, wanted = ours.tokenize(TEXTS), theirs.tokenize(TEXTS)
        for key in ("input_ids", "attention_mask", "token_type_ids"):
            assert np.array_equal(found[key], wanted[key].numpy()), key


class TestByItself:
    """What needs no reference."""

    @pytest.fixture
    def model(self, folders: Any) -> TextEncoder:
        return encore_of(folders("base"))

    def test_bits_do_not_depend_on_the_call(self, model: TextEncoder) -> None:
        together = model.encode(TEXTS)
        for i, text in enumerate(TEXTS):
            assert np.array_equal(model.encode(text), together[i])
        assert np.array_equal(model.encode(TEXTS * 40), np.tile(together, (40, 1)))

    def test_an_iterator_is_streamed(self, model: TextEncoder) -> None:
        seen = 0

        def texts() -> Iterator[str]:
            nonlocal seen
            for i in range(10_000):
                seen = i
                yield TEXTS[i % len(TEXTS)]

        vectors = model.encode(texts())
        assert seen == 9999
        assert np.array_equal(vectors, np.tile(model.encode(TEXTS), (1250, 1)))
        assert model.encode(iter(())).shape == (0, model.dimension)

    def test_out(self, model: TextEncoder) -> None:
        wanted = model.encode(TEXTS)
        wide = np.zeros((len(TEXTS), 40), np.float32)
        out = wide[:, 4:36]
        assert model.encode(TEXTS, out=out) is out
        assert np.array_equal(out, wanted)
        assert not wide[:, :4].any()
        assert not wide[:, 36:].any()
        row = np.zeros(32, np.float32)
        assert model.encode(TEXTS[1], out=row) is row
        assert np.array_equal(row, wanted[1])
        halves = np.zeros(wanted.shape, np.float16)
        model.encode(TEXTS, precision="float16", out=halves)
        assert np.array_equal(halves, wanted.astype(np.float16))
        bits = np.zeros((len(TEXTS), 4), np.uint8)
        model.encode(TEXTS, precision="ubinary", out=bits)
        assert np.array_equal(bits, np.packbits(wanted > 0, axis=-1))
        with pytest.raises(ValueError, match=r"out is float64 \[8, 32\]; wanted float32 \[8, 32\]"):
            model.encode(TEXTS, out=np.zeros((8, 32)))
        with pytest.raises(ValueError, match=r"wanted float32 \[8, 32\]"):
            model.encode(TEXTS, out=np.zeros((7, 32), np.float32))

    @pytest.mark.skipif(not has("torch"), reason="torch is not installed")
    def test_out_by_dlpack(self, model: TextEncoder) -> None:
        import torch

        tensor = torch.zeros(len(TEXTS), 32)
        assert model.encode(TEXTS, out=tensor) is tensor
        assert np.array_equal(tensor.numpy(), model.encode(TEXTS))
        assert torch.equal(torch.from_dlpack(model.encode(TEXTS)), tensor)

    @pytest.mark.parametrize(("compute", "most"), [("bf16", 0.01), ("int8", 0.06), ("int4", 0.5)])
    def test_compute(self, folders: Any, model: TextEncoder, compute: Any, most: float) -> None:
        reduced = encore_of(folders("base"), compute=compute)
        assert reduced.compute == compute
        assert model.compute == "f32"
        wanted = model.encode(TEXTS)
        assert 0 < np.linalg.norm(reduced.encode(TEXTS) - wanted) < most * np.linalg.norm(wanted)

    def test_options_of_opening(self, folders: Any, model: TextEncoder) -> None:
        folder = folders("base")
        first = TextEncoder(folder, pooling="cls", normalize=True, max_length=8, threads=1)
        vectors = first.encode(TEXTS)
        assert np.allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
        assert first.max_length == 8
        assert first.threads == 1
        several = TextEncoder(folder, pooling=["cls", "mean"], threads=1)
        assert several.dimension == 64
        kept = TextEncoder(folder, compute="int8", keep=["0.linear1", "1.qkv"], threads=1)
        assert not np.array_equal(
            kept.encode(TEXTS), encore_of(folder, compute="int8").encode(TEXTS)
        )
        shorter = TextEncoder(folder, truncate_dim=5, threads=1)
        assert shorter.dimension == 5
        assert shorter.encode(TEXTS).shape == (8, 5)

    def test_cache(self, folders: Any, model: TextEncoder, tmp_path: Path) -> None:
        wanted = model.encode(TEXTS)
        for options in ({}, {}, {"compare_cache": True}, {"trust_cache": True}):
            cached = TextEncoder(folders("base"), threads=1, cache=tmp_path / "packed", **options)
            assert np.array_equal(cached.encode(TEXTS), wanted)
            assert any(d.what == "packed weights" for d in cached.describe())
        kinds = sorted(path.suffix for path in (tmp_path / "packed").iterdir() if path.is_file())
        assert kinds == [".packed", ".tokenizer"]
        again = pickle.loads(pickle.dumps(cached))
        assert np.array_equal(again.encode(TEXTS), wanted)

    def test_describe(self, model: TextEncoder) -> None:
        decisions = {d.what: d for d in model.describe()}
        assert decisions["family"].value == "bert"
        assert decisions["family"].source == "config.json"

    @pytest.mark.skipif(not has("tqdm"), reason="tqdm is not installed")
    def test_progress(self, model: TextEncoder, capsys: pytest.CaptureFixture[str]) -> None:
        model.encode(TEXTS * 10, show_progress_bar=True)
        assert "80/80" in capsys.readouterr().err
        model.encode(TEXTS)
        assert capsys.readouterr().err == ""


@pytest.mark.parametrize("name", ["jina_v3_bank", "jina_v3_folders"])
def test_task_adds_an_adapter(tmp_path: Path, name: str) -> None:
    folder = family_folder(name, tmp_path)
    plain = TextEncoder(folder).encode(TEXTS)
    query = TextEncoder(folder, task="retrieval.query")
    found = query.encode(TEXTS)
    assert np.abs(found - plain).max() > 0.01
    assert np.abs(found - TextEncoder(folder, task="text-matching").encode(TEXTS)).max() > 0.01
    assert (pickle.loads(pickle.dumps(query)).encode(TEXTS) == found).all()
    with pytest.raises(ValueError, match="retrieval.query"):
        TextEncoder(folder, task="nli")
