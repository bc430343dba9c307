# SPDX-License-Identifier: Apache-2.0
"""Texts and folders of models for replayed `encode`: words of a real vocabulary, weights drawn at
random, as seconds do not depend on them."""

import json
import os
import shutil

import numpy as np
from pyencore._safetensors import to_bytes
from pyencore.lab import measure
from pyencore.lab.reports import LabError


def drawn(folder, count):
    """Texts of 3 to 100 words, as those of `encore bench --model`: lengths log-normal around 20,
    words as frequent as 1 / their place in vocab.txt."""
    path = os.path.join(folder, "vocab.txt")
    try:
        with open(path, encoding="utf-8") as file:
            words = [line.strip() for line in file]
    except (OSError, UnicodeDecodeError) as error:
        raise LabError(f"{path}: cannot be read: {error}; wanted the vocabulary of a BERT "
                       "folder") from None
    words = [word for word in words if word.isascii() and word.isalpha() and len(word) > 1]
    if not words:
        raise LabError(f"{path}: found no words")
    random = np.random.default_rng(2026)
    texts = []
    for normal in random.standard_normal(count):
        size = int(np.clip(np.exp(3.0 + 0.7 * normal), 3, 100))
        places = np.exp(random.random(size) * np.log(len(words) + 1)) - 1
        texts.append(" ".join(words[int(place)] for place in places))
    return texts


def write_texts(path, texts):
    with open(path, "w", encoding="utf-8") as file:
        file.writelines(text + "\n" for text in texts)


def token_counts(encore, folder, texts_path):
    lines = measure.run([encore, "tokenize", "--model", folder, "--input", texts_path])
    return tuple(line.count(",") + 1 for line in lines.splitlines())


def write_folder(source, path, d_model, heads, d_ff, layers):
    """A BERT of these sizes with the tokenizer and the pooling of `source`."""
    os.makedirs(path)
    config = _changed(source, path, "config.json", {
        "hidden_size": d_model, "num_attention_heads": heads, "intermediate_size": d_ff,
        "num_hidden_layers": layers})
    if config.get("model_type") != "bert":
        raise LabError(f"{source}: found model_type {config.get('model_type')!r}, wanted bert")
    os.makedirs(os.path.join(path, "1_Pooling"))
    _changed(source, path, os.path.join("1_Pooling", "config.json"),
             {"word_embedding_dimension": d_model})
    for name in os.listdir(source):
        is_other = name != "config.json" and ".safetensors" not in name
        if is_other and name.endswith((".json", ".txt")):
            shutil.copyfile(os.path.join(source, name), os.path.join(path, name))
    with open(os.path.join(path, "model.safetensors"), "wb") as file:
        file.write(to_bytes(_weights(config, d_model, d_ff, layers)))


def _changed(source, path, name, changes):
    try:
        with open(os.path.join(source, name), encoding="utf-8") as file:
            config = json.load(file)
    except (OSError, ValueError) as error:
        raise LabError(f"{os.path.join(source, name)}: cannot be read: {error}") from None
    config.update(changes)
    with open(os.path.join(path, name), "w", encoding="utf-8") as file:
        json.dump(config, file)
    return config


def _weights(config, d_model, d_ff, layers):
    random = np.random.default_rng(2026)
    weights = {}

    def matrix(name, rows, columns):
        drawn_values = random.standard_normal((rows, columns), dtype=np.float32)
        weights[f"{name}.weight"] = 0.02 * drawn_values

    def linear(name, rows, columns):
        matrix(name, rows, columns)
        weights[f"{name}.bias"] = np.zeros(rows, np.float32)

    def norm(name):
        weights[f"{name}.weight"] = np.ones(d_model, np.float32)
        weights[f"{name}.bias"] = np.zeros(d_model, np.float32)

    for table, rows in (("word", config["vocab_size"]),
                        ("position", config["max_position_embeddings"]),
                        ("token_type", config["type_vocab_size"])):
        matrix(f"embeddings.{table}_embeddings", rows, d_model)
    norm("embeddings.LayerNorm")
    for i in range(layers):
        layer = f"encoder.layer.{i}"
        for part in ("query", "key", "value"):
            linear(f"{layer}.attention.self.{part}", d_model, d_model)
        linear(f"{layer}.attention.output.dense", d_model, d_model)
        norm(f"{layer}.attention.output.LayerNorm")
        linear(f"{layer}.intermediate.dense", d_ff, d_model)
        linear(f"{layer}.output.dense", d_model, d_ff)
        norm(f"{layer}.output.LayerNorm")
    return weights
