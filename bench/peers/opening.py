#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opening a model's folder: the time until it answers, and the memory that it takes, beside ONNX
Runtime, OpenVINO and sentence-transformers on PyTorch.

    tools/fetch_model.sh && tools/python_env.sh peers && .deps/venv/bin/pip install .
    .deps/venv/bin/python bench/peers/opening.py --markdown
    .deps/venv/bin/python bench/peers/opening.py --base --engine encore --engine cache  # base size

Each engine is opened in processes of its own, on as many cores as threads, after its modules were
imported and its files read once; figures are medians of the rounds. Milliseconds: opening, the
first call with one query, and a later one (the median of 20). MiB, of what was added since the
imports: resident memory after the calls, the part of it that the process has written and shares
with none (in the last round, where a second process has the model open), and the largest resident
memory until the first call was over. encore takes part by pyencore. `cache` is encore with a folder
of packed weights, there already; `written` the process that makes it; `int8` a folder that `encore
convert --precision int8` has made (--int8). `onnxruntime` and `openvino` run what PyTorch exports
of the model behind Hugging Face's tokenizer: its ONNX file, and OpenVINO's own files of that.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import compare
import remote
import texts

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "replay"))

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
ENGINES = ("encore", "written", "cache", "int8", "onnxruntime", "openvino",
           "sentence_transformers")
EXPORTED = ("onnxruntime", "openvino")  # they open what export() makes
LATER_CALLS = 20
INPUTS = ("input_ids", "attention_mask", "token_type_ids")
BASE = (768, 12, 3072, 12)  # BERT base's width, heads, inner width and layers


# ---- What is opened -----------------------------------------------------------------------------

def pooled(folder, run):
    """encode() around run(ids, mask, types), which gives hidden states: their mean, of length 1."""
    import numpy
    import tokenizers

    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()

    def encode():
        text = tokenizer.encode(texts.QUERY)
        mean = run(dict(zip(INPUTS, (numpy.array([of_text], numpy.int64) for of_text in (
            text.ids, text.attention_mask, text.type_ids)))))[0].mean(0)
        return mean / numpy.linalg.norm(mean)

    return encode


def opener(engine, args, folder):
    """A function that opens and returns encode(), after what it needs was imported."""
    if engine == "sentence_transformers":
        import torch
        from sentence_transformers import SentenceTransformer

        def open_model():
            torch.set_num_threads(args.threads)
            model = SentenceTransformer(str(folder), device="cpu",
                                        model_kwargs={"dtype": torch.float32})
            return lambda: model.encode([texts.QUERY], show_progress_bar=False)
    elif engine == "onnxruntime":
        import onnxruntime
        import tokenizers  # noqa: F401

        def open_model():
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = args.threads
            session = onnxruntime.InferenceSession(str(folder / "onnx/model.onnx"), options,
                                                   providers=["CPUExecutionProvider"])
            return pooled(folder, lambda inputs: session.run(None, inputs)[0])
    elif engine == "openvino":
        import openvino
        import tokenizers  # noqa: F401

        def open_model():
            request = openvino.Core().compile_model(
                folder / "onnx/model.xml", "CPU",
                {"INFERENCE_NUM_THREADS": args.threads, "INFERENCE_PRECISION_HINT": "f32",
                 "PERFORMANCE_HINT": "LATENCY"}).create_infer_request()
            return pooled(folder, lambda inputs: request.infer(inputs)[0])
    else:
        from pyencore import TextEncoder

        def open_model():
            model = TextEncoder(folder, threads=args.threads, cache=args.cache)
            return lambda: model.encode(texts.QUERY)

    return open_model


def export(args):
    """Prints a folder like that of the model which has it as ONNX and as OpenVINO's files too."""
    import openvino as runtime

    folder = pathlib.Path(texts.with_onnx(str(args.model)), "onnx")
    runtime.save_model(runtime.convert_model(folder / "model.onnx"), folder / "model.xml",
                       compress_to_fp16=False)
    print(folder.parent)
    return 0


# ---- In the process of one engine ---------------------------------------------------------------

def memory(key, file="smaps_rollup"):
    """MiB of this process, by a key of a file of /proc/self."""
    words = pathlib.Path("/proc/self", file).read_text(encoding="ascii").split()
    return int(words[words.index(key + ":") + 1]) / 1024


