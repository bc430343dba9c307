# SPDX-License-Identifier: Apache-2.0
"""OpenBLAS as a peer, for the products of a layer alone: cblas_sgemm, which packs in each call."""

import ctypes
import functools
import importlib.metadata
import pathlib

import numpy
import scipy_openblas32

import layers

VERSION = importlib.metadata.version("scipy-openblas32")
WAIT_POLICY = "spins for a while (its default)"
# The layout of the weights: [N, K] as PyTorch has them, or transposed beforehand.
GRAPHS = {"f32": ("NxK", "KxN")}

# enum CBLAS_ORDER and CBLAS_TRANSPOSE of cblas.h.
ROW_MAJOR, NO_TRANS, TRANS = 101, 111, 112

_LIBRARY = ctypes.CDLL(str(pathlib.Path(
    scipy_openblas32.get_lib_dir(), f"lib{scipy_openblas32.get_library()}.so")))


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Peer(layers.Products):
    def __init__(self, _workload, weights, x, threads, _precision, graph):
        _LIBRARY.scipy_openblas_set_num_threads(threads)
        self.transposed = graph == "KxN"
        super().__init__(weights, x)

    def product(self, x, weight, y):
        (m, k), n = x.shape, len(weight)
        if self.transposed:
            weight[:] = numpy.ascontiguousarray(weight.T).reshape(weight.shape)
        return functools.partial(
            _LIBRARY.scipy_cblas_sgemm, ROW_MAJOR, NO_TRANS, NO_TRANS if self.transposed else TRANS,
            m, n, k, ctypes.c_float(1), pointer(x), k, pointer(weight),
            n if self.transposed else k, ctypes.c_float(0), pointer(y), n)
