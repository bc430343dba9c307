# SPDX-License-Identifier: Apache-2.0
"""Whole folders for check_folders.py: tokenizers with their classes and keys, modules, settings of
sentence-transformers, prompts, and the texts that are tried.
"""
import functools
import json
import pathlib

import numpy as np
from safetensors.numpy import save_file
from tokenizers import Tokenizer
from transformers.convert_slow_tokenizer import import_protobuf

from folder_check import families
from make_text_fixtures import CORPUS, POOLINGS
import shapes

BASE = pathlib.Path(__file__).resolve().parents[3] / "tests/data/text/base/tokenizer.json"
WIDTH = 32
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
ACTIVATIONS = ["torch.nn.modules.activation.Tanh", "torch.nn.modules.linear.Identity",
               *(f"torch.nn.modules.activation.{name}" for name in (
                   "GELU", "ReLU", "SiLU", "Sigmoid", "LeakyReLU", "ELU", "Softplus", "Mish",
                   "ReLU6", "SELU", "CELU", "Hardtanh", "Hardswish", "Hardsigmoid", "Softsign",
                   "Tanhshrink", "LogSigmoid", "Softshrink", "Hardshrink", "RReLU", "CELU",
                   "Softmax")),
               "torch.nn.ReLU", "somebody.Swish"]
OLD, NEW, BASE_MODULES = ("sentence_transformers.models.",
                          "sentence_transformers.sentence_transformer.modules.",
                          "sentence_transformers.base.modules.")
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


def one_in(rng, n):
    return rng.random() * n < 1


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


def draw_pooling(rng):
    modes = rng.choice([1, 1, 1, 1, 2, 3])
    if one_in(rng, 2):
        chosen = rng.sample(POOLINGS, modes)
        config = {"word_embedding_dimension": WIDTH}
        config |= {f"pooling_mode_{name}": name in chosen for name in POOLINGS
                   if name in chosen or one_in(rng, 2)}
    else:
        names = rng.sample(["cls", "mean", "max", "mean_sqrt_len_tokens", "weightedmean",
                            "lasttoken"], modes)
        config = {rng.choice(["embedding_dimension", "word_embedding_dimension"]): WIDTH,
                  "pooling_mode": names if modes > 1 or one_in(rng, 3) else names[0]}
    if one_in(rng, 4):
        config["include_prompt"] = not one_in(rng, 6)
    return config, modes * WIDTH


def class_path(rng, kind):
    package = BASE_MODULES if kind != "Pooling" else NEW
    return rng.choice([OLD + kind, f"{package}{kind.lower()}.{kind}"])


def draw_modules(rng, files, dense, features=None):
    """modules.json and the modules' own files. features: the width of vectors that the model makes
    itself, which no pooling follows."""
    transformer = "0_Transformer" if one_in(rng, 8) else ""
    entries = [(class_path(rng, "Transformer"), transformer)]
    width = features
    if features is None:
        files["1_Pooling/config.json"], width = draw_pooling(rng)
        entries.append((class_path(rng, "Pooling"), "1_Pooling"))
    for i in range(2, 2 + rng.choice([0, 0, 1, 1, 2, 3])):
        kind = rng.choice(["Normalize", "Dense"])
        entries.append((class_path(rng, kind), f"{i}_{kind}"))
        if kind == "Normalize":
            continue
        out = rng.choice([8, 20, 32])
        config = {"in_features": width, "out_features": out, "bias": rng.random() < 0.7,
                  "activation_function": rng.choice(ACTIVATIONS)}
        if one_in(rng, 8):
            del config["activation_function"]
        if one_in(rng, 6):
            config["module_input_name"] = "sentence_embedding"
        if one_in(rng, 10):
            config["use_residual"] = one_in(rng, 3)
        if one_in(rng, 12):
            config["somebodys_key"] = 1
        files[f"{i}_Dense/config.json"] = config
        dense[f"{i}_Dense"] = config
        width = out
    files["modules.json"] = [{"idx": i, "name": str(i), "path": path, "type": kind}
                             for i, (kind, path) in enumerate(entries)]
    return transformer


