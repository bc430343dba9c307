#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the tokenizers of encore, of Hugging Face and of IREE on one thread, ids compared first.

    tools/fetch_model.sh && tools/python_env.sh peers && .deps/venv/bin/pip install .
    .deps/venv/bin/python bench/peers/text_to_ids.py --markdown [--texts FILE]

Texts are sentences of words from the model's vocabulary, or the lines of a file. All three take a
list of texts in one call and give ids with special tokens, uncut. They take turns for some rounds.
A figure is the median over the rounds.
"""

import argparse
import os
import pathlib
import statistics
import sys
import time
import typing

import remote
import tables

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

os.environ["TOKENIZERS_PARALLELISM"] = "false"

numpy = remote.import_or_leave("numpy")
tokenizers = remote.import_or_leave("tokenizers")
IreeTokenizer = remote.import_or_leave("iree.tokenizer").Tokenizer
quiet = remote.import_or_leave("quiet")
pyencore = remote.import_or_leave("pyencore")


def mixed_sentences(folder, count):
    """Words of the model's vocabulary; lengths are log-normal: 5 to 100 words, 20 in the middle."""
    tokenizer = tokenizers.Tokenizer.from_file(str(folder / "tokenizer.json"))
    pieces = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    words = [word for word, _ in pieces if word.isalpha() and word.isascii() and len(word) > 2]
    rng = numpy.random.default_rng(1)
    return [" ".join(rng.choice(words[:8000], max(3, int(rng.lognormal(3.0, 0.7)))))
            for _ in range(count)]


def parts(ids, counts):
    """A list of each text's ids from those of all texts."""
    ends = numpy.cumsum(counts).astype(int)
    return [part.tolist() for part in numpy.split(numpy.asarray(ids), ends)[:-1]]


class Engine(typing.NamedTuple):
    """run() tokenizes all texts, lists(what it returned) has the ids of each."""
    name: str
    run: typing.Callable
    lists: typing.Callable


def encore(args, batch):
    """encore, by the call that gives arrays."""
    tokenizer = pyencore.Tokenizer(args.model)
    return Engine(f"encore {pyencore.__version__}",
                  lambda: tokenizer.encode_batch_to_array(batch), lambda found: parts(*found))


def hugging_face(args, batch):
    """`tokenizers`, by the call that leaves offsets out."""
    tokenizer = tokenizers.Tokenizer.from_file(str(args.model / "tokenizer.json"))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    return Engine(f"tokenizers {tokenizers.__version__}",
                  lambda: tokenizer.encode_batch_fast(batch),
                  lambda encodings: [encoding.ids for encoding in encodings])


def iree(args, batch):
    """iree-tokenizer, by the call that gives arrays."""
    tokenizer = IreeTokenizer.from_file(str(args.model / "tokenizer.json"))
    return Engine("iree-tokenizer",
                  lambda: tokenizer.encode_batch_to_array(batch, add_special_tokens=True),
                  lambda arrays: parts(*arrays))


def seconds_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path,
                        default=ROOT / ".deps/models/all-MiniLM-L6-v2", metavar="DIR")
    parser.add_argument("--texts", type=pathlib.Path, metavar="FILE",
                        help="lines of UTF-8 in place of sentences")
    parser.add_argument("--count", type=int, default=20000, help="so many texts at most")
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--markdown", action="store_true")
    args = parser.parse_args()
    if args.rounds < 1 or args.count < 1:
        parser.error("--rounds and --count must be above zero")
    return args


def main():
    args = parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    if args.texts:
        lines = args.texts.read_text(encoding="utf-8").splitlines()
        batch = [line for line in lines if line][:args.count]
    else:
        batch = mixed_sentences(args.model, args.count)
    engines = [make(args, batch) for make in (hugging_face, encore, iree)]
    lists = [engine.lists(engine.run()) for engine in engines]
    tokens = sum(map(len, lists[0]))
    rates = {engine.name: [] for engine in engines}
    for _ in range(args.rounds):
        for engine in engines:
            seconds, _ = quiet.turn(lambda run=engine.run: seconds_of(run))
            rates[engine.name].append(tokens / seconds)
    rows = [["tokenizer, one thread", "million tokens/s", "ratio to the first",
             "texts with other ids"]]
    first = statistics.median(rates[engines[0].name])
    for engine, found in zip(engines, lists):
        median = statistics.median(rates[engine.name])
        rows.append([engine.name, f"{median / 1e6:.2f}", f"{median / first:.2f}",
                     str(sum(a != b for a, b in zip(found, lists[0])))])
    print(f"{len(batch)} texts, {tokens} tokens, {args.rounds} rounds\n")
    print(tables.write(rows, {0}, args.markdown))
    # Another tokenizer may differ; encore's must not.
    return int(lists[1] != lists[0])


if __name__ == "__main__":
    sys.exit(main())
