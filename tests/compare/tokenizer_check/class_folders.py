# SPDX-License-Identifier: Apache-2.0
"""Folders of tokenizers drawn at random: a class, a model's type, a vocabulary, the keys of
tokenizer_config.json and of the older files beside it; the same seed gives the same folders.

Holds the draw. Who tokenizes and compares is in ../check_tokenizer_classes.py.
"""

import copy
import json
import pathlib

import charsmap
import shapes

DATA = pathlib.Path(__file__).resolve().parents[2] / "data" / "tokenizer"
BACKENDS = ["TokenizersBackend", "PreTrainedTokenizerFast", "NoSuchTokenizer", None, None]
# For each kind of model: fixtures that have such a tokenizer.json, classes, types of models.
KINDS = {
    "WordPiece": (
        ["uncased", "cased", "uncased_accents", "white_space", "shape_mpnet", "lowercase_first"],
        [
            "BertTokenizer", "BertTokenizerFast", "DistilBertTokenizer", "MPNetTokenizer",
            "FunnelTokenizer", "ConvBertTokenizer", "ElectraTokenizerFast", "MobileBertTokenizer",
        ],
        ["bert", "distilbert", "mpnet", "electra", "nomic_bert", "ernie", "modernbert", "new"],
    ),
    "ByteLevel": (
        [
            "shape_roberta", "shape_roberta_space_in_front", "shape_gpt_2", "shape_qwen",
            "shape_modernbert", "shape_clip",
        ],
        [
            "RobertaTokenizer", "RobertaTokenizerFast", "GPT2Tokenizer", "Qwen2Tokenizer",
            "BartTokenizerFast", "LongformerTokenizer", "CLIPTokenizer", "LlamaTokenizer",
        ],
        ["roberta", "qwen3", "qwen2", "modernbert", "eurobert", "gpt2"],
    ),
    "Unigram": (
        ["shape_xlm_r", "shape_bge_m3", "shape_camembert", "shape_t5", "shape_unigram_bare"],
        [
            "XLMRobertaTokenizer", "XLMRobertaTokenizerFast", "CamembertTokenizer",
            "AlbertTokenizer", "AlbertTokenizerFast", "DebertaV2Tokenizer",
            "DebertaV2TokenizerFast", "T5Tokenizer",
        ],
        ["xlm-roberta", "camembert", "albert", "deberta-v2", "t5", "mt5", "bert", "gte", "umt5",
         "new"],
    ),
    "SentencePiece": (
        ["shape_t5", "shape_xlm_r", "shape_bge_m3"],
        ["SiglipTokenizer", "SiglipTokenizerFast"],
        ["siglip"],
    ),
    "BPE": (
        ["shape_llama_2", "shape_gemma", "shape_mistral", "shape_bpe_without_bytes"],
        ["LlamaTokenizer", "LlamaTokenizerFast", "GemmaTokenizer", "HerbertTokenizer"],
        ["gemma3_text", "mistral", "eurobert", "bert"],
    ),
}
CONFIGS = DATA.parent / "published_configs.json"
SPECIAL_KEYS = [
    "bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token",
]
SWITCHES = [
    "do_lower_case", "strip_accents", "tokenize_chinese_chars", "keep_accents", "add_prefix_space",
    "trim_offsets", "legacy", "split_special_tokens", "clean_text", "add_bos_token",
    "add_eos_token",
]


def model_config(draw, model_type):
    """A published one of this type; just the type where there is none."""
    known = [
        entry["config"]
        for entry in json.loads(CONFIGS.read_text(encoding="utf-8")).values()
        if entry["config"].get("model_type") == model_type and "refused" not in entry
    ]
    config = dict(draw.choice(known)) if known else {"model_type": model_type}
    return {
        key: value for key, value in config.items() if key not in ("tokenizer_class", "auto_map")
    }


def chance(draw, share):
    return draw.random() < share


def vocabulary(tokenizer):
    vocab = tokenizer["model"]["vocab"]
    return list(vocab) if isinstance(vocab, dict) else [token for token, _ in vocab]


