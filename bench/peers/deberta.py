# SPDX-License-Identifier: Apache-2.0
"""A layer of DeBERTa v3 base's size.

    .deps/venv/bin/python bench/peers/compare.py deberta --encore PROGRAM --markdown

The peers compute transformers' DebertaV2Layer: PyTorch as it is, ONNX Runtime and OpenVINO what
torch.onnx and openvino.convert_model make of it. int8 is onnxruntime's dynamic quantisation and
nncf's static one, the rest in f32 or bf16, whichever is faster. Relative positions and the normed
table are constants for all of them, as a model makes them once for its layers. Each output is
compared with the same layer in float64. encore's is `encore bench --workload deberta_base_...`,
which compares its own with the definition in double precision.
"""

import contextlib
import io
import json
import pathlib
import subprocess
import types
import warnings

import compare
import layers
import remote

ENGINES_ACROSS = True
PEERS = {"torch": ("f32",), "onnxruntime": ("f32", "int8"), "openvino": ("f32", "int8")}
CALIBRATION_INPUTS = 8

difference = layers.difference


def make_layer(size):
    """(x [B, S, D] -> [B, S, D] as a module, x)."""
    import torch
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta
    batch, seq = map(int, size.split("x"))
    torch.manual_seed(1)
    config = DebertaV2Config(
        hidden_size=768, num_hidden_layers=1, num_attention_heads=12, intermediate_size=3072,
        relative_attention=True, share_att_key=True, position_buckets=256,
        norm_rel_ebd="layer_norm", pos_att_type=["p2c", "c2p"], max_position_embeddings=512,
        initializer_range=0.05)
    model = deberta.DebertaV2Model(config).eval().requires_grad_(False)

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = model.encoder.layer[0]
            positions = model.encoder.get_rel_pos(torch.zeros(batch, seq, 1))
            self.register_buffer("positions", positions)
            self.register_buffer("table", model.encoder.get_rel_embedding())
            self.register_buffer("mask", torch.ones(batch, 1, seq, seq, dtype=torch.bool))

        def forward(self, x):
            return self.layer(x, self.mask, relative_pos=self.positions,
                              rel_embeddings=self.table)[0]

    return Layer().eval(), torch.randn(batch, seq, 768)


def prepare(case, folder):
    import numpy
    layer, x = make_layer(case.name)
    numpy.save(folder / "wanted.npy", layer.double()(x.double()).numpy())


# ---- In an engine's process ---------------------------------------------------------------------

def torch_peer(job, layer, x):
    import torch
    torch.set_num_threads(job["threads"])
    return torch.__version__.split("+")[0], types.SimpleNamespace(call=lambda: layer(x),
                                                    output=lambda: layer(x).numpy())


def onnxruntime_peer(job, layer, x):
    import onnx
    import onnxruntime_peer as peer
    import torch
    file = io.BytesIO()
    torch.onnx.export(layer, (x,), file, input_names=["x"], output_names=["y"], opset_version=17,
                      dynamo=False)
    model = onnx.load_from_string(file.getvalue())
    if job["precision"] == "int8":
        model = peer.quantized(model)
    return peer.VERSION, peer.Session(model, x.numpy(), job["threads"])


def openvino_peer(job, layer, x):
    import openvino
    import openvino_peer as peer
    import torch
    model, hints = openvino.convert_model(layer, example_input=x, input=[list(x.shape)]), ("f32",)
    if job["precision"] == "int8":
        inputs = [torch.randn(*x.shape).numpy() for _ in range(CALIBRATION_INPUTS)]
        # What int8 leaves in floats may be bf16, the plugin's default where the machine has it.
        model, hints = peer.quantized(model, inputs), ("f32", "bf16")
    requests = {hint: peer.Request(model, x.numpy(), job["threads"], hint) for hint in hints}
    request = requests[layers.fastest(requests, 0.1)]
    request.kept = layer  # whose memory it reads
    return peer.VERSION, request


def opened(job):
    if job["engine"] == "encore":
        return types.SimpleNamespace(calls={"": lambda: encore_seconds(job)}, output=None, about={})
    warnings.filterwarnings("ignore")
    layer, x = make_layer(job["size"])
    with contextlib.redirect_stdout(io.StringIO()):
        version, peer = globals()[f"{job['engine']}_peer"](job, layer, x)
    return types.SimpleNamespace(calls={"": peer.call}, output=peer.output,
                                 about={"version": version})


def encore_seconds(job):
    """The median call of one run of `encore bench`."""
    path = pathlib.Path(job["output"]).with_suffix(".report")
    remote.run([job["program"], "bench", "--workload", f"deberta_base_{job['size']}", "--warm",
                "--precision", job["precision"], "--threads", str(job["threads"]), "--seconds",
                str(job["seconds"]), "--json", str(path)],
               stdout=subprocess.DEVNULL).check_returncode()
    row, = json.loads(path.read_text("utf-8"))["rows"]
    return row["seconds"]["p50"]


# ---- In the process that compares ---------------------------------------------------------------

def add_options(parser):
    parser.set_defaults(rounds=3)
    parser.add_argument("--encore", default="encore", metavar="PROGRAM")
    parser.add_argument("--size", nargs="+", metavar="BxS", default=["1x128", "8x128", "1x512"])
    parser.add_argument("--peer", nargs="+", choices=PEERS, default=list(PEERS), metavar="NAME")


def cases(options):
    for size in options.size:
        for threads in options.threads:
            yield compare.Case(size, threads, {"": (1, "layer")})


def engines(options, case):
    for precision in ("f32", "int8"):
        yield {"engine": "encore", "precision": precision, "is_base": True, "timed": True,
               "least": 1, "size": case.name, "program": options.encore}
        for name in options.peer:
            if precision in PEERS[name]:
                yield {"engine": name, "precision": precision, "size": case.name}
