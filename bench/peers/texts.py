# SPDX-License-Identifier: Apache-2.0
"""Texts to vectors from Python: pyencore, the three backends of sentence-transformers, fastembed
and llama.cpp.

    tools/python_env.sh peers backends
    .deps/venv/bin/python bench/peers/compare.py texts --model FOLDER --markdown [--texts N]
        [--shape BxS ...] [--encore BINARY] [--variants NAME ...] [--python BACKEND=INTERPRETER ...]

Measured: one query of 15 tokens, and sentences of mixed lengths in one call; with --shape instead B
texts of S tokens. Ratios are to the first variant that is not left out. Vectors of 64 texts of each
kind are compared first: the largest difference from that variant's and the mean and the least
cosine, or for the folder of a SparseEncoder how many values above 1e-6 only one of them has.
--encore times `encore embed` too, as a whole: start, reading, opening, writing.

optimum-onnx and optimum-intel want other versions of transformers than each other: `onnx`,
`openvino`, `fastembed` and `llama.cpp` have environments of their own, .deps/venv-NAME; --python
names another interpreter. "onnx O3" is the graph after ONNX Runtime's optimizer. fastembed takes
FOLDER/onnx/model.onnx, or what PyTorch exports of a BERT. llama_cpp.py makes its file of a BERT.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile
import types

import numpy as np

import compare
import remote

ROOT = pathlib.Path(__file__).resolve().parents[2]
ENGINES_ACROSS = False
VARIANTS = ("encore f32", "encore bf16", "encore int8", "encore int4", "torch f32", "onnx f32",
            "onnx O3", "onnx int8", "openvino f32", "openvino int8", "fastembed f32",
            "llama.cpp f32", "llama.cpp Q8_0", "llama.cpp Q4_0")
QUERY = "How do I renew a passport that expired three years ago?"
WORDS = "the harbour lies between two hills and trains stop at coast every hour of day".split()


def sentences(count):
    """Of 4 to 27 words, each text another."""
    rng = np.random.default_rng(1)
    return [f"{i} " + " ".join(rng.choice(WORDS, rng.integers(4, 28))) for i in range(count)]


def of_shape(folder, batch, tokens):
    """So many texts of so many tokens each, with those at its ends."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    words = (piece.lstrip("\u0120") for piece in sorted(tokenizer.get_vocab()))
    whole = [word for word in words if word.isalpha() and word.isascii() and
             len(tokenizer.encode(f"a {word}", add_special_tokens=False)) == 2][:1000]
    special = len(tokenizer.encode(""))
    rng = np.random.default_rng(1)
    texts = ["a " + " ".join(rng.choice(whole, tokens - 1 - special)) for _ in range(batch)]
    if any(len(tokenizer.encode(text)) != tokens for text in texts):
        raise SystemExit(f"{folder}: its tokenizer does not give texts of {tokens} tokens")
    return texts


def is_sparse(folder):
    path = pathlib.Path(folder, "config_sentence_transformers.json")
    return path.is_file() and json.loads(path.read_text()).get("model_type") == "SparseEncoder"


# ---- In an engine's process ---------------------------------------------------------------------

def dense(found):
    """Vectors as one array: pyencore's compressed rows and PyTorch's sparse tensors too."""
    if hasattr(found, "indptr"):
        rows = np.zeros(found.shape, np.float32)
        rows[np.repeat(np.arange(len(rows)), np.diff(found.indptr)), found.indices] = found.values
        return rows
    return np.asarray(found.to_dense() if hasattr(found, "to_dense") else found)


