# SPDX-License-Identifier: Apache-2.0
"""Texts and pairs of texts that people give, checked before anything is computed. An error names
the argument and the index from the start of the whole input."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np

from pyencore import _core
from pyencore._arrays import as_array
from pyencore._images import PillowImage
from pyencore._inputs import elements, integer, is_tensor, kind, ordered, text

_SEVERAL = "str, or several of them"
_MOST = 2**31  # ids have 32 bits


def check_texts(
    name: str, texts: list[Any], first: int = 0, part: str = "", pictures: bool = False
) -> None:
    """Of elements first, first + 1, ... of `name`."""
    if pictures:
        texts = ["" if isinstance(one, PillowImage) else one for one in texts]
    _core.check_texts(texts, name, first, part)


def texts_of(name: str, value: Any, pictures: bool = False) -> tuple[list[Any], bool]:
    """A list of the caller's texts that nobody else changes, and whether it is a single text.
    pictures: some may be Pillow's images."""
    if isinstance(value, str):
        return [text(name, value)], True
    texts = elements(name, value, _SEVERAL)
    check_texts(name, texts, pictures=pictures)
    return texts, False


def blocks_of(name: str, value: Any, size: int, pictures: bool = False) -> Iterator[list[Any]]:
    """The texts of an iterator, `size` at a time."""
    texts, first = ordered(value), 0
    if texts is None:
        raise TypeError(f"{name} is {kind(value)}; wanted {_SEVERAL}")
    while block := list(itertools.islice(texts, size)):
        check_texts(name, block, first, pictures=pictures)
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


def texts_or_pairs_of(name: str, value: Any) -> list[tuple[str, str | None]]:
    """Each a text, or a pair of them."""
    found: list[tuple[str, str | None]] = []
    for i, one in enumerate(elements(name, value, "several texts or pairs of them")):
        if isinstance(one, str):
            found.append((text(f"{name}[{i}]", one), None))
        else:
            first, second = pair = _pair(f"{name}[{i}]", one)
            check_texts(f"{name}[{i}]", pair)
            found.append((first, second))
    return found


def lists_of_ids(name: str, value: Any) -> list[list[int]]:
    """Lists of token ids."""
    if is_tensor(value):
        value = as_array(name, value)
    table = isinstance(value, np.ndarray) and value.ndim == 2
    rows = list(value) if table else elements(name, value, "lists of token ids")
    return [_ids(f"{name}[{i}]", row) for i, row in enumerate(rows)]


def _ids(name: str, row: Any) -> list[int]:
    if is_tensor(row):
        row = as_array(name, row)
    if isinstance(row, np.ndarray) and row.dtype.kind in "iu" and row.ndim == 1:
        ids: list[Any] = row.tolist()
    else:
        ids = elements(name, row, "a list of token ids")
    if all(type(one) is int for one in ids) and (not ids or -_MOST <= min(ids) <= max(ids) < _MOST):
        return ids
    return [integer(f"{name}[{j}]", one, -_MOST, _MOST - 1) for j, one in enumerate(ids)]


def _pair(name: str, value: Any) -> list[Any]:
    pair = elements(name, value, "a pair of texts")
    if len(pair) != 2:
        raise ValueError(f"{name} has {len(pair)} elements; wanted a pair of texts")
    return pair
