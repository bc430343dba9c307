# SPDX-License-Identifier: Apache-2.0
"""ImageEncoder: pictures to vectors, as sentence_transformers.SentenceTransformer makes them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator
from enum import Enum
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pyencore import _core, _similarity
from pyencore._arguments import FOLDER_NAMES, renamed
from pyencore._call import Call, CallStats, Progress
from pyencore._images import decoded, pictures_of, pixels_of
from pyencore._inputs import checked, integer
from pyencore._opened import Compute, Opened, check_batch_size, check_device
from pyencore._quantize import Precision
from pyencore._vectors import Vectors, checked_precision, converted

# Pictures that are decoded together.
BLOCK = 32


class PatchVectors(NamedTuple):
    """The last states of a picture: vectors [tokens, d_model], of which the first patch's is that
    of first_patch, and the others follow from the top, row by row, [rows, columns] in all."""

    vectors: NDArray[np.float32]
    first_patch: int
    rows: int
    columns: int


class Pictures(Opened):
    """A model of pictures."""

    _core_class = _core.ImageModel
    _organization = None

    @property
    def size(self) -> tuple[int, int]:
        """Height and width of pictures once they are processed."""
        return self._core.size

    @checked
    def prepare(self, max_images: int) -> None:
        """Makes the next call, of up to so many pictures, as fast as later ones, but for the memory
        that large ones are resized in."""
        self._core.prepare(integer("max_images", max_images, 1))


class ImageEncoder(Pictures, Vectors):
    """A folder of CLIP, SigLIP, ViT, DINOv2 and the like, or a name on the Hugging Face hub, opened
    for pictures.

    The arguments are those of TextEncoder. Vectors of CLIP and SigLIP are in the space of those
    that TextEncoder makes of texts from the same folder.
    """

    @renamed(**FOLDER_NAMES)
    @checked
    def __init__(
        self,
        model_name_or_path: str | os.PathLike[str],
        *,
        compute: Compute | None = None,
        threads: int = 0,
        keep: Collection[str] = (),
        normalize: bool | None = None,
        ignore_unknown_keys: bool = False,
        cache: str | os.PathLike[str] | None = None,
        compare_cache: bool = False,
        trust_cache: bool = False,
        device: Any = None,
        cache_folder: str | os.PathLike[str] | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        token: str | bool | None = None,
        similarity_fn_name: _similarity.SimilarityName | Enum | None = None,
        truncate_dim: int | None = None,
        **others: Any,
    ) -> None:
        self._open(locals())

    @renamed(inputs="images", sentences="images")
    @checked
    def encode(
        self,
        images: Any,
        batch_size: int | None = None,
        show_progress_bar: bool | None = None,
        precision: Precision | None = "float32",
        convert_to_numpy: bool = True,
        convert_to_tensor: bool = False,
        device: Any = None,
        normalize_embeddings: bool = False,
        truncate_dim: int | None = None,
        *,
        out: Any = None,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        progress: Progress | None = None,
        stats: CallStats | None = None,
    ) -> Any:
        """The vector of a picture, or the matrix of a list's or an iterator's.

        A picture is a path or bytes of a file, which Pillow decodes and which is turned as its EXIF
        data say (load_image of transformers); an image of Pillow's as it is; or an array of uint8
        [height, width], or [height, width, 3 or 4]. What is transparent is laid on white, but in
        files left out. batch_size is how many are decoded at once, 32 if it is not given: a
        picture's bits do not depend on it. The other arguments are those of TextEncoder.encode.
        """
        call = Call(cancel, deadline, background, progress, stats)
        check_batch_size(batch_size)
        check_device(device)
        precision = checked_precision(precision)
        pictures, count, single = pictures_of("images", images)
        normalize = True if normalize_embeddings else None
        width = self._width(truncate_dim)
        with call.seen(show_progress_bar, count, unit="image") as watch:
            if single:
                pixels = [pixels_of("images", next(pictures))]
                vectors = self._core.encode(pixels, normalize, width, watch)
            else:
                numbered = enumerate(pictures)
                vectors = self._rows("images", numbered, width, normalize, watch, batch_size)
        if single:
            result = self._finish_one(vectors, precision, out)
        elif count == 0 and out is None:
            result = np.array([])  # as TextEncoder
        else:
            result = self._finish(vectors, precision, out)
        return converted(result, convert_to_numpy, convert_to_tensor) if out is None else out

    @checked
    def encode_patches(
        self,
        image: Any,
        *,
        cancel: Any = None,
        deadline: float | None = None,
        background: bool = False,
        stats: CallStats | None = None,
    ) -> PatchVectors:
        """What transformers calls last_hidden_state, of one picture."""
        call = Call(cancel, deadline, background, None, stats)
        with call.seen(False, 1) as watch:
            return PatchVectors(*self._core.encode_patches(pixels_of("image", image), watch))

    def _rows(
        self,
        name: str,
        pictures: Iterator[tuple[int, Any]],
        width: int,
        normalize: bool | None,
        watch: Any,
        batch_size: int | None = None,
    ) -> NDArray[np.float32]:
        blocks = [
            self._core.encode(block, normalize, width, watch)
            for block in decoded(name, pictures, batch_size or BLOCK)
        ]
        return np.concatenate(blocks) if blocks else np.empty((0, width), np.float32)
