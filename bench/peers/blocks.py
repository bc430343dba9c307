# SPDX-License-Identifier: Apache-2.0
"""What encore and its peers compute: sizes of blocks, of their products alone and of whole models;
random weights and inputs of a block, their files.

The sizes are those of `encore bench`.
"""

import dataclasses
import math

import numpy
import safetensors.numpy

EPSILON = 1e-5


@dataclasses.dataclass(frozen=True)
class Workload:
    """A batch, and what is computed of it: one post-norm encoder block; the four products of one
    (QKV as one) without attention, norms and all else; or a BERT of so many layers from token ids.
    """
    model: str
    d_model: int
    heads: int
    d_ff: int
    activation: str  # "relu" or "gelu" (by erf)
    batch: int
    seq: int
    kind: str = "block"  # or "products" or "model"
    layers: int = 1

    @property
    def name(self):
        middle = {"block": "", "products": "_products", "model": f"_{self.layers}_layers_of_ids"}
        return f"{self.model}{middle[self.kind]}_{self.batch}x{self.seq}"

    @property
    def flops(self):
        """Of one call: the matrix products; softmax, LayerNorm and activation count as none."""
        d, s = self.d_model, self.seq
        attention = 0 if self.kind == "products" else 4 * s * s * d
        return self.layers * self.batch * (8 * s * d * d + 4 * s * d * self.d_ff + attention)

    @property
    def weight_elements(self):
        """Of all layers' matrices."""
        return self.layers * (4 * self.d_model ** 2 + 2 * self.d_model * self.d_ff)


MODELS = {  # d_model, heads, d_ff, activation
    "example": (64, 4, 256, "relu"),
    "minilm": (384, 12, 1536, "gelu"),
    "base": (768, 12, 3072, "gelu"),
    "large": (1024, 16, 4096, "gelu"),
}


def workload(model, batch, seq, kind="block", layers=1):
    return Workload(model, *MODELS[model], batch, seq, kind, layers)


# By name; blocks are workloads of `encore bench`.
WORKLOADS = {w.name: w for w in (
    workload("example", 32, 10),
    workload("example", 10, 32),
    workload("minilm", 1, 16),
    workload("minilm", 1, 128),
    workload("minilm", 8, 128),
    workload("base", 1, 16),
    workload("base", 1, 128),
    workload("base", 8, 128),
    workload("base", 1, 512),
    workload("large", 1, 128),
    *(workload(*sizes, "products") for sizes in (
        ("minilm", 1, 16), ("minilm", 1, 128), ("minilm", 8, 128), ("base", 1, 128))),
    workload("minilm", 1, 16, "model", 6),
    workload("minilm", 1, 128, "model", 6),
    workload("minilm", 8, 128, "model", 6),
    workload("base", 1, 128, "model", 12),
)}
# Without the one that is the same sizes the other way round.
DEFAULT_WORKLOADS = tuple(name for name in WORKLOADS if name != "example_10x32")


def random_weights(workload, seed=1):
    """Tensors of one block, float32, named as torch.nn.TransformerEncoderLayer names them."""
    rng = numpy.random.default_rng(seed)
    d, d_ff = workload.d_model, workload.d_ff

    def uniform(half_width, *shape, middle=0.0):
        return (middle + half_width * (2 * rng.random(shape) - 1)).astype(numpy.float32)

    # sqrt(3 / K) makes products of unit variance from inputs of unit variance.
    wide, narrow = math.sqrt(3 / d), math.sqrt(3 / d_ff)
    return {
        "self_attn.in_proj_weight": uniform(wide, 3 * d, d),
        "self_attn.in_proj_bias": uniform(0.1, 3 * d),
        "self_attn.out_proj.weight": uniform(wide, d, d),
        "self_attn.out_proj.bias": uniform(0.1, d),
        "linear1.weight": uniform(wide, d_ff, d),
        "linear1.bias": uniform(0.1, d_ff),
        "linear2.weight": uniform(narrow, d, d_ff),
        "linear2.bias": uniform(0.1, d),
        "norm1.weight": uniform(0.1, d, middle=1.0),
        "norm1.bias": uniform(0.1, d),
        "norm2.weight": uniform(0.1, d, middle=1.0),
        "norm2.bias": uniform(0.1, d),
    }


def random_input(workload, seed=2):
    """[B, S, D], float32, of unit variance."""
    shape = (workload.batch, workload.seq, workload.d_model)
    return numpy.random.default_rng(seed).standard_normal(shape).astype(numpy.float32)


def write_weights(path, workload, tensors):
    """The tensors of a block with the metadata that `encore run` reads."""
    safetensors.numpy.save_file(tensors, path, {
        "nhead": str(workload.heads), "activation": workload.activation, "norm_first": "False",
        "layer_norm_eps": repr(EPSILON)})
