# SPDX-License-Identifier: Apache-2.0
"""Makes the golden files of tests/data/families: two layers of every family of encoders, computed
by the family's own modules in float64. Their format is in tests/data/README.md.

Holds the files and their check.
"""
import importlib
import json
import pathlib
import tempfile
import zlib

import numpy as np

from golden import plain
from golden.tensor_files import differences, largest_error, read_safetensors, write_safetensors

PACKAGES = {"torch": "2.15.0", "transformers": "5.23.0"}  # from PyPI; these made the files
LENGTHS = [1, 2, 17, 130, 300, 700]
EXACT = 1e-12  # float64 itself leaves about 1e-15
STORED = 2e-7  # expected results are stored in F32, and rounded twice where they are compared
CONDITION = 5e-7  # torch in float32 must be at most so far from float64


def require_packages():
    missing = []
    for name, version in PACKAGES.items():
        try:
            importlib.import_module(name)
        except ImportError:
            missing.append(f"{name}=={version}")
    if missing:
        raise SystemExit(f"make_golden: the families need pip install {' '.join(missing)}")


def sequence_rows():
    """All rows of the sequences up to 130 tokens, every 7th and the last of the longer ones."""
    rows, start = [], 0
    for length in LENGTHS:
        rows += [start + t for t in range(length)
                 if length <= 130 or t % 7 == 0 or t == length - 1]
        start += length
    return rows


def draw_input(config):
    """x [tokens, d_model]: uniform, of variance 1, as C++ can draw it too."""
    shape = sum(config["lengths"]), config["d_model"]
    r = np.random.RandomState(config["seed"]).random_sample(shape)
    return (np.sqrt(3.0) * (2 * r - 1)).astype("<f4")


def generate(folder):
    """Writes all files into folder."""
    require_packages()
    import torch
    import transformers

    from golden import text, decoder_like, vision_audio  # noqa: F401: they register themselves
    from golden.reference import FAMILIES, randomise, round_angles_late, run
    torch.set_num_threads(1)
    transformers.logging.set_verbosity_error()  # it warns of tokens beyond the tiny vocabularies
    manifest = {"torch": torch.__version__.split("+")[0], "transformers": transformers.__version__,
                "numpy": np.__version__, "families": {}}
    for family in FAMILIES:
        reference = family.build()
        rng = np.random.RandomState(zlib.crc32(family.name.encode()))
        weights = randomise(reference, rng)
        config = {**reference.config, "lengths": LENGTHS, "rows": sequence_rows(),
                  "seed": zlib.crc32(f"{family.name} x".encode())}
        x = draw_input(config)
        expected = run(reference, x, LENGTHS, exact=True)
        own = largest_error(plain.run(config, weights, x), expected)
        assert own <= EXACT, f"{family.name}: numpy differs by {own:.1e}"
        source = family.source or f"transformers' {type(reference.model).__name__}"
        entry = {"covers": family.covers, "source": source}
        if reference.rotary:
            f32 = largest_error(run(reference, x, LENGTHS, exact=False), expected)
            entry["torch_f32_error_with_f32_angles"] = float(f"{f32:.2g}")
            for module in reference.rotary:
                round_angles_late(module)
        f32 = largest_error(run(reference, x, LENGTHS, exact=False), expected)
        entry["torch_f32_error"] = float(f"{f32:.2g}")
        assert f32 <= CONDITION, f"{family.name}: torch in f32 differs by {f32:.1e}"
        print(f"{family.name:16} differs from numpy by {own:.1e}, from torch in f32 by {f32:.1e}")
        manifest["families"][family.name] = entry
        rows = {f"expected.{n}": t[config["rows"]].astype("<f4") for n, t in expected.items()}
        write_safetensors(folder / f"{family.name}.safetensors", {**weights, **rows},
                          {"config": json.dumps(config)})
    (folder / "manifest.json").write_text(json.dumps(manifest, indent=1) + "\n")


def self_check(folder):
    """Computes every stored file in numpy. Returns what differs."""
    wrong, errors = [], []
    for path in sorted(folder.glob("*.safetensors")):
        tensors, metadata = read_safetensors(path)
        config = json.loads(metadata["config"])
        expected = {n: tensors.pop(n) for n in ("expected.hidden.0", "expected.y")}
        found = plain.run(config, tensors, draw_input(config))
        rows = {f"expected.{n}": t[config["rows"]] for n, t in found.items()}
        errors.append(largest_error(rows, expected))
        wrong += [] if errors[-1] <= STORED else [f"{path.name}: {errors[-1]:.1e}"]
    print(f"numpy against the {len(errors)} families: largest error {np.max(errors):.1e}")
    return wrong


def check(stored):
    """Makes the files elsewhere and returns what differs: any byte but of the results counts."""
    with tempfile.TemporaryDirectory() as temporary:
        made = pathlib.Path(temporary)
        generate(made)
        return differences(stored, made, "families", STORED)
