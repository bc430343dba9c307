# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: lists, numpy, torch and whatever else speaks DLPack."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from pyencore._inputs import is_tensor, kind

Floats = NDArray[np.float32]


def torch_module(why: str) -> Any:
    """torch, or one sentence that says what to install."""
    try:
        import torch  # type: ignore[import-not-found, unused-ignore]
    except ImportError as error:
        raise ImportError(
            f"{why} needs torch, which is not installed (pip install torch)"
        ) from error
    return torch


def as_array(name: str, value: Any) -> NDArray[Any]:
    """A numpy array of lists of numbers, of tensors, or of lists of either."""
    try:
        array = _array_of(value)
    except (AttributeError, IndexError, TypeError, ValueError, RuntimeError):
        array = np.empty(0, object)
    if array.dtype.kind not in "biuf" and not _is_small_float(array.dtype):
        rows = isinstance(value, (list, tuple)) and array.dtype.kind == "O"
        also = ", whose elements differ in kind or shape or are no numbers" if rows else ""
        raise TypeError(f"{name} is {kind(value)}{also}; wanted an array of numbers")
    return array


def _array_of(value: Any) -> NDArray[Any]:
    if is_tensor(value):
        tensor = value.detach().cpu()
        if str(tensor.layout) != "torch.strided":
            tensor = tensor.to_dense()
        return np.asarray(tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor)
    if isinstance(value, (list, tuple)) and value and is_tensor(value[0]):
        return np.stack([_array_of(row) for row in value])
    return np.asarray(value)


def _is_small_float(dtype: np.dtype[Any]) -> bool:
    """Of ml_dtypes."""
    return dtype.kind == "V" and dtype.name.startswith(("bfloat16", "float8"))


def as_floats(name: str, value: Any) -> Floats:
    array = as_array(name, value)
    return array if array.dtype == np.float32 else array.astype(np.float32)


def maybe_floats(name: str, value: Any) -> Floats | None:
    return None if value is None else as_floats(name, value)


def mask_of(name: str, value: Any) -> tuple[NDArray[Any] | None, Floats | None]:
    """A mask of booleans, or numbers that are added; neither of None."""
    if value is None:
        return None, None
    mask = as_array(name, value)
    return (mask, None) if mask.dtype == bool else (None, as_floats(name, mask))


def writable(out: Any, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """The caller's memory as an array, refused if it is of another shape or type."""
    wanted = f"{np.dtype(dtype)} {list(shape)}"
    try:
        array = out if isinstance(out, np.ndarray) else np.from_dlpack(out)
    except (AttributeError, BufferError, RuntimeError, TypeError, ValueError) as error:
        if hasattr(out, "__dlpack__"):
            raise ValueError(f"out has no memory to write to ({error}); wanted {wanted}") from error
        raise TypeError(f"out is {kind(out)}; wanted an array of {wanted}") from None
    if array.shape != shape or array.dtype != dtype or not array.flags.writeable:
        raise ValueError(
            f"out is {'' if array.flags.writeable else 'read-only '}{array.dtype} "
            f"{list(array.shape)}; wanted {wanted}"
        )
    return array
