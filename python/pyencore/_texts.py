# SPDX-License-Identifier: Apache-2.0
"""Texts and pairs of texts that people give, checked before anything is computed. An error names
the argument and the index from the start of the whole input."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyencore import _core
from pyencore._inputs import elements, kind, ordered, text

_SEVERAL = "str, or several of them"


def check_texts(name: str, texts: list[Any], first: int = 0, part: str = "") -> None:
    """Of elements first, first + 1, ... of `name`."""
    _core.check_texts(texts, name, first, part)


def texts_of(name: str, value: Any) -> tuple[list[str], bool]:
    """A list of the caller's texts that nobody else changes, and whether it is a single text."""
    if isinstance(value, str):
        return [text(name, value)], True
    texts = elements(name, value, _SEVERAL)
    check_texts(name, texts)
    return texts, False


def blocks_of(name: str, value: Any, size: int) -> Iterator[list[str]]:
    """The texts of an iterator, `size` at a time."""
    texts, first = ordered(value), 0
    if texts is None:
        raise TypeError(f"{name} is {kind(value)}; wanted {_SEVERAL}")
    while block := list(itertools.islice(texts, size)):
        check_texts(name, block, first)
        first += len(block)
        yield block


def pairs_of(name: str, value: Any) -> tuple[list[str], list[str], bool]:
    """First and second texts, and whether it is a single pair."""
    listed = value.tolist() if isinstance(value, np.ndarray) else None
    if not isinstance(listed, list):
        listed = elements(name, value, "a pair of texts, or several of them")
    single = bool(listed) and all(isinstance(one, str) for one in listed) and len(listed) == 2
    pairs = [listed] if single else [_pair(f"{name}[{i}]", one) for i, one in enumerate(listed)]
    first, second = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    for i, side in enumerate((first, second)):
        if single:
            text(f"{name}[{i}]", side[0])
        else:
            check_texts(name, side, part=f"[{i}]")
    return first, second, single


def _pair(name: str, value: Any) -> list[Any]:
    pair = elements(name, value, "a pair of texts")
    if len(pair) != 2:
        raise ValueError(f"{name} has {len(pair)} elements; wanted a pair of texts")
    return pair
