#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes a SPLADE folder of BERT base's sizes with random weights, for comparisons: 12 layers of
768, 30,522 tokens in the vocabulary; the maximum of log1p(relu(logits)).

    .deps/venv/bin/python tests/make/make_splade.py build/splade
    .deps/venv/bin/python bench/peers/compare.py texts --model build/splade --markdown \\
        --variants "encore f32" "torch f32" "onnx f32" "openvino f32" --shape 64x128

Weights are 440 MB. The tokenizer is BERT's with a small vocabulary, of this repository's pages.
The bias of the logits leaves some hundred values of a text above 0, as trained models have. Needs
what `tools/python_env.sh peers` installs.
"""

import pathlib
import sys
import tempfile

import torch
from make_modernbert import pages
from sentence_transformers import SparseEncoder
from tokenizers import BertWordPieceTokenizer
from transformers import BertConfig, BertForMaskedLM, BertTokenizerFast

ACTIVE = 300  # values above 0 that the bias leaves of a text


def main():
    if len(sys.argv) != 2:
        raise SystemExit("make_splade: wanted one argument, the folder to write")
    lines = pages()
    trained = BertWordPieceTokenizer()
    trained.train_from_iterator(lines, vocab_size=8000, show_progress=False)
    tokenizer = BertTokenizerFast(tokenizer_object=trained._tokenizer, model_max_length=512)
    torch.manual_seed(1)
    model = BertForMaskedLM(BertConfig()).eval()  # base's by default
    with torch.inference_mode():
        for matrix in model.parameters():
            if matrix.dim() == 1:  # norms and biases, which are made of ones and zeros
                matrix.add_(0.05 * torch.randn_like(matrix))
        long = tokenizer(" ".join(lines), truncation=True, max_length=128, return_tensors="pt")
        logits = model(**long).logits[0].amax(0)
        model.cls.predictions.bias.sub_(logits.sort(descending=True).values[ACTIVE])
    with tempfile.TemporaryDirectory() as plain:
        model.save_pretrained(plain)
        tokenizer.save_pretrained(plain)
        SparseEncoder(plain, device="cpu").save_pretrained(sys.argv[1], create_model_card=False)


if __name__ == "__main__":
    main()
