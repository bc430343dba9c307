# SPDX-License-Identifier: Apache-2.0
"""Arrays in and out: lists, numpy, torch and whatever else speaks DLPack."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

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


def is_tensor(value: Any) -> bool:
    """Whether it is torch's, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def as_array(value: Any) -> NDArray[Any]:
    """A numpy array of lists, of tensors, or of lists of either."""
    if is_tensor(value):
        return np.asarray(value.detach().cpu())
    if isinstance(value, (list, tuple)) and value and is_tensor(value[0]):
        return np.stack([as_array(row) for row in value])
    return np.asarray(value)


def as_floats(value: Any) -> Floats:
    array = as_array(value)
    return array if array.dtype == np.float32 else array.astype(np.float32)


def writable(out: Any, shape: tuple[int, ...], dtype: Any) -> NDArray[Any]:
    """The caller's memory as an array, refused if it is of another shape or type."""
    array = out if isinstance(out, np.ndarray) else np.from_dlpack(out)
    if array.shape != shape or array.dtype != dtype or not array.flags.writeable:
        raise ValueError(
            f"out is {'' if array.flags.writeable else 'read-only '}{array.dtype} "
            f"{list(array.shape)}; wanted {np.dtype(dtype)} {list(shape)}"
        )
    return array
