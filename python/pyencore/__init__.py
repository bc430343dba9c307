# SPDX-License-Identifier: Apache-2.0
"""encore from Python: texts and pictures to vectors on CPUs, with sentence-transformers' calls."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyencore import ops
    from pyencore._call import CallStats, Stop
    from pyencore._cross_encoder import Classifier, CrossEncoder
    from pyencore._encoder import Encoder
    from pyencore._errors import CorruptDataError, UnsupportedError
    from pyencore._image_classifier import ImageClassifier
    from pyencore._image_encoder import ImageEncoder, PatchVectors
    from pyencore._machine import active_target, compiled_targets, cores
    from pyencore._machine import set_target, supported_targets
    from pyencore._masked_language_model import MaskedLanguageModel
    from pyencore._multi_vector_encoder import MultiVectorEncoder
    from pyencore._quantize import quantize_embeddings
    from pyencore._sparse_encoder import SparseEncoder, SparseMatrix
    from pyencore._text_encoder import TextEncoder
    from pyencore._token_classifier import TokenClassifier
    from pyencore._token_vectors import StoredVectors, store_vectors
    from pyencore._tokenizer import Encoding, Tokenizer
    from pyencore._version import __version__

# Loaded when they are first asked for: pyencore.lab works without the compiled module, and a
# program pays for what it uses.
_WHERE = {
    "_call": ("CallStats", "Stop"),
    "_cross_encoder": ("Classifier", "CrossEncoder"),
    "_encoder": ("Encoder",),
    "_errors": ("CorruptDataError", "UnsupportedError"),
    "_image_classifier": ("ImageClassifier",),
    "_image_encoder": ("ImageEncoder", "PatchVectors"),
    "_machine": ("active_target", "compiled_targets", "cores", "set_target", "supported_targets"),
    "_masked_language_model": ("MaskedLanguageModel",),
    "_multi_vector_encoder": ("MultiVectorEncoder",),
    "_quantize": ("quantize_embeddings",),
    "_sparse_encoder": ("SparseEncoder", "SparseMatrix"),
    "_text_encoder": ("TextEncoder",),
    "_token_classifier": ("TokenClassifier",),
    "_token_vectors": ("StoredVectors", "store_vectors"),
    "_tokenizer": ("Encoding", "Tokenizer"),
    "_version": ("__version__",),
}

__all__ = [
    "CallStats", "Classifier", "CorruptDataError", "CrossEncoder", "Encoder", "Encoding",
    "ImageClassifier", "ImageEncoder", "MaskedLanguageModel", "MultiVectorEncoder", "PatchVectors",
    "SparseEncoder", "SparseMatrix", "Stop", "StoredVectors", "TextEncoder", "TokenClassifier",
    "Tokenizer", "UnsupportedError",
    "__version__", "active_target", "compiled_targets", "cores", "ops", "quantize_embeddings",
    "set_target", "store_vectors", "supported_targets",
]


def __getattr__(name: str) -> Any:
    if name == "ops":
        return importlib.import_module("pyencore.ops")
    for module, names in _WHERE.items():
        if name in names:
            value = globals()[name] = getattr(importlib.import_module(f"pyencore.{module}"), name)
            return value
    raise AttributeError(f"module 'pyencore' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
