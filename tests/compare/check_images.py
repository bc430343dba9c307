#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that encore's image processors give the pixels of transformers 5.23 on Pillow 13, and of
DINOv3's on torch 2.15 without FMA, to the bit.

    check_images.py --sizes 2000        pictures and sizes drawn at random, all filters, by Pillow
    check_images.py --floats 2000       the same of floats, as DINOv3's processor resizes, by torch
    check_images.py --processors 500    configurations drawn at random, by transformers' classes
    check_images.py --quick             some of each

Prints how many pictures, pixels and differences each had; exit 1 if there is one, 77 if Pillow 13.0
or transformers 5.23.0 is not installed here. Builds image_pixels. Needs no network. Where
ATEN_CPU_CAPABILITY is set, torch computes so: how far DINOv3's pixels are from those is printed.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))
from made_files import other_versions  # noqa: E402

SKIPPED = 77
FILTERS = ["nearest", "Lanczos", "bilinear", "bicubic", "box", "Hamming"]


class Encore:
    """image_pixels with one folder, whose configuration changes."""

    def __init__(self, program, folder):
        self.folder = pathlib.Path(folder)
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def __call__(self, config, array):
        """Of uint8 [height, width, channels]: RGB [height, width, 3], uint8 with the values f32
        [3, 256] or f32, or the sentence that says why not."""
        (self.folder / "preprocessor_config.json").write_text(json.dumps(config))
        height, width, channels = array.shape
        request = {"folder": str(self.folder), "height": height, "width": width,
                   "channels": channels}
        self.process.stdin.write(json.dumps(request).encode() + b"\n" + array.tobytes())
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if "error" in answer:
            return answer["error"], None
        shape = answer["height"], answer["width"], 3
        read = self.process.stdout.read
        values = np.frombuffer(read(3 * 256 * 4), np.float32).reshape(3, 256)
        kind = np.dtype(np.float32 if answer["floats"] else np.uint8)
        content = read(shape[0] * shape[1] * 3 * kind.itemsize)
        return np.frombuffer(content, kind).reshape(shape), values


def edge(draw, most):
    """Small, ordinary and large ones alike."""
    return max(1, round(most ** draw.random()))


def check_sizes(encore, count, draw):
    differences, pixels = 0, 0
    for i in range(count):
        shape = edge(draw, 1500), edge(draw, 1500), draw.choice([1, 3])
        to = (shape[0] if i % 10 == 0 else edge(draw, 800),
              shape[1] if i % 13 == 0 else edge(draw, 800))
        array = picture(draw.randrange(1 << 30), *shape)
        for resample, name in enumerate(FILTERS):
            config = {"image_processor_type": "ViTImageProcessor", "size": to,
                      "resample": resample}
            found, _ = encore(config, array)
            wanted = resized(array, height=to[0], width=to[1], resample=resample)
            pixels += wanted.size // 3
            if not np.array_equal(found, wanted):
                differences += 1
                print(f"{name}: {shape} to {to} differs", found if isinstance(found, str) else "")
    print(f"sizes: {count} pictures by {len(FILTERS)} filters, {pixels} pixels, "
          f"{differences} differences")
    return differences


def check_floats(encore, count, draw):
    import torch
    differences, pixels = 0, 0
    for i in range(count):
        shape = edge(draw, 1500), 1 + edge(draw, 1500), 3
        # Not to one column: torch's values are then no means of the picture's (up to 1.5 for 1).
        to = (shape[0] if i % 10 == 0 else edge(draw, 800),
              shape[1] if i % 13 == 0 else 1 + edge(draw, 800))
        array = picture(draw.randrange(1 << 30), *shape)
        factor = draw.choice([1 / 255, 1.5, 0.01])
        # [1, 3, height, width] with the channels apart, as processors make it.
        floats = torch.tensor(array).permute(2, 0, 1)[None].contiguous() * factor
        for resample, mode in ((2, "bilinear"), (3, "bicubic")):
            config = {"image_processor_type": "DINOv3ViTImageProcessor", "size": to,
                      "resample": resample, "rescale_factor": factor, "do_normalize": False}
            found, _ = encore(config, array)
            wanted = torch.nn.functional.interpolate(floats, to, mode=mode, align_corners=False,
                                                     antialias=True)[0].permute(1, 2, 0).numpy()
            pixels += wanted.size // 3
            if isinstance(found, str) or not np.array_equal(found, wanted):
                differences += 1
                print(f"{mode}: {shape} to {to} differs", found if isinstance(found, str) else
                      float(np.abs(found - wanted).max()))
    print(f"floats: {count} pictures by 2 filters, {pixels} pixels, {differences} differences")
    return differences


