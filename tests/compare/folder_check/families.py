# SPDX-License-Identifier: Apache-2.0
"""Tiny models for check_folders.py: families, the keys of their config.json that change what is
computed, keys that change nothing, and their files with random tensors.
"""
import copy
import json

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

from make_model_fixtures import BERT, DISTILBERT, ROBERTA, randomise
from model_fixture_families import (CLIP, DEBERTA, EMBEDDING_GEMMA2, ESM, GEMMA, GTE, JINA_V3,
                                    LLAMA, MODERNBERT, MPNET, NOMIC, QWEN2, QWEN3, T5, ULTRABERT,
                                    old_albert, old_bert, old_clip, old_deberta, old_ernie,
                                    old_esm, old_eurobert, old_gemma, old_llama, old_modernbert,
                                    old_t5, old_ultrabert, by_type, rope)
from whole_models import whole_config, whole_gemma

GELUS = ["gelu", "gelu_new", "relu", "silu", "gelu_pytorch_tanh", "quick_gelu"]
TYPES = {"type_vocab_size": [1, 2, 2, 3]}
BERT_KEYS = {"hidden_act": GELUS, "layer_norm_eps": [1e-12, 1e-5, 0.03], **TYPES,
             "max_position_embeddings": [24, 40, 160, 640], "num_hidden_layers": [1, 2]}
ROPE_KEYS = {"max_position_embeddings": [24, 40, 720]}
LLAMA_KEYS = {**ROPE_KEYS, "attention_bias": [False, True], "num_key_value_heads": [1, 2, 4],
              "head_dim": [8, 16], "rms_norm_eps": [1e-6, 1e-3]}
# Of decoders that may be encoders: causality, windows, activations and scalings.
ROPES = [rope(10000.0), rope(500.0, rope_type="linear", factor=2.0),
         rope(10000.0, rope_type="yarn", factor=4.0, original_max_position_embeddings=16),
         rope(500000.0, rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
              original_max_position_embeddings=40)]
DECODER_KEYS = {**LLAMA_KEYS, "is_causal": [False, True], "hidden_act": ["silu", *GELUS],
                "num_hidden_layers": [1, 2, 3], "intermediate_size": [37, 64],
                "rope_parameters": [r["rope_parameters"] for r in ROPES]}
WINDOWS = {"use_sliding_window": [True, True, False], "sliding_window": [2, 5, 20],
           "max_window_layers": [0, 1, 2]}


CLIP_KEYS = {"hidden_act": GELUS, "layer_norm_eps": [1e-5, 0.01],
             "max_position_embeddings": [24, 77, 640, 640], "num_hidden_layers": [1, 3],
             "num_attention_heads": [1, 2], "intermediate_size": [16, 64],
             "attention_dropout": [0.2]}
SIGLIP_KEYS = {**CLIP_KEYS, "max_position_embeddings": [12, 24, 64], "projection_size": [8, 40]}
WHOLE = ("CLIP", "Siglip", "Siglip2")  # models of texts and images


def without(keys, *names):
    return {key: values for key, values in keys.items() if key not in names}


