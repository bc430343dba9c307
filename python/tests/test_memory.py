# SPDX-License-Identifier: Apache-2.0
"""prepare, memory and trim_memory of every class that opens a folder."""

from __future__ import annotations

import pyencore
import pytest
from conftest import FOLDERS

OPENED = [kind for kind in FOLDERS if hasattr(getattr(pyencore, kind), "memory")]


@pytest.mark.parametrize("kind", OPENED)
def test_memory(kind: str) -> None:
    model = getattr(pyencore, kind)(FOLDERS[kind], threads=2)
    before = model.memory()
    assert (before.mapped > 0) == (not kind.startswith("Image"))  # which has no tables of words
    assert before.packed > 0 and before.scratch == 0
    model.prepare(64)
    after = model.memory()
    assert after._replace(scratch=0) == before
    assert after.scratch > 0
    model.trim_memory()
    assert model.memory() == before


def test_what_is_opened_has_memory() -> None:
    assert {"TextEncoder", "CrossEncoder", "SparseEncoder", "MultiVectorEncoder"} <= set(OPENED)


def test_a_wrong_number_of_tokens() -> None:
    model = pyencore.TextEncoder(FOLDERS["TextEncoder"])
    with pytest.raises(ValueError, match="max_tokens is 0"):
        model.prepare(0)
