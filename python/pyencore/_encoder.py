# SPDX-License-Identifier: Apache-2.0
"""Encoder: the engine itself, on arrays of token vectors."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyencore import _core
from pyencore._arguments import KnownAttributes
from pyencore._arrays import Floats, as_array, as_floats, mask_of, writable
from pyencore._inputs import check_compute, check_threads, checked, integer
from pyencore._opened import Compute, forget_threads_after_fork
from pyencore._safetensors import to_bytes


class Taps(NamedTuple):
    """What a pass computed on the way."""

    attention: list[list[Floats]]  # [layer][sequence]: [heads, tokens, tokens]
    hidden: list[Floats]  # [layer]: [tokens, d_model], before the final norm


class Encoder(KnownAttributes):
    """A stack of encoder layers with PyTorch's weights. Any number of threads may use it at once.

    weights: the state_dict() of a torch.nn.TransformerEncoder(Layer), as arrays or tensors, or the
    path of a safetensors file with those names. num_heads and activation are needed where the
    file's metadata lacks them. idle_spin is how many microseconds the threads look for the next
    call before they sleep; amx_bf16 takes Intel's AMX for bf16, whose bits are its own.
    """

    @checked
    def __init__(
        self,
        weights: Mapping[str, Any] | str | os.PathLike[str],
        *,
        num_heads: int | None = None,
        activation: str | None = None,
        norm_first: bool | None = None,
        layer_norm_eps: float | None = None,
        compute: Compute | None = None,
        keep: Collection[str] = (),
        threads: int = 0,
        idle_spin: int = 0,
        amx_bf16: bool = False,
    ) -> None:
        check_threads(threads)
        check_compute(compute)
        integer("idle_spin", idle_spin, 0, 2**31 - 1)
        if num_heads is not None:
            integer("num_heads", num_heads, 1)
        source = to_bytes(weights) if isinstance(weights, Mapping) else os.fspath(weights)
        self._core = _core.ArrayEncoder(
            source,
            num_heads,
            activation,
            norm_first,
            layer_norm_eps,
            compute,
            list(keep),
            threads,
            idle_spin,
            amx_bf16,
        )
        forget_threads_after_fork(self._core)

    @property
    def d_model(self) -> int:
        return self._core.d_model

    @property
    def num_layers(self) -> int:
        return self._core.num_layers

    @property
    def compute(self) -> str:
        return self._core.precision

    @property
    def packed_bytes(self) -> int:
        """Memory of the packed matrices."""
        return self._core.packed_bytes

    def __call__(self, x: Any, **options: Any) -> Any:
        return self.forward(x, **options)

    @checked
    def forward(
        self,
        x: Any,
        *,
        lengths: Sequence[int] | None = None,
        key_padding_mask: Any = None,
        attn_mask: Any = None,
        causal: bool = False,
        taps: bool = False,
        out: Any = None,
    ) -> Any:
        """y = encoder(x), or (y, Taps) with taps.

        x is [T, D], rows of sequences one after another (lengths; one sequence by default), or
        [B, S, D] with key_padding_mask [B, S] (true is padding, whose rows of y are 0). attn_mask
        [S, S] is boolean (true: may not be seen) or added to scores.
        """
        rows = as_floats("x", x)
        kept: NDArray[np.intp] | None = None
        positions: list[int] = []
        if rows.ndim == 3:
            batch, longest = rows.shape[:2]
            padding = np.zeros((batch, longest), bool)
            if key_padding_mask is not None:
                padding = as_array("key_padding_mask", key_padding_mask).astype(bool)
                if padding.shape != (batch, longest):
                    raise ValueError(
                        f"key_padding_mask is {list(padding.shape)}; wanted {[batch, longest]}"
                    )
            kept = np.flatnonzero(~padding)
            lengths = (~padding).sum(axis=1).tolist()
            positions = (kept % longest).tolist() if attn_mask is not None else []
            packed = np.ascontiguousarray(rows.reshape(batch * longest, -1)[kept])
        elif rows.ndim == 2:
            if key_padding_mask is not None:
                raise ValueError("found key_padding_mask with x [T, D]; wanted x [B, S, D]")
            packed = np.ascontiguousarray(rows)
            lengths = [len(rows)] if lengths is None else list(lengths)
        else:
            raise ValueError(f"x is {list(rows.shape)}; wanted [T, D] or [B, S, D]")
        starts = np.concatenate(([0], np.cumsum(lengths, dtype=np.int64))).tolist()

        direct = out is not None and kept is None
        y = writable(out, packed.shape, np.float32) if direct else np.empty_like(packed)
        blocked, additive = mask_of("attn_mask", attn_mask)
        found = self._taps(lengths, packed.shape) if taps else Taps([], [])
        flat = [weights for layer in found.attention for weights in layer]
        self._core.forward(
            packed, starts, positions, causal, blocked, additive, y, flat, found.hidden
        )
        result: Any = y
        if kept is not None:
            padded = np.zeros((rows.shape[0] * rows.shape[1], rows.shape[2]), np.float32)
            padded[kept] = y
            result = padded.reshape(rows.shape)
            if out is not None:
                writable(out, rows.shape, np.float32)[...] = result
        if out is not None:
            result = out
        return (result, found) if taps else result

    def _taps(self, lengths: Sequence[int], shape: tuple[int, ...]) -> Taps:
        heads = self._core.num_heads
        return Taps(
            [
                [np.empty((heads, n, n), np.float32) for n in lengths]
                for _ in range(self.num_layers)
            ],
            [np.empty(shape, np.float32) for _ in range(self.num_layers)],
        )

    def __reduce__(self) -> Any:
        raise TypeError(
            "an Encoder cannot be pickled, as it has no copy of its weights; make it again"
        )
