# SPDX-License-Identifier: Apache-2.0
"""Names on the hub: which files are asked for, caches, and sentences where there is no way."""

from __future__ import annotations

import fnmatch
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, has
from pyencore import CrossEncoder, SparseEncoder, TextEncoder
from pyencore._folder import _IGNORED, patterns

needs_hub = pytest.mark.skipif(not has("huggingface_hub"), reason="huggingface_hub is absent")
REVISION = "0123456789abcdef0123456789abcdef01234567"


def cached(root: Path, name: str, folder: Path) -> None:
    """A repository as huggingface_hub leaves it in its cache."""
    repository = root / ("models--" + name.replace("/", "--"))
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text(REVISION)
    shutil.copytree(folder, repository / "snapshots" / REVISION)


def asked_for(name: str) -> bool:
    return any(fnmatch.fnmatch(name, p) for p in patterns()) and not any(
        fnmatch.fnmatch(name, p) for p in _IGNORED
    )


def test_only_files_that_encore_reads() -> None:
    folders = [f for kind in ("sentences", "late", "heads") for f in (DATA / kind).iterdir()]
    assert len(folders) > 10
    others = ("expected.json", "README.md", "generation_config.json")
    for folder in folders:
        for path in folder.rglob("*"):
            if path.is_file() and path.name not in others:
                assert asked_for(str(path.relative_to(folder))), path
    assert asked_for("spm.model")  # DeBERTa's
    assert asked_for("0_Transformer/spm.model")
    assert asked_for("spiece.model")  # SigLIP's
    assert asked_for("query_0_SparseStaticEmbedding/idf.json")
    assert asked_for("retrieval_query/adapter_config.json")  # Jina v3's
    assert asked_for("retrieval_query/adapter_model.safetensors")
    for name in (
        "pytorch_model.bin", "onnx/model.onnx", "onnx/config.json.txt",
        "openvino/openvino_model.xml", "tf_model.h5", "README.md", "generation_config.json",
        "onnx/model.safetensors", "train_script.py",
    ):  # fmt: skip
        assert not asked_for(name), name


@needs_hub
def test_offline_caches(tmp_path: Path, folders: Any) -> None:
    cached(tmp_path, "sentence-transformers/tiny", folders("base"))
    cached(tmp_path, "someone/tiny", folders("base"))
    for name in ("tiny", "someone/tiny"):
        model = TextEncoder(name, cache_folder=str(tmp_path), local_files_only=True, threads=1)
        assert model.encode("tea").shape == (32,)
    cached(tmp_path, "cross-encoder/tiny", DATA / "text" / "reranker")
    cached(tmp_path, "sparse-encoder/tiny", DATA / "heads" / "splade_bert")
    for kind in (CrossEncoder, SparseEncoder):
        assert kind("tiny", cache_folder=tmp_path, local_files_only=True, threads=1).folder
    with pytest.raises(FileNotFoundError, match="'someone/else' could not be had from the hub"):
        TextEncoder("someone/else", cache_folder=str(tmp_path), local_files_only=True)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(ImportError, match=r"pip install '\.\[hub\]' in a clone"):
        TextEncoder("all-MiniLM-L6-v2")
