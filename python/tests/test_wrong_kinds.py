# SPDX-License-Identifier: Apache-2.0
"""Wrong values for each argument of every public function, method and setter of pyencore: each is
refused by a sentence that names the argument, or is right. What is public is found by inspection: a
new function is tried without a word here, if its arguments have known names."""

from __future__ import annotations

import datetime
import importlib
import inspect
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyencore
import pytest
from conftest import DATA, FOLDERS, LAYER_SHAPES, has
from pyencore import ops
from synthetic_report import synthetic_report

MODULES = ["pyencore", "pyencore.ops", "pyencore._padding"]
MODULES += ["pyencore.lab"] if has("matplotlib") and has("jsonschema") else []
MODULES += ["pyencore.langchain"] if has("langchain_core") else []
MODULES += [f"pyencore.{name}" for name in ("llama_index", "haystack", "ray") if has(name)]
# Classes of results and errors, and of others: nobody makes the former, and the latter check
# themselves.
NOT_TRIED = {
    "CallStats", "Stop",  # take nothing
    "Encoding", "PatchVectors", "CorruptDataError", "UnsupportedError", "LabError", "Pairing",
    "Figure", "Embedded",
}  # fmt: skip
# Arguments that take any value, with the reason.
TAKES_ALL = {
    ("Tokenizer.get_vocab_size", "with_added_tokens"): "a flag of tokenizers'",
    ("check", "name"): "a word for messages",
    ("EncoreEmbedding", "callback_manager"): "LlamaIndex's own check",
}
# Arguments that are not tried, as others read them: pydantic and Haystack; that no user gives; or
# functions, whose own errors pass through (test_ended_calls.py).
OF_OTHERS = {"data", "context", "tell", "progress"}

BASE, RERANKER = str(DATA / "text/base"), str(DATA / "text/reranker")
X = np.arange(32, dtype=np.float32).reshape(2, 16) / 32
PICTURE = np.zeros((4, 5, 3), np.uint8)
WEIGHTS = {name: np.ones(shape, np.float32) for name, shape in LAYER_SHAPES.items()}
LAYER: dict[str, Any] = {"num_heads": 4, "activation": "gelu", "threads": 1}

# What a class or a method is called with, by the argument's name.
SPARSE = {
    "indptr": np.array([0, 1, 2]),
    "indices": np.array([3, 4], np.int32),
    "values": np.ones(2, np.float32),
    "shape": (2, 9),
}
RIGHT: dict[str, Any] = {
    "a": X, "b": X, "batch": {"text": ["tea"]}, "begin": 0, "data": {},
    "documents": ["tea", "cat"], "embeddings": X, "embeddings1": X, "embeddings2": X, "end": 1,
    "encore": "/no/such/encore", "flags": [], "folder": BASE, "i": 0, "id": 3, "ids": [[2, 3]],
    "image": PICTURE, "images": PICTURE,
    "inputs": "tea", "input": ["tea"], "is_pair": False, "k": X, "kept": None,
    "max_length": 9, "model": BASE,
    "names": None, "output": "/no/such/output", "pairings": [], "positions": [0],
    "precision": "int8", "programs": ["/no/a", "/no/b"], "q": X, "query": "tea", "rounds": 1,
    "row_starts": [0, 2], "runs": [], "scales": np.ones(2, np.float32), "sequence": "tea",
    "source": "/no/such/file", "text": "tea", "texts": ["tea"], "token": "tea", "v": X,
    "vectors": np.ones((2, 4), np.int8), "weight": X, "weights": WEIGHTS, "x": X,
    **SPARSE,
}  # fmt: skip
OF_FUNCTION: dict[tuple[str, str], Any] = {
    ("set_target", "name"): "AVX2",
    ("CrossEncoder.predict", "inputs"): [("tea", "cat")],
    ("MaskedLanguageModel.fill_mask", "inputs"): "the [MASK].",
    ("SparseEncoder.decode", "embeddings"): pyencore.SparseMatrix(**SPARSE),
    ("Padding.of", "tokenizer"): pyencore.Tokenizer(BASE),
    ("layer_norm", "weight"): None,
    ("rms_norm", "weight"): None,
    ("matmul", "b"): X.T,
    ("EncoreDocumentEmbedder.run", "documents"): [],
    ("compare_in_turns", "rounds"): [],
    ("comparison_page", "names"): [],
}
# Given beside the argument that is tried.
BESIDE: dict[str, dict[str, Any]] = {
    "Encoder": LAYER,
    "StoredVectors": {"scales": np.ones(2, np.float32)},
}
# Arguments that the engine's sentences have other names of.
ALSO_NAMED = {
    "attn_mask": "mask",
    "lengths": "seq_starts",
    "num_heads": "nhead",
    "layer_norm_eps": "epsilon",
    "weights": "tensor|float|path",
    "cache": "path",
    "indices": "values",
    "begin": "end",
    "name": "target",
    "source": "cannot be read|encore attend|report",
    **dict.fromkeys(("encore", "flags", "kept", "programs", "rounds", "tell"), "cannot be run"),
}