def draw_settings(rng, files):
    """sentence_bert_config.json, config_sentence_transformers.json; the prompt's name to use."""
    settings = {}
    if one_in(rng, 1.5):
        settings["max_seq_length"] = rng.choice([6, 10, 20, 30, 100, 1000, None])
    if one_in(rng, 2):
        settings["do_lower_case"] = one_in(rng, 4)
    if one_in(rng, 50):
        settings["somebodys_key"] = True
    if settings or one_in(rng, 2):
        name = "roberta" if one_in(rng, 8) else "bert"
        files[f"sentence_{name}_config.json"] = settings
    if not one_in(rng, 3):
        return None
    prompts = {"query": "Which road: ", "passage": "", "odd": "caf\u00e9  "}
    config = {"prompts": prompts, "similarity_fn_name": rng.choice([None, "cosine", "dot"])}
    if one_in(rng, 3):
        config["default_prompt_name"] = rng.choice(["odd", None, "query"])
    if one_in(rng, 4):
        config["truncate_dim"] = rng.choice([5, 31, 1000, None])
    if one_in(rng, 4):
        config["model_type"] = "SentenceTransformer"
    if one_in(rng, 12):
        config["somebodys_key"] = 1
    files["config_sentence_transformers.json"] = config
    return rng.choice([None, "query", "passage", "odd"])


def features_of(model):
    settings = model["settings"]
    return {"CLIP": settings.get("projection_dim", WIDTH),
            "Siglip": settings.get("projection_size", WIDTH),
            "Siglip2": settings.get("projection_size", WIDTH)}.get(model["family"])


def merge_settings(files, settings):
    for name in ("sentence_bert_config.json", "sentence_roberta_config.json"):
        settings |= files.pop(name, {})
    files["sentence_bert_config.json"] = settings


def draw_features(files):
    """What sentence-transformers writes. It finds that out by itself only where a processor of
    images is there too."""
    merge_settings(files, {"module_output_name": "sentence_embedding", "modality_config": {
        "text": {"method": "get_text_features", "method_output_name": "pooler_output"}}})


def draw_padding(rng, files):
    """As published, and now and then not."""
    config = files.setdefault("tokenizer_config.json", {})
    if not one_in(rng, 8):
        config["model_input_names"] = ["input_ids"]
    if not one_in(rng, 8):
        config["padding_side"] = "right"
    config.pop("model_max_length", None)
    settings = {"processing_kwargs": {"text": {"padding": "max_length", "max_length": None}}}
    merge_settings(files, settings)
    settings.pop("max_seq_length", None)


def draw_scores(rng, model):
    """Where a reranker says its activation."""
    name = rng.choice([None, "torch.nn.modules.activation.Sigmoid", *ACTIVATIONS[:8],
                       "torch.nn.modules.linear.Identity"])
    if name and one_in(rng, 2):
        model["more"]["sentence_transformers"] = {"activation_fn": name, "version": "4.0.1"}
    elif name:
        model["more"]["sbert_ce_default_activation_function"] = name


def draw(rng):
    """A folder's description: model, files, weights of dense layers, what to ask of it."""
    classifies = one_in(rng, 4) and bool(families.HEADS)
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
    dense, prompt, transformer = {}, None, ""
    unigram = files.get("tokenizer.json", {}).get("model", {}).get("type") == "Unigram"
    spm = model["family"] == "DebertaV2" and unigram and one_in(rng, 2)
    if classifies:
        draw_scores(rng, model)
    elif features_of(model) is not None or not one_in(rng, 6):
        transformer = draw_modules(rng, files, dense, features_of(model))
        prompt = draw_settings(rng, files)
        if features_of(model) is not None:
            draw_features(files)
        if family.startswith("Siglip"):
            draw_padding(rng, files)
    return {"model": model, "files": files, "dense": dense, "classifies": classifies,
            "prompt": prompt, "transformer": transformer, "spm": spm,
            "pairs": classifies and one_in(rng, 1.5)}


def write(drawn, folder):
    own = folder / drawn["transformer"]
    own.mkdir(parents=True)
    families.write_model(drawn["model"], own)
    for path, value in drawn["files"].items():
        if path == "sentence_bert_config.json" and "processing_kwargs" in value:
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
