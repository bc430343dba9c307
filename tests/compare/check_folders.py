#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks for folders that sentence-transformers reads otherwise than encore: draws tiny models with
random tensors and all kinds of files around them, and compares vectors and scores of many texts
with sentence-transformers in float64; then lists of ids of 1 to 600 tokens as one ragged batch.

The judge is the definition in float64 throughout. transformers rounds some of a float64 model to
float32 (rotary angles, RMSNorm, softmax); as it is it must be within 1e-5 of that too.

Holds the search; what is drawn is in folder_check/. Needs torch 2.15.0, transformers 5.23.0 and
sentence-transformers 6.2.0, and a build folder, in which it builds folder_answers.

    nice .deps/venv/bin/python tests/compare/check_folders.py --count 500
    ... --seed 7 --only 123 --keep /tmp/folder     one folder again, which stays
    ... --families DebertaV2 --count 100           of one family
    ... --families DebertaV2 --keys                and whether each key of DebertaV2Config is varied
    ... --precision bf16,int8                      and what these lose

Each folder ends as one of
  equal        within 1e-6 of the largest number
  rough        farther, but by no more than 4 times what torch in float32 is: such a model makes
               much of each rounding
  told         different, and Describe() says that it is
  refused      by encore, with the sentence; listed by kind
  neither      sentence-transformers does not open it; encore may or may not
  DIFFERENT    the folder's number, what was drawn and how far off it is; "in its tokens" where the
               results are right from the ids that sentence-transformers makes
