# SPDX-License-Identifier: Apache-2.0
"""Texts to token ids by the tokenizers of encore, of Hugging Face and of IREE.

    tools/fetch_model.sh
    .deps/venv/bin/python bench/peers/compare.py ids --threads 1 --markdown [--texts FILE]

Texts are sentences of words from the model's vocabulary, or the lines of a file. All take a list of
texts in one call, on one thread, and give ids with special tokens, uncut.
"""

import pathlib
import types
import zlib

import numpy

import compare

ENGINES_ACROSS = False
ROOT = pathlib.Path(__file__).resolve().parents[2]


def mixed_sentences(folder, count):
    """Words of the model's vocabulary; lengths are log-normal: 5 to 100 words, 20 in the middle."""
    tokenizer = hugging_face(folder)
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    words = [word for word, _ in pieces if word.isalpha() and word.isascii() and len(word) > 2]
    rng = numpy.random.default_rng(1)
    return [" ".join(rng.choice(words[:8000], max(3, int(rng.lognormal(3.0, 0.7)))))
            for _ in range(count)]


def hugging_face(folder):
    import tokenizers
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return tokenizer


def parts(ids, counts):
    """The ids of each text from those of all texts."""
    return numpy.split(numpy.asarray(ids), numpy.cumsum(counts).astype(int))[:-1]


def opened(job):
    """Each by its call that does the least: arrays, or no offsets."""
    folder, texts, name = pathlib.Path(job["model"]), job["texts"], job["engine"]
    if name == "tokenizers":
        tokenizer = hugging_face(folder)
        call = lambda: tokenizer.encode_batch_fast(texts)  # noqa: E731
        lists = lambda found: [one.ids for one in found]  # noqa: E731
    elif name == "encore":
        import pyencore
        tokenizer = pyencore.Tokenizer(folder)
        call, lists = lambda: tokenizer.encode_batch_to_array(texts), lambda found: parts(*found)
    else:
        from iree.tokenizer import Tokenizer
        tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        call = lambda: tokenizer.encode_batch_to_array(texts, add_special_tokens=True)  # noqa: E731
        lists = lambda found: parts(*found)  # noqa: E731
    return types.SimpleNamespace(
        calls={"": call}, about={}, output=lambda: numpy.array(
            [zlib.crc32(numpy.asarray(ids, numpy.int32).tobytes()) for ids in lists(call())]))


def add_options(parser):
    parser.set_defaults(rounds=9, seconds=0.001, threads=[1])
    parser.add_argument("--model", type=pathlib.Path, metavar="DIR",
                        default=ROOT / ".deps/models/all-MiniLM-L6-v2")
    parser.add_argument("--texts", type=pathlib.Path, metavar="FILE",
                        help="lines of UTF-8 in place of sentences")
    parser.add_argument("--count", type=int, default=20000, help="so many texts at most")


def prepare(_case, _folder):
    pass


def cases(options):
    if options.texts:
        lines = options.texts.read_text(encoding="utf-8").splitlines()
        texts = [line for line in lines if line][:options.count]
    else:
        texts = mixed_sentences(options.model, options.count)
    tokens = sum(len(e.ids) for e in hugging_face(options.model).encode_batch_fast(texts))
    yield compare.Case(options.model.resolve().name, 1, {"": (tokens / 1e6, "million tokens")},
                       texts)


def engines(options, case):
    for name in ("tokenizers", "encore", "iree-tokenizer"):
        yield {"engine": name, "precision": "", "least": 1,
               "model": str(options.model), "texts": case.work}


def difference(_options, engine, found, wanted):
    others = int((found != wanted).sum())
    # Another tokenizer may differ; encore's must not.
    wrong = others and engine.name == "encore"
    return str(others), f"{others} texts have other ids" if wrong else None


def table(rows):
    return ([["tokenizer", "rate", "time by that of tokenizers", "texts with other ids"],
             *([r["engine"], compare.per_second(r),
                compare.ratio_text(r["ratios"].get("tokenizers")), r["difference"]] for r in rows)],
            (1, 2, 3))
