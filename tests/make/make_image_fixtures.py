#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Makes tests/data/images: what Pillow resizes pictures to, and what transformers' processors on
Pillow make of pictures, as CRC-32 sums; and files of pictures. Needs Pillow 13.0, transformers
5.23.0, numpy, torch 2.15.0 and torchvision. DINOv3's processor, which is on torchvision alone,
computes without FMA, as torch's bits go by the CPU otherwise.

    tests/make/make_image_fixtures.py            writes the files
    tests/make/make_image_fixtures.py --check    makes them again and compares

A picture is not stored: its bytes [height, width, channels] are the 32-bit outputs of a Mersenne
Twister, lowest byte first. Every third picture is darker at one side, and every third is black and
white, which is where sums leave 0 .. 255.
"""
import argparse
import base64
import io
import json
import os
import pathlib
import random
import struct
import sys
import tempfile
import zlib

os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.setdefault("ATEN_CPU_CAPABILITY", "default")  # of torch: without FMA

import numpy as np  # noqa: E402
from PIL import Image  # noqa: E402

from made_files import require  # noqa: E402

DATA = pathlib.Path(__file__).resolve().parents[1] / "data" / "images"
VERSIONS = {"pillow": "13.0", "transformers": "5.23.0"}
FILTERS = 6
EDGES = [1, 2, 3, 7, 16, 17, 31, 64, 65, 100, 223, 224, 225, 300, 511, 640]


def picture(seed, height, width, channels):
    """uint8 [height, width, channels]; tests/support/drawn_picture.h draws the same."""
    count = height * width * channels
    values = np.frombuffer(np.random.RandomState(seed).bytes(count), np.uint8)
    if seed % 3 == 1:
        values = (values.astype(np.uint32) * (np.arange(count) % 256) // 255).astype(np.uint8)
    elif seed % 3 == 2:
        values = np.where(values < 128, 0, 255).astype(np.uint8)
    return values.reshape(height, width, channels)


def pillow_image(array):
    return Image.fromarray(array[:, :, 0] if array.shape[2] == 1 else array)


def resized(array, height, width, resample):
    """RGB [height, width, 3] by Pillow of a picture of 1 or 3 channels."""
    image = pillow_image(array).resize((width, height), resample=resample)
    return np.array(image.convert("RGB"))


def resample_cases():
    """[seed, height, width, channels, to height, to width, filter, crc]."""
    draw = random.Random(1)
    cases = []
    for seed in range(360):
        height, width, to_height, to_width = (draw.choice(EDGES) for _ in range(4))
        if seed % 7 == 0:
            to_height = height
        if seed % 11 == 0:
            to_width = width
        channels = draw.choice([1, 3, 3])
        resample = seed % FILTERS
        made = resized(picture(seed, height, width, channels), height=to_height, width=to_width,
                       resample=resample)
        cases.append([seed, height, width, channels, to_height, to_width, resample,
                      zlib.crc32(made.tobytes())])
    return cases


# preprocessor_config.json in the spellings of published folders, and others that processors take.
CONFIGS = {
    "clip as first published": {
        "crop_size": 224, "do_center_crop": True, "do_normalize": True, "do_resize": True,
        "feature_extractor_type": "CLIPFeatureExtractor",
        "image_mean": [0.48145466, 0.4578275, 0.40821073],
        "image_std": [0.26862954, 0.26130258, 0.27577711], "resample": 3, "size": 224},
    "clip of its defaults": {"image_processor_type": "CLIPImageProcessor"},
    "clip, fast": {"image_processor_type": "CLIPImageProcessorFast", "size": {"shortest_edge": 64},
                   "crop_size": {"height": 56, "width": 48}, "do_center_crop": True,
                   "data_format": "channels_first", "device": None, "resample": 1},
    "clip, square": {"image_processor_type": "CLIPImageProcessor", "use_square_size": True},
    "clip, padded": {"image_processor_type": "CLIPImageProcessor", "size": {"shortest_edge": 31},
                     "crop_size": 64},
    "clip, limited": {"image_processor_type": "CLIPImageProcessor", "crop_size": 48,
                      "size": {"shortest_edge": 60, "longest_edge": 83}},
    "clip, within": {"image_processor_type": "CLIPImageProcessor", "crop_size": 48,
                     "size": {"max_height": 60, "max_width": 50}},
    "clip, kept": {"image_processor_type": "CLIPImageProcessor", "do_resize": False,
                   "crop_size": [101, 75]},
    "siglip": {"do_normalize": True, "do_rescale": True, "do_resize": True,
               "image_mean": [0.5, 0.5, 0.5], "image_processor_type": "SiglipImageProcessor",
               "image_std": [0.5, 0.5, 0.5], "processor_class": "SiglipProcessor", "resample": 3,
               "rescale_factor": 0.00392156862745098, "size": {"height": 96, "width": 96}},
    "siglip of its defaults": {"image_processor_type": "SiglipImageProcessor"},
    "vit": {"do_normalize": True, "do_resize": True, "image_mean": [0.5, 0.5, 0.5],
            "image_std": [0.5, 0.5, 0.5], "resample": 2, "size": 224,
            "feature_extractor_type": "ViTFeatureExtractor"},
    "vit, other": {"image_processor_type": "ViTImageProcessor", "size": [40, 56], "resample": 0,
                   "image_mean": 0.25, "image_std": [0.2, 0.3, 0.7]},
    "vit, plain": {"image_processor_type": "ViTImageProcessor", "do_normalize": False, "size": 33,
                   "resample": 5},
    "vit, bytes": {"image_processor_type": "ViTImageProcessor", "do_rescale": False, "size": 33,
                   "image_mean": [1, 2, 3], "image_std": [100, 200, 300], "resample": 4},
    "deit": {"crop_size": 224, "do_center_crop": True, "do_normalize": True, "do_resize": True,
             "feature_extractor_type": "DeiTFeatureExtractor",
             "image_mean": [0.485, 0.456, 0.406], "image_std": [0.229, 0.224, 0.225],
             "resample": 3, "size": 256},
    "dinov2": {"crop_size": {"height": 224, "width": 224}, "do_center_crop": True,
               "do_convert_rgb": True, "do_normalize": True, "do_rescale": True, "do_resize": True,
               "image_mean": [0.485, 0.456, 0.406], "image_processor_type": "BitImageProcessor",
               "image_std": [0.229, 0.224, 0.225], "resample": 3,
               "rescale_factor": 0.00392156862745098, "size": {"shortest_edge": 256}},
    "dinov3": {"crop_size": None, "default_to_square": True, "device": None,
               "do_center_crop": None, "do_convert_rgb": None, "do_normalize": True,
               "do_rescale": True, "do_resize": True, "image_mean": [0.485, 0.456, 0.406],
               "image_processor_type": "DINOv3ViTImageProcessorFast",
               "image_std": [0.229, 0.224, 0.225], "resample": 2,
               "rescale_factor": 0.00392156862745098, "return_tensors": None,
               "size": {"height": 224, "width": 224}},
    "dinov3, bicubic": {"image_processor_type": "DINOv3ViTImageProcessor", "resample": 3,
                        "size": {"height": 90, "width": 91}, "do_normalize": False},
    "dinov3, as its type says": {"image_processor_type": "DINOv3ViTImageProcessor", "size": 64,
                                 "rescale_factor": 0.01},
    "convnext": {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 112},
                 "crop_pct": 0.875},
    "convnext, large": {"image_processor_type": "ConvNextImageProcessor", "size": 384},
}
PICTURES = [(480, 640, 3), (333, 100, 3), (5, 900, 3), (64, 64, 4), (1, 1, 3), (224, 224, 1),
            (90, 91, 4), (700, 700, 3)]


def processor_cases():
    """Of each configuration: output, and of each picture the CRC of pixel_values, f32 [3, h, w],
    or null where an edge would become 0."""
    from transformers import AutoImageProcessor
    cases = []
    for name, config in CONFIGS.items():
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "preprocessor_config.json").write_text(json.dumps(config))
            processor = AutoImageProcessor.from_pretrained(folder, backend="pil")
        sums = []
        for seed, shape in enumerate(PICTURES, start=1000):
            array = picture(seed, *shape)
            if array.shape[2] == 1 or not processor.do_convert_rgb or "dinov3" in name:
                # What load_image makes of grey pictures; others with an alpha are refused there.
                array = np.array(convert(array))
            try:
                values = processor(array, input_data_format="channels_last")
            except ValueError:  # resized to nothing
                sums.append(None)
                continue
            values = np.asarray(values["pixel_values"][0], np.float32)
            sums.append(zlib.crc32(values.tobytes()))
        cases.append({"name": name, "config": config, "output": list(values.shape[1:]),
                      "crc": sums})
    return {"pictures": PICTURES, "cases": cases}


def png_file(height, width, depth, colour, rows, *chunks):
    """A PNG of kinds that Pillow does not write."""
    def chunk(name, data):
        return (struct.pack(">I", len(data)) + name + data +
                struct.pack(">I", zlib.crc32(name + data)))
    header = struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)
    data = zlib.compress(b"".join(b"\0" + row for row in rows))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) +
            b"".join(chunk(name, content) for name, content in chunks) +
            chunk(b"IDAT", data) + chunk(b"IEND", b""))


def image_files():
    """Files by name: each kind that load_image of transformers reads by itself."""
    smooth = np.add.outer(np.arange(14) * 9, np.arange(20) * 6)[:, :, None] + [0, 40, 90]
    colour = Image.fromarray((smooth % 256).astype(np.uint8))
    alpha = Image.fromarray(picture(6, 14, 20, 1)[:, :, 0])
    grey = colour.convert("L")
    palette = colour.quantize(13)
    rgba = colour.copy()
    rgba.putalpha(alpha)
    wide = picture(9, 14, 20, 2)
    files = {
        "rgb.png": (colour, {}), "rgba.png": (rgba, {}), "grey.png": (grey, {}),
        "grey_alpha.png": (rgba.convert("LA"), {}), "palette.png": (palette, {}),
        "palette_clear.png": (palette, {"transparency": 3}),
        "bit.png": (grey.point(lambda x: 255 * (x > 99)).convert("1"), {}),
        "grey16.png": (Image.fromarray(wide.reshape(14, 40).view(np.uint16) // 200), {}),
        "rgb.jpg": (colour, {"quality": 90}), "full.jpg": (colour, {"subsampling": 0}),
        "grey.jpg": (grey, {}), "cmyk.jpg": (colour.convert("CMYK"), {}),
        "progressive.jpg": (colour, {"progressive": True}),
        "rgb.webp": (colour, {}), "lossless.webp": (colour, {"lossless": True}),
        "rgba.webp": (rgba, {"lossless": True}),
    }
    for name in ("rgb.png", "rgb.webp", *[f"rgb.{i}.jpg" for i in range(2, 9)]):
        exif = Image.Exif()
        exif[0x010E] = "before it"
        exif[0x0112] = int(name.split(".")[1]) if name.endswith("jpg") else 6
        files["turned." + name] = (colour, {"exif": exif})
    made = {}
    for name, (image, options) in files.items():
        stream = io.BytesIO()
        kind = {"png": "png", "jpg": "jpeg", "webp": "webp"}[name.split(".")[-1]]
        image.save(stream, kind, **options)
        made[name] = stream.getvalue()
    rows16 = picture(12, 5, 7 * 6, 1).reshape(5, -1)
    made["rgb16.png"] = png_file(5, 7, 16, 2, [row.tobytes() for row in rows16])
    made["grey2.png"] = png_file(5, 7, 2, 0, [row[:2].tobytes() for row in rows16])
    return made


def file_cases():
    """Of each file: [its bytes in base64, height, width, crc of its RGB pixels]."""
    from transformers.image_utils import load_image
    cases = {}
    for name, content in image_files().items():
        with tempfile.NamedTemporaryFile(suffix=name) as file:
            file.write(content)
            file.flush()
            array = np.array(load_image(file.name))
        cases[name] = [base64.b64encode(content).decode(), *array.shape[:2],
                       zlib.crc32(array.tobytes())]
    return cases


def convert(array):
    from transformers.image_transforms import convert_to_rgb
    return convert_to_rgb(pillow_image(array), return_numpy=True)


def lines(cases):
    return "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--check", action="store_true", help="compare with the files instead")
    check = parser.parse_args().check
    require(VERSIONS)
    processors = processor_cases()
    made = {"resample.json": lines(resample_cases()),
            "processors.json": '{"pictures": ' + json.dumps(processors["pictures"]) +
                               ',\n"cases": ' + lines(processors["cases"])[:-1] + "}\n",
            "files.json": lines(sorted(file_cases().items()))}
    different = False
    DATA.mkdir(exist_ok=True)
    for name, text in made.items():
        if not check:
            (DATA / name).write_text(text)
        elif (DATA / name).read_text() != text:
            print(f"{DATA / name} is not what Pillow and transformers make", file=sys.stderr)
            different = True
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