Exit status 1 if a folder is different, if fewer than --equal are equal, or if with --keys a key was
neither varied nor refused.
"""
import argparse
import collections
import contextlib
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import numpy as np  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))
from folder_check import families, folders, reference  # noqa: E402
from folder_check.losses import Losses, print_table  # noqa: E402

BOUND = 1e-6  # of the largest number of a folder's results
AS_IT_IS = 1e-5  # the same of transformers with what it rounds to float32
LENGTHS = 600  # of lists of ids, at most
LISTS = 8
TRIES = 20  # to vary a key
TOLD = "sentence-transformers"  # in a decision that tells of a difference
TOLD_IDS = "may have other ids"  # in one that tells of nothing but the tokenizer
NOT_MADE = "not made: "  # before the sentence on a model that transformers does not make
TOLD_LENGTH = "takes more where texts have padding"


class Answers:
    """The program that opens folders with encore. It is started again where it ends."""

    def __init__(self, arguments):
        self.path, self.process = arguments.program, None
        if self.path is None:
            self.path = arguments.build / "bin/folder_answers"
            subprocess.run(["cmake", "--build", arguments.build, "--target", self.path.name],
                           check=True, stdout=subprocess.DEVNULL)

    def ask(self, request):
        if self.process is None or self.process.poll() is not None:
            self.process = subprocess.Popen([self.path], stdin=subprocess.PIPE,
                                            stdout=subprocess.PIPE, text=True)
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            return {"error": f"ENDED with {self.process.wait()}"}
        return json.loads(line)


def request_of(drawn, folder):
    request = {"folder": str(folder), "classifies": drawn["classifies"], "texts": folders.TEXTS}
    if drawn["pairs"]:
        request["texts"], request["seconds"] = (list(side) for side in zip(*folders.PAIRS))
    if drawn["prompt"]:
        request["prompt_name"] = drawn["prompt"]
    return request


def kind_of(sentence):
    """The sentence without what is drawn."""
    return re.sub(r"\d[\d.e+-]*", "N", re.sub(r"/\S+/", "", sentence))[:150]


def draw_lists(drawn, rng):
    """Of 1 to 600 ids, some of each size."""
    size = drawn["model"]["settings"]["vocab_size"]
    lengths = [1, LENGTHS, *(int(LENGTHS ** rng.random()) for _ in range(LISTS - 2))]
    return [[rng.randrange(size) for _ in range(length)] for length in lengths]


def answers_of_lists(drawn, answers, request, wanted, rng):
    """encore's rows of one batch of lists, the reference's, the lists, and encore's sentence where
    it refuses every batch that the reference takes. Models with tables of positions take shorter
    ones only."""
    lists, refused = draw_lists(drawn, rng), None
    positions = drawn["model"]["settings"].get("max_position_embeddings", LENGTHS)
    for most in (LENGTHS, positions, positions - 8):
        lists = [ids[:max(most, 1)] for ids in lists]
        rows = wanted.rows_of_ids(lists)
        if any(row is None for row in rows):
            continue
        found = answers.ask({"folder": request["folder"], "classifies": request["classifies"],
                             "ids": lists, "batch": True})
        if "error" not in found:
            return found["texts"], rows, lists, None
        refused = found["error"]
    return [], [], [], refused


def judge(drawn, folder, answers, precisions, losses, rng):
    """The verdict, and a sentence on it."""
    request = request_of(drawn, folder)
    found = answers.ask(request)
    try:
        wanted = reference.Reference(folder, request)
        rows = wanted.results()
    except Exception as error:  # whatever it is, there is nothing to compare with
        own = "; encore: " + found["error"] if "error" in found else ""
        return "neither", f"{type(error).__name__}: {error}"[:500] + own
    if "error" in found:
        return "refused", found["error"]
    both = [i for i, row in enumerate(rows) if row is not None]
    refused = [i for i in both if "error" in found["texts"][i]]
    if refused:
        return "refused", found["texts"][refused[0]]["error"]
    if not both:
        return "neither", "no text is taken"
    largest = max(np.abs(rows[i]).max() for i in both) or 1.0
    off = {i: distance(found["texts"][i]["row"], rows[i]) / largest for i in both}
    found_lists, rows_of_lists, lists, refused = answers_of_lists(drawn, answers, request, wanted,
                                                                  rng)
    if refused:
        return "refused", refused
    largest_of_lists = max((np.abs(row).max() for row in rows_of_lists), default=1.0) or 1.0
    lists_off = [distance(answer["row"], row) / largest_of_lists
                 for answer, row in zip(found_lists, rows_of_lists)]
    worst = max([*off.values(), *lists_off])
    as_it_is = max(distance(row, rows[i]) / largest
                   for i, row in enumerate(wanted.results(exact=False)) if i in off)
    if worst < 1e-3:
        losses.errors.append(worst)
        if precisions and not request["classifies"]:
            lose(answers, request, precisions, losses, [rows[i] for i in both], both)
    if worst <= BOUND and as_it_is <= AS_IT_IS:
        losses.varied.add(wanted.model[0].auto_model.config)
        return "equal", f"{worst:.1e} of the largest, {len(lists_off)} lists"
    if worst <= BOUND:
        return "DIFFERENT", f"transformers as it is differs by {as_it_is:.1e}"
    # An activation may hide the rounding of all scores but one.
    raw = wanted.results(raw=True), wanted.results(single=True, raw=True)
    rounding = [distance(found_row, row) for found_row, row in zip(*raw) if row is not None]
    single = wanted.results(single=True)
    rounding += [distance(single[i], rows[i]) for i in both]
    bound = max(BOUND, 4 * max(rounding) / largest)
    texts = {i: value for i, value in off.items() if not value <= bound}
    if not texts:
        of_lists = [distance(row, exact) / largest_of_lists for row, exact in
                    zip(wanted.rows_of_ids(lists, single=True), rows_of_lists)]
        torch_off = max([max(rounding) / largest, *of_lists])
        if worst <= max(BOUND, 4 * torch_off):
            return "rough", f"{worst:.1e} of the largest; torch in float32 is {torch_off:.1e} off"
    if not texts:
        return "DIFFERENT in lists of ids", f"{max(lists_off):.1e} of the largest"
    first = next(iter(texts))
    given, own = wanted.features(first), found["texts"][first]["ids"]
    ids = given.pop("input_ids")
    same = "the same ids" if own == ids else f"ids {own}, wanted {ids}"
    sentence = (f"{max(texts.values()):.1e} of the largest, bound {bound:.1e}, in texts "
                f"{list(texts)}; the first has {same} {given}")
    told = [decision for decision in found["describe"] if TOLD in decision[1]]
    in_tokens = not from_ids_differs(answers, request, wanted, list(texts), bound * largest)
    ids_of = [(found["texts"][i]["ids"], wanted.features(i)["input_ids"]) for i in texts]
    if any(explains(decision, in_tokens, ids_of) for decision in told):
        return "told", f"{told}; {sentence}"
    return "DIFFERENT in its tokens" if in_tokens else "DIFFERENT", sentence


def lose(answers, request, precisions, losses, rows, both):
    """Adds what the precisions lose of these texts' vectors."""
    for precision in precisions:
        found = answers.ask({**request, "precision": precision})
        if "error" not in found:
            losses.add_cosines(precision, [found["texts"][i] for i in both], rows)


