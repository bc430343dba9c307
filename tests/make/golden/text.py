# SPDX-License-Identifier: Apache-2.0
"""Encoders of text with post-norm layers, and ModernBERT. Jina v2's module is in jina.py."""
from transformers import BertModel, GteModel, ModernBertModel, MPNetModel, NomicBertModel

from golden.jina import JinaEncoder, alibi_slopes
from golden.reference import (family, layer_config, linear, make, norm, norm_config, projections,
                              refer, rotary_config)


def bert_layer(projected, attention_norm, b):
    """The tensors of BERT's layer, whose attention has its own names in each family."""
    return {**projected, **norm("norm1", attention_norm), **linear("linear1", b.intermediate.dense),
            **linear("linear2", b.output.dense), **norm("norm2", b.output.LayerNorm)}


@family("post-norm, erf-GELU, biases everywhere; RoBERTa, XLM-R, DistilBERT and ELECTRA alike")
def bert():
    model = make(BertModel, vocab_size=8, hidden_size=32, num_hidden_layers=2,
                 num_attention_heads=4, intermediate_size=37, layer_norm_eps=1e-12,
                 add_pooling_layer=False)

    def tensors(b):
        own, out = b.attention.self, b.attention.output
        return bert_layer(projections(own.query, own.key, own.value, out.dense), out.LayerNorm, b)

    layer = layer_config(4, 37, "gelu", "kPost", norm_config("kLayerNorm", 1e-12))
    return refer(model, model.encoder.layer, tensors, layer, 32)


@family("post-norm with a table of relative positions that all layers share")
def mpnet():
    model = make(MPNetModel, vocab_size=8, hidden_size=40, num_hidden_layers=2,
                 num_attention_heads=2, intermediate_size=48, layer_norm_eps=1e-5,
                 add_pooling_layer=False)
    table = model.encoder.relative_attention_bias.weight

    def tensors(b):
        own = b.attention.attn
        return bert_layer(projections(own.q, own.k, own.v, own.o, table), b.attention.LayerNorm, b)

    layer = layer_config(2, 48, "gelu", "kPost", norm_config("kLayerNorm", 1e-5),
                         buckets={"num_buckets": 32, "max_distance": 128})
    return refer(model, model.encoder.layer, tensors, layer, 40)


def rotary_layer(b, first):
    """The tensors of NomicBERT's and GTE's layer; first: those before linear2."""
    own = b.self_attn
    return {**linear("self_attn.in_proj", own.q_proj, own.k_proj, own.v_proj),
            **linear("self_attn.out_proj", own.o_proj),
            **norm("norm1", b.post_attention_layernorm), **first,
            **linear("linear2", b.mlp.down_proj), **norm("norm2", b.post_mlp_layernorm)}


@family("post-norm, rotary with theta 1000, SiLU gate (fc12) and the other half (fc11) apart, "
        "no bias but the norms'")
def nomic_bert():
    model = make(NomicBertModel, vocab_size=8, hidden_size=48, num_hidden_layers=2,
                 num_attention_heads=3, intermediate_size=37, layer_norm_eps=1e-12,
                 add_pooling_layer=False)

    def tensors(b):
        return rotary_layer(b, {**linear("gate_proj", b.mlp.gate_proj),
                                **linear("up_proj", b.mlp.up_proj)})

    layer = layer_config(3, 37, "silu", "kPost", norm_config("kLayerNorm", 1e-12), "kFirstHalf",
                         rotary=rotary_config(model.rotary_emb.inv_freq))
    return refer(model, model.layers, tensors, layer, 48)


@family("post-norm, rotary, one matrix of the feed-forward network whose second half is activated")
def gte():
    model = make(GteModel, vocab_size=8, hidden_size=40, num_hidden_layers=2,
                 num_attention_heads=2, intermediate_size=37, layer_norm_eps=1e-12,
                 rope_parameters={"rope_type": "default", "rope_theta": 500000.0})

    def tensors(b):
        return rotary_layer(b, linear("linear1", b.mlp.up_proj, b.mlp.gate_proj))

    layer = layer_config(2, 37, "gelu", "kPost", norm_config("kLayerNorm", 1e-12), "kSecondHalf",
                         rotary=rotary_config(model.rotary_emb.inv_freq))
    return refer(model, model.layers, tensors, layer, 40)


@family("post-norm, symmetric ALiBi (layer 0 by the paper's rule, layer 1 with the slopes given), "
        "erf-GELU on the first half of one matrix",
        "golden/jina.py, from the published definition; not in transformers")
def jina_v2():
    model = JinaEncoder({"hidden_size": 48, "num_attention_heads": 6, "intermediate_size": 48,
                         "num_hidden_layers": 2, "layer_norm_eps": 1e-12,
                         "feed_forward_type": "geglu"})

    def tensors(b):
        own, out, mlp = b.attention.self, b.attention.output, b.mlp
        return {**projections(own.query, own.key, own.value, out.dense),
                **norm("norm1", out.LayerNorm), **linear("linear1", mlp.gated_layers),
                **linear("linear2", mlp.wo), **norm("norm2", mlp.layernorm)}

    layer = layer_config(6, 48, "gelu", "kPost", norm_config("kLayerNorm", 1e-12), "kFirstHalf",
                         alibi={})
    given = {**layer, "alibi": {"slopes": alibi_slopes(6)}}
    return refer(model, model.layer, tensors, [layer, given], 48, forward=model)


@family("pre-norm without biases, erf-GELU on the first half of one matrix; layer 0 global without "
        "a norm before attention, layer 1 in a window of 64 to each side with another theta")
def modernbert():
    model = make(ModernBertModel, vocab_size=8, hidden_size=64, num_hidden_layers=2,
                 num_attention_heads=2, intermediate_size=48, norm_eps=1e-5, local_attention=128,
                 global_attn_every_n_layers=3, pad_token_id=0)

    def tensors(b):
        return {**linear("self_attn.in_proj", b.attn.Wqkv),
                **linear("self_attn.out_proj", b.attn.Wo),
                **(norm("norm1", b.attn_norm) if b is not model.layers[0] else {}),
                **linear("linear1", b.mlp.Wi), **linear("linear2", b.mlp.Wo),
                **norm("norm2", b.mlp_norm)}

    both = layer_config(2, 48, "gelu", "kPre", norm_config("kLayerNorm", 1e-5), "kFirstHalf")
    angles = model.rotary_emb
    first = {**both, "attention_norm": False,
             "rotary": rotary_config(angles.full_attention_inv_freq)}
    second = {**both, "window": 64, "rotary": rotary_config(angles.sliding_attention_inv_freq)}
    return refer(model, model.layers, tensors, [first, second], 64, model.final_norm)
