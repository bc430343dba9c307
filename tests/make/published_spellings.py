# SPDX-License-Identifier: Apache-2.0
"""How published folders of some families spell what transformers 5 writes otherwise."""
import torch
from safetensors.torch import load_file, save_file


def old_esm(folder, config):
    """As facebook/esm2: frequencies in each layer, a table of positions that is not used."""
    tensors = load_file(folder / "model.safetensors")
    base = "esm." if any(n.startswith("esm.") for n in tensors) else ""
    for name in [n for n in tensors if n.endswith("inv_freq")]:
        frequencies = tensors.pop(name)
        for i in range(config["num_hidden_layers"]):  # the first layer's count
            tensors[f"{base}encoder.layer.{i}.attention.self.rotary_embeddings.inv_freq"] = (
                frequencies / (i + 1))
        tensors[base + "embeddings.position_embeddings.weight"] = torch.ones(
            config["max_position_embeddings"], config["hidden_size"], dtype=torch.float16)
    inputs = config["num_hidden_layers"] * config["num_attention_heads"]
    tensors[base + "contact_head.regression.weight"] = torch.ones(1, inputs)
    tensors[base + "contact_head.regression.bias"] = torch.ones(1)
    save_file(tensors, folder / "model.safetensors", {"format": "pt"})
    for key in ("rope_theta", "is_decoder", "add_cross_attention", "tie_word_embeddings"):
        config.pop(key, None)
    config.update(esmfold_config=None, is_folding_model=False, vocab_list=None, hidden_act="gelu",
                  classifier_dropout=None, torch_dtype=config.pop("dtype"))


def old_clip(folder, config):
    """With what stands before the names, and positions as a buffer."""
    path = folder / "model.safetensors"
    tensors = {n if n.startswith("text_") else "text_model." + n: t
               for n, t in load_file(path).items()}
    tensors["text_model.embeddings.position_ids"] = torch.arange(
        config["max_position_embeddings"])[None]
    save_file(tensors, path, {"format": "pt"})
    config.update(torch_dtype=config.pop("dtype"), dropout=0.0, eos_token_id=2)


def old_albert(folder, config):
    """With the keys of the first code's other networks."""
    for key in ("is_decoder", "add_cross_attention", "tie_word_embeddings"):
        config.pop(key, None)
    config.update(down_scale_factor=1, gap_size=0, net_structure_type=0, num_memory_blocks=0,
                  layers_to_keep=[], position_embedding_type="absolute",
                  gradient_checkpointing=False, torch_dtype=config.pop("dtype"))


def old_deberta(folder, config):
    """As published: one string of terms, and keys of training."""
    for key in ("is_decoder", "add_cross_attention", "tie_word_embeddings", "bos_token_id",
                "eos_token_id", "legacy"):
        config.pop(key, None)
    if isinstance(config.get("pos_att_type"), list):
        config["pos_att_type"] = "|".join(config["pos_att_type"])
    config.update(pooler_dropout=0, vocab_type="spm", torch_dtype=config.pop("dtype"))


def old_ernie(folder, config):
    """With keys of the framework that it was trained in."""
    config.update(enable_recompute=False, fuse=False, paddlenlp_version=None, pool_act="tanh",
                  task_id=0, position_embedding_type="absolute", torch_dtype=config.pop("dtype"))



def old_modernbert(folder, config):
    rope = config.pop("rope_parameters")
    config.pop("layer_types")
    config.update(global_rope_theta=rope["full_attention"]["rope_theta"], reference_compile=True,
                  local_rope_theta=rope["sliding_attention"]["rope_theta"],
                  global_attn_every_n_layers=3, position_embedding_type="absolute",
                  layer_norm_eps=1e-5)



def old_nomic(folder, config):
    new = {"architectures": ["NomicBertModel"], "model_type": "nomic_bert",
           "activation_function": "swiglu", "attn_pdrop": 0.0, "bos_token_id": None,
           "auto_map": {"AutoModel": "modeling_hf_nomic_bert.NomicBertModel"}, "causal": False,
           "dense_seq_output": True, "embd_pdrop": 0.0, "eos_token_id": None,
           "fused_bias_fc": True, "fused_dropout_add_ln": True, "initializer_range": 0.02,
           "layer_norm_epsilon": config["layer_norm_eps"], "max_trained_positions": 2048,
           "mlp_fc1_bias": False, "mlp_fc2_bias": False, "n_embd": config["hidden_size"],
           "n_head": config["num_attention_heads"], "n_inner": config["intermediate_size"],
           "n_layer": config["num_hidden_layers"], "n_positions": 8192,
           "pad_vocab_size_multiple": 8, "parallel_block": False,
           "parallel_block_tied_norm": False, "prenorm": False, "qkv_proj_bias": False,
           "reorder_and_upcast_attn": False, "resid_pdrop": 0.0,
           "rope_parameters": config["rope_parameters"],
           "rotary_emb_base": config["rope_parameters"]["rope_theta"],
           "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
           "rotary_emb_scale_base": None, "rotary_scaling_factor": None,
           "scale_attn_by_inverse_layer_idx": False, "scale_attn_weights": True,
           "summary_activation": None, "summary_first_dropout": 0.0,
           "summary_proj_to_labels": True, "summary_type": "cls_index", "summary_use_proj": True,
           "torch_dtype": "float16", "transformers_version": "4.37.2",
           "type_vocab_size": config["type_vocab_size"], "use_cache": True,
           "use_flash_attn": True, "use_rms_norm": False, "use_xentropy": True,
           "vocab_size": config["vocab_size"]}
    config.clear()
    config.update(new)



def old_gemma(folder, config):
    rope = config.pop("rope_parameters")
    config.update(rope_theta=rope["full_attention"]["rope_theta"], rope_scaling=None,
                  rope_local_base_freq=rope["sliding_attention"]["rope_theta"])
