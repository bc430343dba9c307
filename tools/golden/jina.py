# SPDX-License-Identifier: Apache-2.0
"""The layers of Jina embeddings v2 (arXiv:2310.19923) in plain torch: BERT's with symmetric ALiBi
and a gated feed-forward network. The published models are remote code, which is not used here.

Not here: the variant for code (v2-base-code), which normalises q and k over all heads at once.
"""
import math

import torch
from torch import nn


def alibi_slopes(heads):
    """Press et al. 2021 (arXiv:2108.12409) and their code for other counts than powers of two."""
    power = 2**int(math.log2(heads))
    slopes = [2**(-8 * (h + 1) / power) for h in range(power)]
    return slopes + [2**(-8 * (h + 1) / (2 * power)) for h in range(0, 2 * (heads - power), 2)]


class JinaBertLayer(nn.Module):
    def __init__(self, d_model, heads, d_ff, epsilon):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(d_model, d_model)
        self.key = nn.Linear(d_model, d_model)
        self.value = nn.Linear(d_model, d_model)
        self.dense = nn.Linear(d_model, d_model)
        self.attention_norm = nn.LayerNorm(d_model, eps=epsilon)
        self.gated_layers = nn.Linear(d_model, 2 * d_ff, bias=False)
        self.wo = nn.Linear(d_ff, d_model)
        self.mlp_norm = nn.LayerNorm(d_model, eps=epsilon)

    def attention(self, x):
        batch, tokens, d_model = x.shape

        def split(t):
            return t.view(batch, tokens, self.heads, -1).transpose(1, 2)

        q, k, v = split(self.query(x)), split(self.key(x)), split(self.value(x))
        at = torch.arange(tokens)
        slopes = torch.tensor(alibi_slopes(self.heads), dtype=x.dtype)[:, None, None]
        scores = q @ k.transpose(2, 3) / math.sqrt(q.shape[-1])
        scores = scores - slopes * (at[:, None] - at[None, :]).abs()
        context = (torch.softmax(scores, -1) @ v).transpose(1, 2)
        return self.dense(context.reshape(batch, tokens, d_model))

    def forward(self, x):
        x = self.attention_norm(x + self.attention(x))
        gated, other = self.gated_layers(x).chunk(2, dim=-1)
        return self.mlp_norm(x + self.wo(nn.functional.gelu(gated) * other))


class JinaBertEncoder(nn.Module):
    def __init__(self, num_layers, **kwargs):
        super().__init__()
        self.layer = nn.ModuleList([JinaBertLayer(**kwargs) for _ in range(num_layers)])

    def forward(self, x):
        for layer in self.layer:
            x = layer(x)
        return x
