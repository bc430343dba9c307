# SPDX-License-Identifier: Apache-2.0
"""Families with heads that label tokens or predict masked ones: tiny models of their classes, with
every tensor random and a tokenizer beside them. And the heads of published code that transformers
has not, around its layers.
"""
import json
import pathlib
import shutil

import numpy as np

from make_text_fixtures import CORPUS, write_json

TOKENIZER = pathlib.Path(__file__).resolve().parents[1] / "data/text/base/tokenizer.json"
LABELS = ["O", "B-PER", "I-PER", "B-LOC", "I-LOC", "B-MISC-X", "MONEY"]
# Of both kinds of families: the keys that BERT has other names for.
SIZES = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
         "intermediate_size": 37, "max_position_embeddings": 160}
DISTILBERT = {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 37,
              "max_position_embeddings": 160}
# Families with both heads: the start of the classes' names, and keys beside SIZES.
GROUPED = {"num_key_value_heads": 2, "head_dim": 8, "pad_token_id": 0}
T5 = {"d_model": 32, "d_kv": 12, "d_ff": 37, "num_layers": 2, "num_heads": 4, "pad_token_id": 0}
FAMILIES = {
    "Bert": {"type_vocab_size": 2, "pad_token_id": 0},
    "Ernie": {"type_vocab_size": 2, "pad_token_id": 0},
    "Roberta": {"type_vocab_size": 1, "pad_token_id": 1},
    "XLMRoberta": {"type_vocab_size": 1, "pad_token_id": 1},
    "Camembert": {"type_vocab_size": 1, "pad_token_id": 1},
    "MPNet": {"pad_token_id": 1},
    "DistilBert": {"pad_token_id": 0},
    "Electra": {"type_vocab_size": 2, "pad_token_id": 0, "embedding_size": 20},
    "Albert": {"type_vocab_size": 2, "pad_token_id": 0, "embedding_size": 20},
    "ModernBert": {"pad_token_id": 0, "cls_token_id": 2, "sep_token_id": 3, "bos_token_id": 2,
                   "eos_token_id": 3, "local_attention": 16, "global_attn_every_n_layers": 2},
    "DebertaV2": {"type_vocab_size": 0, "position_biased_input": False, "pad_token_id": 0,
                  "relative_attention": True, "share_att_key": True,
                  "pos_att_type": ["p2c", "c2p"], "norm_rel_ebd": "layer_norm",
                  "position_buckets": 32, "max_relative_positions": 128},
    "Esm": {"pad_token_id": 0, "mask_token_id": 4, "token_dropout": True,
            "position_embedding_type": "rotary", "layer_norm_eps": 1e-5},
    "EuroBert": {**GROUPED, "tie_word_embeddings": True},
    "Gte": {"num_attention_heads": 2, "type_vocab_size": 2, "pad_token_id": 0},
    "NomicBert": {"num_attention_heads": 2, "type_vocab_size": 2, "pad_token_id": 0},
    "JinaEmbeddingsV3": {"num_attention_heads": 2, "type_vocab_size": 1, "pad_token_id": 1},
    "Ultrabert": {**GROUPED, "num_hidden_layers": 3, "sliding_window": 20,
                  "prediction_head_size": 24},
}
# Of small folders, for families that have these keys.
SMALL = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2,
         "intermediate_size": 20, "max_position_embeddings": 80}
# Those that label tokens alone.
LABELLERS = {
    "Llama": GROUPED, "Qwen3": GROUPED, "Mistral": {**GROUPED, "sliding_window": 20},
    "T5": T5, "MT5": {**T5, "feed_forward_proj": "gated-gelu"},
}


def keys_of(family):
    sizes = DISTILBERT if family == "DistilBert" else {} if family in ("T5", "MT5") else SIZES
    return {**sizes, **{**FAMILIES, **LABELLERS}[family]}


def vocabulary_size(tokenizer=None):
    """Of tokenizer.json's text, BERT's without one."""
    file = json.loads(tokenizer or TOKENIZER.read_text())
    return 1 + max([t["id"] for t in file["added_tokens"]] + [len(file["model"]["vocab"]) - 1])


def tokenizer_of(shape, size=300):
    """The text of a tokenizer.json of the shape that shapes.py has by this name."""
    import shapes
    return getattr(shapes, shape)(lambda: iter(CORPUS.strip().splitlines() * 3), size).to_str()


