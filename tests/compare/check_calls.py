#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random calls of pyencore's functions beside sentence-transformers', transformers', tokenizers'
and torch's: arguments by position and by name, inputs of all kinds, wrong values, attributes that
are set between calls, folders with random settings.

    tools/test_python.sh -k none           makes build/python-venv, with pyencore and the references
    nice build/python-venv/bin/python tests/compare/check_calls.py --calls 300
    ... --classes TextEncoder,CrossEncoder --calls 50 --seed 7
    ... --classes TextEncoder --seed 7 --only 12 --verbose      the calls of one folder again

Each call ends as
  equal      within 2e-6 of the result's largest magnitude (both are in float32), or of 1; the same
             shapes, types and keys. Quantized values may be off by one in a quarter of the places.
             A tensor may be an array, where encore documents arrays
  rough      farther, but by no more than 4 times what the reference is off from itself in float64
  refused    by encore, with a sentence of its own; REFUSED below lists what the pages document
  both       neither takes it
  alone      only encore takes it; ALONE lists what that may be
  DIFFERENT  other results
  RAW        an error of Python's, numpy's or nanobind's, or one without a sentence
Exit status 1 with any of the last two, with a call that is refused or taken alone for no reason of
these tables, or where a method had fewer than --calls.
"""
import argparse
import collections
import contextlib
import logging
import os
import pathlib
import random
import re
import sys
import tempfile
import warnings

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))

from call_check import functions, pipelines, subjects  # noqa: E402
from call_check.outcomes import BOUND, difference, distance, outcome_of, why_raw  # noqa: E402
from folder_check import reference  # noqa: E402

CLASSES = {one.__name__: one for one in (
    *subjects.SUBJECTS, *pipelines.SUBJECTS, *functions.SUBJECTS)}

# What encore refuses though the reference takes it: words of its sentence, why.
REFUSED = {
    r" is of type |has .* of type|is \S.*; wanted|wanted (str|an integer|a pair|texts)":
        "values of other types and ranges than the pages have are refused",
    r"[Pp]rompt name .* not found": "a name that is not there, also where no text is prompted",
    r"pool is|unexpected keyword|positional argument":
        "several processes, pooling of tokens, features of several modalities: not there",
    "renders pairs by a chat template": "a prompt of a chat template is a message",
    r"only support|is not supported": "as sentence-transformers for other values",
    "as many": "pairs are not repeated",
    "found no task": "a Router without a default route wants a task",
    "has shape _": "no broadcasting",
    "encore counts added tokens": "all tokens are counted",
}
# What encore takes though the reference does not: words of the reference's sentence, why.
ALONE = {
    "Expected a floating point|only supports floating-point dtypes|to have the same dtype|"
    "expected scalar type":
        "embeddings of integers and of several types are compared in float32",
    "list index out of range|At least one input is required":
        "no texts give no results",
    "^AttributeError: _ object has no attribute _": "tuples of matrices are as lists of them",
    "^TypeError: _ not supported between instances of": "batch_size may be None",
    "cdist only supports at least": "numbers are vectors of one",
    "object is not an instance of|is not an instance of": "what is true or false by Python's rules",
    "mm: mat_ and mat_ shapes|the same number of columns|Dimension out of range":
        "no embeddings have no columns",
    "^ValueError: expected sequence of length": "tuples of matrices are as lists of them",
}
REASONS = {"refused": REFUSED, "alone": ALONE}


def kind_of(sentence):
    """The sentence without what is drawn."""
    sentence = re.sub(r"/\S+/", "", re.sub(r"; (found|the reference:|encore:) .*", "", sentence))
    return re.sub(r"'[^']*'|\"[^\"]*\"|-?\d[\d.e+-]*|\[[^\]]*\]|\{.*\}", "_", sentence)[:140]


class Search:
    def __init__(self, arguments):
        self.arguments = arguments
        self.counts = collections.defaultdict(collections.Counter)
        self.kinds = collections.defaultdict(list)

    def note(self, verdict, name, where, sentence):
        self.counts[name][verdict] += 1
        self.kinds[verdict, name, kind_of(sentence.split("\n")[0])].append((where, sentence))

    def opened(self, subject, folder, where):
        """Whether both opened the folder with the arguments that were drawn."""
        kind = type(subject).__name__
        found = outcome_of(lambda: subject.open_ours(folder))
        wanted = outcome_of(lambda: subject.open_theirs(folder))
        what = f"{subject.what} {subject.given}"
        if found.error is not None and why_raw(found.error):
            self.note("RAW", kind, where, f"{found.told()} ({why_raw(found.error)}) {what}")
        elif found.error is not None:
            both = wanted.error is not None
            self.note("both" if both else "refused", kind, where, f"{found.told()} {what}")
        elif wanted.error is not None:
            self.note("alone", kind, where, f"{wanted.told()} {what}")
        else:
            self.note("equal", kind, where, "")
            return True
        return False

    def of_folder(self, kind, number):
        rng = random.Random(f"{self.arguments.seed}/{kind.__name__}/{number}")
        where = f"--classes {kind.__name__} --seed {self.arguments.seed} --only {number}"
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "folder"
            subject = kind()
            with contextlib.redirect_stdout(sys.stderr):
                try:
                    subject.prepare(rng, folder)
                except ValueError:  # the reference makes no such folder
                    return
            if not self.opened(subject, folder, where):
                return
            names = subject.names()
            history = {}
            for _ in range(self.arguments.on_a_folder * len(names)):
                few = [n for n in names
                       if sum(self.counts[f"{kind.__name__}.{n}"].values()) < self.arguments.calls]
                self.call(subject, subject.draw(rng, rng.choice(few or names)), where, history)

    def call(self, subject, call, where, history):
        name = f"{type(subject).__name__}.{call.method}"
        before = state_of(subject, call)
        found = outcome_of(lambda: subject.side(call, True))
        wanted = outcome_of(lambda: subject.side(call, False))
        verdict, sentence = judge(subject, call, found, wanted)
        self.note(verdict, name, where, sentence and
                  f"{sentence}\n      {call!r} with {history} of {subject.what} {subject.given}")
        if self.arguments.verbose:
            print(f"{verdict} {call!r}: {sentence}", flush=True)
        if call.method.startswith("set "):
            if verdict == "equal":
                history[call.method[4:]] = call.args[0]
            else:
                restore(subject, call, before)

    def tell(self):
        refused = collections.Counter()
        shown = {"DIFFERENT": 3, "RAW": 2, "alone": 1, "refused": 1}
        for (verdict, name, kind), found in sorted(self.kinds.items()):
            if verdict not in shown or verdict == "alone" and reason_of(ALONE, kind):
                continue
            if verdict == "refused" and (reason := reason_of(REFUSED, kind)):
                refused[reason] += len(found)
                continue
            print(f"{verdict} {name} {len(found)} times: {kind}")
            for where, sentence in found[:shown[verdict]]:
                print(f"    {where}: " + "\n".join(
                    line[:self.arguments.width] for line in sentence.splitlines()))
        for reason, count in refused.most_common():
            print(f"refused {count} times: {reason}")
        total, short = collections.Counter(), []
        classes = collections.defaultdict(collections.Counter)
        for name, counts in sorted(self.counts.items()):
            total += counts
            print(f"{name}: {told(counts)}")
            if "." in name:
                classes[name.split(".")[0]] += counts
            if "." in name and counts.total() < self.arguments.calls:
                short.append(name)
        for name, counts in classes.items():
            of = sum(other.startswith(name + ".") for other in self.counts)
            print(f"{name}: {of} methods and attributes, {counts.total()} calls: {told(counts)}")
        print(f"{total.total()} calls: {told(total)}")
        strange = [kind for verdict, _, kind in self.kinds if verdict in REASONS
                   and not reason_of(REASONS[verdict], kind)]
        return bool(total["DIFFERENT"] or total["RAW"] or short or strange)


def told(counts):
    return ", ".join(f"{count} {verdict}" for verdict, count in sorted(counts.items()))


def reason_of(table, kind):
    return next((why for words, why in table.items() if re.search(words, kind)), None)


def judge(subject, call, found, wanted):
    """The verdict and why."""
    if found.error is not None:
        raw = why_raw(found.error)
        if raw:
            return "RAW", f"{found.told()} ({raw}); the reference: {wanted.told()}"
        if wanted.error is not None:
            return "both", ""
        return "refused", f"{found.told()}; the reference: {wanted.told()}"
    if wanted.error is not None:
        return "alone", f"{wanted.told()}; encore: {found.told()}"
    try:
        other = difference(subject.found(call, found.value), subject.wanted(call, wanted.value))
    except Exception as error:  # of the comparison
        other = f"{type(error).__name__}: {error}"
    if other and " is off by " in other:
        rough = roughness(subject, call, found, wanted)
        if rough:
            return rough, other
    if other:
        return "DIFFERENT", f"{other}; found {found.told()}, wanted {wanted.told()}"
    return "equal", ""


def roughness(subject, call, found, wanted):
    """Whether the reference in float64 says that the one in float32 is far off, or the model makes
    much of each rounding."""
    exact = outcome_of(lambda: subject.exact(call))
    if exact.error is not None:
        return None
    exact = subject.wanted(call, exact.value)
    own = distance(subject.found(call, found.value), exact)
    theirs = distance(subject.wanted(call, wanted.value), exact)
    return "equal" if own <= BOUND else "rough" if own <= 4 * theirs else None


def state_of(subject, call):
    """An attribute of both before it is set."""
    if not call.method.startswith("set "):
        return None
    name = call.method[4:]
    return [outcome_of(lambda model=model: getattr(model, name)).value
            for model in (subject.ours, subject.theirs)]


def restore(subject, call, before):
    for model, value in zip((subject.ours, subject.theirs), before, strict=True):
        with contextlib.suppress(Exception):
            setattr(model, call.method[4:], value)


def main():
    parser = argparse.ArgumentParser(description="Random calls beside the references.")
    parser.add_argument("--calls", type=int, default=30, help="of each method, at least")
    parser.add_argument("--on-a-folder", type=int, default=3, help="calls of each method")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--classes", default=",".join(CLASSES), help="TextEncoder,Tokenizer")
    parser.add_argument("--only", type=int, help="this folder alone")
    parser.add_argument("--width", type=int, default=400, help="of a printed line")
    parser.add_argument("--verbose", action="store_true", help="a line for each call")
    arguments = parser.parse_args()
    reference.quiet()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    search = Search(arguments)
    for name in arguments.classes.split(","):
        kind, number = CLASSES[name], 0
        while number < 10 + 3 * arguments.calls // arguments.on_a_folder:
            if arguments.only is None or number == arguments.only:
                search.of_folder(kind, number)
            number += 1
            done = [sum(search.counts[f"{name}.{method}"].values()) for method in kind().names()]
            if min(done) >= arguments.calls and arguments.only is None:
                break
    return 1 if search.tell() else 0


if __name__ == "__main__":
    sys.exit(main())
