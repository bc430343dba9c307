# SPDX-License-Identifier: Apache-2.0
"""Folders and the reference: sentence-transformers itself, where it is installed."""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import pytest  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
MINILM = ROOT / ".deps" / "models" / "all-MiniLM-L6-v2"
CASES = json.loads((DATA / "text" / "cases.json").read_text(encoding="utf-8"))
TEXTS: list[str] = CASES["texts"]
PAIRS = [(CASES["query"], text) for text in TEXTS]

# Families that transformers has under the folder's own model_type.
FAMILIES = [
    "bert",
    "bert_shards",
    "albert",
    "camembert_1",
    "distilbert",
    "electra",
    "ernie",
    "eurobert",
    "gemma3",
    "gte",
    "modernbert",
    "mpnet",
    "nomic_bert",
    "qwen3",
    "roberta",
    "t5",
    "xlm_roberta_1",
]
WHOLE = ["qwen3_embedding", "embedding_gemma", "sentence_t5"]
# Those of them with a head of one label.
RERANKERS = [
    "albert_1",
    "bert_shards",
    "camembert_1",
    "deberta_v2_1",
    "distilbert_1",
    "electra_1",
    "ernie_1",
    "gemma3_1",
    "gte_1",
    "mpnet_1",
    "nomic_bert_1",
    "qwen3_1",
    "roberta_1",
    "xlm_roberta_1",
]


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


REFERENCE = has("sentence_transformers")
needs_reference = pytest.mark.skipif(
    not REFERENCE, reason="sentence-transformers, the reference, is not installed"
)
needs_minilm = pytest.mark.skipif(
    not MINILM.is_dir(), reason="all-MiniLM-L6-v2 is not in .deps/models (tools/fetch_model.sh)"
)


def pytest_report_header() -> list[str]:
    absent = [name for name in ("sentence_transformers", "torch", "tqdm", "ray") if not has(name)]
    absent += [] if MINILM.is_dir() else ["all-MiniLM-L6-v2"]
    return [f"pyencore: left out for want of {', '.join(absent)}"] if absent else []


def small_vocabulary(folder: Path) -> None:
    """The tokenizer of tests/data/text/base, cut to the 120 ids of the families' models."""
    tokenizer = json.loads((DATA / "text" / "base" / "tokenizer.json").read_text("utf-8"))
    model = tokenizer["model"]
    model["vocab"] = {token: i for token, i in model["vocab"].items() if i < 120}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), "utf-8")
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "pad_token": "[PAD]",
        "unk_token": "[UNK]",
        "model_max_length": 64,
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")


def family_folder(name: str, root: Path) -> Path:
    folder = root / name
    shutil.copytree(
        DATA / "models" / name, folder, ignore=shutil.ignore_patterns("expected.safetensors")
    )
    small_vocabulary(folder)
    return folder


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The folder of a name: a family's, a whole one's, "base" or "minilm"."""
    root = tmp_path_factory.mktemp("folders")
    made: dict[str, Path] = {"minilm": MINILM}

    def folder(name: str) -> Path:
        if name not in made:
            if name in WHOLE:
                made[name] = DATA / "sentences" / name
            elif name in FAMILIES or name in RERANKERS:
                made[name] = family_folder(name, root)
            else:
                made[name] = DATA / "text" / name
        return made[name]

    return folder


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    logging.getLogger("pyencore").setLevel(logging.ERROR)
    return