def flags(draw, token, special):
    return {
        "content": token,
        "single_word": chance(draw, 0.1),
        "lstrip": chance(draw, 0.3),
        "rstrip": chance(draw, 0.2),
        "normalized": chance(draw, 0.3),
        "special": special,
    }


def some_token(draw, tokenizer):
    added = [token["content"] for token in tokenizer["added_tokens"]]
    pool = added * 3 + ["<new>", "<other>", "[X]"] + draw.sample(vocabulary(tokenizer), 3)
    return draw.choice(pool)


def special_token(draw, tokenizer):
    token = some_token(draw, tokenizer)
    if chance(draw, 0.2):
        return {"__type": "AddedToken", **flags(draw, token, True)}
    return token


def config_of(draw, tokenizer, classes):
    config = {}
    chosen = draw.choice(classes + BACKENDS[:3] if chance(draw, 0.8) else BACKENDS)
    if chosen:
        config["tokenizer_class"] = chosen
    for key in SWITCHES:
        if chance(draw, 0.15):
            config[key] = chance(draw, 0.5)
    if chance(draw, 0.2):
        config["truncation_side"] = draw.choice(["left", "right"])
    if chance(draw, 0.2):
        config["model_input_names"] = draw.choice(
            [["input_ids", "attention_mask"], ["input_ids", "token_type_ids", "attention_mask"]]
        )
    if chance(draw, 0.2):
        config["model_max_length"] = draw.choice([16, 512, int(1e30)])
    for key in SPECIAL_KEYS:
        if chance(draw, 0.12):
            config[key] = special_token(draw, tokenizer)
    if chance(draw, 0.1):
        config["image_token"] = some_token(draw, tokenizer)
    if chance(draw, 0.15):
        config["extra_special_tokens"] = draw.choice(
            [
                [some_token(draw, tokenizer) for _ in range(2)],
                {"more_token": some_token(draw, tokenizer)},
                [],
            ]
        )
    if chance(draw, 0.15):
        config["additional_special_tokens"] = [some_token(draw, tokenizer) for _ in range(2)]
    if chance(draw, 0.3):
        config["added_tokens_decoder"] = decoder_of(draw, tokenizer)
    return config


def decoder_of(draw, tokenizer):
    """As the file has them, some with other flags, and sometimes one more."""
    tokens = {}
    for token in tokenizer["added_tokens"]:
        entry = {key: value for key, value in token.items() if key != "id"}
        if chance(draw, 0.1):
            entry = flags(draw, token["content"], token["special"])
        if not chance(draw, 0.05):
            tokens[str(token["id"])] = entry
    if chance(draw, 0.3):
        next_id = (
            max([len(vocabulary(tokenizer)) - 1] + [t["id"] for t in tokenizer["added_tokens"]]) + 1
        )
        tokens[str(next_id)] = flags(draw, "<new>", chance(draw, 0.5))
    return tokens


