#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Random folders of nomic-bert with experts, beside tests/make/nomic_moe.py in float64: vectors of
random ids of 1 to 600 tokens in one ragged batch, which are the means of the last states.
sentence-transformers needs the folder's own code for them, which is not run here.

A folder is equal within 1e-6 of the largest number, rough where it is farther by no more than 4
times what torch in float32 is, and else different.

Holds the search. Needs torch, transformers and a build folder with folder_answers.

    nice .deps/venv/bin/python tests/compare/check_experts.py --count 100 --build build/release
"""
import argparse
import json
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))
import nomic_moe  # noqa: E402
from make_model_fixtures import randomise  # noqa: E402
from model_fixture_families import set_exact  # noqa: E402

BOUND = 1e-6  # of the largest number
TOKENIZER = ROOT / "tests/data/text/base/tokenizer.json"
KEYS = {"n_layer": [1, 2, 3, 4], "n_head": [1, 2, 4], "n_inner": [8, 20, 37],
        "num_experts": [1, 2, 5, 8, 16], "moe_top_k": [1, 2, 3],
        "moe_normalize_expert_weights": [False, True], "moe_every_n_layers": [2, 2, 2, 0],
        "qkv_proj_bias": [True, False], "mlp_fc1_bias": [True, False],
        "mlp_fc2_bias": [True, False], "type_vocab_size": [1, 2],
        "layer_norm_epsilon": [1e-5, 0.01], "rotary_emb_base": [10000, 300]}


def draw(rng):
    settings = {**nomic_moe.SETTINGS, **{key: rng.choice(values) for key, values in KEYS.items()}}
    settings["moe_top_k"] = min(settings["moe_top_k"], settings["num_experts"])
    size = len(json.loads(TOKENIZER.read_text())["model"]["vocab"]) + 8
    model = nomic_moe.NomicMoe({**settings, "vocab_size": size}).eval()
    dtype = rng.choice([torch.float32, torch.float16, torch.bfloat16])
    randomise(model, np.random.RandomState(rng.randrange(1 << 30)), dtype)
    ids = [[rng.randrange(size - 8) for _ in range(length)] for length in (1, 2, 9, 70, 200, 600)]
    types = [[0] * len(own) for own in ids]  # as the folder's tokenizer lists no type ids
    return model, dtype, ids, types


def vectors(model, ids, types):
    with torch.no_grad():
        states = (model(torch.tensor([own]), torch.tensor([kinds])).hidden_states[-1][0]
                  for own, kinds in zip(ids, types))
        return [s.double().mean(0).numpy() for s in states]


def main():
    parser = argparse.ArgumentParser(description="encore's experts against torch in float64.")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--program", type=pathlib.Path, help="a folder_answers that is built")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    program = subprocess.Popen([arguments.program or arguments.build / "bin/folder_answers"],
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    worst, rough, different = 0.0, 0, 0
    for number in range(arguments.count):
        model, dtype, ids, types = draw(random.Random(f"{arguments.seed}/{number}"))
        with tempfile.TemporaryDirectory() as folder:
            model.to(dtype).save_pretrained(pathlib.Path(folder))
            shutil.copy(TOKENIZER, folder)
            request = {"folder": folder, "classifies": False, "ids": ids, "batch": True}
            program.stdin.write(json.dumps(request) + "\n")
            program.stdin.flush()
            found = json.loads(program.stdout.readline())
        if "error" in found:
            print(f"--seed {arguments.seed}, folder {number}: {found['error']}")
            different += 1
            continue
        set_exact(model, True)
        wanted = vectors(model.double(), ids, types)
        rounding = max(np.abs(a - b).max()
                       for a, b in zip(vectors(model.float(), ids, types), wanted))
        set_exact(model, False)
        largest = max(np.abs(row).max() for row in wanted)
        off = max(np.abs(np.array(answer["row"]) - row).max() / largest
                  for answer, row in zip(found["texts"], wanted))
        worst = max(worst, off)
        if not off <= BOUND:  # where float32 has another expert than float64, it is no measure
            within = off <= 4 * rounding / largest < 1e-3
            rough, different = rough + within, different + (not within)
            print(f"{'rough' if within else 'DIFFERENT'} --seed {arguments.seed}, folder {number}: "
                  f"{off:.1e} of the largest, torch in float32 is {rounding / largest:.1e} off; "
                  f"{model.settings}")
    program.stdin.close()
    print(f"{arguments.count} folders, {rough} rough, {different} different, at most {worst:.1e} "
          "of the largest")
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
