# SPDX-License-Identifier: Apache-2.0
"""pyencore's functions on arrays, its operations and its engine beside sentence-transformers' and
torch's."""
import numpy as np
import torch
from sentence_transformers.util import quantize_embeddings

import pyencore
from call_check.arguments import (Call, Parameter, choice, draw_call, draw_wrong, one_in)
from call_check.folders import numpy_random
from call_check.subjects import Subject, draw_vectors

PRECISIONS = choice(*("float32", "int8", "uint8", "binary", "ubinary") * 3, None, "int4", 8)


def draw_many(rng, width):
    own = numpy_random(rng)
    matrix = own.standard_normal((rng.choice([2, 3, 120]), width)).astype(np.float32)
    return rng.choice([lambda: matrix, lambda: torch.from_numpy(matrix), lambda: list(matrix),
                       lambda: list(torch.from_numpy(matrix)), lambda: matrix[0],
                       lambda: [matrix, matrix[:1]], lambda: matrix.astype(np.float64),
                       lambda: matrix[:0], lambda: matrix.tolist(), lambda: [matrix[:0], matrix],
                       lambda: matrix[:1], lambda: tuple(matrix), lambda: draw_wrong(rng),
                       lambda: draw_vectors(rng, width)])()


def draw_quantize(self, rng):
    width = rng.choice([3, 8, 13])
    own = numpy_random(rng)

    def ranges(rng):
        pair = np.sort(own.standard_normal((2, width)), axis=0)
        return rng.choice([lambda: pair, lambda: pair.astype("f4"), lambda: pair[:, :2],
                           lambda: np.zeros((2, width)), lambda: pair[0]])()
    return draw_call(rng, "quantize_embeddings", [
        Parameter("embeddings", lambda rng: draw_many(rng, width), share=1.0),
        Parameter("precision", PRECISIONS, "int8", 1.0), Parameter("ranges", ranges, None, 0.3),
        Parameter("calibration_embeddings", lambda rng: own.standard_normal((150, width)).astype(
            np.float32), None, 0.3)])


def an_array(rng, *axes):
    """Of these axes, or of others; contiguous or not."""
    own = numpy_random(rng)
    shape = axes or tuple(rng.choice([1, 2, 5, 33]) for _ in range(rng.choice([1, 1, 2, 3])))
    values = (own.standard_normal(shape) * rng.choice([1, 1, 10])).astype(
        rng.choice([np.float32] * 6 + [np.float64]))
    if one_in(rng, 5):
        values = np.asfortranarray(values)
    return values


def draw_unary(name):
    def draw(self, rng):
        value = an_array(rng)
        kinds = [value] * 4 + [torch.from_numpy(value.copy()), value.tolist()]
        return Call(name, (draw_wrong(rng) if one_in(rng, 15) else rng.choice(kinds),))
    return draw


def draw_matmul(self, rng):
    m, k, n = (rng.choice([1, 3, 7, 16]) for _ in range(3))
    return draw_call(rng, "matmul", [
        Parameter("a", lambda rng: an_array(rng, m, k), share=1.0),
        Parameter("b", lambda rng: an_array(rng, k if rng.random() < 0.9 else k + 1, n), share=1.0),
        Parameter("bias", lambda rng: an_array(rng, n), None, 0.5)])


def draw_norm(name):
    def draw(self, rng):
        x = an_array(rng)
        width = x.shape[-1] if rng.random() < 0.9 else x.shape[-1] + 1
        rest = [Parameter("weight", lambda rng: an_array(rng, width), None, 0.6),
                Parameter("bias", lambda rng: an_array(rng, width), None, 0.6),
                Parameter("epsilon", choice(1e-5, 1e-3, 1e-12), 1e-5, 0.3)]
        if name == "rms_norm":
            del rest[1]
        return draw_call(rng, name, [Parameter("x", lambda rng: x, share=1.0), *rest])
    return draw


def draw_attention(self, rng):
    heads, s, t, d = (rng.choice([1, 2, 5]) for _ in range(4))
    own = numpy_random(rng)

    def mask(rng):
        blocked = own.random_sample((s, t)) < 0.3
        return blocked if one_in(rng, 2) else own.standard_normal((s, t)).astype(np.float32)
    return draw_call(rng, "attention", [
        Parameter("q", lambda rng: an_array(rng, heads, s, d), share=1.0),
        Parameter("k", lambda rng: an_array(rng, heads, t, d), share=1.0),
        Parameter("v", lambda rng: an_array(rng, heads, t, rng.choice([d, 3])), share=1.0),
        Parameter("attn_mask", mask, None, 0.3)])


def draw_add(self, rng):
    a = an_array(rng)
    return Call("add", (a, an_array(rng, *a.shape) if rng.random() < 0.9 else draw_wrong(rng)))


def tensor(value, dtype):
    return value.to(dtype) if isinstance(value, torch.Tensor) else torch.tensor(
        np.array(value, np.float32, order="C"), dtype=dtype)


FUNCTIONS = {"exp": torch.exp, "tanh": torch.tanh, "relu": torch.relu,
             "gelu": torch.nn.functional.gelu, "silu": torch.nn.functional.silu,
             "gelu_tanh": lambda x: torch.nn.functional.gelu(x, approximate="tanh"),
             "softmax": lambda x: torch.softmax(x, -1)}


