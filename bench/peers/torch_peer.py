# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a peer: post-norm encoder blocks in f32 and bf16, eager, on the CPU.

bf16 is model.to(torch.bfloat16), with input and output in bf16 too; the input is converted before
the clock starts. Nothing is compiled: what users of the module get.
"""

import collections
import os
import tempfile

import torch
from torch.nn import functional

import blocks

NAME = "PyTorch"
VERSION = torch.__version__.split("+")[0]
WAIT_POLICY = "spins for a while (libgomp's default)"

# "module": nn.TransformerEncoderLayer on its fast path. "functional": the same of linear,
# scaled_dot_product_attention (which walks the keys in tiles) and layer_norm.
GRAPHS = {precision: ("module", "functional") for precision in ("f32", "bf16")}
DTYPES = {"f32": torch.float32, "bf16": torch.bfloat16}

# For good: a process has one peer, and entering it for each call costs a microsecond.
_MODE = torch.inference_mode()
_MODE.__enter__()


def make_module(workload, weights, dtype):
    module = torch.nn.TransformerEncoderLayer(
        workload.d_model, workload.heads, workload.d_ff, dropout=0.0,
        activation=workload.activation, layer_norm_eps=blocks.EPSILON, batch_first=True)
    module.load_state_dict({name: torch.from_numpy(array.copy())
                            for name, array in weights.items()})
    return module.eval().to(dtype)


def primitives(call):
    """Those of oneDNN that a call runs, with their number."""
    with tempfile.TemporaryFile("w+") as log:
        stdout = os.dup(1)
        os.dup2(log.fileno(), 1)
        try:
            with torch.backends.mkldnn.verbose(torch.backends.mkldnn.VERBOSE_ON):
                call()
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
        log.seek(0)
        fields = [line.split(",") for line in log]
    # onednn_verbose,v1,primitive,exec,cpu,<operation>,<kernel>,...
    counts = collections.Counter(
        f"{found[i + 2]} {found[i + 3]}" for found in fields if "exec" in found
        for i in [found.index("exec")])
    return [f"{count} {name}" for name, count in counts.items()]


class Block:
    """A layer as functions of the module's tensors; x [B, S, D] -> [B, S, D]."""

    def __init__(self, workload, module):
        self.heads, self.shape = workload.heads, (workload.d_model,)
        self.activate = functional.gelu if workload.activation == "gelu" else functional.relu
        attention = module.self_attn
        self.projection = attention.in_proj_weight, attention.in_proj_bias
        self.out = attention.out_proj.weight, attention.out_proj.bias
        self.wide = module.linear1.weight, module.linear1.bias
        self.narrow = module.linear2.weight, module.linear2.bias
        self.norm1 = module.norm1.weight, module.norm1.bias
        self.norm2 = module.norm2.weight, module.norm2.bias

    def __call__(self, x):
        b, s, d = x.shape
        qkv = functional.linear(x, *self.projection).view(b, s, 3, self.heads, d // self.heads)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        context = functional.scaled_dot_product_attention(q, k, v)
        context = context.transpose(1, 2).reshape(b, s, d)
        x = functional.layer_norm(x + functional.linear(context, *self.out), self.shape,
                                  *self.norm1, blocks.EPSILON)
        hidden = functional.linear(self.activate(functional.linear(x, *self.wide)), *self.narrow)
        return functional.layer_norm(x + hidden, self.shape, *self.norm2, blocks.EPSILON)


class Peer:
    """So many blocks of one precision, ready to run again and again."""

    def __init__(self, workload, weights, x, threads, precision, graph, layers):
        torch.set_num_threads(threads)
        self.x = torch.from_numpy(x).to(DTYPES[precision])
        self.y = None
        self.layers = [make_module(workload, weights, DTYPES[precision]) for _ in range(layers)]
        if graph == "functional":
            self.layers = [Block(workload, layer) for layer in self.layers]

    def call(self):
        y = self.x
        for layer in self.layers:
            y = layer(y)
        self.y = y

    def output(self):
        """y [B, S, D] of the last call."""
        return self.y.float().numpy()

    def explain(self):
        """The capability of its own kernels, and the oneDNN primitives of one call."""
        return [f"own kernels: {torch.backends.cpu.get_cpu_capability()}",
                *(primitives(self.call) or ["no oneDNN: products by MKL"])]
