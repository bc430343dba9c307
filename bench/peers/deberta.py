#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A layer of DeBERTa v3 base's size by encore and its peers, in turns: milliseconds, and how many
times as long as encore a peer takes.

    tools/python_env.sh peers
    .deps/venv/bin/python bench/peers/deberta.py --encore build/release/bin/encore --threads 1

The peers compute transformers' DebertaV2Layer: PyTorch as it is, ONNX Runtime and OpenVINO what
torch.onnx and openvino.convert_model make of it. int8 is onnxruntime's dynamic quantisation and
nncf's static one, the rest in f32 or bf16, whichever is faster. Relative positions and the normed
table are constants for all of them, as a model makes them once for its layers. Each output is
compared with the same layer in float64 first. encore's is `encore bench --workload
deberta_base_...`, which compares its own with the definition in double precision.
"""
import argparse
import copy
import json
import pathlib
import statistics
import sys
import tempfile
import warnings

import peer_process
import remote

PEERS = {"torch": ("f32",), "onnxruntime": ("f32", "int8"), "openvino": ("f32", "int8")}
# As reference.py allows.
MAX_RMS_ERROR = {"f32": 1e-5, "int8": 0.15}
CALIBRATION_INPUTS = 8


def make_layer(batch, seq):
    """(x [B, S, D] -> [B, S, D] as a module, x)."""
    import torch
    from transformers import DebertaV2Config
    from transformers.models.deberta_v2 import modeling_deberta_v2 as deberta
    torch.manual_seed(1)
    config = DebertaV2Config(
        hidden_size=768, num_hidden_layers=1, num_attention_heads=12, intermediate_size=3072,
        relative_attention=True, share_att_key=True, position_buckets=256,
        norm_rel_ebd="layer_norm", pos_att_type=["p2c", "c2p"], max_position_embeddings=512,
        initializer_range=0.05)
    model = deberta.DebertaV2Model(config).eval()

    class Layer(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = model.encoder.layer[0]
            positions = model.encoder.get_rel_pos(torch.zeros(batch, seq, 1))
            self.register_buffer("positions", positions)
            self.register_buffer("table", model.encoder.get_rel_embedding().detach())
            self.register_buffer("mask", torch.ones(batch, 1, seq, seq, dtype=torch.bool))

        def forward(self, x):
            return self.layer(x, self.mask, relative_pos=self.positions,
                              rel_embeddings=self.table)[0]

    return Layer().eval(), torch.randn(batch, seq, 768)


def torch_call(layer, x, args):
    del args
    import torch
    return lambda: layer(x).numpy(), torch.__version__.split("+")[0]


def onnxruntime_call(layer, x, args):
    import onnxruntime
    import torch
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder, "layer.onnx"))
        torch.onnx.export(layer, (x,), path, input_names=["x"], output_names=["y"],
                          opset_version=17, dynamo=False)
        if args.precision == "int8":
            from onnxruntime import quantization
            float_path, path = path, str(pathlib.Path(folder, "int8.onnx"))
            quantization.quantize_dynamic(
                float_path, path, per_channel=True, reduce_range=False,
                weight_type=quantization.QuantType.QInt8)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.intra_op_num_threads = args.threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {"x": x.numpy()}
    return lambda: session.run(None, feed)[0], onnxruntime.__version__


def openvino_call(layer, x, args):
    import openvino
    import torch
    model = openvino.convert_model(layer, example_input=x, input=[list(x.shape)])
    if args.precision == "int8":
        import nncf
        inputs = [torch.randn(*x.shape).numpy() for _ in range(CALIBRATION_INPUTS)]
        model = nncf.quantize(
            model, nncf.Dataset(inputs), preset=nncf.QuantizationPreset.MIXED,
            model_type=nncf.ModelType.TRANSFORMER, target_device=nncf.TargetDevice.CPU,
            subset_size=len(inputs), fast_bias_correction=True,
            advanced_parameters=nncf.AdvancedQuantizationParameters(
                overflow_fix=nncf.OverflowFix.DISABLE))

    given = x.numpy()

    def of(rest):
        compiled = openvino.Core().compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": args.threads,
            "ENABLE_CPU_PINNING": False, "INFERENCE_PRECISION_HINT": rest})
        request = compiled.create_infer_request()
        request.set_input_tensor(openvino.Tensor(given, shared_memory=True))

        def call(_kept=(given, layer)):  # whose memory the request reads
            request.infer()
            return request.get_output_tensor(0).data

        return call

    # What int8 leaves in floats may be bf16, the plugin's default where the machine has it.
    calls = [of(rest) for rest in (("f32", "bf16") if args.precision == "int8" else ("f32",))]
    fastest = min(calls, key=lambda call: min(peer_process.call_times(call, 0.1)))
    return fastest, openvino.get_version().split("-")[0]


def serve(args):
    """One peer in this process."""
    import numpy
    import torch
    warnings.filterwarnings("ignore")
    torch.set_num_threads(args.threads)
    mode = torch.no_grad()
    mode.__enter__()
    layer, x = make_layer(*map(int, args.size[0].split("x")))
    call, version = globals()[f"{args.one}_call"](layer, x, args)
    found = numpy.array(call(), dtype=numpy.float64)
    # Of a copy: OpenVINO keeps reading the layer's own memory.
    wanted = copy.deepcopy(layer).double()(x.double()).numpy()
    error = numpy.sqrt(numpy.square(found - wanted).mean() / numpy.square(wanted).mean())

    def answer(seconds):
        return statistics.median(peer_process.call_times(call, seconds))

    return {"version": version, "rms_error": float(error)}, answer


def encore_seconds(args, size, precision):
    """The median call of one run of `encore bench`."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "bench.json")
        done = remote.run(
            [args.encore, "bench", "--workload", f"deberta_base_{size}", "--warm", "--precision",
             precision, "--threads", str(args.threads), "--seconds", str(args.seconds), "--json",
             str(path)], remote.last_cores(args.threads), capture_output=True, text=True)
        if done.returncode != 0:
            raise SystemExit(f"deberta: {args.encore} bench: {done.stderr.strip()}")
        row, = json.loads(path.read_text(encoding="utf-8"))["rows"]
    return row["seconds"]["p50"]


def start(args, size, name, precision):
    cores = remote.last_cores(args.threads)
    peer = remote.Remote(
        f"{name} {precision}",
        [sys.executable, __file__, "--one", name, "--precision", precision, "--size", size,
         "--threads", str(args.threads)], cores,
        {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "OMP_NUM_THREADS": str(args.threads)})
    error = peer.ready["rms_error"]
    if not error <= MAX_RMS_ERROR[precision]:
        peer.close()
        raise SystemExit(f"deberta: {name} {precision} has an rms error of {error:.2g}; "
                         f"{MAX_RMS_ERROR[precision]} is allowed")
    return peer


def compare(args, size):
    """The lines of the table of one size."""
    peers = {(name, precision): start(args, size, name, precision)
             for name, precisions in PEERS.items() for precision in precisions}
    times = {}
    try:
        for _ in range(args.rounds):
            for precision in MAX_RMS_ERROR:
                times.setdefault(("encore", precision), []).append(
                    encore_seconds(args, size, precision))
            for key, peer in peers.items():
                times.setdefault(key, []).append(peer.ask(args.seconds))
    finally:
        for peer in peers.values():
            peer.close()
    for precision in MAX_RMS_ERROR:
        ours = times["encore", precision]
        cells = [f"{statistics.median(ours) * 1e3:.2f}"]
        for name in PEERS:
            if (name, precision) not in times:
                cells.append("")
                continue
            theirs = times[name, precision]
            ratio = statistics.median(t / o for t, o in zip(theirs, ours))
            cells.append(f"{statistics.median(theirs) * 1e3:.2f} ({ratio:.2f})")
        print(f"| {size} | {precision} | {args.threads} | {' | '.join(cells)} |", flush=True)
    print("rms errors: " + ", ".join(f"{name} {peer.ready['version']} {precision} "
                                     f"{peer.ready['rms_error']:.1g}"
                                     for (name, precision), peer in peers.items()),
          file=sys.stderr)


def main():
    parser = argparse.ArgumentParser(description="A layer of DeBERTa by encore and its peers.")
    parser.add_argument("--encore", default="encore", metavar="PROGRAM")
    parser.add_argument("--size", action="append", metavar="BxS", help="1x128, 8x128, 1x512")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn in a round")
    parser.add_argument("--one", choices=PEERS, help=argparse.SUPPRESS)  # what it runs itself as
    parser.add_argument("--precision", choices=MAX_RMS_ERROR, help=argparse.SUPPRESS)
    args = parser.parse_args()
    args.size = args.size or ["1x128", "8x128", "1x512"]
    if args.one:
        return remote.serve(lambda: serve(args))
    print("| B x S | precision | threads | encore, ms | " + " | ".join(PEERS) + " |")
    print("|---|---|---:|---:" + "|---:" * len(PEERS) + "|")
    for size in args.size:
        compare(args, size)
    return 0


if __name__ == "__main__":
    sys.exit(main())