def norm(x, weight=None, bias=None, epsilon=1e-5):
    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, epsilon)


def rms(x, weight=None, epsilon=1e-5):
    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, epsilon)


def attend(q, k, v, attn_mask=None):
    if attn_mask is not None:
        attn_mask = ~attn_mask if attn_mask.dtype == torch.bool else attn_mask
    out = torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask)
    return torch.nan_to_num(out)  # of rows that see nothing: 0 here


class Functions(Subject):
    """Of the module and of pyencore.ops."""

    METHODS = {"quantize_embeddings": draw_quantize, "matmul": draw_matmul, "add": draw_add,
               "layer_norm": draw_norm("layer_norm"), "rms_norm": draw_norm("rms_norm"),
               "attention": draw_attention, **{name: draw_unary(name) for name in FUNCTIONS}}

    def prepare(self, rng, folder):
        self.what, self.given = "functions", {}

    def open_ours(self, folder):
        pass

    open_theirs = open_ours
    dtype = torch.float32

    def exact(self, call):
        self.dtype = torch.float64
        try:
            return self.side(call, False)
        finally:
            self.dtype = torch.float32

    def given_to_torch(self, value):
        if value is None or isinstance(value, float):
            return value
        mask = getattr(value, "dtype", None) == bool
        return torch.tensor(value) if mask else tensor(value, self.dtype)

    def side(self, call, ours):
        args, options = call.of(ours)
        if call.method == "quantize_embeddings":
            function = pyencore.quantize_embeddings if ours else quantize_embeddings
            return function(*args, **options)
        if ours:
            return getattr(pyencore.ops, call.method)(*args, **options)
        args = [self.given_to_torch(a) for a in args]
        options = {key: self.given_to_torch(a) for key, a in options.items()}
        if call.method in FUNCTIONS and isinstance(args[0], float):
            args = [torch.tensor(args[0])]
        functions = {**FUNCTIONS, "layer_norm": norm, "rms_norm": rms, "attention": attend,
                     "add": lambda a, b: a + b,
                     "matmul": lambda a, b, bias=None: a @ b + (0 if bias is None else bias)}
        return functions[call.method](*args, **options).numpy()


class Encoder(Subject):
    """The engine's layers beside torch.nn.TransformerEncoder."""

    METHODS = {"forward": lambda self, rng: self.draw_forward(rng)}

    def prepare(self, rng, folder):
        width, self.heads = 8 * rng.choice([1, 2, 4]), rng.choice([1, 2, 4])
        self.width, self.first = width, one_in(rng, 2)
        self.activation = rng.choice(["gelu", "relu"])
        layer = torch.nn.TransformerEncoderLayer(width, self.heads, rng.choice([5, 32]), 0.0,
                                                 self.activation, batch_first=True,
                                                 norm_first=self.first)
        torch.manual_seed(rng.randrange(1 << 30))
        self.theirs = torch.nn.TransformerEncoder(layer, rng.choice([1, 2, 3]),
                                                  enable_nested_tensor=False).eval()
        self.what, self.given = f"{width} {self.heads} {self.activation} {self.first}", {}

    def open_ours(self, folder):
        self.ours = pyencore.Encoder(self.theirs.state_dict(), num_heads=self.heads, threads=1,
                                     activation=self.activation, norm_first=self.first)

    def open_theirs(self, folder):
        pass

    def draw_forward(self, rng):
        own = numpy_random(rng)
        batch, length = rng.choice([1, 2, 3]), rng.choice([1, 4, 9])
        padding = np.arange(length)[None, :] >= own.randint(1, length + 1, batch)[:, None]
        call = draw_call(rng, "forward", [
            Parameter("x", lambda rng: own.standard_normal((batch, length, self.width)).astype(
                np.float32), share=1.0)])
        if call.args:
            call.args = call.args[:1]
        for name, value in (("key_padding_mask", padding), ("causal", rng.choice([True, False])),
                            ("attn_mask", own.standard_normal((length, length)).astype("f4"))):
            if one_in(rng, 3):
                call.options[name] = draw_wrong(rng) if one_in(rng, 15) else value
        return call

    def reference(self, method, args, options):
        """With gradients: without them torch's fast path gives NaN for a mask of numbers."""
        x = torch.tensor(args[0] if args else options["x"])
        mask = options.get("attn_mask")
        mask = None if mask is None else torch.tensor(mask)
        if options.get("causal"):
            future = torch.triu(torch.full((x.shape[1],) * 2, -torch.inf), 1)
            mask = future if mask is None else mask + future
        padding = options.get("key_padding_mask")
        blocked = None if padding is None else torch.tensor(padding)
        if blocked is not None and mask is not None:
            blocked = torch.zeros(blocked.shape).masked_fill(blocked, -torch.inf)
        y = self.theirs(x, mask=mask, src_key_padding_mask=blocked).detach()
        if padding is not None:
            y = torch.where(torch.tensor(padding)[..., None], 0, y)
        return y.numpy()


SUBJECTS = [Functions, Encoder]
