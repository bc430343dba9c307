# SPDX-License-Identifier: Apache-2.0
"""Draws tokenizers at random: any normalizers, pre-tokenizers, model, template and added tokens
that `tokenizers` puts together, with a vocabulary made of what comes out of them.

Holds what is drawn. The texts, and who compares, are in composed.py.
"""
import base64
import json
import random

from tokenizers import AddedToken, Tokenizer, pre_tokenizers

import charsmap
import shapes
from shapes import BYTES, CLIP, GPT2, LLAMA3, MARK, QWEN2

REGEXES = [GPT2, LLAMA3, QWEN2, CLIP, " {2,}", r"\s+", r"\s", r"[\r\n]", r"\p{N}", r"\p{N}{1,3}"]
OTHER_REGEXES = [r"\w+|[^\w\s]+", r"[a-c]+"]  # of those that encore has not
BEHAVIORS = ["Removed", "Isolated", "MergedWithPrevious", "MergedWithNext", "Contiguous"]
# What texts, patterns and replacements are made of: each does something to some part.
UNITS = [*"aabbcde", *"ABTs", " ", " ", " ", "  ", "\t", "\n", "\r\n", "\u00a0", "\u3000", "\u2028",
         MARK, MARK, "_", *"019", "\u0663", "\u00bd", "\u2167", *".,-'\"`(", "''", "``", "'s",
         "'LL",
         "\u2014", "\u00b4", "\u20ac", "\u00e9", "e\u0301", "\u0301", "\u0323", "\u0345", "\u00c5",
         "\u212b", "\u0130", "\u0131", "\u00df", "\u1e9e", "\u03a3", "\u01c5", "\ufb01", "\u1e9b",
         "\ufdfa", "\u4e2d", "\u56fd", "\uf900", "\uac01", "\u1100", "\u1161", "\u11a8", "\u3099",
         "\u304b", "\u30ab\u3099", "\u0e33", "\u0939\u093f", "\u0915\u094d\u0937", "\u05d0\u05b8",
         "\u0628\u0651\u064e", "\U0001f600", "\U0001f468\u200d\U0001f469", "\U0001f1e9\U0001f1ea",
         "\U0001f44d\U0001f3fd", "\u200d", "\ufe0f", "\u200b", "\u00ad", "\u200e", "\ufeff",
         "\ufffd",
         "\u0000", "\u0007", "\u007f", "\u0085", "\U000e0001", "\u302e", "\U0001d15e", "\u0344",
         "\u017f", "'\u017f", "##", "</w>", "<unk>", "[SEP]", "<0x41>", "Hello", "world", "the"]


def piece(draw, most=3):
    return "".join(draw.choices(UNITS, k=draw.randrange(1, most + 1)))


def pattern(draw):
    if draw.random() < 0.5:
        return {"String": piece(draw, 2)}
    return {"Regex": draw.choice(OTHER_REGEXES if draw.random() < 0.03 else REGEXES)}


def flag(draw):
    return draw.random() < 0.5


# ---- normalizers --------------------------------------------------------------------------------

def drawn_charsmap(draw):
    """sentencepiece's where its package is installed, or one of some made-up strings."""
    real = shapes.charsmap()
    if real and draw.random() < 0.4:
        return real
    keys = {draw.choice([unit, unit, piece(draw, 2)]) for unit in draw.sample(UNITS, 12)}
    return charsmap.make({key: "" if draw.random() < 0.1 else piece(draw, 2) for key in keys
                          if "\0" not in key})


