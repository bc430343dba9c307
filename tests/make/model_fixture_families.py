# SPDX-License-Identifier: Apache-2.0
"""The families of make_model_fixtures.py beside BERT and those that share its layer: what their
tiny models are, and how published folders spell what transformers 5 writes otherwise.

Holds cases, spellings, rotary positions in float64, and Jina v2, which transformers has not, around
the layers of golden/jina.py.
"""
import json
import math

import torch
import torch.nn.functional as F
import transformers
from safetensors.torch import load_file
from safetensors.torch import save_file
from transformers.models.esm import modeling_esm as esm

from golden.jina import JinaEncoder
import task_adapters
from published_spellings import (old_albert, old_clip, old_deberta, old_ernie, old_esm, old_gemma,
                                 old_modernbert, old_nomic)
from whole_models import old_whole_clip, published_gemma

VOCABULARY = 120
SIZES = {"vocab_size": VOCABULARY, "hidden_size": 32, "num_hidden_layers": 2,
         "num_attention_heads": 4, "intermediate_size": 37, "max_position_embeddings": 720,
         "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
MODERNBERT = {**SIZES, "num_hidden_layers": 4, "num_attention_heads": 2, "cls_token_id": 1,
              "sep_token_id": 2}
MPNET = {**SIZES, "pad_token_id": 1, "layer_norm_eps": 1e-5}
NOMIC = {**SIZES, "num_attention_heads": 2, "type_vocab_size": 2, "bos_token_id": None,
         "eos_token_id": None}
GTE = {**SIZES, "num_attention_heads": 2, "type_vocab_size": 2}
JINA = {**SIZES, "type_vocab_size": 2, "layer_norm_eps": 1e-12, "hidden_act": "gelu"}
DEBERTA = {**SIZES, "type_vocab_size": 0, "position_biased_input": False, "layer_norm_eps": 1e-7,
           "relative_attention": True, "share_att_key": True, "pos_att_type": ["p2c", "c2p"],
           "norm_rel_ebd": "layer_norm", "position_buckets": 32, "max_relative_positions": 128,
           "bos_token_id": None, "eos_token_id": None}
LLAMA = {**SIZES, "num_key_value_heads": 2, "head_dim": 8}
QWEN3 = {**LLAMA, "head_dim": 16, "max_window_layers": 2}
GEMMA = {**LLAMA, "num_hidden_layers": 3, "head_dim": 16, "query_pre_attn_scalar": 24,
         "sliding_window": 60, "use_bidirectional_attention": True,
         "layer_types": ["sliding_attention", "full_attention", "sliding_attention"]}
ESM = {**SIZES, "pad_token_id": 1, "mask_token_id": 32, "layer_norm_eps": 1e-5,
       "token_dropout": True, "bos_token_id": None}
CLIP = {**SIZES, "pad_token_id": 1}
JINA_V3 = {**SIZES, "pad_token_id": 1, "type_vocab_size": 1}
EMBEDDING_GEMMA2 = {**LLAMA, "num_hidden_layers": 3, "sliding_window": 20,
                    "sliding_window_pattern": 2, "global_head_dim": 16,
                    "num_global_key_value_heads": 1, "hidden_size_per_layer_input": 12,
                    "embedding_dim": 24}
GEMMA_CAUSAL = {**GEMMA, "use_bidirectional_attention": False, "sliding_window": 20}
QWEN2 = {**SIZES, "num_key_value_heads": 2, "max_window_layers": 1}
ULTRABERT = {**LLAMA, "num_hidden_layers": 3, "sliding_window": 20}
T5 = {"vocab_size": VOCABULARY, "d_model": 32, "d_kv": 12, "d_ff": 37, "num_layers": 2,
      "num_heads": 4, "pad_token_id": 0}


def frequencies(rope, size, positions):
    """Inverse frequencies in float64, and what multiplies sines and cosines."""
    kind, theta, factor = rope["rope_type"], float(rope["rope_theta"]), rope.get("factor", 1.0)
    pairs = torch.arange(size // 2, dtype=torch.float64)
    plain = theta ** (-2 * pairs / size)
    if kind == "default":
        return plain, 1.0
    if kind == "linear":
        return plain / factor, 1.0
    if kind == "ntk":  # of GTE's published code
        return (theta * factor) ** (-2 * pairs / size) / factor ** (2 / size), 1.0
    if kind == "llama3":
        low, high = rope["low_freq_factor"], rope["high_freq_factor"]
        turns = rope["original_max_position_embeddings"] * plain / (2 * math.pi)
        part = ((turns - low) / (high - low)).clamp(0, 1)
        return plain / factor * (1 - part) + plain * part, 1.0
    assert kind == "yarn"
    original = rope.get("original_max_position_embeddings", positions)

    def pair(rotations):
        return size * math.log(original / (rotations * 2 * math.pi)) / (2 * math.log(theta))

    low = max(math.floor(pair(rope.get("beta_fast", 32))), 0)
    high = min(math.ceil(pair(rope.get("beta_slow", 1))), size - 1)
    ramp = ((pairs - low) / (high - low)).clamp(0, 1)
    return plain / factor * ramp + plain * (1 - ramp), 0.1 * math.log(factor) + 1


def set_exact(model, exact, rope=None):
    """Rotary angles, RMSNorm and softmax in float64 (exact), or as transformers computes them, in
    float32. rope: a scaling that transformers has not."""
    F.softmax = exact_softmax if exact else SOFTMAX
    esm.apply_rotary_pos_emb = exact_turn if exact else ESM_TURN
    for module in model.modules():
        name = type(module).__name__
        if name.endswith(("RotaryEmbedding", "RMSNorm", "T5LayerNorm")):
            module.__dict__.pop("forward", None)
        if name.endswith("RotaryEmbedding"):
            set_rotary(module, exact, rope)
        elif exact and name.endswith(("RMSNorm", "T5LayerNorm")):
            module.forward = exact_norm(module, 1 if name.startswith("Gemma") else 0)


SOFTMAX = F.softmax
ESM_TURN = esm.apply_rotary_pos_emb


def exact_turn(q, k, cos, sin, unsqueeze_dim=1):
    """Without ESM's rounding to float32."""
    cos, sin = cos.unsqueeze(unsqueeze_dim), sin.unsqueeze(unsqueeze_dim)
    return tuple(x * cos + esm.rotate_half(x) * sin for x in (q, k))


def exact_softmax(x, dim=-1, dtype=None, **_):
    return SOFTMAX(x, dim=dim)


def exact_norm(module, offset):
    epsilon = getattr(module, "variance_epsilon", None) or module.eps
    return lambda x: (x * (x.square().mean(-1, keepdim=True) + epsilon).rsqrt() *
                      (offset + getattr(module, "weight", 1)))


def set_rotary(module, exact, rope):
    config = module.config
    of_types = type(module).__name__.startswith("EmbeddingGemma2")  # other heads in each type
    size = (not of_types and getattr(config, "head_dim", None)
            or config.hidden_size // config.num_attention_heads)
    if not exact:
        if rope:
            module.inv_freq.copy_(frequencies(rope, size, 0)[0])
        return

    def forward(x, position_ids, layer_type=None):
        if isinstance(module, esm.EsmRotaryEmbedding):  # its frequencies are in the file
            angles = position_ids[..., None].double() * module.inv_freq.double()
            angles = torch.cat([angles, angles], -1)
            return angles.cos().to(x.dtype), angles.sin().to(x.dtype)
        own = rope or config.rope_parameters
        width = config.per_layer_config[layer_type].head_dim if of_types else size
        inverse, magnitude = frequencies(own[layer_type] if layer_type else own, width,
                                         config.max_position_embeddings)
        angles = position_ids[..., None].double() * inverse
        angles = torch.cat([angles, angles], -1)
        return (angles.cos() * magnitude).to(x.dtype), (angles.sin() * magnitude).to(x.dtype)
    module.forward = forward


class JinaBert(torch.nn.Module):
    """With the names of its files."""

    def __init__(self, c, labels):
        super().__init__()
        width = c["hidden_size"]
        self.embeddings, self.encoder = torch.nn.Module(), JinaEncoder(c)
        self.embeddings.word_embeddings = torch.nn.Embedding(c["vocab_size"], width)
        self.embeddings.token_type_embeddings = torch.nn.Embedding(c["type_vocab_size"], width)
        self.embeddings.LayerNorm = torch.nn.LayerNorm(width, c["layer_norm_eps"])
        self.settings, self.labels = c, labels
        if labels:
            self.pooler = torch.nn.Module()
            self.pooler.dense = torch.nn.Linear(width, width)
            self.classifier = torch.nn.Linear(width, labels)

    def forward(self, input_ids, token_type_ids, output_hidden_states=True):
        e = self.embeddings
        x = e.LayerNorm(e.word_embeddings(input_ids[0]) +
                        e.token_type_embeddings(token_type_ids[0]))
        states = [x]
        for layer in self.encoder.layer:
            states.append(layer(states[-1]))
        out = type("Output", (), {})()
        out.hidden_states = [s[None] for s in states]
        if self.labels:
            out.logits = self.classifier(self.pooler.dense(states[-1][:1]).tanh())
        return out

    def save_pretrained(self, folder):
        folder.mkdir(parents=True)
        prefix = "bert." if self.labels else ""
        save_file({("" if n.startswith("classifier") else prefix) + n: t
                   for n, t in self.state_dict().items()}, folder / "model.safetensors",
                  {"format": "pt"})
        here = "somebody/jina-bert-implementation--modeling_bert."
        kind = "JinaBertForSequenceClassification" if self.labels else "JinaBertForMaskedLM"
        config = {**self.settings, "architectures": [kind], "model_type": "bert",
                  "position_embedding_type": "alibi", "emb_pooler": "mean",
                  "auto_map": {"AutoModel": here + "JinaBertModel"}, "model_max_length": 8192,
                  "_name_or_path": "somebody/jina-bert-implementation", "torch_dtype": "float16",
                  "attention_probs_dropout_prob": 0.0, "attn_implementation": "torch",
                  "transformers_version": "4.26.0"}
        if self.labels:
            config["id2label"] = {str(i): f"name {i}" for i in range(self.labels)}
        write_config(folder, config)


class Voyage(torch.nn.Module):
    """voyage-4: Qwen3 without causality and a linear layer of each token, which its own code has.
    The last of the hidden states are those behind it."""

    def __init__(self, config):
        super().__init__()
        self.model = transformers.Qwen3Model(config)
        self.linear = torch.nn.Linear(config.hidden_size, config.num_labels, bias=False)
        self.config = config

    def forward(self, input_ids, output_hidden_states=True):
        out = self.model(input_ids=input_ids, output_hidden_states=True)
        states = (*out.hidden_states[:-1], self.linear(out.last_hidden_state))
        return type("Output", (), {"hidden_states": states})()

    def save_pretrained(self, folder):
        folder.mkdir(parents=True)
        save_file(dict(self.state_dict()), folder / "model.safetensors", {"format": "pt"})
        config = {**self.config.to_dict(), "architectures": ["Qwen3ForCausalLM"],
                  "use_bidirectional_attention": True, "num_labels": self.config.num_labels,
                  "auto_map": {"AutoModel":
                               "modeling_qwen3_bidirectional.Qwen3BidirectionalModel"}}
        for key in ("is_causal", "id2label", "label2id"):
            config.pop(key, None)
        write_config(folder, config)


def write_config(folder, config):
    (folder / "config.json").write_text(json.dumps(config, indent=2, sort_keys=True) + "\n")


# ---- Older and published spellings of what transformers 5 wrote.

def rename_tensors(folder, rename, **more):
    path = folder / "model.safetensors"
    save_file({**{rename(n): t for n, t in load_file(path).items()}, **more}, path,
              {"format": "pt"})


def old_rope(config):
    """rope_theta and rope_scaling."""
    rope = config.pop("rope_parameters")
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = None if rope == {"rope_type": "default"} else rope


def old_bert(folder, config):
    """As files that were converted from TensorFlow, and configurations of transformers 4."""
    def rename(name):
        return name.replace("LayerNorm.weight", "LayerNorm.gamma").replace("LayerNorm.bias",
                                                                           "LayerNorm.beta")
    positions = torch.arange(config["max_position_embeddings"])[None]
    rename_tensors(folder, rename, **{"bert.embeddings.position_ids": positions})
    for key in ("is_decoder", "add_cross_attention", "tie_word_embeddings", "bos_token_id",
                "eos_token_id"):
        config.pop(key, None)
    config.update({"_name_or_path": "somebody/some-model", "gradient_checkpointing": False,
                   "position_embedding_type": "absolute", "transformers_version": "4.8.2",
                   "torch_dtype": config.pop("dtype")})


def old_gte(folder, config):
    """model_type new, with code in the folder; a scaling that only this code has."""
    rename_tensors(folder, lambda n: n.replace("gte.", "new."))
    config.pop("rope_parameters")
    config.update(model_type="new", rope_theta=NTK["rope_theta"], torch_dtype="float16",
                  architectures=[a.replace("Gte", "New") for a in config["architectures"]],
                  rope_scaling={"type": "ntk", "factor": NTK["factor"]}, pack_qkv=True,
                  auto_map={"AutoModel": "modeling.NewModel"}, layer_norm_type="layer_norm",
                  logn_attention_clip1=False, logn_attention_scale=False, unpad_inputs=False,
                  position_embedding_type="rope", use_memory_efficient_attention=False)


def old_llama(folder, config):
    old_rope(config)
    config.pop("layer_types", None)
    config["torch_dtype"] = config.pop("dtype")


def llama_bidirec(folder, config):
    """As NVIDIA's embedders, with code in the folder that takes causality away."""
    old_llama(folder, config)
    here = "llama_bidirectional_model.LlamaBidirectional"
    config.pop("is_causal")
    config.update(model_type="llama_bidirec", architectures=["LlamaBidirectionalModel"],
                  auto_map={"AutoConfig": here + "Config", "AutoModel": here + "Model"},
                  pooling="avg", temperature=1.0, pretraining_tp=1)


def gte_qwen2(folder, config):
    """As gte-Qwen2, whose code is transformers' with is_causal."""
    old_llama(folder, config)
    config.update(architectures=["Qwen2ForCausalLM"],
                  auto_map={"AutoModel": "modeling_qwen.Qwen2Model"})


def pplx_qwen3(folder, config):
    """As pplx-embed, with code in the folder that takes causality away."""
    config.pop("is_causal")
    config.update(model_type="bidirectional_pplx_qwen3", architectures=["PPLXQwen3Model"],
                  use_bidirectional_attention=True,
                  auto_map={"AutoConfig": "configuration.PPLXQwen3Config",
                            "AutoModel": "modeling.PPLXQwen3Model"})


def old_ultrabert(folder, config):
    """Windows and thetas of each layer, and other names."""
    rename_tensors(folder, lambda n: n.replace("model.", "ultrabert.", 1))
    rope, types = config.pop("rope_parameters"), config.pop("layer_types")
    window = config.pop("sliding_window")
    config.update(attention_windows=[window if t == "sliding_attention" else 0 for t in types],
                  rope_theta=[rope[t]["rope_theta"] for t in types])


def old_eurobert(folder, config):
    """With the published code's name of a key."""
    old_llama(folder, config)
    config.update(clf_pooling=config.pop("classifier_pooling"),
                  auto_map={"AutoModel": "modeling_eurobert.EuroBertModel"})


def old_t5(folder, config):
    """With the decoder's keys, as sentence-t5 has them."""
    config.update(architectures=["T5EncoderModel"], is_encoder_decoder=True, n_positions=512,
                  decoder_start_token_id=0, output_past=True)
    for key in ("dense_act_fn", "is_gated_act", "scale_decoder_outputs", "is_decoder"):
        config.pop(key, None)


NTK = {"rope_type": "ntk", "rope_theta": 20000.0, "factor": 8.0}


def rope(theta, **scaling):
    return {"rope_parameters": {"rope_type": "default", "rope_theta": theta, **scaling}}


def by_type(full, sliding):
    """Thetas of the two types of layers."""
    return {"rope_parameters": {
        "full_attention": {"rope_type": "default", "rope_theta": full},
        "sliding_attention": {"rope_type": "default", "rope_theta": sliding}}}


# name, family, sizes, and the other fields of a Case.
FAMILIES = [
    ("modernbert", "ModernBert", MODERNBERT, {"changes": by_type(5000.0, 300.0)}),
    ("modernbert_old", "ModernBert", MODERNBERT,
     {"labels": 1, "published": old_modernbert,
      "changes": {"classifier_pooling": "mean", **by_type(160000.0, 10000.0)}}),
    ("modernbert_3", "ModernBert", MODERNBERT,
     {"labels": 3, "dtype": torch.bfloat16,
      "changes": {"norm_bias": True, "attention_bias": True, "mlp_bias": True,
                  "classifier_bias": True, "classifier_activation": "relu",
                  "hidden_activation": "silu", "norm_eps": 0.01, "local_attention": 20,
                  "layer_types": ["sliding_attention"] * 2 + ["full_attention"] * 2}}),
    ("mpnet", "MPNet", MPNET, {"changes": {"hidden_act": "gelu_new"}}),
    ("mpnet_1", "MPNet", MPNET, {"labels": 1, "dtype": torch.bfloat16}),
    ("deberta_v2", "DebertaV2", DEBERTA, {"published": old_deberta}),
    ("deberta_v2_1", "DebertaV2", DEBERTA,
     {"labels": 1, "dtype": torch.bfloat16,
      "changes": {"share_att_key": False, "pos_att_type": ["c2p"], "norm_rel_ebd": "none",
                  "position_buckets": -1, "max_relative_positions": 40, "type_vocab_size": 2,
                  "position_biased_input": True, "embedding_size": 24, "hidden_act": "gelu_new",
                  "pooler_hidden_act": "tanh"}}),
    ("deberta_v2_3", "DebertaV2", DEBERTA,
     {"labels": 3, "changes": {"share_att_key": False, "attention_head_size": 8,
                               "position_buckets": 256, "max_relative_positions": 512}}),
    ("deberta_v2_absolute", "DebertaV2", DEBERTA,
     {"changes": {"relative_attention": False, "position_biased_input": True}}),
    ("deberta_v2_conv", "DebertaV2", DEBERTA,
     {"published": old_deberta, "changes": {"conv_kernel_size": 3, "conv_act": "gelu",
                                            "attention_head_size": 8}}),
    ("deberta_v2_conv_1", "DebertaV2", DEBERTA,
     {"labels": 1, "dtype": torch.bfloat16,
      "changes": {"conv_kernel_size": 5, "conv_act": "silu", "conv_groups": 4,
                  "position_biased_input": True, "embedding_size": 24}}),
    ("nomic_bert", "NomicBert", NOMIC, {"changes": rope(300.0)}),
    ("nomic_bert_old", "NomicBert", NOMIC, {"published": old_nomic, "changes": rope(1000.0)}),
    ("nomic_bert_1", "NomicBert", NOMIC, {"labels": 1, "changes": rope(1000.0)}),
    ("gte", "Gte", GTE, {"changes": rope(160000.0)}),
    ("gte_1", "Gte", GTE, {"labels": 1, "changes": {"type_vocab_size": 1, **rope(500.0)}}),
    ("gte_new", "Gte", GTE,
     {"published": old_gte, "rope": NTK, "changes": {"type_vocab_size": 0}}),
    ("gte_new_1", "Gte", GTE,
     {"labels": 1, "published": old_gte, "rope": NTK, "changes": {"type_vocab_size": 1}}),
    ("jina_bert", "JinaBert", JINA, {"changes": {"feed_forward_type": "geglu"}}),
    ("jina_bert_1", "JinaBert", JINA, {"labels": 1, "changes": {"feed_forward_type": "reglu",
                                                              "hidden_size": 48,
                                                              "num_attention_heads": 6}}),
    ("qwen3", "Qwen3", QWEN3, {"changes": rope(1000000.0)}),
    ("qwen3_old", "Qwen3", QWEN3,
     {"published": old_llama, "dtype": torch.bfloat16,
      "changes": rope(10000.0, rope_type="yarn", factor=4.0,
                      original_max_position_embeddings=256)}),
    ("qwen3_window", "Qwen3", QWEN3,
     {"changes": {"attention_bias": True, "use_sliding_window": True, "sliding_window": 20,
                  "max_window_layers": 1, **rope(10000.0)}}),
    ("qwen3_both_sides", "Qwen3", QWEN3,
     {"changes": {"is_causal": False, "use_sliding_window": True, "sliding_window": 20,
                  "max_window_layers": 1, **rope(10000.0)}}),
    ("qwen3_1", "Qwen3", QWEN3, {"labels": 1, "changes": rope(1000000.0)}),
    ("esm", "Esm", ESM, {"changes": {"position_embedding_type": "rotary"}}),
    ("esm_old", "Esm", ESM,
     {"kind": "ForMaskedLM", "published": old_esm,
      "changes": {"position_embedding_type": "rotary", "emb_layer_norm_before": False}}),
    ("esm_1b", "Esm", ESM,
     {"dtype": torch.bfloat16, "changes": {"emb_layer_norm_before": True, "pad_token_id": 5}}),
    ("esm_3", "Esm", ESM, {"labels": 3, "changes": {"token_dropout": False,
                                                   "emb_layer_norm_before": True}}),
    ("jina_v3", "JinaEmbeddingsV3", JINA_V3, {"changes": rope(300.0)}),
    ("jina_v3_3", "JinaEmbeddingsV3", JINA_V3,
     {"labels": 3, "dtype": torch.bfloat16,
      "changes": {"type_vocab_size": 2, "hidden_act": "silu", **rope(20000.0)}}),
    ("jina_v3_bank", "JinaEmbeddingsV3", JINA_V3, {
        "published": task_adapters.bank, "dtype": torch.bfloat16, "changes": rope(20000.0)}),
    ("jina_v3_folders", "JinaEmbeddingsV3", JINA_V3, {
        "published": task_adapters.peft_folders, "changes": rope(300.0)}),
    ("clip_text", "CLIPText", CLIP, {"changes": {"layer_norm_eps": 1e-3}}),
    ("clip_text_old", "CLIPText", CLIP,
     {"kind": "ModelWithProjection", "published": old_clip, "dtype": torch.bfloat16,
      "changes": {"hidden_act": "gelu", "projection_dim": 24}}),
    ("clip", "CLIP", CLIP,
     {"published": old_whole_clip, "dtype": torch.bfloat16,
      "changes": {"projection_dim": 40, "layer_norm_eps": 1e-3}}),
    ("siglip_text", "SiglipText", CLIP, {"dtype": torch.bfloat16, "changes": {
        "layer_norm_eps": 1e-3, "projection_size": 24}}),
    ("siglip2_text", "Siglip2Text", CLIP, {"published": old_clip,
                                           "changes": {"hidden_act": "gelu"}}),
    ("siglip", "Siglip", CLIP, {"changes": {"projection_size": 40}}),
    ("siglip2", "Siglip2", CLIP, {"changes": {"max_position_embeddings": 704}}),
    ("qwen3_pplx", "Qwen3", QWEN3,
     {"published": pplx_qwen3, "changes": {"is_causal": False, **rope(1000000.0)}}),
    ("qwen3_voyage", "Voyage", QWEN3,
     {"changes": {"is_causal": False, "num_labels": 40, **rope(1000000.0)}}),
    ("qwen2", "Qwen2", QWEN2,
     {"changes": {"use_sliding_window": True, "sliding_window": 20, **rope(1000000.0)}}),
    ("qwen2_gte", "Qwen2", QWEN2,
     {"published": gte_qwen2, "dtype": torch.bfloat16,
      "changes": {"is_causal": False, "use_sliding_window": True, "sliding_window": 20,
                  **rope(10000.0)}}),
    ("llama", "Llama", LLAMA,
     {"changes": {"attention_bias": True, "mlp_bias": True,
                  **rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0,
                         high_freq_factor=4.0, original_max_position_embeddings=256)}}),
    ("llama_bidirec", "Llama", LLAMA,
     {"published": llama_bidirec, "dtype": torch.bfloat16,
      "changes": {"is_causal": False, "head_dim": 16, **rope(10000.0)}}),
    ("mistral", "Mistral", LLAMA, {"changes": {"sliding_window": 20, **rope(10000.0)}}),
    ("mistral_both_sides", "Mistral", LLAMA,
     {"changes": {"is_causal": False, "sliding_window": 20, **rope(10000.0)}}),
    # Sequences that end with padding, of one that is causal and one that is not; and no padding.
    ("llama_3", "Llama", LLAMA,
     {"labels": 3, "dtype": torch.bfloat16,
      "changes": {"pad_token_id": VOCABULARY - 1, **rope(10000.0)}}),
    ("mistral_1", "Mistral", LLAMA,
     {"labels": 1, "changes": {"is_causal": False, "sliding_window": 20,
                               "pad_token_id": VOCABULARY - 1, **rope(10000.0)}}),
    ("qwen2_3", "Qwen2", QWEN2,
     {"labels": 3, "changes": {"pad_token_id": None, **rope(1000000.0)}}),
    ("gemma3_1", "Gemma3Text", GEMMA_CAUSAL,
     {"labels": 1, "dtype": torch.bfloat16, "changes": by_type(20000.0, 500.0)}),
    ("gemma3_causal", "Gemma3Text", GEMMA_CAUSAL, {"changes": by_type(20000.0, 500.0)}),
    ("embedding_gemma2", "EmbeddingGemma2Text", EMBEDDING_GEMMA2,
     {"changes": by_type(20000.0, 500.0)}),
    ("embedding_gemma2_whole", "EmbeddingGemma2", EMBEDDING_GEMMA2,
     {"published": published_gemma, "changes": {
         "num_hidden_layers": 2, "pad_token_id": 3,
         "top": {"image_token_id": 11, "video_token_id": 12, "audio_token_id": 13}}}),
    ("embedding_gemma2_biased", "EmbeddingGemma2Text", EMBEDDING_GEMMA2,
     {"dtype": torch.bfloat16,
      "changes": {"attention_bias": True, "hidden_activation": "silu", "num_hidden_layers": 2,
                  "sliding_window_pattern": 6, **by_type(1000000.0, 10000.0)}}),
    ("ultrabert", "Ultrabert", ULTRABERT, {"changes": by_type(20000.0, 500.0)}),
    ("ultrabert_1", "Ultrabert", ULTRABERT,
     {"labels": 1, "changes": {"classifier_pooling": "mean", "attention_bias": True,
                               "mlp_bias": True, **by_type(2560000.0, 10000.0)}}),
    ("ultrabert_old_3", "Ultrabert", ULTRABERT,
     {"labels": 3, "published": old_ultrabert, "dtype": torch.bfloat16,
      "changes": by_type(2560000.0, 10000.0)}),
    ("t5", "T5", T5, {"kind": "EncoderModel", "published": old_t5}),
    ("t5_v1_1", "T5", T5,
     {"kind": "EncoderModel", "changes": {"feed_forward_proj": "gated-gelu",
                                          "relative_attention_num_buckets": 16,
                                          "relative_attention_max_distance": 64}}),
    ("mt5", "MT5", T5, {"kind": "EncoderModel", "changes": {"feed_forward_proj": "gated-silu"}}),
    ("gemma3", "Gemma3Text", GEMMA, {"changes": by_type(20000.0, 500.0)}),
    ("gemma3_old", "Gemma3Text", GEMMA,
     {"published": old_gemma, "dtype": torch.bfloat16, "changes": by_type(1000000.0, 10000.0)}),
    ("gemma3_both_sides", "Gemma3Text", GEMMA,
     {"changes": {"is_causal": False, "sliding_window": 8, **by_type(20000.0, 500.0)}}),
    ("eurobert", "EuroBert", LLAMA,
     {"changes": {"attention_bias": True, "mlp_bias": True,
                  **rope(250000.0, rope_type="linear", factor=2.0)}}),
    ("eurobert_old", "EuroBert", LLAMA, {"published": old_llama, "changes": rope(250000.0)}),
    ("eurobert_3", "EuroBert", LLAMA,
     {"labels": 3, "changes": {"classifier_pooling": "mean", **rope(250000.0)}}),
    ("eurobert_old_1", "EuroBert", LLAMA,
     {"labels": 1, "published": old_eurobert, "dtype": torch.bfloat16,
      "changes": {"classifier_pooling": "bos", **rope(250000.0)}}),
]