def write_tokenizer(folder, text):
    """BERT's without a text."""
    if text is None:
        shutil.copy(TOKENIZER, folder / "tokenizer.json")
    else:
        (folder / "tokenizer.json").write_text(text)
    tree = json.loads((folder / "tokenizer.json").read_text())
    known = {token["content"] for token in tree["added_tokens"]}
    names = {"unk_token": ["[UNK]", "<unk>"], "cls_token": ["[CLS]", "<s>"],
             "sep_token": ["[SEP]", "</s>"], "pad_token": ["[PAD]", "<pad>", "<|endoftext|>"],
             "mask_token": ["[MASK]", "<mask>"]}
    write_json(folder / "tokenizer_config.json", {
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64,
        **{key: name for key, both in names.items() for name in both if name in known}})


def draw_model(family, task, rng, folder, dtype=np.float16, tokenizer=None, **changes):
    """A model of a family with every tensor random, and a tokenizer, BERT's without its text."""
    import torch
    import transformers
    from make_model_fixtures import randomise
    settings = {**keys_of(family), "vocab_size": vocabulary_size(tokenizer), **changes}
    if task == "TokenClassification":
        settings["id2label"] = dict(enumerate(LABELS))
        settings["label2id"] = {label: i for i, label in enumerate(LABELS)}
    config = getattr(transformers, family + "Config")(**settings)
    model = getattr(transformers, f"{family}For{task}")(config).eval()
    torch_type = {np.float16: torch.float16, np.float32: torch.float32}[dtype]
    randomise(model, rng, torch_type)
    with torch.no_grad():  # labels and logits that differ
        for name, p in model.named_parameters():
            if name.startswith(("classifier.", "score.")):
                p.mul_(3)
    model.to(torch_type).save_pretrained(folder)
    write_tokenizer(folder, tokenizer)


# ---- Heads of published code, and scores.


def exact(model):
    """In float64 throughout."""
    from model_fixture_families import set_exact
    model = model.eval().double()
    set_exact(model, True)
    return model


def save(model, folder, dtype, rename=lambda name: name, leave_out=()):
    from safetensors.torch import save_file
    import torch
    torch_type = {np.float16: torch.float16, np.float32: torch.float32}[dtype]
    save_file({rename(name): tensor.to(torch_type) for name, tensor in model.state_dict().items()
               if name not in leave_out}, folder / "model.safetensors", {"format": "pt"})


def states(model, ids, **given):
    import torch
    return [model(input_ids=torch.tensor([row]), **given).last_hidden_state[0] for row in ids]