def report() -> Any:
    return synthetic_report(threads=(1,))


class Table:
    """As pandas' data frames: its elements are names of columns."""

    ndim = 2

    def __iter__(self) -> Iterator[str]:
        return iter(["a", "b"])


def raising() -> Iterator[Any]:
    raise ZeroDivisionError("of the caller")
    yield


# Never right.
JUNK: dict[str, Any] = {
    "object": object(),
    "ellipsis": ...,
    "type": int,
    "date": datetime.date(2026, 1, 2),
    "complex": 1j,
    "table": Table(),
}
WRONG: dict[str, Any] = {
    **JUNK,
    "None": None,
    "True": True,
    "0": 0,
    "-1": -1,
    "3": 3,
    "2**31": 2**31,
    "2**70": 2**70,
    "2.5": 2.5,
    "nan": float("nan"),
    "inf": float("inf"),
    "empty str": "",
    "two characters": "ab",
    "surrogate": "half \ud83d",
    "zero byte": "a\0b",
    "bytes": b"ab",
    "memoryview": memoryview(b"tea"),
    "path": Path("no/such"),
    "list": [],
    "list of None": [None],
    "list of ints": ["tea", 3],
    "list of surrogates": ["tea", "half \ud83d"],
    "list of lists": [["tea"], ["tea", "cat"]],
    "list of bytes": [b"a"],
    "list of sets": [{"a", "b"}],
    "list of dicts": [{"query": "a"}],
    "list of pairs of kinds": [("a", 3)],
    "ragged": [[1.0], [1.0, 2.0]],
    "negative ids": [[-1, 2**40]],
    "numbers": [0.5, 2],
    "tuple": ("a", "b", "c"),
    "set": {"a", "b"},
    "dict": {"a": 1},
    "dict of ints": {1: "a"},
    "array of no axes": np.array(3.0),
    "array": np.zeros((2, 3)),
    "array of three axes": np.zeros((1, 2, 3), np.float32),
    "array of bytes": np.array([b"a"]),
    "array of objects": np.array([object()]),
    "array of str": np.array([["a", "b", "c"]]),
    "array of complex": np.ones((2, 16), complex),
    "numpy int": np.int64(2),
    "numpy str": np.str_("ab"),
    "range": range(3),
    "function": lambda value: value,
}

# Never texts, or a text: a class that reads them by chance must refuse them.
OF_TEXTS = {"documents", "input", "inputs", "pair", "query", "sequence", "text", "texts"}
NOT_TEXTS = {
    "True", "0", "3", "2.5", "bytes", "memoryview", "list of None", "list of ints", "list of bytes",
    "list of sets", "list of dicts", "set", "dict", "dict of ints", "range",
}  # fmt: skip
# Nor pairs: of two str in a list sentence-transformers makes one pair, of other numbers none.
OF_PAIRS = {"CrossEncoder.predict"}
NOT_PAIRS = {"two characters", "numpy str", "tuple", "list of lists", "array of str"}
# Never a picture or several, but the empty list.
OF_PICTURES = {"image", "images"}
OF_OTHER_KINDS = {"EncoreDocumentEmbedder.run"}  # Haystack's documents

