#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random sequence classifiers beside transformers' pipeline "text-classification" in float64: every
family with such a head, with each problem_type, one label or several, and every function_to_apply.

    tools/build.sh build/release --target folder_answers
    .deps/venv/bin/python tests/compare/check_classes.py [--answers FILE] [--count 100] [FAMILY]

Exit status 1 where a label is another one, a score differs by more than 2e-6 of the largest logit
and by more than 4 times what torch in float32 does, or encore refuses what the pipeline takes, but
for a problem_type that is none.
"""
import argparse
import collections
import json
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE.parent / "make"))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from tokenizers import Tokenizer  # noqa: E402

from folder_check import families  # noqa: E402
from make_head_fixtures import TOKENIZER  # noqa: E402
from model_fixture_families import set_exact  # noqa: E402

BOUND = 2e-6
ABSENT = object()
PROBLEM_TYPES = [ABSENT, None, "regression", "single_label_classification",
                 "multi_label_classification"]
FUNCTIONS = {None: "as classifier", "sigmoid": "sigmoid", "softmax": "softmax", "none": "none"}
# Keys beside it that the pipeline does not read.
OTHERS = {"function_to_apply": ["sigmoid", "none"], "sbert_ce_default_activation_function": [
    "torch.nn.modules.linear.Identity"], "sentence_transformers": [
        {"activation_fn": "torch.nn.Tanh"}, {"version": "5.0"}], "finetuning_task": ["emotion"],
    "task_specific_params": [{"text-classification": {"problem_type": "regression"}}]}
NAMES = ["joy", "Ärger", "toxic", "NEUTRAL", "x y", "b", "a", "0", "LABEL_7"]
TEXTS = ["tea", "The harbour lies between two hills.", "a road", "Lisbon . Lisbon"]


def draw_labels(rng, labels):
    """Keys of config.json that give so many labels."""
    names = rng.sample(NAMES, labels)
    id2label = [(str(i), name) for i, name in enumerate(names)]
    kind = rng.randrange(5)
    if kind == 0 and labels == 2:
        return {}  # transformers' default
    if kind == 1:
        return {"num_labels": labels}
    if kind == 2:
        rng.shuffle(id2label)
    config = {"id2label": dict(id2label)}
    if rng.random() < 0.5:
        config["label2id"] = {name: int(i) for i, name in id2label}
    if rng.random() < 0.3:
        config["num_labels"] = labels
    return config


def draw(rng, family, folder):
    """Writes a folder, and returns what was drawn."""
    tokenizer = Tokenizer.from_file(str(TOKENIZER))
    model = families.draw_model(rng, family, tokenizer.get_vocab_size(),
                                tokenizer.token_to_id("[PAD]"), True)
    labels = rng.choice([1, 1, 2, 2, 3, 7])
    model.update(labels=labels, more={}, remove=[], dtype="float32")
    if family == "EuroBert":  # encore refuses "late", which is the default, and reads the
        model["settings"].setdefault("classifier_pooling", "bos")  # old clf_pooling, as it says
        model["old"] = False
    if family == "DebertaV2":  # and a convolution with tanh
        model["settings"]["conv_act"] = "gelu"
    families.write_model(model, folder)
    config = json.loads((folder / "config.json").read_text())
    for key in ("id2label", "label2id", "num_labels", "problem_type"):
        config.pop(key, None)
    drawn = draw_labels(rng, labels)
    types = [name for name in PROBLEM_TYPES
             if labels > 1 or name != "single_label_classification"]
    problem_type = rng.choice(types)
    if rng.random() < 0.05:
        problem_type = "several"
    if problem_type is not ABSENT:
        drawn["problem_type"] = problem_type
    for key in rng.sample(list(OTHERS), rng.choice([0, 0, 1, 2])):
        drawn[key] = rng.choice(OTHERS[key])
    (folder / "config.json").write_text(json.dumps({**config, **drawn}))
    shutil.copy(TOKENIZER, folder / "tokenizer.json")
    (folder / "tokenizer_config.json").write_text(json.dumps({
        "tokenizer_class": "PreTrainedTokenizerFast", "model_max_length": 64,
        "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]", "pad_token": "[PAD]"}))
    return drawn


class Pipeline:
    """transformers' pipeline on a folder."""

    def __init__(self, folder, dtype):
        model = transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager").to(dtype)
        self.model, self.labels, self.dtype = model, model.config.id2label, dtype
        self.pipeline = transformers.pipeline(
            "text-classification", model=model, device="cpu",
            tokenizer=transformers.PreTrainedTokenizerFast.from_pretrained(folder))

    def rows(self, inputs, function):
        set_exact(self.model, self.dtype == torch.float64)
        rows = []
        for one in inputs:
            found = {x["label"]: x["score"] for x in self.pipeline(
                one, top_k=None, function_to_apply=function)}
            rows.append([found[self.labels[i]] for i in range(len(self.labels))])
        return np.array(rows)


