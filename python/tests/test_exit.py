# SPDX-License-Identifier: Apache-2.0
"""The interpreter ends while daemon threads are in calls that release the GIL: exit status 0, and
nothing on stderr."""

from __future__ import annotations

import pytest
from conftest import FOLDERS, LAYER_SHAPES, ROOT, run_python
from pyencore import _core

LAYER = "{name: rng.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}"
LATE = "m = opened('MultiVectorEncoder'); v = m.encode(['tea'] * 9)"

# By the name of each function of the compiled module that releases the GIL: what is made before,
# and the call.
CALLS = {
    "Model.__init__": ("", "opened('TextEncoder', threads=1)"),
    "Model.encode": ("m = opened('TextEncoder')", "m.encode(['tea'] * 9)"),
    "Model.prepare": ("m = opened('TextEncoder')", "m.prepare(99)"),
    "Model.encode_one": ("m = opened('TextEncoder')", "m.encode('tea')"),
    "Model.encode_ids": ("m = opened('TextEncoder')", "m.encode_ids([[2, 3]])"),
    "Model.encode_tokens": (
        "m = opened('TextEncoder')", "m.encode('tea', output_value='token_embeddings')"
    ),
    "Model.classify": ("m = opened('CrossEncoder')", "m.predict([('a', 'b')] * 9)"),
    "Model.encode_sparse": ("m = opened('SparseEncoder')", "m.encode(['tea'] * 9)"),
    "Model.entities": ("m = opened('TokenClassifier')", "m.predict(['tea'] * 9)"),
    "Model.label_tokens": ("m = opened('TokenClassifier')", "m.logits('tea')"),
    "Model.predict_tokens": ("m = opened('MaskedLanguageModel')", "m.logits('tea', [0])"),
    "LateModel.__init__": ("", "opened('MultiVectorEncoder', threads=1)"),
    "LateModel.prepare": ("m = opened('MultiVectorEncoder')", "m.prepare(99)"),
    "LateModel.encode": ("m = opened('MultiVectorEncoder')", "m.encode(['tea'] * 9)"),
    "LateModel.max_sim": (LATE, "m.similarity(v, v)"),
    "LateModel.max_sim_stored": (
        LATE + "\ns = pyencore.store_vectors(v, 'int8')", "m.similarity(v, s)"
    ),
    "ImageModel.__init__": ("", "opened('ImageEncoder', threads=1)"),
    "ImageModel.prepare": ("m = opened('ImageEncoder')", "m.prepare(99)"),
    "ImageModel.encode": (
        "m, x = opened('ImageEncoder'), np.zeros((9, 8, 8), np.uint8)",
        "m.encode(list(x), batch_size=4)",
    ),
    "ImageModel.classify": (
        "m, x = opened('ImageClassifier'), np.zeros((9, 8, 8), np.uint8)", "m.predict(list(x))"
    ),
    "ImageModel.encode_patches": (
        "m = opened('ImageEncoder')", "m.encode_patches(np.zeros((8, 8), np.uint8))"
    ),
    "store_vectors": ("v = [X[0]] * 99", "pyencore.store_vectors(v, 'bf16')"),
    "Tokenizer.open": ("", "opened('Tokenizer')"),
    "Tokenizer.encode": ("t = opened('Tokenizer')", "t.encode('tea ' * 99)"),
    "Tokenizer.encode_many": ("t = opened('Tokenizer')", "t.encode_batch_to_array(['tea'] * 99)"),
    "ArrayEncoder.__init__": (f"w = {LAYER}", "pyencore.Encoder(w, threads=1, **OPTIONS)"),
    "ArrayEncoder.forward": (f"e = pyencore.Encoder({LAYER}, **OPTIONS)", "e(X)"),
    "Linear.apply": ("p = ops.PackedLinear(X[0, :16])", "p(X[0])"),
    "ops_matmul": ("", "ops.matmul(X[0], X[0].T)"),
    "ops_attention": ("", "ops.attention(X, X, X)"),
} | {
    f"ops_{name}": ("", f"ops.{name}(X)")
    for name in ("exp", "tanh", "relu", "gelu", "gelu_tanh", "silu", "softmax")
}
# Those that keep the GIL, as they take next to no time.
QUICK = {
    "CallStats.__init__", "Stop.__init__", "Stop.clear", "Stop.is_set", "Stop.set",
    "Watch.__init__",
    "active_target", "check_image", "check_texts", "compiled_targets", "cores", "cores_reason",
    "set_target", "supported_targets", "ops_add", "ops_layer_norm", "ops_rms_norm",
    "Linear.__init__",
    "Tokenizer.token_to_id", "Tokenizer.id_to_token", "LateModel.has_own_length",
    "LateModel.max_length_of", "score_activation",
} | {
    f"{kind}.{name}"
    for kind in ("Model", "LateModel", "ImageModel", "Tokenizer", "ArrayEncoder", "Linear")
    for name in ("describe", "forget_after_fork")
} | {
    f"{kind}.{name}"
    for kind in ("Model", "LateModel", "ImageModel")
    for name in ("memory", "trim_memory")
}  # fmt: skip
# Functions of the caller's, which release the GIL themselves.
SLEEPING = {
    "progress": ("m = opened('TextEncoder')\ndef told(*_): time.sleep(0.01)",
                 "m.encode(['tea'] * 9, progress=told)"),
    "cancel": ("m = opened('TextEncoder')\nclass Event:\n    def is_set(self): time.sleep(0.01)",
               "m.encode(['tea'] * 9, cancel=Event())"),
}  # fmt: skip

