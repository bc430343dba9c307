# SPDX-License-Identifier: Apache-2.0
"""Compares encore and `tokenizers` on tokenizers that are drawn at random, part by part.

Holds one job: a drawn tokenizer, its texts, the comparison of ids, type ids and offsets, and what
is left of tokenizer and text when all that a difference does not need is taken out. What encore
refuses is counted by kind, never as equal. What is drawn is in compositions.py.
"""
import copy
import functools
import itertools
import json
import pathlib
import random
import re
import tempfile
from dataclasses import dataclass

from tokenizers import Tokenizer

from make_tokenizer_fixtures import byte_places

from . import compositions
from .compare import Outcome, Settings, encore_says, is_refusal
from .random_strings import Pools, RandomStrings

BATCH = 2000  # texts of a drawn tokenizer
SHOWN = 3  # differences that are made small: that takes a second each


@dataclass(frozen=True)
class Composed:
    """Some drawn tokenizers with their numbers, BATCH texts for each."""
    seed: str
    begin: int
    end: int

    def run(self, encore):
        outcome = Outcome("compositions")
        with tempfile.TemporaryDirectory(prefix="encore-composed-") as folder:
            for number in range(self.begin, self.end):
                compare_one(encore, pathlib.Path(folder), f"{self.seed}/{number}", outcome)
        return outcome


