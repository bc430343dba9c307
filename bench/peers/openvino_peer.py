# SPDX-License-Identifier: Apache-2.0
"""OpenVINO as a peer: post-norm encoder blocks in f32, bf16 and static int8, on the CPU.

The graphs are written out with its operators, in the arrangements that can be the fastest (GRAPHS).
bf16 is its inference precision: weights and inputs stay f32 in the model. int8 is nncf's
post-training quantisation of the f32 model, with scales fixed by calibration data.
"""

import itertools
import math

import numpy
import openvino
from openvino import opset13 as op

import layers

VERSION = openvino.get_version().split("-")[0]
WAIT_POLICY = "TBB's (sleeps soon)"

# The projections before attention: one product and its parts, or three.
PROJECTION = ("packed", "separate")
# Attention: one operator, or two products around a softmax, which the plugin fuses.
ATTENTION = ("sdpa", "matmul")
# What int8 leaves unquantised: f32, or bf16, the plugin's default where the machine has it.
REST = ("f32", "bf16")
_ALL = tuple(f"{p}+{a}" for p, a in itertools.product(PROJECTION, ATTENTION))
GRAPHS = {"f32": _ALL, "bf16": _ALL,
          "int8": tuple(f"{graph}+{rest}" for graph, rest in itertools.product(_ALL, REST))}

# Calibration: so many tokens in all, but inputs between these numbers.
CALIBRATION_TOKENS = 4096
CALIBRATION_INPUTS = (4, 64)


class GraphWriter:
    """One block of the operators of an opset."""

    def __init__(self, workload, weights):
        self.workload = workload
        self.weights = weights  # by PyTorch's names

    def linear(self, value, prefix, rows=slice(None), weight="weight", bias="bias"):
        product = op.matmul(value, self.weights[prefix + weight][rows], False, True)
        return op.add(product, self.weights[prefix + bias][rows])

    def norm(self, value, name):
        centred = op.mvn(value, [-1], True, layers.EPSILON, "inside_sqrt")
        return op.add(op.multiply(centred, self.weights[f"{name}.weight"]),
                      self.weights[f"{name}.bias"])

    def heads(self, value, parts, axes):
        """[B, S, parts D] -> [B, H, S, D / H], or with the parts before it."""
        w = self.workload
        shape = [w.batch, w.seq, *([parts] if parts > 1 else []), w.heads, w.d_model // w.heads]
        return op.transpose(op.reshape(value, shape, False), axes)

    def projections(self, x, kind):
        """q, k, v [B, H, S, D / H]."""
        d = self.workload.d_model
        names = {"weight": "in_proj_weight", "bias": "in_proj_bias"}
        if kind == "packed":
            packed = self.heads(self.linear(x, "self_attn.", **names), 3, [2, 0, 3, 1, 4])
            return [op.squeeze(part, [0]) for part in op.split(packed, 0, 3).outputs()]
        return [self.heads(self.linear(x, "self_attn.", slice(i * d, (i + 1) * d), **names), 1,
                           [0, 2, 1, 3]) for i in range(3)]

    def attention(self, q, k, v, kind):
        """[B, S, D]: all of attention except the output projection."""
        w = self.workload
        if kind == "sdpa":
            context = op.scaled_dot_product_attention(q, k, v)
        else:
            scale = numpy.float32(1 / math.sqrt(w.d_model // w.heads))
            scores = op.multiply(op.matmul(q, k, False, True), scale)
            context = op.matmul(op.softmax(scores, -1), v, False, False)
        rows = op.transpose(context, [0, 2, 1, 3])
        return op.reshape(rows, [w.batch, w.seq, w.d_model], False)

    def block(self, x, arrangement):
        """[B, S, D] -> [B, S, D]."""
        projection, attention = arrangement.split("+")
        context = self.attention(*self.projections(x, projection), attention)
        y = self.norm(op.add(x, self.linear(context, "self_attn.out_proj.")), "norm1")
        hidden = self.linear(y, "linear1.")
        hidden = (op.gelu(hidden, "erf") if self.workload.activation == "gelu"
                  else op.relu(hidden))
        return self.norm(op.add(y, self.linear(hidden, "linear2.")), "norm2")

    def model(self, arrangement):
        w = self.workload
        x = op.parameter([w.batch, w.seq, w.d_model], numpy.float32, name="x")
        return openvino.Model([self.block(x, arrangement)], [x], "block")


def calibration_inputs(workload):
    """Drawn as the timed input is, with other seeds."""
    low, high = CALIBRATION_INPUTS
    count = min(max(CALIBRATION_TOKENS // (workload.batch * workload.seq), low), high)
    return [layers.random_input(workload, seed=1000 + i) for i in range(count)]


def quantized(model, inputs):
    """The model with static int8 products, as nncf's documentation has it for transformers.

    Preset MIXED: weights symmetric, a scale for each output channel; activations asymmetric, one
    scale and zero point for a whole tensor. model_type TRANSFORMER keeps what attention needs in
    floating point and smooths. The overflow fix, 7 bits for machines without VNNI, is off.
    """
    import nncf  # slow to load, and needed by int8 alone
    return nncf.quantize(
        model, nncf.Dataset(inputs), preset=nncf.QuantizationPreset.MIXED,
        model_type=nncf.ModelType.TRANSFORMER, target_device=nncf.TargetDevice.CPU,
        subset_size=len(inputs), fast_bias_correction=True,
        advanced_parameters=nncf.AdvancedQuantizationParameters(
            overflow_fix=nncf.OverflowFix.DISABLE))


class Request:
    """A model on the input x, ready to run again and again. hint: what floats are computed in."""

    def __init__(self, model, x, threads, hint):
        compiled = openvino.Core().compile_model(model, "CPU", {
            "PERFORMANCE_HINT": "LATENCY", "NUM_STREAMS": 1, "INFERENCE_NUM_THREADS": threads,
            # The caller binds the process to as many cores as threads.
            "ENABLE_CPU_PINNING": False,
            "INFERENCE_PRECISION_HINT": hint})
        self.x = x  # whose memory the request reads
        self.request = compiled.create_infer_request()
        self.request.set_input_tensor(openvino.Tensor(x, shared_memory=True))
        # Past a layer of Python, which copies the output and which a program in C++ would not have.
        self.run = super(openvino.InferRequest, self.request).infer

    def call(self):
        self.run({}, share_outputs=True, decode_strings=False)

    def output(self):
        """Of the last call."""
        return self.request.get_output_tensor(0).data


class Peer(Request):
    """A layer in one precision."""

    _quantized = {}  # nncf's work takes seconds: done once for each arrangement

    def __init__(self, workload, weights, x, threads, precision, graph):
        arrangement, hint = graph, precision
        if precision == "int8":
            arrangement, _, hint = graph.rpartition("+")
        model = self._quantized.get(arrangement)
        if model is None:
            model = GraphWriter(workload, weights).model(arrangement)
            if precision == "int8":
                model = quantized(model, calibration_inputs(workload))
                self._quantized[arrangement] = model
        super().__init__(model, x, threads, hint)
