# SPDX-License-Identifier: Apache-2.0
"""Attributes set on an open model act as in sentence-transformers, or are refused by name."""

from __future__ import annotations

import enum
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, REFERENCE, TEXTS, copy_with
from conftest import FOLDERS as FOLDERS_OF_CLASSES

import pyencore
from pyencore import CrossEncoder, MultiVectorEncoder, SparseEncoder, TextEncoder

FOLDERS = {
    name: folder for name, folder in FOLDERS_OF_CLASSES.items() if name != "Tokenizer"
} | {"TextEncoder": DATA / "sentences" / "qwen3_embedding"}
SETTINGS = "config_sentence_transformers.json"
PROMPTED = ["TextEncoder", "SparseEncoder", "MultiVectorEncoder", "CrossEncoder"]


class SimilarityFunction(enum.Enum):
    """As sentence-transformers has it."""

    COSINE = "cosine"
    DOT_PRODUCT = "dot"
    EUCLIDEAN = "euclidean"
    MANHATTAN = "manhattan"
    MAXSIM = "maxsim"
    MEAN_MAXSIM = "meanmaxsim"


class Numbered(enum.Enum):
    COSINE = 1


def opened(name: str, **options: Any) -> Any:
    return getattr(pyencore, name)(FOLDERS[name], **options)


def answer(model: Any) -> Any:
    """What a model says of some texts, without a prompt's name."""
    if isinstance(model, CrossEncoder):
        return model.predict([("tea", text) for text in TEXTS[:4]])
    if isinstance(model, SparseEncoder):
        return model.encode(TEXTS[:4], convert_to_sparse_tensor=False)
    vectors = model.encode(TEXTS[:4])
    return np.concatenate(vectors) if isinstance(vectors, list) else vectors


# Values of each attribute that one of the classes takes or refuses: none may be ignored.
VALUES: dict[str, list[Any]] = {
    "similarity_fn_name": ["cosine", "maxsim", "COSINE", "foo", 3, None, *SimilarityFunction],
    "default_prompt_name": ["query", "document", "no such name", 3, None],
    "prompts": [{"query": "a "}, {}, {"query": 3}, None, ["query"], "query"],
    "max_seq_length": [8, np.int64(7), 0, -1, True, 2.5, "8", None],
    "max_length": [8, 0, -1, True, 2.5, "8", None],
    "truncate_dim": [3, np.int64(3), None, 0, -1, True, 2.5, "3"],
    "max_active_dims": [3, None, 0, -1, True, 2.5, "3"],
    "activation_fn": ["sigmoid", "identity", None, "foo", 3, np.tanh],
}
OF_CLASS = {
    "similarity_fn_name": [*PROMPTED[:3], "ImageEncoder"],
    "default_prompt_name": PROMPTED,
    "prompts": PROMPTED,
    "max_seq_length": [name for name in FOLDERS if not name.startswith("Image")],
    "max_length": [name for name in FOLDERS if not name.startswith("Image")],
    "truncate_dim": ["TextEncoder", "ImageEncoder"],
    "max_active_dims": ["SparseEncoder"],
    "activation_fn": ["CrossEncoder"],
}


@pytest.mark.parametrize("name", FOLDERS)
def test_every_attribute_acts_or_is_refused(name: str) -> None:
    model = opened(name)
    for attribute, values in VALUES.items():
        if name not in OF_CLASS[attribute]:
            with pytest.raises(AttributeError, match=attribute):
                setattr(model, attribute, values[0])
            continue
        before = getattr(model, attribute)
        taken = 0
        for value in values:
            try:
                setattr(model, attribute, value)
            except (TypeError, ValueError) as error:
                assert attribute.replace("_", " ") in str(error).lower().replace("_", " "), error
                assert getattr(model, attribute) == before
                continue
            taken += 1
            found = getattr(model, attribute)
            known = value.value if isinstance(value, enum.Enum) else value
            assert value is None or found == known, (attribute, value, found)
            before = found
        assert 0 < taken < len(values), attribute


