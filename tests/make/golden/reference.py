# SPDX-License-Identifier: Apache-2.0
"""What every family's reference has in common: the modules of a model with the names encore has
for their parameters, and a run of them in float64 that nothing rounds to float32 on the way.

"""
import contextlib
from dataclasses import dataclass, field
from typing import Any, Callable

import torch
from torch.overrides import TorchFunctionMode

NORMS = ("norm1", "norm2", "post_norm1", "post_norm2", "self_attn.q_norm", "self_attn.k_norm")


class Float64(TorchFunctionMode):
    """Makes every request for float32 one for float64, and fails if a result is narrower.

    Models ask for float32 whatever their own type is: in the softmax, in RMSNorm, in the angles of
    rotary positions. T5 and MPNet do so for the logarithm of a distance too; the buckets are the
    same in either type and in exact arithmetic, for all distances to 2000.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        def widen(a):
            return torch.float64 if a is torch.float32 else a

        if func is torch.Tensor.float:
            func = torch.Tensor.double
        result = func(*map(widen, args), **{k: widen(v) for k, v in (kwargs or {}).items()})
        for t in result if isinstance(result, (tuple, list)) else (result,):
            if isinstance(t, torch.Tensor) and t.dtype.is_floating_point:
                assert t.dtype == torch.float64, f"{func} gave {t.dtype}"
        return result


@dataclass
class Reference:
    model: Any  # in float32 when built; holds all parameters
    layers: list  # its modules that are layers, first to last
    forward: Callable  # x [1, tokens, d_model] -> y after the final norm
    config: dict  # encore's: d_model, final_norm, layers
    # For each layer, then once for the final norm: encore's name -> the parameters that make up
    # the tensor, one after another along the first dimension.
    tensors: list
    rotary: list = field(default_factory=list)  # modules that give cosines and sines


@dataclass
class Family:
    name: str
    covers: str
    source: str  # of the reference where it is not in transformers
    build: Callable


FAMILIES = []


def family(covers, source=None):
    def register(build):
        FAMILIES.append(Family(build.__name__, covers, source, build))
        return build
    return register


# --- Building ---
def make(model_class, add_pooling_layer=None, **settings):
    """A model of transformers with attention in plain torch operations and no embeddings.
    add_pooling_layer: where a model has that switch."""
    config = model_class.config_class(**settings)
    config._attn_implementation = "eager"
    pooling = {} if add_pooling_layer is None else {"add_pooling_layer": add_pooling_layer}
    model = model_class(config, **pooling)
    if hasattr(model, "embeddings"):
        skip(model.embeddings)
    return model


def skip(module):
    """Makes a module hand on its input: embeddings, and what stands between them and layer 0."""
    module.forward = lambda *args, inputs_embeds=None, **_: args[0] if args else inputs_embeds


def refer(model, layers, tensors, config, d_model, final=None, forward=None):
    """A Reference. tensors: those of a layer; config: one layer's that all have, or a list; final:
    the norm after all layers; forward: where it is not that of encoders of text."""
    layers = list(layers)
    configs = config if isinstance(config, list) else [config] * len(layers)
    forward = forward or (lambda x: model(inputs_embeds=x).last_hidden_state)
    return Reference(model, layers, forward,
                     {"d_model": d_model, "final_norm": configs[0]["norm"] if final else None,
                      "layers": configs},
                     [*map(tensors, layers), *([norm("norm", final)] if final else [])],
                     [model.rotary_emb] if hasattr(model, "rotary_emb") else [])


def layer_config(heads, d_ff, activation, placement, norm_of_layer, gate=None, **attention):
    """One of encore's LayerConfigs; attention: its switches of attention."""
    return {"num_heads": heads, **attention, "d_ff": d_ff, "activation": activation,
            **({"gate": gate} if gate else {}), "norm_placement": placement, "norm": norm_of_layer}


def projections(q, k, v, out, table=None):
    """The tensors of attention: four Linears, and a table of relative positions."""
    return {**linear("self_attn.q_proj", q), **linear("self_attn.k_proj", k),
            **linear("self_attn.v_proj", v), **({"self_attn.position_bias": [table]}
                                                if table is not None else {}),
            **linear("self_attn.out_proj", out)}


