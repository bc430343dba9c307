#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a folder of ModernBERT-base's sizes with random weights, for comparisons: 22 layers
of 768, windows of 128 but in every third layer, texts up to 8,192 tokens; mean pooling.

    .deps/venv/bin/python tests/make/make_modernbert.py build/modernbert
    .deps/venv/bin/python bench/peers/compare.py texts --model build/modernbert --markdown \\
        --variants "encore f32" "torch f32" "openvino f32" --shape 1x128 8x128 1x8192

Weights are 600 MB. The tokenizer has the parts of ModernBERT's and a small vocabulary, trained on
this repository's pages. Needs what `tools/python_env.sh peers` installs.
"""

import json
import pathlib
import sys

import shapes
import torch
from transformers import ModernBertConfig, ModernBertModel

ROOT = pathlib.Path(__file__).resolve().parents[2]

MODULES = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}


def pages():
    """The lines of README files."""
    return [line for path in sorted(ROOT.glob("**/README.md")) if ".deps" not in path.parts
            for line in path.read_text(encoding="utf-8").splitlines()]


def main():
    if len(sys.argv) != 2:
        raise SystemExit("make_modernbert: wanted one argument, the folder to write")
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer = shapes.modernbert(pages, 8000)
    tokenizer.save(str(folder / "tokenizer.json"))
    torch.manual_seed(1)
    # Everything else is ModernBERT-base's by default.
    ids = {f"{name}_token_id": tokenizer.token_to_id(token) for name, token in (
        ("bos", "[CLS]"), ("cls", "[CLS]"), ("eos", "[SEP]"), ("sep", "[SEP]"), ("pad", "[PAD]"))}
    ModernBertModel(ModernBertConfig(**ids)).eval().save_pretrained(folder)

    def write(name, tree):
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")

    write("modules.json", [{"idx": i, "name": str(i), "path": path,
                            "type": f"sentence_transformers.models.{kind}"}
                           for i, (path, kind) in enumerate(MODULES.items())])
    write("1_Pooling/config.json", {"word_embedding_dimension": 768,
                                    "pooling_mode_mean_tokens": True})
    write("sentence_bert_config.json", {"max_seq_length": 8192, "do_lower_case": False})
    write("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast",
                                    "model_max_length": 8192, "cls_token": "[CLS]",
                                    "sep_token": "[SEP]", "pad_token": "[PAD]",
                                    "unk_token": "[UNK]", "mask_token": "[MASK]"})


if __name__ == "__main__":
    main()
