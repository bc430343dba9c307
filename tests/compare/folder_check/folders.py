# SPDX-License-Identifier: Apache-2.0
"""Whole folders for check_folders.py: tokenizers with their classes and keys, and the texts that
are tried.
"""
import functools
import json
import pathlib

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from transformers.convert_slow_tokenizer import import_protobuf

from folder_check import families, own_keys
from folder_check.modules import (draw_features, draw_modules, draw_padding, draw_scores,
                                  draw_settings, features_of, one_in, width_of)
from make_text_fixtures import CORPUS
import shapes

BASE = pathlib.Path(__file__).resolve().parents[3] / "tests/data/text/base/tokenizer.json"
BERT_CLASSES = ["BertTokenizer", "BertTokenizerFast", "PreTrainedTokenizerFast", "ElectraTokenizer",
                "DistilBertTokenizer", "TokenizersBackend", "FunnelTokenizer", None]
BPE_CLASSES = ["PreTrainedTokenizerFast", "TokenizersBackend", None]
UNIGRAM_CLASSES = ["XLMRobertaTokenizer", "PreTrainedTokenizerFast", "TokenizersBackend", None]
TOKENIZERS = {  # shape: what makes it, classes that folders of it name, the pad token
    "uncased": (None, BERT_CLASSES, "[PAD]"),
    "cased": (None, BERT_CLASSES, "[PAD]"),
    "MPNet": (shapes.mpnet, ["MPNetTokenizer", "PreTrainedTokenizerFast", None], "<pad>"),
    "RoBERTa": (shapes.roberta, ["RobertaTokenizer", "RobertaTokenizerFast", *BPE_CLASSES],
                "<pad>"),
    "ModernBERT": (shapes.modernbert, BPE_CLASSES, "[PAD]"),
    "Qwen": (shapes.qwen, ["Qwen2Tokenizer", "Qwen2TokenizerFast", *BPE_CLASSES], "<|endoftext|>"),
    "GPT-2": (shapes.gpt2, ["GPT2Tokenizer", "GPT2TokenizerFast", *BPE_CLASSES], "<|endoftext|>"),
    "Gemma": (shapes.gemma, ["GemmaTokenizer", "GemmaTokenizerFast", *BPE_CLASSES], "<pad>"),
    "Llama 2": (shapes.llama2, ["LlamaTokenizer", "LlamaTokenizerFast", *BPE_CLASSES], "</s>"),
    "XLM-R": (shapes.xlm_roberta, UNIGRAM_CLASSES, "<pad>"),
    "bge-m3": (shapes.bge_m3, UNIGRAM_CLASSES, "<pad>"),
    "T5": (shapes.t5, ["T5Tokenizer", "T5TokenizerFast", *UNIGRAM_CLASSES[1:]], "<pad>"),
    "CamemBERT": (shapes.camembert, ["CamembertTokenizer", *UNIGRAM_CLASSES[1:]], "<pad>"),
    "DeBERTa": (shapes.deberta, ["DebertaV2Tokenizer", "DebertaV2TokenizerFast",
                                 *UNIGRAM_CLASSES[1:]], "[PAD]"),
    "CLIP": (shapes.clip, ["CLIPTokenizer", "CLIPTokenizerFast", *BPE_CLASSES], "<|endoftext|>"),
    "ALBERT": (shapes.bge_m3, ["AlbertTokenizer", "PreTrainedTokenizerFast"], "<pad>"),
}
ESM = ["<cls>", "<pad>", "<eos>", "<unk>", *"LAGVSERTIDPKQNFYMHWCXBUZO.-", "<null_1>", "<mask>"]
TOKENIZER_KEYS = {  # key: values
    "do_lower_case": [True, False], "strip_accents": [True, False, None],
    "tokenize_chinese_chars": [True, False], "model_max_length": [8, 16, 512, 10**30],
    "model_input_names": [["input_ids", "attention_mask"],
                          ["input_ids", "token_type_ids", "attention_mask"]],
    "truncation_side": ["left", "right"], "padding_side": ["left", "right"],
    "add_prefix_space": [True, False], "clean_up_tokenization_spaces": [True, False],
    "split_special_tokens": [True, False], "add_bos_token": [True, False],
    "add_eos_token": [True, False], "max_length": [7], "stride": [2],
    "split_by_punct": [True, False],
    "additional_special_tokens": [["river"], []], "extra_special_tokens": [{}, {"a": "boat"}],
    "unk_token": ["tea"], "cls_token": ["tea"], "sep_token": ["tea"], "pad_token": ["none such"],
    "truncation_strategy": ["longest_first", "only_first"], "somebodys_key": [3],
}
TEXTS = [
    "", " ", "\n\t", "tea", "The harbour lies between two hills.", "tea with spaces behind   ",
    "   before and  between", "One two three. " * 14, "\u00dcn\u00efcode: caf\u00e9, na\u00efve",
    "\u6771\u4eac\u306b\u3044\u307e\u3059 and \u4e2d\u56fd", "[MASK] and [SEP] </s> <mask> <pad>",
    "\u041f\u0440\u0438\u0432\u0435\u0442, \u043c\u0438\u0440! \u0645\u0631\u062d\u0628\u0627",
    "MKTAYIAKQRQISFVKSHFSRQLEERLGLIEVQ" * 18, "M<mask>KV LL mk\u3000t\x1cq<pad>V <null_1>  .-x",
    "don't 2026 <|endoftext|>!<|endoftext|>a <|STARTOFTEXT|>",
    "A \U0001F600 b\u0301 \u200d\u00ad x", "La boulangerie OUVRE de bonne heure; the bread is gone."
]
PAIRS = [("When do trains stop at the coast?", text) for text in TEXTS[:12]] + [
    ("", ""), (TEXTS[7], TEXTS[9]), ("tea  ", "tea  ")]