# family: base, keys with their values, classes beside Model, the spelling of older folders.
FAMILIES = {
    "Bert": (BERT, BERT_KEYS, ["ForMaskedLM", "ForSequenceClassification"], old_bert),
    "Albert": ({**BERT, "embedding_size": 24}, BERT_KEYS, ["ForMaskedLM"], old_albert),
    "Ernie": (BERT, {**BERT_KEYS, "use_task_id": [False, True], "task_type_vocab_size": [3, 4]},
              ["ForMaskedLM"], old_ernie),
    "Electra": (BERT, {**BERT_KEYS, "embedding_size": [24, 32]},
                ["ForPreTraining", "ForMaskedLM"], None),
    "DistilBert": (DISTILBERT, {"activation": ["gelu", "relu"], "n_heads": [2, 4],
                                "max_position_embeddings": [24, 40, 640],
                                "sinusoidal_pos_embds": [False, True]}, ["ForMaskedLM"], None),
    "Roberta": (ROBERTA, BERT_KEYS, ["ForMaskedLM"], None),
    "XLMRoberta": (ROBERTA, BERT_KEYS, ["ForMaskedLM"], None),
    "Camembert": (ROBERTA, BERT_KEYS, [], None),
    "MPNet": (MPNET, {"hidden_act": GELUS, "layer_norm_eps": [1e-5, 0.01],
                      "max_position_embeddings": [24, 40, 640]}, ["ForMaskedLM"], None),
    "DebertaV2": (DEBERTA, {
        "hidden_act": GELUS, "layer_norm_eps": [1e-7, 0.03], "type_vocab_size": [0, 1, 2],
        "max_position_embeddings": [24, 40, 640, 640], "relative_attention": [True, False],
        "share_att_key": [True, False], "position_biased_input": [True, False],
        "pos_att_type": ["p2c|c2p", "C2P | P2C", ["c2p"], ["p2c"], [], None],
        "norm_rel_ebd": ["layer_norm", "none"], "position_buckets": [-1, 0, 8, 32, 256],
        "embedding_size": [24], "attention_head_size": [8], "num_hidden_layers": [1, 2],
        "pooler_hidden_act": ["gelu", "tanh", "relu", "silu"], "legacy": [True, False],
        "conv_kernel_size": [0, 1, 3, 3, 5, 9], "conv_groups": [1, 2, 4, 32],
        "conv_act": ["gelu", "relu", "silu", "gelu_new", "quick_gelu", "tanh"]},
                  ["ForMaskedLM"], old_deberta),
    "ModernBert": (MODERNBERT, {**ROPE_KEYS, "norm_bias": [False, True], "norm_eps": [1e-5, 0.01],
                                "attention_bias": [False, True], "mlp_bias": [False, True],
                                "hidden_activation": ["gelu", "silu", "gelu_pytorch_tanh"],
                                "local_attention": [8, 128], "decoder_bias": [True, False],
                                "classifier_pooling": ["cls", "mean"],
                                "classifier_activation": ["gelu", "relu", "tanh"],
                                "classifier_bias": [False, True], **by_type(5000.0, 300.0)},
                   ["ForMaskedLM"], old_modernbert),
    "NomicBert": (NOMIC, {**ROPE_KEYS, **rope(1000.0)}, [], None),
    "Gte": (GTE, {**ROPE_KEYS, **rope(5000.0)}, ["ForMaskedLM"], None),
    "Qwen3": (QWEN3, {**DECODER_KEYS, **WINDOWS}, ["ForCausalLM"], old_llama),
    "Qwen2": (QWEN2, {**without(DECODER_KEYS, "attention_bias"), **WINDOWS}, ["ForCausalLM"],
              old_llama),
    "Llama": (LLAMA, {**DECODER_KEYS, "mlp_bias": [False, True]}, ["ForCausalLM"], old_llama),
    "Mistral": (LLAMA, {**without(DECODER_KEYS, "attention_bias"),
                        "sliding_window": [2, 5, 20, None]}, ["ForCausalLM"], old_llama),
    "Gemma3Text": (GEMMA, {**ROPE_KEYS, "query_pre_attn_scalar": [16, 24],
                           "use_bidirectional_attention": [False, True],
                           "is_causal": [True, True, False], "sliding_window": [4, 9, 60],
                           "num_key_value_heads": [1, 2, 4], "head_dim": [8, 16],
                           "rms_norm_eps": [1e-6, 1e-3], "attention_bias": [False, True],
                           "hidden_activation": ["gelu_pytorch_tanh", "silu"],
                           "num_hidden_layers": [2, 3], **by_type(10000.0, 500.0)},
                   [], old_gemma),
    "EmbeddingGemma2Text": ({**EMBEDDING_GEMMA2, "embedding_dim": 32}, {
        **ROPE_KEYS, "attention_bias": [False, True], "head_dim": [8, 16],
        "hidden_activation": ["gelu_pytorch_tanh", "silu"], "num_key_value_heads": [1, 2, 4],
        "sliding_window": [1, 4, 20], "num_hidden_layers": [1, 2, 4],
        "sliding_window_pattern": [1, 2, 3], "global_head_dim": [8, 16],
        "num_global_key_value_heads": [1, 2, 4], "hidden_size_per_layer_input": [5, 12, 40],
        "rms_norm_eps": [1e-6, 1e-3], **by_type(10000.0, 500.0)}, [], None),
    "EmbeddingGemma2": ({**EMBEDDING_GEMMA2, "embedding_dim": 32}, {
        **ROPE_KEYS, "head_dim": [8, 16], "num_key_value_heads": [1, 2, 4],
        "sliding_window": [1, 4, 20], "num_hidden_layers": [1, 2, 4],
        "global_head_dim": [8, 16], "hidden_size_per_layer_input": [5, 12, 40],
        "top": [{"image_token_id": 5, "video_token_id": 6, "audio_token_id": 300}],
        **by_type(10000.0, 500.0)}, [], None),
    "Ultrabert": (ULTRABERT, {**without(DECODER_KEYS, "is_causal"), "mlp_bias": [False, True],
                              "sliding_window": [1, 5, 20],
                              "layer_types": [None, ["full_attention", "sliding_attention",
                                                     "full_attention"]],
                              "num_hidden_layers": 3, "classifier_pooling": ["cls", "mean"],
                              "prediction_head_size": [12, 32], **by_type(20000.0, 500.0)},
                  ["ForMaskedLM"], old_ultrabert),
    "EuroBert": (LLAMA, {**LLAMA_KEYS, "mlp_bias": [False, True],
                         "classifier_pooling": ["bos", "mean"], **rope(250000.0)},
                 ["ForMaskedLM"], old_eurobert),
    "T5": (T5, {"feed_forward_proj": ["relu", "gated-gelu", "gelu", "gated-silu"],
                "relative_attention_num_buckets": [8, 32],
                "relative_attention_max_distance": [20, 128],
                "layer_norm_epsilon": [1e-6, 1e-3]}, ["ForConditionalGeneration"], old_t5),
    "Esm": (ESM, {"position_embedding_type": ["rotary", "rotary", "absolute"],
                  "token_dropout": [True, False, None], "emb_layer_norm_before": [True, False],
                  "layer_norm_eps": [1e-12, 1e-5, 0.01], "rope_theta": [10000.0, 300.0],
                  "mask_token_id": [4, 32], "max_position_embeddings": [24, 160, 720, 720],
                  "num_hidden_layers": [1, 3], "num_attention_heads": [1, 2],
                  "intermediate_size": [16, 64], "vocab_list": [None, ["A"]],
                  "is_folding_model": [False], "hidden_dropout_prob": [0.3],
                  "use_cache": [False], "classifier_dropout": [0.2]},
            ["ForMaskedLM", "ForTokenClassification"], old_esm),
    "JinaEmbeddingsV3": (JINA_V3, {**BERT_KEYS, "max_position_embeddings": [24, 160, 720, 720],
                                   "type_vocab_size": [1, 1, 2], "num_attention_heads": [1, 2],
                                   "intermediate_size": [16, 64], "hidden_dropout_prob": [0.3],
                                   "attention_probs_dropout_prob": [0.3], "use_cache": [False],
                                   "initializer_range": [0.1], "classifier_dropout": [0.2],
                                   **rope(5000.0)},
                         ["ForMaskedLM", "ForTokenClassification", "ForQuestionAnswering"], None),
    "CLIPText": (CLIP, {**CLIP_KEYS, "projection_dim": [8, 512], "initializer_factor": [2.0],
                        "eos_token_id": [2, 5, 49407]}, [], old_clip),
    "CLIP": (CLIP, {**CLIP_KEYS, "eos_token_id": [2, 5, 49407], "projection_dim": [8, 40]}, [],
             None),
    "Siglip": (CLIP, SIGLIP_KEYS, [], None),
    "Siglip2": (CLIP, SIGLIP_KEYS, [], None),
    "MT5": (T5, {"feed_forward_proj": ["gated-gelu", "relu"]}, [], None),
}
HEADS = ["Bert", "Albert", "Ernie", "Electra", "DistilBert", "Roberta", "XLMRoberta", "Camembert",
         "MPNet", "DebertaV2", "ModernBert", "NomicBert", "Gte", "EuroBert", "Ultrabert", "Esm",
         "JinaEmbeddingsV3", "Llama", "Mistral", "Qwen2", "Qwen3", "Gemma3Text"]
