# SPDX-License-Identifier: Apache-2.0
"""Arguments as sentence-transformers has them: other names, what has one value here, enums."""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar, cast

from pyencore._inputs import integer, kind, shown

F = TypeVar("F", bound=Callable[..., Any])
P = ParamSpec("P")
R = TypeVar("R")

# The name of encore's own, and that of sentence-transformers before 3.
FOLDER_NAMES = {"folder_or_hub_name": "model_name_or_path", "use_auth_token": "token"}

# Arguments of sentence-transformers' constructors that have no choice here, and what they may be.
_WITHOUT_CHOICE: dict[str, tuple[Any, ...]] = {
    "backend": (None, "torch"),  # the reference, whose vectors encore's are
    "config_kwargs": (None, {}),
    "keep_in_fp32_modules": (None, []),
    "model_card_data": (None,),
    "model_kwargs": (None, {}),
    "modules": (None,),
    "processor_kwargs": (None, {}),
    "tokenizer_kwargs": (None, {}),
    "trust_remote_code": (None, False, True),  # encore runs no code of a folder's
}


def renamed(**names: str | None) -> Callable[[F], F]:
    """Takes arguments by other names too: other="name". other=None is taken and of no effect."""

    def decorate(function: F) -> F:
        places = {name: i for i, name in enumerate(inspect.signature(function).parameters)}

        @functools.wraps(function)
        def call(*args: Any, **options: Any) -> Any:
            if not options or names.keys().isdisjoint(options):
                return function(*args, **options)
            for other, name in names.items():
                if other not in options:
                    continue
                value = options.pop(other)
                if name is None:
                    continue
                if name in options or places.get(name, len(args)) < len(args):
                    raise TypeError(
                        f"{function.__name__}() found both {name} and {other}, which are one "
                        "argument; wanted either"
                    )
                options[name] = value
            return function(*args, **options)

        return cast(F, call)

    return decorate


def arguments_of(function: Callable[P, R]) -> Callable[[Callable[..., Any]], Callable[P, R]]:
    """Shows the arguments of another method, to which all but the first are handed on."""

    def decorate(method: Callable[..., Any]) -> Callable[P, R]:
        signature = inspect.signature(function)
        parameters = [p for name, p in signature.parameters.items() if name != "task"]
        vars(method)["__signature__"] = signature.replace(parameters=parameters)
        return cast(Callable[P, R], method)

    return decorate


def check_without_choice(of: str, others: Mapping[str, Any]) -> None:
    """Refuses arguments that are unknown, and those of sentence-transformers that want another
    computation than encore's."""
    for name, value in others.items():
        if name not in _WITHOUT_CHOICE:
            raise TypeError(f"{of}() got an unexpected keyword argument {shown(name)}")
        allowed = _WITHOUT_CHOICE[name]
        if not any(type(value) is type(one) and value == one for one in allowed):
            found = list(value) if isinstance(value, Mapping) else value
            raise ValueError(
                f"{name} is {shown(found)}; encore has its own computation, of which compute, "
                f"max_length and others are options: wanted {' or '.join(map(repr, allowed))}"
            )


def check_one_process(pool: Any, chunk_size: Any) -> None:
    """pool and chunk_size, of sentence-transformers' several processes."""
    if pool is not None:
        raise ValueError(
            f"pool is {kind(pool)}; encore computes in this process, on all "
            "cores: wanted None"
        )
    if chunk_size is not None:
        integer("chunk_size", chunk_size, 1)


def plain(value: Any) -> Any:
    """Of an enum its value, as sentence-transformers' SimilarityFunction has strings."""
    return value.value if isinstance(value, enum.Enum) else value


class KnownAttributes:
    """Refuses attributes that the class has not: a misspelt one would be without effect. Classes of
    others that are made of such a class may have attributes of their own."""

    def __setattr__(self, name: str, value: Any) -> None:
        of = type(self)
        known = getattr(of, name, None)
        own = name.startswith("_") or of.__module__.partition(".")[0] != "pyencore"
        if own or not (known is None or (isinstance(known, property) and known.fset is None)):
            object.__setattr__(self, name, value)
            return
        settable = [n for n in dir(of) if getattr(getattr(of, n), "fset", None)]
        wanted = "one of " + ", ".join(settable) if settable else "none to be set"
        raise AttributeError(
            f"{of.__name__} has {'no' if known is None else 'a read-only'} attribute "
            f"{shown(name)}; wanted {wanted}"
        )
