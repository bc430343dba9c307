# SPDX-License-Identifier: Apache-2.0
"""The texts of a comparison from text to vector, and what the peers' engines have in common: HF's
tokenizer, batches of 32 sorted by length, mean pooling.

"""

import json
import pathlib

import numpy

# 15 tokens with [CLS] and [SEP].
QUERY = "How do I renew a passport that expired three years ago?"
BATCH = 32


def pieces(folder):
    """The vocabulary's words: of vocab.txt, or of tokenizer.json without the mark of a space."""
    path = pathlib.Path(folder, "vocab.txt")
    if path.is_file():
        return path.read_text(encoding="utf-8").split("\n")
    tree = json.loads(pathlib.Path(folder, "tokenizer.json").read_text(encoding="utf-8"))
    return [piece[1:] for piece in tree["model"]["vocab"] if piece.startswith("\u0120")]


def mixed_sentences(folder, count, seed=1):
    """Words of the model's vocabulary; lengths are log-normal: 5 to 100 words, 20 in the middle."""
    words = [w for w in pieces(folder) if w.isalpha() and w.isascii() and len(w) > 2][:8000]
    rng = numpy.random.default_rng(seed)
    return [" ".join(rng.choice(words, max(3, int(rng.lognormal(3.0, 0.7)))))
            for _ in range(count)]


def of_shape(folder, batch, tokens):
    """So many texts of so many tokens each, with those at its ends."""
    from tokenizers import Tokenizer  # pylint: disable=import-outside-toplevel
    tokenizer = Tokenizer.from_file(str(pathlib.Path(folder, "tokenizer.json")))
    tokenizer.no_truncation()
    rng = numpy.random.default_rng(1)
    whole = [w for w in pieces(folder) if w.isalpha() and w.isascii()
             and len(tokenizer.encode(f"a {w}", add_special_tokens=False)) == 2][:1000]
    found = ["a " + " ".join(rng.choice(whole, tokens - 3)) for _ in range(batch)]
    if any(len(tokenizer.encode(text)) != tokens for text in found):
        raise SystemExit(f"{folder}: its tokenizer does not give texts of {tokens} tokens")
    return found


def settings(folder):
    """config.json with max_seq_length added. Leaves where the folder wants another pooling."""
    def read(name):
        return json.loads(pathlib.Path(folder, name).read_text(encoding="utf-8"))

    modules = [module["type"].rsplit(".", 1)[1] for module in read("modules.json")]
    if modules != ["Transformer", "Pooling", "Normalize"] or \
            not read("1_Pooling/config.json").get("pooling_mode_mean_tokens"):
        raise SystemExit(f"{folder}: the peers here do mean pooling and then normalize; this model "
                         "wants something else")
    config = read("config.json")
    config["max_seq_length"] = read("sentence_bert_config.json")["max_seq_length"]
    return config


class TokenizedEngine:
    """From texts to vectors around hidden_states(ids, mask), which a subclass has."""

    def __init__(self, folder):
        from tokenizers import Tokenizer  # pylint: disable=import-outside-toplevel
        self.tokenizer = Tokenizer.from_file(str(pathlib.Path(folder, "tokenizer.json")))
        self.tokenizer.no_padding()
        self.tokenizer.enable_truncation(settings(folder)["max_seq_length"])

    def hidden_states(self, ids, mask):
        """[B, S, D] of ids and mask, both [B, S] int64."""
        raise NotImplementedError

    def encode(self, texts):
        """Unit vectors [texts, D] in the order of the texts."""
        lists = [encoding.ids for encoding in self.tokenizer.encode_batch_fast(texts)]
        order = sorted(range(len(lists)), key=lambda i: -len(lists[i]))
        vectors = None
        for begin in range(0, len(order), BATCH):
            rows = order[begin:begin + BATCH]
            longest = len(lists[rows[0]])
            ids = numpy.zeros((len(rows), longest), numpy.int64)
            mask = numpy.zeros((len(rows), longest), numpy.int64)
            for i, row in enumerate(rows):
                ids[i, :len(lists[row])] = lists[row]
                mask[i, :len(lists[row])] = 1
            part = mean(self.hidden_states(ids, mask), mask)
            if vectors is None:
                vectors = numpy.empty((len(texts), part.shape[1]), numpy.float32)
            vectors[rows] = part
        return vectors


def mean(hidden, mask):
    """The mean over each text's tokens, of length 1."""
    weights = mask.astype(numpy.float32)
    sums = numpy.einsum("bsd,bs->bd", hidden, weights) / weights.sum(axis=1, keepdims=True)
    return sums / numpy.linalg.norm(sums, axis=1, keepdims=True)
