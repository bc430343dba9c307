# SPDX-License-Identifier: Apache-2.0
"""Encoders of images and sound, and CLIP's of text: pre-norm with LayerNorm and biases."""
import torch
from transformers import CLIPTextModel, CLIPVisionModel, Dinov2Model, SiglipVisionModel, ViTModel
from transformers.models.whisper.modeling_whisper import WhisperEncoder

from golden.reference import (family, layer_config, linear, make, norm, norm_config, projections,
                              refer, skip)


def pre_norm(heads, d_ff, activation, epsilon):
    return layer_config(heads, d_ff, activation, "kPre", norm_config("kLayerNorm", epsilon))


def attention(module, out):
    return projections(module.q_proj, module.k_proj, module.v_proj, out)


def of_image(model):
    return lambda x: model(x).last_hidden_state


@family("pre-norm with LayerNorm and biases, erf-GELU")
def vit():
    model = make(ViTModel, hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=48, image_size=8, patch_size=4, layer_norm_eps=1e-12,
                 add_pooling_layer=False)

    def tensors(b):
        return {**attention(b.attention, b.attention.o_proj), **norm("norm1", b.layernorm_before),
                **linear("linear1", b.mlp.fc1), **linear("linear2", b.mlp.fc2),
                **norm("norm2", b.layernorm_after)}

    return refer(model, model.layers, tensors, pre_norm(2, 48, "gelu", 1e-12), 32, model.layernorm,
                 of_image(model))


def clip_layer(b):
    """The tensors of CLIP's and SigLIP's layer."""
    return {**attention(b.self_attn, b.self_attn.out_proj), **norm("norm1", b.layer_norm1),
            **linear("linear1", b.mlp.fc1), **linear("linear2", b.mlp.fc2),
            **norm("norm2", b.layer_norm2)}


@family("pre-norm, quick-GELU. transformers applies post_layernorm to row 0 alone, the reference "
        "to all rows")
def clip_vision():
    model = make(CLIPVisionModel, hidden_size=40, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=64, image_size=8, patch_size=4, layer_norm_eps=1e-5,
                 hidden_act="quick_gelu")
    skip(model.pre_layrnorm)

    def forward(x):
        found = model(x)
        y = model.post_layernorm(found.last_hidden_state)
        assert torch.allclose(y[:, 0], found.pooler_output)
        return y

    return refer(model, model.encoder.layers, clip_layer, pre_norm(2, 64, "quick_gelu", 1e-5), 40,
                 model.post_layernorm, forward)


@family("causal; pre-norm, quick-GELU")
def clip_text():
    model = make(CLIPTextModel, vocab_size=8, hidden_size=32, num_hidden_layers=2,
                 num_attention_heads=4, intermediate_size=37, layer_norm_eps=1e-5,
                 hidden_act="quick_gelu", eos_token_id=7)

    def forward(x):
        model.embeddings.forward = lambda **_: x
        return model(input_ids=torch.zeros(x.shape[:2], dtype=torch.long)).last_hidden_state

    layer = {**pre_norm(4, 37, "quick_gelu", 1e-5), "causal": True}
    return refer(model, model.encoder.layers, clip_layer, layer, 32, model.final_layer_norm,
                 forward)


@family("pre-norm, tanh-GELU, heads of 72")
def siglip():
    model = make(SiglipVisionModel, hidden_size=144, num_hidden_layers=2, num_attention_heads=2,
                 intermediate_size=37, image_size=8, patch_size=4, layer_norm_eps=1e-6,
                 vision_use_head=False)
    return refer(model, model.encoder.layers, clip_layer, pre_norm(2, 37, "gelu_tanh", 1e-6), 144,
                 model.post_layernorm, of_image(model))


def dinov2_case(d_model, heads, swiglu, layer):
    model = make(Dinov2Model, hidden_size=d_model, num_hidden_layers=2, num_attention_heads=heads,
                 mlp_ratio=2, image_size=8, patch_size=4, layer_norm_eps=1e-6,
                 use_swiglu_ffn=swiglu)

    def tensors(b):
        first = (linear("linear1", b.mlp.gate_proj, b.mlp.up_proj) if swiglu
                 else linear("linear1", b.mlp.fc1))
        assert b.layer_scale1.lambda1.shape == (d_model,)
        return {**attention(b.attention, b.attention.o_proj), **norm("norm1", b.norm1),
                "layer_scale1": [b.layer_scale1.lambda1], **first,
                **linear("linear2", b.mlp.down_proj if swiglu else b.mlp.fc2),
                "layer_scale2": [b.layer_scale2.lambda1], **norm("norm2", b.norm2)}

    return refer(model, model.encoder.layer, tensors, layer, d_model, model.layernorm,
                 of_image(model))


@family("pre-norm, erf-GELU, LayerScale")
def dinov2():
    return dinov2_case(32, 4, False, pre_norm(4, 64, "gelu", 1e-6))


@family("pre-norm, SiLU on the first half of one matrix with a bias, LayerScale")
def dinov2_swiglu():
    # The width: 2 d_model, of that two thirds, up to a multiple of 8.
    return dinov2_case(40, 2, True, {**pre_norm(2, 56, "silu", 1e-6), "gate": "kFirstHalf"})


@family("pre-norm, erf-GELU, no bias of k")
def whisper():
    model = make(WhisperEncoder, d_model=40, encoder_layers=2, encoder_attention_heads=2,
                 encoder_ffn_dim=48, num_mel_bins=4, max_source_positions=4, vocab_size=8,
                 pad_token_id=0)

    def forward(x):  # the encoder's own takes the spectrogram of 30 seconds
        for layer in model.layers:
            x = layer(x, None)
        return model.layer_norm(x)

    def tensors(b):
        return {**attention(b.self_attn, b.self_attn.out_proj),
                **norm("norm1", b.self_attn_layer_norm), **linear("linear1", b.fc1),
                **linear("linear2", b.fc2), **norm("norm2", b.final_layer_norm)}

    return refer(model, model.layers, tensors, pre_norm(2, 48, "gelu", 1e-5), 40, model.layer_norm,
                 forward)