def ask(answers, request):
    done = subprocess.run([answers], input=json.dumps(request) + "\n", capture_output=True,
                          text=True, check=True)
    return json.loads(done.stdout)


def check(answers, folder, rng, family):
    drawn = draw(rng, family, folder)
    exact = Pipeline(folder, torch.float64)
    pairs = rng.random() < 0.4
    seconds = TEXTS[::-1]
    inputs = [{"text": a, "text_pair": b} for a, b in zip(TEXTS, seconds)] if pairs else TEXTS
    logits = exact.rows(inputs, "none")
    worst, rounding = 0.0, None
    for function, name in FUNCTIONS.items():
        request = {"folder": str(folder), "texts": TEXTS, "classifies": True, "activation": name}
        if pairs:
            request["seconds"] = seconds
        answer = ask(answers, request)
        refused = [text["error"] for text in answer.get("texts", [answer]) if "error" in text]
        if refused:
            own = function is None and drawn.get("problem_type") == "several"
            assert own and "problem_type is 'several'" in refused[0], f"{refused[0]} {drawn}"
            continue
        assert drawn.get("problem_type") != "several" or function, f"took it: {drawn}"
        labels = [exact.labels[i] for i in range(len(exact.labels))]
        assert answer["labels"] == labels, f"labels {answer['labels']}, wanted {labels}"
        found = np.array([text["row"] for text in answer["texts"]])
        off = np.abs(found - exact.rows(inputs, function)).max() / max(1.0, np.abs(logits).max())
        if off > BOUND and rounding is None:
            single = Pipeline(folder, torch.float32).rows(inputs, "none")
            rounding = np.abs(single - logits).max() / np.abs(logits).max()
        assert off <= max(BOUND, 4 * (rounding or 0)), f"{name}: differs by {off:.1e} ({drawn})"
        worst = max(worst, off)
    return worst, drawn


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--answers", metavar="FILE",
                        default=ROOT / "build/release/bin/folder_answers")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--verbose", action="store_true", help="print each folder")
    parser.add_argument("families", nargs="*", metavar="FAMILY", help=", ".join(families.HEADS))
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    transformers.logging.set_verbosity(transformers.logging.CRITICAL)
    transformers.utils.logging.disable_progress_bar()
    chosen = arguments.families or families.HEADS
    wrong, largest, tried = 0, 0.0, collections.Counter()
    for i in range(arguments.count):
        family, rng = chosen[i % len(chosen)], random.Random(f"{arguments.seed}/{i}")
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / "model"
            try:
                worst, drawn = check(arguments.answers, folder, rng, family)
            except (AssertionError, KeyError, ValueError, RuntimeError) as error:
                wrong += 1
                print(f"{family} {i}: {type(error).__name__}: {error}", flush=True)
                continue
        largest = max(largest, worst)
        tried[str(drawn.get("problem_type"))] += 1
        if arguments.verbose:
            print(f"  {family} {i}: {drawn}: {worst:.1e}", flush=True)
    print(f"{arguments.count} folders, {wrong} wrong, largest difference {largest:.1e}; "
          f"{dict(tried)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
