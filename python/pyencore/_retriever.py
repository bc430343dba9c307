# SPDX-License-Identifier: Apache-2.0
"""What encoders of queries and documents share: their two calls."""

from __future__ import annotations

import types
from collections.abc import Iterable
from typing import Any

from pyencore._arguments import arguments_of, renamed
from pyencore._images import PillowImage
from pyencore._inputs import checked, shown
from pyencore._prompts import Prompted
from pyencore._vectors import Compared


def check_task(task: Any) -> None:
    if task not in ("query", "document", None):
        raise ValueError(f"task is {shown(task)}; wanted 'query', 'document' or None")


class Retriever(Compared, Prompted):
    """A model of queries and documents, with an `encode` of its own."""

    encode: Any

    def __init_subclass__(cls) -> None:
        """Shows the class's encode's arguments as those of its other two."""
        super().__init_subclass__()
        if "encode" not in vars(cls):
            return
        for name in ("encode_query", "encode_document"):
            call = getattr(Retriever, name)
            own = types.FunctionType(
                call.__code__, call.__globals__, name, call.__defaults__, call.__closure__
            )
            own.__dict__.update(vars(call))
            own.__doc__, own.__qualname__ = call.__doc__, f"{cls.__qualname__}.{name}"
            setattr(cls, name, arguments_of(cls.encode)(own))

    @renamed(sentences="inputs")
    @checked
    def encode_query(
        self,
        inputs: str | PillowImage | Iterable[str | PillowImage],
        prompt_name: str | None = None,
        prompt: str | None = None,
        *args: Any,
        **options: Any,
    ) -> Any:
        """encode() with the prompt "query", if no other is asked for, and the task "query"."""
        return self._encode_as("query", ("query",), (inputs, prompt_name, prompt, *args), options)

    @renamed(sentences="inputs")
    @checked
    def encode_document(
        self,
        inputs: str | PillowImage | Iterable[str | PillowImage],
        prompt_name: str | None = None,
        prompt: str | None = None,
        *args: Any,
        **options: Any,
    ) -> Any:
        """encode() with the first prompt of "document", "passage" and "corpus" that there is, if no
        other is asked for, and the task "document"."""
        names = ("document", "passage", "corpus")
        return self._encode_as("document", names, (inputs, prompt_name, prompt, *args), options)

    def _encode_as(
        self, task: str, names: tuple[str, ...], args: tuple[Any, ...], options: dict[str, Any]
    ) -> Any:
        if "task" in options:
            raise TypeError(f"encode_{task}() found task, which is its own; wanted encode()")
        inputs, name, prompt, *others = args
        if name is None and prompt is None:
            name = next((one for one in names if one in self._prompts), None)
        return self.encode(inputs, name, prompt, *others, task=task, **options)