RAW = re.compile(
    r"incompatible function arguments|nanobind|std::|has no attribute|object is not|not iterable|"
    r"has no len|unsupported operand|not supported between|unhashable|cannot be interpreted|"
    r"invalid literal|could not convert|must be real|out of range|out of bounds|not subscriptable|"
    r"cannot unpack|inhomogeneous|expected str|argument must be|cannot be converted|not callable|"
    r"bad operand|codec can't|not enough values|too large to|too big to|ufunc|broadcast together|"
    r"embedded null|Cannot interpret|iteration over|only .* can be converted|setting an array"
)
CLEAR = (TypeError, ValueError, NotImplementedError, OSError)


class Callee(NamedTuple):
    label: str  # of a method with its class
    function: Callable[..., Any]
    parameters: list[inspect.Parameter]


def made(name: str, module: Any) -> Any:
    if name in FOLDERS:
        return getattr(module, name)(str(FOLDERS[name]))
    return {
        "Encoder": lambda: pyencore.Encoder(WEIGHTS, **LAYER),
        "SparseMatrix": lambda: pyencore.SparseMatrix(**SPARSE),
        "StoredVectors": lambda: pyencore.store_vectors(X, "int8"),
        "PackedLinear": lambda: ops.PackedLinear(X),
        "Padding": lambda: module.Padding(BASE),
        "EncoreEmbeddings": lambda: module.EncoreEmbeddings(BASE),
        "EncoreEmbedding": lambda: module.EncoreEmbedding(BASE),
        "EncoreTextEmbedder": lambda: module.EncoreTextEmbedder(BASE),
        "EncoreDocumentEmbedder": lambda: module.EncoreDocumentEmbedder(BASE),
        "EncodeBatches": lambda: module.EncodeBatches(BASE),
    }[name]()


def parameters(function: Any) -> list[inspect.Parameter]:
    if type(function).__name__ == "nb_func":
        assert "()" in function.__doc__, f"{function} takes arguments without a check in Python"
        return []
    kinds = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    return [p for p in inspect.signature(function).parameters.values() if p.kind not in kinds]


def of_class(kind: type, module: Any) -> Iterator[Callee]:
    name = kind.__name__
    yield Callee(name, kind, parameters(kind))
    one, seen = made(name, module), set()
    for base in kind.__mro__:
        for method, value in vars(base).items():
            public = not method.startswith("_") or method in ("__call__", "_get_text_embedding")
            if not base.__module__.startswith("pyencore") or not public or method in seen:
                continue
            seen.add(method)
            if isinstance(value, property):
                if value.fset is not None:
                    yield setter(made(name, module), name, method)
            elif callable(value) or isinstance(value, (classmethod, staticmethod)):
                function = getattr(one, method)
                yield Callee(f"{name}.{method}", function, parameters(function))


def setter(one: Any, name: str, attribute: str) -> Callee:
    def put(value: Any) -> None:
        before = getattr(one, attribute)
        setattr(one, attribute, value)
        setattr(one, attribute, before)

    known = [inspect.Parameter(attribute, inspect.Parameter.POSITIONAL_OR_KEYWORD)]
    return Callee(f"{name}.{attribute} =", put, known)


def callees() -> Iterator[Callee]:
    for path in MODULES:
        module = importlib.import_module(path)
        here = [
            name
            for name, value in vars(module).items()
            if getattr(value, "__module__", "") == path and not name.startswith("_")
        ]
        for name in getattr(module, "__all__", here):
            value = getattr(module, name)
            if name in NOT_TRIED or not callable(value):
                continue
            if inspect.isclass(value):
                yield from of_class(value, module)
            else:
                yield Callee(name, value, parameters(value))


