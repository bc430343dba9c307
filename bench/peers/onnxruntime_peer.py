# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a peer: a post-norm encoder block of its fused f32 operators, on the CPU.

The graphs are written out with the operators that its transformer optimizer ends at, in every
arrangement that can be the fastest (GRAPHS); a caller takes the fastest on its machine. Weights are
initializers, so that the session packs them when it is made; input and output are bound once.
Not here: other engines, the comparison (compare.py).
"""

import itertools
import time

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper

import blocks

NAME = "ONNX Runtime"
VERSION = onnxruntime.__version__
WAIT_POLICY = "spins (the default)"

# How attention gets its projections: "attention" multiplies by the packed [D, 3D] itself; the other
# two give MultiHeadAttention (which walks the keys in tiles) three products, or one and its parts.
ATTENTION = ("attention", "mha", "mha_split")
# How the other linear layers are written: "matmul" leaves biases to BiasGelu and
# SkipLayerNormalization; "gemm" begins from the bias, with the activation fused where it can be.
LINEAR = ("matmul", "gemm")
GRAPHS = tuple(f"{a}+{b}" for a, b in itertools.product(ATTENTION, LINEAR))

FUSED = "com.microsoft"


class GraphWriter:
    """Collects nodes and initializers; a method adds an operation and gives its output's name."""

    def __init__(self, workload, weights):
        self.workload = workload
        self.weights = weights  # by PyTorch's names
        self.nodes = []
        self.initializers = {}

    def constant(self, name, array):
        if name not in self.initializers:
            self.initializers[name] = numpy_helper.from_array(numpy.ascontiguousarray(array), name)
        return name

    def weight(self, name):
        """A vector, as it is."""
        return self.constant(name, self.weights[name])

    def transposed(self, name, rows=slice(None)):
        """A linear layer's [out, in] (or some rows of it) as the [in, out] that products take."""
        suffix = "" if rows == slice(None) else f".{rows.start}"
        return self.constant(name + suffix + ".T", self.weights[name][rows].T)

    def add(self, operator, inputs, domain="", outputs=1, **attributes):
        names = [f"{operator}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(operator, inputs, names, domain=domain, **attributes))
        return names[0] if outputs == 1 else names

    def reshape(self, value, *shape):
        name = "shape_" + "_".join(map(str, shape))
        return self.add("Reshape", [value, self.constant(name, numpy.array(shape, numpy.int64))])

    def attention(self, x, kind):
        """[B, S, D] -> [B, S, D]: all of attention except the output projection."""
        d, heads = self.workload.d_model, self.workload.heads
        bias = self.weight("self_attn.in_proj_bias")
        if kind == "attention":
            packed = self.transposed("self_attn.in_proj_weight")
            return self.add("Attention", [x, packed, bias], FUSED, num_heads=heads)
        if kind == "mha":
            parts = [self.add("MatMul", [x, self.transposed("self_attn.in_proj_weight",
                                                            slice(i * d, (i + 1) * d))])
                     for i in range(3)]
        else:
            product = self.add("MatMul", [x, self.transposed("self_attn.in_proj_weight")])
            sizes = self.constant("thirds", numpy.array([d, d, d], numpy.int64))
            parts = self.add("Split", [product, sizes], outputs=3, axis=-1)
        return self.add("MultiHeadAttention", parts + [bias], FUSED, num_heads=heads)

    def skip_norm(self, value, skip, norm, bias=None):
        """LayerNorm(value + bias + skip)."""
        inputs = [value, skip, self.weight(f"{norm}.weight"), self.weight(f"{norm}.bias")]
        return self.add("SkipLayerNormalization", inputs + ([self.weight(bias)] if bias else []),
                        FUSED, epsilon=blocks.EPSILON)

    def product(self, value, name):
        return self.add("MatMul", [value, self.transposed(f"{name}.weight")])

    def gemm(self, value, name, operator="Gemm", domain="", **attributes):
        return self.add(operator, [value, self.transposed(f"{name}.weight"),
                                   self.weight(f"{name}.bias")], domain, **attributes)

    def rest_with_matmul(self, context, x):
        """From attention's context and the block's input to the block's output, all [B, S, D]."""
        y = self.skip_norm(self.product(context, "self_attn.out_proj"), x, "norm1",
                           "self_attn.out_proj.bias")
        hidden = self.product(y, "linear1")
        if self.workload.activation == "gelu":
            hidden = self.add("BiasGelu", [hidden, self.weight("linear1.bias")], FUSED)
        else:
            hidden = self.add("Relu", [self.add("Add", [hidden, self.weight("linear1.bias")])])
        return self.skip_norm(self.product(hidden, "linear2"), y, "norm2", "linear2.bias")

    def rest_with_gemm(self, context, x):
        """The same with rows [B S, D], which is what Gemm takes."""
        rows = (self.workload.batch * self.workload.seq, self.workload.d_model)
        y = self.skip_norm(self.gemm(self.reshape(context, *rows), "self_attn.out_proj"),
                           self.reshape(x, *rows), "norm1")
        if self.workload.activation == "gelu":
            hidden = self.add("Gelu", [self.gemm(y, "linear1")], FUSED)
        else:
            hidden = self.gemm(y, "linear1", "FusedGemm", FUSED, activation="Relu")
        return self.skip_norm(self.gemm(hidden, "linear2"), y, "norm2")


def make_model(workload, weights, graph):
    """The block as an ONNX model, serialized; x [B, S, D] -> y [B, S, D] or [B S, D]."""
    attention, linear = graph.split("+")
    writer = GraphWriter(workload, weights)
    context = writer.attention("x", attention)
    last = (writer.rest_with_matmul if linear == "matmul" else writer.rest_with_gemm)(context, "x")
    writer.nodes[-1].output[0] = "y"
    shape = [workload.batch, workload.seq, workload.d_model]
    out_shape = shape if linear == "matmul" else [shape[0] * shape[1], shape[2]]
    assert last != "y"
    model = helper.make_model(
        helper.make_graph(
            writer.nodes, "encoder_block",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, out_shape)],
            list(writer.initializers.values())),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)])
    model.ir_version = 8
    return model.SerializeToString(), out_shape


class Peer:
    """One block, ready to run again and again."""

    def __init__(self, workload, weights_path, x, threads, graph):
        weights, _ = blocks.read_safetensors(weights_path)
        model, out_shape = make_model(workload, weights, graph)
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.enable_cpu_mem_arena = True
        options.enable_mem_pattern = True
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        self.session = onnxruntime.InferenceSession(model, options,
                                                    providers=["CPUExecutionProvider"])
        self.x = onnxruntime.OrtValue.ortvalue_from_numpy(x)
        self.y = onnxruntime.OrtValue.ortvalue_from_shape_and_type(out_shape, numpy.float32)
        self.binding = self.session.io_binding()
        self.binding.bind_ortvalue_input("x", self.x)
        self.binding.bind_ortvalue_output("y", self.y)
        self.shape = x.shape

    def output(self):
        """y [B, S, D] of one run."""
        self.session.run_with_iobinding(self.binding)
        return self.y.numpy().reshape(self.shape)

    def times(self, seconds):
        """Seconds of each of many runs, for about so long; one run before them is not counted."""
        # Past two layers of Python, which a program in C++ would not have.
        run, binding = self.session._sess.run_with_iobinding, self.binding._iobinding
        clock = time.perf_counter_ns
        run(binding, None)
        samples = []
        end = clock() + int(seconds * 1e9)
        while True:
            start = clock()
            run(binding, None)
            stop = clock()
            samples.append(stop - start)
            if stop >= end:
                return [sample * 1e-9 for sample in samples]