@functools.cache
def tokenizer_of(shape):
    make = TOKENIZERS[shape][0]
    if make is None:
        tree = json.loads(BASE.read_text())
        tree["normalizer"]["lowercase"] = shape == "uncased"
        return json.dumps(tree)
    return make(lambda: iter(CORPUS.strip().splitlines() * 3), 420).to_str()


def sentence_piece(tree):
    """spm.model of a tokenizer.json's vocabulary, as transformers reads it."""
    proto = import_protobuf().ModelProto()
    special = {token["content"] for token in tree["added_tokens"]}
    for i, (piece, score) in enumerate(tree["model"]["vocab"]):
        kind = 2 if i == tree["model"]["unk_id"] else 3 if piece in special else 1
        proto.pieces.add(piece=piece, score=score, type=kind)
    proto.trainer_spec.unk_id = tree["model"]["unk_id"]
    return proto.SerializeToString()


def draw_esm_tokenizer(rng):
    """Files without tokenizer.json, and the vocabulary."""
    vocabulary = [*ESM, *rng.choice([[], [], ["MK", "a", "tea"]])]
    config = {key: rng.choice(TOKENIZER_KEYS[key]) for key in rng.sample(
        [key for key in TOKENIZER_KEYS if "_token" not in key], rng.choice([0, 0, 1, 2]))}
    if rng.random() < 0.7:
        config["tokenizer_class"] = "EsmTokenizer"
    return {"tokenizer_config.json": config, "vocab.txt": vocabulary}


def draw_tokenizer(rng, shape):
    _, classes, pad = TOKENIZERS[shape]
    tree = json.loads(tokenizer_of(shape))
    config = {"pad_token": pad}
    name = rng.choice(classes)
    if name:
        config["tokenizer_class"] = name
    for key in rng.sample(list(TOKENIZER_KEYS), rng.choice([0, 0, 1, 2, 3])):
        config[key] = rng.choice(TOKENIZER_KEYS[key])
    if one_in(rng, 4):
        tree["truncation"] = {"direction": rng.choice(["Right", "Left"]), "max_length": 12,
                              "strategy": "LongestFirst", "stride": rng.choice([0, 0, 2])}
    if one_in(rng, 5):
        tree["padding"] = {"strategy": rng.choice(["BatchLongest", {"Fixed": 20}]), "pad_id": 0,
                           "direction": "Right", "pad_to_multiple_of": None, "pad_type_id": 0,
                           "pad_token": pad}
    files = {"tokenizer.json": tree, "tokenizer_config.json": config}
    if one_in(rng, 6):
        files["special_tokens_map.json"] = {"pad_token": pad, **({"unk_token": "tea"}
                                                                if one_in(rng, 3) else {})}
    if one_in(rng, 15):
        files["added_tokens.json"] = {"harbour": Tokenizer.from_str(
            json.dumps(tree)).get_vocab_size() - 1}
    if one_in(rng, 40):
        del files["tokenizer_config.json"]
    return files, pad