def right(label: str, parameter: inspect.Parameter) -> Any:
    name = parameter.name
    if (label, name) in OF_FUNCTION:
        return OF_FUNCTION[label, name]
    if name == "report":
        return report()
    if name == "attention":
        from test_lab_attention import example, model

        return example() if label in ("steps", "weights") else model(["cats", "sat"])
    if name == "pairing":
        from pyencore import lab

        return lab.compare([report(), report()])[0]
    if label in FOLDERS or name in ("folder_or_hub_name", "model_name_or_path"):
        return str(FOLDERS.get(label.split(".")[0], BASE))
    assert name in RIGHT, f"{label} has a new argument {name}: RIGHT wants a value of it"
    return RIGHT[name]


def never_right(callee: Callee, name: str, word: str) -> bool:
    texts = name in OF_TEXTS and callee.label not in OF_OTHER_KINDS
    pairs = name == "inputs" and callee.label in OF_PAIRS
    pictures = name in OF_PICTURES and (word, name) != ("list", "images")
    wrong = (texts and word in NOT_TEXTS) or (pairs and word in NOT_PAIRS) or pictures
    return word in JUNK or wrong


def fault(callee: Callee, name: str, value: Any, never: bool) -> str | None:
    """What is wrong with how the function takes the value."""
    given = {
        p.name: right(callee.label, p)
        for p in callee.parameters
        if p.default is inspect.Parameter.empty and p.name != name
    } | BESIDE.get(callee.label, {})
    positional = inspect.Parameter.POSITIONAL_ONLY
    by_place = [p.name for p in callee.parameters if p.kind is positional]
    try:
        if callee.label.endswith(" ="):
            callee.function(value)
        else:
            given[name] = value
            callee.function(*[given.pop(one) for one in by_place if one in given], **given)
    except CLEAR as error:
        words = str(error)
        if RAW.search(words):
            return f"a raw {type(error).__name__}: {words[:150]}"
        if len(words) > 600:
            return f"{len(words)} characters: {words[:150]}"
        # A folder or file that is not there is named itself.
        known = rf"\b({name.replace('_', '[_ ]')}|{ALSO_NAMED.get(name, name)})"
        named = re.search(known, words, re.IGNORECASE) or isinstance(error, OSError)
        return None if named else f"{type(error).__name__} does not name it: {words[:150]}"
    except Exception as error:  # each other one is a fault, but that an extra is missing
        if isinstance(error, ImportError) and "which is not installed (pip install" in str(error):
            return None
        return f"{type(error).__name__}: {str(error)[:150]}"
    return "is taken" if never and (callee.label, name) not in TAKES_ALL else None


CALLEES = list(callees())


@pytest.mark.parametrize("callee", CALLEES, ids=[callee.label for callee in CALLEES])
def test_every_argument(
    callee: Callee, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)  # caches are made here
    slow = callee.label in ("embed_parquet", "ship", "everything", "report_page", "EncodeBatches")
    faults = []
    for parameter in callee.parameters:
        if parameter.name in OF_OTHERS:
            continue
        for word, value in (JUNK if slow else WRONG).items():
            found = fault(callee, parameter.name, value, never_right(callee, parameter.name, word))
            if found:
                faults.append(ascii(f"{callee.label}({parameter.name}={word}): {found}"))
    assert not faults, f"{len(faults)} faults\n" + "\n".join(faults)


def test_enough_is_tried() -> None:
    labels = {callee.label for callee in CALLEES}
    assert NOT_TEXTS | NOT_PAIRS <= WRONG.keys() and OF_PAIRS <= labels
    named = {p.name for callee in CALLEES for p in callee.parameters}
    assert OF_TEXTS | OF_PICTURES <= named
    assert {"TextEncoder.encode", "softmax", "quantize_embeddings", "Tokenizer.encode"} <= labels
    assert len(labels) > 80
