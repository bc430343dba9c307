# SPDX-License-Identifier: Apache-2.0
"""Adapters for tasks beside a tiny Jina v3, as its two published folders have them, and what
transformers computes in float64 from weights that they were added to.

Holds both spellings. tasks.safetensors has ids, seq_starts and the last hidden states of each task.
"""
import json

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

TASKS = ["retrieval.query", "retrieval.passage", "separation", "classification", "text-matching"]
LENGTHS = [1, 5, 24]
RANK, ALPHA = 3, 2.0


def is_embedding(name):
    return name.endswith("_embeddings.weight")


def drawn(tensors, rng, tasks):
    """Of each matrix the two factors of each task: [tasks, rank, in] and [tasks, out, rank], of
    embeddings [tasks, words, rank] and [tasks, rank, width]."""
    factors = {}
    for name, weight in sorted(tensors.items()):
        if weight.dim() != 2:
            continue
        out, columns = weight.shape
        shapes = ((out, RANK), (RANK, columns)) if is_embedding(name) else (
            (RANK, columns), (out, RANK))
        size = 0.05 if is_embedding(name) else 0.4 * columns ** -0.5
        factors[name] = tuple(torch.tensor(size ** 0.5 * rng.standard_normal((tasks, *shape)))
                              .to(torch.float32) for shape in shapes)
    return factors


def merged(tensors, factors, task, scale):
    """The tensors in float64 with what the task's adapter adds."""
    result = {name: tensor.double() for name, tensor in tensors.items()}
    for name, (a, b) in factors.items():
        a, b = a[task].double(), b[task].double()
        result[name] += scale * (a @ b if is_embedding(name) else b @ a)
    return result


def states(folder, config, tensors):
    """The last hidden states of LENGTHS' tokens, which are always the same."""
    from model_fixture_families import set_exact
    rng = np.random.RandomState(3)
    ids = [rng.randint(0, config["vocab_size"], length) for length in LENGTHS]
    # By the names of the file, as from_pretrained() has them.
    save_file({n: t.contiguous() for n, t in tensors.items()}, folder / "f64.safetensors",
              {"format": "pt"})
    (folder / "model.safetensors").rename(folder / "kept")
    (folder / "f64.safetensors").rename(folder / "model.safetensors")
    made = transformers.JinaEmbeddingsV3Model.from_pretrained(
        folder, attn_implementation="eager", dtype=torch.float64).eval()
    (folder / "kept").rename(folder / "model.safetensors")
    set_exact(made, True)
    with torch.no_grad():
        rows = [made(input_ids=torch.tensor(i[None])).last_hidden_state[0] for i in ids]
    set_exact(made, False)
    return ids, torch.cat(rows)


def write_expected(folder, config, tensors, factors, tasks, scale):
    expected = {}
    for number, task in enumerate(tasks):
        ids, rows = states(folder, config, merged(tensors, factors, number, scale))
        expected[task] = rows
    expected["ids"] = torch.tensor(np.concatenate(ids)).to(torch.int32)
    expected["seq_starts"] = torch.tensor(np.cumsum([0, *LENGTHS]))
    save_file(expected, folder / "tasks.safetensors")


def bank(folder, config):
    """jinaai/jina-embeddings-v3: model_type xlm-roberta, and all adapters in the model's file."""
    tensors = load_file(folder / "model.safetensors")
    factors = drawn(tensors, np.random.RandomState(1), len(TASKS))
    write_expected(folder, config, tensors, factors, TASKS, ALPHA / RANK)
    stored = {}
    for name, tensor in tensors.items():
        if name not in factors:
            stored["roberta." + name] = tensor
            continue
        base = "roberta." + name.removesuffix("weight") + "parametrizations.weight."
        stored[base + "original"] = tensor
        stored[base + "0.lora_A"], stored[base + "0.lora_B"] = factors[name]
    save_file(stored, folder / "model.safetensors", {"format": "pt"})
    theta = config.pop("rope_parameters")["rope_theta"]
    here = "jinaai/xlm-roberta-flash-implementation--"
    config.update(
        model_type="xlm-roberta", architectures=["XLMRobertaModel"],
        position_embedding_type="rotary",
        auto_map={"AutoConfig": here + "configuration_xlm_roberta.XLMRobertaFlashConfig",
                  "AutoModel": here + "modeling_lora.XLMRobertaLoRA"},
        rotary_emb_base=theta, lora_adaptations=TASKS, lora_rank=RANK, lora_alpha=ALPHA,
        lora_dropout_p=0.0, lora_main_params_trainable=False, load_trained_adapters=True,
        emb_pooler="mean", matryoshka_dimensions=[32, 64], task_instructions={"separation": ""},
        truncate_dim=None, use_flash_attn=True, use_reentrant=False, output_past=True,
        torch_dtype=config.pop("dtype"))


def peft_tensors(factors, task):
    """As PEFT names and lays out the factors of transformers' modules."""
    stored = {}
    for name, (a, b) in factors.items():
        module = name.removesuffix(".weight").replace("encoder.layers.", "layers.")
        module = "base_model.model." + module.replace("mixer.out_proj", "self_attn.o_proj")
        a, b = a[task], b[task]
        if is_embedding(name):
            stored[module + ".lora_embedding_A"] = a.T.contiguous()
            stored[module + ".lora_embedding_B"] = b.T.contiguous()
        elif "Wqkv" in module:
            for one, rows in zip("qkv", b.chunk(3)):
                own = module.replace("mixer.Wqkv", f"self_attn.{one}_proj")
                stored[own + ".lora_A.weight"] = a.clone()
                stored[own + ".lora_B.weight"] = rows.contiguous()
        else:
            stored[module + ".lora_A.weight"] = a.contiguous()
            stored[module + ".lora_B.weight"] = b.contiguous()
    return stored


def peft_folders(folder, config):
    """jinaai/jina-embeddings-v3-hf: a folder of PEFT's for each of some tasks."""
    tasks = ["retrieval.query", "text-matching"]
    tensors = load_file(folder / "model.safetensors")
    factors = drawn(tensors, np.random.RandomState(2), len(tasks))
    write_expected(folder, config, tensors, factors, tasks, ALPHA / RANK)
    for number, task in enumerate(tasks):
        own = folder / task.replace(".", "_").replace("-", "_")
        own.mkdir()
        save_file(peft_tensors(factors, number), own / "adapter_model.safetensors",
                  {"format": "pt"})
        settings = {"alpha_pattern": {}, "bias": "none", "fan_in_fan_out": False,
                    "inference_mode": True, "init_lora_weights": True, "lora_alpha": ALPHA,
                    "lora_dropout": 0.0, "modules_to_save": None, "peft_type": "LORA", "r": RANK,
                    "rank_pattern": {}, "target_modules": ["q_proj"], "task_type": None,
                    "use_dora": False, "use_rslora": False}
        (own / "adapter_config.json").write_text(json.dumps(settings, indent=1))
