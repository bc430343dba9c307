# SPDX-License-Identifier: Apache-2.0
"""Pictures in every form to the same bits, mixed with texts, and beside `encore embed --images`;
and what is no picture, refused."""

from __future__ import annotations

import io
import json
import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, FOLDERS, ROOT, has
from numpy.typing import NDArray

import pyencore
from pyencore import CallStats, ImageEncoder, TextEncoder

needs_pillow = pytest.mark.skipif(not has("PIL"), reason="Pillow is not installed")
CLIP = FOLDERS["ImageEncoder"]
ENCORE = os.environ.get("ENCORE")

RNG = np.random.default_rng(7)
RGB = RNG.integers(0, 256, (45, 64, 3), np.uint8)
GREY = np.ascontiguousarray(RGB[..., 0])
RGBA = np.dstack([RGB, RNG.integers(0, 256, (45, 64), np.uint8)])


@pytest.fixture(scope="module")
def model() -> ImageEncoder:
    return ImageEncoder(CLIP, threads=2)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of CLIP with a tokenizer and a processor."""
    folder = tmp_path_factory.mktemp("clip") / "both"
    shutil.copytree(DATA / "sentences" / "clip", folder)
    processor = json.loads((CLIP / "preprocessor_config.json").read_text("utf-8"))
    processor |= {"size": {"shortest_edge": 9}, "crop_size": {"height": 8, "width": 8}}
    path = folder / "0_CLIPModel" / "preprocessor_config.json"
    path.write_text(json.dumps(processor), "utf-8")
    return folder


def pillow(pixels: NDArray[np.uint8]) -> Any:
    from PIL import Image

    return Image.fromarray(pixels)


def file_of(image: Any, kind: str, **options: Any) -> bytes:
    data = io.BytesIO()
    image.save(data, kind, **options)
    return data.getvalue()


@needs_pillow
@pytest.mark.parametrize("pixels", [RGB, GREY])
def test_one_picture_in_every_form(
    model: ImageEncoder, pixels: NDArray[np.uint8], tmp_path: Path
) -> None:
    wanted = model.encode(pixels)
    assert wanted.shape == (model.dimension,) and wanted.dtype == np.float32
    path = tmp_path / "a picture.png"
    image = pillow(pixels)
    data = file_of(image, "png")
    path.write_bytes(data)
    wide = np.zeros((45, 2 * 64, *pixels.shape[2:]), np.uint8)
    wide[:, ::2] = pixels
    forms = [str(path), path, data, bytearray(data), memoryview(data), image, wide[:, ::2]]
    forms += [image.convert("RGB"), np.broadcast_to(np.atleast_3d(pixels), RGB.shape)]
    for form in forms:
        assert np.array_equal(model.encode(form), wanted)
    rows = model.encode(forms)
    assert rows.shape == (len(forms), model.dimension)
    assert all(np.array_equal(row, wanted) for row in rows)
    several: list[Any] = [(form for form in forms), tuple(forms), np.array([forms, 0], object)[0]]
    for inputs in several:
        assert np.array_equal(model.encode(inputs), rows)
    four = np.stack([forms[-1]] * 2)
    assert np.array_equal(model.encode(four), rows[:2])


@needs_pillow
def test_what_is_transparent_and_turned(model: ImageEncoder) -> None:
    """Images of Pillow's as convert_to_rgb has them, files as load_image."""
    from PIL import Image, ImageOps

    alpha = pillow(RGBA)
    assert np.array_equal(model.encode(alpha), model.encode(RGBA))
    assert np.array_equal(model.encode(file_of(alpha, "png")), model.encode(RGB))
    white = Image.new("RGBA", alpha.size, (255, 255, 255, 255))
    laid = Image.alpha_composite(white, alpha).convert("RGB")
    assert np.array_equal(model.encode(alpha), model.encode(laid))
    palette = pillow(RGB).convert("P")
    palette.info["transparency"] = 3
    grey = pillow(GREY).convert("LA")
    for image in (palette, grey):
        wanted = model.encode(np.asarray(image.convert("RGBA")))
        assert np.array_equal(model.encode(image), wanted)
    others = [pillow(RGB).convert(mode) for mode in ("P", "1", "CMYK", "YCbCr", "F", "I")]
    for image in [*others, Image.fromarray(GREY.astype(np.uint16) * 257)]:
        assert np.array_equal(model.encode(image), model.encode(image.convert("RGB")))
    exif = Image.Exif()
    for orientation in range(1, 9):
        exif[0x112] = orientation
        data = file_of(pillow(RGB), "png", exif=exif)
        image = Image.open(io.BytesIO(data))
        assert np.array_equal(model.encode(image), model.encode(RGB))
        assert np.array_equal(model.encode(data), model.encode(ImageOps.exif_transpose(image)))