def drawn_config(draw):
    name = draw.choice(["CLIP", "Siglip", "ViT", "DeiT", "Bit", "ConvNext", "DINOv3ViT"])
    config = {"image_processor_type": name + "ImageProcessor"}
    number = edge(draw, 500)
    if name == "DINOv3ViT":
        return config | {"size": draw.choice([number, [number, edge(draw, 500)]]),
                         "do_normalize": draw.random() < 0.5, "resample": draw.choice([2, 3]),
                         "image_std": 0.1 + draw.random()}
    if draw.random() < 0.8:
        sizes = [number, {"height": number, "width": edge(draw, 500)}, {"shortest_edge": number},
                 {"shortest_edge": number, "longest_edge": number + edge(draw, 500)},
                 {"max_height": number, "max_width": edge(draw, 500)}, [number, edge(draw, 300)]]
        config["size"] = {"shortest_edge": number} if name == "ConvNext" else draw.choice(sizes)
    if name != "ConvNext" and draw.random() < 0.7:
        config["do_center_crop"] = True
        config["crop_size"] = draw.choice([edge(draw, 400), {"height": edge(draw, 400),
                                                             "width": edge(draw, 400)}])
    keys = {"do_rescale": False, "do_normalize": False, "do_resize": False,
            "resample": draw.randrange(6), "rescale_factor": draw.choice([1, 0.01, 1 / 127.5]),
            "image_mean": [draw.random() for _ in range(3)], "image_std": 0.1 + draw.random(),
            "crop_pct": 0.5 + draw.random() / 2}
    if name != "ConvNext":
        del keys["crop_pct"]
    config.update({key: value for key, value in keys.items() if draw.random() < 0.2})
    return config


def check_processors(encore, count, draw):
    import transformers
    differences, refused, pixels, farthest = 0, 0, 0, 0.0
    for _ in range(count):
        config = drawn_config(draw)
        shape = edge(draw, 900), edge(draw, 900), 3
        array = picture(draw.randrange(1 << 30), *shape)
        found, table = encore(config, array)
        try:
            name = config["image_processor_type"]
            kind = getattr(transformers, name + "Pil", None) or getattr(transformers, name)
            wanted = kind(**config)(array, input_data_format="channels_last")
            wanted = np.asarray(wanted["pixel_values"][0], np.float32)
        except ValueError as error:
            wanted = str(error)
        if isinstance(found, str):
            # An output whose size depends on the picture is refused here alone.
            refused += 1
            same = isinstance(wanted, str) or "an output of one size" in found
        else:
            floats = found.dtype == np.float32
            found = np.stack([found[:, :, c] if floats else table[c][found[:, :, c]]
                              for c in range(3)])
            pixels += found.size // 3
            same = not isinstance(wanted, str) and np.array_equal(found, wanted)
            if floats and not same and os.environ["ATEN_CPU_CAPABILITY"] != "default":
                farthest = max(farthest, float(np.abs(found - wanted).max()) * config["image_std"]
                               if config["do_normalize"] else float(np.abs(found - wanted).max()))
                continue
        if not same:
            differences += 1
            print(f"{config} of {shape} differs", *[x for x in (found, wanted)
                                                    if isinstance(x, str)], sep="\n  ")
    print(f"processors: {count} configurations, of which {refused} are refused, {pixels} pixels, "
          f"{differences} differences" +
          (f", floats before normalizing {farthest:.1e} apart" if farthest else ""))
    return differences


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--sizes", type=int, default=0, metavar="N")
    parser.add_argument("--floats", type=int, default=0, metavar="N")
    parser.add_argument("--processors", type=int, default=0, metavar="N")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--seed", default="1")
    parser.add_argument("--build", default=str(ROOT / "build/release"))
    arguments = parser.parse_args()
    if arguments.quick:
        arguments.sizes, arguments.floats, arguments.processors = 50, 50, 50
    if not arguments.sizes and not arguments.floats and not arguments.processors:
        parser.error("nothing to do: say --sizes N, --floats N, --processors N or --quick")
    wrong = other_versions({"pillow": "13.0", "transformers": "5.23.0"})
    if wrong:
        print("\n".join(wrong), file=sys.stderr)
        return SKIPPED
    os.environ.setdefault("ATEN_CPU_CAPABILITY", "default")  # of torch: without FMA
    global np, picture, resized
    import numpy as np
    from make_image_fixtures import picture, resized
    subprocess.run([str(ROOT / "tools/build.sh"), arguments.build, "--target", "image_pixels"],
                   check=True, stdout=subprocess.DEVNULL)
    draw = random.Random(arguments.seed)
    with tempfile.TemporaryDirectory() as folder:
        encore = Encore(f"{arguments.build}/bin/image_pixels", folder)
        differences = check_sizes(encore, arguments.sizes, draw) if arguments.sizes else 0
        differences += check_floats(encore, arguments.floats, draw) if arguments.floats else 0
        differences += check_processors(encore, arguments.processors, draw)
    return 1 if differences else 0


if __name__ == "__main__":
    sys.exit(main())