def sentence_transformers(folder, backend, precision, threads):
    import sentence_transformers
    import torch

    torch.set_num_threads(threads)
    options = {}
    if backend == "torch":
        options["dtype"] = torch.float32
    elif backend == "onnx":
        import onnxruntime
        options["session_options"] = onnxruntime.SessionOptions()
        options["session_options"].intra_op_num_threads = threads
    else:
        options["ov_config"] = {"INFERENCE_NUM_THREADS": threads, "INFERENCE_PRECISION_HINT": "f32"}
    kind = "SparseEncoder" if is_sparse(folder) else "SentenceTransformer"

    def opened_from(path):
        return getattr(sentence_transformers, kind)(path, device="cpu", backend=backend,
                                                    model_kwargs=options)

    model = opened_from(folder)
    if precision != "f32":  # each backend's own way, as sentence-transformers documents it
        path = tempfile.mkdtemp()
        if precision == "O3":
            sentence_transformers.export_optimized_onnx_model(model, "O3", path)
            options["file_name"] = "onnx/model_O3.onnx"
        elif backend == "onnx":
            sentence_transformers.export_dynamic_quantized_onnx_model(model, "avx512_vnni", path)
            options["file_name"] = "onnx/model_qint8_avx512_vnni.onnx"
        else:
            # OpenVINO's int8 is calibrated, by default on a data set from the hub.
            data = tempfile.mkdtemp()
            lines = (json.dumps({"sentence": text}) + "\n" for text in sentences(300))
            pathlib.Path(data, "train.jsonl").write_text("".join(lines), "utf-8")
            sentence_transformers.export_static_quantized_openvino_model(
                model, None, path, data, "default", "train", "sentence")
            options["file_name"] = "openvino/openvino_model_qint8_quantized.xml"
        model.save_pretrained(path)
        model = opened_from(path)
    return lambda texts: model.encode(texts, show_progress_bar=False)


def with_onnx(folder):
    """The folder, or a copy with onnx/model.onnx as PyTorch exports a BERT."""
    if pathlib.Path(folder, "onnx/model.onnx").exists():
        return folder
    import torch
    import transformers

    model = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager")
    model = model.eval().requires_grad_(False)

    class Hidden(torch.nn.Module):
        def forward(self, ids, mask, types):
            hidden_away = (1.0 - mask[:, None, None, :].float()) * torch.finfo(torch.float32).min
            return model(ids, attention_mask=hidden_away, token_type_ids=types).last_hidden_state

    copy = tempfile.mkdtemp()
    shutil.copytree(folder, copy, dirs_exist_ok=True)
    pathlib.Path(copy, "onnx").mkdir()
    names = ["input_ids", "attention_mask", "token_type_ids", "last_hidden_state"]
    torch.onnx.export(Hidden(), (torch.ones(2, 5, dtype=torch.int64),) * 3,
                      f"{copy}/onnx/model.onnx", input_names=names[:3], output_names=names[3:],
                      dynamic_axes={name: {0: "texts", 1: "tokens"} for name in names},
                      opset_version=17, dynamo=False)
    return copy


def fastembed(folder, threads):
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    if is_sparse(folder):
        raise ValueError("takes no folder of a SparseEncoder")
    folder = with_onnx(folder)
    config = json.loads(pathlib.Path(folder, "config.json").read_text())
    TextEmbedding.add_custom_model(
        model="here", pooling=PoolingType.MEAN, normalization=True, sources=ModelSource(hf="here"),
        dim=config["hidden_size"], model_file="onnx/model.onnx")
    model = TextEmbedding("here", specific_model_path=folder, threads=threads)
    return lambda texts: np.stack(list(model.embed(texts, batch_size=32)))


def command(job):
    """`encore embed` as a whole."""
    lines, vectors = (pathlib.Path(job["folder"], name) for name in ("lines.txt", "v.npy"))

    def encode(texts):
        lines.write_text("\n".join(texts) + "\n", "utf-8")
        remote.run([job["program"], "embed", "--model", job["model"], "--threads",
                    str(job["threads"]), "--output", vectors, "--input", lines],
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).check_returncode()

    return encode


