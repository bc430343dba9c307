# SPDX-License-Identifier: Apache-2.0
"""Tiny models of texts and images, CLIP and SigLIP, and of sounds too, EmbeddingGemma 2, of which
the text side counts."""
import torch
import transformers
from safetensors.torch import load_file, save_file

# The other side of models of texts and images: as little as there can be.
VISION = {"hidden_size": 8, "intermediate_size": 8, "num_hidden_layers": 1,
          "num_attention_heads": 1, "image_size": 8, "patch_size": 8}


def whole_config(family, settings):
    """CLIP's or SigLIP's, of the text side's settings."""
    more = {"projection_dim": settings["projection_dim"]} if family == "CLIP" else {}
    config = getattr(transformers, family + "Config")(text_config=settings, vision_config=VISION,
                                                      **more)
    for part in (config, config.text_config, config.vision_config):
        part._attn_implementation = "eager"
    return config


class Whole(torch.nn.Module):
    """A model of texts and images, of which the text side counts. The last of the hidden states are
    those behind the layer that makes a text's vector of one of them."""

    def __init__(self, family, settings):
        super().__init__()
        self.whole = getattr(transformers, family + "Model")(whole_config(family, settings))

    def forward(self, input_ids, output_hidden_states=True):
        text = self.whole.text_model
        out = text(input_ids=input_ids, output_hidden_states=True)
        last = getattr(self.whole, "text_projection", None) or text.head
        return type("Output", (), {"hidden_states": (*out.hidden_states[:-1],
                                                     last(out.last_hidden_state))})()

    def save_pretrained(self, folder):
        self.whole.save_pretrained(folder)


def whole_gemma(settings):
    """EmbeddingGemma 2 without its other sides. settings: the text side's, and those at the top."""
    top = settings.pop("top", {})
    config = transformers.EmbeddingGemma2Config(text_config=settings, vision_config=None,
                                                audio_config=None, **top)
    for part in (config, config.text_config):
        part._attn_implementation = "eager"
    return transformers.EmbeddingGemma2Model(config)


def published_gemma(folder, config):
    """With the other sides, of which nothing counts here."""
    path = folder / "model.safetensors"
    more = {name: torch.ones(2, 2, dtype=torch.bfloat16) for name in (
        "vision_tower.encoder.layers.0.weight", "audio_tower.layers.0.weight",
        "embed_vision.embedding_projection.weight", "embed_audio.embedding_projection.weight")}
    save_file({**load_file(path), **more}, path, {"format": "pt"})
    config.update(vision_config={"model_type": "gemma4_vision", "hidden_size": 2},
                  audio_config={"model_type": "gemma4_audio", "hidden_size": 2})


def old_whole_clip(folder, config):
    """As OpenAI's large one: the text side's keys twice, of which the second count."""
    config["text_config_dict"] = {key: config["text_config"][key] for key in (
        "hidden_size", "intermediate_size", "num_attention_heads", "num_hidden_layers",
        "vocab_size", "max_position_embeddings", "layer_norm_eps", "projection_dim")}
    config["text_config"].update(hidden_size=64, layer_norm_eps=0.5, eos_token_id=2,
                                 torch_dtype=None, top_k=50, pruned_heads={})
    config.update(vision_config_dict={}, torch_dtype=config.pop("dtype"), transformers_version=None)
