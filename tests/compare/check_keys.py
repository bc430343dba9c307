#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Every key of config.json that encore reads as without effect, or that transformers reads in all
classes, at values that would change something: in models, and in classifiers of sequences and of
tokens and masked language models, of each family.

    tools/build.sh build/release --target folder_answers
    .deps/venv/bin/python tests/compare/check_keys.py [--answers FILE] [FAMILY]

Where transformers gives other numbers with the key, encore gives them too or names the key in a
refusal; or a tensor, where transformers draws those that the file lacks with the key. Where
transformers refuses a model with it, encore may compute what it does without. Exit
status 1 where that is not so, and where engine/models/other_keys.cc lists a key that this file has
no value of.
"""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "make"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from folder_check import families  # noqa: E402
from make_head_fixtures import TOKENIZER  # noqa: E402

BOUND = 2e-5  # beside float32; a key that counts moves more
KINDS = {"Model": "AutoModel", "ForSequenceClassification": "AutoModelForSequenceClassification",
         "ForTokenClassification": "AutoModelForTokenClassification",
         "ForMaskedLM": "AutoModelForMaskedLM"}
HEADS = {"ForTokenClassification": "token logits", "ForMaskedLM": "masked logits"}
# Short enough for positions that begin after another pad_token_id, which it has.
TEXT = "The harbour lies [MASK] . [SEP] a road"
RATES = ("attention_dropout attention_probs_dropout_prob classifier_dropout dropout "
         "hidden_dropout_prob qa_dropout seq_classif_dropout encoder_layerdrop layerdrop "
         "mlp_dropout embedding_dropout head_dropout pooler_dropout").split()
SWITCHES = ("_attn_implementation_autoset gradient_checkpointing output_attentions "
            "output_hidden_states output_past tf_legacy_loss tie_encoder_decoder torchscript "
            "use_bfloat16 do_sample early_stopping output_scores remove_invalid_values "
            "return_dict_in_generate add_pooling_layer is_decoder is_causal "
            "use_bidirectional_attention is_encoder_decoder reference_compile "
            "deterministic_flash_attn output_router_logits sparse_prediction").split()
SIZES = ("_num_labels decoder_start_token_id pooler_fc_size pooler_num_attention_heads "
         "pooler_num_fc_layers pooler_size_per_head encoder_no_repeat_ngram_size "
         "forced_bos_token_id forced_eos_token_id max_length min_length no_repeat_ngram_size "
         "num_beam_groups num_beams num_return_sequences top_k pretraining_tp "
         "attention_chunk_size").split()
IDS = "bos_token_id cls_token_id eos_token_id mask_token_id sep_token_id unk_token_id".split()
FACTORS = ("initializer_factor initializer_range diversity_penalty length_penalty "
           "repetition_penalty temperature top_p typical_p final_logit_softcapping "
           "attn_logit_softcapping logit_scale logits_scaling").split()
VALUES = {
    **{key: [0.5] for key in RATES}, **{key: [True, False] for key in SWITCHES},
    **{key: [1, 3] for key in SIZES}, **{key: [None, 0, 7, -1] for key in IDS},
    **{key: [0.1, 3.0] for key in FACTORS}, "pad_token_id": [0, 3, 7],
    "_commit_hash": ["x"], "_name_or_path": ["x"], "attn_implementation": ["eager"],
    "bad_words_ids": [[[1]]], "begin_suppress_tokens": [[7]], "suppress_tokens": [[7]],
    "exponential_decay_length_penalty": [[3, 0.5]], "chunk_size_feed_forward": [1],
    "directionality": ["bidi"], "dtype": ["float32"], "torch_dtype": ["float32"],
    "finetuning_task": ["x"], "id2label": [{"0": "a", "1": "b", "2": "c"}],
    "keys_to_ignore_at_inference": [["logits"]], "label2id": [{"a": 5}], "model_type": [],
    "pooler_type": ["mean"], "prefix": ["x "], "return_dict": [True, False],
    "task_specific_params": [{"text-classification": {"problem_type": "regression"}}],
    "tie_word_embeddings": [True, False], "tokenizer_class": ["PreTrainedTokenizerFast"],
    "transformers_version": ["3.0.0"], "use_cache": [True, False],
    "sbert_ce_default_activation_function": ["torch.nn.Tanh"],
    "sentence_transformers": [{"activation_fn": "torch.nn.Tanh"}],
    "problem_type": ["regression", "multi_label_classification", "several"],
    "function_to_apply": ["sigmoid"], "num_labels": [3], "per_layer_config": [
        {"0": {"intermediate_size": 8}}, {"0": {"skip": ["mlp"]}}, {"0": {"skip": ["attention"]}}],
    "summary_type": ["mean"], "summary_activation": ["tanh"], "summary_use_proj": [False],
    "classifier_pooling": ["mean", "cls", "bos"], "classifier_bias": [True, False],
    "classifier_activation": ["relu", "tanh"], "pooler_hidden_act": ["relu", "tanh"],
    "norm_bias": [True, False], "decoder_bias": [True, False],
}


def listed_keys():
    """Those of engine/models/other_keys.cc that mean nothing."""
    source = (ROOT / "engine/models/other_keys.cc").read_text()
    lists = re.findall(r"constexpr std::string_view k\w+ =\s*((?:\"[^\"]*\"\s*)+);", source)
    assert len(lists) == 3, "other_keys.cc has other lists than three of harmless keys"
    return {word for text in lists for word in "".join(re.findall(r'"([^"]*)"', text)).split()}


def draw(family, kind, folder):
    rng = random.Random(family + kind)
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    pad = tokenizer.token_to_id("[PAD]")
    classifies = kind == "ForSequenceClassification"
    model = families.draw_model(rng, family, tokenizer.get_vocab_size(), pad, classifies)
    if kind == "Model" and family in ("T5", "MT5"):
        kind = "EncoderModel"
    model.update(kind=kind, labels=3 if "Classification" in kind else 0, more={}, remove=[],
                 old=False, dtype="float32", other_words=False)
    families.write_model(model, folder)
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 20,
        "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]",
        "mask_token": "[MASK]"}))


def wanted_of(folder, kind, ids):
    """transformers' numbers, [rows, columns], or why there are none; and whether it drew tensors
    that the file does not have."""
    drew = False
    try:
        model, loaded = getattr(transformers, KINDS[kind]).from_pretrained(
            folder, dtype=torch.float32, local_files_only=True, output_loading_info=True)
        drew = bool(loaded["missing_keys"])
        if "EncoderModel" in str(model.config.architectures):
            model = transformers.T5EncoderModel.from_pretrained(folder, dtype=torch.float32)
        model.eval()
        with torch.inference_mode():
            out = model(input_ids=torch.tensor([ids]),
                        attention_mask=torch.ones(1, len(ids), dtype=torch.long))
        logits = out[0] if isinstance(out, tuple) else out.get("logits")
        rows = out.last_hidden_state.mean(1) if logits is None else logits
        rows = rows.mean(1) if kind == "Model" and rows.ndim == 3 else rows
        return rows.numpy().reshape(-1, rows.shape[-1]), drew
    except Exception as error:  # whatever it is, there are none
        return f"{type(error).__name__}: {error}"[:150], drew


def found_of(answers, folder, kind, ids):
    """encore's, or its sentence."""
    request = {"folder": str(folder)}
    if kind in HEADS:
        request |= {"head": HEADS[kind], "texts": [TEXT]}
    else:
        classifies = kind == "ForSequenceClassification"
        request |= {"ids": [ids], "batch": True, "classifies": classifies, "activation": "none"}
    done = subprocess.run([answers], input=json.dumps(request) + "\n", capture_output=True,
                          text=True, check=True)
    answer = json.loads(done.stdout)
    if "error" in answer:
        return answer["error"]
    rows = answer["rows"][0] if kind in HEADS else [answer["texts"][0]["row"]]
    return np.array(rows)