def draw(rng, family=None, forced=None):
    """A folder's description: model, files, weights of dense layers, what to ask of it. forced: a
    key of the family's, which a value other than that drawn is put in."""
    classifies = one_in(rng, 4) and bool(families.HEADS)
    if family:
        classifies = classifies and family in families.HEADS
    else:
        family = families.draw_family(rng, classifies)
    if family == "Esm":
        files = draw_esm_tokenizer(rng)
        size, pad = len(files["vocab.txt"]), 1
    else:
        shapes_of = {"CLIPText": ["CLIP"] * 9 + [*TOKENIZERS],
                     "CLIP": ["CLIP"] * 9 + [*TOKENIZERS], "Siglip2": ["Gemma"],
                     "Siglip": ["Gemma"] * 4 + [*TOKENIZERS],
                     "JinaEmbeddingsV3": ["bge-m3"] * 9 + [*TOKENIZERS]}
        files, token = draw_tokenizer(rng, rng.choice(shapes_of.get(family, list(TOKENIZERS))))
        tokenizer = Tokenizer.from_str(json.dumps(files["tokenizer.json"]))
        size, pad = tokenizer.get_vocab_size(), tokenizer.token_to_id(token) or 0
    model = families.draw_model(rng, family, size, pad, classifies)
    if forced:
        model["old"] = False  # whose spellings are of the keys that they need
        value = own_keys.value_of(family, forced, model["settings"], rng)
        model["settings"][forced] = value
        model["more"].pop(forced, None)
    dense, prompt, transformer = {}, None, ""
    unigram = files.get("tokenizer.json", {}).get("model", {}).get("type") == "Unigram"
    spm = model["family"] == "DebertaV2" and unigram and one_in(rng, 2)
    if classifies:
        draw_scores(rng, model)
    elif features_of(model) is not None or not one_in(rng, 6):
        transformer = draw_modules(rng, files, dense, width_of(model), features_of(model))
        prompt = draw_settings(rng, files)
        if features_of(model) is not None:
            draw_features(files)
        if family.startswith("Siglip"):
            draw_padding(rng, files)
    return {"model": model, "files": files, "dense": dense, "classifies": classifies,
            "prompt": prompt, "transformer": transformer, "spm": spm,
            "pairs": classifies and one_in(rng, 1.5)}


def processing_of(path, value):
    of_path = path == "sentence_bert_config.json" and value.get("processing_kwargs") or {}
    return of_path.get("text", {})


def write(drawn, folder):
    own = folder / drawn["transformer"]
    own.mkdir(parents=True)
    families.write_model(drawn["model"], own)
    for path, value in drawn["files"].items():
        if "padding" in processing_of(path, value):
            value["processing_kwargs"]["text"]["max_length"] = drawn["model"]["settings"][
                "max_position_embeddings"]
        of_model = path.startswith(("tokenizer", "special_tokens", "added_tokens", "sentence_",
                                    "vocab"))
        target = (own if of_model else folder) / path
        target.parent.mkdir(exist_ok=True)
        target.write_text("\n".join(value) if path.endswith(".txt") else json.dumps(value))
    if drawn["spm"]:
        (own / "tokenizer.json").unlink()
        (own / "spm.model").write_bytes(sentence_piece(drawn["files"]["tokenizer.json"]))
    rng = np.random.RandomState(drawn["model"]["seed"])
    for path, config in drawn["dense"].items():
        if "dimension" in config:
            norm = rng.standard_normal((2, config["dimension"])).astype(np.float32)
            save_file({"norm.weight": 1 + norm[0] / 2, "norm.bias": norm[1] / 3},
                      folder / path / "model.safetensors")
            continue
        shape = config["out_features"], config["in_features"]
        tensors = {"linear.weight": rng.standard_normal(shape) * 2 / np.sqrt(shape[1])}
        if config["bias"]:
            tensors["linear.bias"] = rng.standard_normal(shape[0]) / 2
        if config.get("activation_function", "").endswith("PReLU"):
            tensors["activation_function.weight"] = np.array([0.3])
        if config.get("use_residual") and shape[0] != shape[1]:
            tensors["residual.weight"] = rng.standard_normal(shape) / np.sqrt(shape[1])
        save_file({name: t.astype(np.float32) for name, t in tensors.items()},
                  folder / path / "model.safetensors")