def explains(decision, in_tokens, ids_of):
    """Whether what a decision tells can be why results differ; `ids_of` the texts that do, encore's
    and the reference's."""
    if TOLD_IDS in decision[1]:
        return in_tokens and all(own != ids for own, ids in ids_of)
    if TOLD_LENGTH in decision[1]:
        return all(len(own) < len(ids) for own, ids in ids_of)
    return True


def from_ids_differs(answers, request, wanted, texts, bound):
    """Whether the results of some of these texts differ with the reference's ids too. Of ids
    nobody knows a prompt, which pooling may leave out."""
    given = [wanted.features(i) for i in texts]
    rows = [wanted.row_of_features(features) for features in given]
    ids = [features["input_ids"] for features in given]
    types = [features.get("token_type_ids", [0] * len(own)) for features, own in zip(given, ids)]
    found = answers.ask({"folder": request["folder"], "classifies": request["classifies"],
                         "ids": ids, "type_ids": types})["texts"]
    return not all("row" in answer and row is not None and distance(answer["row"], row) <= bound
                   for answer, row in zip(found, rows))


def distance(found, wanted):
    found = np.asarray(found, np.float64)
    off = np.abs(found - wanted).max() if found.shape == wanted.shape else math.inf
    return math.inf if math.isnan(off) else off  # max() would pass over it


def summary_of(drawn):
    """What was drawn, in a line; the tokenizer by its keys alone."""
    files = {name: value for name, value in drawn["files"].items() if name != "tokenizer.json"}
    tokenizer = drawn["files"].get("tokenizer.json", {})
    model = {key: value for key, value in drawn["model"].items() if value}
    return json.dumps({**drawn, "model": model, "files": files, "dense": None, "tokenizer": {
        key: tokenizer.get(key) for key in ("truncation", "padding")}}, default=str)