@pytest.mark.parametrize("name", FOLDERS)
def test_unknown_and_read_only_attributes(name: str) -> None:
    model = opened(name)
    settable = {
        n for n in dir(type(model)) if isinstance(getattr(type(model), n), property)
    }
    for attribute in ("max_seq_lenght", "truncate_dims", "prompt", "batch_size", "normalize"):
        of_pictures = {"ImageEncoder": "truncate_dim", "ImageClassifier": "wanted none to be set"}
        one = of_pictures.get(name, "max_seq_length")
        with pytest.raises(AttributeError, match=f"no attribute '{attribute}'.*{one}"):
            setattr(model, attribute, 3)
    for attribute in settable - {a for a in VALUES if name in OF_CLASS[a]}:
        with pytest.raises(AttributeError, match=f"read-only attribute '{attribute}'"):
            setattr(model, attribute, "cpu")
    if not REFERENCE:
        return
    # What an object of sentence-transformers has besides.
    for attribute in ("backend", "trust_remote_code", "model_card_data", "module_kwargs", "config",
                      "device", "dtype", "tokenizer", "splade_pooling_chunk_size"):
        with pytest.raises(AttributeError, match=attribute):
            setattr(model, attribute, None)


def test_attributes_of_other_classes() -> None:
    layer = pyencore.ops.PackedLinear(np.ones((2, 2), np.float32))
    for made in (pyencore.Tokenizer(DATA / "text" / "base"), layer):
        with pytest.raises(AttributeError, match="'max_length'; wanted none to be set"):
            made.max_length = 3


def test_classes_of_others_have_attributes_of_their_own() -> None:
    class Search(TextEncoder):
        def __init__(self, folder: Path) -> None:
            super().__init__(folder)
            self.index = 3
            self.truncate_dim = 5

    model = Search(FOLDERS["TextEncoder"])
    assert model.index == 3 and model.encode("tea").shape == (5,)


@pytest.mark.parametrize("name", PROMPTED)
def test_prompts_of_an_open_model(name: str) -> None:
    model = opened(name, prompts={"query": "old road ", "tea": "tea? "})
    plain = answer(opened(name, prompts={"plain": ""}, default_prompt_name="plain"))
    assert np.array_equal(answer(model), plain)
    model.default_prompt_name = "tea"
    with_tea = answer(model)
    assert not np.array_equal(with_tea, plain)
    model.prompts["tea"] = "old road "  # in place
    model.default_prompt_name = "query"
    with_road = answer(model)
    model.default_prompt_name = "tea"
    assert np.array_equal(answer(model), with_road) and not np.array_equal(with_road, with_tea)
    assert np.array_equal(answer(pickle.loads(pickle.dumps(model))), with_road)
    model.prompts = {"other": "boats "}  # as sentence-transformers: no such default, no prompt
    assert np.array_equal(answer(model), plain)
    model.default_prompt_name = None
    assert np.array_equal(answer(model), plain)
    model.prompts["other"] = 3
    model.default_prompt_name = "other"
    with pytest.raises(TypeError, match=r"prompts\['other'\] is of type int; wanted str"):
        answer(model)
    given = {"query": "old road "}
    model.prompts = given
    given["query"] = "boats "
    assert model.prompts == {"query": "old road "}


@pytest.mark.parametrize("name", PROMPTED)
def test_lengths_of_an_open_model(name: str) -> None:
    model = opened(name)
    long = answer(model)
    for attribute in ("max_seq_length", "max_length"):
        model = opened(name)
        setattr(model, attribute, 4)
        assert getattr(model, attribute) == 4
        assert answer(model).shape != long.shape or not np.array_equal(answer(model), long)


def test_similarities_of_an_open_model() -> None:
    model = opened("TextEncoder")
    a, b = model.encode(TEXTS[:4]) * 3, model.encode(TEXTS[4:8])
    by_name = {}
    for name in ("cosine", "dot", "euclidean", "manhattan"):
        model.similarity_fn_name = name
        by_name[name] = model.similarity(a, b)
    assert len({float(scores[0, 1]) for scores in by_name.values()}) == 4
    for kind in SimilarityFunction:
        if kind.value in by_name:
            model.similarity_fn_name = kind
            assert np.array_equal(model.similarity(a, b), by_name[kind.value])
            assert np.array_equal(
                opened("TextEncoder", similarity_fn_name=kind).similarity(a, b), by_name[kind.value]
            )
    model.similarity_fn_name = None
    assert model.similarity_fn_name == "cosine"
    with pytest.raises(ValueError, match="similarity_fn_name is of type int; wanted one of cosine"):
        model.similarity_fn_name = Numbered.COSINE
    late = opened("MultiVectorEncoder", similarity_fn_name=SimilarityFunction.MEAN_MAXSIM)
    assert late.similarity_fn_name == "meanmaxsim"
    sparse = opened("SparseEncoder", similarity_fn_name=SimilarityFunction.COSINE)
    assert sparse.similarity_fn_name == "cosine"
    sparse.similarity_fn_name = None
    assert sparse.similarity_fn_name == "dot"


