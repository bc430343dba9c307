# SPDX-License-Identifier: Apache-2.0
"""The blocks that encore and its peers compute: sizes, random weights and inputs, their files.

The sizes are those of `encore bench`. Not here: any engine, any timing.
"""

import dataclasses
import json
import math
import pathlib

import numpy

EPSILON = 1e-5


@dataclasses.dataclass(frozen=True)
class Workload:
    """One post-norm encoder block and a batch for it."""
    model: str
    d_model: int
    heads: int
    d_ff: int
    activation: str  # "relu" or "gelu" (by erf)
    batch: int
    seq: int

    @property
    def name(self):
        return f"{self.model}_{self.batch}x{self.seq}"

    @property
    def flops(self):
        """Of one call: the matrix products; softmax, LayerNorm and activation count as none."""
        d, s = self.d_model, self.seq
        return self.batch * (8 * s * d * d + 4 * s * d * self.d_ff + 4 * s * s * d)


MODELS = {  # d_model, heads, d_ff, activation
    "example": (64, 4, 256, "relu"),
    "minilm": (384, 12, 1536, "gelu"),
    "base": (768, 12, 3072, "gelu"),
    "large": (1024, 16, 4096, "gelu"),
}


def workload(model, batch, seq):
    return Workload(model, *MODELS[model], batch, seq)


# Workloads of `encore bench`, by its names.
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


def write_safetensors(path, tensors, metadata=None):
    """Writes float32 arrays by name; metadata is a dict of strings."""
    header, offset = {}, 0
    if metadata:
        header["__metadata__"] = metadata
    for name, array in tensors.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape),
                        "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        for array in tensors.values():
            file.write(numpy.ascontiguousarray(array, dtype="<f4").tobytes())


def write_weights(path, workload, tensors):
    """The tensors of a block with the metadata that `encore run` reads."""
    write_safetensors(path, tensors, {
        "nhead": str(workload.heads), "activation": workload.activation, "norm_first": "False",
        "layer_norm_eps": repr(EPSILON)})


def read_safetensors(path):
    """(float32 arrays by name, metadata) of a file that has only such tensors."""
    data = pathlib.Path(path).read_bytes()
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        if entry["dtype"] != "F32":
            raise ValueError(f"{path}: {name} is {entry['dtype']}, wanted F32")
        begin, end = (start + offset for offset in entry["data_offsets"])
        tensors[name] = numpy.frombuffer(data[begin:end], "<f4").reshape(entry["shape"])
    return tensors, metadata
