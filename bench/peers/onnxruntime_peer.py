# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime as a peer: post-norm encoder blocks of its fused operators, f32 and dynamic int8.

The graphs are written out with the operators that its transformer optimizer ends at, in every
arrangement that can be the fastest (GRAPHS); a caller takes the fastest on its machine. Weights are
initializers, so that the session packs them when it is made; input and output are bound once.
int8 is what onnxruntime.quantization makes of the same graphs. There is no bf16 on the CPU.
"""

import itertools
import logging
import pathlib
import tempfile

import numpy
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization

import layers

VERSION = onnxruntime.__version__
WAIT_POLICY = "spins (the default)"

# How attention gets its projections: "attention" multiplies by the packed [D, 3D] itself; the other
# two give MultiHeadAttention (which walks the keys in tiles) three products, or one and its parts.
ATTENTION = ("attention", "mha", "mha_split")
# How the other linear layers are written: "matmul" leaves biases to BiasGelu and
# SkipLayerNormalization; "gemm" begins from the bias, with the activation fused where it can be.
LINEAR = ("matmul", "gemm")
GRAPHS = {"f32": tuple(f"{a}+{b}" for a, b in itertools.product(ATTENTION, LINEAR)),
          # The quantizer takes MatMul and Attention; Gemm it would leave in f32.
          "int8": tuple(f"{a}+matmul" for a in ATTENTION)}

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
                        FUSED, epsilon=layers.EPSILON)

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
        shape = (self.workload.batch, self.workload.seq, self.workload.d_model)
        rows = (shape[0] * shape[1], shape[2])
        y = self.skip_norm(self.gemm(self.reshape(context, *rows), "self_attn.out_proj"),
                           self.reshape(x, *rows), "norm1")
        if self.workload.activation == "gelu":
            hidden = self.add("Gelu", [self.gemm(y, "linear1")], FUSED)
        else:
            hidden = self.gemm(y, "linear1", "FusedGemm", FUSED, activation="Relu")
        return self.reshape(self.skip_norm(self.gemm(hidden, "linear2"), y, "norm2"), *shape)

    def block(self, x, graph):
        """[B, S, D] -> [B, S, D]."""
        attention, linear = graph.split("+")
        context = self.attention(x, attention)
        return (self.rest_with_matmul if linear == "matmul" else self.rest_with_gemm)(context, x)


def make_model(workload, weights, graph):
    """A block as an ONNX model; x [B, S, D] -> y [B, S, D]."""
    writer = GraphWriter(workload, weights)
    writer.block("x", graph)
    writer.nodes[-1].output[0] = "y"
    shape = [workload.batch, workload.seq, workload.d_model]
    model = helper.make_model(
        helper.make_graph(
            writer.nodes, "block",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
            list(writer.initializers.values())),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(FUSED, 1)])
    model.ir_version = 8
    return model


def quantized(model):
    """The model with dynamic int8 products.

    Weights signed, symmetric, a scale for each output channel, of 8 bits, not 7 (reduce_range is
    for machines without VNNI); activations unsigned, one scale and zero point for a whole tensor,
    found at run time. Softmax, norms and activation stay f32. These are the quantizer's defaults
    except for per_channel.
    """
    logging.getLogger().setLevel(logging.ERROR)  # it recommends a step for models from exporters
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "int8.onnx")
        quantization.quantize_dynamic(
            model, path, per_channel=True, reduce_range=False,
            weight_type=quantization.QuantType.QInt8,
            # Of values whose shapes the quantizer cannot infer: outputs of fused operators.
            extra_options={"DefaultTensorType": TensorProto.FLOAT})
        return onnx.load(path)


class Session:
    """A model on the input x, ready to run again and again."""

    def __init__(self, model, x, threads):
        options = onnxruntime.SessionOptions()
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_ENABLE_ALL
        options.execution_mode = onnxruntime.ExecutionMode.ORT_SEQUENTIAL
        options.intra_op_num_threads = threads
        options.inter_op_num_threads = 1
        options.log_severity_level = 3
        options.add_session_config_entry("session.intra_op.allow_spinning", "1")
        self.session = onnxruntime.InferenceSession(model.SerializeToString(), options,
                                                    providers=["CPUExecutionProvider"])
        self.x = onnxruntime.OrtValue.ortvalue_from_numpy(x)
        self.y = onnxruntime.OrtValue.ortvalue_from_shape_and_type(x.shape, numpy.float32)
        self.binding = self.session.io_binding()
        self.binding.bind_ortvalue_input("x", self.x)
        self.binding.bind_ortvalue_output("y", self.y)
        self.run = self.session._sess.run_with_iobinding

    def call(self):
        # Past two layers of Python, which a program in C++ would not have.
        self.run(self.binding._iobinding, None)

    def output(self):
        """Of the last call."""
        return self.y.numpy()


class Peer(Session):
    """A layer in one precision."""

    def __init__(self, workload, weights, x, threads, precision, graph):
        model = make_model(workload, weights, graph)
        super().__init__(quantized(model) if precision == "int8" else model, x, threads)