DECODERS = ["Llama", "Mistral", "Qwen2", "Qwen3", "Gemma3Text"]

# What nobody reads, what other families or older versions read, and what trainers leave.
NOTHING = {
    "emb_size": 312, "is_causal": False, "causal_mask": True, "somebodys_key": [1, "two"],
    "transformers.js_config": {"dtype": "fp32"}, "_note": None, "use_cache": False,
    "gradient_checkpointing": False, "position_embedding_type": "absolute", "model_name": "mine",
    "hidden_dropout": 0.5, "classifier_dropout": 0.2, "n_ctx": 512, "lora_alpha": 32,
    "output_hidden_states": True, "task_specific_params": None, "torchscript": False,
    "summary_type": "cls_index", "embedding_dimension": 7, "quant": {"bits": 4},
    "problem_type": None,
    "max_length": 5, "max_seq_length": 9, "padding_side": "left", "rotary_dim": 8,
}
# What a family may read, at a value that changes something there.
FOREIGN = {
    "rope_theta": 100.0, "layer_norm_eps": 0.5, "hidden_act": "relu", "norm_eps": 0.4,
    "sliding_window": 3, "attention_bias": True, "position_embedding_type": "relative_key",
    "is_decoder": True, "embedding_size": 8, "rope_scaling": {"type": "linear", "factor": 4.0},
    "layer_types": ["full_attention"], "n_layers": 1, "num_layers": 1, "use_task_id": True,
    "scale_attn_weights": False, "prenorm": True, "head_dim": 4, "pruned_heads": {"0": [0]},
    "rms_norm_eps": 0.2, "num_key_value_heads": 1, "is_encoder_decoder": True, "mlp_bias": True,
    "tie_word_embeddings": False, "add_cross_attention": False, "layer_norm_type": "rms_norm",
}


