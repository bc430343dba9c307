# SPDX-License-Identifier: Apache-2.0
"""The layers of Jina embeddings v2 (arXiv:2310.19923) in plain torch, with the names of its files:
BERT's with symmetric ALiBi and a gated feed-forward network. The published models are remote code,
which is not used here.

"""
import math

import torch
import torch.nn.functional as F


def alibi_slopes(heads):
    """Press et al. 2021 (arXiv:2108.12409) and their code for other counts than powers of two:
    those of the next lower power, and every second of the next higher."""
    power = 2 ** int(math.log2(heads))
    slopes = [2.0 ** (-8 * (h + 1) / power) for h in range(power)]
    return slopes + [2.0 ** (-4 * (h + 1) / power) for h in range(0, 2 * (heads - power), 2)]


class JinaLayer(torch.nn.Module):
    """ALiBi on both sides and a gated network whose first half is activated. c: the settings, as
    config.json names them."""

    def __init__(self, c):
        super().__init__()
        width, eps = c["hidden_size"], c["layer_norm_eps"]
        linear, norm = torch.nn.Linear, torch.nn.LayerNorm
        attention, out, mlp = torch.nn.Module(), torch.nn.Module(), torch.nn.Module()
        attention.self, attention.output = torch.nn.Module(), out
        for name in ("query", "key", "value"):
            setattr(attention.self, name, linear(width, width))
        out.dense, out.LayerNorm = linear(width, width), norm(width, eps)
        mlp.gated_layers = linear(width, 2 * c["intermediate_size"], bias=False)
        mlp.wo, mlp.layernorm = linear(c["intermediate_size"], width), norm(width, eps)
        self.attention, self.mlp = attention, mlp
        self.heads, self.act = c["num_attention_heads"], c["feed_forward_type"]

    def forward(self, x):
        tokens, width = x.shape[-2:]
        a = self.attention

        def heads(linear):
            return linear(x).unflatten(-1, (self.heads, -1)).transpose(-3, -2)
        scores = heads(a.self.query) @ heads(a.self.key).transpose(-2, -1)
        scores = scores / math.sqrt(width / self.heads)
        place = torch.arange(tokens, dtype=x.dtype)
        distance = (place[None] - place[:, None]).abs()
        slopes = torch.tensor(alibi_slopes(self.heads), dtype=x.dtype)
        scores = scores - slopes[:, None, None] * distance
        context = (scores.softmax(-1) @ heads(a.self.value)).transpose(-3, -2).reshape(x.shape)
        x = a.output.LayerNorm(x + a.output.dense(context))
        gate, up = self.mlp.gated_layers(x).chunk(2, -1)
        gate = F.gelu(gate) if self.act == "geglu" else F.relu(gate)
        return self.mlp.layernorm(x + self.mlp.wo(gate * up))


class JinaEncoder(torch.nn.Module):
    """Layers alone."""

    def __init__(self, c):
        super().__init__()
        self.layer = torch.nn.ModuleList(JinaLayer(c) for _ in range(c["num_hidden_layers"]))

    def forward(self, x):
        for layer in self.layer:
            x = layer(x)
        return x
