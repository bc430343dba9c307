# SPDX-License-Identifier: Apache-2.0
"""From a folder's path or a name on the Hugging Face hub to a folder."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

from pyencore._inputs import kind, shown

# What encore reads of a model, and nothing else of it: no other weights than safetensors
# and BGE-M3's heads.
_NAMES = (
    "config.json", "preprocessor_config.json", "processor_config.json", "modules.json",
    "config_sentence_transformers.json", "sentence_*_config.json",
    "router_config.json", "artifact.metadata", "tokenizer.json", "tokenizer_config.json",
    "special_tokens_map.json", "added_tokens.json", "vocab.txt", "vocab.json", "merges.txt",
    "spiece.model", "spm.model", "chat_template.jinja", "idf.json", "sparse_linear.pt",
    "colbert_linear.pt", "adapter_config.json", "*.safetensors", "*.safetensors.index.json",
)
# A pattern's star takes folders in: these have weights for other programs.
_IGNORED = ["onnx/*", "openvino/*", "*/onnx/*", "*/openvino/*", "original/*", "gguf/*", "coreml/*"]
_HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?")


def patterns() -> list[str]:
    """For snapshot_download: files at the top and in the folders of modules and adapters."""
    folders = ("[0-9]*_*", "query_*", "document_*")
    inside = (f"{folder}/{name}" for folder in folders for name in _NAMES)
    return [*_NAMES, *inside, "*/adapter_config.json"]  # a task's, in a folder of its name


def ignored_patterns() -> list[str]:
    return list(_IGNORED)


def find_folder(
    name: str | os.PathLike[str],
    *,
    cache_folder: str | os.PathLike[str] | None = None,
    revision: str | None = None,
    token: str | bool | None = None,
    local_files_only: bool = False,
    organization: str | None = "sentence-transformers",
) -> str:
    """The folder itself, or that of a snapshot in Hugging Face's cache, downloaded if need be."""
    path = os.fspath(name)
    if not isinstance(path, str):
        raise TypeError(f"the folder is {kind(name)}; wanted str, or a path of str")
    if "\0" in path:
        raise FileNotFoundError(f"{shown(path, 300)} has a zero byte; wanted a model's folder")
    if os.path.isdir(path):
        return path
    said = shown(path, 300)
    if not _HUB_NAME.fullmatch(path) or os.path.exists(path):
        raise FileNotFoundError(f"{said} is no folder; wanted a model's folder or a hub name")
    try:
        from huggingface_hub import snapshot_download
    except ImportError as error:
        raise ImportError(
            f"{said} is no folder here, and names on the Hugging Face hub need huggingface_hub: "
            "pip install '.[hub]' in a clone of encore"
        ) from error
    repository = path if "/" in path or organization is None else f"{organization}/{path}"
    try:
        return str(
            snapshot_download(
                repository,
                revision=revision,
                cache_dir=None if cache_folder is None else os.fspath(cache_folder),
                token=token,
                local_files_only=local_files_only,
                allow_patterns=patterns(),
                ignore_patterns=_IGNORED,
            )
        )
    except OSError as error:
        raise FileNotFoundError(
            f"{said} is no folder here, and {shown(repository, 300)} could not be had from the "
            f"hub: {error}"
        ) from error


def read_json(folder: str, name: str) -> dict[str, Any]:
    """A file's object; empty where there is none. encore has refused broken ones before."""
    try:
        value = json.loads((Path(folder) / name).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return value if isinstance(value, dict) else {}
