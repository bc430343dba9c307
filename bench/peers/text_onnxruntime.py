# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime behind HF's tokenizer, f32. An engine of text_to_vector.py.

The model is exported from PyTorch and goes through ONNX Runtime's own transformer optimizer, in two
ways: with attention written out, which it fuses whole, and as PyTorch's scaled dot product. The
faster on this machine is used.
"""

import contextlib
import io
import pathlib
import tempfile
import time

import onnxruntime
import torch
from onnxruntime.transformers import optimizer

import text_model_torch
import texts

NAME = "ONNX Runtime"

MUST_FUSE = ("BiasGelu", "SkipLayerNormalization")


def export(folder, attention, path):
    """Writes the optimized graph; returns what was fused."""
    config = texts.settings(folder)
    raw = f"{path}.raw"
    names = ("ids", "mask")
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        torch.onnx.export(text_model_torch.HiddenStates(folder, attention),
                          text_model_torch.EXAMPLE, raw, input_names=list(names),
                          output_names=["hidden"], opset_version=17, dynamo=False,
                          dynamic_axes={name: {0: "batch", 1: "tokens"}
                                        for name in (*names, "hidden")})
        model = optimizer.optimize_model(raw, "bert", num_heads=config["num_attention_heads"],
                                         hidden_size=config["hidden_size"], opt_level=1)
    model.save_model_to_file(str(path))
    fused = {name: count for name, count in model.get_fused_operator_statistics().items() if count}
    if not all(name in fused for name in MUST_FUSE):
        raise SystemExit(f"{NAME}: fused {fused} only, wanted {', '.join(MUST_FUSE)}")
    return fused


class Session(texts.TokenizedEngine):
    """One graph."""

    def __init__(self, folder, path, threads):
        super().__init__(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        self.session = onnxruntime.InferenceSession(str(path), options,
                                                    providers=["CPUExecutionProvider"])

    def hidden_states(self, ids, mask):
        return self.session.run(None, {"ids": ids, "mask": mask})[0]


def seconds_of(session, sample):
    """For one query at a time and for sentences together, so that both count."""
    best = []
    for _ in range(3):
        start = time.perf_counter()
        for text in sample:
            session.encode([text])
        session.encode(sample)
        best.append(time.perf_counter() - start)
    return min(best)


class Engine:
    """A model, ready to encode again and again."""

    def __init__(self, folder, threads):
        sample = texts.mixed_sentences(folder, texts.BATCH, seed=2)
        sessions, fused = {}, {}
        with tempfile.TemporaryDirectory() as work:
            for attention in ("eager", "sdpa"):
                path = pathlib.Path(work, f"{attention}.onnx")
                fused[attention] = export(folder, attention, path)
                sessions[attention] = Session(folder, path, threads)
        times = {name: seconds_of(session, sample) for name, session in sessions.items()}
        best = min(times, key=times.get)
        self.encode = sessions[best].encode
        self.version = f"{onnxruntime.__version__}, fused " + ", ".join(fused[best])
