# SPDX-License-Identifier: Apache-2.0
"""oneDNN as a peer, for the products of a layer alone: the one inside PyTorch, by the operators
that its compiler calls, with weights packed beforehand.

int8 is given its input quantised: unsigned, one scale for a whole tensor; weights are signed, with
a scale for each output channel; the output is f32.
"""

import re

import torch

import layers
import torch_peer

VERSION = (re.search(r"MKL-DNN v([\d.]+)", torch.__config__.show())[1] +
           f", of PyTorch {torch_peer.VERSION}")
WAIT_POLICY = torch_peer.WAIT_POLICY
GRAPHS = {precision: ("packed",) for precision in layers.PRECISIONS}


class Peer(layers.Products):
    def __init__(self, _workload, weights, x, threads, precision, _graph):
        torch.set_num_threads(threads)
        self.precision = precision
        super().__init__(weights, x)

    def product(self, x, weight, y):
        a, w = torch.from_numpy(x), torch.from_numpy(weight)
        if self.precision == "int8":
            return self.product_of_int8(a, w)
        a, w = (tensor.to(torch_peer.DTYPES[self.precision]) for tensor in (a, w))
        packed = torch.ops.mkldnn._reorder_linear_weight(w, len(a))
        return lambda: torch.ops.mkldnn._linear_pointwise(a, packed, None, "none", [], "")

    def product_of_int8(self, a, w):
        scale = float((a.max() - a.min()) / 255)
        zero = round(float(-a.min()) / scale)
        a = torch.clamp(torch.round(a / scale) + zero, 0, 255).to(torch.uint8)
        scales = w.abs().amax(dim=1) / 127
        w = torch.round(w / scales[:, None]).to(torch.int8)
        packed = torch.ops.onednn.qlinear_prepack(w, list(a.shape))
        zeros = torch.zeros(len(scales), dtype=torch.int64)
        return lambda: torch.ops.onednn.qlinear_pointwise(
            a, scale, zero, packed, scales, zeros, None, 1.0, 0, torch.float32, "none", [], "")

    def output(self):
        for (_, _, y), found in zip(self.arrays, self.returned):
            y[:] = found.float().numpy()
        return super().output()
