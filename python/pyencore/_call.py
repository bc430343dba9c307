# SPDX-License-Identifier: Apache-2.0
"""What a long call is given beside its texts: how it ends early, and what is seen of it."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from typing import Any

from pyencore import _core
from pyencore._inputs import kind, shown

Progress = Callable[[int, int, int, int], Any]


class Stop(_core.Stop):
    """A flag that ends calls early: their argument cancel. Any thread may set() it and clear() it,
    and any number of calls may have it."""

    def __init__(self) -> None:
        super().__init__()


class CallStats(_core.CallStats):
    """What a call did, which has it as its argument stats. Times are seconds, and together about
    those of the call."""

    def __init__(self) -> None:
        super().__init__()


# Shorter inputs take a few ms, in which nobody waits for Ctrl-C.
_SHORT_CHARACTERS = 2000
_LONG = _SHORT_CHARACTERS + 1
_MOST_SECONDS = 366 * 86400


def progress_bar(show: bool | None, total: int | None, unit: str = "text") -> Any:
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
    return tqdm(total=total, desc=f"{unit.capitalize()}s", unit=unit)


class Call:
    """The arguments of one call: cancel, deadline, background, progress and stats, each checked."""

    def __init__(
        self,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> None:
        if not (
            cancel is None or isinstance(cancel, Stop) or callable(getattr(cancel, "is_set", None))
        ):
            raise TypeError(
                f"cancel is {kind(cancel)}; wanted a pyencore.Stop, a threading.Event or None"
            )
        if deadline is not None and not 0 <= deadline <= _MOST_SECONDS:
            raise ValueError(f"deadline is {shown(deadline)}; wanted 0 to {_MOST_SECONDS} seconds")
        self._given = (cancel, deadline, background, progress, stats)

    def watch(self, characters: int, progress: Progress | None = None) -> _core.Watch | None:
        """Of texts of so many characters; None where nothing is to be watched. `progress` takes the
        place of the caller's."""
        cancel, deadline, background, own, stats = self._given
        told = own if progress is None else progress
        # Only the main thread hears signals.
        signals = (
            characters > _SHORT_CHARACTERS
            and threading.current_thread() is threading.main_thread()
        )
        plain = cancel is None and deadline is None and not background and stats is None
        if plain and told is None and not signals:
            return None
        return _core.Watch(cancel, deadline, background, told, stats, signals)

    @contextmanager
    def watched(self, show: bool | None, *texts: list[str] | None) -> Iterator[Any]:
        """A watch while texts are computed, with a bar where it is shown. None: of an iterator."""
        known = [list_ for list_ in texts if list_ is not None]
        characters = _LONG
        if known:  # a picture takes as long as a long text
            sizes = (len(x) if isinstance(x, str) else _LONG for list_ in known for x in list_)
            characters = sum(sizes)
        with self.seen(show, len(known[0]) if known else None, characters) as watch:
            yield watch

    @contextmanager
    def seen(
        self, show: bool | None, total: int | None, characters: int = _LONG, unit: str = "text"
    ) -> Iterator[Any]:
        """The same of inputs whose number is known, or is not."""
        bar = progress_bar(show, total, unit)
        own = self._given[3]
        if bar is None and (own is None or total is None):
            yield self.watch(characters)
            return

        def progress(done: int, all_texts: int, tokens: int, all_tokens: int) -> None:
            if bar is not None:
                bar.update(done - bar.n)
            if own is not None:
                own(done, all_texts if total is None else total, tokens, all_tokens)

        with nullcontext() if bar is None else bar:
            yield self.watch(characters, progress)

    def unseen(self) -> Call:
        """The same without progress and stats, for a second call on the same texts."""
        return Call(*self._given[:3])