PROGRAM = """
import sys, threading, time
import numpy as np
import pyencore
from pyencore import ops
seconds, threads = float(sys.argv[1]), int(sys.argv[2])
rng = np.random.default_rng(1)
X = rng.standard_normal((9, 64, 16), np.float32)
SHAPES, FOLDERS = ALL_SHAPES, ALL_FOLDERS
OPTIONS = {"num_heads": 4, "activation": "gelu"}
def opened(kind, **options):
    return getattr(pyencore, kind)(FOLDERS[kind], **options)
BEFORE
ready = threading.Barrier(threads + 1, timeout=50)
def work():
    CALL
    ready.wait()
    while True:
        CALL
for _ in range(threads):
    threading.Thread(target=work, daemon=True).start()
ready.wait()
time.sleep(seconds)
"""


def functions() -> set[str]:
    """Of the compiled module: its functions, and its classes' methods."""
    found = set()
    for name, value in vars(_core).items():
        if isinstance(value, type):
            found |= {
                f"{name}.{method}"
                for method, function in vars(value).items()
                if callable(function) and (not method.startswith("_") or method == "__init__")
            }
        elif callable(value):
            found.add(name)
    # What no program makes itself.
    return {name for name in found if not name.startswith("_")} - {"Tokenizer.__init__"}


def test_every_function_is_tried_or_quick() -> None:
    assert functions() <= set(CALLS) | QUICK
    assert set(CALLS) <= functions()


def test_one_place_releases_the_gil() -> None:
    files = {
        path.stem
        for path in (ROOT / "python/src").iterdir()
        if "gil_scoped" in path.read_text("utf-8") or "PyEval_" in path.read_text("utf-8")
    }
    assert files == {"without_gil", "without_gil_windows"}


@pytest.mark.parametrize("name", [*CALLS, *SLEEPING])
def test_exit_in_a_call(name: str) -> None:
    before, call = (CALLS | SLEEPING)[name]
    program = PROGRAM.replace("BEFORE", before).replace("CALL", call)
    folders = {kind: str(folder) for kind, folder in FOLDERS.items()}
    program = program.replace("ALL_SHAPES", repr(LAYER_SHAPES))
    program = program.replace("ALL_FOLDERS", repr(folders))
    for threads, seconds in ((1, 0.0), (3, 0.013)):
        done = run_python(program, str(seconds), str(threads))
        assert done.returncode == 0, (done.returncode, done.stderr)
        assert done.stderr == ""
