# SPDX-License-Identifier: Apache-2.0
"""Encoders of text with RMSNorm: T5's encoder, and embedding models made of decoders."""
from transformers import EuroBertModel, Gemma3TextModel, Qwen3Model, T5EncoderModel

from golden.reference import (family, layer_config, linear, make, norm, norm_config, projections,
                              refer, rotary_config)


def t5_case(d_model, heads, head_size, d_ff, feed_forward, activation):
    model = make(T5EncoderModel, vocab_size=8, d_model=d_model, d_kv=head_size, d_ff=d_ff,
                 num_layers=2, num_heads=heads, feed_forward_proj=feed_forward,
                 layer_norm_epsilon=1e-6)
    gated = feed_forward.startswith("gated")
    blocks = model.encoder.block
    # Block 0 alone has the table.
    table = blocks[0].layer[0].SelfAttention.relative_attention_bias.weight

    def tensors(block):
        own, dense = block.layer[0].SelfAttention, block.layer[1].DenseReluDense
        first = ({**linear("gate_proj", dense.wi_0), **linear("up_proj", dense.wi_1)} if gated
                 else linear("linear1", dense.wi))
        return {**projections(own.q, own.k, own.v, own.o, table),
                **norm("norm1", block.layer[0].layer_norm), **first, **linear("linear2", dense.wo),
                **norm("norm2", block.layer[1].layer_norm)}

    layer = layer_config(heads, d_ff, activation, "kPre", norm_config("kRmsNorm", 1e-6),
                         "kFirstHalf" if gated else "kNone", head_size=head_size,
                         attention_scale=1, buckets={"num_buckets": 32, "max_distance": 128})
    return refer(model, blocks, tensors, layer, d_model, model.encoder.final_layer_norm)


@family("pre-norm with RMSNorm, scores without a scale, a table of relative positions that all "
        "layers share, ReLU; heads wider than d_model together")
def t5():
    return t5_case(32, 3, 16, 64, "relu", "relu")


@family("T5 1.1: a tanh-GELU gate, its halves apart; heads narrower than d_model together")
def t5_v1_1():
    return t5_case(48, 4, 8, 37, "gated-gelu", "gelu_tanh")


def rms_layer(block):
    """The tensors of Llama's layer but for norm2, which EuroBERT and Qwen3 have."""
    own, mlp = block.self_attn, block.mlp
    tensors = {**projections(own.q_proj, own.k_proj, own.v_proj, own.o_proj),
               **linear("gate_proj", mlp.gate_proj), **linear("up_proj", mlp.up_proj),
               **linear("linear2", mlp.down_proj), **norm("norm1", block.input_layernorm)}
    if hasattr(own, "q_norm"):
        tensors.update({**norm("self_attn.q_norm", own.q_norm),
                        **norm("self_attn.k_norm", own.k_norm)})
    return tensors


def llama_layer(block):
    return {**rms_layer(block), **norm("norm2", block.post_attention_layernorm)}


@family("pre-norm with RMSNorm, rotary, fewer heads of k and v, a SiLU gate, no biases")
def eurobert():
    model = make(EuroBertModel, vocab_size=8, hidden_size=32, num_hidden_layers=2,
                 num_attention_heads=4, num_key_value_heads=2, intermediate_size=37,
                 rms_norm_eps=1e-5, pad_token_id=0,
                 rope_parameters={"rope_type": "default", "rope_theta": 250000.0})
    layer = layer_config(4, 37, "silu", "kPre", norm_config("kRmsNorm", 1e-5), "kFirstHalf",
                         num_kv_heads=2, rotary=rotary_config(model.rotary_emb.inv_freq))
    return refer(model, model.layers, llama_layer, layer, 32, model.norm)


@family("norms before and after with weights stored less 1, of q and k too; a scale that is not "
        "the head size's; one head of k and v; layer 0 in a window of 100 to each side, layer 1 "
        "global with another theta; tanh-GELU gate; heads wider than d_model together")
def embedding_gemma():
    model = make(Gemma3TextModel, vocab_size=8, hidden_size=36, num_hidden_layers=2,
                 num_attention_heads=3, num_key_value_heads=1, head_dim=20, intermediate_size=48,
                 query_pre_attn_scalar=48, sliding_window=200, use_bidirectional_attention=True,
                 layer_types=["sliding_attention", "full_attention"], rms_norm_eps=1e-6)

    def tensors(b):
        return {**rms_layer(b), **norm("post_norm1", b.post_attention_layernorm),
                **norm("norm2", b.pre_feedforward_layernorm),
                **norm("post_norm2", b.post_feedforward_layernorm)}

    both = layer_config(3, 48, "gelu_tanh", "kBoth", norm_config("kRmsNorm", 1e-6, 1),
                        "kFirstHalf", num_kv_heads=1, head_size=20, attention_scale=48**-0.5,
                        qk_norm=norm_config("kRmsNorm", 1e-6, 1))
    angles = model.rotary_emb
    first = {**both, "window": 100, "rotary": rotary_config(angles.sliding_attention_inv_freq)}
    second = {**both, "rotary": rotary_config(angles.full_attention_inv_freq)}
    return refer(model, model.layers, tensors, [first, second], 36, model.norm)


@family("causal; pre-norm with RMSNorm, of q and k too; rotary, fewer heads of k and v, a SiLU "
        "gate; heads much wider than d_model together")
def qwen3_embedding():
    model = make(Qwen3Model, vocab_size=8, hidden_size=40, num_hidden_layers=2,
                 num_attention_heads=4, num_key_value_heads=2, head_dim=32, intermediate_size=64,
                 rms_norm_eps=1e-6, use_cache=False,
                 rope_parameters={"rope_type": "default", "rope_theta": 1000000.0})
    layer = layer_config(4, 64, "silu", "kPre", norm_config("kRmsNorm", 1e-6), "kFirstHalf",
                         num_kv_heads=2, head_size=32, qk_norm=norm_config("kRmsNorm", 1e-6),
                         causal=True, rotary=rotary_config(model.rotary_emb.inv_freq))
    return refer(model, model.layers, llama_layer, layer, 40, model.norm)
