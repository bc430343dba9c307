# SPDX-License-Identifier: Apache-2.0
"""encore as a peer, by pyencore: blocks, products alone (f32) and whole models from token ids.

"""

import functools
import itertools

import numpy
import pyencore
from pyencore import ops

import blocks
import products

NAME = "encore"
VERSION = pyencore.__version__
WAIT_POLICY = "sleeps (the default)"
# Ways to compute and to wait, each of which has rows of its own: options of pyencore.Encoder.
SPIN, AMX_BF16 = {"idle_spin": 10000}, {"amx_bf16": True}
VARIANTS = {"encore": {}, "encore --idle-spin 10000": SPIN, "encore --amx-bf16": AMX_BF16,
            "encore --amx-bf16 --idle-spin 10000": {**AMX_BF16, **SPIN}}
GRAPHS = {precision: tuple(VARIANTS) for precision in ("f32", "bf16", "int8")}


# Precisions that it has products alone and whole models in.
OF_KIND = {"products": ("f32",), "model": ("f32", "int8")}


def variants(kind, precision, threads, target):
    """Names of those that differ here."""
    if kind != "block":
        return [NAME] if precision in OF_KIND[kind] else []
    amx = precision == "bf16" and (target or pyencore.supported_targets()[0]) == "AMX"
    return [name for name, options in VARIANTS.items()
            if (amx or "amx_bf16" not in options) and (threads > 1 or "idle_spin" not in options)]


def target_without_amx():
    """"" where that is the best of all."""
    best, *others = pyencore.supported_targets()
    return others[0] if best == "AMX" else ""


def isa(_limit):
    """The SIMD target."""
    return pyencore.active_target()


class Blocks:
    """So many layers, each with weights of its own."""

    def __init__(self, workload, weights, x, threads, precision, layers, options):
        tensors = {f"layers.{i}.{name}": array for i in range(layers)
                   for name, array in weights.items()}
        encoder = pyencore.Encoder(tensors, num_heads=workload.heads, norm_first=False,
                                   activation=workload.activation, compute=precision,
                                   layer_norm_eps=blocks.EPSILON, threads=threads, **options)
        rows = numpy.ascontiguousarray(x.reshape(-1, workload.d_model))
        starts = list(itertools.accumulate([workload.seq] * workload.batch, initial=0))
        self.y = numpy.empty_like(rows)
        # Past a layer of Python, as with the other engines.
        self.call = functools.partial(encoder._core.forward, rows, starts, [], False, None, None,
                                      self.y, [], [])
        self.shape = x.shape

    def output(self):
        """y [B, S, D] of the last call."""
        return self.y.reshape(self.shape)


class Linears(products.Products):
    """Its products."""

    def __init__(self, weights, x, threads, layers):
        self.threads = threads
        super().__init__(weights, x, layers)

    def product(self, x, weight, y):
        return functools.partial(ops.PackedLinear(weight, threads=self.threads)._core.apply, x, y)


class Model:
    """A folder's model."""

    def __init__(self, folder, ids, threads, precision):
        model = pyencore.TextEncoder(folder, compute=precision, threads=threads, pooling="mean",
                                     normalize=False)
        self.call_model = functools.partial(model.encode_ids, ids.tolist())
        self.y = None

    def call(self):
        self.y = self.call_model()

    def output(self):
        """[B, D]: the mean over the tokens of the last call."""
        return self.y


def Peer(workload, weights, x, threads, precision, variant, layers):
    """As the adapters' classes."""
    if workload.kind == "products":
        return Linears(weights, x, threads, layers)
    if workload.kind == "model":
        return Model(weights, x, threads, precision)
    return Blocks(workload, weights, x, threads, precision, layers, VARIANTS[variant])
