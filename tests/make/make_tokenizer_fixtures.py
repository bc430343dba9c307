#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/tokenizer/*.json: small tokenizers, difficult texts, and what the Hugging Face
`tokenizers` library makes of them. Needs tokenizers 0.23.3 (from PyPI).

  make_tokenizer_fixtures.py           writes the files
  make_tokenizer_fixtures.py --check   makes them again and compares; exit 1 if they differ

A file has "tokenizer", the content of a tokenizer.json; "lowercase", whether TokenizerOptions has
it; and "cases", each with "text", perhaps "pair", the options that differ from their defaults
("max_length", "special", "plain"), and the results: "ids", "types", "offsets" in bytes of the text
that a token came from, "cut". Where "tokenizers" itself panics there is no case. Comparing more
texts than a repository should hold is tests/compare/check_tokenizer.py's business.
"""
import functools
import itertools
import json
import pathlib
import random
import sys

import tokenizers

from made_files import write_or_check
import charsmap
import shapes

FOLDER = pathlib.Path(__file__).resolve().parents[1] / "data" / "tokenizer"
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

TEXTS = [
    "", " ", "\t\n\r", "Hello, World!", "unaffable UNAFFABLE", "don't stop-me now...", "a" * 101,
    "b" * 100, "caf\u00e9 cafe\u0301 CAF\u00c9", "na\u00efve Z\u00fcrich \u0141\u00f3d\u017a",
    "\u0130stanbul ISTANBUL \u0131\u015f\u0131k", "Stra\u00dfe STRASSE \u1e9e",
    "\u03a3\u0391\u03a3 \u03c3\u03b1\u03c2", "\u1f82\u1f00\u0345 \u0390",
    "\u01c4 \u01c5 \ufb01 \u2167", "\u65e5\u672c\u8a9e\u3068\u65e5\u672c",
    "\u304b\u3099\u304c \uff76\uff9e \u30d1", "\ud55c\uad6d\uc5b4 \uac00\uac01 \u1112\u1161\u11ab",
    "\uf900\ufa0e\ufaff",
    chr(0x20000) + chr(0x2A6DF) + chr(0x2B820) + chr(0x2B920) + chr(0x2F800) + chr(0x2FA1D),
    "\u4e00\u9fff\u3400\u4dbf\u4dc0", "x\u00ady\u200bz\u200d\ufeffw\u180e.",
    "a\u0000b\ufffdc\u007fd\u0085e\u009ff", "a\u000bb\u000cc\u001cd\u001fe",
    "a\u00a0b\u1680c\u2028d\u3000e", "\u0378\u0380 \ufdd0 \uffff", "\ue000" + chr(0xF0000),
    "$+<=>^`|~ \u00b4 \u20ac \u00ab\u00bb\u2014\u2026",
    "\u166d\u2cf9\u104a" + chr(0x111C9) + chr(0x11FFF),
    "\u0915\u094d\u0937\u093f \u0939\u093f\u0928\u094d\u0926\u0940",
    "\u0e17\u0e35\u0e48 \u0e19\u0e49\u0e33",
    "\u0627\u0644\u0633\u0651\u0644\u0627\u0645 \u05e9\u05c1\u05dc\u05d5\u05b9\u05dd",
    "\U0001f468\u200d\U0001f469\u200d\U0001f467 \U0001f44d\U0001f3fd \u2764\ufe0f "
    "\U0001f1e9\U0001f1ea",
    "a\u0323\u0301 a\u0301\u0323 \u1e69\u0307", "q\u0307\u0323\u0300\u0316\u034f\u0323\u0307",
    "o\u302e\u0301\u302f\u0323 o\u302f\u302e",
    chr(0x1D15E) + chr(0x1D165) + chr(0x1D16E) + chr(0x1D1BC),
    "e\u08d4\u0301\u08e1\u0323 " + chr(0x1E000) + chr(0x1E02A) + "\u0301",
    "\u0344\u0f73\u0f81 \u0958", "\u0301leading \u0301\u0301",
    "\u1b44\u0301\u1bf2 " + chr(0x1E944) + chr(0x1E94A), "\u212b \u2126 K\u212a",
    chr(0x10400) + chr(0x1E900) + chr(0x118A0), "\ua640\u10a0\u13a0\uab70\u1c90",
    "[CLS] [SEP] [cls] [PAD][MASK]", "a[SEP]b [ SEP ] [UNK]", "x [MASK] y[MASK]z", "[[SEP]] [SE P]",
    "<a> <a>b c<a> d <a>  e", "  <b>  <b>\u3000<b>x <b>", "foo Foo FOO food Foo,bar _Foo \u00e9Foo",
    "Foo\u0301 Foo\u00b2 1Foo Foo-Foo", "foo bar  foo bar FOO BAR", "##ing a##b # #",
    "\u00c9T\u00c9 \u00e9t\u00e9 E\u0301te\u0301",
    "one two three four five six seven eight nine ten", "a b c", "word" * 24 + "abcd",
    "word" * 25 + "a", "\u00e9" * 100, "\u00e9" * 101, "e\u0301" * 100, "tab\tnew\nline\r\nend",
    "\uff28\uff45\uff4c\uff4c\uff4f\uff01",
]


# Of the shapes in shapes.py: what their own components look at.
MORE_TEXTS = [
    "I've I'VE he'll HE'LL it's IT'\u017f 's's 'x ''d",
    "1 12 123 1234567 \u0663\u0664 \u00bd\u00b2", "  two  spaces   three ",
    "a\nb\n\nc\r\nd \n e\t\tf", "\n", "   ", "x\u00a0y \u00a0 z\u2003",
    "\u2581a \u2581\u2581b\u2581 c\u2581", "<mask> <s>a</s> x <mask>y",
    "[MASK] <|endoftext|> <think>",
    "\u00e9e\u0301\u0065\u0327\u0301 \ufb01\ufb03 \u2460\u2074 \uff21 \u3392 \ufdfa",
    "\u1100\u1161\u11a8\uac00\u11a8", "\u0958\u0929\u093c \u0915\u094d\u0915\u093c\u0301",
    "!?... --- ??!a,b;c", "\u00ad\u200b\u0000\u0007\u0085\ufeffx",
    "a\u0301\u0323b\u0345 \u0600a\u0301 \u00a9\u200d\u00a9\u200d \u00a9\u0301",
    "\U0001f600\U00020000\ufffd", "x" * 120, "ab" * 70 + " the the",
]
SMALL_MAP = {
    "\t": " ", "\n": " ", "\r": " ", "\u0000": "", "\u0007": "", "\u00ad": "", "\u200b": " ",
    "\ufeff": "", "\u00a0": " ", "\u3000": " ", "\ufb01": "fi", "\ufb03": "ffi", "\uff21": "A",
    "\u2460": "1", "\u00bd": "1\u20442", "e\u0301": "\u00e9", "a\u0301": "\u00e1",
    "\u00a9": "(c)", "\u0915\u093c": "\u0958", "\u093c": "\u093c", "\u0600": "#",
    "\u1100": "G", "\u2003": " "}
SHAPE_SIZES = {"Gemma": 640, "Llama 2": 600, "Mistral": 580, "BPE without bytes": 420, "CLIP": 640,
               "RoBERTa, space in front": 380, "CamemBERT": 300, "Unigram, bare": 350}


def bert(clean=True, chinese=True, strip=None, lower=True):
    return {"type": "BertNormalizer", "clean_text": clean, "handle_chinese_chars": chinese,
            "strip_accents": strip, "lowercase": lower}


def sequence(key, *parts):
    return {"type": "Sequence", key: list(parts)}


def typed(name):
    return {"type": name}


def added(content, *flags):
    return {"content": content, **{flag: flag in flags for flag in (
        "single_word", "lstrip", "rstrip", "normalized", "special")}}


USUAL = [added(token, "special") for token in SPECIAL]
FLAGS = [added("[CLS]", "special", "normalized"), added("[SEP]", "special"),
         added("[MASK]", "special", "lstrip"), added("<a>", "rstrip"),
         added("<b>", "lstrip", "rstrip"), added("Foo", "single_word", "normalized"),
         added("foo bar", "normalized", "lstrip"),
         added("\u00c9t\u00e9", "normalized"), added("[PAD]", "single_word", "special")]


def template(single, pair):
    """From "[CLS]:0 A:0" and the like."""
    def piece(text):
        name, type_id = text.rsplit(":", 1)
        kind = "Sequence" if name in "AB" else "SpecialToken"
        return {kind: {"id": name, "type_id": int(type_id)}}

    return {"type": "TemplateProcessing", "single": [piece(p) for p in single.split()],
            "pair": [piece(p) for p in pair.split()],
            "special_tokens": {t: {"id": t, "ids": [SPECIAL.index(t)], "tokens": [t]}
                               for t in ("[CLS]", "[SEP]")}}


BERT = template("[CLS]:0 A:0 [SEP]:0", "[CLS]:0 A:0 [SEP]:0 B:1 [SEP]:1")
ODD = template("A:3 [SEP]:2 [SEP]:5", "B:7 [SEP]:0 A:1")
PROCESSING = {"type": "BertProcessing", "sep": ["[SEP]", 3], "cls": ["[CLS]", 2]}

# name: normalizer, pre-tokenizer, added tokens, post-processor, and more.
TOKENIZERS = {
    "uncased": (bert(), typed("BertPreTokenizer"), USUAL, BERT, {}),
    "cased": (bert(lower=False), typed("BertPreTokenizer"), USUAL, PROCESSING, {}),
    "cased_stripped": (bert(lower=False, strip=True), typed("BertPreTokenizer"), USUAL, BERT, {}),
    "uncased_accents": (bert(strip=False, chinese=False), typed("BertPreTokenizer"), FLAGS, BERT,
                        {}),
    "as_it_comes": (bert(clean=False), typed("BertPreTokenizer"), FLAGS, ODD, {"max": 20}),
    "white_space": (None, typed("WhitespaceSplit"), FLAGS, BERT, {"prefix": ""}),
    "steps": (sequence("normalizers", typed("NFD"), typed("StripAccents"), typed("Lowercase")),
              sequence("pretokenizers", typed("WhitespaceSplit"), typed("Whitespace")), FLAGS, None,
              {}),
    "decomposed": (typed("NFD"), None, [], BERT, {"max": 1000}),
    "lowercase_first": (bert(lower=False), typed("BertPreTokenizer"), FLAGS, BERT,
                        {"lowercase": True}),
}


def make_tokenizer(name, seed):
    """The content of tokenizer.json, and the same with Lowercase in front if that is asked for."""
    normalizer, pre_tokenizer, added_tokens, post_processor, more = TOKENIZERS[name]
    lowered = normalizer
    if more.get("lowercase"):
        lowered = sequence("normalizers", typed("Lowercase"), normalizer)
    content = {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
        "normalizer": lowered, "pre_tokenizer": pre_tokenizer, "post_processor": None,
        "decoder": None,
        "model": {"type": "WordPiece", "unk_token": "[UNK]",
                  "continuing_subword_prefix": more.get("prefix", "##"),
                  "max_input_chars_per_word": more.get("max", 100), "vocab": {"[UNK]": 0}}}
    normalize = tokenizers.Tokenizer.from_str(json.dumps(content)).normalizer
    # Most characters of the texts, first and continuing, and some pieces.
    draw = random.Random(seed)
    tokens = dict.fromkeys(SPECIAL)
    for text in TEXTS:
        text = normalize.normalize_str(text) if normalize else text
        for i in range(len(text)):
            for size in (1, draw.choice((2, 3, 5))):
                if draw.random() < (0.95 if size == 1 else 0.05):
                    tokens[text[i:i + size]] = None
                    tokens[content["model"]["continuing_subword_prefix"] + text[i:i + size]] = None
    vocab = {token: i for i, token in enumerate(tokens)}
    content["model"]["vocab"] = vocab
    content["post_processor"] = post_processor
    next_id = len(vocab)
    for token in added_tokens:
        token_id = vocab.get(token["content"], next_id)
        next_id += token_id == next_id
        content["added_tokens"].append({"id": token_id, **token})
    return {**content, "normalizer": normalizer}, content


def byte_places(text):
    """The place in bytes of each character, and of the end."""
    return list(itertools.accumulate((len(c.encode()) for c in text), initial=0))


def encode(tokenizer, case):
    """The case with what the library says, or nothing if that panics."""
    special = case.get("special", True)
    tokenizer.encode_special_tokens = case.get("plain", False)

    def call(max_length):
        tokenizer.no_truncation()
        if max_length:
            tokenizer.enable_truncation(max_length)
        return tokenizer.encode(case["text"], case.get("pair"), add_special_tokens=special)

    try:
        encoded, whole = call(case.get("max_length", 0)), call(0)
    except BaseException as error:  # a panic is not an Exception
        if "PanicException" not in type(error).__name__:
            raise
        return None
    places = [byte_places(case["text"]), byte_places(case.get("pair", ""))]
    offsets = [[0, 0] if which is None else [places[which][begin], places[which][end]]
               for which, (begin, end) in zip(encoded.sequence_ids, encoded.offsets)]
    return {**case, "ids": encoded.ids, "types": encoded.type_ids, "offsets": offsets,
            "cut": len(whole.ids) - len(encoded.ids)}


def make_cases(name, seed):
    draw = random.Random(seed)
    cases = [{"text": text} for text in TEXTS]
    if any(token["content"] == "Foo" for token in TOKENIZERS[name][2]) or name == "uncased":
        cases += [{"text": text, "plain": True} for text in TEXTS if "[" in text or "oo" in text]
    for _ in range(24):
        case = {"text": draw.choice(TEXTS[-30:])}
        if draw.random() < 0.7:
            case["pair"] = draw.choice(TEXTS)
        case["max_length"] = draw.randrange(3, 14)
        if draw.random() < 0.3:
            case["special"] = False
        cases.append(case)
    return cases


def shape_texts():
    words = "the quick brown fox jumped over the lazy dog's tail; we've been there 12 times. "
    return [text for text in TEXTS if len(text) < 60] + [words * 3, words.upper(), "caf\u00e9 " * 9]


def make_shape(name):
    """One of the shapes that models are published in, with a small vocabulary."""
    function, _ = shapes.SHAPES[name]
    shapes.charsmap = lambda: charsmap.make(SMALL_MAP)
    tokenizer = function(lambda: list(shape_texts()), SHAPE_SIZES.get(name, 400))
    draw, texts = random.Random(name), [t for t in TEXTS if len(t) < 40] + MORE_TEXTS
    cases = [{"text": text} for text in texts]
    cases += [{"text": text, "plain": True} for text in texts if "<" in text or "[" in text]
    for _ in range(12):
        cases.append({"text": draw.choice(texts), "pair": draw.choice(texts),
                      "max_length": draw.randrange(6, 24), "special": draw.random() < 0.7})
    return fixture(json.loads(tokenizer.to_str()), tokenizer, cases)


def fixture(content, tokenizer, cases, lowercase=False):
    lines = [json.dumps(case, ensure_ascii=True, separators=(",", ":"))
             for case in (encode(tokenizer, case) for case in cases) if case]
    return (f'{{"lowercase":{json.dumps(lowercase)},\n'
            f'"tokenizer":{json.dumps(content, separators=(",", ":"))},\n'
            '"cases":[\n' + ",\n".join(lines) + "\n]}\n")


def make(name):
    written, used = make_tokenizer(name, name)
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(used))
    return fixture(written, tokenizer, make_cases(name, name),
                   TOKENIZERS[name][4].get("lowercase", False))


def main():
    made = {f"{name}.json": functools.partial(make, name) for name in TOKENIZERS}
    for name in shapes.SHAPES:
        file = name.lower().translate(str.maketrans({",": None, " ": "_", "-": "_"}))
        made[f"shape_{file}.json"] = functools.partial(make_shape, name)
    return write_or_check(__doc__.splitlines()[0], FOLDER, made)


if __name__ == "__main__":
    sys.exit(main())
