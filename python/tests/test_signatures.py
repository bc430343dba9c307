# SPDX-License-Identifier: Apache-2.0
"""Every argument of the methods that sentence-transformers has too: the same place, the same name,
the same meaning.

signatures.json has the arguments of sentence-transformers 6.2:
    .deps/venv/bin/python python/tests/test_signatures.py writes it.
"""

from __future__ import annotations

import inspect
import json
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

TABLE = Path(__file__).with_name("signatures.json")
METHODS = {
    "SentenceTransformer": ["__init__", "encode", "encode_query", "encode_document", "similarity"],
    "SparseEncoder": ["__init__", "encode", "encode_query", "encode_document", "similarity"],
    "MultiVectorEncoder": ["__init__", "encode", "encode_query", "encode_document", "similarity"],
    "CrossEncoder": ["__init__", "predict", "rank"],
}
MORE = {"SparseEncoder": ["decode"]}
PAIRWISE = ("SentenceTransformer", "SparseEncoder", "MultiVectorEncoder")


def methods_of(name: str) -> list[str]:
    pairwise = ["similarity_pairwise"] if name in PAIRWISE else []
    return METHODS[name] + MORE.get(name, []) + pairwise


def signatures_of(module: Any) -> dict[str, dict[str, list[str]]]:
    """Names of each method's arguments in their order, those by name alone behind a "*"."""
    found: dict[str, dict[str, list[str]]] = {}
    for name in METHODS:
        for method in methods_of(name):
            parameters = inspect.signature(getattr(getattr(module, name), method)).parameters
            kinds = {argument: p.kind for argument, p in parameters.items() if argument != "self"}
            by_place = [n for n, kind in kinds.items() if kind.name == "POSITIONAL_OR_KEYWORD"]
            by_name = [n for n, kind in kinds.items() if kind.name == "KEYWORD_ONLY"]
            found.setdefault(name, {})[method] = by_place + (["*", *by_name] if by_name else [])
    return found


if __name__ == "__main__":
    import sentence_transformers  # type: ignore[import-not-found, unused-ignore]

    TABLE.write_text(json.dumps(signatures_of(sentence_transformers), indent=1) + "\n")
    sys.exit(0)

from conftest import DATA, FOLDERS, TEXTS, has, needs_reference  # noqa: E402

import pyencore  # noqa: E402

WANTED: dict[str, dict[str, list[str]]] = json.loads(TABLE.read_text())
CLASSES = {name: name for name in METHODS} | {"SentenceTransformer": "TextEncoder"}


