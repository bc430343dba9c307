# SPDX-License-Identifier: Apache-2.0
"""The programs that compare encore with others, on small work: that they run, and that their
engines agree. No time is judged."""

from __future__ import annotations

import importlib
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from conftest import DATA, ROOT, has
from pyencore import lab

COMPARE = "bench/peers/compare.py"
QUICK = ["--rounds", "1", "--seconds", "0.01", "--retakes", "0", "--threads"]


def run(program: str, *options: str) -> Any:
    done = subprocess.run(
        [sys.executable, str(ROOT / program), *options], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return done


@pytest.mark.skipif(
    not all(map(has, ("safetensors", "torch", "jsonschema"))),
    reason="safetensors, torch or jsonschema is not installed",
)
@pytest.mark.parametrize("workload", ["example_32x10", "minilm_products_1x16"])
def test_blocks_beside_torch(workload: str, tmp_path: Path) -> None:
    report = tmp_path / "peers.json"
    peer = "torch" if workload == "example_32x10" else "onednn"
    done = run(COMPARE, "layers", "--workload", workload, "--peer", peer, "--precision", "f32",
               "--json", str(report), *QUICK, "2")
    rows = lab.load(report)["rows"]
    engines = {row["engine"] for row in rows}
    assert "encore" in engines, done.stderr
    assert len(engines) >= 2, done.stderr
    assert "encore on 1 thread" in engines or workload != "example_32x10"
    assert all(0 < row["seconds"]["min"] <= row["seconds"]["p50"] for row in rows)


def test_a_peer_that_hangs_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench/peers"))
    remote = importlib.import_module("remote")
    monkeypatch.setattr(remote, "ANSWER_SECONDS", 0.2)
    with pytest.raises(remote.RemoteError, match=r"peer did not answer within 0\.2 s"):
        remote.Remote("peer", [sys.executable, "-c", "import time; time.sleep(60)"], None, {})


def test_ctrl_c_shows_what_was_measured(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench/peers"))
    compare = importlib.import_module("compare")
    monkeypatch.setattr("importlib.util.find_spec", str)  # as if all peers were installed
    times = {"min": 1e-3, "p50": 2e-3, "p90": 3e-3, "p99": None, "max": 4e-3}

    def run_case(_options: Any, _module: Any, case: Any) -> Any:
        if case.name != "minilm_1x16":
            raise KeyboardInterrupt
        return [{"case": case, "label": "", "threads": 1, "engine": "encore", "precision": "f32",
                 "is_base": True, "detail": "", "difference": "", "seconds": times, "ratios": {},
                 "others": 0.0}]  # fmt: skip

    monkeypatch.setattr(compare, "run_case", run_case)
    assert compare.main(["layers", "--workload", "minilm_1x16", "minilm_1x128", "--peer", "torch",
                         "--threads", "1"]) == 1  # fmt: skip
    output = capsys.readouterr()
    assert "minilm_1x16" in output.out
    assert "interrupted" in output.err


@pytest.mark.skipif(not has("tokenizers"), reason="tokenizers is not installed")
def test_texts_in_turns() -> None:
    done = run(COMPARE, "texts", "--model", str(DATA / "text" / "base"), "--texts", "70",
               "--markdown", "--variants", "encore f32", "encore int8", *QUICK, "1")
    table = [line.split("|") for line in done.stdout.splitlines() if line.startswith("|")]
    assert [row[1].strip() for row in table[2:]] == ["encore f32", "encore int8"], done.stderr
    (same, _), (differs, cosines) = (row[-2].split(";") for row in table[2:])
    assert float(same) == 0 < float(differs) < 0.1
    mean, least = map(float, cosines.split(","))
    assert 0.99 < least <= mean < 1
    assert table[0][-2].strip() == "largest difference from encore f32; mean and least cosine"
    assert table[2][2].strip().endswith(" ms")


@pytest.mark.skipif(
    not all(map(has, ("tokenizers", "sentence_transformers"))),
    reason="tokenizers or sentence-transformers is not installed",
)
def test_sparse_vectors_in_turns() -> None:
    done = run(COMPARE, "texts", "--model", str(DATA / "heads" / "splade_bert"), "--shape", "3x9",
               "--markdown", "--variants", "encore f32", "torch f32", "fastembed f32", *QUICK,
               "1")
    table = [line.split("|") for line in done.stdout.splitlines() if line.startswith("|")]
    assert [row[1].strip() for row in table[2:]] == ["encore f32", "torch f32"], done.stderr
    assert "fastembed f32 is left out: ValueError: takes no folder" in done.stderr
    error, values = table[3][-2].split(";")
    assert float(error) < 1e-5
    others, count = values.split(" of ")
    assert int(others) == 0 < int(count.split()[0])


def test_the_table_of_readme_is_that_of_the_defaults(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each of its engines is in the environment, or one of those, that the project makes."""
    monkeypatch.syspath_prepend(str(ROOT / "bench/peers"))
    import compare
    import texts

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert "| 500 texts of mixed lengths" in readme and "median of five rounds" in readme
    _, options = compare.parse_args(["texts"])
    assert (options.texts, options.rounds) == (500, 5)
    listed = [
        line.split()
        for line in (ROOT / "bench/peers/backends.txt").read_text(encoding="utf-8").splitlines()
        if not line.startswith("#")
    ]
    assert all("==" in package for _, package in listed)
    own = {name for name, _ in listed}
    assert {name.split()[0] for name in options.variants} - own == {"encore", "torch"}
    # The environment of the backend, if it is there.
    for name in own | {"encore", "torch"}:
        there = ROOT / f".deps/venv-{name}/bin/python"
        wanted = str(there) if name in own and there.exists() else sys.executable
        assert texts.interpreter(name, []) == wanted
        assert texts.interpreter(name, [f"{name}=python-of-mine"]) == "python-of-mine"


def test_texts_of_no_variant(tmp_path: Path) -> None:
    (tmp_path / "ends").write_text("#!/bin/sh\necho it ends here >&2\nexit 7\n")
    (tmp_path / "ends").chmod(0o755)
    done = subprocess.run(
        [sys.executable, str(ROOT / COMPARE), "texts", "--model", str(DATA / "text" / "base"),
         "--texts", "1", "--variants", "encore f32", "--python", f"encore={tmp_path / 'ends'}"],
        capture_output=True, text=True, timeout=60,
    )
    assert done.returncode == 1
    assert "encore f32 is left out: encore f32 ended with 7: it ends here" in done.stderr
    assert done.stderr.endswith("compare: nothing was measured\n")


@pytest.mark.skipif(not Path("/proc/self/clear_refs").exists(), reason="the system tells no memory")
def test_opening(tmp_path: Path) -> None:
    """The first of the rounds is not counted; of `written` it is."""
    done = run("bench/peers/opening.py", "--model", str(DATA / "text" / "base"), "--rounds", "1",
               "--engine", "encore", "--engine", "written", "--work", str(tmp_path))
    lines = [line.split() for line in done.stdout.splitlines()]
    rows = {line[0]: line[1:] for line in lines if line and line[0] in ("encore", "written")}
    assert rows.keys() == {"encore", "written"}
    assert all(float(row[0]) > 0 for row in rows.values())
    assert not list(tmp_path.iterdir())


@pytest.mark.skipif(not has("tokenizers"), reason="tokenizers is not installed")
def test_ids() -> None:
    done = run(COMPARE, "ids", "--model", str(DATA / "text" / "base"), "--count", "20",
               "--markdown", *QUICK, "1")
    rows = [[cell.strip() for cell in line.split("|")] for line in done.stdout.splitlines()]
    others = {row[1]: row[4] for row in rows if len(row) > 4}
    assert others["tokenizers"] == others["encore"] == "0", done.stderr


@pytest.mark.skipif(not has("torch"), reason="torch is not installed")
def test_max_sim() -> None:
    done = run(COMPARE, "max_sim", "--busy", "1", *QUICK, "2")
    assert "numpy" in done.stdout and "torch einsum" in done.stdout, done.stderr


@pytest.mark.skipif(
    not all(map(has, ("torch", "transformers", "onnx", "onnxruntime"))),
    reason="torch, transformers, onnx or onnxruntime is not installed",
)
def test_a_layer_of_deberta() -> None:
    done = run(COMPARE, "deberta", "--encore", lab.find_encore(), "--size", "1x16", "--peer",
               "onnxruntime", "--markdown", *QUICK, "1")
    rows = [line.split("|") for line in done.stdout.splitlines() if line.startswith("| 1x16 ")]
    assert [row[2].strip() for row in rows] == ["f32", "int8"], done.stderr
    assert all("(" in row[-2] for row in rows), done.stderr


def test_names_in_gguf(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "bench/peers"))
    import llama_cpp

    assert llama_cpp.gguf_name("encoder.layer.3.output.dense.weight") == "blk.3.ffn_down.weight"
    assert llama_cpp.gguf_name("embeddings.LayerNorm.bias") == "token_embd_norm.bias"
    assert llama_cpp.gguf_name("pooler.dense.weight") is None
    tokens = ["##ing", "[CLS]", "the"]
    assert [*map(llama_cpp.as_llama_cpp_has_it, tokens)] == ["ing", "[CLS]", "\u2581the"]