def opened(job):
    folder, threads = job["model"], job["threads"]
    name, precision = job["engine"].split()
    output = True
    if job["engine"] == "encore embed":
        encode, output = command(job), False
    elif name == "encore":
        import pyencore
        kind = pyencore.SparseEncoder if is_sparse(folder) else pyencore.TextEncoder
        encode = kind(folder, compute=precision, threads=threads).encode
    elif name == "fastembed":
        encode = fastembed(folder, threads)
    elif name == "llama.cpp":
        import llama_cpp
        encode = llama_cpp.opened(folder, precision, threads)
    else:
        encode = sentence_transformers(folder, name, precision, threads)
    measured = job["measured"]
    return types.SimpleNamespace(
        calls={label: (lambda texts=texts: encode(texts)) for label, texts in measured.items()},
        output=(lambda: np.concatenate([dense(encode(texts[:64])) for texts in measured.values()]))
        if output else None, about={})


# ---- In the process that compares ---------------------------------------------------------------

def add_options(parser):
    parser.add_argument("--model", type=pathlib.Path, metavar="FOLDER",
                        default=ROOT / ".deps/models/all-MiniLM-L6-v2")
    parser.add_argument("--texts", type=int, default=500)
    parser.add_argument("--shape", nargs="+", default=[], metavar="BxS")
    parser.add_argument("--encore", metavar="BINARY", help="the command, to be timed too")
    parser.add_argument("--variants", nargs="+", choices=VARIANTS, default=VARIANTS,
                        metavar="NAME", help=", ".join(VARIANTS))
    parser.add_argument("--python", nargs="+", default=[], metavar="BACKEND=INTERPRETER")


def prepare(_case, _folder):
    pass


def cases(options):
    measured = {"one query, p50 / p99": [QUERY], f"{options.texts} texts": sentences(options.texts)}
    if options.shape:
        measured = {shape: of_shape(options.model, *map(int, shape.split("x")))
                    for shape in options.shape}
    labels = {label: (len(texts), "texts") for label, texts in measured.items()}
    for threads in options.threads:
        yield compare.Case(options.model.resolve().name, threads, labels, measured)


def interpreter(backend, given):
    """Of --python, else of the backend's own environment, else this one."""
    own = ROOT / f".deps/venv-{backend}/bin/python"
    pythons = dict(pair.split("=", 1) for pair in given)
    return pythons.get(backend, str(own) if own.exists() else sys.executable)


def engines(options, case):
    common = {"precision": "", "least": 1, "model": str(options.model.resolve()),
              "measured": case.work}
    for name in options.variants:
        yield {**common, "engine": name,
               "python": interpreter(name.split()[0], options.python)}
    if options.encore:
        yield {**common, "engine": "encore embed", "program": options.encore}


def difference(options, _engine, found, wanted):
    largest = f"{np.abs(found - wanted).max():.1e}"
    if not is_sparse(options.model):
        lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
        cosines = np.sum(found * wanted, axis=1, dtype=np.float64) / lengths
        return f"{largest}; {cosines.mean():.5f}, {cosines.min():.5f}", None
    others = ((found == 0) != (wanted == 0)) & (np.maximum(found, wanted) > 1e-6)
    return f"{largest}; {others.sum()} of {np.count_nonzero(wanted)} values", None


def table(rows):
    """A line for each variant: p50 and p99 of calls, or texts a second; and the ratio."""
    base, threads = next(iter(rows[0]["ratios"]), rows[0]["engine"]), rows[0]["threads"]
    lines = {}
    for r in rows:
        figure, seconds = compare.per_second(r), r["seconds"]
        if r["case"].labels[r["label"]][0] < 64:
            p99 = f"{1e3 * seconds['p99']:.2f}" if seconds["p99"] else "-"
            figure = f"{1e3 * seconds['p50']:.2f} / {p99} ms"
        lines.setdefault(r["engine"], []).extend(
            [figure, compare.ratio_text(r["ratios"].get(base))])
    kind = "" if "values" in rows[0]["difference"] else "; mean and least cosine"
    differences = {r["engine"]: r["difference"] for r in rows}
    head = [f"{threads} thread{'s' * (threads > 1)}"]
    for label in rows[0]["case"].labels:
        head += [label, f"{base} is faster by"]
    return ([[*head, f"largest difference from {base}{kind}"],
             *([name, *cells, differences[name]] for name, cells in lines.items())],
            range(1, len(head) + 1))
