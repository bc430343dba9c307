#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/tokenizer_classes.json from the answers of transformers' AutoTokenizer.

Folders have the small tokenizers of tests/data/tokenizer and other files beside them; each has
difficult texts with their ids and type ids. Needs transformers 5.23 (from PyPI).

    tests/make/make_class_fixtures.py           writes the file
    tests/make/make_class_fixtures.py --check   compares it with what transformers makes now
"""

import json
import os
import pathlib
import sys
import tempfile

os.environ.update(
    HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error"
)
import made_files
from transformers import AutoTokenizer

DATA = pathlib.Path(__file__).resolve().parents[1] / "data"
WORDS = [
    "Hello there, \u00c9t\u00e9 AND more", "a  ", "  \n", " ", "", "x \u4e2d\u6587 \u2581y ``''",
    "one [MASK] <mask> </s>two", "<new>b <NEW> [X] <|endoftext|>",
    "a longer text of many more words, so that it is cut",
]
TINY = "[UNK]\n[CLS]\n[SEP]\n[PAD]\n[MASK]\na\nb\n##b\n\u00e9\n<s>\n</s>\n<pad>\n<mask>\nx\n"
TINY_VOCAB = {
    token: i
    for i, token in enumerate(
        [
            "<s>", "<pad>", "</s>", "<unk>", "a", "b", "c", "\u0120", "\u00c3", "\u00a9", "ab",
            "\u0120ab", "e", "<mask>",
        ]
    )
}
TINY_MERGES = "#version: 0.2\na b\n\u0120 ab\n"
SPECIAL = {"cls_token": "<s>", "sep_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"}


def named(name, **more):
    return {"tokenizer_class": name, **more}


def token(content, special=True, **flags):
    return {
        "content": content,
        "special": special,
        "normalized": False,
        "single_word": False,
        "lstrip": False,
        "rstrip": False,
        **flags,
    }


# Name, fixture of tests/data/tokenizer or nothing, changes of its tokenizer.json, the other files.
def folders():
    left = {"direction": "Left", "max_length": 9, "strategy": "LongestFirst", "stride": 0}
    for base, name in (
        ("shape_bge_m3", "XLMRobertaTokenizerFast"),
        ("shape_camembert", "CamembertTokenizer"),
        ("shape_t5", "T5TokenizerFast"),
        ("shape_xlm_r", "AlbertTokenizer"),
        ("shape_xlm_r", "DebertaV2Tokenizer"),
        ("cased", "BertTokenizer"),
        ("uncased", "DistilBertTokenizer"),
        ("shape_mpnet", "MPNetTokenizerFast"),
        ("uncased", "FunnelTokenizer"),
        ("uncased", "ConvBertTokenizer"),
        ("shape_roberta_space_in_front", "RobertaTokenizer"),
        ("shape_gpt_2", "GPT2Tokenizer"),
        ("shape_qwen", "Qwen2Tokenizer"),
        ("shape_llama_2", "LlamaTokenizer"),
        ("shape_gemma", "GemmaTokenizer"),
        ("uncased", "PreTrainedTokenizerFast"),
        ("uncased", "NoSuchTokenizer"),
        ("shape_gpt_2", "LlamaTokenizer"),
        ("shape_clip", "CLIPTokenizer"),
    ):
        extra = SPECIAL if name in ("AlbertTokenizer", "DebertaV2Tokenizer") else {}
        if name == "FunnelTokenizer":
            extra = {
                "cls_token": "[CLS]",
                "sep_token": "[SEP]",
                "unk_token": "[UNK]",
                "pad_token": "[PAD]",
            }
        yield f"{name} of {base}", base, {}, {"tokenizer_config.json": named(name, **extra)}
    yield "the model's type alone", "cased", {}, {"config.json": {"model_type": "bert"}}
    bytes_alone = {
        "type": "ByteLevel",
        "add_prefix_space": True,
        "trim_offsets": True,
        "use_regex": False,
    }
    for model_type, base, changes in (
        ("mpnet", "shape_mpnet", {"normalizer": None}),
        ("roberta", "shape_roberta", {"pre_tokenizer": bytes_alone}),
        ("qwen3", "shape_qwen", {"pre_tokenizer": bytes_alone}),
        ("xlm-roberta", "shape_bge_m3", {}),
        ("gemma3_text", "shape_gemma", {"normalizer": None}),
    ):
        config = {"config.json": {"model_type": model_type}}
        yield f"the type {model_type} alone", base, changes, config
    yield "a class of config.json", "shape_bge_m3", {}, {
        "config.json": {"model_type": "bert", "tokenizer_class": "XLMRobertaTokenizer"}
    }
    yield "a type that has one class", "cased", {}, {
        "config.json": {"model_type": "modernbert"},
        "tokenizer_config.json": named("BertTokenizer"),
    }
    yield "no lower case", "uncased", {}, {
        "tokenizer_config.json": named(
            "BertTokenizer",
            do_lower_case=False,
            strip_accents=True,
            tokenize_chinese_chars=False,
            cls_token="[SEP]",
            unk_token="[PAD]",
        )
    }
    yield "a space in front", "shape_roberta", {}, {
        "tokenizer_config.json": named("RobertaTokenizer", add_prefix_space=True)
    }
    yield "no mark in front", "shape_xlm_r", {}, {
        "tokenizer_config.json": named(
            "XLMRobertaTokenizer", add_prefix_space=False, bos_token="<pad>"
        )
    }
    yield "accents of ALBERT", "shape_xlm_r", {"post_processor": None}, {
        "tokenizer_config.json": named(
            "AlbertTokenizer",
            keep_accents=True,
            do_lower_case=False,
            cls_token="<s>",
            sep_token="</s>",
        )
    }
    yield "the end is kept", "uncased", {}, {
        "tokenizer_config.json": named("BertTokenizer", truncation_side="left")
    }
    yield "the end, by tokenizer.json", "shape_gpt_2", {"truncation": left}, {}
    yield "the begin, by the other file", "uncased", {"truncation": left}, {
        "tokenizer_config.json": named("TokenizersBackend", truncation_side="right")
    }
    yield "special tokens are text", "uncased", {}, {
        "tokenizer_config.json": named("TokenizersBackend", split_special_tokens=True)
    }
    yield "names of the inputs", "uncased", {}, {
        "tokenizer_config.json": named(
            "PreTrainedTokenizerFast",
            model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        )
    }
    yield "extra tokens", "uncased", {}, {
        "tokenizer_config.json": named(
            "BertTokenizer", extra_special_tokens=["<new>"], pad_token="[X]"
        )
    }
    yield "additional tokens", "uncased", {}, {
        "tokenizer_config.json": named(
            "TokenizersBackend", additional_special_tokens=["<new>"], image_token="[X]"
        )
    }
    yield "extra tokens by name", "uncased", {}, {
        "tokenizer_config.json": named(
            "BertTokenizer", extra_special_tokens={"more_token": "<new>"}
        )
    }
    yield "added tokens by id", "uncased", {}, {
        "tokenizer_config.json": named(
            "BertTokenizer",
            added_tokens_decoder={
                "4": token("[MASK]", lstrip=True),
                "900": token("<new>", False, normalized=True),
                "901": token("[X]", rstrip=True),
            },
        )
    }
    yield "added_tokens.json", "uncased", {}, {
        "tokenizer_config.json": named("BertTokenizer"),
        "added_tokens.json": {"<new>": 900},
    }
    yield "special_tokens_map.json", "uncased", {}, {
        "tokenizer_config.json": named("BertTokenizer", cls_token="[PAD]"),
        "special_tokens_map.json": {
            "cls_token": "[SEP]",
            "additional_special_tokens": ["<new>"],
            "mask_token": {
                "content": "[MASK]",
                "lstrip": True,
                "rstrip": False,
                "normalized": False,
                "single_word": False,
            },
        },
    }
    for name in ("BertTokenizer", "MPNetTokenizer", "ConvBertTokenizer"):
        yield f"vocab.txt of {name}", None, {}, {
            "vocab.txt": TINY,
            "tokenizer_config.json": named(name),
        }
    yield "vocab.txt of EsmTokenizer", None, {}, {
        "vocab.txt": TINY + "one\nwords\n",
        "config.json": {"model_type": "esm"},
        "tokenizer_config.json": {"cls_token": "<s>", "eos_token": "</s>", "unk_token": "[UNK]"},
    }
    for name, more in (
        ("RobertaTokenizer", {}),
        ("BartTokenizerFast", {"add_prefix_space": True}),
        (
            "GPT2Tokenizer",
            {
                "bos_token": "<s>",
                "unk_token": "<unk>",
                "eos_token": "</s>",
                "add_bos_token": True,
                "add_eos_token": True,
            },
        ),
    ):
        yield f"vocab.json of {name}", None, {}, {
            "vocab.json": TINY_VOCAB,
            "merges.txt": TINY_MERGES,
            "tokenizer_config.json": named(name, **more),
        }

    yield "vocab.json of HerbertTokenizer", None, {}, {
        "vocab.json": {
            token: i
            for i, token in enumerate(
                [
                    "<s>", "<pad>", "</s>", "<unk>", "<mask>", "a", "b", "a</w>", "b</w>", "ab</w>",
                    ",</w>", "o", "n", "on", "e</w>", "one</w>",
                ]
            )
        },
        "merges.txt": "#version: 0.2\na b</w>\no n\non e</w>\n",
        "tokenizer_config.json": named("HerbertTokenizer"),
    }


def answer(tokenizer, text, max_length):
    """Ids and type ids of a text or a pair, cut if max_length is not 0."""
    how = {"truncation": "longest_first", "max_length": max_length} if max_length else {}
    given = ([text],) if isinstance(text, str) else ([text[0]], [text[1]])
    out = tokenizer(*given, **how)
    ids = out["input_ids"][0]
    assert all(out.get("attention_mask", [[1]])[0])
    return ids, out["token_type_ids"][0] if "token_type_ids" in out else [0] * len(ids)


def lines_of(tokenizer, texts, max_length):
    for text in texts:
        ids, types = answer(tokenizer, text, max_length)
        line = {"text": text} if isinstance(text, str) else {"text": text[0], "pair": text[1]}
        if max_length:
            line["max_length"] = max_length
        yield {
            **line,
            "ids": ids,
            "types": types,
        }


def make():
    made = []
    for name, base, changes, files in folders():
        content = dict(files)
        if base:
            fixture = json.loads((DATA / "tokenizer" / f"{base}.json").read_text(encoding="utf-8"))
            content["tokenizer.json"] = {**fixture["tokenizer"], **changes}
        with tempfile.TemporaryDirectory() as path:
            for file, text in content.items():
                text = text if isinstance(text, str) else json.dumps(text)
                (pathlib.Path(path) / file).write_text(text, encoding="utf-8")
            tokenizer = AutoTokenizer.from_pretrained(path)
            pairs = list(zip(WORDS[::2], WORDS[1::2]))
            cases = [
                *lines_of(tokenizer, WORDS + pairs[:2], 0),
                *lines_of(tokenizer, [WORDS[-1], *pairs[2:]], 9),
            ]
        made.append(
            {"name": name, "base": base, "changes": changes, "files": files, "cases": cases}
        )
    rows = ",\n".join(json.dumps(folder, separators=(",", ":")) for folder in made)
    return f"[\n{rows}\n]\n"


if __name__ == "__main__":
    made_files.require({"transformers": "5.23"})
    sys.exit(
        made_files.write_or_check(__doc__.split("\n")[0], DATA, {"tokenizer_classes.json": make})
    )
