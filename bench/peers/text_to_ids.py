#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times the tokenizers of encore, of Hugging Face and of IREE on one thread, ids compared first.

    tools/fetch_model.sh && tools/python_env.sh peers
    tools/build.sh build/shared -DBUILD_SHARED_LIBS=ON --target encore_text
    .deps/venv/bin/python bench/peers/text_to_ids.py --markdown [--texts FILE]

Texts are sentences of words from the model's vocabulary, or the lines of a file. All three take a
list of texts in one call and give ids with special tokens, uncut; encore through a loop in C
(text_to_ids.c). They take turns for some rounds. A figure is the median over the rounds.
Not here: vectors (text_to_vector.py).
"""

import argparse
import ctypes
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import remote

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

os.environ["TOKENIZERS_PARALLELISM"] = "false"

numpy = remote.import_or_leave("numpy")
tokenizers = remote.import_or_leave("tokenizers")
IreeTokenizer = remote.import_or_leave("iree.tokenizer").Tokenizer
quiet = remote.import_or_leave("quiet")
text_encore = remote.import_or_leave("text_encore")
texts = remote.import_or_leave("texts")


class Encore:
    """encore's tokenizer behind its C interface."""

    def __init__(self, args, batch, work):
        library = text_encore.Library(args.library)
        loop = work / "libtext_to_ids.so"
        folder = args.library.resolve().parent
        subprocess.run([os.environ.get("CC", "cc"), "-std=c99", "-O2", "-shared", "-fPIC",
                        f"-I{ROOT / 'include'}", pathlib.Path(__file__).with_suffix(".c"),
                        "-o", loop, f"-L{folder}", f"-Wl,-rpath,{folder}", "-lencore_text"],
                       check=True)
        self.run_loop = ctypes.CDLL(str(loop)).tokenize_all
        self.run_loop.restype = ctypes.c_size_t
        self.name = f"encore {library.version()}"
        self.handle = library.open(args.model, 1)
        self.views, self.data = text_encore.views(batch)
        # A token is a byte at least; [CLS] and [SEP] come to them.
        longest = max(map(len, self.data)) + 2
        self.ids = numpy.empty(sum(map(len, self.data)) + 2 * len(self.data) + longest,
                               numpy.int32)
        self.longest = longest
        self.counts = numpy.empty(len(self.data), numpy.uintp)

    def run(self):
        size = ctypes.c_size_t
        return self.run_loop(self.handle, self.views, size(len(self.data)),
                             ctypes.c_void_p(self.ids.ctypes.data), size(self.longest),
                             ctypes.c_void_p(self.counts.ctypes.data))

    def lists(self):
        ends = numpy.cumsum(self.counts[:])[:-1].astype(int) if self.run() else []
        return [part.tolist() for part in numpy.split(self.ids[:int(self.counts.sum())], ends)]


class HuggingFace:
    """`tokenizers`, by the call that leaves offsets out."""

    def __init__(self, args, batch, _work):
        self.name = f"tokenizers {tokenizers.__version__}"
        self.tokenizer = tokenizers.Tokenizer.from_file(str(args.model / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.batch = batch

    def run(self):
        return self.tokenizer.encode_batch_fast(self.batch)

    def lists(self):
        return [encoding.ids for encoding in self.run()]


class Iree:
    """iree-tokenizer, by the call that gives arrays."""

    def __init__(self, args, batch, _work):
        self.name = "iree-tokenizer"
        self.tokenizer = IreeTokenizer.from_file(str(args.model / "tokenizer.json"))
        self.batch = batch

    def run(self):
        return self.tokenizer.encode_batch_to_array(self.batch, add_special_tokens=True)

    def lists(self):
        ids, lengths = self.run()
        ends = numpy.cumsum(lengths)[:-1].astype(int)
        return [part.tolist() for part in numpy.split(numpy.asarray(ids), ends)]


def seconds_of(run):
    start = time.perf_counter()
    run()
    return time.perf_counter() - start


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=pathlib.Path,
                        default=ROOT / ".deps/models/all-MiniLM-L6-v2", metavar="DIR")
    parser.add_argument("--library", type=pathlib.Path,
                        default=ROOT / "build/shared/engine/libencore_text.so", metavar="FILE")
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
        batch = texts.mixed_sentences(args.model, args.count)
    with tempfile.TemporaryDirectory() as work:
        engines = [kind(args, batch, pathlib.Path(work)) for kind in (HuggingFace, Encore, Iree)]
        lists = [engine.lists() for engine in engines]
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
    if args.markdown:
        rows.insert(1, ["---"] + ["---:"] * (len(rows[0]) - 1))
        print("\n".join("| " + " | ".join(row) + " |" for row in rows))
    else:
        print("\n".join("  ".join(text.rjust(22) for text in row) for row in rows))
    # Another tokenizer may differ; encore's must not.
    return int(lists[1] != lists[0])


if __name__ == "__main__":
    sys.exit(main())