def composed_jobs(count, seed, chunk=25):
    wanted = -(-count // BATCH)
    for begin in range(0, wanted, chunk):
        yield Composed(seed, begin, min(begin + chunk, wanted))


# ---- texts --------------------------------------------------------------------------------------

@functools.cache
def hard_texts():
    """Once in a process: texts that are hard for any tokenizer."""
    strings = RandomStrings("composed", Pools(), ["the", "world", "\u4e2d", "ing"], [])
    return [text for text in (strings.one() for _ in range(8000)) if len(text) < 400]


def texts_of(draw, words, added):
    units = compositions.UNITS
    stocks = [units, units, words + units, words, words + 4 * added + units] + [
        draw.sample(units, 3) + added + [" "] for _ in range(3)]
    texts = ["", " "]
    while len(texts) < BATCH - 2:
        kind = draw.random()
        if kind < 0.05:
            texts.append(draw.choice(hard_texts()))
        else:
            size = draw.randrange(1, 4) if kind < 0.8 else draw.randrange(1, 16)
            texts.append("".join(draw.choices(draw.choice(stocks), k=size)))
    texts += ["".join(draw.choices(stock, k=draw.randrange(100, 800))) for stock in stocks[:2]]
    return texts


# ---- both sides ---------------------------------------------------------------------------------

class Refused(Exception):
    """What encore does not support, as it says."""


def found_by_encore(encore, folder, tree, texts, settings, details):
    """A list a text: ids, or [ids, type ids, offsets in bytes]."""
    (folder / "tokenizer.json").write_text(json.dumps(tree), encoding="utf-8")
    found = encore_says(encore, folder, texts, settings, "--details" * details)
    if not isinstance(found, str):
        return found
    if is_refusal(found):
        raise Refused(found)
    return [found] * len(texts)


def as_encore_says(encoding, text, details):
    if not details:
        return encoding.ids
    places = [byte_places(t) for t in ([text] if isinstance(text, str) else text)]
    offsets = [[0, 0] if sequence is None else [places[sequence][begin], places[sequence][end]]
               for (begin, end), sequence in zip(encoding.offsets, encoding.sequence_ids)]
    return [encoding.ids, encoding.type_ids, offsets]


def reference_says(tokenizer, texts, settings, details):
    """The same of `tokenizers`; None for texts at which it fails."""
    tokenizer.encode_special_tokens = settings.plain
    tokenizer.no_truncation()
    if settings.max_length:
        tokenizer.enable_truncation(settings.max_length)
    try:
        return [as_encore_says(encoding, text, details)
                for text, encoding in zip(texts, tokenizer.encode_batch(texts))]
    except KeyboardInterrupt:
        raise
    except BaseException:  # pyo3's panics are no Exception
        if len(texts) == 1:
            return [None]
    return [said for text in texts
            for said in reference_says(tokenizer, [text], settings, details)]


# ---- one drawn tokenizer ------------------------------------------------------------------------

def kind_of_refusal(sentence):
    """The sentence without what differs from tokenizer to tokenizer."""
    sentence = sentence[sentence.find("tokenizer.json"):]
    sentence = re.sub(r"(?<!type is )'(?:[^'\\]|\\.)*'", "'...'", sentence)
    return re.sub(r"; encore supports [A-Z].*|\d+|"
                  r"(?:: normalizers|: pretokenizers|: processors)\[\d+\]",
                  lambda m: "N" if m[0][0].isdigit() else "", sentence)


def compare_one(encore, folder, seed, outcome):
    tree, words, added = compositions.compose(seed)
    if tree is None:
        outcome.note("not taken by tokenizers", 1)
        return
    draw = random.Random(seed + "/texts")
    texts = texts_of(draw, words, added)
    if draw.random() < 0.2:
        texts = [t if i % 8 == 0 else (t, draw.choice(texts)) for i, t in enumerate(texts)]
    cut = draw.randrange(6, 21) if draw.random() < 0.2 else 0
    settings = Settings(cut, plain=draw.random() < 0.15, escaped=flag(draw))
    details = draw.random() < 0.35  # they take as long as all the rest
    if details and has_no_places(tree["model"]):
        outcome.note("tokenizers whose offsets are not compared", 1)
        details = False
    try:
        got = found_by_encore(encore, folder, tree, texts, settings, details)
    except Refused as refused:
        outcome.note("refused: " + kind_of_refusal(str(refused)), 1)
        return
    want = reference_says(Tokenizer.from_str(json.dumps(tree)), texts, settings, details)
    outcome.texts += len(texts)
    outcome.note("opened", 1)
    if got == want:
        outcome.tokens += sum(len(one[0] if details else one) for one in want)
        return
    wrong = [i for i, one in enumerate(want) if one is not None and got[i] != one]
    outcome.note("texts at which tokenizers fails", want.count(None))
    outcome.texts -= want.count(None)
    outcome.differences += len(wrong)
    if not wrong:
        return
    outcome.note("tokenizers with differences", 1)
    if len(outcome.shown) < SHOWN:
        shortest = texts[min(wrong, key=lambda i: len(str(texts[i])))]
        case = Case(encore, folder, tree, shortest, settings, details)
        outcome.shown.append(f"composition {seed}: {case.smaller().sentence()}")


def has_no_places(model):
    """Whether bytes of a prefix or suffix may fall back: `tokenizers` gives these bytes' places in
    the word, and behind its end, as places in the text."""
    return model.get("byte_fallback", False) and bool(
        model.get("continuing_subword_prefix") or model.get("end_of_word_suffix"))


def flag(draw):
    return draw.random() < 0.5


# ---- what a difference needs --------------------------------------------------------------------

@dataclass
class Case:
    encore: list
    folder: pathlib.Path
    tree: dict
    text: object
    settings: Settings
    details: bool

    def both(self):
        try:
            got = found_by_encore(self.encore, self.folder, self.tree, [self.text], self.settings,
                                  self.details)[0]
            tokenizer = Tokenizer.from_str(json.dumps(self.tree))
            return got, reference_says(tokenizer, [self.text], self.settings, self.details)[0]
        except Exception:  # refused by either
            return None, None

    def differs(self):
        got, want = self.both()
        return want is not None and got != want

    def smaller(self):
        """Takes out what can be taken out, one after another, until nothing can."""
        case, again = self, True
        while again:
            again = False
            for other in itertools.chain(case.with_less_text(), case.with_smaller_trees(),
                                         case.with_simpler_settings()):
                if other.differs():
                    case, again = other, True
                    break
        return case

    def changed(self, **what):
        return Case(**{**self.__dict__, **what})

    def with_less_text(self):
        if not isinstance(self.text, str):
            yield from (self.changed(text=text) for text in self.text)
            yield from (self.changed(text=(text, self.text[1])) for text in shorter(self.text[0]))
            yield from (self.changed(text=(self.text[0], text)) for text in shorter(self.text[1]))
        else:
            yield from (self.changed(text=text) for text in shorter(self.text))

    def with_simpler_settings(self):
        if self.settings.max_length or self.settings.plain:
            yield self.changed(settings=Settings())
        if self.details:
            yield self.changed(details=False)

    def with_smaller_trees(self):
        for tree in smaller_trees(self.tree):
            yield self.changed(tree=tree)

    def sentence(self):
        got, want = self.both()
        tree = {key: value for key, value in self.tree.items() if value not in (None, [])}
        tree["model"] = {key: value for key, value in tree["model"].items() if key != "vocab"}
        vocabulary = self.tree["model"]["vocab"]
        if len(vocabulary) < 40:
            tree["model"]["vocab"] = vocabulary
        names = {id: token for token, id in
                 Tokenizer.from_str(json.dumps(self.tree)).get_vocab(True).items()}
        spelled = [names.get(id) for id in (want[0] if self.details else want)]
        return (f"{ascii(self.text)}, {self.settings}\n    encore     {got}\n"
                f"    tokenizers {want}\n               {ascii(spelled)}\n    {json.dumps(tree)}")


def shorter(text):
    for size in (len(text) // 2, len(text) // 4, 3, 2, 1):
        if size:
            for begin in range(0, len(text), size):
                yield text[:begin] + text[begin + size:]


def smaller_trees(tree):
    def without(*path):
        other = copy.deepcopy(tree)
        inner = other
        for key in path[:-1]:
            inner = inner[key]
        if isinstance(inner, dict):
            inner[path[-1]] = None
        else:
            del inner[path[-1]]
        return other

    for part, key in (("normalizer", "normalizers"), ("pre_tokenizer", "pretokenizers"),
                      ("post_processor", "processors")):
        if tree[part]:
            yield without(part)
            yield from (without(part, key, i) for i in range(len(tree[part].get(key, []))))
    for i in reversed(range(len(tree["added_tokens"]))):
        yield without("added_tokens", i)
    merges = tree["model"].get("merges", [])
    for size in {len(merges) // 2, len(merges) // 8, 1} - {0}:
        for begin in range(0, len(merges), size):
            other = copy.deepcopy(tree)
            del other["model"]["merges"][begin:begin + size]
            yield other
