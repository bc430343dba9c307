# SPDX-License-Identifier: Apache-2.0
"""Every error is a Python exception of a fitting class with encore's sentence."""

from __future__ import annotations

import inspect
import shutil
from pathlib import Path
from typing import Any

import pyencore
import pytest
from conftest import DATA, FOLDERS, TEXTS
from pyencore import CorruptDataError, CrossEncoder, TextEncoder, UnsupportedError


CLASSES = sorted(FOLDERS.keys() - {"TextEncoder", "Tokenizer"})
HAS_NOT = {
    (name, option)
    for name in ("CrossEncoder", "SparseEncoder", "MultiVectorEncoder")
    for option in ("pooling", "normalize", "task")
} - {("MultiVectorEncoder", "normalize")} | {("ImageEncoder", name) for name in ("pooling", "task")}


@pytest.fixture(scope="module")
def model(folders: Any) -> TextEncoder:
    return TextEncoder(folders("base"), threads=1)


@pytest.mark.parametrize(
    ("inputs", "kind", "words"),
    [
        (3, TypeError, "inputs is of type int; wanted str"),
        (None, TypeError, "inputs is of type NoneType"),
        ({"text": "a"}, TypeError, "inputs is of type dict"),
        (b"bytes", TypeError, "inputs is of type bytes"),
        (["a", 3], TypeError, r"inputs\[1\] is of type int; wanted str"),
        ([("a", "b")], TypeError, r"inputs\[0\] is of type tuple"),
        (
            ["a", "half \ud83d"],
            ValueError,
            r"inputs\[1\] has a lone surrogate, U\+D83D, at character 5; wanted text that UTF-8",
        ),
        ("half \ud83d", ValueError, "inputs has a lone surrogate"),
    ],
)
def test_inputs(model: TextEncoder, inputs: Any, kind: type[Exception], words: str) -> None:
    with pytest.raises(kind, match=words):
        model.encode(inputs)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"batch_size": 0}, "batch_size must be a positive integer, got 0"),
        ({"precision": "int4"}, "Precision 'int4' is not supported"),
        ({"output_value": "else"}, "output_value is 'else'; wanted 'sentence_embedding'"),
        ({"device": "cuda"}, "encore computes on CPUs"),
        ({"truncate_dim": 0}, "truncate_dim is 0; wanted at least 1"),
        ({"prompt_name": "none"}, "Prompt name 'none' not found"),
    ],
)
def test_options(model: TextEncoder, options: dict[str, Any], words: str) -> None:
    for inputs in (TEXTS, TEXTS[0]):
        with pytest.raises(ValueError, match=words):
            model.encode(inputs, **options)
    with pytest.raises(TypeError, match="batchsize"):
        model.encode(TEXTS, batchsize=3)  # type: ignore[call-arg]


def test_opening(tmp_path: Path, folders: Any) -> None:
    with pytest.raises(FileNotFoundError, match="is no folder; wanted a model's folder"):
        TextEncoder("/no/such/folder")
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        TextEncoder(tmp_path)
    folder = tmp_path / "model"
    shutil.copytree(folders("base"), folder)
    for options, words in (
        ({"pooling": "middle"}, "pooling has 'middle'; wanted one of cls, max, mean"),
        ({"keep": ["linear1"]}, "keep has 'linear1'; wanted a layer"),
        ({"compute": "f64"}, "f64"),
        ({"threads": -1}, "threads is -1"),
        ({"max_length": 10_000}, "max_length"),
        ({"similarity_fn_name": "l3"}, "similarity_fn_name is 'l3'"),
    ):
        with pytest.raises(ValueError, match=words):
            TextEncoder(folder, **options)  # type: ignore[arg-type]
    weights = folder / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:1000])
    with pytest.raises(CorruptDataError, match=r"model\.safetensors"):
        TextEncoder(folder)
    assert issubclass(CorruptDataError, ValueError)


def test_what_a_folder_cannot_do(model: TextEncoder, folders: Any) -> None:
    with pytest.raises(UnsupportedError, match="no classification head"):
        CrossEncoder(folders("base"), threads=1).predict([("a", "b")])
    assert issubclass(UnsupportedError, NotImplementedError)


def options_of(kind: Any) -> set[str]:
    """By name in the signatures of the class and of those that it hands the others to."""
    found: set[str] = set()
    for base in kind.__mro__[:-1]:
        parameters = inspect.signature(base.__init__).parameters
        found |= set(parameters)
        if "options" not in parameters:
            break
    return found


@pytest.mark.parametrize("name", [*CLASSES, "TextEncoder"])
def test_options_of_other_classes(name: str) -> None:
    """An option that a class has not is refused by name, though another has it."""
    kind = getattr(pyencore, name)
    every = set().union(*(options_of(getattr(pyencore, one)) for one in [*CLASSES, "TextEncoder"]))
    every |= {"language_head", "language_heads"}
    tried = sorted(every - options_of(kind) - {"self", "options", "others"})
    assert "language_head" in tried
    for option in tried:
        for value in (None, True, "cls"):
            with pytest.raises(TypeError, match=rf"unexpected keyword argument '{option}'"):
                kind(FOLDERS[name], **{option: value})
    for option in ("pooling", "normalize", "task"):
        assert (option in tried) == ((name, option) in HAS_NOT)


@pytest.mark.parametrize(
    "name", ["Classifier", "ImageClassifier", "TokenClassifier", "MaskedLanguageModel"]
)
@pytest.mark.parametrize("options", [{"pooling": "cls"}, {"normalize": True}, {"normalize": False}])
def test_settings_of_vectors_where_there_are_none(name: str, options: dict[str, Any]) -> None:
    kind = getattr(pyencore, name)
    (option,) = options
    with pytest.raises(ValueError, match=f"^{option} is .*; {name} has no vectors of texts"):
        kind(FOLDERS[name], **options)


HEADS = sorted(
    path.parent
    for of in ("heads", "late", "sentences", "text")
    for path in (DATA / of).glob("*/config.json")
)


@pytest.mark.parametrize("name", CLASSES)
@pytest.mark.parametrize("folder", HEADS, ids=lambda p: p.name)
def test_a_folder_without_the_head_of_a_class(folder: Path, name: str) -> None:
    """A class opens a folder, or says by one exception that it does not."""
    try:
        getattr(pyencore, name)(folder, ignore_unknown_keys=True, threads=1)
    except UnsupportedError as error:
        assert "found none" not in str(error)
    except FileNotFoundError as error:
        assert name.startswith("Image") and "found no image processor" in str(error)


def test_a_folder_without_sparse_vectors() -> None:
    for name in ("SparseEncoder", "MaskedLanguageModel"):
        with pytest.raises(UnsupportedError, match="wanted the head of a masked language model"):
            getattr(pyencore, name)(DATA / "text" / "base", threads=1)
