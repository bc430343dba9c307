# SPDX-License-Identifier: Apache-2.0
"""The interpreter ends while daemon threads are in calls that release the GIL: exit status 0, and
nothing on stderr."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import DATA, ROOT
from pyencore import _core

SOURCES = str(Path(sys.modules["pyencore"].__file__ or "").parents[1])
LAYER = "{name: rng.standard_normal(shape, np.float32) for name, shape in SHAPES.items()}"

# By the name of each function of the compiled module that releases the GIL: what is made before,
# and the call.
CALLS = {
    "Model.__init__": ("", "pyencore.TextEncoder(DATA + '/text/base', threads=1)"),
    "Model.encode": ("m = pyencore.TextEncoder(DATA + '/text/base')", "m.encode(['tea'] * 9)"),
    "Model.encode_one": ("m = pyencore.TextEncoder(DATA + '/text/base')", "m.encode('tea')"),
    "Model.encode_ids": ("m = pyencore.TextEncoder(DATA + '/text/base')", "m.encode_ids([[2, 3]])"),
    "Model.encode_tokens": (
        "m = pyencore.TextEncoder(DATA + '/text/base')",
        "m.encode('tea', output_value='token_embeddings')",
    ),
    "Model.classify": (
        "m = pyencore.CrossEncoder(DATA + '/text/reranker')",
        "m.predict([('a', 'b')] * 9)",
    ),
    "Model.encode_sparse": (
        "m = pyencore.SparseEncoder(DATA + '/heads/splade_bert')",
        "m.encode(['tea'] * 9)",
    ),
    "Model.entities": (
        "m = pyencore.TokenClassifier(DATA + '/heads/ner_bert')",
        "m.predict(['tea'] * 9)",
    ),
    "Model.label_tokens": (
        "m = pyencore.TokenClassifier(DATA + '/heads/ner_bert')",
        "m.logits('tea')",
    ),
    "Model.predict_tokens": (
        "m = pyencore.MaskedLanguageModel(DATA + '/heads/splade_bert')",
        "m.logits('tea', [0])",
    ),
    "LateModel.__init__": ("", "pyencore.MultiVectorEncoder(DATA + '/late/stanford', threads=1)"),
    "LateModel.encode": (
        "m = pyencore.MultiVectorEncoder(DATA + '/late/stanford')",
        "m.encode(['tea'] * 9)",
    ),
    "LateModel.max_sim": (
        "m = pyencore.MultiVectorEncoder(DATA + '/late/stanford'); v = m.encode(['tea'] * 9)",
        "m.similarity(v, v)",
    ),
    "LateModel.max_sim_stored": (
        "m = pyencore.MultiVectorEncoder(DATA + '/late/stanford'); v = m.encode(['tea'] * 9)\n"
        "s = pyencore.store_vectors(v, 'int8')",
        "m.similarity(v, s)",
    ),
    "store_vectors": ("v = [X[0]] * 99", "pyencore.store_vectors(v, 'bf16')"),
    "Tokenizer.open": ("", "pyencore.Tokenizer(DATA + '/text/base')"),
    "Tokenizer.encode": ("t = pyencore.Tokenizer(DATA + '/text/base')", "t.encode('tea ' * 99)"),
    "Tokenizer.encode_many": (
        "t = pyencore.Tokenizer(DATA + '/text/base')",
        "t.encode_batch_to_array(['tea'] * 99)",
    ),
    "ArrayEncoder.__init__": (
        f"w = {LAYER}",
        "pyencore.Encoder(w, num_heads=4, activation='gelu', threads=1)",
    ),
    "ArrayEncoder.forward": (
        f"e = pyencore.Encoder({LAYER}, num_heads=4, activation='gelu')",
        "e(X)",
    ),
    "Linear.apply": ("p = ops.PackedLinear(X[0, :16])", "p(X[0])"),
    "ops_matmul": ("", "ops.matmul(X[0], X[0].T)"),
    "ops_attention": ("", "ops.attention(X, X, X)"),
} | {
    f"ops_{name}": ("", f"ops.{name}(X)")
    for name in ("exp", "tanh", "relu", "gelu", "gelu_tanh", "silu", "softmax")
}
# Those that keep the GIL, as they take next to no time.
QUICK = {
    "active_target", "check_texts", "compiled_targets", "cores", "cores_reason", "set_target",
    "supported_targets", "ops_add", "ops_layer_norm", "ops_rms_norm", "Linear.__init__",
    "Tokenizer.token_to_id", "Tokenizer.id_to_token", "LateModel.has_own_length",
    "LateModel.max_length_of", "score_activation",
} | {
    f"{kind}.{name}"
    for kind in ("Model", "LateModel", "Tokenizer", "ArrayEncoder", "Linear")
    for name in ("describe", "forget_after_fork")
}  # fmt: skip

PROGRAM = """
import sys, threading, time
import numpy as np
import pyencore
from pyencore import ops
DATA, seconds, threads = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
rng = np.random.default_rng(1)
X = rng.standard_normal((9, 64, 16), np.float32)
SHAPES = {
    "self_attn.in_proj_weight": (48, 16), "self_attn.in_proj_bias": (48,),
    "self_attn.out_proj.weight": (16, 16), "self_attn.out_proj.bias": (16,),
    "linear1.weight": (64, 16), "linear1.bias": (64,), "linear2.weight": (16, 64),
    "linear2.bias": (16,), "norm1.weight": (16,), "norm1.bias": (16,), "norm2.weight": (16,),
    "norm2.bias": (16,),
}
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
    assert files == {"without_gil"}


@pytest.mark.parametrize("name", CALLS)
def test_exit_in_a_call(name: str) -> None:
    before, call = CALLS[name]
    program = PROGRAM.replace("BEFORE", before).replace("CALL", call)
    environment = {**os.environ, "PYTHONPATH": SOURCES}
    for threads, seconds in ((1, 0.0), (3, 0.013)):
        done = subprocess.run(
            [sys.executable, "-c", program, str(DATA), str(seconds), str(threads)],
            capture_output=True,
            text=True,
            env=environment,
            timeout=60,
        )
        assert done.returncode == 0, (done.returncode, done.stderr)
        assert done.stderr == ""
