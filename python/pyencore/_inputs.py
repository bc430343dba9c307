# SPDX-License-Identifier: Apache-2.0
"""Where arguments are checked. `checked` holds a function's arguments against its annotations, so
that a signature is all that says what is taken. What annotations cannot say (texts, ranges, arrays)
has functions here and in _texts.py and _arrays.py. Each error names the argument, what was found
and what was wanted."""

from __future__ import annotations

import collections.abc
import enum
import functools
import inspect
import os
import reprlib
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, ParamSpec, TypeVar

import numpy as np

P = ParamSpec("P")
R = TypeVar("R")
Check = Callable[[str, Any], Any]

_REFUSED = object()
_MOST = 2**63 - 1


def shown(value: Any, most: int = 60) -> str:
    """A value in a message: never a whole text."""
    short = reprlib.Repr()
    short.maxstring = short.maxother = most
    return short.repr(value)


def kind(value: Any) -> str:
    """"of type dict", "an array of int64 [2, 3]"."""
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} {list(value.shape)}"
    return f"of type {type(value).__name__}"


def is_tensor(value: Any) -> bool:
    """Whether it is torch's, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


# ---- Numbers and words --------------------------------------------------------------------------


def integer(name: str, value: Any, least: int = -_MOST - 1, most: int = _MOST) -> int:
    """An int of Python's or numpy's, within a range."""
    found = _integer(name, value)
    if found is _REFUSED:
        raise TypeError(f"{name} is {kind(value)}; wanted an int")
    if not least <= found <= most:
        above = f"at least {least}" if most == _MOST else f"{least} to {most}"
        raise ValueError(f"{name} is {shown(found)}; wanted {above}")
    return int(found)


def check_threads(threads: int) -> None:
    """0 is all usable cores."""
    if not 0 <= threads < 2**31:
        raise ValueError(f"threads is {shown(threads)}; wanted 0 (all usable cores) or more")


def check_compute(compute: str | None) -> None:
    if compute is not None:
        one_of("compute", compute, ("f32", "bf16", "int8", "int4"))


def flag(name: str, value: Any) -> bool:
    found = _flag(name, value)
    if found is _REFUSED:
        raise TypeError(f"{name} is {kind(value)}; wanted True or False")
    return bool(found)


def vector_options(options: Mapping[str, Any] | None) -> dict[str, Any]:
    """encode_options of the adapters, which give lists of numbers."""
    given = dict(options or {})
    for name in ("inputs", "sentences", "out"):
        if name in given:
            raise ValueError(f"encode_options has {name!r}, which is not an option of vectors")
    found = given.get("output_value", "sentence_embedding")
    if found != "sentence_embedding":
        raise ValueError(
            f"encode_options has output_value {shown(found)}; wanted 'sentence_embedding'"
        )
    return given


def text(name: str, value: str) -> str:
    """A str that UTF-8 can encode."""
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise ValueError(
                f"{name} has a lone surrogate, U+{ord(value[error.start]):04X}, at character "
                f"{error.start}; wanted text that UTF-8 can encode"
            ) from None
    return value


def one_of(name: str, value: Any, known: Sequence[str]) -> str:
    if not isinstance(value, str) or value not in known:
        found = f"{shown(value)}" if isinstance(value, str) else kind(value)
        raise ValueError(f"{name} is {found}; wanted one of {', '.join(known)}")
    return value


def ordered(value: Any) -> Iterator[Any] | None:
    """An iterator of what has an order; None of str, bytes, sets, dicts, tables and the like. What
    an iterator raises itself passes through."""
    if isinstance(value, (str, bytes, bytearray, memoryview, Mapping, set, frozenset, type)):
        return None
    axes = getattr(value, "ndim", 1)  # a table's elements would be the names of its columns
    try:
        return iter(value) if not isinstance(axes, int) or axes < 2 else None
    except TypeError:
        return None


def elements(name: str, value: Any, wanted: str) -> list[Any]:
    """A list of what has an order."""
    if isinstance(value, np.ndarray) and value.ndim == 0 and isinstance(value.item(), str):
        value = value.reshape(1)
    found = ordered(value)
    if found is None:
        raise TypeError(f"{name} is {kind(value)}; wanted {wanted}")
    return list(found)


# ---- By annotations -----------------------------------------------------------------------------


def checked(function: Callable[P, R]) -> Callable[P, R]:
    """The function, whose arguments are held against its annotations: kinds of numbers, words,
    flags, paths, dicts, lists of them. Any is not looked at, nor are elements of an Iterable."""
    code = inspect.unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount]
    prepared: tuple[dict[str, Check], list[tuple[int, str, Check]]] | None = None

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        nonlocal prepared
        if prepared is None:  # set at once, whole: threads may make their first calls together
            found = _checks_of(function)
            places = [(i, name, found[name]) for i, name in enumerate(names) if name in found]
            prepared = (found, places)
        checks, placed = prepared
        count, given = len(args), args
        for i, name, check in placed:
            if i >= count:
                break
            value = check(name, given[i])
            if value is not given[i]:
                given = (*given[:i], value, *given[i + 1 :])  # type: ignore[assignment]
        for name in named:
            if name in checks:
                named[name] = checks[name](name, named[name])
        return function(*given, **named)

    return call


def _checks_of(function: Any) -> dict[str, Check]:
    hints = typing.get_type_hints(function)
    code = inspect.unwrap(function).__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    found = ((name, check_of(hints[name])) for name in names if name in hints)
    return {name: check for name, check in found if check is not None}


def check_of(annotation: Any) -> Check | None:
    """None where everything is taken."""
    choices = _choices(annotation)
    kinds = [_kind_of(choice) for choice in choices]
    if any(one is None for one in kinds):
        return None
    takes = [one[0] for one in kinds if one is not None]
    if bool in choices and type(None) not in choices:
        takes.append(_no)
    wanted = _joined([word for one in kinds if one is not None for word in one[1]])

    def check(name: str, value: Any) -> Any:
        for take in takes:
            found = take(name, value)
            if found is not _REFUSED:
                return found
        raise TypeError(f"{name} is {kind(value)}; wanted {wanted}")

    return check


def _choices(annotation: Any) -> list[Any]:
    if typing.get_origin(annotation) in (typing.Union, types.UnionType):
        return [one for part in typing.get_args(annotation) for one in _choices(part)]
    return [annotation]


def _joined(words: list[str]) -> str:
    words = sorted(dict.fromkeys(words), key=lambda word: word == "None")
    return " or ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words)


def _kind_of(annotation: Any) -> tuple[Check, list[str]] | None:
    """How a value of one kind is taken, or refused, and the kind in words."""
    if annotation is Any or isinstance(annotation, TypeVar):
        return None
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is Literal:
        return functools.partial(_word, inside), [shown(one) for one in inside]
    if isinstance(origin, type) and issubclass(origin, Mapping):
        value = check_of(inside[1]) if len(inside) == 2 else None
        return functools.partial(_mapping, value), ["a dict"]
    if origin is os.PathLike or annotation is os.PathLike:
        return _path, ["a path"]
    if origin is collections.abc.Callable:
        return _function, ["a function"]
    if origin in (list, collections.abc.Sequence, collections.abc.Collection):
        element, word = check_of(inside[0]), _word_of(inside[0])
        sets = origin is collections.abc.Collection
        return functools.partial(_list, element, sets, word), [word]
    if origin is collections.abc.Iterable:
        return _iterable, [_word_of(inside[0])]
    wanted = origin or annotation
    if isinstance(wanted, type):
        return functools.partial(_instance, wanted), [_class_word(wanted)]
    return None


def _word_of(element: Any) -> str:
    if any(typing.get_origin(choice) is Sequence for choice in _choices(element)):
        return "a pair of texts, or several pairs"
    element = str if str in _choices(element) else element
    return {str: "a list of str", int: "a list of ints"}.get(element, "a list")


def _class_word(wanted: type) -> str:
    return "a numpy array" if wanted is np.ndarray else wanted.__name__


def _none(name: str, value: Any) -> Any:
    return value if value is None else _REFUSED


def _no(name: str, value: Any) -> Any:
    """None of a flag that is on or off, as sentence-transformers has it, whatever its default."""
    return False if value is None else _REFUSED


def _flag(name: str, value: Any) -> Any:
    if value is True or value is False:
        return value
    if isinstance(value, np.bool_) or (isinstance(value, int) and value in (0, 1)):
        return bool(value)
    return _REFUSED


def _integer(name: str, value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)):
        return _REFUSED
    found = int(value)
    if not -_MOST - 1 <= found <= _MOST:
        raise ValueError(f"{name} is {shown(found)}; wanted an int of at most 64 bits")
    return found


def _number(name: str, value: Any) -> Any:
    if isinstance(value, (bool, np.bool_)) or not isinstance(
        value, (int, float, np.integer, np.floating)
    ):
        return _REFUSED
    try:
        return float(value)
    except OverflowError:
        raise ValueError(f"{name} is {shown(value)}; wanted a number of 64 bits") from None


def _text(name: str, value: Any) -> Any:
    return text(name, value) if isinstance(value, str) else _REFUSED


def _word(known: tuple[Any, ...], name: str, value: Any) -> Any:
    """One of the known words, or an Enum's member for it; others are refused by whoever knows
    more of them."""
    if isinstance(value, enum.Enum) and value.value in known:
        return value.value
    if isinstance(value, str):
        return text(name, value)
    return value if value is None and None in known else _REFUSED


def _path(name: str, value: Any) -> Any:
    if isinstance(value, (str, bytes)) or not isinstance(value, os.PathLike):
        return _REFUSED
    path = os.fspath(value)
    if not isinstance(path, str):
        return _REFUSED
    text(name, path)
    return value


def _function(name: str, value: Any) -> Any:
    return value if callable(value) else _REFUSED


def _instance(wanted: type, name: str, value: Any) -> Any:
    return value if isinstance(value, wanted) else _REFUSED


def _mapping(check: Check | None, name: str, value: Any) -> Any:
    if not isinstance(value, Mapping):
        return _REFUSED
    for key, one in value.items():
        if not isinstance(key, str):
            raise TypeError(f"{name} has the key {shown(key)}; wanted str as keys")
        text(f"a key of {name}", key)
        if check is not None:
            check(f"{name}[{shown(key)}]", one)
    return value


def _list(check: Check | None, sets: bool, word: str, name: str, value: Any) -> Any:
    if sets and isinstance(value, (set, frozenset)):
        value = sorted(value, key=str)
    if is_tensor(value):
        value = value.tolist()
    if not isinstance(value, np.ndarray) and ordered(value) is None:
        return _REFUSED
    listed = elements(name, value, word)
    if check is None:
        return listed
    return [check(f"{name}[{i}]", one) for i, one in enumerate(listed)]


def _iterable(name: str, value: Any) -> Any:
    """Its elements are read later; of an array of pairs, rows."""
    return value if isinstance(value, np.ndarray) or ordered(value) is not None else _REFUSED


_PLAIN: dict[Any, tuple[Check, list[str]]] = {
    type(None): (_none, ["None"]),
    None: (_none, ["None"]),
    bool: (_flag, ["True", "False"]),
    int: (_integer, ["an int"]),
    float: (_number, ["a number"]),
    str: (_text, ["str"]),
}