def test_a_folders_truncate_dim_is_its_default(tmp_path: Path) -> None:
    whole = opened("TextEncoder").encode(TEXTS[:3])
    cut = copy_with(FOLDERS["TextEncoder"], tmp_path / "cut", SETTINGS, truncate_dim=7)
    model = TextEncoder(cut)
    assert model.truncate_dim == 7 and model.dimension == 7
    for given, columns in ((None, 7), (3, 3), (9, 9), (10**6, whole.shape[1])):
        found = model.encode(TEXTS[:3], truncate_dim=given)
        assert found.shape == (3, columns)
        assert model.encode(TEXTS[0], truncate_dim=given).shape == (columns,)
    for columns in (5, 11):
        model.truncate_dim = columns
        assert model.encode(TEXTS[:3]).shape == (3, columns) and model.dimension == columns
    model.truncate_dim = None
    assert np.array_equal(model.encode(TEXTS[:3]), whole)
    assert TextEncoder(model.folder, truncate_dim=9).encode("tea").shape == (9,)


def test_a_folders_max_active_dims_is_its_default(tmp_path: Path) -> None:
    folder = copy_with(FOLDERS["SparseEncoder"], tmp_path / "few", SETTINGS, max_active_dims=3)
    whole = opened("SparseEncoder", max_active_dims=10**6).encode(TEXTS[:4])
    model = SparseEncoder(folder)
    assert model.max_active_dims == 3
    assert np.diff(model.encode(TEXTS[:4]).indptr).max() == 3
    assert np.diff(model.encode(TEXTS[:4], max_active_dims=5).indptr).max() == 5
    model.max_active_dims = None
    assert same_rows(model.encode(TEXTS[:4]), whole)
    assert same_rows(SparseEncoder(folder, max_active_dims=10**6).encode(TEXTS[:4]), whole)


def same_rows(a: Any, b: Any) -> bool:
    return all(np.array_equal(x, y) for x, y in zip(a, b, strict=True))


def test_activations_of_an_open_model() -> None:
    pairs = [("tea", text) for text in TEXTS[:4]]
    logits = opened("CrossEncoder").predict(pairs, activation_fn="identity")
    assert np.array_equal(opened("CrossEncoder", activation_fn="identity").predict(pairs), logits)
    model = opened("CrossEncoder")
    folders = model.activation_fn
    assert folders == "as cross-encoder"
    sigmoids = model.predict(pairs)
    assert not np.array_equal(sigmoids, logits)
    model.activation_fn = "identity"
    assert np.array_equal(model.predict(pairs), logits)
    assert model.rank("tea", TEXTS[:1])[0]["score"] == pytest.approx(float(logits[0]))
    with pytest.raises(TypeError, match="activation_fn is None; wanted .*'identity'"):
        model.activation_fn = None
    assert np.array_equal(model.predict(pairs), logits)
    assert np.array_equal(model.predict(pairs, activation_fn=None), logits)
    model.activation_fn = folders
    assert np.array_equal(model.predict(pairs), sigmoids)
    assert np.array_equal(opened("CrossEncoder", activation_fn=None).predict(pairs), sigmoids)
    model.activation_fn = np.tanh
    kept = opened("CrossEncoder", activation_fn=np.tanh)
    assert kept.activation_fn is np.tanh
    assert np.array_equal(model.predict(pairs), kept.predict(pairs))


def test_a_late_models_lengths(tmp_path: Path) -> None:
    """max_seq_length is for what has no length of its own, max_length for documents in any case."""
    model = MultiVectorEncoder(FOLDERS["MultiVectorEncoder"])
    own = model.max_length
    model.max_seq_length = 5
    assert (model.max_seq_length, model.max_length) == (5, own)
    assert len(model.encode(TEXTS[0])) <= 5
    model.max_length = 6
    assert model.max_length == 6 and len(model.encode_document(" ".join(TEXTS))) <= 6