def off(found, wanted):
    if isinstance(found, str) or isinstance(wanted, str) or found.shape != wanted.shape:
        return np.inf
    return np.abs(found - wanted).max() / np.abs(wanted).max()


def check(answers, family, kind, tell):
    """How many values of keys were tried, and how many are wrong."""
    tried = wrong = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "model"
        try:
            draw(family, kind, folder)
        except (AttributeError, ValueError):
            return 0, 0  # transformers has no such class
        ids = transformers.PreTrainedTokenizerFast.from_pretrained(folder)(TEXT)["input_ids"]
        path = folder / "config.json"
        config = json.loads(path.read_text())
        plain, _ = wanted_of(folder, kind, ids)
        own = found_of(answers, folder, kind, ids)
        if isinstance(own, str) or isinstance(plain, str):
            tell(f"{family}{kind}: not tried: {own if isinstance(own, str) else plain}")
            return 0, 0
        if off(own, plain) > BOUND:
            tell(f"{family}{kind}: DIFFERS by {off(own, plain):.1e} without another key")
            return 1, 1
        for key, values in VALUES.items():
            for value in values:
                if config.get(key, ...) == value:
                    continue
                path.write_text(json.dumps({**config, key: value}))
                wanted, drew = wanted_of(folder, kind, ids)
                found = found_of(answers, folder, kind, ids)
                tried += 1
                refused = isinstance(found, str) and (
                    key in found or drew and "found no" in found)
                same = off(found, plain if isinstance(wanted, str) else wanted) <= BOUND
                if same or refused:
                    continue
                wrong += 1
                ours = found if isinstance(found, str) else f"{off(found, plain):.1e} off"
                result = wanted if isinstance(wanted, str) else f"{off(wanted, plain):.1e} off"
                tell(f"{family}{kind}: DIFFERENT: {key} {json.dumps(value)}: transformers {result}"
                     f", encore {ours}")
    return tried, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--answers", metavar="FILE",
                        default=ROOT / "build/release/bin/folder_answers")
    parser.add_argument("families", nargs="*", metavar="FAMILY")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    missing = listed_keys() - set(VALUES)
    if missing:
        sys.exit(f"check_keys: no values of {sorted(missing)}")
    tried = wrong = 0
    for family in arguments.families or families.FAMILIES:
        if family in families.WHOLE or family.startswith("EmbeddingGemma2"):
            continue
        for kind in KINDS:
            more, bad = check(arguments.answers, family, kind, lambda s: print(s, flush=True))
            tried, wrong = tried + more, wrong + bad
            if more:
                print(f"{family}{kind}: {more} values of keys, {bad} wrong", flush=True)
    print(f"{tried} values of keys, {wrong} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
