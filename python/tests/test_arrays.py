# SPDX-License-Identifier: Apache-2.0
"""Encoder and ops on arrays, against torch where it is installed and numpy everywhere."""

from __future__ import annotations

import concurrent.futures
import pickle
from typing import Any

import numpy as np
import pytest
from conftest import LAYER_SHAPES, has
from pyencore import Encoder, ops

RNG = np.random.default_rng(7)
needs_torch = pytest.mark.skipif(not has("torch"), reason="torch is not installed")


def normal(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float32)


def state_dict(layers: int = 2) -> dict[str, Any]:
    return {
        f"layers.{i}.{name}": normal(*shape) * np.float32(0.3)
        for i in range(layers)
        for name, shape in LAYER_SHAPES.items()
    }


WEIGHTS = state_dict()
OPTIONS: dict[str, Any] = {"num_heads": 4, "activation": "gelu", "threads": 1}


@pytest.fixture(scope="module")
def encoder() -> Encoder:
    return Encoder(WEIGHTS, **OPTIONS)


def test_shapes(encoder: Encoder) -> None:
    assert (encoder.d_model, encoder.num_layers, encoder.compute) == (16, 2, "f32")
    x = normal(3, 7, 16)
    padding = np.zeros((3, 7), bool)
    padding[0, 5:] = padding[2, :4] = True
    y = encoder(x, key_padding_mask=padding)
    assert y.shape == x.shape
    assert not y[padding].any()
    # A sequence's bits are its own: alone, packed, in a batch.
    assert np.array_equal(y[0, :5], encoder(x[0, :5]))
    packed = np.concatenate([x[0, :5], x[1], x[2, 4:]])
    assert np.array_equal(encoder(packed, lengths=[5, 7, 3]), y[~padding])
    out = np.empty_like(packed)
    assert encoder(packed, lengths=[5, 7, 3], out=out) is out
    assert np.array_equal(out, y[~padding])


def test_taps(encoder: Encoder) -> None:
    x = normal(9, 16)
    y, taps = encoder(x, lengths=[4, 5], taps=True)
    assert np.array_equal(taps.hidden[-1], y)
    assert [w.shape for w in taps.attention[0]] == [(4, 4, 4), (4, 5, 5)]
    for layer in taps.attention:
        for weights in layer:
            assert np.allclose(weights.sum(axis=-1), 1, atol=1e-6)
    _, causal = encoder(x, causal=True, taps=True)
    assert not np.triu(causal.attention[0][0][0], 1).any()


def test_masks(encoder: Encoder) -> None:
    x = normal(2, 6, 16)
    future = np.triu(np.ones((6, 6), bool), 1)
    wanted = encoder(x.reshape(12, 16), lengths=[6, 6], causal=True).reshape(x.shape)
    assert np.array_equal(encoder(x, attn_mask=future), wanted)
    added = np.where(future, -np.inf, 0).astype(np.float32)
    assert np.allclose(encoder(x, attn_mask=added), wanted, atol=1e-6)


@needs_torch
@pytest.mark.parametrize("norm_first", [False, True])
def test_against_torch(norm_first: bool) -> None:
    import torch

    layer = torch.nn.TransformerEncoderLayer(
        32, 4, 64, 0.0, "gelu", batch_first=True, norm_first=norm_first
    )
    stack = torch.nn.TransformerEncoder(layer, 3, enable_nested_tensor=False).eval()
    mine = Encoder(
        stack.state_dict(), num_heads=4, activation="gelu", norm_first=norm_first, threads=1
    )
    x = torch.randn(2, 9, 32)
    padding = torch.zeros(2, 9, dtype=torch.bool)
    padding[1, 6:] = True
    with torch.inference_mode():
        wanted = stack(x, src_key_padding_mask=padding).numpy()
    found = mine(x, key_padding_mask=padding)
    assert np.abs(found - wanted)[~padding.numpy()].max() < 5e-6
    half = {key: value.to(torch.bfloat16) for key, value in stack.state_dict().items()}
    rough = Encoder(half, num_heads=4, activation="gelu", norm_first=norm_first, threads=1)
    assert np.abs(rough(x) - mine(x)).max() < 0.1


def test_safetensors_file(tmp_path: Any, encoder: Encoder) -> None:
    from pyencore._safetensors import to_bytes

    weights = state_dict()
    path = tmp_path / "weights.safetensors"
    path.write_bytes(to_bytes(weights))
    x = normal(5, 16)
    a = Encoder(path, num_heads=4, activation="relu", threads=1)
    b = Encoder(weights, num_heads=4, activation="relu", threads=1)
    assert np.array_equal(a(x), b(x))


