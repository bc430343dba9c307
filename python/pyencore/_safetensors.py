# SPDX-License-Identifier: Apache-2.0
"""A state_dict as the bytes of a safetensors file, which encore reads in place."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from pyencore._arrays import as_array
from pyencore._inputs import is_tensor

_NAMES = {
    "float64": "F64",
    "float32": "F32",
    "float16": "F16",
    "int8": "I8",
    "bfloat16": "BF16",
}


def _name_and_bytes(key: str, value: Any) -> tuple[str, list[int], bytes]:
    if is_tensor(value):
        tensor = value.detach().cpu().contiguous()
        kind = str(tensor.dtype).removeprefix("torch.")
        if kind == "bfloat16":
            import torch  # type: ignore[import-not-found, unused-ignore]

            tensor = tensor.view(torch.int16)
        array = tensor.numpy()
    else:
        array = np.ascontiguousarray(as_array(f"weights[{key!r}]", value))
        kind = str(array.dtype)
    if kind not in _NAMES:
        raise ValueError(f"{key} is of type {kind}; wanted one of {', '.join(_NAMES)}")
    return _NAMES[kind], list(np.shape(value)), array.tobytes()


def to_bytes(state_dict: Mapping[str, Any]) -> bytes:
    header: dict[str, Any] = {}
    parts: list[bytes] = []
    offset = 0
    for key, value in state_dict.items():
        kind, shape, data = _name_and_bytes(key, value)
        header[key] = {"dtype": kind, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        parts.append(data)
        offset += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text + b"".join(parts)
