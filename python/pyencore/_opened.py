# SPDX-License-Identifier: Apache-2.0
"""What all models share: a folder opened with options, threads after fork(), pickling."""

from __future__ import annotations

import inspect
import os
import weakref
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pyencore import _core
from pyencore._arguments import FOLDER_NAMES, KnownAttributes, check_without_choice, renamed
from pyencore._folder import find_folder
from pyencore._inputs import check_compute, check_threads, checked, integer, shown
from pyencore._tokenizer import Tokenizer

Compute = Literal["f32", "bf16", "int8", "int4"]


class Decision(NamedTuple):
    """One of describe(): what it is about, what holds, and the file or option that says so."""

    what: str
    value: str
    source: str


class ModelMemory(NamedTuple):
    """One of memory(), in bytes: of mapped files, of matrices packed in own memory, of tables in
    own memory, and what is kept between calls."""

    mapped: int
    packed: int
    tables: int
    scratch: int


_with_threads: weakref.WeakSet[Any] = weakref.WeakSet()


def forget_threads_after_fork(core: Any) -> None:
    """A child has none of its parent's threads; it makes its own when it first needs them."""
    _with_threads.add(core)


def _after_fork() -> None:
    for core in list(_with_threads):
        core.forget_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def check_device(device: Any) -> None:
    if device is not None and str(device).split(":")[0] != "cpu":
        raise ValueError(
            f"device is {shown(str(device))}; encore computes on CPUs: wanted 'cpu' or None"
        )


def check_batch_size(batch_size: int | None) -> None:
    if batch_size is not None and integer("batch_size", batch_size) <= 0:
        raise ValueError(f"batch_size must be a positive integer, got {batch_size}.")


class Opened(KnownAttributes):
    """A model of a folder. Any number of threads may use it at once."""

    _core_class: Any = _core.Model
    _organization: str | None = "sentence-transformers"  # of hub names without one
    _has_vectors = False  # which pooling and normalize are about

    @staticmethod
    def _wants_language_head(folder: str) -> bool:
        return False

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        compute: Compute | None = None,
        threads: int = 0,
        keep: Collection[str] = (),
        max_length: int | None = None,
        pooling: str | Sequence[str] | None = None,
        normalize: bool | None = None,
        ignore_unknown_keys: bool = False,
        cache: str | os.PathLike[str] | None = None,
        compare_cache: bool = False,
        trust_cache: bool = False,
        device: Any = None,
        cache_folder: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        token: str | bool | None = None,
        local_files_only: bool = False,
        task: str | None = None,
        **others: Any,
    ) -> None:
        check_without_choice(type(self).__name__, others)
        check_device(device)
        check_threads(threads)
        check_compute(compute)
        if max_length is not None:
            integer("max_length", max_length, 1)
        for name, value in (("pooling", pooling), ("normalize", normalize)):
            if value is not None and not self._has_vectors:
                raise ValueError(
                    f"{name} is {shown(value)}; {type(self).__name__} has no vectors of texts: "
                    "wanted None"
                )
        self._folder = find_folder(
            model_name_or_path,
            organization=self._organization,
            cache_folder=cache_folder,
            revision=revision,
            token=token,
            local_files_only=local_files_only,
        )
        modes = [pooling] if isinstance(pooling, str) else list(pooling or ())
        self._options: dict[str, Any] = {
            "compute": compute,
            "threads": threads,
            "keep": list(keep),
            "max_length": max_length,
            "pooling": modes,
            "normalize": normalize,
            "ignore_unknown_keys": ignore_unknown_keys,
            "language_head": self._wants_language_head(self.folder),
            "cache": "" if cache is None else os.fspath(cache),
            "compare_cache": compare_cache,
            "trust_cache": trust_cache,
            "task": task or "",
        }
        self._core = self._core_class(self.folder, **self._options)
        forget_threads_after_fork(self._core)

    def _open(self, arguments: Mapping[str, Any]) -> None:
        """Opened.__init__ with what it knows of the arguments of a class's own, which are given as
        locals(), and none of them unknown."""
        check_without_choice(type(self).__name__, arguments["others"])
        known = inspect.signature(Opened.__init__).parameters.keys() & arguments.keys()
        Opened.__init__(self, **{name: arguments[name] for name in known - {"self", "others"}})

    # Pickled as folder and options, and opened again: the folder must be there.
    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        del state["_core"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._core = self._core_class(self.folder, **self._options)
        forget_threads_after_fork(self._core)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.folder!r}, compute={self.compute!r})"

    @property
    def folder(self) -> str:
        """Where the model's files are."""
        return self._folder

    @property
    def compute(self) -> str:
        """The precision of the matrix products: "f32", "bf16", "int8" or "int4"."""
        return self._core.precision

    @property
    def threads(self) -> int:
        return self._core.threads

    @property
    def device(self) -> str:
        return "cpu"

    def describe(self) -> list[Decision]:
        """Every decision that was taken when the folder was opened, and where it comes from."""
        return [Decision(*decision) for decision in self._core.describe()]

    def trim_memory(self) -> None:
        """Gives back what is kept between calls."""
        self._core.trim_memory()

    def memory(self) -> ModelMemory:
        """What the model takes, in bytes."""
        return ModelMemory(*self._core.memory())


class TextModel(Opened):
    """A model of texts."""

    _max_length = 0  # the model's

    @checked
    def prepare(self, max_tokens: int) -> None:
        """Makes the next call, of texts of up to so many tokens together, as fast as later ones:
        without new memory, and without pages of files that were not read yet."""
        self._core.prepare(integer("max_tokens", max_tokens, 1))

    @property
    def max_length(self) -> int:
        """Tokens of a text, special ones included; longer texts are cut."""
        return self._max_length or self._core.max_length

    @max_length.setter
    def max_length(self, tokens: int) -> None:
        self._max_length = integer("max_length", tokens, 1)

    @property
    def max_seq_length(self) -> int:
        """max_length, by sentence-transformers' name."""
        return self.max_length

    @max_seq_length.setter
    def max_seq_length(self, tokens: int) -> None:
        self._max_length = integer("max_seq_length", tokens, 1)

    @property
    def tokenizer(self) -> Tokenizer:
        core = self._core.tokenizer
        if core is None:
            from pyencore._errors import UnsupportedError

            raise UnsupportedError(f"{self.folder}: encore has not this folder's tokenizer")
        return Tokenizer._of(core)