def test_errors(encoder: Encoder) -> None:
    with pytest.raises(ValueError, match=r"x is \[16\]; wanted"):
        encoder(normal(16))
    with pytest.raises(ValueError, match="seq_starts"):
        encoder(normal(5, 16), lengths=[2, 2])
    with pytest.raises(ValueError, match=r"key_padding_mask is \[2, 2\]; wanted \[1, 3\]"):
        encoder(normal(1, 3, 16), key_padding_mask=np.zeros((2, 2), bool))
    with pytest.raises(ValueError, match="nhead"):
        Encoder(state_dict(), activation="gelu")
    with pytest.raises(ValueError, match="int32"):
        Encoder({"a": np.zeros(3, np.int32)})


def test_ops() -> None:
    x = normal(5, 6, 33)
    assert np.allclose(ops.exp(x), np.exp(x), rtol=1e-6)
    assert np.allclose(ops.tanh(x), np.tanh(x), rtol=1e-6)
    assert np.array_equal(ops.relu(x), np.maximum(x, 0))
    assert np.allclose(ops.silu(x), x / (1 + np.exp(-x)), rtol=1e-5, atol=1e-7)
    assert np.allclose(ops.gelu(x), ops.gelu_tanh(x), atol=1e-3)
    assert np.allclose(ops.softmax(x).sum(axis=-1), 1, atol=1e-6)
    assert np.array_equal(ops.add(x, x), x + x)
    out = np.empty_like(x)
    assert ops.exp(x, out=out) is out
    assert np.array_equal(ops.exp(x.transpose(2, 0, 1)), out.transpose(2, 0, 1))
    mean, variance = x.mean(-1, keepdims=True), x.var(-1, keepdims=True)
    weight, bias = normal(33), normal(33)
    wanted = (x - mean) / np.sqrt(variance + 1e-5) * weight + bias
    assert np.allclose(ops.layer_norm(x, weight, bias), wanted, atol=1e-5)
    wanted = x / np.sqrt((x * x).mean(-1, keepdims=True) + 1e-5) * weight
    assert np.allclose(ops.rms_norm(x, weight), wanted, atol=1e-5)
    a, b = normal(7, 33), normal(33, 5)
    assert np.allclose(ops.matmul(a, b, normal(5) * 0 + 1), a @ b + 1, atol=1e-5)
    assert np.array_equal(ops.matmul(a, np.asfortranarray(b)), ops.matmul(a, b))
    with pytest.raises(ValueError, match="wanted"):
        ops.matmul(a, a)
    with pytest.raises(ValueError, match=r"wanted \[M, K\]"):
        ops.matmul(a[0], b)


@needs_torch
def test_attention() -> None:
    import torch

    q, k, v = normal(2, 4, 9, 8), normal(2, 4, 11, 8), normal(2, 4, 11, 6)
    wanted = torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (q, k, v)))
    out, weights = ops.attention(q, k, v, return_weights=True)
    assert np.abs(out - wanted.numpy()).max() < 1e-6
    assert weights.shape == (2, 4, 9, 11)
    seen = np.zeros((9, 11), bool)
    seen[:, 4:] = True
    _, hidden = ops.attention(q, k, v, seen, return_weights=True)
    assert not hidden[..., 4:].any()


def test_packed_linear() -> None:
    weight, bias, x = normal(24, 16), normal(24), normal(21, 16)
    linear = ops.PackedLinear(weight, bias)
    y = linear(x)
    assert np.array_equal(y, ops.matmul(x, weight.T, bias))
    out = np.empty_like(y)
    assert ops.PackedLinear(weight, bias, threads=2)(x, out=out) is out
    assert np.array_equal(out, y)
    with pytest.raises(ValueError, match="16"):
        linear(normal(3, 15))
    with pytest.raises(ValueError, match=r"wanted \[M, K\]"):
        linear(normal(16))
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(linear)


def test_a_workspace_serves_calls_of_any_size() -> None:
    sizes = [1, 300, 2, 64]
    inputs = [normal(n, 16) for n in sizes]
    alone = [Encoder(WEIGHTS, **OPTIONS)(x) for x in inputs]
    again = Encoder(WEIGHTS, **OPTIONS)
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for _ in range(20):
            found = list(pool.map(again, inputs))
            assert all(map(np.array_equal, found, alone))
