# SPDX-License-Identifier: Apache-2.0
"""encore where neither pyencore nor `encore bench` (encore_side.py) has the call: its products
alone (PackedLinear, f32), whole models from token ids (TextEncoder), and the ids of many texts.

Needs a C++ compiler, and the library of
    tools/build.sh build/shared -DBUILD_SHARED_LIBS=ON --target encore_text
"""

import ctypes
import functools
import os
import pathlib
import subprocess
import tempfile

import numpy

import products

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIBRARY = ROOT / "build/shared/engine/libencore_text.so"

NAME = "encore"
WAIT_POLICY = "sleeps (the default)"
GRAPHS = {precision: ("",) for precision in ("f32", "bf16", "int8")}


def _load():
    """The functions of encore_peer.cc."""
    if not LIBRARY.is_file():
        raise SystemExit(f"there is no {LIBRARY}\nTo build it: tools/build.sh build/shared "
                         "-DBUILD_SHARED_LIBS=ON --target encore_text")
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "libencore_peer.so")
        subprocess.run([os.environ.get("CXX", "c++"), "-std=c++20", "-O2", "-shared", "-fPIC",
                        f"-I{ROOT / 'include'}", pathlib.Path(__file__).with_suffix(".cc"), "-o",
                        path, f"-L{LIBRARY.parent}", f"-Wl,-rpath,{LIBRARY.parent}",
                        "-lencore_text", "-lencore"], check=True)
        found = ctypes.CDLL(str(path))
    for name in ("pool", "linear", "model", "tokenizer"):
        getattr(found, f"encore_peer_{name}").restype = ctypes.c_void_p
    for name in ("set_target", "apply", "encode", "tokenize"):
        getattr(found, f"encore_peer_{name}").restype = ctypes.c_bool
    for name in ("error", "target", "version"):
        getattr(found, f"encore_peer_{name}").restype = ctypes.c_char_p
    return found


_FUNCTIONS = _load()
VERSION = _FUNCTIONS.encore_peer_version().decode()


def isa(_limit):
    """The SIMD target."""
    return _FUNCTIONS.encore_peer_target().decode()


def set_target(name):
    """"" for the best."""
    checked(_FUNCTIONS.encore_peer_set_target(name.encode()))


def checked(value):
    if not value:
        raise RuntimeError(f"encore: {_FUNCTIONS.encore_peer_error().decode()}")
    return value


def made(name, *args):
    """A pointer that lives as long as the process."""
    return ctypes.c_void_p(checked(getattr(_FUNCTIONS, f"encore_peer_{name}")(*args)))


class Linears(products.Products):
    """Its products."""

    def __init__(self, weights, x, threads, layers):
        self.pool = made("pool", threads)
        super().__init__(weights, x, layers)

    def product(self, x, weight, y):
        n, k = map(ctypes.c_size_t, weight.shape)
        linear = made("linear", products.pointer(weight), n, k)
        run = functools.partial(_FUNCTIONS.encore_peer_apply, self.pool, linear,
                                products.pointer(x), ctypes.c_size_t(len(x)), products.pointer(y))
        return lambda: checked(run())


class Model:
    """A folder's model."""

    def __init__(self, workload, folder, ids, threads, precision):
        self.ids = numpy.ascontiguousarray(ids, numpy.int32)
        self.y = numpy.empty((workload.batch, workload.d_model), numpy.float32)
        self.run = functools.partial(
            _FUNCTIONS.encore_peer_encode, made("pool", threads),
            made("model", str(folder).encode(), precision.encode()), products.pointer(self.ids),
            *map(ctypes.c_size_t, self.ids.shape), products.pointer(self.y))

    def call(self):
        checked(self.run())

    def output(self):
        """[B, D]: the mean over the tokens of the last call."""
        return self.y


class Texts:
    """Texts, ready to tokenize again and again with a folder's tokenizer."""

    def __init__(self, folder, texts):
        data = [text.encode() for text in texts]
        self.tokenizer = made("tokenizer", str(folder).encode())
        self.data = (ctypes.c_char_p * len(data))(*data)
        self.sizes = numpy.array([len(text) for text in data], numpy.uintp)
        self.counts = numpy.empty_like(self.sizes)
        # A token is a byte at least; [CLS] and [SEP] come to them.
        self.ids = numpy.empty(int(self.sizes.sum()) + 2 * len(data), numpy.int32)

    def run(self):
        checked(_FUNCTIONS.encore_peer_tokenize(
            self.tokenizer, self.data, products.pointer(self.sizes),
            ctypes.c_size_t(len(self.data)), products.pointer(self.ids),
            products.pointer(self.counts)))
        return self.ids[:self.counts.sum()], self.counts


def Peer(workload, weights, x, threads, precision, _graph, layers):  # as the adapters' classes
    if workload.kind == "products":
        return Linears(weights, x, threads, layers)
    return Model(workload, weights, x, threads, precision)
