#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the vectors of `encore embed` with those of sentence-transformers in float64.

Holds the comparison over real sentences and over texts at the edges of the maximum length. Not
here: tokens alone (check_tokenizer.py), the tests' small folders (make_text_fixtures.py). Needs
sentence-transformers 6.2.0 and a model's folder.

    tests/compare/check_vectors.py --model .deps/models/all-MiniLM-L6-v2
    tests/compare/check_vectors.py --model FOLDER --texts FILE --count 20000

Texts are the lines of --texts; without it, sentences of the licences and fortunes that Debian
installs. Exit status 1 if any component of a unit vector is further than 1e-6 from float64's.
Weights of half precision are widened before anything is computed: transformers would round the
scale of Gemma's embeddings to them. Ids are those of tokenizer.json; transformers builds some
tokenizers anew from their vocabulary, and how many texts have other ids then is told.
"""
import argparse
import json
import os
import pathlib
import random
import re
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402

from check_precision import cosines_of, vectors  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
BOUND = 1e-6
FOLDERS = ["/usr/share/games/fortunes", "/usr/share/common-licenses", "/usr/share/doc"]


def system_sentences(count):
    """Sentences of texts that the system has, in an order that depends on them alone."""
    sentences = set()
    for folder in FOLDERS:
        for path in sorted(pathlib.Path(folder).rglob("*")):
            if not path.is_file() or path.suffix in {".dat", ".gz", ".u8", ".png", ".html"}:
                continue
            try:
                text = path.read_text(encoding="utf-8")
            except (UnicodeDecodeError, OSError):
                continue
            for sentence in re.split(r"(?<=[.!?])\s+|\n\s*\n|\n%\n", text):
                sentence = " ".join(sentence.split())
                if 20 <= len(sentence) <= 2000:
                    sentences.add(sentence)
        if len(sentences) >= 20 * count:
            break
    chosen = sorted(sentences)
    random.Random(1).shuffle(chosen)
    return chosen[:count]


def edge_texts(limit):
    """Texts of 0, 1, limit - 1, limit, limit + 1 and 10 limit tokens, if a word is one; others."""
    room = limit - 2
    texts = [" ".join(["tea"] * n) for n in [0, 1, room - 1, room, room + 1, 10 * room]]
    return texts + ["", " ", "\t", "!", "x" * 101, "[MASK] and [SEP]",
                    "\u6771\u4eac\u306b\u3044\u307e\u3059", "a\u0301e\u0308 \U0001F600"]


def use_file_of_tokenizer(model, folder, texts):
    """Puts tokenizer.json in place of what transformers made of it; tells what that changes."""
    from tokenizers import Tokenizer
    file = next(pathlib.Path(folder).rglob("tokenizer.json"), None)
    if file is None:
        return
    own = [model.tokenizer(text)["input_ids"] for text in texts]
    model.tokenizer._tokenizer = Tokenizer.from_file(str(file))
    model.tokenizer._tokenizer.no_padding()
    model.tokenizer._tokenizer.no_truncation()
    other = sum(a != model.tokenizer(text)["input_ids"] for a, text in zip(own, texts))
    if other:
        print(f"transformers has other ids than tokenizer.json for {other} of {len(texts)} texts")


def expected(model, texts):
    """Unit vectors in float64."""
    return np.concatenate([model.encode(texts[begin:begin + 64], normalize_embeddings=True)
                           for begin in range(0, len(texts), 64)])


def found(arguments, texts):
    with tempfile.TemporaryDirectory() as temporary:
        lines = pathlib.Path(temporary) / "texts.jsonl"
        lines.write_text("".join(json.dumps(text) + "\n" for text in texts))
        return vectors(arguments, lines)


def compare(name, want, got, texts):
    assert want.dtype == np.float64 and got.dtype == np.float32 and want.shape == got.shape
    got = got.astype(np.float64)
    difference = np.abs(got - want).max(axis=1)
    cosine = 1 - cosines_of(got, want)
    worst = int(difference.argmax())
    print(f"{name}: {len(texts)} texts, largest difference {difference[worst]:.3g} "
          f"(bound {BOUND:g}), mean of each text's largest {difference.mean():.3g}, "
          f"cosine distance at most {cosine.max():.3g}; worst: {texts[worst][:60]!r}")
    return bool((difference <= BOUND).all())  # false for NaN


def main():
    parser = argparse.ArgumentParser(description="encore's vectors against float64.")
    parser.add_argument("--model", required=True, help="a model's folder")
    parser.add_argument("--encore", default=str(ROOT / "build/release/bin/encore"))
    parser.add_argument("--texts", help="a file with one text a line")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("options", nargs="*", help="for `encore embed`, after --")
    arguments = parser.parse_args()

    import torch
    from sentence_transformers import SentenceTransformer
    model = SentenceTransformer(arguments.model, device="cpu", local_files_only=True,
                                model_kwargs={"dtype": torch.float32}).double()
    if arguments.texts:
        lines = pathlib.Path(arguments.texts).read_text(encoding="utf-8").splitlines()
        texts = lines[:arguments.count]
    else:
        texts = system_sentences(arguments.count)
    edges = edge_texts(model.max_seq_length)
    use_file_of_tokenizer(model, arguments.model, texts + edges)
    right = True
    for name, some in [("sentences", texts), ("edges", edges)]:
        right &= compare(name, expected(model, some), found(arguments, some), some)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