def normalizer(draw):
    kind = draw.choices(
        ["Unicode", "Replace", "BertNormalizer", "Lowercase", "StripAccents", "Strip", "Prepend",
         "Precompiled", "Sequence", "unknown"], [6, 6, 3, 3, 3, 3, 2, 3, 1, 0.4])[0]
    if kind == "Unicode":
        return {"type": draw.choice(["NFC", "NFD", "NFKC", "NFKD"])}
    if kind == "Replace":
        content = draw.choice(["", " ", MARK, piece(draw, 1), piece(draw, 2)])
        return {"type": kind, "pattern": pattern(draw), "content": content}
    if kind == "BertNormalizer":
        return {"type": kind, "clean_text": flag(draw), "handle_chinese_chars": flag(draw),
                "strip_accents": draw.choice([None, True, False]), "lowercase": flag(draw)}
    if kind == "Strip":
        return {"type": kind, "strip_left": flag(draw), "strip_right": flag(draw)}
    if kind == "Prepend":
        return {"type": kind, "prepend": draw.choice([MARK, " ", piece(draw, 2)])}
    if kind == "Precompiled":
        return {"type": kind,
                "precompiled_charsmap": base64.b64encode(drawn_charsmap(draw)).decode()}
    if kind == "Sequence":
        return {"type": kind, "normalizers": [normalizer(draw) for _ in range(draw.randrange(3))]}
    return {"type": draw.choice(["Nmt", "ByteLevel"]) if kind == "unknown" else kind}


# ---- pre-tokenizers -----------------------------------------------------------------------------

def byte_level(draw):
    return {"type": "ByteLevel", "add_prefix_space": flag(draw), "trim_offsets": flag(draw),
            "use_regex": flag(draw)}


def pre_tokenizer(draw):
    kind = draw.choices(
        ["simple", "Metaspace", "Digits", "Punctuation", "Split", "Sequence", "unknown"],
        [4, 4, 1.5, 2, 4, 0.5, 0.3])[0]
    if kind == "simple":
        return {"type": draw.choice(["BertPreTokenizer", "Whitespace", "WhitespaceSplit"])}
    if kind == "Metaspace":
        return {"type": kind, "replacement": draw.choice([MARK, MARK, MARK, "_", " ", "a"]),
                "prepend_scheme": draw.choice(["always", "never", "first"]), "split": flag(draw)}
    if kind == "Digits":
        return {"type": kind, "individual_digits": flag(draw)}
    if kind == "Punctuation":
        return {"type": kind, "behavior": draw.choice(BEHAVIORS)}
    if kind == "Split":
        return {"type": kind, "pattern": pattern(draw), "behavior": draw.choice(BEHAVIORS),
                "invert": flag(draw)}
    if kind == "Sequence":
        return {"type": kind,
                "pretokenizers": [pre_tokenizer(draw) for _ in range(draw.randrange(3))]}
    return draw.choice([{"type": "UnicodeScripts"},
                        {"type": "CharDelimiterSplit", "delimiter": "-"}])


def some(draw, make, key, most):
    """Nothing, one part, or several in a sequence."""
    count = draw.choices(range(most + 1), [2, 6, 4, 3, 2, 1][:most + 1])[0]
    parts = [make(draw) for _ in range(count)]
    if not parts:
        return None
    return parts[0] if count == 1 and flag(draw) else {"type": "Sequence", key: parts}


def parts_before_model(draw):
    """The normalizer and the pre-tokenizer, and whether words are spelled in bytes."""
    normalize = some(draw, normalizer, "normalizers", 5)
    split = some(draw, pre_tokenizer, "pretokenizers", 4)
    if draw.random() < 0.3:  # ByteLevel stands last
        if split is None:
            return normalize, byte_level(draw), True
        parts = split.get("pretokenizers", [split]) + [byte_level(draw)]
        return normalize, {"type": "Sequence", "pretokenizers": parts}, True
    return normalize, split, False


# ---- models -------------------------------------------------------------------------------------

def words_of(draw, tokenizer, texts):
    """What reaches the model."""
    words = set()
    for text in texts:
        if tokenizer.normalizer:
            text = tokenizer.normalizer.normalize_str(text)
        if tokenizer.pre_tokenizer:
            words.update(word for word, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text))
        elif text:
            words.add(text)
    words = sorted(words - {""}) or ["a"]
    return words if len(words) <= 150 else draw.sample(words, 150)


def characters_of(draw, words, kept):
    return [c for c in dict.fromkeys(c for word in words for c in word) if draw.random() < kept]


def substrings(draw, words, count):
    for word in draw.choices(words, k=count):
        begin = draw.randrange(len(word))
        yield word[begin:begin + draw.randrange(2, 7)]


