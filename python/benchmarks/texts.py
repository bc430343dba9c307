# SPDX-License-Identifier: Apache-2.0
"""Texts that are measured. Needs numpy alone: peers run in environments without pyencore."""

from __future__ import annotations

import numpy as np

WORDS = "the harbour lies between two hills and trains stop at coast every hour of day".split()


def sentences(count: int) -> list[str]:
    """Of 4 to 27 words, each text another."""
    rng = np.random.default_rng(1)
    return [f"{i} " + " ".join(rng.choice(WORDS, rng.integers(4, 28))) for i in range(count)]
