# SPDX-License-Identifier: Apache-2.0
"""The keys that families' configuration classes have of their own: values for those that
families.py does not list, and which of them folders varied.
"""
import collections
import dataclasses
import itertools
import json

import transformers

from folder_check import families

# What a model of texts and images has for its text side.
TEXT_SIDES = {"CLIP": "CLIPText", "Siglip": "SiglipText", "Siglip2": "Siglip2Text",
              "EmbeddingGemma2": "EmbeddingGemma2Text"}
RATES = {name: [0.3] for name in (
    "hidden_dropout_prob", "attention_probs_dropout_prob", "classifier_dropout",
    "classifier_dropout_prob", "attention_dropout", "embedding_dropout", "mlp_dropout", "dropout",
    "qa_dropout", "seq_classif_dropout", "summary_last_dropout", "pooler_dropout", "dropout_rate")}
# A value may be one, or 8 more than there is.
MORE = object()
VALUES = {
    **RATES, "hidden_size": [48, 64], "dim": [48, 64], "d_model": [48, 64], "d_kv": [5, 8, 16],
    "d_ff": [16, 50], "hidden_dim": [16, 50], "intermediate_size": [16, 50, 64],
    "num_hidden_layers": [1, 3], "n_layers": [1, 3], "num_layers": [1, 3],
    "num_attention_heads": [1, 2, 4, 8], "n_heads": [1, 2], "num_heads": [1, 2, 3],
    "num_key_value_heads": [1, 4], "head_dim": [8, 24], "initializer_range": [0.1],
    "initializer_factor": [2.0], "initializer_cutoff_factor": [3.0], "use_cache": [False, True],
    "tie_word_embeddings": [True, False], "is_decoder": [True], "add_cross_attention": [True],
    "is_encoder_decoder": [True, False], "bos_token_id": [7], "eos_token_id": [5],
    "cls_token_id": [7], "sep_token_id": [5], "mask_token_id": [9], "decoder_start_token_id": [5],
    "pad_token_id": [3, 6], "vocab_size": [MORE], "max_position_embeddings": [40, 160, 640],
    "summary_type": ["last", "mean"], "summary_use_proj": [False], "summary_activation": ["tanh"],
    "num_hidden_groups": [2], "inner_group_num": [2], "relative_attention_num_buckets": [8, 64],
    "relative_attention_max_distance": [20, 64], "layer_norm_epsilon": [1e-6, 1e-3],
    "layer_norm_eps": [1e-5, 0.01], "task_type_vocab_size": [4, 5], "pretraining_tp": [2],
    "final_logit_softcapping": [30.0], "attn_logit_softcapping": [50.0],
    "num_decoder_layers": [1, 3], "esmfold_config": [None, {"trunk": None}],
    "deterministic_flash_attn": [True], "sparse_prediction": [True],
    "sparse_pred_ignore_index": [-1], "classifier_pooling": ["cls", "mean", "late"],
    "type_vocab_size": [1, 3], "hidden_act": ["gelu", "relu", "silu"],
    "hidden_activation": ["silu", "relu"], "projection_size": [8, 40], "projection_dim": [8, 40],
    "embedding_dim": [24, 40], "embedding_size": [16, 24],
    "max_relative_positions": [40], "rms_norm_eps": [1e-5, 1e-3], "attention_bias": [True, False],
}


def own_keys(family):
    """Names of a family's own, without what all classes have."""
    config = getattr(transformers, TEXT_SIDES.get(family, family) + "Config")
    common = {field.name for field in dataclasses.fields(transformers.PreTrainedConfig)}
    return [field.name for field in dataclasses.fields(config)
            if field.name not in common | {"is_encoder_decoder"}]


def layer_types(family, settings, rng):
    """Of as many layers as there are, and others than the folder has where there is a choice."""
    kinds = ["full_attention"]
    if "sliding_window" in own_keys(family) or family == "ModernBert":
        kinds.append("sliding_attention")
    lists = itertools.product(kinds, repeat=settings["num_hidden_layers"])
    lists = [list(types) for types in lists]
    return rng.choice([types for types in lists if types != settings.get("layer_types")] or lists)


def other_angles(parameters, factor):
    """rope_parameters with each rope_theta times a factor; of some families one for each kind of
    layer."""
    return {key: value * factor if key == "rope_theta"
            else other_angles(value, factor) if isinstance(value, dict) else value
            for key, value in parameters.items()}


def value_of(family, key, settings, rng):
    """One to try."""
    if key == "layer_types":
        return layer_types(family, settings, rng)
    if key == "rope_parameters" and isinstance(settings.get(key), dict):
        return other_angles(settings[key], rng.choice([0.25, 3.0]))
    listed = families.FAMILIES[family][1].get(key)
    values = VALUES.get(key, []) + (listed if isinstance(listed, list) else [])
    config = getattr(transformers, TEXT_SIDES.get(family, family) + "Config")
    usual = next((field.default for field in dataclasses.fields(config) if field.name == key), None)
    values = [value for value in values if value != settings.get(key, usual)]
    assert values, f"no values of {family}.{key} are listed"
    value = rng.choice(values)
    return settings[key] + 8 if value is MORE else value


class Varied:
    """Which values the own keys of a family had in folders that ended as equal, and which keys
    encore refused by name."""

    def __init__(self, family):
        self.family, self.keys = family, own_keys(family)
        self.values = collections.defaultdict(set)
        self.refused = set()

    def add(self, config):
        """config: as transformers has it of an equal folder."""
        part = getattr(config, "text_config", config)
        for key in self.keys:
            self.values[key].add(json.dumps(vars(part).get(key), default=str, sort_keys=True))

    def force(self, key):
        """Of a folder with another value of a key that sentence-transformers sets itself."""
        self.values[key] |= {"usual", "another"}

    def refuse(self, key):
        self.refused.add(key)

    def missing(self):
        return [key for key in self.keys if len(self.values[key]) < 2 and key not in self.refused]

    def sentence(self):
        named = [key for key in self.keys if key in self.refused and len(self.values[key]) < 2]
        varied = len(self.keys) - len(named) - len(self.missing())
        return (f"{self.family}: {len(self.keys)} own keys, {varied} varied, {len(named)} refused "
                f"by name {named}, not tried {self.missing()}")