class Search:
    """Folders, and what became of them."""

    def __init__(self, arguments):
        self.arguments, self.answers = arguments, Answers(arguments)
        self.precisions = [name for name in arguments.precision.split(",") if name]
        self.kinds, self.losses = collections.defaultdict(list), {}

    def of(self, family):
        return self.losses.setdefault(family, Losses(family))

    def verdicts(self):
        return sum((lost.verdicts for lost in self.losses.values()), collections.Counter())

    def look_at(self, number):
        rng = random.Random(f"{self.arguments.seed}/{number}")
        self.look(folders.draw(rng), rng, f"--seed {self.arguments.seed} --only {number}")

    def look(self, drawn, rng, where):
        """Tries a folder, prints what is to be looked at, and returns the verdict and why."""
        family, arguments = drawn["model"]["family"], self.arguments
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "folder"
            with contextlib.redirect_stdout(sys.stderr):
                try:
                    folders.write(drawn, folder)
                except Exception as error:  # transformers makes no such model
                    verdict, sentence = "neither", f"{NOT_MADE}{type(error).__name__}: {error}"
                else:
                    verdict, sentence = judge(drawn, folder, self.answers, self.precisions,
                                              self.of(family), rng)
            if arguments.keep:
                shutil.copytree(folder, arguments.keep, dirs_exist_ok=True)
        self.of(family).verdicts[verdict] += 1
        different = verdict.startswith("DIFFERENT")
        if different or verdict in ("told", "rough") or arguments.verbose:
            print(f"{verdict} {family} {where}: {sentence}", flush=True)
        if different or arguments.only is not None or arguments.key:
            print(f"  {summary_of(drawn)}", flush=True)
        if verdict in ("refused", "neither"):
            self.kinds[verdict, kind_of(sentence)].append(where)
        return verdict, sentence

    def vary(self, family, key):
        """Tries folders with another value of a key until one is equal or is refused for it."""
        varied, in_file = self.of(family).varied, False
        for i in range(TRIES):
            rng = random.Random(f"{self.arguments.seed}/{family}.{key}/{i}")
            drawn = folders.draw(rng, family, key)
            if in_file:  # transformers makes no model with it
                drawn["model"]["more"][key] = drawn["model"]["settings"].pop(key)
            where = f"--seed {self.arguments.seed} --count 0 --key {family}.{key}"
            verdict, sentence = self.look(drawn, rng, where)
            in_file = sentence.startswith(NOT_MADE)
            if verdict == "equal":
                varied.force(key)
            named = re.search(rf"(^|; encore: )\S*config\.json: (\w+: )?'?{key}'? is ", sentence)
            if named and verdict in ("refused", "neither"):
                varied.refuse(key)
            if key not in varied.missing():
                return

    def vary_missing(self, family):
        for key in self.of(family).varied.missing():
            if key in self.of(family).varied.missing():
                self.vary(family, key)
        print(self.of(family).varied.sentence(), flush=True)

    def tell(self):
        for (verdict, kind), where in sorted(self.kinds.items(),
                                             key=lambda item: (item[0][0], -len(item[1]))):
            print(f"{verdict} {len(where)} times, first {where[0]}: {kind}")
        print_table(self.losses, self.precisions)
        verdicts = self.verdicts()
        print(", ".join(f"{count} {verdict}" for verdict, count in sorted(verdicts.items())))
        return verdicts


def main():
    parser = argparse.ArgumentParser(description="encore's folders against sentence-transformers.")
    parser.add_argument("--count", type=int, default=500)
    parser.add_argument("--equal", type=int, default=0, help="more, until so many are equal")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", type=int, help="this folder alone")
    parser.add_argument("--families", help="draw of these alone: Llama,Qwen2")
    parser.add_argument("--keep", type=pathlib.Path, help="with --only: where the folder stays")
    parser.add_argument("--keys", action="store_true", help="folders with each own key varied")
    parser.add_argument("--key", help="folders with this key varied: Bert.is_decoder")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--program", type=pathlib.Path, help="a folder_answers that is built")
    parser.add_argument("--precision", default="", help="also what bf16,int8 lose")
    parser.add_argument("--verbose", action="store_true", help="a line for each folder")
    arguments = parser.parse_args()
    reference.quiet()
    warnings.simplefilter("ignore")
    if arguments.families:
        families.draw_only(arguments.families.split(","))
    search = Search(arguments)
    numbers = range(arguments.count) if arguments.only is None else [arguments.only]
    for number in numbers:
        search.look_at(number)
    number = len(numbers)
    if arguments.key:
        search.vary(*arguments.key.split("."))
    not_tried = []
    for family in families.FAMILIES if arguments.keys else ():
        search.vary_missing(family)
        not_tried += search.of(family).varied.missing()
    while search.verdicts()["equal"] < arguments.equal and number < 10 * arguments.equal:
        search.look_at(number)
        number += 1
    verdicts = search.tell()
    if verdicts["equal"] < arguments.equal:
        print(f"found {verdicts['equal']} equal folders of {number}, wanted {arguments.equal}")
        return 1
    return 1 if not_tried or any(name.startswith("DIFFERENT") for name in verdicts) else 0


if __name__ == "__main__":
    sys.exit(main())