def pictures(count: int) -> Iterator[NDArray[np.uint8]]:
    for i in range(count):
        yield RGB[: 3 + i % 40, : 5 + i]


def test_batches(model: ImageEncoder) -> None:
    wanted = np.stack([model.encode(picture) for picture in pictures(40)])
    for size in (1, 7, None, 64):
        seen: list[tuple[int, ...]] = []
        stats = CallStats()
        found = model.encode(list(pictures(40)), batch_size=size, stats=stats,
                             progress=lambda *done: seen.append(done))  # fmt: skip
        assert np.array_equal(found, wanted)
        assert stats.texts == 40 and seen[-1][:2] == (40, 40)
        assert np.array_equal(model.encode(pictures(40), batch_size=size), wanted)
    order = model.encode(reversed(list(pictures(40))))
    assert np.array_equal(order[::-1], wanted)
    assert np.array_equal(pickle.loads(pickle.dumps(model)).encode(list(pictures(40))), wanted)


def test_settings(model: ImageEncoder, tmp_path: Path) -> None:
    rows = model.encode([RGB, GREY])
    unit = model.encode([RGB, GREY], normalize_embeddings=True)
    assert np.allclose(np.linalg.norm(unit, axis=1), 1) and not np.array_equal(unit, rows)
    assert np.array_equal(ImageEncoder(CLIP, normalize=True).encode([RGB, GREY]), unit)
    assert np.array_equal(model.encode(RGB, truncate_dim=5), rows[0, :5])
    assert ImageEncoder(CLIP, truncate_dim=5).dimension == 5
    out = np.empty_like(rows)
    assert model.encode([RGB, GREY], out=out) is out and np.array_equal(out, rows)
    one = np.empty(model.dimension, np.float32)
    assert model.encode(RGB, out=one) is one and np.array_equal(one, rows[0])
    small = model.encode([RGB, GREY], precision="ubinary")
    assert np.array_equal(small, pyencore.quantize_embeddings(rows, "ubinary"))
    assert model.encode([]).shape == (0,) and model.encode(iter([])).shape == (0, rows.shape[1])
    assert model.similarity(rows, rows).shape == (2, 2)
    assert model.similarity_pairwise(rows, rows) == pytest.approx([1, 1])
    assert model.size == (32, 32)
    cached = [ImageEncoder(CLIP, compute="int8", cache=tmp_path).encode(RGB) for _ in range(2)]
    assert np.array_equal(*cached) and not np.array_equal(cached[0], rows[0])
    patches = model.encode_patches(RGB)
    assert patches.vectors.shape == (1 + 16, 32) and patches[1:] == (1, 4, 4)


