# SPDX-License-Identifier: Apache-2.0
"""Encoders of text with post-norm layers, and ModernBERT. Jina v2's module is in jina.py."""
from transformers import (BertConfig, BertModel, GteConfig, GteModel, ModernBertConfig,
                          ModernBertModel, MPNetConfig, MPNetModel, NomicBertConfig, NomicBertModel)

from golden.jina import JinaBertEncoder, alibi_slopes
from golden.reference import (Reference, family, linear, make, norm, norm_config, rotary_config,
                              skip)


@family("post-norm, erf-GELU, biases everywhere; RoBERTa, XLM-R, DistilBERT and ELECTRA alike")
def bert():
    model = make(BertModel, BertConfig(
        vocab_size=8, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=37, layer_norm_eps=1e-12), add_pooling_layer=False)
    skip(model.embeddings)
    layers = list(model.encoder.layer)
    tensors = [{**linear("self_attn.q_proj", b.attention.self.query),
                **linear("self_attn.k_proj", b.attention.self.key),
                **linear("self_attn.v_proj", b.attention.self.value),
                **linear("self_attn.out_proj", b.attention.output.dense),
                **norm("norm1", b.attention.output.LayerNorm),
                **linear("linear1", b.intermediate.dense), **linear("linear2", b.output.dense),
                **norm("norm2", b.output.LayerNorm)} for b in layers]
    layer = {"num_heads": 4, "d_ff": 37, "activation": "gelu", "norm_placement": "kPost",
             "norm": norm_config("kLayerNorm", 1e-12)}
    return Reference(model, layers, lambda x: model(inputs_embeds=x).last_hidden_state,
                     {"d_model": 32, "final_norm": None, "layers": [layer] * 2}, tensors)


@family("post-norm with a table of relative positions that all layers share")
def mpnet():
    model = make(MPNetModel, MPNetConfig(
        vocab_size=8, hidden_size=40, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, layer_norm_eps=1e-5), add_pooling_layer=False)
    skip(model.embeddings)
    layers = list(model.encoder.layer)
    table = [model.encoder.relative_attention_bias.weight]
    tensors = [{**linear("self_attn.q_proj", b.attention.attn.q),
                **linear("self_attn.k_proj", b.attention.attn.k),
                **linear("self_attn.v_proj", b.attention.attn.v),
                "self_attn.position_bias": table,
                **linear("self_attn.out_proj", b.attention.attn.o),
                **norm("norm1", b.attention.LayerNorm),
                **linear("linear1", b.intermediate.dense), **linear("linear2", b.output.dense),
                **norm("norm2", b.output.LayerNorm)} for b in layers]
    layer = {"num_heads": 2, "buckets": {"num_buckets": 32, "max_distance": 128}, "d_ff": 48,
             "activation": "gelu", "norm_placement": "kPost",
             "norm": norm_config("kLayerNorm", 1e-5)}
    return Reference(model, layers, lambda x: model(inputs_embeds=x).last_hidden_state,
                     {"d_model": 40, "final_norm": None, "layers": [layer] * 2}, tensors)


@family("post-norm, rotary with theta 1000, SiLU gate (fc12) and the other half (fc11) apart, "
        "no bias but the norms'")
def nomic_bert():
    model = make(NomicBertModel, NomicBertConfig(
        vocab_size=8, hidden_size=48, num_hidden_layers=2, num_attention_heads=3,
        intermediate_size=37, layer_norm_eps=1e-12), add_pooling_layer=False)
    skip(model.embeddings)
    layers = list(model.layers)
    tensors = [{**linear("self_attn.in_proj", b.self_attn.q_proj, b.self_attn.k_proj,
                         b.self_attn.v_proj),
                **linear("self_attn.out_proj", b.self_attn.o_proj),
                **norm("norm1", b.post_attention_layernorm),
                **linear("gate_proj", b.mlp.gate_proj), **linear("up_proj", b.mlp.up_proj),
                **linear("linear2", b.mlp.down_proj), **norm("norm2", b.post_mlp_layernorm)}
               for b in layers]
    layer = {"num_heads": 3, "rotary": rotary_config(model.rotary_emb.inv_freq), "d_ff": 37,
             "activation": "silu", "gate": "kFirstHalf", "norm_placement": "kPost",
             "norm": norm_config("kLayerNorm", 1e-12)}
    return Reference(model, layers, lambda x: model(inputs_embeds=x).last_hidden_state,
                     {"d_model": 48, "final_norm": None, "layers": [layer] * 2}, tensors,
                     [model.rotary_emb])