@needs_reference
def test_the_table_is_that_of_sentence_transformers() -> None:
    import sentence_transformers

    assert signatures_of(sentence_transformers) == WANTED


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Of each class one whose prompts change its results."""
    root = tmp_path_factory.mktemp("signatures")
    made = {}
    for name in METHODS:
        folder = root / name
        source = DATA / "sentences" / "qwen3_embedding"
        shutil.copytree(FOLDERS.get(name, source), folder)
        prompts = {"query": "old road: ", "document": "harbour. ", "other": "tea? "}
        kind = getattr(pyencore, CLASSES[name])
        made[name] = kind(folder, prompts=prompts, default_prompt_name="other")
    return made


def same(a: Any, b: Any) -> bool:
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[key], b[key]) for key in a)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    if hasattr(a, "numpy") or isinstance(a, np.ndarray):
        return type(a) is type(b) and np.array_equal(np.asarray(a), np.asarray(b))
    return bool(a == b)


# Of each argument a value that is not the default, and whether the result changes.
VALUES: dict[str, tuple[Any, bool]] = {
    "prompt_name": ("other", True),
    "prompt": ("boats: ", True),
    "batch_size": (3, False),
    "show_progress_bar": (False, False),
    "output_value": ("token_embeddings", True),
    "precision": ("ubinary", True),
    "convert_to_numpy": (True, False),
    "convert_to_tensor": (False, False),
    "convert_to_sparse_tensor": (False, True),
    "save_to_cpu": (True, False),
    "device": ("cpu", False),
    "normalize_embeddings": (True, False),
    "truncate_dim": (3, True),
    "max_active_dims": (2, True),
    "pool": (None, False),
    "chunk_size": (5, False),
    "token_pooling": (None, False),
    "task": ("query", False),
    "activation_fn": ("identity", True),
    "apply_softmax": (True, False),
    "top_k": (1, True),
    "return_documents": (True, True),
}
SAME_FOR = {
    ("MultiVectorEncoder", "output_value"),  # its only one
    ("CrossEncoder", "prompt_name"),  # its default is that of the model
    ("SentenceTransformer.encode", "prompt_name"),
    ("SparseEncoder.encode", "prompt_name"),
    ("MultiVectorEncoder.encode", "prompt_name"),
}
CHANGES = {("MultiVectorEncoder.encode", "task")}


def inputs_of(name: str, method: str, model: Any) -> list[Any]:
    """Those without a default."""
    texts = TEXTS[1:5]
    if name == "CrossEncoder":
        return [texts[0], texts] if method == "rank" else [[(texts[0], text) for text in texts]]
    if method.startswith("encode"):
        return [texts]
    vectors = model.encode(texts)
    return [vectors] if method == "decode" else [vectors, vectors]


CASES = [(name, method) for name in METHODS for method in methods_of(name) if method != "__init__"]


@pytest.mark.parametrize(("name", "method"), CASES)
def test_arguments_by_place_and_by_name(models: Any, name: str, method: str) -> None:
    model = models[name]
    call: Callable[..., Any] = getattr(model, method)
    wanted = WANTED[name][method]
    parameters = inspect.signature(call).parameters
    assert list(parameters)[: len(wanted)] == wanted
    required = inputs_of(name, method, model)
    base = call(*required)
    named = dict(zip(wanted, required, strict=False))
    assert same(call(**named), base)
    optional = wanted[len(required) :]
    defaults = [parameters[argument].default for argument in optional]
    for i, argument in enumerate(optional):
        value, changes = VALUES[argument]
        by_place = call(*required, *defaults[:i], value)
        by_name = call(*required, **{argument: value})
        assert same(by_place, by_name), argument
        keys = {(name, argument), (f"{name}.{method}", argument)}
        changes = (changes and not keys & SAME_FOR) or bool(keys & CHANGES)
        assert same(by_place, base) != changes, argument
        # None is "not given", of a flag false, as in sentence-transformers.
        if isinstance(defaults[i], bool):
            if argument != "convert_to_numpy" or has("torch"):
                found = call(*required, **{argument: None})
                assert same(found, call(*required, **{argument: False})), argument
        elif argument != "output_value":
            assert same(call(*required, **{argument: None}), base), argument
    assert same(call(*required, *defaults), base)


@pytest.mark.parametrize("name", METHODS)
def test_prompts_do_not_depend_on_places(models: Any, name: str) -> None:
    model = models[name]
    if name == "CrossEncoder":
        pairs = [("tea", text) for text in TEXTS[:3]]
        wanted = model.predict([("tea? tea", text) for text in TEXTS[:3]], prompt="")
        for args in ((), (None,), (None, None), (None, None, 8)):
            assert same(model.predict(pairs, *args), wanted), args
        return
    task = {} if name == "SentenceTransformer" else {"task": "query"}
    wanted = model.encode(["old road: tea"], prompt="", **task)
    for args in ((), (None,), (None, None), (None, None, 8), (None, None, None, False)):
        assert same(model.encode_query(["tea"], *args), wanted), args
    task = {} if name == "SentenceTransformer" else {"task": "document"}
    wanted = model.encode(["harbour. tea"], prompt="", **task)
    for args in ((), (None,), (None, None), (None, None, 8), (None, None, None, False)):
        assert same(model.encode_document(["tea"], *args), wanted), args


# ---- Other names ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", METHODS)
def test_other_names_of_the_inputs(models: Any, name: str) -> None:
    model = models[name]
    calls = ["predict"] if name == "CrossEncoder" else [m for m in METHODS[name] if "encode" in m]
    for method in calls:
        call = getattr(model, method)
        inputs = inputs_of(name, method, model)[0]
        assert same(call(sentences=inputs), call(inputs)), method
        with pytest.raises(TypeError, match="inputs and sentences"):
            call(inputs=inputs, sentences=inputs)
        with pytest.raises(TypeError, match="inputs and sentences"):
            call(inputs, sentences=inputs)
        with pytest.raises(TypeError):
            call()
        with pytest.raises(TypeError, match="texts"):
            call(inputs, texts=inputs)


def test_older_names_of_cross_encoders(models: Any) -> None:
    model = models["CrossEncoder"]
    pairs = [("tea", text) for text in TEXTS[:3]]
    wanted = model.predict(pairs, activation_fn="identity")
    assert same(model.predict(pairs, activation_fct="identity", num_workers=0), wanted)
    with pytest.raises(TypeError, match="activation_fn and activation_fct"):
        model.predict(pairs, activation_fct="identity", activation_fn="sigmoid")
    ranked = model.rank("tea", TEXTS[:3], num_workers=0, apply_softmax=False, activation_fct=None)
    assert ranked == model.rank("tea", TEXTS[:3])
    opened = pyencore.CrossEncoder(
        model_name=model.folder, default_activation_function="identity", cache_dir=None
    )
    assert opened.activation_fn == "identity"
    older = {
        "tokenizer_args": "processor_kwargs",
        "automodel_args": "model_kwargs",
        "config_args": "config_kwargs",
    }
    pyencore.CrossEncoder(model.folder, **dict.fromkeys(older, {}))
    for name, now in older.items():
        assert isinstance(pyencore.CrossEncoder(model.folder, **{name: None}), type(model))
        with pytest.raises(ValueError, match=f"{now} is "):
            pyencore.CrossEncoder(model.folder, **{name: {"a": 1}})
        with pytest.raises(TypeError, match=f"{now} and {name}"):
            pyencore.CrossEncoder(model.folder, **{name: {}, now: {}})


@pytest.mark.parametrize("name", ["SparseEncoder", "MultiVectorEncoder"])
@pytest.mark.parametrize("method", ["encode_query", "encode_document"])
def test_tasks_of_methods_are_their_own(models: Any, name: str, method: str) -> None:
    for task in ("query", "document", None):
        with pytest.raises(TypeError, match=rf"{method}\(\) found task, .* wanted encode\(\)"):
            getattr(models[name], method)("tea", task=task)


@pytest.mark.parametrize("name", FOLDERS)
def test_both_names_of_the_folder(name: str, models: Any) -> None:
    folders = FOLDERS | {CLASSES[key]: model.folder for key, model in models.items()}
    kind = getattr(pyencore, name)
    folder = folders[name]
    for argument in ("model_name_or_path", "folder_or_hub_name"):
        assert isinstance(kind(**{argument: folder}), kind)
    with pytest.raises(TypeError, match="model_name_or_path and folder_or_hub_name"):
        kind(folder, folder_or_hub_name=folder)
    with pytest.raises(TypeError, match="unknown"):
        kind(folder, unknown=1)


# ---- Constructors --------------------------------------------------------------------------------

# Of each argument values that are taken, and that are refused.
ARGUMENTS: dict[str, tuple[list[Any], list[Any]]] = {
    "modules": ([None], [[1]]),
    "device": ([None, "cpu", "cpu:0"], ["cuda", "mps", 1]),
    "prompts": ([None, {}, {"query": "a "}, {"query": None}], [1, {"query": 1}, ["a"]]),
    "default_prompt_name": ([None], ["no such name"]),
    "cache_folder": ([None, "somewhere", Path("somewhere")], [3, b"somewhere"]),
    "trust_remote_code": ([None, False, True], ["yes"]),
    "revision": ([None, "main"], []),
    "local_files_only": ([None, False, True], ["yes", 2]),
    "token": ([None, False, "hf_x"], []),
    "use_auth_token": ([None, False, "hf_x"], []),
    "model_kwargs": ([None, {}], [{"torch_dtype": "float16"}]),
    "processor_kwargs": ([None, {}], [{"padding_side": "left"}]),
    "config_kwargs": ([None, {}], [{"num_labels": 3}]),
    "model_card_data": ([None], [1]),
    "backend": ([None, "torch"], ["onnx", "openvino", "foo"]),
    "similarity_fn_name": ([None], ["COSINE", "foo", 1]),
    "truncate_dim": ([None, 3, np.int64(3)], [0, -1, True, "3", 1.5]),
    "max_active_dims": ([None, 3], [0, -1, True, "3"]),
    "num_labels": ([None, 1], [2, 0]),
    "max_length": ([None, 16], [0]),
    "activation_fn": ([None, "sigmoid", "identity", abs], ["foo", 1]),
    "keep_in_fp32_modules": ([None, []], [["classifier"]]),
}


@pytest.mark.parametrize("name", METHODS)
def test_arguments_of_constructors(models: Any, name: str) -> None:
    kind, folder = getattr(pyencore, CLASSES[name]), models[name].folder
    arguments = [argument for argument in WANTED[name]["__init__"][1:] if argument != "*"]
    assert WANTED[name]["__init__"][0] == "model_name_or_path"
    for argument in arguments:
        taken, refused = ARGUMENTS[argument]
        for value in taken:
            kind(folder, **{argument: value})
        for value in refused:
            with pytest.raises((TypeError, ValueError)) as caught:
                kind(folder, **{argument: value})
            assert argument.replace("_", " ") in str(caught.value).lower().replace("_", " ")
