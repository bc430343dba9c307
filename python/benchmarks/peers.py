#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Texts to vectors from Python, side by side in one run: pyencore, sentence-transformers' three
backends, fastembed, llama.cpp. Prints a Markdown table.

    python python/benchmarks/peers.py MODEL [--texts N] [--shape BxS ...] [--rounds N]
        [--threads 1 2] [--encore BINARY] [--variants NAME ...] [--python BACKEND=INTERPRETER ...]

Each variant is opened in a process of its own, bound to as many cores as threads. They take turns,
one works at a time, and a turn that other processes disturbed is taken again. Measured: one query
of 15 tokens, and sentences of mixed lengths in one call; with --shape instead B texts of S tokens.
A figure is the median of the rounds, a ratio the median of the rounds' ratios, with the lowest and
the highest; p99 is given from 100 calls of a turn on. Ratios are to the first variant that is not
left out. Vectors of 64 texts of each kind are compared first: the largest difference from that
variant's and the mean and the least cosine, or for the folder of a SparseEncoder how many values
one of them has and the other has not, if above 1e-6. A variant
whose packages are absent, that refuses to open the folder or that ends is left out, with the
reason.
--encore times `encore embed` too, as a whole: start, reading, opening, writing.

optimum-onnx and optimum-intel want other versions of transformers than each other: `onnx`,
`openvino`, `fastembed` and `llama.cpp` have environments of their own, which `tools/python_env.sh
peers backends` makes in .deps/venv-NAME; --python names another interpreter. "onnx O3" is the graph
after ONNX Runtime's optimizer. fastembed takes MODEL/onnx/model.onnx, or what PyTorch exports of a
BERT. llama_cpp.py says what llama.cpp wants, and makes its file of a BERT.
"""

from __future__ import annotations

import argparse
import json
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

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "bench/peers"))

import quiet  # noqa: E402
import remote  # noqa: E402
import tables  # noqa: E402
from texts import sentences  # noqa: E402

VARIANTS = (
    "encore f32",
    "encore bf16",
    "encore int8",
    "encore int4",
    "torch f32",
    "onnx f32",
    "onnx O3",
    "onnx int8",
    "openvino f32",
    "openvino int8",
    "fastembed f32",
    "llama.cpp f32",
    "llama.cpp Q8_0",
    "llama.cpp Q4_0",
)
CALLS_FOR_P99 = 100  # of a turn, as bench/peers/results.py has it, which needs pyencore.lab
QUERY = "How do I renew a passport that expired three years ago?"
Encode = Callable[[list[str]], Any]


def of_shape(folder: str, batch: int, tokens: int) -> list[str]:
    """So many texts of so many tokens each, with those at its ends."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(Path(folder) / "tokenizer.json"))
    tokenizer.no_truncation()
    words = (piece.lstrip("\u0120") for piece in sorted(tokenizer.get_vocab()))
    whole = [
        word
        for word in words
        if word.isalpha()
        and word.isascii()
        and len(tokenizer.encode(f"a {word}", add_special_tokens=False)) == 2
    ][:1000]
    special = len(tokenizer.encode(""))
    rng = np.random.default_rng(1)
    texts = ["a " + " ".join(rng.choice(whole, tokens - 1 - special)) for _ in range(batch)]
    if any(len(tokenizer.encode(text)) != tokens for text in texts):
        raise SystemExit(f"{folder}: its tokenizer does not give texts of {tokens} tokens")
    return texts


# ---- In a variant's process -----------------------------------------------


def is_sparse(folder: str) -> bool:
    path = Path(folder) / "config_sentence_transformers.json"
    return path.is_file() and json.loads(path.read_text()).get("model_type") == "SparseEncoder"


def dense(found: Any) -> Any:
    """Vectors as one array: pyencore's compressed rows and PyTorch's sparse tensors too."""
    if hasattr(found, "indptr"):
        rows = np.zeros(found.shape, np.float32)
        rows[np.repeat(np.arange(len(rows)), np.diff(found.indptr)), found.indices] = found.values
        return rows
    return np.asarray(found.to_dense() if hasattr(found, "to_dense") else found)


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
    kind = "SparseEncoder" if is_sparse(folder) else "SentenceTransformer"
    model = getattr(sentence_transformers, kind)(
        folder, device="cpu", backend=backend, model_kwargs=options
    )
    if precision != "f32":  # each backend's own way, as sentence-transformers documents it
        path = tempfile.mkdtemp()
        if precision == "O3":
            sentence_transformers.export_optimized_onnx_model(model, "O3", path)
            options["file_name"] = "onnx/model_O3.onnx"
        elif backend == "onnx":
            sentence_transformers.export_dynamic_quantized_onnx_model(model, "avx512_vnni", path)
            options["file_name"] = "onnx/model_qint8_avx512_vnni.onnx"
        else:
            sentence_transformers.export_static_quantized_openvino_model(
                model, None, path, calibration_texts(), "default", "train", "sentence"
            )
            options["file_name"] = "openvino/openvino_model_qint8_quantized.xml"
        model.save_pretrained(path)
        model = getattr(sentence_transformers, kind)(
            path, device="cpu", backend=backend, model_kwargs=options
        )
    return lambda texts: model.encode(texts, show_progress_bar=False)


