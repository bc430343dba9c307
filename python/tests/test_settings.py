# SPDX-License-Identifier: Apache-2.0
"""Random settings of folders, constructors, open models and calls beside sentence-transformers:
prompts, truncate_dim, max_active_dims, similarities and lengths."""

from __future__ import annotations

import json
import os
import random
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, needs_reference

import pyencore

pytestmark = needs_reference

COUNT = int(os.environ.get("PYENCORE_SETTINGS", "20"))  # draws of each class
KINDS = {
    "SentenceTransformer": ("TextEncoder", DATA / "sentences" / "qwen3_embedding"),
    "SparseEncoder": ("SparseEncoder", DATA / "heads" / "splade_bert"),
    "MultiVectorEncoder": ("MultiVectorEncoder", DATA / "late" / "own"),
    "CrossEncoder": ("CrossEncoder", DATA / "heads" / "reranker_qwen3"),
}
TEXTS = ["tea", "The harbour lies between two hills, and boats come in.", "", "Which road?"]
ABSENT = object()


def some(rng: random.Random, **choices: list[Any]) -> dict[str, Any]:
    drawn = {name: rng.choice(values) for name, values in choices.items()}
    return {name: value for name, value in drawn.items() if value is not ABSENT}


def prompts(rng: random.Random) -> Any:
    return some(
        rng,
        query=[ABSENT, ABSENT, "old road ", "", None],
        document=[ABSENT, ABSENT, "boats: ", "", None],
        passage=[ABSENT, ABSENT, "tea? "],
        other=[ABSENT, "harbour "],
    )


def names(rng: random.Random, *known: Any) -> list[Any]:
    """Mostly of the prompts that were drawn."""
    drawn = [name for one in known if isinstance(one, dict) for name in one]
    if rng.random() < 0.1:
        drawn += ["passage", "none such", ""]
    return [ABSENT, ABSENT, ABSENT, None, *drawn]


def draw(kind: str, rng: random.Random) -> dict[str, Any]:
    """Of the folder's file, the constructor, attributes that are set, and a call."""
    own: dict[str, list[Any]] = {}
    if kind == "SentenceTransformer":
        own = {"truncate_dim": [ABSENT, ABSENT, None, 5, 9, 1000]}
    if kind == "SparseEncoder":
        own = {"max_active_dims": [ABSENT, ABSENT, None, 2, 5, 1000]}
    if kind != "CrossEncoder":
        late = kind == "MultiVectorEncoder"
        known = ["maxsim", "meanmaxsim"] if late else ["cosine", "dot", "euclidean", "manhattan"]
        own["similarity_fn_name"] = [ABSENT, ABSENT, None, *known]
    other = ["cosine"] if kind == "MultiVectorEncoder" else ["maxsim", "meanmaxsim"]
    similarity = {"similarity_fn_name": own.get("similarity_fn_name", [ABSENT]) + other}
    folder = some(rng, prompts=[ABSENT, prompts(rng)])
    of_folder = names(rng, folder.get("prompts"))
    folder |= some(rng, default_prompt_name=of_folder, **{**own, **similarity})
    constructor = some(rng, prompts=[ABSENT, ABSENT, prompts(rng)])
    known = names(rng, folder.get("prompts"), constructor.get("prompts"))
    constructor |= some(rng, default_prompt_name=known, **own)
    drawn = {name: text or "" for name, text in prompts(rng).items()}
    attributes = some(rng, default_prompt_name=known, max_seq_length=[ABSENT, ABSENT, 8, 20],
                      prompts=[ABSENT, ABSENT, ABSENT, drawn], **own)
    attributes = dict(rng.sample(sorted(attributes.items()), rng.randint(0, len(attributes))))
    call = some(rng, prompt_name=known, prompt=[ABSENT, ABSENT, None, "tea ", ""])
    own.pop("similarity_fn_name", None)
    call |= some(rng, **own)
    methods = ["predict", "rank"] if kind == "CrossEncoder" else [
        "encode", "encode_query", "encode_document"]
    return {"folder": folder, "constructor": constructor, "attributes": attributes, "call": call,
            "method": rng.choice(methods)}


