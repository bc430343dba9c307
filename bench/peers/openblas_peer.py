# SPDX-License-Identifier: Apache-2.0
"""OpenBLAS as a peer, for the products of a block alone: cblas_sgemm, which packs in each call.

"""

import ctypes
import functools
import importlib.metadata
import pathlib

import numpy
import scipy_openblas32

import products

NAME = "OpenBLAS"
VERSION = importlib.metadata.version("scipy-openblas32")
WAIT_POLICY = "spins for a while (its default)"
# How the weights lie: [N, K] as PyTorch has them, or transposed beforehand.
GRAPHS = {"f32": ("NxK", "KxN")}

# enum CBLAS_ORDER and CBLAS_TRANSPOSE of cblas.h.
ROW_MAJOR, NO_TRANS, TRANS = 101, 111, 112

_LIBRARY = ctypes.CDLL(str(pathlib.Path(
    scipy_openblas32.get_lib_dir(), f"lib{scipy_openblas32.get_library()}.so")))


class Peer(products.Products):
    """The products in f32."""

    def __init__(self, _workload, weights, x, threads, _precision, graph, layers):
        _LIBRARY.scipy_openblas_set_num_threads(threads)
        self.transposed = graph == "KxN"
        super().__init__(weights, x, layers)

    def product(self, x, weight, y):
        (m, k), n = x.shape, len(weight)
        if self.transposed:
            weight[:] = numpy.ascontiguousarray(weight.T).reshape(weight.shape)
        return functools.partial(
            _LIBRARY.scipy_cblas_sgemm, ROW_MAJOR, NO_TRANS, NO_TRANS if self.transposed else TRANS,
            m, n, k, ctypes.c_float(1), products.pointer(x), k, products.pointer(weight),
            n if self.transposed else k, ctypes.c_float(0), products.pointer(y), n)
