#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that encore gives folders' texts the ids and type ids of transformers 5.23's AutoTokenizer.

    tests/compare/check_tokenizer_classes.py --folders 500 --seed 1

Draws folders (tokenizer_check/class_folders.py), opens each with AutoTokenizer and with
`encore tokenize --type-ids`, and compares texts and pairs, whole and cut. A folder that differs is
counted as told where Describe() says so (the target folder_answers). Prints how many folders
and texts there were, each difference, and the folders that encore refuses although transformers
opens them; exit 1 if there is a difference, 77 if transformers 5.23 is not installed. Folders that
transformers does not open are counted and left out.
"""

import argparse
import collections
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

os.environ.update(
    HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", TRANSFORMERS_VERBOSITY="error"
)
ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))
import made_files  # noqa: E402

SKIPPED = 77
CUT = 12
TOLD = "may have other ids"


def tells_other_ids(answers, path):
    """Whether Describe() says that ids may be others."""
    request = json.dumps({"tokenizer": str(path)}) + "\n"
    done = subprocess.run([answers], input=request, capture_output=True, text=True, check=True)
    return any(TOLD in value for _, value, _ in json.loads(done.stdout)["describe"])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folders", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--texts", type=int, default=25, help="texts of a folder; a third as many pairs"
    )
    parser.add_argument("--encore", default=str(ROOT / "build/release/bin/encore"))
    parser.add_argument(
        "--answers",
        default=str(ROOT / "build/release/bin/folder_answers"),
        help="asked what encore tells of a folder that differs",
    )
    parser.add_argument("--keep", type=pathlib.Path, help="leave folders that differ here")
    arguments = parser.parse_args()
    wrong = made_files.other_versions({"transformers": "5.23"})
    if wrong:
        print(f"left out: {wrong[0]}")
        return SKIPPED
    from make_class_fixtures import answer
    from tokenizer_check import class_folders
    from tokenizer_check.compare import Settings, encore_says
    from transformers import AutoTokenizer

    counts, refusals, differences = collections.Counter(), collections.Counter(), 0
    with tempfile.TemporaryDirectory(prefix="encore-classes-") as temporary:
        for number in range(arguments.folders):
            draw = random.Random(f"{arguments.seed}/{number}")
            kind, files, tokenizer_json = class_folders.draw_folder(draw)
            path = pathlib.Path(temporary) / str(number)
            class_folders.write_folder(path, files)
            texts = class_folders.draw_texts(draw, tokenizer_json, arguments.texts)
            texts += list(zip(texts[::3], texts[1::3]))
            try:
                tokenizer = AutoTokenizer.from_pretrained(path)
                wants = {
                    length: [answer(tokenizer, text, length) for text in texts]
                    for length in (0, CUT)
                }
            except BaseException as error:  # a panic in Rust is no Exception
                if isinstance(error, KeyboardInterrupt):
                    raise
                counts["folders that transformers does not open"] += 1
                continue
            counts["folders"] += 1
            wrong = []
            for length, want in wants.items():
                got = encore_says([arguments.encore], path, texts, Settings(length), "--type-ids")
                if isinstance(got, str):
                    refusals[got.replace(str(path), "FOLDER")] += 1
                    counts["folders that encore refuses"] += 1
                    break
                counts["texts"] += len(texts)
                wrong += [
                    (length, t, g, w) for t, g, w in zip(texts, got, want) if tuple(g) != tuple(w)
                ]
            if wrong and tells_other_ids(arguments.answers, path):
                counts["folders that differ and tell it"] += 1
            elif wrong:
                differences += 1
                length, text, got, want = min(wrong, key=lambda w: len(str(w[1])))
                print(
                    f"folder {number} ({kind}, {type(tokenizer).__name__}): {len(wrong)} texts "
                    f"differ; at most {length} tokens: {ascii(text)}\n"
                    f"  encore    {got}\n  reference {want}"
                )
                small = {
                    n: c
                    for n, c in files.items()
                    if "config" in n or "special" in n or n == "added_tokens.json"
                }
                print("  " + json.dumps(small)[:1500])
                if arguments.keep:
                    class_folders.write_folder(arguments.keep / str(number), files)
    for sentence, count in refusals.most_common(20):
        print(f"refused {count} times: {sentence[:300]}")
    print(
        ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
        + f"; {differences} folders differ"
    )
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
