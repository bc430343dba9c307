# SPDX-License-Identifier: Apache-2.0
"""Every file of a folder of each class, cut off or emptied: what does not open names the file."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pyencore
import pytest
from conftest import DATA

FOLDERS = {
    "TextEncoder": ["text/base", "heads/model2vec", "heads/static_f16", "heads/m3"],
    "CrossEncoder": ["text/reranker", "heads/reranker_gemma3"],
    "Classifier": ["text/classifier"],
    "TokenClassifier": ["heads/ner_bert"],
    "ImageEncoder": ["vision/clip"],
    "ImageClassifier": ["vision/deit_labels"],
    "SparseEncoder": ["heads/splade_bert", "heads/router", "heads/m3"],
    "MaskedLanguageModel": ["heads/splade_bert"],
    "MultiVectorEncoder": ["late/own", "late/pylate", "late/stanford", "heads/m3"],
    "Tokenizer": ["text/base"],
}
# Half of which opens nothing.
NEEDED = {
    ("SparseEncoder", "heads/m3", "sparse_linear.pt"),
    ("MultiVectorEncoder", "heads/m3", "colbert_linear.pt"),
    ("TextEncoder", "text/base", "model.safetensors"),
}


@pytest.mark.parametrize(
    ("name", "source"), [(name, source) for name in FOLDERS for source in FOLDERS[name]]
)
def test_what_is_damaged_is_named(name: str, source: str, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(DATA / source, folder)
    kind: Any = getattr(pyencore, name)
    kind(folder)
    refused = set()
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        data = path.read_bytes()
        for damaged in (data[: len(data) // 2], data[:10], b"", b"[1, 2]", bytes(len(data))):
            path.write_bytes(damaged)
            try:
                kind(folder)
            except (ValueError, TypeError, OSError, NotImplementedError) as error:
                assert path.name in str(error), (path.name, len(damaged), str(error))
                refused.add((name, source, path.relative_to(folder).as_posix()))
        path.write_bytes(data)
    assert refused >= {needed for needed in NEEDED if needed[:2] == (name, source)}
    assert len(refused) >= 2