def word_piece(draw, words):
    prefix = draw.choice(["##", "##", "@@", "", "a"])
    kept = draw.choice([1, 0.97, 0.8])
    pieces = characters_of(draw, words, kept) + list(substrings(draw, words, 60))
    tokens = ["[UNK]", *pieces, *(prefix + p for p in pieces if draw.random() < 0.97)]
    return {"type": "WordPiece", "unk_token": "[UNK]", "continuing_subword_prefix": prefix,
            "max_input_chars_per_word": draw.choice([1, 5, 20, 100]),
            "vocab": numbered(draw, tokens)}


def numbered(draw, tokens):
    """Tokens with ids, in an order of their own."""
    tokens = list(dict.fromkeys(tokens))
    draw.shuffle(tokens)
    return {token: id for id, token in enumerate(tokens)}


def bpe(draw, words, in_bytes):
    prefix = draw.choice(["##", "@"]) if draw.random() < 0.12 else ""
    suffix = "</w>" if draw.random() < 0.15 else ""
    kept = draw.choice([1, 1, 0.97, 0.8])
    letters = sorted(pre_tokenizers.ByteLevel.alphabet()) if in_bytes else []
    letters = dict.fromkeys([c for c in letters if draw.random() < kept] +
                            ([] if in_bytes else characters_of(draw, words, kept)))

    def spelled(word):
        last = len(word) - 1
        return [(prefix if i else "") + c + (suffix if i == last else "")
                for i, c in enumerate(word) if c in letters]

    cut = [spelled(word) for word in words]
    tokens = dict.fromkeys([c for word in cut for c in word] + list(letters))
    merges = {}
    for _ in range(draw.choice([0, 20, 80, 200])):
        word = draw.choice(cut)
        if len(word) < 2:
            continue
        at = draw.randrange(len(word) - 1)
        pair = (word[at], word[at + 1])
        both = pair[0] + pair[1][len(prefix):]
        if len(both) > 60:
            continue
        merges.setdefault(pair)
        tokens.setdefault(both)
        word[at:at + 2] = [both]
    merges = list(merges)
    if flag(draw):
        draw.shuffle(merges)
    fallback = draw.random() < 0.35
    if fallback:
        tokens.update(dict.fromkeys(BYTES if flag(draw) else draw.sample(BYTES, 240)))
    if draw.random() < 0.3:  # tokens that no merges make
        tokens.update(dict.fromkeys(substrings(draw, words, 20)))
    unk = draw.choice(["<unk>", "<unk>", None])
    if unk or flag(draw):
        tokens.setdefault("<unk>")
    return {"type": "BPE", "dropout": None, "unk_token": unk, "continuing_subword_prefix":
            prefix or draw.choice([None, ""]), "end_of_word_suffix":
            suffix or draw.choice([None, ""]), "fuse_unk": flag(draw), "byte_fallback": fallback,
            "ignore_merges": draw.random() < 0.25, "vocab": numbered(draw, tokens),
            "merges": [list(merge) for merge in merges]}


def unigram(draw, words):
    kept = draw.choice([1, 0.97, 0.8])
    # Ties where scores are few.
    score = draw.choice([lambda: -draw.randrange(4 << 20, 16 << 20) / (1 << 20),
                         lambda: -float(draw.randrange(1, 4)), lambda: -draw.uniform(0, 12)])
    tokens = characters_of(draw, words, kept) + list(dict.fromkeys(substrings(draw, words, 120)))
    if draw.random() < 0.2:  # the last of them counts
        tokens += draw.sample(tokens, min(5, len(tokens)))
    fallback = draw.random() < 0.35
    if fallback:
        tokens += BYTES if flag(draw) else draw.sample(BYTES, 250)
    tokens.insert(draw.randrange(len(tokens) + 1), "<unk>")
    unk = None if draw.random() < 0.02 else tokens.index("<unk>")
    return {"type": "Unigram", "unk_id": unk, "byte_fallback": fallback,
            "vocab": [[token, score()] for token in tokens]}