def new_gte(rng, folder, dtype, ids):
    """Alibaba-NLP/new-impl: its head has the layers' activation."""
    import torch
    import transformers
    from transformers.activations import ACT2FN
    act = str(rng.choice(["gelu", "relu", "silu", "gelu_new"]))
    draw_model("Gte", "MaskedLM", rng, folder, dtype, hidden_act=act)
    model = exact(transformers.GteForMaskedLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager"))
    from model_fixture_families import rename_tensors
    rename_tensors(folder, lambda name: name.replace("gte.", "new."))
    config = json.loads((folder / "config.json").read_text())
    config.update(model_type="new", architectures=["NewForMaskedLM"],
                  position_embedding_type="rope",
                  rope_theta=config.pop("rope_parameters")["rope_theta"],
                  auto_map={"AutoModelForMaskedLM": "modeling.NewForMaskedLM"})
    write_json(folder / "config.json", config)
    head = model.lm_head
    return [head.decoder(head.layer_norm(ACT2FN[act](head.dense(x)))).numpy()
            for x in states(model.gte, ids)]


def published_nomic(rng, folder, dtype, ids):
    """nomic-ai/nomic-bert-2048: its head has no biases where the networks have none."""
    import torch
    import transformers
    from published_spellings import old_nomic
    from safetensors.torch import load_file, save_file
    gate = str(rng.choice(["silu", "gelu"]))
    draw_model("NomicBert", "MaskedLM", rng, folder, dtype, hidden_act=gate)
    model = exact(transformers.NomicBertForMaskedLM.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager"))
    path = folder / "model.safetensors"
    tensors = {name.replace("nomic_bert.", "bert."): tensor
               for name, tensor in load_file(path).items()
               if not (name.startswith("cls.") and name.endswith(("dense.bias", "predictions.bias",
                                                                  "decoder.bias")))}
    save_file(tensors, path, {"format": "pt"})
    config = json.loads((folder / "config.json").read_text())
    old_nomic(folder, config)
    config.update(architectures=["NomicBertForPreTraining"],
                  activation_function={"silu": "swiglu", "gelu": "geglu"}[gate])
    write_json(folder / "config.json", config)
    head = model.cls.predictions
    for layer in (head.transform.dense, head.decoder):
        layer.bias = None
    return [head(x).numpy() for x in states(model.nomic_bert, ids)]


def jina_bert(rng, folder, dtype, ids):
    """jinaai/jina-bert-implementation: BERT's head behind layers with ALiBi."""
    import torch
    import transformers
    from make_model_fixtures import randomise
    from model_fixture_families import JINA, JinaBert
    from transformers.models.bert.modeling_bert import BertOnlyMLMHead
    act = str(rng.choice(["gelu", "relu", "silu"]))
    settings = {**JINA, "vocab_size": vocabulary_size(), "hidden_act": act,
                "feed_forward_type": str(rng.choice(["geglu", "reglu"]))}
    model = torch.nn.Module()
    model.bert = JinaBert(settings, 0)
    model.cls = BertOnlyMLMHead(transformers.BertConfig(**settings))
    randomise(model, rng, {np.float16: torch.float16, np.float32: torch.float32}[dtype])
    model.cls.predictions.bias = model.cls.predictions.decoder.bias
    save(model, folder, dtype, leave_out=["cls.predictions.decoder.bias",
                                          "cls.predictions.decoder.weight"])
    model.cls.predictions.decoder.weight = model.bert.embeddings.word_embeddings.weight
    write_json(folder / "config.json", {
        **settings, "architectures": ["JinaBertForMaskedLM"], "model_type": "bert",
        "position_embedding_type": "alibi", "emb_pooler": "mean",
        "auto_map": {"AutoModelForMaskedLM": "modeling_bert.JinaBertForMaskedLM"}})
    model = exact(model)
    found = []
    for row in ids:
        row = torch.tensor([row])
        x = model.bert(row, torch.zeros_like(row)).hidden_states[-1][0]
        found.append(model.cls(x).numpy())
    return found


def llama_bidirec(rng, folder, dtype, ids):
    """NVIDIA's rerankers: scores of texts."""
    import torch
    import transformers
    draw_model("Llama", "SequenceClassification", rng, folder, dtype, is_causal=False,
               num_labels=int(rng.choice([1, 3])))
    model = exact(transformers.LlamaForSequenceClassification.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager"))
    pooling, temperature = str(rng.choice(["avg", "cls", "last"])), float(rng.choice([1, 0.2]))
    config = json.loads((folder / "config.json").read_text())
    config.pop("is_causal")
    name = "LlamaBidirectionalForSequenceClassification"
    config.update(model_type="llama_bidirec", architectures=[name], pooling=pooling,
                  temperature=temperature,
                  auto_map={"AutoConfig": "llama_bidirectional_model.LlamaBidirectionalConfig",
                            "AutoModelForSequenceClassification":
                            "llama_bidirectional_model." + name})
    write_json(folder / "config.json", config)
    pool = {"avg": lambda x: x.mean(0), "cls": lambda x: x[0], "last": lambda x: x[-1]}[pooling]
    return [(model.score(pool(x)) / temperature).numpy() for x in states(model.model, ids)]


def eurobert_late(rng, folder, dtype, ids):
    """The mean of each token's logits, which only this family has."""
    import torch
    import transformers
    draw_model("EuroBert", "SequenceClassification", rng, folder, dtype, num_labels=3,
               classifier_pooling="late")
    model = exact(transformers.EuroBertForSequenceClassification.from_pretrained(
        folder, dtype=torch.float64, attn_implementation="eager"))
    return [model(torch.tensor([row])).logits[0].numpy() for row in ids]


PUBLISHED = {kind.__name__: kind for kind in (new_gte, published_nomic, jina_bert, llama_bidirec,
                                              eurobert_late)}


def draw_published(kind, rng, folder, dtype, texts):
    """A folder of a published spelling, and what its head makes of texts: float64 throughout."""
    import torch
    import transformers
    folder.mkdir(parents=True, exist_ok=True)
    write_tokenizer(folder, None)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder)
    ids = [tokenizer(text, truncation=True)["input_ids"] for text in texts]
    with torch.no_grad():
        return PUBLISHED[kind](rng, folder, dtype, ids)