def calibration_texts() -> str:
    """A data set in a folder: OpenVINO's int8 is calibrated, by default on one from the hub."""
    folder = tempfile.mkdtemp()
    lines = (json.dumps({"sentence": text}) + "\n" for text in sentences(300))
    Path(folder, "train.jsonl").write_text("".join(lines), "utf-8")
    return folder


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
        import pyencore

        kind = pyencore.SparseEncoder if is_sparse(folder) else pyencore.TextEncoder
        return kind(folder, compute=precision, threads=threads).encode
    if name == "fastembed":
        if is_sparse(folder):
            raise ValueError("takes no folder of a SparseEncoder")
        return fastembed(folder, threads)
    if name == "llama.cpp":
        import llama_cpp

        return llama_cpp.opened(folder, precision, threads)
    return sentence_transformers(folder, name, precision, threads)


def times(encode: Encode, texts: list[str], seconds: float) -> list[float]:
    """Of calls for so long: the median, the one that 1 in 100 is slower than, how many."""
    each: list[float] = []
    while sum(each) < seconds or not each:
        started = time.perf_counter()
        encode(texts)
        each.append(time.perf_counter() - started)
    each.sort()
    return [each[len(each) // 2], each[int(len(each) * 0.99)], len(each)]


def serve(path: str) -> int:
    """Answers a request for vectors, or for the times of a list of texts."""
    with open(path, encoding="utf-8") as file:
        job = json.load(file)

    def make() -> tuple[str, Callable[..., Any]]:
        try:
            encode = opened(job["variant"], job["model"], job["threads"])
            vectors = [dense(encode(texts[:64])) for texts in job["measured"].values()]
        except Exception as error:
            return f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}", list
        for texts in job["measured"].values():
            encode(texts)

        def answer(what: str, where: str) -> Any:
            if what == "vectors":
                np.save(where, np.concatenate(vectors))
                return None
            texts, seconds = job["measured"][where], job["seconds"]
            return quiet.turn(lambda: times(encode, texts, seconds), job["retakes"])

        return "ready", answer

    return remote.serve(make)


# ---- In the process that compares -----------------------------------------------


def interpreter(backend: str, given: list[str]) -> str:
    """Of --python, else of the backend's own environment, else this one."""
    own = ROOT / f".deps/venv-{backend}/bin/python"
    pythons = dict(pair.split("=", 1) for pair in given)
    return pythons.get(backend, str(own) if own.exists() else sys.executable)


class Variant:
    """One of them in its process, and the seconds that it took in each round."""

    def __init__(self, name: str, options: argparse.Namespace, job: dict[str, Any], folder: Path):
        self.name, self.path = name, folder / f"{name}.json"
        self.seconds: dict[str, list[list[float]]] = {label: [] for label in job["measured"]}
        self.path.write_text(json.dumps({**job, "variant": name}), "utf-8")
        self.remote = remote.Remote(
            name,
            [interpreter(name.split()[0], options.python), __file__, "--serve", str(self.path)],
            remote.last_cores(job["threads"]),
            {"OMP_NUM_THREADS": str(job["threads"]), "HF_HUB_OFFLINE": "1"},
        )

    def vectors(self) -> Any:
        self.remote.ask("vectors", str(self.path.with_suffix(".npy")))
        return np.load(self.path.with_suffix(".npy"))

    def take_turn(self, label: str) -> float:
        found, others = self.remote.ask("times", label)
        self.seconds[label].append(found)
        return float(others)


class CommandLine:
    """`encore embed` as a whole, on lists of texts."""

    name = "encore embed"

    def __init__(self, options: argparse.Namespace, job: dict[str, Any], folder: Path):
        self.folder, self.job, self.retakes = folder, job, options.retakes
        self.command = [
            options.encore,
            "embed",
            "--model",
            job["model"],
            "--threads",
            str(job["threads"]),
            "--output",
            str(folder / "v.npy"),
            "--input",
        ]
        self.seconds: dict[str, list[list[float]]] = {label: [] for label in job["measured"]}

    def take_turn(self, label: str) -> float:
        lines = self.folder / "lines.txt"
        lines.write_text("\n".join(self.job["measured"][label]) + "\n", "utf-8")

        def embed(_: list[str]) -> None:
            remote.run(
                [*self.command, str(lines)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
            ).check_returncode()

        found, others = quiet.turn(lambda: times(embed, [], 0), self.retakes)
        self.seconds[label].append(found)
        return float(others)


def cells(label: str, texts: int, variant: Any, first: Any) -> list[str]:
    """Its figures of what was measured: p50 and p99 of calls, or texts a second; and the ratio."""
    rounds = variant.seconds[label]
    medians = [round_[0] for round_ in rounds]
    slow = [round_[1] for round_ in rounds if round_[2] >= CALLS_FOR_P99]
    each = [a / b[0] for a, b in zip(medians, first.seconds[label], strict=True)]
    median = statistics.median(medians)
    figure = f"{texts / median:.0f} texts/s"
    if texts < 64:
        p99 = f"{1e3 * statistics.median(slow):.2f}" if slow else "-"
        figure = f"{1e3 * median:.2f} / {p99} ms"
    return [figure, f"{statistics.median(each):.2f} ({min(each):.2f} to {max(each):.2f})"]


def difference(found: Any, wanted: Any, folder: str) -> str:
    told = f"{np.abs(found - wanted).max():.1e}"
    if not is_sparse(folder):
        lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
        cosines = np.sum(found * wanted, axis=1, dtype=np.float64) / lengths
        return f"{told}; {cosines.mean():.5f}, {cosines.min():.5f}"
    others = ((found == 0) != (wanted == 0)) & (np.maximum(found, wanted) > 1e-6)
    return f"{told}; {others.sum()} of {np.count_nonzero(wanted)} values"


def compare(options: argparse.Namespace, threads: int, job: dict[str, Any], folder: Path) -> None:
    job = {**job, "threads": threads}
    variants: list[Any] = []
    try:
        for name in options.variants:
            try:
                variant = Variant(name, options, job, folder)
            except remote.RemoteError as error:  # it ended: killed, or its interpreter is another's
                print(f"{name}: left out: {str(error)[-400:]}", file=sys.stderr)
                continue
            if variant.remote.ready == "ready":
                variants.append(variant)
            else:
                print(f"{name}: left out: {variant.remote.ready[:200]}", file=sys.stderr)
                variant.remote.close()
        if not variants:
            raise SystemExit("peers: no variant is left to measure")
        wanted = variants[0].vectors()
        differences = {v.name: difference(v.vectors(), wanted, job["model"]) for v in variants}
        timed = variants + ([CommandLine(options, job, folder)] if options.encore else [])
        others = [
            variant.take_turn(label)
            for _ in range(options.rounds)
            for label in job["measured"]
            for variant in timed
        ]
    finally:
        for variant in variants:
            variant.remote.close()
    rows = [[f"{threads} thread{'s' * (threads > 1)}"]]
    for label in job["measured"]:
        rows[0] += [label, f"{timed[0].name} is faster by"]
    cosines = "" if is_sparse(job["model"]) else "; mean and least cosine"
    rows[0].append(f"largest difference from {timed[0].name}{cosines}")
    for variant in timed:
        row = [variant.name]
        for label, texts in job["measured"].items():
            row += cells(label, len(texts), variant, timed[0])
        rows.append([*row, differences.get(variant.name, "")])
    print(f"\n{tables.write(rows, {0}, True)}\n", flush=True)
    print(f"other processes: {max(others):.2f} of a core in the worst turn", file=sys.stderr)


def parser() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__)
    made.add_argument("model")
    made.add_argument("--texts", type=int, default=500)
    made.add_argument("--shape", nargs="+", default=[], metavar="BxS")
    made.add_argument("--rounds", type=int, default=5)
    made.add_argument("--seconds", type=float, default=0.5, help="of a turn, at least one call")
    made.add_argument("--retakes", type=int, default=3, help="of a turn that was disturbed")
    made.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    made.add_argument("--encore", metavar="BINARY", help="the command, to be timed too")
    made.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS)
    made.add_argument("--python", nargs="+", default=[], metavar="BACKEND=INTERPRETER")
    return made


def main() -> int:
    if sys.argv[1:2] == ["--serve"]:
        return serve(sys.argv[2])
    options = parser().parse_args()
    measured = {"one query, p50 / p99": [QUERY], f"{options.texts} texts": sentences(options.texts)}
    if options.shape:
        measured = {
            shape: of_shape(options.model, *map(int, shape.split("x"))) for shape in options.shape
        }
    job = {
        "model": str(Path(options.model).resolve()),
        "measured": measured,
        "seconds": options.seconds,
        "retakes": options.retakes,
    }
    with tempfile.TemporaryDirectory() as folder:
        for threads in options.threads:
            compare(options, threads, job, Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
