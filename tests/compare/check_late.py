#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws tiny folders of late interaction, in the spellings of sentence-transformers, PyLate and
Stanford's ColBERT, and compares ids, scored tokens, vectors and scores with sentence-transformers
in float64. Needs torch 2.15.0, transformers 5.23.0 and sentence-transformers 6.2.0, and a build
folder, in which it builds folder_answers.

    nice .deps/venv/bin/python tests/compare/check_late.py --count 24
    ... --seed 7 --only 3      one folder again

Each folder ends as equal, rough, refused (by encore, with the sentence), neither
(sentence-transformers does not open it) or DIFFERENT. Equal is within 1e-6 of the largest number;
or, where modules behind the model enlarge errors (a normalization of short vectors, a tanh of large
numbers), within what the vectors move by, in float64, if hidden states are off by 2^-22 (2.4e-7,
two of f32's last bits) of their largest number, which is told. Rough is farther, but by no more
than 4 times what torch in float32 is, as check_folders.py has it. Exit status 1 if one is
different.
"""
import argparse
import collections
import contextlib
import json
import os
import pathlib
import random
import string
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np  # noqa: E402
import torch  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))
from check_folders import Answers  # noqa: E402
from folder_check import reference  # noqa: E402
import late_folders  # noqa: E402

BOUND = 1e-6  # of the largest number of a folder's vectors, and of its scores


def maybe(rng, share, value, absent=None):
    return value if rng.random() < share else absent


def draw_expansion(rng):
    expansion = {"strategy": rng.choice(["fixed", "fixed", "min"]), "length": rng.randint(4, 40)}
    if rng.random() < 0.6:
        expansion["attend"] = rng.random() < 0.5
    if rng.random() < 0.3:
        expansion["token"] = rng.choice(["[SEP]", "[PAD]", "[MASK]", "[UNK]", "none such"])
    return expansion


def draw_dense(rng):
    width, layers = late_folders.WIDTH, []
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        out = rng.choice([8, 20, width])
        layers.append({"in": width, "out": out, "bias": rng.random() < 0.4,
                       "residual": rng.random() < 0.3,
                       "activation": rng.choice([torch.nn.Identity, torch.nn.Identity,
                                                 torch.nn.Tanh, torch.nn.GELU])})
        width = out
    return layers


def draw_words(rng):
    return rng.choice([[], list(string.punctuation), [".", "none such", "tea"], ["[SEP]", "[CLS]"],
                       ["[UNK]", ",", "the"]])


def draw_own(rng):
    transformer = {}
    if rng.random() < 0.7:
        transformer["query_expansion"] = draw_expansion(rng)
    if rng.random() < 0.5:
        least = transformer.get("query_expansion", {"length": 3})["length"]
        transformer["query_length"] = rng.randint(least, least + 20)
    if rng.random() < 0.7:
        transformer["document_length"] = rng.randint(3, 60)
    if rng.random() < 0.4:
        transformer["max_seq_length"] = rng.randint(6, 70)
    mask = {"skiplist_words": draw_words(rng)}
    if rng.random() < 0.4:
        mask["skiplist_tasks"] = rng.choice([["query"], ["query", "document"], "document", []])
    if rng.random() < 0.2:
        mask["keep_only_token_ids"] = sorted(rng.sample(range(2, 300), 120))
    return {"spelling": "own", "transformer": transformer, "mask": maybe(rng, 0.9, mask),
            "normalize": rng.random() < 0.8, "dense": draw_dense(rng),
            "similarity": rng.choice([None, "maxsim", "meanmaxsim"]),
            "prompts": rng.choice([None, {"query": "[MASK] ", "document": "tea: "},
                                   {"passage": "bread ", "query": ""}, {"corpus": "boats. "}])}


def draw_pylate(rng):
    keys = {}
    if rng.random() < 0.5:
        keys["model_type"] = "ColBERT"
    share = rng.choice([0, 0.2, 0.7, 0.7])  # without any, the folder has no markers
    for key, values in {"query_prefix": ["[Q] ", "tea ", "[MASK] ", "[unused0] ", ""],
                        "document_prefix": ["[D] ", "[unused1] ", "old: "],
                        "query_length": [5, 13, 32, None], "document_length": [9, 40, None],
                        "do_query_expansion": [True, False],
                        "attend_to_expansion_tokens": [True, False],
                        "skiplist_words": [[".", ","], [], None]}.items():
        if rng.random() < share:
            keys[key] = rng.choice(values)
    if rng.random() < 0.3:
        keys["prompts"] = {"query": "bread ", "document": ""}
    return {"spelling": "pylate", "marked": rng.random() < 0.7, "keys": keys,
            "dense": [{"in": late_folders.WIDTH, "out": rng.choice([8, 16])}]}


def draw_stanford(rng):
    keys = {}
    for key, values in {"query_maxlen": [5, 12, 32], "doc_maxlen": [9, 40],
                        "attend_to_mask_tokens": [True, False],
                        "query_token_id": ["[unused0]", "[MASK]"],
                        "doc_token_id": ["[unused1]", "tea"],
                        "mask_punctuation": [True, False], "nbits": [2]}.items():
        if rng.random() < 0.7:
            keys[key] = rng.choice(values)
    return {"spelling": "stanford", "keys": maybe(rng, 0.9, keys),
            "dense": [{"in": late_folders.WIDTH, "out": rng.choice([8, 16])}]}


# Documents of up to 600 words, for folders that take so many.
LONG = [("the old road; " * 200)[:length] for length in (150, 1400, 6000)]


def draw(rng):
    drawn = rng.choice([draw_own, draw_own, draw_pylate, draw_stanford])(rng)
    drawn = {"family": rng.choice(["bert", "modernbert"]), **drawn}
    if rng.random() < 0.4:
        drawn["positions"] = 640
        for settings, key in (("transformer", "document_length"), ("keys", "document_length"),
                              ("keys", "doc_maxlen")):
            if key in (drawn.get(settings) or {}):
                drawn[settings][key] = rng.randint(100, 620)
    return drawn


def keep_prompts(folder, prompts):
    """The prompts as they were drawn: sentence-transformers saves "query" and "document" too."""
    file = folder / "config_sentence_transformers.json"
    settings = json.loads(file.read_text())
    file.write_text(json.dumps({**settings, "prompts": prompts or {}}))


def judge(folder, documents, answers, precision):
    more = {"precision": precision} if precision else {}
    found = answers.ask({"folder": str(folder), "queries": late_folders.QUERIES,
                         "documents": documents, **more})
    try:
        wanted, scores = late_folders.compute(folder, documents=documents)
    except Exception as error:  # whatever it is, there is nothing to compare with
        return "neither", f"{type(error).__name__}: {error}; encore: {found.get('error', 'opens')}"
    if "error" in found:
        return "refused", found["error"]
    rows = [row for ones in wanted.values() for one in ones for row in one["rows"]]
    largest = max((np.abs(row).max() for row in rows), default=1.0)
    worst = 0.0
    for task, ones in wanted.items():
        for one, own in zip(ones, found[task], strict=True):
            ids = own["ids"]
            if one["ids"][:len(ids)] != ids:
                return "DIFFERENT", f"{task} {one['text']!r}: ids {ids}, wanted {one['ids']}"
            if len(own["rows"]) != len(one["rows"]):
                return "DIFFERENT", (f"{task} {one['text']!r}: {len(own['rows'])} rows, wanted "
                                     f"{one['places']} of {one['ids']}")
            if len(one["rows"]):
                worst = max(worst, np.abs(np.array(own["rows"]) - one["rows"]).max() / largest)
    told, rough = "", False
    if not worst <= BOUND and not precision:
        moved, single = (farthest(late_folders.compute(folder, documents=documents, **how)[0],
                                  wanted) / largest for how in ({"nudged": True}, {"single": True}))
        told = (f"; hidden states 2^-22 off move them by {moved:.1e}, torch in float32 is "
                f"{single:.1e} off")
        if not worst <= max(moved, 4 * single):
            return "DIFFERENT", f"vectors by {worst:.1e} of the largest{told}"
        rough = worst > moved
    scores = np.array(scores)
    real = scores > -1e6  # others are of documents without rows
    off = np.abs(np.array(found["scores"]) / scores - 1)[~real].max(initial=0.0)
    off = max(off, np.abs(np.array(found["scores"]) - scores)[real].max(initial=0.0) /
              max(1.0, np.abs(scores[real]).max(initial=0.0)))
    same = "rough" if rough else "equal"
    return (same if off <= BOUND or precision else "DIFFERENT",
            f"vectors within {worst:.1e}, scores within {off:.1e}{told}")


def farthest(found, wanted):
    """The largest difference of two results of late_folders.compute()."""
    return max(np.abs(a["rows"] - b["rows"]).max(initial=0.0) for task, ones in wanted.items()
               for a, b in zip(found[task], ones, strict=True))


def main():
    parser = argparse.ArgumentParser(description="Late interaction beside sentence-transformers.")
    parser.add_argument("--count", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this folder alone")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--precision", choices=["bf16", "int8", "int4"],
                        help="of encore's products: only tell what is lost")
    parser.add_argument("--program", type=pathlib.Path, help="a folder_answers that is built")
    arguments = parser.parse_args()
    reference.quiet()
    warnings.simplefilter("ignore")
    answers = Answers(arguments)
    verdicts = collections.Counter()
    numbers = range(arguments.count) if arguments.only is None else [arguments.only]
    for number in numbers:
        drawn = draw(random.Random(f"{arguments.seed}/{number}"))
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "folder"
            with contextlib.redirect_stdout(sys.stderr):
                try:
                    late_folders.write(drawn, folder, number)
                    if drawn["spelling"] == "own":
                        keep_prompts(folder, drawn["prompts"])
                except Exception as error:  # sentence-transformers does not save it
                    verdict, sentence = "neither", f"{type(error).__name__}: {error}"
                else:
                    documents = late_folders.DOCUMENTS + (LONG if "positions" in drawn else [])
                    verdict, sentence = judge(folder, documents, answers, arguments.precision)
        verdicts[verdict] += 1
        print(f"{verdict} --seed {arguments.seed} --only {number}: {sentence}", flush=True)
        if verdict == "DIFFERENT" or arguments.only is not None:
            print(f"  {json.dumps(drawn, default=str)}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
    return 1 if verdicts["DIFFERENT"] else 0


if __name__ == "__main__":
    sys.exit(main())
