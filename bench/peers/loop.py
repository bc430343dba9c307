# SPDX-License-Identifier: Apache-2.0
"""One sentence of 17 words in each frame of a loop: `encore bench --loop`, from its characters, and
ONNX Runtime's C++ interface, from its ids. Both to the vector, in f32, in the same frames.

    tools/setup.sh --peers
    .deps/venv/bin/python bench/peers/compare.py loop --threads 1 2 [--hz 60] [--encore BINARY]

Each turn is a process that opens the model and keeps the loop for --seconds. "control" is integer
work of 0.5 ms in the same frames: its p99 is the machine's doing. Ratios are of p99. The graph is
what PyTorch exports, after ONNX Runtime's own optimizations. `chrt -f 50` in front keeps other
processes away.
"""

import json
import pathlib
import subprocess
import sys
import types

import compare
import remote
import texts

ROOT = texts.ROOT
ENGINES_ACROSS = False
HEADERS = ROOT / ".deps/onnxruntime/include"
SENTENCE = ("The engineer measured the small pump twice before breakfast because nobody else would "
            "trust the old gauge.")
LABELS = {"call": (1, "texts"), "control": (1, "frames")}


# ---- In an engine's process ---------------------------------------------------------------------

def said(command):
    done = remote.run([str(part) for part in command], stdout=subprocess.PIPE,
                      stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise RuntimeError(f"{pathlib.Path(command[0]).name}: {done.stderr[-300:]}")
    return done.stdout


def encore_turn(job):
    sentence = pathlib.Path(job["folder"], "sentence.txt")
    sentence.write_text(SENTENCE + "\n", "utf-8")

    def run():
        row = json.loads(said([
            job["program"], "bench", "--model", job["model"], "--texts", sentence, "--loop",
            job["hz"], "--seconds", job["frames"] / job["hz"], "--threads", job["threads"],
            "--precision", "f32", "--format", "json"]))["rows"][0]
        loop, part = row["loop"], {"calls": row["calls"], "slots": row["slots"]}
        return ({"call": {"seconds": row["seconds"], **part},
                 "control": {"seconds": loop["control"], **part}}, loop)

    return run


def onnxruntime_turn(job):
    import onnxruntime
    from tokenizers import Tokenizer

    model = pathlib.Path(texts.with_onnx(job["model"]), "onnx/model.onnx")
    program = pathlib.Path(job["folder"], "loop_onnx")
    library = next(pathlib.Path(onnxruntime.__file__).parent.glob("capi/libonnxruntime.so.*"))
    pathlib.Path(program.parent, "libonnxruntime.so.1").symlink_to(library)
    said(["c++", "-std=c++20", "-O2", "-I", ROOT, "-I", ROOT / "include", "-isystem", HEADERS,
          *(ROOT / file for file in ("bench/peers/loop_onnx.cc", "bench/measure/frames.cc",
                                     "tools/encore/allocations.cc")),
          library, f"-Wl,-rpath,{program.parent}", "-o", program])
    tokenizer = Tokenizer.from_file(str(pathlib.Path(job["model"], "tokenizer.json")))
    tokenizer.no_padding()
    ids = tokenizer.encode(SENTENCE).ids

    def run():
        found = json.loads(said([program, model, job["hz"], job["frames"], job["threads"], *ids]))
        run.vector = found["vector"]
        return ({"call": remote.summary(found["calls"]),
                 "control": remote.summary(found["control"])}, found)

    return run


def opened(job):
    import numpy

    run = encore_turn(job) if job["engine"] == "encore" else onnxruntime_turn(job)
    about, pending = {}, {}

    def turn(label):
        """A loop has both; whoever asks second is given what the first one's had."""
        if label not in pending:
            found, loop = run()
            pending.update(found)
            about["detail"] = (f"{loop['allocations']:.2f} allocations, {loop['minor_faults']:.2f} "
                               f"faults, {loop['voluntary_switches']:.1f} switches a frame")
        return pending.pop(label)

    def vector():
        if job["engine"] != "encore":
            return numpy.asarray([run.vector], numpy.float32)
        import pyencore
        return numpy.asarray(pyencore.TextEncoder(job["model"]).encode([SENTENCE]))

    return types.SimpleNamespace(
        calls={label: (lambda label=label: turn(label)) for label in LABELS}, output=vector,
        about=about)


# ---- In the process that compares ---------------------------------------------------------------

def add_options(parser):
    parser.add_argument("--model", type=pathlib.Path, metavar="FOLDER",
                        default=ROOT / ".deps/models/all-MiniLM-L6-v2")
    parser.add_argument("--encore", metavar="BINARY", default=ROOT / "build/release/bin/encore")
    parser.add_argument("--hz", type=int, default=60)
    parser.set_defaults(seconds=10.0)


def prepare(_case, _folder):
    pass


def cases(options):
    for threads in options.threads:
        yield compare.Case(f"{options.model.resolve().name}, {options.hz} Hz", threads, LABELS,
                           compared="p99")


def engines(options, _case):
    for name in ("encore", "onnxruntime"):
        yield {"engine": name, "precision": "f32", "model": str(options.model.resolve()),
               "program": str(options.encore), "hz": options.hz, "python": sys.executable,
               "frames": max(remote.CALLS_FOR_P99, int(options.seconds * options.hz)),
               "whole_turns": True, "is_base": name == "encore"}


def difference(_options, _engine, found, wanted):
    largest = abs(found - wanted).max()
    return f"{largest:.1e}", None if largest < 1e-5 else f"its vector differs by {largest:.1e}"


def table(rows):
    head = [f"{rows[0]['threads']} thread{'s' * (rows[0]['threads'] > 1)}", "p50 ms", "p99 ms",
            "max ms", "p99 over encore's", "control: p50 / p99 ms", "of the call"]
    lines = {r["engine"]: r for r in rows if r["label"] == "call"}
    control = {r["engine"]: r["seconds"] for r in rows if r["label"] == "control"}
    return ([head, *([name, *(f"{1e3 * r['seconds'][key]:.3f}" for key in ("p50", "p99", "max")),
                      compare.ratio_text(r["ratios"].get("encore")),
                      f"{1e3 * control[name]['p50']:.3f} / {1e3 * control[name]['p99']:.3f}",
                      r["detail"]] for name, r in lines.items())], range(1, 6))