def draw_folder(draw):
    """The files of one folder, by name, and the tokenizer.json that they are of."""
    kind = draw.choice(list(KINDS))
    fixtures, classes, types = KINDS[kind]
    if kind != "SentencePiece" and chance(draw, 0.1):  # a type or a class of another kind
        _, classes, types = KINDS[draw.choice(list(KINDS))]
    fixture = json.loads((DATA / (draw.choice(fixtures) + ".json")).read_text(encoding="utf-8"))
    tokenizer = copy.deepcopy(fixture["tokenizer"])
    files = {}
    config = {}
    if chance(draw, 0.9):
        config = model_config(draw, draw.choice(types))
        if chance(draw, 0.1):
            config["tokenizer_class"] = draw.choice(classes)
        files["config.json"] = config
    if chance(draw, 0.85):
        files["tokenizer_config.json"] = config_of(draw, tokenizer, classes)
    if chance(draw, 0.15):
        files["special_tokens_map.json"] = {
            key: special_token(draw, tokenizer) for key in SPECIAL_KEYS if chance(draw, 0.3)
        }
        for value in files["special_tokens_map.json"].values():
            if isinstance(value, dict):
                del value["__type"]
        if chance(draw, 0.3):
            files["special_tokens_map.json"]["additional_special_tokens"] = [
                some_token(draw, tokenizer)
            ]
    if chance(draw, 0.1):
        files["added_tokens.json"] = {"<new>": len(vocabulary(tokenizer)) + 7, "<other>": 3}
    if chance(draw, 0.15):
        tokenizer["truncation"] = {
            "direction": draw.choice(["Left", "Right"]),
            "max_length": 9,
            "strategy": "LongestFirst",
            "stride": 0,
        }
    if chance(draw, 0.15):
        tokenizer["post_processor"] = None
    model = tokenizer["model"]
    if kind == "SentencePiece":
        maps = [b"", shapes.charsmap() or b"", small_map()]
        files["spiece.model"] = shapes.sentence_piece(
            tokenizer, draw.choice(maps), chance(draw, 0.7)
        )
        files.setdefault("tokenizer_config.json", {})["tokenizer_class"] = "SiglipTokenizer"
        # Left out: a capital sigma, of which encore has one small letter and Python two, U+0000,
        # pairs that are cut at the left behind </s>, and two files that name special tokens.
        model["vocab"] = [entry for entry in model["vocab"] if not set("\u03a3\0") & set(entry[0])]
        files["tokenizer_config.json"].pop("truncation_side", None)
        files.pop("special_tokens_map.json", None)
    elif kind in ("WordPiece", "ByteLevel") and chance(draw, 0.2):
        if kind == "WordPiece":
            tokens = sorted(model["vocab"], key=model["vocab"].get)
            files["vocab.txt"] = "".join(token + "\n" for token in tokens)
        else:
            files["vocab.json"] = model["vocab"]
            merges = [m if isinstance(m, str) else " ".join(m) for m in model["merges"]]
            files["merges.txt"] = "#version: 0.2\n" + "".join(m + "\n" for m in merges)
    else:
        files["tokenizer.json"] = tokenizer
    return kind, files, tokenizer


def small_map():
    """Strings that begin others, one that grows, one that goes."""
    return charsmap.make(
        {
            "\u00a0": " ",
            "e": "e",
            "e\u0301": "\u00e9",
            "\ufb01": "fi",
            "\u3000": " ",
            "\u4e2d": " x ",
            "\u00c9": "",
            "``": "\u2581",
        }
    )


def write_folder(path, files):
    path.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        if isinstance(content, bytes):
            (path / name).write_bytes(content)
            continue
        text = content if isinstance(content, str) else json.dumps(content, ensure_ascii=False)
        (path / name).write_text(text, encoding="utf-8", newline="")


def draw_texts(draw, tokenizer, count):
    """Texts of the vocabulary's pieces, added tokens, white space of many kinds, accents."""
    mark = "\u2581"
    pieces = [
        token.replace("##", "").replace(mark, " ").replace("\u0120", " ").replace("</w>", " ")
        for token in vocabulary(tokenizer)
    ]
    tokens = [token["content"] for token in tokenizer["added_tokens"]]
    tokens += [
        "<new>", "<other>", "[X]", "<s>", "</s>", "<pad>", "[SEP]", "<mask>", "[MASK]",
        "<|endoftext|>",
    ]
    others = [
        " ", "  ", "\t", "\n", "\u00a0", "\u3000", "\u2581", "\u00c9t\u00e9 ", "\u4e2d\u6587",
        "e\u0301", "``", "''", "ﬁ", "HELLO World", ", ", "1234 ", "don't ", "\U0001f600", "\u0130",
    ]
    texts = ["", " ", "  \n", " a ", "a  "]
    for _ in range(count):
        texts.append(
            "".join(
                draw.choice(draw.choice([pieces, pieces, tokens, others, [" "]]))
                for _ in range(draw.randrange(1, 14))
            )
        )
    return texts