def serve(args):
    """Opens at once and reports; asked again, reports the memory that is its own alone."""
    def make():
        folder = args.int8 if args.as_engine == "int8" else args.model
        open_model = opener(args.as_engine, args, folder)
        # Not Private_Clean: of libraries that is shared once a second process has them too.
        before = {"rss": memory("Rss"), "private": memory("Private_Dirty")}
        # What importing took before can hide a peak.
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="ascii")

        def timed(work):
            start = time.perf_counter()
            done = work()
            return (time.perf_counter() - start) * 1e3, done

        opening, encode = timed(open_model)
        first, _ = timed(encode)
        peak = memory("VmHWM", "status")
        later = statistics.median(timed(encode)[0] for _ in range(LATER_CALLS))
        found = {"opening": opening, "first": first, "later": later,
                 "rss": memory("Rss") - before["rss"], "peak": peak - before["rss"]}

        def answer(*_):
            encode()  # the model is still there
            return {"private": memory("Private_Dirty") - before["private"]}

        return found, answer

    return remote.serve(make)


# ---- In the process that compares ---------------------------------------------------------------

def measure(args, name, model):
    """Medians of the rounds: a dict."""
    rounds = []
    with tempfile.TemporaryDirectory(prefix=".cache-", dir=args.work) as scratch:
        for turn in range(args.rounds + (name != "written")):  # the first reads the files
            cache = pathlib.Path(scratch, str(turn) if name == "written" else "cache")
            more = ["--cache", str(cache)] if name in ("cache", "written") else []
            command = [sys.executable, *sys.argv, "--as-engine", name, "--model", str(model),
                       *more]
            last = turn == args.rounds - (name == "written")
            one = [remote.Remote(name, command, remote.last_cores(args.threads),
                                 {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false",
                                  "OMP_NUM_THREADS": str(args.threads)}) for _ in range(1 + last)]
            rounds.append(one[0].ready)
            private = one[0].ask("private") if last else {}
            for engine in one:
                engine.close()
            if name == "cache" and turn == 0:
                time.sleep(2.1)  # weights younger than two seconds have no identity yet
    rounds = rounds[name != "written":]
    return private | {key: statistics.median(found[key] for found in rounds) for key in rounds[0]}


COLUMNS = {"opening": "opening, ms", "first": "first call, ms", "later": "later call, ms",
           "rss": "resident, MiB", "private": "its own, MiB", "peak": "peak, MiB"}


def table(found, markdown):
    from pyencore.lab.reports import table_text
    rows = [[name, *(f"{figures[key]:.{'ms' in title:d}f}" for key, title in COLUMNS.items())]
            for name, figures in found.items()]
    return table_text([["", *COLUMNS.values()], *rows], range(1, 7), markdown)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path, metavar="DIR",
                        default=ROOT / ".deps/models/all-MiniLM-L6-v2",
                        help="a BERT as sentence-transformers has it (default: %(default)s)")
    parser.add_argument("--base", action="store_true",
                        help="the same model with drawn weights of BERT base's sizes")
    parser.add_argument("--int8", type=pathlib.Path, metavar="DIR", help="the folder of `int8`")
    parser.add_argument("--engine", action="append", choices=ENGINES, metavar="NAME",
                        help="only these: " + " ".join(ENGINES))
    parser.add_argument("--threads", type=int, default=1, metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--work", type=pathlib.Path, default=ROOT / "build", metavar="DIR",
                        help="where temporary folders are made (default: %(default)s)")
    parser.add_argument("--markdown", action="store_true")
    parser.add_argument("--as-engine", help=argparse.SUPPRESS)
    parser.add_argument("--cache", type=pathlib.Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.engine = args.engine or [name for name in ENGINES if name != "int8" or args.int8]
    if min(args.threads, args.rounds) < 1:
        parser.error("--threads and --rounds must be above zero")
    if "int8" in args.engine and not args.int8:
        parser.error("--engine int8 needs --int8")
    return args


def main():
    args = parse_args()
    if args.as_engine:
        return export(args) if args.as_engine == "export" else serve(args)
    with tempfile.TemporaryDirectory(prefix=".opening-", dir=args.work) as scratch:
        if args.base:
            import replay_texts
            base = pathlib.Path(scratch, "base")
            replay_texts.write_folder(str(args.model), str(base), *BASE)
            args.model = base
        exported = None
        if set(EXPORTED) & set(args.engine):
            made = remote.run([sys.executable, *sys.argv, "--as-engine", "export", "--model",
                               str(args.model)], env={**os.environ, "TMPDIR": scratch},
                              stdout=subprocess.PIPE, text=True)
            if made.returncode != 0:
                raise SystemExit("opening: PyTorch and OpenVINO did not export the model")
            exported = pathlib.Path(made.stdout.split()[-1])
        try:
            found = {name: measure(args, name, exported if name in EXPORTED else args.model)
                     for name in args.engine}
        except remote.RemoteError as error:
            raise SystemExit(f"opening: {error}") from error
    print(f"cpu: {compare.cpu_name()}; model: {args.model.name}; threads: {args.threads}; "
          f"rounds: {args.rounds}\n")
    print(table(found, args.markdown))
    return 0


if __name__ == "__main__":
    sys.exit(main())
