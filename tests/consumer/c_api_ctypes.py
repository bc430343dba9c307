#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The C interface of a shared libencore_text as other languages see it: through ctypes alone.

    c_api_ctypes.py LIBRARY

Writes a tiny model with drawn weights into a folder of its own, opens it, encodes and tokenizes.
Exit status 1 with the failed check. Needs nothing but Python.
"""

import ctypes
import json
import math
import pathlib
import random
import struct
import sys
import tempfile

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "cat", "sat", "##s", "."]
WIDTH, LAYERS, FEED_FORWARD, POSITIONS = 8, 2, 12, 16

SIZE, POINTER, INT = ctypes.c_size_t, ctypes.c_char_p, ctypes.c_int32


class Text(ctypes.Structure):
    _fields_ = [("data", POINTER), ("size", SIZE)]


class OpenOptions(ctypes.Structure):
    """As version 1 had it: an older caller."""
    _fields_ = [("size", SIZE), ("threads", INT), ("normalize", INT), ("pooling", INT),
                ("ignore_unknown_keys", INT), ("max_length", SIZE)]


class EncodeOptions(ctypes.Structure):
    _fields_ = [("size", SIZE), ("prompt_name", POINTER), ("prompt", POINTER),
                ("max_length", SIZE), ("on_long", INT), ("on_invalid_utf8", INT),
                ("plain_text", INT), ("normalize", INT), ("dimensions", SIZE),
                ("batch_tokens", SIZE)]


def check(ok, what):
    if not ok:
        raise SystemExit(f"c_api_ctypes: {what}")


def load(path):
    """The library with its functions' types."""
    library = ctypes.CDLL(path)
    sizes, model = ctypes.POINTER(SIZE), ctypes.c_void_p
    types = {
        "encore_last_error": (POINTER, []),
        "encore_version": (POINTER, []),
        "encore_c_api_version": (INT, []),
        "encore_open": (INT, [POINTER, ctypes.POINTER(OpenOptions), ctypes.POINTER(model)]),
        "encore_free": (None, [model]),
        "encore_dimensions": (SIZE, [model]),
        "encore_max_length": (SIZE, [model]),
        "encore_describe": (POINTER, [model]),
        "encore_encode": (INT, [model, ctypes.POINTER(Text), SIZE, ctypes.POINTER(EncodeOptions),
                                ctypes.POINTER(ctypes.c_float), SIZE, sizes, sizes]),
        "encore_tokenize": (INT, [model, Text, ctypes.c_void_p, ctypes.POINTER(INT), SIZE, sizes,
                                  sizes]),
    }
    for name, (result, arguments) in types.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments
    return library


def tensors():
    """Names and shapes of BERT's tensors."""
    yield "embeddings.word_embeddings.weight", (len(WORDS), WIDTH)
    yield "embeddings.position_embeddings.weight", (POSITIONS, WIDTH)
    yield "embeddings.token_type_embeddings.weight", (2, WIDTH)

    def norm(name):
        return [(f"{name}.LayerNorm.weight", (WIDTH,)), (f"{name}.LayerNorm.bias", (WIDTH,))]

    def linear(name, outputs, inputs):
        return [(f"{name}.weight", (outputs, inputs)), (f"{name}.bias", (outputs,))]

    yield from norm("embeddings")
    for i in range(LAYERS):
        layer = f"encoder.layer.{i}"
        for name in ("self.query", "self.key", "self.value", "output.dense"):
            yield from linear(f"{layer}.attention.{name}", WIDTH, WIDTH)
        yield from norm(f"{layer}.attention.output")
        yield from linear(f"{layer}.intermediate.dense", FEED_FORWARD, WIDTH)
        yield from linear(f"{layer}.output.dense", WIDTH, FEED_FORWARD)
        yield from norm(f"{layer}.output")


def write_model(folder):
    numbers = random.Random(1)
    header, data = {}, b""
    for name, shape in tensors():
        count = math.prod(shape)
        part = struct.pack(f"<{count}f", *(numbers.uniform(-1, 1) for _ in range(count)))
        header[name] = {"dtype": "F32", "shape": shape,
                        "data_offsets": [len(data), len(data) + len(part)]}
        data += part
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(
        {"tokenizer_class": "BertTokenizer", "do_lower_case": True}), encoding="utf-8")
    (folder / "config.json").write_text(json.dumps({
        "model_type": "bert", "architectures": ["BertModel"], "hidden_act": "gelu",
        "hidden_size": WIDTH, "num_hidden_layers": LAYERS, "num_attention_heads": 2,
        "intermediate_size": FEED_FORWARD, "layer_norm_eps": 1e-12, "pad_token_id": 0,
        "max_position_embeddings": POSITIONS, "type_vocab_size": 2,
        "vocab_size": len(WORDS)}), encoding="utf-8")


def encode(library, model, texts, **options):
    """(rows of vectors, token counts), or None where the call fails."""
    data = [text.encode() for text in texts]
    views = (Text * len(data))(*(Text(text, len(text)) for text in data))
    width = library.encore_dimensions(model)
    vectors = (ctypes.c_float * (width * len(data)))()
    counts = (SIZE * len(data))()
    settings = EncodeOptions(size=ctypes.sizeof(EncodeOptions), **options)
    status = library.encore_encode(model, views, len(data), ctypes.byref(settings), vectors,
                                   len(vectors), counts, None)
    if status != 0:
        return None
    return [vectors[width * i:width * (i + 1)] for i in range(len(data))], list(counts)


def run(library):
    check(library.encore_c_api_version() == 10, "the version of the interface is not 10")
    model = ctypes.c_void_p()
    status = library.encore_open(b"no/such/folder", None, ctypes.byref(model))
    check(status == 2 and not model.value, f"a folder that is not there gave status {status}")
    check(b"no/such/folder" in library.encore_last_error(), "the error does not name the folder")

    with tempfile.TemporaryDirectory() as name:
        write_model(pathlib.Path(name))
        options = OpenOptions(size=ctypes.sizeof(OpenOptions), threads=2, normalize=1)
        status = library.encore_open(name.encode(), ctypes.byref(options), ctypes.byref(model))
        check(status == 0, library.encore_last_error().decode())
        check(library.encore_dimensions(model) == WIDTH, "not as many dimensions as the model has")
        check(b"\n" in library.encore_describe(model), "no description")
        texts = ["The cats sat.", "cat", ""]
        vectors, counts = encode(library, model, texts)
        check(counts == [7, 3, 2], f"{counts} tokens")
        for text, vector in zip(texts, vectors):
            length = math.sqrt(sum(x * x for x in vector))
            check(abs(length - 1) < 1e-5, f"the vector of '{text}' has length {length}")
            check(encode(library, model, [text])[0] == [vector], f"'{text}' alone is another one")
        refused = encode(library, model, texts, max_length=3, on_long=1)
        check(refused is None, "a text that is too long was taken")
        check(library.encore_last_error(), "an error without a sentence")
        ids, count = (INT * 8)(), SIZE()
        status = library.encore_tokenize(model, Text(b"cats", 4), None, ids, 8,
                                         ctypes.byref(count), None)
        check(status == 0 and ids[:count.value] == [2, 6, 8, 3], f"ids {ids[:count.value]}")
        library.encore_free(model)


def main():
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    run(load(sys.argv[1]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
