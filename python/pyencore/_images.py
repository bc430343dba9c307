# SPDX-License-Identifier: Apache-2.0
"""Pictures that people give: files, their bytes, Pillow's images and arrays, as pixels that encore
takes. Pillow decodes, as transformers has it."""

from __future__ import annotations

import io
import itertools
import os
import sys
from collections.abc import Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pyencore import _core
from pyencore._inputs import kind, ordered, shown

Pixels = NDArray[np.uint8]  # [height, width, 1, 3 or 4]

_KINDS = "a path, bytes, an image of Pillow's or an array of uint8"
_MOST_BYTES = 128 << 20  # of a block's pixels, but for the last picture


class _OfPillow(type(Protocol)):  # type: ignore[misc]
    def __instancecheck__(cls, value: Any) -> bool:
        module = sys.modules.get("PIL.Image")
        return module is not None and isinstance(value, module.Image)


class PillowImage(Protocol, metaclass=_OfPillow):
    """An image of Pillow's, without importing Pillow."""

    @property
    def mode(self) -> str: ...

    info: dict[Any, Any]

    def getbands(self) -> tuple[str, ...]: ...


def pictures_of(name: str, value: Any) -> tuple[Iterator[Any], int | None, bool]:
    """The pictures, how many they are if that is known, and whether it is a single one."""
    single = isinstance(value, (str, bytes, bytearray, memoryview, os.PathLike, PillowImage))
    numbers = isinstance(value, np.ndarray) and value.dtype.kind not in "OU"
    if single or (numbers and value.ndim != 4):
        return iter([value]), 1, True
    found = iter(value) if numbers else ordered(value)
    if found is None:
        raise TypeError(f"{name} is {kind(value)}; wanted {_KINDS}, or several of them")
    return found, len(value) if hasattr(value, "__len__") else None, False


def decoded(
    name: str, pictures: Iterator[tuple[int, Any]], size: int
) -> Iterator[list[Pixels]]:
    """The pixels of at most `size` pictures at a time, which are given with their indices. While
    the caller computes some, a thread decodes the next; the iterator is read by the caller's."""
    from concurrent.futures import ThreadPoolExecutor

    waiting: list[tuple[int, Any]] = []

    def take() -> list[Pixels]:
        block: list[Pixels] = []
        while waiting and sum(pixels.nbytes for pixels in block) < _MOST_BYTES:
            index, picture = waiting.pop(0)
            block.append(pixels_of(f"{name}[{index}]", picture))
        return block

    with ThreadPoolExecutor(1) as pool:
        waiting += itertools.islice(pictures, size)
        block = take()
        while block:
            waiting += itertools.islice(pictures, size - len(waiting))
            try:
                ahead = pool.submit(take) if waiting else None
            except RuntimeError:  # there are no more threads, or the interpreter ends
                ahead = None
            yield block
            block = ahead.result() if ahead else take()


def pixels_of(name: str, value: Any) -> Pixels:
    if isinstance(value, np.ndarray):
        pixels = _of_array(name, value)
    elif isinstance(value, PillowImage):
        pixels = _decoded(name, lambda: _of_pillow(value))
    elif isinstance(value, (str, os.PathLike)):
        pixels = _of_file(name, _bytes_of(name, value))
    elif isinstance(value, (bytes, bytearray, memoryview)):
        pixels = _of_file(name, bytes(value))
    else:
        raise TypeError(f"{name} is {kind(value)}; wanted {_KINDS}")
    _core.check_image(pixels, name)
    return pixels


def _of_array(name: str, value: NDArray[Any]) -> Pixels:
    shape = value.shape
    if value.dtype != np.uint8 or not (len(shape) == 2 or shape[2:] in ((1,), (3,), (4,))):
        raise TypeError(
            f"{name} is {kind(value)}; wanted uint8 [height, width], or [height, width, 3 or 4]"
        )
    return np.ascontiguousarray(value if len(shape) == 3 else value[..., None])


def _of_pillow(image: Any) -> Pixels:
    """As convert_to_rgb of transformers: encore lays what is transparent on white."""
    if "A" in image.getbands() or image.info.get("transparency") is not None:
        return np.asarray(image.convert("RGBA"))
    return _opaque(image)


def _opaque(image: Any) -> Pixels:
    """RGB, or grey as it is."""
    pixels = np.asarray(image if image.mode == "L" else image.convert("RGB"))
    return pixels.reshape((*pixels.shape[:2], -1))


def _of_file(name: str, data: bytes) -> Pixels:
    """As load_image of transformers: turned as its EXIF data say, without what is transparent."""
    try:
        from PIL import Image, ImageOps  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ImportError(
            f"{name} is a picture's file, which needs Pillow, which is not installed (pip install "
            "pillow)"
        ) from error

    def read() -> Pixels:
        with Image.open(io.BytesIO(data)) as image:
            if image.format == "EPS":
                raise ValueError("EPS, which Pillow would give to another program")
            return _opaque(ImageOps.exif_transpose(image))

    return _decoded(name, read)


def _decoded(name: str, read: Any) -> Pixels:
    """What Pillow raises is of many kinds."""
    try:
        pixels: Pixels = read()
        return pixels
    except MemoryError:
        raise
    except Exception as error:
        said = type(error).__name__ if "BytesIO" in str(error) else shown(str(error), 200)
        raise ValueError(f"{name} cannot be decoded by Pillow: {said}; wanted a picture") from error


def _bytes_of(name: str, path: str | os.PathLike[str]) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        said = f"{name} is {shown(os.fspath(path), 300)}: {error.strerror}; wanted a picture's file"
        raise type(error)(said) from None
    except ValueError:
        raise ValueError(
            f"{name} is {shown(os.fspath(path), 300)}, which no file can be named; wanted a "
            "picture's file"
        ) from None
