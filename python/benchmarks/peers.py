#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sentences a second from Python, side by side in one run: pyencore, sentence-transformers' three
backends, fastembed. Prints a Markdown table.

    python python/benchmarks/peers.py MODEL [--texts N] [--rounds N] [--threads 1 2]
        [--variants NAME ...] [--python BACKEND=INTERPRETER ...]

Each variant is opened in a process of its own, bound to as many cores as threads. They take turns,
one works at a time; a figure is the median of the rounds, a ratio the median of the rounds' ratios,
with the lowest and the highest. Vectors are compared first: the largest difference from pyencore's
f32. A variant whose packages are absent or refuse to open the folder is left out, with the reason.
optimum-onnx and optimum-intel want other versions of transformers than each other: --python names
the interpreter of an environment for `onnx`, `openvino` or `fastembed`. fastembed takes
MODEL/onnx/model.onnx, or what PyTorch exports of a BERT.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

VARIANTS = (
    "encore f32",
    "encore bf16",
    "encore int8",
    "torch f32",
    "onnx f32",
    "onnx int8",
    "openvino f32",
    "openvino int8",
    "fastembed f32",
)
Encode = Callable[[list[str]], Any]


# ---- In a variant's process -----------------------------------------------


def sentence_transformers(folder: str, backend: str, precision: str, threads: int) -> Encode:
    import sentence_transformers
    import torch

    torch.set_num_threads(threads)
    options: dict[str, Any] = {}
    if backend == "torch":
        options["dtype"] = torch.float32
    elif backend == "onnx":
        import onnxruntime

        options["session_options"] = onnxruntime.SessionOptions()
        options["session_options"].intra_op_num_threads = threads
    else:
        options["ov_config"] = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    model = sentence_transformers.SentenceTransformer(
        folder, device="cpu", backend=backend, model_kwargs=options
    )
    if precision == "int8":  # each backend's own way, as sentence-transformers documents it
        path = tempfile.mkdtemp()
        if backend == "onnx":
            sentence_transformers.export_dynamic_quantized_onnx_model(model, "avx512_vnni", path)
            options["file_name"] = "onnx/model_qint8_avx512_vnni.onnx"
        else:
            sentence_transformers.export_static_quantized_openvino_model(model, None, path)
            options["file_name"] = "openvino/openvino_model_qint8_quantized.xml"
        model.save_pretrained(path)
        model = sentence_transformers.SentenceTransformer(
            path, device="cpu", backend=backend, model_kwargs=options
        )
    return lambda texts: model.encode(texts, show_progress_bar=False)


def with_onnx(folder: str) -> str:
    """The folder, or a copy with onnx/model.onnx as PyTorch exports a BERT."""
    if (Path(folder) / "onnx" / "model.onnx").exists():
        return folder
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    model = model.eval().requires_grad_(False)

    class Hidden(torch.nn.Module):
        def forward(self, ids: Any, mask: Any, types: Any) -> Any:
            hidden_away = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
            return model(ids, attention_mask=hidden_away, token_type_ids=types).last_hidden_state

    copy = tempfile.mkdtemp()
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    (Path(copy) / "onnx").mkdir()
    names = ["input_ids", "attention_mask", "token_type_ids", "last_hidden_state"]
    torch.onnx.export(
        Hidden(),
        (torch.ones(2, 5, dtype=torch.int64),) * 3,
        f"{copy}/onnx/model.onnx",
        input_names=names[:3],
        output_names=names[3:],
        dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names},
        opset_version=17,
        dynamo=False,
    )
    return copy


def fastembed(folder: str, threads: int) -> Encode:
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    folder = with_onnx(folder)
    config = json.loads((Path(folder) / "config.json").read_text())
    TextEmbedding.add_custom_model(
        model="here",
        pooling=PoolingType.MEAN,
        normalization=True,
        sources=ModelSource(hf="here"),
        dim=config["hidden_size"],
        model_file="onnx/model.onnx",
    )
    model = TextEmbedding("here", specific_model_path=folder, threads=threads)
    return lambda texts: np.stack(list(model.embed(texts, batch_size=32)))


def opened(variant: str, folder: str, threads: int) -> Encode:
    name, precision = variant.split()
    if name == "encore":
        from pyencore import TextEncoder

        return TextEncoder(folder, compute=precision, threads=threads).encode
    if name == "fastembed":
        return fastembed(folder, threads)
    return sentence_transformers(folder, name, precision, threads)


def serve(variant: str, folder: str, threads: int, texts: list[str], vectors: str) -> None:
    """Answers each line of stdin with the seconds of encoding all texts."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-threads:])
    try:
        encode = opened(variant, folder, threads)
        np.save(vectors, np.asarray(encode(texts[:64])))
        encode(texts)
    except Exception as error:
        reason = (str(error).splitlines() or [""])[0]
        print(f"{type(error).__name__}: {reason}", file=answers, flush=True)
        return
    print("ready", file=answers, flush=True)
    for _ in sys.stdin:
        started = time.perf_counter()
        encode(texts)
        print(time.perf_counter() - started, file=answers, flush=True)


# ---- In the process that compares -----------------------------------------------


class Variant:
    def __init__(self, name: str, python: str, arguments: list[str], vectors: Path) -> None:
        self.name, self.seconds = name, list[float]()
        self._vectors = vectors
        self._process = subprocess.Popen(
            [python, __file__, "--serve", name, *arguments, str(vectors)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.answer = self._line()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip() or "its process ended"

    def vectors(self) -> Any:
        return np.load(self._vectors)

    def take_turn(self) -> None:
        assert self._process.stdin is not None
        print(file=self._process.stdin, flush=True)
        self.seconds.append(float(self._line()))

    def end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def compare(options: argparse.Namespace, threads: int, texts: Path, folder: Path) -> None:
    pythons = dict(pair.split("=", 1) for pair in options.python)
    arguments = [str(Path(options.model).resolve()), str(threads), str(texts)]
    variants = []
    for name in options.variants:
        python = pythons.get(name.split()[0], sys.executable)
        variant = Variant(name, python, arguments, folder / f"{name}.npy")
        if variant.answer == "ready":
            variants.append(variant)
        else:
            print(f"{name}: left out: {variant.answer[:200]}", file=sys.stderr)
            variant.end()
    for _ in range(options.rounds):
        for variant in variants:
            variant.take_turn()
    first = variants[0]
    of = "thread" if threads == 1 else "threads"
    print(f"\n| {threads} {of} | sentences/s | {first.name} is faster by | difference |")
    print("|---|---|---|---|")
    for variant in variants:
        rate = options.texts / statistics.median(variant.seconds)
        each = [a / b for a, b in zip(variant.seconds, first.seconds, strict=True)]
        ratio = f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"
        difference = np.abs(variant.vectors() - first.vectors()).max()
        print(f"| {variant.name} | {rate:.0f} | {ratio} | {difference:.1e} |", flush=True)
        variant.end()


def main() -> None:
    if sys.argv[1:2] == ["--serve"]:
        variant, folder, threads, path, vectors = sys.argv[2:]
        serve(variant, folder, int(threads), Path(path).read_text("utf-8").splitlines(), vectors)
        return
    from calls import sentences

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    parser.add_argument("--python", nargs="+", default=[], metavar="BACKEND=INTERPRETER")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        texts = Path(folder) / "texts.txt"
        texts.write_text("\n".join(sentences(options.texts)), "utf-8")
        for threads in options.threads:
            compare(options, threads, texts, Path(folder))


if __name__ == "__main__":
    main()
