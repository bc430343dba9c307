# SPDX-License-Identifier: Apache-2.0
"""Every Python block of docs/python.md and of README.md is run, in the order of the page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import MINILM, ROOT, has, needs_minilm

BLOCK = re.compile(r"(?:<!-- needs (\w+) -->\n)?```python\n(.*?)```", re.DOTALL)


@needs_minilm
@pytest.mark.parametrize("page", ["docs/python.md", "docs/ray.md", "README.md"])
def test_blocks(page: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("RAY_ADDRESS", "local")  # no cluster that somebody left
    text = (ROOT / page).read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    blocks = [
        (m.group(1), m.group(2), text[: m.start(2)].count("\n")) for m in BLOCK.finditer(text)
    ]
    assert blocks
    left_out = []
    for module, block, line in blocks:
        if module and not has(module):
            left_out.append(module)
            continue
        exec(compile("\n" * line + block, str(ROOT / page), "exec"), names)
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
    run = subprocess.run(command, capture_output=True, text=True, env=variables)
    assert run.returncode == 0, run.stderr
    assert "town hall" in run.stdout.splitlines()[0]


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