@family("post-norm, rotary, one matrix of the feed-forward network whose second half is activated")
def gte():
    model = make(GteModel, GteConfig(
        vocab_size=8, hidden_size=40, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=37, layer_norm_eps=1e-12,
        rope_parameters={"rope_type": "default", "rope_theta": 500000.0}))
    skip(model.embeddings)
    layers = list(model.layers)
    tensors = [{**linear("self_attn.in_proj", b.self_attn.q_proj, b.self_attn.k_proj,
                         b.self_attn.v_proj),
                **linear("self_attn.out_proj", b.self_attn.o_proj),
                **norm("norm1", b.post_attention_layernorm),
                **linear("linear1", b.mlp.up_proj, b.mlp.gate_proj),
                **linear("linear2", b.mlp.down_proj), **norm("norm2", b.post_mlp_layernorm)}
               for b in layers]
    layer = {"num_heads": 2, "rotary": rotary_config(model.rotary_emb.inv_freq), "d_ff": 37,
             "activation": "gelu", "gate": "kSecondHalf", "norm_placement": "kPost",
             "norm": norm_config("kLayerNorm", 1e-12)}
    return Reference(model, layers, lambda x: model(inputs_embeds=x).last_hidden_state,
                     {"d_model": 40, "final_norm": None, "layers": [layer] * 2}, tensors,
                     [model.rotary_emb])


@family("post-norm, symmetric ALiBi (layer 0 by the paper's rule, layer 1 with the slopes given), "
        "erf-GELU on the first half of one matrix",
        "golden/jina.py, from the published definition; not in transformers")
def jina_v2():
    model = JinaBertEncoder(d_model=48, heads=6, d_ff=48, num_layers=2, epsilon=1e-12)
    layers = list(model.layer)
    tensors = [{**linear("self_attn.q_proj", b.query), **linear("self_attn.k_proj", b.key),
                **linear("self_attn.v_proj", b.value), **linear("self_attn.out_proj", b.dense),
                **norm("norm1", b.attention_norm), **linear("linear1", b.gated_layers),
                **linear("linear2", b.wo), **norm("norm2", b.mlp_norm)} for b in layers]
    layer = {"num_heads": 6, "alibi": {}, "d_ff": 48, "activation": "gelu", "gate": "kFirstHalf",
             "norm_placement": "kPost", "norm": norm_config("kLayerNorm", 1e-12)}
    given = {**layer, "alibi": {"slopes": alibi_slopes(6)}}
    return Reference(model, layers, model,
                     {"d_model": 48, "final_norm": None, "layers": [layer, given]}, tensors)


@family("pre-norm without biases, erf-GELU on the first half of one matrix; layer 0 global without "
        "a norm before attention, layer 1 in a window of 64 to each side with another theta")
def modernbert():
    model = make(ModernBertModel, ModernBertConfig(
        vocab_size=8, hidden_size=64, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=48, norm_eps=1e-5, local_attention=128, global_attn_every_n_layers=3,
        pad_token_id=0))
    skip(model.embeddings)
    layers = list(model.layers)
    tensors = [{**linear("self_attn.in_proj", b.attn.Wqkv),
                **linear("self_attn.out_proj", b.attn.Wo),
                **(norm("norm1", b.attn_norm) if n else {}),
                **linear("linear1", b.mlp.Wi), **linear("linear2", b.mlp.Wo),
                **norm("norm2", b.mlp_norm)} for n, b in enumerate(layers)]
    tensors.append(norm("norm", model.final_norm))
    both = {"num_heads": 2, "d_ff": 48, "activation": "gelu", "gate": "kFirstHalf",
            "norm_placement": "kPre", "norm": norm_config("kLayerNorm", 1e-5)}
    angles = model.rotary_emb
    first = {**both, "attention_norm": False,
             "rotary": rotary_config(angles.full_attention_inv_freq)}
    second = {**both, "window": 64, "rotary": rotary_config(angles.sliding_attention_inv_freq)}
    return Reference(model, layers, lambda x: model(inputs_embeds=x).last_hidden_state,
                     {"d_model": 64, "final_norm": both["norm"], "layers": [first, second]},
                     tensors, [angles])
