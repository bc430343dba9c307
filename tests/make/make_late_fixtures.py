#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/late: tiny folders of late interaction, and what sentence-transformers computes
from texts with them in float64. Needs torch 2.15.0, transformers 5.23.0 and sentence-transformers
6.2.0.

    tests/make/make_late_fixtures.py [NAME ...]     writes the folders and their expected.json
    tests/make/make_late_fixtures.py --check        makes them again and compares
"""
import argparse
import json
import os
import pathlib
import shutil
import string
import sys
import tempfile

os.environ["HF_HUB_OFFLINE"] = "1"

import numpy as np  # noqa: E402
import torch  # noqa: E402

from made_files import SENTENCES, require  # noqa: E402
import late_folders  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "late"
CASES = {
    # Expansion that nobody sees, a marker as prompt, a skip list.
    "own": {"spelling": "own", "family": "bert", "dense": [{"in": 32, "out": 8}],
            "transformer": {"document_length": 30,
                            "query_expansion": {"strategy": "fixed", "length": 12}},
            "mask": {"skiplist_words": list(string.punctuation)}, "normalize": True,
            "prompts": {"query": "[MASK] ", "document": "tea "}},
    # Windows, an expansion that is seen and lets longer queries be, two layers with residuals.
    "windows": {"spelling": "own", "family": "modernbert",
                "dense": [{"in": 32, "out": 12, "residual": True, "bias": True,
                           "activation": torch.nn.Tanh}, {"in": 12, "out": 12, "residual": True}],
                "transformer": {"query_length": 14, "query_expansion": {
                    "strategy": "min", "length": 9, "attend": True, "token": "[SEP]"}},
                "mask": {"skiplist_words": [".", ",", "none such"],
                         "skiplist_tasks": ["query", "document"]}, "normalize": False,
                "prompts": {"passage": "bread: "}, "similarity": "meanmaxsim"},
    "pylate": {"spelling": "pylate", "family": "modernbert", "marked": True,
               "dense": [{"in": 32, "out": 8}],
               "keys": {"query_prefix": "[Q] ", "document_prefix": "[D] ", "query_length": 13,
                        "document_length": 24, "attend_to_expansion_tokens": False,
                        "skiplist_words": [".", "!"]}},
    "stanford": {"spelling": "stanford", "family": "bert", "dense": [{"in": 32, "out": 8}],
                 "keys": {"query_maxlen": 11, "doc_maxlen": 22, "attend_to_mask_tokens": True,
                          "query_token_id": "[unused0]", "doc_token_id": "[unused1]",
                          "mask_punctuation": True, "nbits": 2}},
}


def rounded(found):
    """Rows as short as their comparison to 1e-6 allows."""
    return {task: [{**one, "rows": [[float(f"{x:.9g}") for x in row] for row in one["rows"]]}
                   for one in ones] for task, ones in found.items()}


def agrees(name, found):
    stored = json.loads((DATA / name / "expected.json").read_text())
    worst = 0.0
    for task, ones in found.items():
        for now, then in zip(ones, stored[task], strict=True):
            assert now["ids"] == then["ids"] and now["places"] == then["places"], (name, now)
            if len(now["rows"]):
                worst = max(worst, np.abs(now["rows"] - np.array(then["rows"])).max())
    print(f"{name:10} differs from what is stored by {worst:.1e}")
    return worst < 1e-8


def main():
    parser = argparse.ArgumentParser(description="Makes tests/data/late.")
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    arguments = parser.parse_args()
    require(SENTENCES)
    right = True
    for seed, name in enumerate(CASES):
        if arguments.names and name not in arguments.names:
            continue
        with tempfile.TemporaryDirectory() as temporary:
            folder = pathlib.Path(temporary) / name
            late_folders.write(CASES[name], folder, seed)
            found, scores = late_folders.compute(folder)
            if arguments.check:
                right &= agrees(name, found)
                continue
            target = DATA / name
            shutil.rmtree(target, ignore_errors=True)
            shutil.copytree(folder, target)
        text = json.dumps({**rounded(found), "scores": scores})
        (target / "expected.json").write_text(text.replace("}, {", "},\n{") + "\n")
        for file in target.rglob("*.*"):
            file.chmod(0o644)
    return 0 if right else 1


if __name__ == "__main__":
    sys.exit(main())
