# SPDX-License-Identifier: Apache-2.0
"""Folders and the reference: sentence-transformers itself, where it is installed."""

from __future__ import annotations

import functools
import importlib.util
import json
import logging
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"
os.environ["RAY_worker_niceness"] = "0"  # else Ray's tests wait for all else that a machine does

import pytest  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
DATA = ROOT / "tests" / "data"
MINILM = ROOT / ".deps" / "models" / "all-MiniLM-L6-v2"
CASES = json.loads((DATA / "text" / "cases.json").read_text(encoding="utf-8"))
TEXTS: list[str] = CASES["texts"]
PAIRS = [(CASES["query"], text) for text in TEXTS]

# Of each class a folder that it opens.
FOLDERS = {
    "Classifier": DATA / "text" / "classifier",
    "CrossEncoder": DATA / "text" / "reranker",
    "ImageClassifier": DATA / "vision" / "siglip_labels",
    "ImageEncoder": DATA / "vision" / "clip",
    "MaskedLanguageModel": DATA / "heads" / "splade_bert",
    "MultiVectorEncoder": DATA / "late" / "own",
    "SparseEncoder": DATA / "heads" / "splade_bert",
    "TextEncoder": DATA / "text" / "base",
    "TokenClassifier": DATA / "heads" / "ner_bert",
    "Tokenizer": DATA / "text" / "base",
}
# Families that transformers has under the folder's own model_type.
FAMILIES = [
    "bert", "bert_shards", "albert", "camembert_1", "distilbert", "electra", "ernie", "eurobert",
    "gemma3", "gte", "modernbert", "mpnet", "nomic_bert", "qwen3", "roberta", "t5", "xlm_roberta_1",
]  # fmt: skip
WHOLE = ["qwen3_embedding", "embedding_gemma", "sentence_t5"]
# Those of them with a head of one label.
RERANKERS = [
    "albert_1", "bert_shards", "camembert_1", "deberta_v2_1", "distilbert_1", "electra_1",
    "ernie_1", "gemma3_1", "gte_1", "mpnet_1", "nomic_bert_1", "qwen3_1", "roberta_1",
    "xlm_roberta_1",
]  # fmt: skip
# By name the tensors of a layer of torch.nn, of widths 16 and 64.
LAYER_SHAPES = {
    "self_attn.in_proj_weight": (48, 16), "self_attn.in_proj_bias": (48,),
    "self_attn.out_proj.weight": (16, 16), "self_attn.out_proj.bias": (16,),
    "linear1.weight": (64, 16), "linear1.bias": (64,), "linear2.weight": (16, 64),
    "linear2.bias": (16,), "norm1.weight": (16,), "norm1.bias": (16,), "norm2.weight": (16,),
    "norm2.bias": (16,),
}  # fmt: skip


def has(module: str) -> bool:
    return importlib.util.find_spec(module) is not None


REFERENCE = has("sentence_transformers")
needs_reference = pytest.mark.skipif(
    not REFERENCE, reason="sentence-transformers, the reference, is not installed"
)
needs_minilm = pytest.mark.skipif(
    not MINILM.is_dir(), reason="all-MiniLM-L6-v2 is not in .deps/models (tools/fetch_model.sh)"
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ray's cluster first: it mostly waits, and other files are run meanwhile."""
    items.sort(key=lambda item: item.path.name != "test_ray.py")


def pytest_report_header() -> list[str]:
    absent = [name for name in ("sentence_transformers", "torch", "tqdm", "ray") if not has(name)]
    absent += [] if MINILM.is_dir() else ["all-MiniLM-L6-v2"]
    return [f"pyencore: left out for want of {', '.join(absent)}"] if absent else []


@functools.cache
def reference_of(kind: str, folder: Any, **options: Any) -> Any:
    """sentence-transformers' model of a folder."""
    import sentence_transformers
    import torch

    logging.disable(logging.WARNING)
    torch.set_num_threads(1)  # its threads spin, which slows tests down where others compute
    return getattr(sentence_transformers, kind)(
        str(folder), device="cpu", model_kwargs={"dtype": torch.float32}, **options
    )


def own_environment() -> dict[str, str]:
    """In which another interpreter has pyencore where this one has it."""
    package = Path(sys.modules["pyencore"].__file__ or "")
    return {**os.environ, "PYTHONPATH": str(package.parents[1])}


def run_python(program: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """A program in an interpreter of its own."""
    command, own = [sys.executable, "-c", program, *arguments], own_environment()
    return subprocess.run(command, capture_output=True, text=True, env=own, timeout=60)


def copy_with(source: Path, target: Path, name: str, **members: Any) -> Path:
    """A copy of a folder, with these members of one of its files besides."""
    shutil.copytree(source, target)
    file = target / name
    known = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps({**known, **members}), "utf-8")
    return target


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
