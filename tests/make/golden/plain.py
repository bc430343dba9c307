# SPDX-License-Identifier: Apache-2.0
"""Encoder layers in plain numpy and float64, from a golden file alone: what LayerConfig says
(include/encore/layer.h), written a second time. It shares nothing with the references, so it
checks them, and the configurations that are made for them.
"""
import math

import numpy as np

ACTIVATIONS = {
    "relu": lambda t: np.maximum(t, 0),
    "silu": lambda t: t / (1 + np.exp(-t)),
    "quick_gelu": lambda t: t / (1 + np.exp(-1.702 * t)),
    "gelu": lambda t: 0.5 * t * (1 + np.vectorize(math.erf)(t / math.sqrt(2))),
    "gelu_tanh": lambda t: t / (1 + np.exp(-math.sqrt(8 / math.pi) * (t + 0.044715 * t**3))),
}


def apply_norm(w, name, config, x):
    if config["type"] == "kLayerNorm":
        x = x - x.mean(-1, keepdims=True)
    x = x / np.sqrt((x**2).mean(-1, keepdims=True) + config["epsilon"])
    weight = w[name + ".weight"] + float(config.get("weight_offset", 0))
    return x * weight + w.get(name + ".bias", 0)


def linear(w, name, x):
    return x @ w[name + "weight"].T + w.get(name + "bias", 0)


def bucket(distance, num_buckets, max_distance):
    """Of key less query, in integers: the k-th wide bucket starts at (max / single)^(k / wide)."""
    half = num_buckets // 2
    single, n = half // 2, abs(distance)
    index, wide = n, half - single
    if n >= single:
        index = single
        while (index + 1 < half and n**wide * single**(index + 1 - single)
               >= max_distance**(index + 1 - single) * single**wide):
            index += 1
    return index + (half if distance > 0 else 0)


def slopes(config, heads):
    if config.get("slopes"):
        return config["slopes"]
    power = 1 << (heads.bit_length() - 1)
    rule = lambda n: [2**(-8 * (h + 1) / n) for h in range(n)]
    return rule(power) + rule(2 * power)[::2][:heads - power]


def rotate(config, x):
    """x [heads, tokens, head size]."""
    f = np.array(config["inverse_frequencies"])
    angles = np.arange(x.shape[1])[:, None] * f
    cos, sin = np.cos(angles), np.sin(angles)
    a, b, rest = x[..., :len(f)], x[..., len(f):2 * len(f)], x[..., 2 * len(f):]
    return np.concatenate([a * cos - b * sin, a * sin + b * cos, rest], -1)


def score_bias(w, config, tokens):
    """[heads, tokens, tokens], or [1, tokens, tokens]: what is added to scores."""
    heads = config["num_heads"]
    distance = np.arange(tokens)[None, :] - np.arange(tokens)[:, None]  # key less query
    bias = np.zeros((1, tokens, tokens))
    if "alibi" in config:
        bias = -np.array(slopes(config["alibi"], heads))[:, None, None] * np.abs(distance)
    if "buckets" in config:
        sizes = config["buckets"]["num_buckets"], config["buckets"]["max_distance"]
        of = {d: bucket(d, *sizes) for d in range(-tokens + 1, tokens)}
        index = np.vectorize(of.get)(distance)
        bias = w["self_attn.position_bias"][index].transpose(2, 0, 1)
    hidden = np.abs(distance) > config.get("window", tokens)
    hidden |= (distance > 0) & config.get("causal", False)
    return np.where(hidden, -np.inf, bias)


def attend(w, config, x, added, weights):
    heads = config["num_heads"]
    kv_heads = config.get("num_kv_heads", heads)
    size = config.get("head_size", x.shape[1] // heads)
    if "self_attn.in_proj_weight" in w:
        all_three = linear(w, "self_attn.in_proj_", x)
        parts = np.split(all_three, [heads * size, (heads + kv_heads) * size], axis=-1)
    else:
        parts = [linear(w, f"self_attn.{c}_proj.", x) for c in "qkv"]
    q, k, v = (p.reshape(len(x), -1, size).transpose(1, 0, 2) for p in parts)
    if "qk_norm" in config:
        q, k = (apply_norm(w, f"self_attn.{c}_norm", config["qk_norm"], t)
                for c, t in (("q", q), ("k", k)))
    if "rotary" in config:
        q, k = rotate(config["rotary"], q), rotate(config["rotary"], k)
    k, v = (np.repeat(t, heads // kv_heads, axis=0) for t in (k, v))
    scale = config.get("attention_scale", size**-0.5)
    scores = scale * (q @ k.transpose(0, 2, 1)) + score_bias(w, config, len(x)) + added
    p = np.exp(scores - scores.max(-1, keepdims=True))
    weights.append(p / p.sum(-1, keepdims=True))
    context = weights[-1] @ v
    return linear(w, "self_attn.out_proj.", context.transpose(1, 0, 2).reshape(len(x), -1))


def feed_forward(w, config, x):
    act, gate = ACTIVATIONS[config["activation"]], config.get("gate", "kNone")
    if gate == "kNone":
        inner = act(linear(w, "linear1.", x))
    elif "gate_proj.weight" in w:
        inner = act(linear(w, "gate_proj.", x)) * linear(w, "up_proj.", x)
    else:
        a, b = np.split(linear(w, "linear1.", x), 2, axis=-1)
        inner = act(a) * b if gate == "kFirstHalf" else a * act(b)
    return linear(w, "linear2.", inner)


def layer(w, config, x, added=0.0, weights=None):
    """One layer over one sequence. added: to all scores; weights: a list that gets attention's."""
    weights = [] if weights is None else weights
    attention = lambda t: attend(w, config, t, added, weights)
    for n, f in (1, attention), (2, lambda t: feed_forward(w, config, t)):
        placement, norm = config["norm_placement"], config["norm"]
        if placement == "kPost":
            update = w.get(f"layer_scale{n}", 1) * f(x)
            x = apply_norm(w, f"norm{n}", norm, x + update)
            continue
        skip = n == 1 and not config.get("attention_norm", True)
        update = f(x if skip else apply_norm(w, f"norm{n}", norm, x))
        if placement == "kBoth":
            update = apply_norm(w, f"post_norm{n}", norm, update)
        x = x + w.get(f"layer_scale{n}", 1) * update
    return x


def run(config, tensors, x):
    """Returns hidden.0 and y of x [tokens, d_model], which holds sequences of config's lengths."""
    w = {name: t.astype(float) for name, t in tensors.items()}
    results = {"hidden.0": [], "y": []}
    for part in np.split(x.astype(float), np.cumsum(config["lengths"])[:-1]):
        for n, switches in enumerate(config["layers"]):
            prefix = f"layers.{n}."
            own = {k[len(prefix):]: t for k, t in w.items() if k.startswith(prefix)}
            part = layer(own, switches, part)
            if n == 0:
                results["hidden.0"].append(part)
        norm = config["final_norm"]
        results["y"].append(apply_norm(w, "norm", norm, part) if norm else part)
    return {name: np.concatenate(parts) for name, parts in results.items()}
