# SPDX-License-Identifier: Apache-2.0
"""encore as a peer, by pyencore: layers, products alone (f32) and whole models from token ids."""

import functools
import itertools

import numpy
import pyencore
from pyencore import ops

import layers

VERSION = pyencore.__version__
WAIT_POLICY = "sleeps (the default)"
GRAPHS = {precision: tuple(layers.VARIANTS) for precision in layers.PRECISIONS}


def isa(_limit):
    """The SIMD target."""
    return pyencore.active_target()


class Layer:
    def __init__(self, workload, weights, x, precision, **options):
        encoder = pyencore.Encoder(
            weights, norm_first=False, num_heads=workload.heads, activation=workload.activation,
            layer_norm_eps=layers.EPSILON, compute=precision, **options)
        rows = numpy.ascontiguousarray(x.reshape(-1, workload.d_model))
        starts = list(itertools.accumulate([workload.seq] * workload.batch, initial=0))
        y = numpy.empty_like(rows)
        # Past a layer of Python, as with the other engines.
        self.call = functools.partial(encoder._core.forward, rows, starts, [], False, None, None, y,
                                      [], [])
        self.output = lambda: y.reshape(x.shape)


class Linears(layers.Products):
    def __init__(self, weights, x, threads):
        self.threads = threads
        super().__init__(weights, x)

    def product(self, x, weight, y):
        return functools.partial(ops.PackedLinear(weight, threads=self.threads)._core.apply, x, y)


class Model:
    def __init__(self, folder, ids, threads, precision):
        model = pyencore.TextEncoder(folder, compute=precision, threads=threads, pooling="mean",
                                     normalize=False)
        self.call = self.output = functools.partial(model.encode_ids, ids.tolist())


def Peer(workload, weights, x, threads, precision, variant):
    """As the adapters' classes."""
    if workload.kind == "products":
        return Linears(weights, x, threads)
    if workload.kind == "model":
        return Model(weights, x, threads, precision)
    options = {"threads": threads, **layers.VARIANTS[variant]}
    return Layer(workload, weights, x, precision, **options)
