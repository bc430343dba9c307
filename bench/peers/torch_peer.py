# SPDX-License-Identifier: Apache-2.0
"""PyTorch as a peer: post-norm encoder blocks in f32 and bf16, eager, on the CPU.

bf16 is model.to(torch.bfloat16), with input and output in bf16 too; the input is converted before
the clock starts. Nothing is compiled: what users of the module get.
"""

import torch
from torch.nn import functional

import layers

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
        activation=workload.activation, layer_norm_eps=layers.EPSILON, batch_first=True)
    module.load_state_dict({name: torch.from_numpy(array.copy())
                            for name, array in weights.items()})
    return module.eval().to(dtype)


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
                                  *self.norm1, layers.EPSILON)
        hidden = functional.linear(self.activate(functional.linear(x, *self.wide)), *self.narrow)
        return functional.layer_norm(x + hidden, self.shape, *self.norm2, layers.EPSILON)


class Peer:
    """A layer in one precision."""

    def __init__(self, workload, weights, x, threads, precision, graph):
        torch.set_num_threads(threads)
        self.x, self.y = torch.from_numpy(x).to(DTYPES[precision]), None
        self.layer = make_module(workload, weights, DTYPES[precision])
        if graph == "functional":
            self.layer = Block(workload, self.layer)

    def call(self):
        self.y = self.layer(self.x)

    def output(self):
        """[B, S, D]."""
        return self.y.float().numpy()
