# SPDX-License-Identifier: Apache-2.0
"""Long calls in pieces of a tenth of a second, so that Ctrl-C is heard and progress is seen."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

_SECONDS = 0.1
_FIRST_CHARACTERS = 512


def lengths_of(texts: Sequence[Any]) -> list[int]:
    """Characters of each; what is no text is refused where it is read."""
    try:
        return [len(text) for text in texts]
    except TypeError:
        return [1] * len(texts)


class Pace:
    """How many characters a model computes in a piece, as far as calls have shown."""

    def __init__(self) -> None:
        self.characters = float(_FIRST_CHARACTERS)

    def learn(self, characters: int, seconds: float) -> None:
        if characters > 0 and seconds > 0:
            wanted = characters * _SECONDS / seconds
            self.characters = min(max(wanted, 1.0), 4 * max(self.characters, characters))


def progress_bar(show: bool | None, total: int) -> Any:
    """tqdm's, or None. By default where the logger is at INFO or DEBUG."""
    if show is None:
        show = logging.getLogger("pyencore").getEffectiveLevel() in (logging.INFO, logging.DEBUG)
    if not show:
        return None
    try:
        from tqdm.auto import tqdm  # type: ignore[import-untyped, import-not-found, unused-ignore]
    except ImportError as error:
        raise ImportError(
            "show_progress_bar needs tqdm, which is not installed (pip install tqdm)"
        ) from error
    return tqdm(total=total, desc="Texts", unit="text")


def in_pieces(
    lengths: Sequence[int], step: Callable[[int, int], None], pace: Pace, bar: Any
) -> None:
    """Calls step(begin, end) until all are done. Only the main thread hears signals: others make
    one call, unless they show progress."""
    count = len(lengths)
    if bar is None and threading.current_thread() is not threading.main_thread():
        step(0, count)
        return
    begin = 0
    try:
        while begin < count:
            characters, end = 0, begin
            while end < count and (end == begin or characters + lengths[end] <= pace.characters):
                characters += lengths[end] + 1
                end += 1
            started = time.perf_counter()
            step(begin, end)
            pace.learn(characters, time.perf_counter() - started)
            if bar is not None:
                bar.update(end - begin)
            begin = end
    finally:
        if bar is not None:
            bar.close()