@needs_pillow
def test_texts_and_pictures(both: Path) -> None:
    images, texts = ImageEncoder(both), TextEncoder(both)
    first, second = pillow(RGB), pillow(RGBA)
    wanted = [texts.encode("a cat"), images.encode(first), texts.encode(""), images.encode(second)]
    mixed = ["a cat", first, "", second]
    for inputs in (mixed, tuple(mixed), iter(mixed)):
        assert np.array_equal(texts.encode(inputs), wanted)
    assert np.array_equal(texts.encode([first, second]), wanted[1::2])
    assert np.array_equal(texts.encode(first), wanted[1])
    assert np.array_equal(texts.encode_query(first, truncate_dim=3), wanted[1][:3])
    unit = texts.encode(mixed, normalize_embeddings=True, out=np.empty_like(wanted))
    assert np.allclose(np.linalg.norm(unit, axis=1), 1)
    assert np.array_equal(unit[1], images.encode(first, normalize_embeddings=True))
    plain = TextEncoder(both, normalize=False)
    assert np.array_equal(plain.encode(first), ImageEncoder(both, normalize=False).encode(first))
    assert np.array_equal(pickle.loads(pickle.dumps(texts)).encode(mixed), wanted)
    with pytest.raises(TypeError, match=r"inputs\[1\] is of type ndarray; wanted str"):
        texts.encode(["a cat", RGB])
    with pytest.raises(TypeError, match="inputs is of type Image; wanted str"):
        texts.encode(first, output_value="token_embeddings")
    with pytest.raises((OSError, NotImplementedError, ValueError), match="processor|pictures"):
        TextEncoder(FOLDERS["TextEncoder"]).encode([first])


@needs_pillow
@pytest.mark.parametrize(
    ("images", "kind", "words"),
    [
        (3, TypeError, r"images is of type int; wanted a path, bytes, an image of Pillow's or an"),
        ({"a": RGB}, TypeError, "images is of type dict; .* or several of them"),
        ([RGB, None], TypeError, r"images\[1\] is of type NoneType; wanted a path"),
        (RGB / 255, TypeError, r"images is an array of float64 \[45, 64, 3\]; wanted uint8 \[hei"),
        (RGB[..., :2], TypeError, r"images is an array of uint8 \[45, 64, 2\]; wanted"),
        (np.empty((0, 5, 3), np.uint8), ValueError, "images: .*5 x 0 pixels.*; wanted edges of 1"),
        ([RGB] * 40 + ["no.png"], FileNotFoundError, r"images\[40\] is 'no.png': No such file"),
        ("a\0b", ValueError, "images is .*, which no file can be named"),
        ("/", IsADirectoryError, "images is '/': Is a directory; wanted a picture's file"),
        ([b""], ValueError, r"images\[0\] cannot be decoded by Pillow: Unidentified.*wanted a pic"),
        (b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\n%%EndComments\n", ValueError, "EPS, "),
    ],
)
def test_what_is_no_picture(
    model: ImageEncoder, images: Any, kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        model.encode(images)


@needs_pillow
def test_damaged_and_huge_files(model: ImageEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    from PIL import Image

    data = file_of(pillow(RGB), "png")
    for cut in (data[:50], data[:-200], data[:100] + b"\xff" * 9 + data[109:]):
        with pytest.raises(ValueError, match="images cannot be decoded by Pillow: .*; wanted a pi"):
            model.encode(cut)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match="images cannot be decoded by Pillow: .*bomb"):
        model.encode(data)


def test_without_pillow(model: ImageEncoder, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = model.encode(RGB)
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert np.array_equal(model.encode(RGB), wanted)
    with pytest.raises(ImportError, match=r"images is a picture's file, .* Pillow, .*\(pip"):
        model.encode(b"a")


@needs_pillow
@pytest.mark.skipif(not ENCORE, reason="ENCORE names no encore command")
def test_the_command_has_the_same_bits(model: ImageEncoder, tmp_path: Path) -> None:
    folder = tmp_path / "pictures"
    folder.mkdir()
    for i, pixels in enumerate([RGB, GREY, RGBA]):
        (folder / f"{i}.png").write_bytes(file_of(pillow(pixels), "png"))
    (folder / "3.jpg").write_bytes(file_of(pillow(RGB), "jpeg"))
    program = ENCORE if os.path.isabs(ENCORE or "") else str(ROOT / (ENCORE or ""))
    command = [program, "embed", "--model", str(CLIP), "--images", "--input", str(folder)]
    command += ["--output", str(tmp_path / "v.npy")]
    run = subprocess.run(command, capture_output=True, text=True, timeout=60)
    if "without the library that reads it" in run.stderr:
        pytest.skip(run.stderr)
    assert run.returncode == 0, run.stderr
    assert np.array_equal(np.load(tmp_path / "v.npy"), model.encode(sorted(folder.iterdir())))