def write(source: Path, target: Path, settings: dict[str, Any]) -> None:
    if not target.exists():
        shutil.copytree(source, target)
    known = json.loads((source / "config_sentence_transformers.json").read_text())
    kept = {key: known[key] for key in ("model_type", "activation_fn") if key in known}
    (target / "config_sentence_transformers.json").write_text(json.dumps({**kept, **settings}))


def result(kind: type[Any], folder: Path, drawn: dict[str, Any], mine: bool) -> dict[str, Any]:
    model: Any = kind(str(folder), device="cpu", **drawn["constructor"])
    if not mine:
        model.float()  # the folders' numbers are float16
    for name, value in drawn["attributes"].items():
        setattr(model, name, value)
    call, method = dict(drawn["call"]), getattr(model, drawn["method"])
    found: dict[str, Any] = {"prompts": dict(model.prompts),
                             "default": model.default_prompt_name}
    for name in ("truncate_dim", "max_active_dims", "similarity_fn_name"):
        if hasattr(model, name):
            found[name] = getattr(model, name)
    if drawn["method"] == "rank":
        ranked = sorted(method("Which boat?", TEXTS, **call), key=lambda one: one["corpus_id"])
        return found | {"vectors": [np.array([one["score"] for one in ranked])]}
    if drawn["method"] == "predict":
        return found | {"vectors": [method([("Which boat?", text) for text in TEXTS], **call)]}
    texts = TEXTS if "max_active_dims" not in found else TEXTS[:2]
    # By position where no argument between is left out.
    if list(call)[:2] == ["prompt_name", "prompt"]:
        args = (texts, call.pop("prompt_name"), call.pop("prompt"), 2)
    else:
        args = (texts,)
    if "max_active_dims" in found:
        vectors = method(*args, convert_to_sparse_tensor=False, convert_to_tensor=True, **call)
    else:
        vectors = method(*args, **call)
    rows = [np.asarray(one) for one in vectors]
    scores = np.asarray(model.similarity(vectors, vectors))
    return found | {"vectors": rows, "scores": [scores]}


def outcome(*args: Any) -> dict[str, Any] | Exception:
    try:
        return result(*args)
    except (TypeError, ValueError, KeyError) as error:
        return error


@pytest.mark.parametrize("kind", KINDS)
def test_random_settings(kind: str, tmp_path: Path) -> None:
    import sentence_transformers

    name, source = KINDS[kind]
    equal = refused = 0
    for seed in range(COUNT):
        rng = random.Random(f"{kind}/{seed}")
        drawn = draw(kind, rng)
        write(source, tmp_path / "folder", drawn["folder"])
        theirs = outcome(getattr(sentence_transformers, kind), tmp_path / "folder", drawn, False)
        mine = outcome(getattr(pyencore, name), tmp_path / "folder", drawn, True)
        said = f"{kind}/{seed}: {drawn}\nfound {mine!r}\nwanted {theirs!r}"
        if isinstance(theirs, Exception) or isinstance(mine, Exception):
            # A name that is unknown is refused at once here, else by the call that wants it.
            at_once = drawn["attributes"].get("default_prompt_name") is not None
            assert isinstance(mine, ValueError), said
            assert isinstance(theirs, Exception) or at_once, said
            refused += 1
            continue
        for key in ("vectors", "scores"):
            for a, b in zip(mine.pop(key, []), theirs.pop(key, []), strict=True):
                assert np.shape(a) == np.shape(b), said
                assert np.allclose(a, b, rtol=2e-5, atol=2e-6), said
        assert mine == theirs, said
        equal += 1
    print(f"{kind}: {equal} equal, {refused} refused")
    assert equal > COUNT // 4 and refused > 0
