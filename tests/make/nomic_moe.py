# SPDX-License-Identifier: Apache-2.0
"""nomic-embed-text-v2-moe (arXiv:2502.07972) in plain torch, with the names of its files.
transformers' NomicBert has neither experts nor biases: it would read such a folder without an error
and compute something else. What both have is compared with it: check().

Holds the model and its config.json. make_model_fixtures.py and check_nomic_moe.py draw its tensors.
"""
import json
import tempfile

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file
from safetensors.torch import save_file


class Attention(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        width, bias = c["n_embd"], c["qkv_proj_bias"]
        self.Wqkv = torch.nn.Linear(width, 3 * width, bias)
        self.out_proj = torch.nn.Linear(width, width, bias)
        self.heads, self.theta = c["n_head"], float(c["rotary_emb_base"])

    def turn(self, x):  # [heads, tokens, size]
        tokens, size = x.shape[-2:]
        pairs = torch.arange(size // 2, dtype=torch.float64)
        angles = torch.arange(tokens, dtype=torch.float64)[:, None] * self.theta ** (
            -2 * pairs / size)
        cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        first, second = x.chunk(2, -1)
        return torch.cat([first * cos - second * sin, second * cos + first * sin], -1)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(-3, -2)
                   for part in self.Wqkv(x).chunk(3, -1))
        scores = self.turn(q) @ self.turn(k).transpose(-2, -1) / q.shape[-1] ** 0.5
        context = F.softmax(scores, dim=-1) @ v
        return self.out_proj(context.transpose(-3, -2).reshape(x.shape))


class Network(torch.nn.Module):
    def __init__(self, c):
        super().__init__()
        width, inner, gated = c["n_embd"], c["n_inner"], c["activation_function"] == "swiglu"
        for name in ("fc11", "fc12") if gated else ("fc1",):
            setattr(self, name, torch.nn.Linear(width, inner, c["mlp_fc1_bias"]))
        self.fc2 = torch.nn.Linear(inner, width, c["mlp_fc2_bias"])

    def forward(self, x):
        if hasattr(self, "fc12"):
            return self.fc2(self.fc11(x) * F.silu(self.fc12(x)))
        return self.fc2(F.gelu(self.fc1(x)))


class Experts(torch.nn.Module):
    """The best moe_top_k of num_experts for each token, by the softmax over all of them."""

    def __init__(self, c):
        super().__init__()
        width, self.inner, self.count = c["n_embd"], c["n_inner"], c["num_experts"]
        self.router, self.experts = torch.nn.Module(), torch.nn.Module()
        self.router.layer = torch.nn.Linear(width, self.count, bias=False)
        self.experts.mlp = torch.nn.Module()
        for name in ("w1", "w2"):
            weight = torch.nn.Parameter(torch.empty(self.count * self.inner, width))
            setattr(self.experts.mlp, name, weight)
        self.experts.bias = torch.nn.Parameter(torch.empty(width))
        self.top_k, self.normalize = c["moe_top_k"], c["moe_normalize_expert_weights"]

    def forward(self, x):
        p = F.softmax(self.router.layer(x), dim=-1, dtype=torch.float32)
        best, experts = p.topk(self.top_k, dim=-1)
        if self.normalize:
            best = best / best.sum(-1, keepdim=True)
        best = best.to(x.dtype)
        w1, w2 = (w.unflatten(0, (self.count, self.inner))
                  for w in (self.experts.mlp.w1, self.experts.mlp.w2))
        y = torch.zeros_like(x)
        for token in range(len(x)):
            for weight, e in zip(best[token], experts[token]):
                y[token] += weight * (F.gelu(x[token] @ w1[e].T) @ w2[e])
        return y + self.experts.bias


class Layer(torch.nn.Module):
    def __init__(self, c, experts):
        super().__init__()
        self.attn = Attention(c)
        self.mlp = Experts(c) if experts else Network(c)
        self.norm1 = torch.nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"])
        self.norm2 = torch.nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"])

    def forward(self, x):
        x = self.norm1(x + self.attn(x))
        return self.norm2(x + self.mlp(x))


class NomicMoe(torch.nn.Module):
    """c: the settings as config.json names them."""

    def __init__(self, c):
        super().__init__()
        self.settings = c
        self.embeddings, self.encoder = torch.nn.Module(), torch.nn.Module()
        self.embeddings.word_embeddings = torch.nn.Embedding(c["vocab_size"], c["n_embd"])
        self.embeddings.token_type_embeddings = torch.nn.Embedding(c["type_vocab_size"],
                                                                   c["n_embd"])
        self.emb_ln = torch.nn.LayerNorm(c["n_embd"], c["layer_norm_epsilon"])
        every = c["moe_every_n_layers"]
        self.encoder.layers = torch.nn.ModuleList(
            Layer(c, every != 0 and i % every == 1) for i in range(c["n_layer"]))

    def forward(self, input_ids, token_type_ids=None, output_hidden_states=True):
        types = torch.zeros_like(input_ids) if token_type_ids is None else token_type_ids
        x = self.emb_ln(self.embeddings.word_embeddings(input_ids[0]) +
                        self.embeddings.token_type_embeddings(types[0]))
        states = [x]
        for layer in self.encoder.layers:
            states.append(layer(states[-1]))
        return type("Output", (), {"hidden_states": [s[None] for s in states]})()

    def save_pretrained(self, folder):
        folder.mkdir(parents=True, exist_ok=True)
        save_file({n: t.contiguous() for n, t in self.state_dict().items()},
                  folder / "model.safetensors", {"format": "pt"})
        here = "nomic-ai/nomic-bert-2048--modeling_hf_nomic_bert."
        config = {**self.settings, "architectures": ["NomicBertModel"],
                  "model_type": "nomic_bert", "auto_map": {"AutoModel": here + "NomicBertModel"}}
        config.pop("pad_token_id")
        (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


# The published config.json but for sizes; pad_token_id is for drawing tokens.
SETTINGS = {
    "activation_function": "gelu", "add_pooling_layer": False, "attn_pdrop": 0.0,
    "bos_token_id": None, "causal": False, "dense_seq_output": True, "embd_pdrop": 0.0,
    "eos_token_id": None, "expert_choice_router": False, "ffn_div": 1, "fused_bias_fc": True,
    "fused_dropout_add_ln": True, "initializer_range": 0.02, "layer_norm_epsilon": 1e-5,
    "max_trained_positions": 2048, "mlp_fc1_bias": True, "mlp_fc2_bias": True,
    "moe_every_n_layers": 2, "moe_impl": "megablocks", "moe_normalize_expert_weights": False,
    "moe_resid_pdrop": 0.0, "moe_top_k": 2, "n_embd": 32, "n_head": 2, "n_inner": 20,
    "n_layer": 3, "n_positions": 2048, "num_experts": 6, "num_shared_experts": 0,
    "pad_token_id": 1, "pad_vocab_size_multiple": 64, "parallel_block": False,
    "parallel_block_tied_norm": False, "prenorm": False, "qkv_proj_bias": True,
    "reorder_and_upcast_attn": False, "resid_pdrop": 0.0, "rotary_emb_base": 10000,
    "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None,
    "rotary_scaling_factor": None, "scale_attn_by_inverse_layer_idx": False,
    "scale_attn_weights": True, "torch_dtype": "float32", "type_vocab_size": 1, "use_cache": True,
    "use_flash_attn": True, "use_rms_norm": False, "use_xentropy": True, "vocab_size": 120}


def check():
    """Everything but experts, biases and the plain network: within float32's angles of
    transformers."""
    torch.manual_seed(1)
    theirs = transformers.NomicBertModel(transformers.NomicBertConfig(
        vocab_size=120, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=20, type_vocab_size=2, layer_norm_eps=1e-5, max_position_embeddings=64,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0})).double().eval()
    for parameter in theirs.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    ours = NomicMoe({**SETTINGS, "activation_function": "swiglu", "moe_every_n_layers": 0,
                     "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False,
                     "n_layer": 2, "type_vocab_size": 2}).double()
    with tempfile.TemporaryDirectory() as folder:
        theirs.save_pretrained(folder)
        ours.load_state_dict(load_file(folder + "/model.safetensors"))
    ids = torch.randint(0, 120, (1, 40))
    types = (ids % 2).long()
    with torch.no_grad():
        wanted = theirs(input_ids=ids, token_type_ids=types).last_hidden_state
        found = ours(ids, types).hidden_states[-1]
    difference = ((found - wanted).abs().max() / wanted.abs().max()).item()
    assert difference < 1e-6, difference
    return difference


if __name__ == "__main__":
    print(f"differs from transformers without experts by {check():.1e}")