def draw_only(names):
    """Leaves no other families to draw."""
    for name in [name for name in FAMILIES if name not in names]:
        del FAMILIES[name]
    HEADS[:] = [name for name in HEADS if name in FAMILIES]


def draw_family(rng, classifies):
    return rng.choice(HEADS if classifies else list(FAMILIES))


def draw_model(rng, family, vocabulary, pad, classifies):
    """What a model is: a description that write_model() carries out."""
    base, keys, kinds, old = FAMILIES[family]
    settings = {**copy.deepcopy(base), "vocab_size": vocabulary}
    for key, values in keys.items():
        # rope_parameters is an object that belongs to the family.
        if not isinstance(values, list):
            settings[key] = copy.deepcopy(values)
        elif rng.random() < 0.4:
            settings[key] = rng.choice(values)
    settings["pad_token_id"] = pad
    if family == "Esm" and settings.get("position_embedding_type") != "rotary":
        settings["max_position_embeddings"] += pad + 1
    if family in ("Roberta", "XLMRoberta", "Camembert") and rng.random() < 0.8:
        settings["pad_token_id"] = min(pad, 5)
    for key in ("bos_token_id", "eos_token_id", "cls_token_id", "sep_token_id"):
        settings.pop(key, None)
    if family in DECODERS and classifies:  # some texts end with such a token, all with some
        settings["pad_token_id"] = rng.choice([pad, pad, None, rng.randrange(vocabulary)])
    if family == "CLIP":  # of its tokenizer the pad token is the end
        settings["eos_token_id"] = rng.choice([2, pad, pad, 49407])
    kind = "EncoderModel" if family in ("T5", "MT5") else "Model"
    labels = 0
    if classifies:
        kind, labels = "ForSequenceClassification", rng.choice([1, 1, 1, 2, 3])
    elif kinds and rng.random() < 0.35:
        kind = rng.choice(kinds)
    kind = "ForCausalLM" if family == "Gemma3Text" and not labels and rng.random() < 0.3 else kind
    more = {}
    if rng.random() < 0.35:
        more = {key: NOTHING[key] for key in rng.sample(list(NOTHING), rng.randint(1, 3))}
    if rng.random() < 0.08:
        key = rng.choice(list(FOREIGN))
        if key not in settings:
            more[key] = FOREIGN[key]
    remove = [key for key in ("architectures", "transformers_version", "dtype")
              if rng.random() < 0.06]
    return {"family": family, "kind": kind, "labels": labels, "settings": settings, "more": more,
            "remove": remove, "old": bool(old) and rng.random() < 0.25,
            "dtype": rng.choice(["float32", "float32", "float16", "bfloat16"]),
            "other_words": family == "T5" and rng.random() < 0.3,
            "seed": rng.randrange(1 << 30)}


