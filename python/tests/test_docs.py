# SPDX-License-Identifier: Apache-2.0
"""Every Python block of docs/python.md, docs/ray.md and README.md runs by itself."""

from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DATA, FOLDERS, MINILM, ROOT, copy_with, has, needs_minilm, needs_reference

BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)


@needs_minilm
@pytest.mark.parametrize("page", ["docs/python.md", "docs/ray.md", "README.md"])
def test_blocks(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("RAY_ADDRESS", "local")  # no cluster that somebody left
    text = (ROOT / page).read_text(encoding="utf-8")
    blocks = [
        (m.group(1), m.group(2), text[: m.start(2)].count("\n")) for m in BLOCK.finditer(text)
    ]
    assert blocks
    left_out = []
    for module, block, line in blocks:
        if module and not has(module):
            left_out.append(module)
            continue
        exec(compile("\n" * line + block, str(ROOT / page), "exec"), {})
    if left_out:
        pytest.skip(f"all but the blocks of {', '.join(left_out)} ran")


@needs_minilm
@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda p: p.name)
def test_example(example: Path, tmp_path: Path) -> None:
    if example.name.startswith("ray_") and not has("ray"):
        pytest.skip("ray is not installed")
    texts = tmp_path / "documents.txt"
    texts.write_text("The cat sat on the mat\nRenew it at the town hall\nTrains are late\n")
    command = [sys.executable, str(example), str(MINILM), str(texts), "Where do I get a passport?"]
    paths = ":".join(p for p in sys.path if p)
    variables = {"PYTHONPATH": paths, "PATH": "/usr/bin:/bin", "RAY_ADDRESS": "local"}
    variables["RAY_worker_niceness"] = "0"
    run = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert run.returncode == 0, run.stderr
    # On a slow machine Ray prints warnings of its own.
    answers = re.findall(r"^(?:closest:|-?\d\.\d{4}) .*", run.stdout, re.MULTILINE)
    assert answers and "town hall" in answers[0], run.stdout


@needs_reference
def test_every_module_of_sentence_transformers_has_a_row() -> None:
    spec = importlib.util.find_spec("sentence_transformers")
    assert spec is not None and spec.origin is not None
    published = {"Module", "InputModule", "BaseTokenPooling"}  # of which no module is made
    without, listed = set(published), 0
    for path in Path(spec.origin).parent.glob("*/modules/__init__.py"):
        for line in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__":
                published.update(ast.literal_eval(line.value))
                listed += 1
    assert listed == 5  # sentence, sparse, multi-vector and cross encoders, and what they share
    rows = [name for names, _ in module_rows() for name in names]
    assert published - without <= set(rows)


def module_rows() -> list[tuple[list[str], str]]:
    """Of docs/modules.md: a row's modules, and what encore does."""
    page = (ROOT / "docs/modules.md").read_text(encoding="utf-8")
    table = page.split("## Modules\n")[1].split("\n## ")[0]
    rows = [line.split("|") for line in table.splitlines() if line.startswith("| `")]
    return [(re.findall(r"`(\w+)`", row[1]), row[2].strip()) for row in rows]


REFUSED = [name for names, what in module_rows() if what.startswith("refused") for name in names]


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize(
    ("kind", "data"),
    [("TextEncoder", "sentences/gte"), ("SparseEncoder", "heads/splade_bert"),
     ("MultiVectorEncoder", "late/own")],
)  # fmt: skip
def test_a_module_that_the_page_calls_refused_is(
    name: str, kind: str, data: str, tmp_path: Path
) -> None:
    import pyencore

    folder = tmp_path / "folder"
    shutil.copytree(DATA / data, folder)
    path = folder / "modules.json"
    modules = json.loads(path.read_text(encoding="utf-8"))
    i = len(modules)
    kind_of_module = f"sentence_transformers.models.{name}"
    modules.append({"idx": i, "name": str(i), "path": f"{i}_{name}", "type": kind_of_module})
    path.write_text(json.dumps(modules), encoding="utf-8")
    with pytest.raises(Exception, match=rf"modules.json: .*\b{name}\b"):
        getattr(pyencore, kind)(folder)


def test_a_class_whose_code_is_python_leaves_ids_alone(tmp_path: Path) -> None:
    """As docs/text-models.md says of tokenizers' classes."""
    import pyencore

    members = {"tokenizer_class": "BertJapaneseTokenizer"}
    folder = copy_with(FOLDERS["Tokenizer"], tmp_path / "f", "tokenizer_config.json", **members)
    model = pyencore.TextEncoder(folder, threads=1)
    assert model.encode_ids([[1, 2, 3]]).shape == (1, model.dimension)
    with pytest.raises(pyencore.UnsupportedError, match="BertJapaneseTokenizer"):
        model.encode("tea")


@pytest.mark.skipif(not has("mypy"), reason="mypy is not installed")
def test_types(tmp_path: Path) -> None:
    import pyencore

    package = Path(pyencore.__file__ or "").parent
    assert (package / "py.typed").exists()
    if not (package / "_core.pyi").exists():
        pytest.skip("the package has no stubs: it was not built by its own build")
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path)]
    examples = [str(path) for path in sorted((ROOT / "examples").glob("*.py"))]
    paths = {"MYPYPATH": str(package.parent)} if "site-packages" not in str(package) else {}
    run = subprocess.run(
        [*command, *examples],
        capture_output=True,
        text=True,
        env={**paths, "PATH": "/usr/bin:/bin"},
    )
    assert run.returncode == 0, run.stdout + run.stderr
