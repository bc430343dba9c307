#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which heads transformers has of the families that encore opens, and which of them encore opens.

    tools/build.sh build/release --target folder_answers
    .deps/venv/bin/python tests/compare/head_gaps.py [--answers FILE] [MODEL_TYPE ...]

For each model_type of docs/families.md and each of transformers' auto mappings for classifiers of
sequences, of tokens and for masked words, makes a tiny random model of the class, asks encore for
the head's answer, and prints a row of a table: "yes", "none" where transformers has no such class,
or encore's sentence. Exit status 1 where encore opens none that transformers has, unless KNOWN
names it, or where docs/families.md says otherwise. Needs the packages of
tests/make/make_head_fixtures.py.
"""
import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))

import head_families  # noqa: E402
from made_files import SENTENCES, require  # noqa: E402

HEADS = {  # column of docs/families.md: the task of classes, what encore is asked
    "Sequences": ("SequenceClassification", {"classifies": True}),
    "Tokens": ("TokenClassification", {"head": "tokens", "aggregation": "none"}),
    "Masked": ("MaskedLM", {"head": "masked logits"}),
}
KNOWN = {("t5", "Sequences"): "the decoder's states", ("mt5", "Sequences"): "the decoder's states"}
TEXTS = ["The harbour lies between two hills."]


def page():
    """{model_type: {column: yes or no}} of docs/families.md."""
    rows = {}
    for line in (ROOT / "docs/families.md").read_text().splitlines():
        found = re.match(r'\| .* \| `"model_type": "([^"]+)"`(, `.*`)? \| (\w+) \| (\w+) \| (\w+) ',
                         line)
        if found and not found[2]:
            rows[found[1]] = dict(zip(HEADS, found.groups()[2:]))
    return rows


def classes(task):
    from transformers.models.auto import modeling_auto
    name = {"MaskedLM": "MASKED_LM", "TokenClassification": "TOKEN_CLASSIFICATION",
            "SequenceClassification": "SEQUENCE_CLASSIFICATION"}[task]
    return getattr(modeling_auto, f"MODEL_FOR_{name}_MAPPING_NAMES")


def make(model_type, name, folder):
    """A tiny model of the class `name`."""
    import numpy as np
    import transformers
    from make_model_fixtures import randomise
    kind = transformers.CONFIG_MAPPING[model_type]
    family = {**head_families.FAMILIES, **head_families.LABELLERS}
    known = next((keys for start, keys in family.items() if name.startswith(start + "For")), {})
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4,
             "intermediate_size": 37, "max_position_embeddings": 160, "pad_token_id": 0,
             "num_key_value_heads": 2, "head_dim": 8, **head_families.DISTILBERT,
             **head_families.T5}
    allowed = {key for key in sizes if hasattr(kind(), key) or key in known}
    settings = {**{key: sizes[key] for key in allowed}, **known,
                "vocab_size": head_families.vocabulary_size()}
    config = kind(**settings)
    model = getattr(transformers, name)(config).eval()
    import torch
    randomise(model, np.random.RandomState(1), torch.float32)
    model.save_pretrained(folder)
    head_families.write_tokenizer(folder, None)


def ask(answers, folder, request):
    line = json.dumps({"folder": str(folder), "texts": TEXTS, **request})
    found = subprocess.run([answers], input=line + "\n", capture_output=True, text=True, check=True)
    answer = json.loads(found.stdout)
    if "error" not in answer and "texts" in answer:
        answer = answer["texts"][0]
    return answer.get("error")


def cell(model_type, column, answers):
    """"yes", "none", or why not."""
    task, request = HEADS[column]
    name = classes(task).get(model_type)
    if name is None:
        return "none"
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary) / "model"
        make(model_type, name, folder)
        return ask(answers, folder, request) or "yes"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--answers", metavar="FILE",
                        default=ROOT / "build/release/bin/folder_answers")
    parser.add_argument("types", nargs="*", metavar="MODEL_TYPE")
    arguments = parser.parse_args()
    require(SENTENCES)
    import transformers
    transformers.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()
    said = page()
    wrong = []
    print("| model_type | " + " | ".join(HEADS) + " |\n|---|" + "---|" * len(HEADS))
    for model_type in arguments.types or said:
        cells = {column: cell(model_type, column, arguments.answers) for column in HEADS}
        print(f"| {model_type} | " + " | ".join(cells.values()) + " |", flush=True)
        for column, found in cells.items():
            known = KNOWN.get((model_type, column))
            if found not in ("yes", "none") and not (known and known in found):
                wrong.append(f"{model_type}, {column}: transformers has it, encore says: {found}")
            if (found == "yes") != (said[model_type][column] == "yes") and found != "none":
                wrong.append(f"{model_type}, {column}: docs/families.md says "
                             f"{said[model_type][column]}, found {found}")
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