def class_of(model):
    if model["family"] == "Gemma3Text" and model["kind"] == "ForCausalLM":
        return transformers.Gemma3ForCausalLM
    return getattr(transformers, model["family"] + model["kind"])


def write_model(model, folder):
    settings = copy.deepcopy(model["settings"])
    if model["labels"]:
        settings["id2label"] = {i: f"name {i}" for i in range(model["labels"])}
        settings["label2id"] = {f"name {i}": i for i in range(model["labels"])}
    family = model["family"]
    settings = fitting(family, settings)
    if family == "EmbeddingGemma2":
        config = None
    elif family in WHOLE:
        config = whole_config(family, {"projection_dim": 32, **settings})
    else:
        config = getattr(transformers, family + "Config")(**settings)
    dtype = getattr(torch, model["dtype"])
    made = (whole_gemma(settings) if config is None else class_of(model)(config)).eval()
    randomise(made, np.random.RandomState(model["seed"]), dtype)
    made.to(dtype).save_pretrained(folder)
    if model["other_words"]:
        change_alias(folder / "model.safetensors", model["seed"])
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if model["old"]:
        architectures = config.get("architectures")
        FAMILIES[family][3](folder, config)
        if family != "T5":
            config["architectures"] = architectures
        config.pop("auto_map", None)
    config.update(model["more"])
    for key in model["remove"]:
        config.pop(key, None)
    path.write_text(json.dumps(config, indent=1))


def fitting(family, settings):
    """Sizes that fit together."""
    if family == "Gemma3Text":
        settings["layer_types"] = settings["layer_types"][:settings["num_hidden_layers"]]
    if family == "DebertaV2":  # where it is absent, transformers takes tanh, which encore refuses
        settings.setdefault("conv_act", "gelu")
    if family == "DebertaV2":  # 0: as max_position_embeddings
        settings["max_relative_positions"] = {8: 40, 32: 128, 256: 512}.get(
            settings["position_buckets"], 0)
    if family == "Camembert" or family == "XLMRoberta" or family == "Roberta":
        settings["max_position_embeddings"] += settings["pad_token_id"] + 1
    if family == "T5" and settings.get("relative_attention_max_distance") == 20:
        settings["relative_attention_num_buckets"] = 8
    return settings


def change_alias(path, seed):
    """A second table of words that is not the first."""
    tensors = load_file(path)
    words = tensors["shared.weight"]
    drawn = np.random.RandomState(seed + 1).standard_normal(tuple(words.shape))
    tensors["encoder.embed_tokens.weight"] = torch.tensor(drawn).to(words.dtype)
    save_file(tensors, path, {"format": "pt"})