def linear(name, *modules):
    """The tensors of one Linear, or of several in one matrix."""
    joint = "_" if name.endswith("in_proj") else "."
    tensors = {f"{name}{joint}weight": [m.weight for m in modules]}
    if getattr(modules[0], "bias", None) is not None:
        tensors[f"{name}{joint}bias"] = [m.bias for m in modules]
    return tensors


def norm(name, module):
    return linear(name, module)  # a weight, and a bias or none


def norm_config(kind, epsilon, weight_offset=0):
    config = {"type": kind, "epsilon": epsilon}
    return {**config, "weight_offset": weight_offset} if weight_offset else config


def rotary_config(inv_freq):
    assert inv_freq.dtype == torch.float32
    return {"inverse_frequencies": [float(f) for f in inv_freq]}


# --- Random weights ---
def randomise(reference, rng):
    """Draws every parameter; returns encore's name -> array, exact in float32."""
    stored, drawn = {}, set()
    layers = reference.config["layers"]
    for n, tensors in enumerate(reference.tensors):
        layer = layers[min(n, len(layers) - 1)]
        for name, parts in tensors.items():
            full = f"layers.{n}.{name}" if n < len(layers) else name
            values = [draw(name, p.shape, layer, reference.config["d_model"], rng) for p in parts]
            stored[full] = torch.cat(values).numpy()
            for p, v in zip(parts, values):
                if id(p) in drawn:  # a table that layers share: they have one, so draw it once
                    stored[full] = p.detach().float().numpy().copy()
                    continue
                with torch.no_grad():
                    p.copy_(v)
                drawn.add(id(p))
    missing = [n for m in reference.layers for n, p in m.named_parameters() if id(p) not in drawn]
    assert not missing, missing
    return stored


def draw(name, shape, layer, d_model, rng):
    """Of a size at which softmax and activation bend but errors do not grow."""
    values = rng.standard_normal(tuple(shape))
    if name.rsplit(".", 1)[0] in (*NORMS, "norm") and name.endswith("weight"):
        config = layer["qk_norm"] if "q_norm" in name or "k_norm" in name else layer["norm"]
        middle = 0.3 if name.startswith("post_norm") else 1
        values = 0.3 * values + middle - config.get("weight_offset", 0)
    elif name.endswith("bias") and "position_bias" not in name:
        values *= 0.2
    elif name.startswith("layer_scale"):
        values = 0.6 + 0.3 * values
    elif "position_bias" not in name:
        values *= gain(name, layer, d_model) / shape[-1]**0.5
    return torch.from_numpy(values.astype("<f4"))


SCORES, INNER, OUTER = 1.2, 1.2, 0.5  # standard deviations: scores, d_ff's, what x gets added


def gain(name, layer, d_model):
    if "q_proj" in name or "k_proj" in name or "in_proj" in name:
        size = layer.get("head_size") or d_model // layer["num_heads"]
        scale = layer.get("attention_scale") or size**-0.5
        return (SCORES / (scale * size**0.5))**0.5
    return INNER if name.startswith(("linear1", "gate_proj", "up_proj")) else OUTER


# --- Running ---
def run(reference, x, lengths, exact):
    """Each sequence of x [tokens, d_model] by itself. Returns hidden.0 and y as arrays of float64.

    exact: in float64 throughout; else in float32, as transformers does it.
    """
    dtype = torch.float64 if exact else torch.float32
    reference.model.to(dtype).eval()
    results = {"hidden.0": [], "y": []}

    def keep(module, inputs, output):
        results["hidden.0"].append(output[0] if isinstance(output, tuple) else output)

    hook = reference.layers[0].register_forward_hook(keep)
    with torch.no_grad():
        for part in torch.from_numpy(x).split(lengths):
            part = part[None].to(dtype)
            with Float64() if exact else contextlib.nullcontext():
                results["y"].append(reference.forward(part))
    hook.remove()
    return {name: torch.cat(parts, 1)[0].double().numpy() for name, parts in results.items()}


def round_angles_late(module):
    """Makes a rotary module compute in float64 and round its sines and cosines, as encore does."""
    forward = module.forward

    def late(x, *args, **kwargs):
        wide = x.double()
        with Float64():
            parts = forward(wide, *args, **kwargs)
        return tuple(p.to(x.dtype) for p in parts)

    module.forward = late