def model(draw, words, in_bytes):
    kind = draw.choices(["BPE", "Unigram", "WordPiece", "WordLevel"],
                        [12, 0.3, 0.3, 0.1] if in_bytes else [5, 4, 4, 0.15])[0]
    if kind == "BPE":
        return bpe(draw, words, in_bytes)
    if kind == "Unigram":
        return unigram(draw, words)
    if kind == "WordPiece":
        return word_piece(draw, words)
    return {"type": kind, "unk_token": "<unk>", "vocab": numbered(draw, ["<unk>", *words])}


# ---- added tokens and the template --------------------------------------------------------------

def add_tokens(draw, tokenizer, words):
    """Returns the strings that were added."""
    added = []
    for _ in range(draw.choice([0, 0, 1, 3, 6])):
        content = draw.choice([piece(draw, 1), piece(draw, 2), draw.choice(words)[:8],
                               draw.choice(["<s>", "[SEP]", "<mask>", " ", "  ", "\n", MARK * 2])])
        special = draw.random() < 0.3
        token = AddedToken(content, lstrip=draw.random() < 0.3, rstrip=draw.random() < 0.3,
                           single_word=draw.random() < 0.25, normalized=flag(draw), special=special)
        (tokenizer.add_special_tokens if special else tokenizer.add_tokens)([token])
        added.append(content)
    return added


def template(draw, vocabulary):
    """A post-processor."""
    names = draw.choices(sorted(vocabulary, key=vocabulary.get), k=2)
    cls, sep = ([name, vocabulary[name]] for name in names)
    trim = {"trim_offsets": flag(draw), "add_prefix_space": flag(draw)}
    kind = draw.choice(["none", "Bert", "Roberta", "ByteLevel", "Template", "Template", "both"])
    bytes_trimmed = {"type": "ByteLevel", "use_regex": True, **trim}
    if kind == "none":
        return None
    if kind == "Bert":
        return {"type": "BertProcessing", "sep": sep, "cls": cls}
    if kind == "Roberta":
        return {"type": "RobertaProcessing", "sep": sep, "cls": cls, **trim}
    if kind == "ByteLevel":
        return bytes_trimmed

    def pieces(texts):
        parts = [{"Sequence": {"id": text, "type_id": draw.randrange(2)}} for text in texts]
        for _ in range(draw.randrange(4)):
            parts.insert(draw.randrange(len(parts) + 1), {"SpecialToken": {
                "id": draw.choice(names), "type_id": draw.randrange(3)}})
        return parts

    made = {"type": "TemplateProcessing", "single": pieces("A"),
            "pair": pieces(draw.choice(["AB", "AB", "BA"])),
            "special_tokens": {name: {"id": name, "ids": [vocabulary[name]], "tokens": [name]}
                               for name in names}}
    if kind == "both":
        return {"type": "Sequence", "processors": [bytes_trimmed, made]}
    return made


# ---- all of it ----------------------------------------------------------------------------------

def some_text(draw, most=14):
    return "".join(draw.choices(UNITS, k=draw.randrange(1, most)))


def compose(seed):
    """A tokenizer.json's tree, with the words and added tokens that texts are made of; None where
    `tokenizers` does not take what was drawn."""
    draw = random.Random(seed)
    normalize, split, in_bytes = parts_before_model(draw)
    tree = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [],
            "normalizer": normalize, "pre_tokenizer": split, "post_processor": None,
            "decoder": None, "model": {"type": "WordLevel", "vocab": {}, "unk_token": ""}}
    try:
        tokenizer = Tokenizer.from_str(json.dumps(tree))
        words = words_of(draw, tokenizer, [some_text(draw) for _ in range(60)])
        tree["model"] = model(draw, words, in_bytes)
        tokenizer = Tokenizer.from_str(json.dumps(tree))
        added = add_tokens(draw, tokenizer, words)
        made = json.loads(tokenizer.to_str())
        made["post_processor"] = template(draw, tokenizer.get_vocab(True))
        # As the file has it, which is read again: reading rounds scores.
        Tokenizer.from_str(json.dumps(made))
    except Exception as error:  # pyo3's are of no common class but this
        return None, str(error), []
    return made, words, added
