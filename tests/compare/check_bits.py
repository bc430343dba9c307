#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whether random folders keep the contract in each precision: lists of 1 to 600 ids have the same
bits in one ragged batch, in another order, and alone. Asks encore alone; torch makes the folders.

Needs what check_folders.py does.

    nice .deps/venv/bin/python tests/compare/check_bits.py --count 5 --families Bert,Llama

Exit status 1 if a number differs. A folder that encore refuses is counted, and so is one whose
model takes none of the lists.
"""
import argparse
import collections
import contextlib
import pathlib
import random
import sys
import tempfile
import warnings

from check_folders import ROOT, Answers, draw_lists
from folder_check import families, folders, reference

PRECISIONS = ("f32", "bf16", "int8", "int4")


def rows_of(answers, request, ids, batch):
    """Of lists at once or one by one, or None where one of them is refused."""
    asked = {**request, "ids": ids, "type_ids": [[0] * len(own) for own in ids]}
    found = answers.ask({**asked, "batch": True} if batch else asked)
    if "error" in found or any("error" in answer for answer in found["texts"]):
        return None
    return [answer["row"] for answer in found["texts"]]


def judge(drawn, folder, answers, rng):
    lists = draw_lists(drawn, rng)
    positions = drawn["model"]["settings"].get("max_position_embeddings", 600)
    order = rng.sample(range(len(lists)), len(lists))
    for most in (600, positions, positions - 8):
        ids = [own[:max(most, 1)] for own in lists]
        verdicts = set()
        for precision in PRECISIONS:
            request = {"folder": str(folder), "classifies": drawn["classifies"],
                       "precision": precision}
            alone = rows_of(answers, request, ids, False)
            batch = rows_of(answers, request, ids, True)
            other = rows_of(answers, request, [ids[i] for i in order], True)
            refused = [rows is None for rows in (alone, batch, other)]
            if all(refused):
                verdicts.add("refused")
            elif any(refused):
                verdicts.add(f"DIFFERENT in {precision}: refused alone or in a batch, not both")
            elif alone == batch and [batch[i] for i in order] == other:
                verdicts.add("equal")
            else:
                verdicts.add(f"DIFFERENT in {precision}")
        if verdicts != {"refused"}:
            return ", ".join(sorted(verdicts, reverse=True))
    return "refused"


def main():
    parser = argparse.ArgumentParser(description="The contract of bits on random folders.")
    parser.add_argument("--count", type=int, default=5, help="folders of each family")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--families", help="these alone: Llama,Qwen2")
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--program", type=pathlib.Path, help="a folder_answers that is built")
    arguments = parser.parse_args()
    reference.quiet()
    warnings.simplefilter("ignore")
    answers, total = Answers(arguments), collections.Counter()
    names = arguments.families.split(",") if arguments.families else list(families.FAMILIES)
    for family in names:
        verdicts = collections.Counter()
        for number in range(arguments.count):
            rng = random.Random(f"{arguments.seed}/{family}/{number}")
            drawn = folders.draw(rng, family)
            with tempfile.TemporaryDirectory() as temporary:
                folder = pathlib.Path(temporary) / "folder"
                with contextlib.redirect_stdout(sys.stderr):
                    try:
                        folders.write(drawn, folder)
                    except Exception:  # transformers makes no such model
                        verdicts["neither"] += 1
                        continue
                verdict = judge(drawn, folder, answers, rng)
            verdicts[verdict] += 1
            if "DIFFERENT" in verdict:
                print(f"{family} --seed {arguments.seed}, folder {number}: {verdict}")
        total += verdicts
        print(family, dict(verdicts), flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in sorted(total.items())))
    return 1 if not total["equal"] or any("DIFFERENT" in verdict for verdict in total) else 0


if __name__ == "__main__":
    sys.exit(main())
