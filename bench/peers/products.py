# SPDX-License-Identifier: Apache-2.0
"""What engines of products alone have in common: the four products of a block, one after the other.

"""

import ctypes

import numpy

import cases


def pointer(array):
    return ctypes.c_void_p(array.ctypes.data)


class Products:
    """So many blocks' products, ready to run again and again. A subclass has product(x, weight, y),
    which gives a function that writes x [M, K] times the weight [N, K], transposed, to y."""

    def __init__(self, weights, x, layers):
        self.arrays = [(a, weight.copy(), numpy.empty((len(a), len(weight)), numpy.float32))
                       for _ in range(layers) for a, weight in zip(x, weights)]
        self.calls = [self.product(*arrays) for arrays in self.arrays]
        self.returned = None

    def product(self, x, weight, y):
        raise NotImplementedError

    def call(self):
        self.returned = [call() for call in self.calls]

    def output(self):
        """[M, all columns] of the last block."""
        return cases.joined([y for _, _, y in self.arrays[-len(cases.PRODUCTS):]])
