#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files of tests/data/golden with PyTorch in float64, and with --families those of
tests/data/families with the modules of transformers.

Holds generation, --check (made again, the files must agree) and --self-check (each case computed
from its files by golden/plain.py) of golden/. tests/make/golden/ has the families, with the same
commands. The list of cases is tests/data/golden_cases.json, the format of the files is in
tests/data/README.md, and running encore on them is the tests' business. Needs numpy and PyTorch
1.13 or newer (apt-get install python3-torch); the families need transformers as well, from PyPI.

Random numbers come from numpy's RandomState, whose stream never changes. Weights are distributed as
PyTorch initialises them; biases and LayerNorm parameters, which it sets to constants, are random.
All are rounded to their type in the file first, so the float64 model sees what the file holds.
"""
import argparse
import json
import math
import pathlib
import sys
import tempfile
import warnings
import zlib
from dataclasses import dataclass, replace

import numpy as np

from golden import families, plain
from golden.tensor_files import differences, largest_error, read_safetensors, write_safetensors

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
TOLERANCE = 1e-12  # of the largest magnitude; float64 itself leaves about 1e-15


@dataclass
class Case:
    name: str
    covers: str
    nhead: int = 2
    head_size: int = 8
    d_ff: int = 40
    shape: tuple = (2, 7)  # batch, tokens
    activation: str = "relu"
    norm_first: bool = False
    eps: float = 1e-5
    bias: bool = True
    layers: int = 0  # 0: one TransformerEncoderLayer; else a TransformerEncoder of so many
    final_norm: bool = False
    scale: float = 1.0  # factor on the input, which is N(0, 1) before
    padding: tuple = ()  # one string a sequence, 'x' a token, '.' padding; gives the shape
    lengths: tuple = ()  # of packed sequences; instead of the shape
    mask: str = ""  # "bool", "float", "causal" (as a bool tensor) or "causal flag" (no tensor)
    dtype: str = "F32"  # of the weights
    worked_example_names: bool = False  # ff.0 and ff.2 instead of linear1 and linear2
    taps: tuple = ()  # of "attention", "hidden"
    seed_of: str = ""  # the case whose random numbers to use; "": its own

    def __post_init__(self):
        if self.padding:
            self.shape = (len(self.padding), len(self.padding[0]))
        self.d_model = self.nhead * self.head_size
        self.metadata = {"nhead": str(self.nhead), "activation": self.activation,
                         "norm_first": str(self.norm_first), "layer_norm_eps": str(self.eps)}
        flags = {"attention": "--attention-weights", "hidden": "--hidden-states"}
        self.arguments = [flags[tap] for tap in self.taps]  # for `encore run`
        self.arguments += ["--causal"] if self.mask == "causal flag" else []

    def file(self, folder, what):
        return folder / f"{self.name}.{what}.safetensors"


CASES = [Case(**c) for c in json.loads((DATA / "golden_cases.json").read_text())["cases"]]


# --- PyTorch's model ---
def build_model(torch, case, rng):
    """Returns a TransformerEncoder in float64, and name -> array: what the weight file holds."""
    functional = torch.nn.functional
    activation = {"relu": functional.relu, "gelu": functional.gelu, "silu": functional.silu,
                  "gelu_tanh": lambda x: functional.gelu(x, approximate="tanh")}[case.activation]
    layer = torch.nn.TransformerEncoderLayer(
        case.d_model, case.nhead, case.d_ff, dropout=0.0, activation=activation,
        layer_norm_eps=case.eps, batch_first=True, norm_first=case.norm_first)
    norm = torch.nn.LayerNorm(case.d_model, eps=case.eps) if case.final_norm else None
    layers = max(case.layers, 1)
    model = torch.nn.TransformerEncoder(layer, layers, norm, enable_nested_tensor=False)
    model = model.double().train()  # train() keeps the fused inference path out
    file_type = getattr(torch, case.dtype.replace("BF", "bfloat").replace("F", "float"))
    stored = {}
    for name, p in model.state_dict().items():  # p shares the model's memory
        if "norm" in name:
            values = rng.uniform(-0.3, 0.3, p.shape) + name.endswith("weight")
        elif name.endswith("bias"):
            values = rng.uniform(-0.1, 0.1, p.shape)
        else:  # MultiheadAttention: xavier_uniform_ over in_proj; Linear: kaiming_uniform_(sqrt(5))
            fans = 4 * case.d_model if "in_proj" in name else 6 * p.shape[1]
            values = rng.uniform(-1, 1, p.shape) * math.sqrt(6 / fans)
        if name.endswith("bias") and not case.bias:
            p.zero_()
            continue
        in_file = torch.from_numpy(values).to(file_type)
        p.copy_(in_file)
        name = name if case.layers else name[len("layers.0."):]
        if case.worked_example_names:
            name = name.replace("linear1", "ff.0").replace("linear2", "ff.2")
        if case.dtype == "BF16":
            in_file = in_file.view(torch.int16)  # numpy has no such type
        stored[name] = in_file.numpy().view("<u2") if case.dtype == "BF16" else in_file.numpy()
    return model, stored


def make_inputs(case, rng):
    """Returns name -> array: what the input file holds."""
    tokens, rows = case.shape[1], (sum(case.lengths),) if case.lengths else case.shape
    inputs = {"x": (case.scale * rng.standard_normal((*rows, case.d_model))).astype("<f4")}
    if case.lengths:
        inputs["seq_lengths"] = np.array(case.lengths, "<i8")
    if case.padding:
        inputs["key_padding_mask"] = np.array([[c == "." for c in row] for row in case.padding])
    # A token may always attend to itself, as PyTorch gives NaN to a row with no key.
    forbidden = (rng.uniform(size=(tokens, tokens)) < 0.3) & ~np.eye(tokens, dtype=bool)
    if case.mask == "bool":
        inputs["attn_mask"] = forbidden
    elif case.mask == "float":
        values = 2 * rng.standard_normal((tokens, tokens))
        inputs["attn_mask"] = np.where(forbidden, -np.inf, values).astype("<f4")
    elif case.mask == "causal":
        inputs["attn_mask"] = np.triu(np.ones((tokens, tokens), bool), 1)
    return inputs


def attention_mask(case, inputs):
    """The bool or float mask [S, S] to apply, or None."""
    tokens = inputs["x"].shape[-2]
    causal = np.triu(np.ones((tokens, tokens), bool), 1)
    return causal if case.mask == "causal flag" else inputs.get("attn_mask")


def run_model(torch, case, model, inputs, dtype):
    """Returns y, attention.N and hidden.N as arrays; rows and columns of padding are zero."""
    if case.lengths:  # each sequence alone
        parts = np.split(inputs["x"], np.cumsum(case.lengths)[:-1])
        one = replace(case, lengths=())
        alone = [run_model(torch, one, model, {"x": part[None]}, dtype) for part in parts]
        return {name: np.concatenate([a[name][0] for a in alone]) for name in alone[0]}
    mask, padding = attention_mask(case, inputs), inputs.get("key_padding_mask")
    if mask is not None:
        mask = torch.from_numpy(mask).to(torch.bool if mask.dtype == bool else dtype)
    pad = None if padding is None else torch.from_numpy(padding)
    hidden, results = torch.from_numpy(inputs["x"]).to(dtype), {}
    with torch.no_grad():
        results["y"] = model(hidden, mask=mask, src_key_padding_mask=pad)
        for n, layer in enumerate(model.layers):
            into = layer.norm1(hidden) if case.norm_first else hidden
            if "attention" in case.taps:
                results[f"attention.{n}"] = layer.self_attn(
                    into, into, into, attn_mask=mask, key_padding_mask=pad,
                    average_attn_weights=False)[1]
            hidden = layer(hidden, src_mask=mask, src_key_padding_mask=pad)
            if "hidden" in case.taps:
                results[f"hidden.{n}"] = hidden
    results = {name: t.numpy().copy() for name, t in results.items()}
    for name, t in results.items() if padding is not None else ():
        pairs = padding[:, None, :, None] | padding[:, None, None, :]
        t[np.broadcast_to(pairs, t.shape) if name.startswith("attention") else padding] = 0
    return results


# --- The same in plain numpy, from the files alone ---
def self_check(case, folder):
    """Runs sequence by sequence, the rows of padding taken out. Returns the largest error."""
    w, meta = read_safetensors(case.file(folder, "weights"))
    inputs, expected = (read_safetensors(case.file(folder, f))[0] for f in ("input", "expected"))
    norm = {"type": "kLayerNorm", "epsilon": float(meta["layer_norm_eps"])}
    config = {"num_heads": int(meta["nhead"]), "activation": meta["activation"], "norm": norm,
              "norm_placement": "kPre" if meta["norm_first"] == "True" else "kPost"}
    got = {name: np.zeros_like(t) for name, t in expected.items()}
    x, mask = inputs["x"].astype(float), attention_mask(case, inputs)
    if "seq_lengths" in inputs:
        places = np.split(np.arange(len(x)), np.cumsum(inputs["seq_lengths"])[:-1])
    else:
        padding = inputs.get("key_padding_mask", np.zeros(x.shape[:2], bool))
        places = [(b, np.flatnonzero(~pad)) for b, pad in enumerate(padding) if not pad.all()]
    for at in places:
        hidden, added, weights = x[at], 0.0, []
        if mask is not None:
            added = mask[np.ix_(at[1], at[1])]
            added = np.where(added, -np.inf, 0.0) if added.dtype == bool else added.astype(float)
        for n in range(max(case.layers, 1)):
            prefix = f"layers.{n}." if case.layers else ""
            layer = {k[len(prefix):].replace("ff.0", "linear1").replace("ff.2", "linear2"): t
                     for k, t in w.items() if k.startswith(prefix)}
            hidden = plain.layer(layer, config, hidden, added, weights)
            if "hidden" in case.taps:
                got[f"hidden.{n}"][at] = hidden
            for h, p in enumerate(weights[n] if "attention" in case.taps else ()):
                got[f"attention.{n}"][at[0], h][np.ix_(at[1], at[1])] = p
        got["y"][at] = plain.apply_norm(w, "norm", norm, hidden) if case.final_norm else hidden
    return largest_error(got, expected)


# --- Commands ---
def generate(folder):
    """Writes all files into folder."""
    import torch
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", "Support for mismatched")  # PyTorch 2: bool and float masks
    manifest = {"torch": torch.__version__, "numpy": np.__version__, "cases": {}}
    for case in CASES:
        rng = np.random.RandomState(zlib.crc32((case.seed_of or case.name).encode()))
        model, weights = build_model(torch, case, rng)
        inputs = make_inputs(case, rng)
        expected = run_model(torch, case, model, inputs, torch.float64)
        assert all(np.isfinite(t).all() for t in expected.values()), case.name
        f32 = run_model(torch, case, model.float(), inputs, torch.float32)
        f32_error = largest_error({"y": f32["y"]}, {"y": expected["y"]})
        write_safetensors(case.file(folder, "weights"), weights, case.metadata)
        write_safetensors(case.file(folder, "input"), inputs)
        write_safetensors(case.file(folder, "expected"), expected)
        manifest["cases"][case.name] = {"covers": case.covers, "arguments": case.arguments,
                                        "torch_f32_error": float(f"{f32_error:.2g}")}
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def check(stored):
    """Makes the files elsewhere and returns what differs: any byte of weights and inputs counts."""
    with tempfile.TemporaryDirectory() as temporary:
        made = pathlib.Path(temporary)
        generate(made)
        return differences(stored, made, "cases", TOLERANCE)


def main():
    parser = argparse.ArgumentParser(description="Makes or checks tests/data/{golden,families}.")
    parser.add_argument("--families", action="store_true", help="make tests/data/families instead")
    parser.add_argument("--check", action="store_true", help="make the files again and compare")
    parser.add_argument("--self-check", action="store_true", help="compute them in numpy, compare")
    parser.add_argument("--data", type=pathlib.Path, default=DATA, help="instead of tests/data")
    args = parser.parse_args()
    golden, of_families = args.data / "golden", args.data / "families"
    if not (args.check or args.self_check):
        folder, make = (of_families, families.generate) if args.families else (golden, generate)
        folder.mkdir(parents=True, exist_ok=True)
        make(folder)
    wrong = [] if not args.check or args.families else check(golden)
    wrong += families.check(of_families) if args.check else []
    if args.self_check and not args.families:
        errors = [self_check(case, golden) for case in CASES]
        print(f"numpy against the {len(errors)} stored cases: largest error {np.max(errors):.1e}")
        wrong += [f"{c.name}: {e:.1e}" for c, e in zip(CASES, errors) if not e <= TOLERANCE]
    wrong += families.self_check(of_families) if args.self_check else []
    for line in wrong:
        print(f"make_golden: {line}", file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
