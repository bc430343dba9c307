#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How much of a vector bf16, int8 and int4 lose: `encore embed` in each, beside the same in f32.

Makes the table of accuracy in docs/precision.md, on the real all-MiniLM-L6-v2 and two files of
texts: tests/data/text/sentences.jsonl, to which the targets below apply, and greetings.jsonl, which
are a few words each and lose most.

    tools/python_env.sh                          numpy, into .deps/venv
    .deps/venv/bin/python tests/compare/check_precision.py [--markdown] [-- OPTION ...]

    .deps/venv/bin/python tests/compare/check_precision.py --pictures FOLDER --model MODEL
    .deps/venv/bin/python tests/compare/check_precision.py --drawn-pictures 64

The same of pictures, without targets: those of a folder, or drawn ones by ViT-B/32 and ViT-B/16
of CLIP with drawn weights (needs transformers, torch and Pillow).

For each text the cosine of its two vectors; for each file Spearman's rank correlation over all
pairs of texts, between their cosines in the precision and in f32, and the largest difference of two
numbers of unit vectors. Options behind -- are for `encore embed`, e.g. --target AVX2. Exit status:
0 all targets are met, 1 one is missed, 2 bad usage, 77 the model cannot be had.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
except ImportError:
    sys.exit("check_precision: there is no numpy; run tools/python_env.sh, then this with "
             ".deps/venv/bin/python")

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / ".deps/models/all-MiniLM-L6-v2"
TEXTS = ROOT / "tests/data/text"
SKIPPED = 77

# At least these, of the sentences.
TARGETS = {"bf16": {"worst": 0.9999, "rank": 0.9999},
           "int8": {"mean": 0.9990, "worst": 0.997, "rank": 0.9985},
           "int4": {"mean": 0.975, "worst": 0.945, "rank": 0.96}}


def vectors(arguments, texts, *options):
    """Unit vectors [texts, dimensions] of a file's texts, in float32."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder, "vectors.npy")
        subprocess.run([arguments.encore, "embed", "--model", arguments.model, "--input", texts,
                        "--output", output, "--normalize", *options, *arguments.options],
                       check=True, stdout=subprocess.DEVNULL)
        return np.load(output)


def ranks(values):
    """From 0; equal values share the mean of theirs."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count + 1) / 2)[place]


def similarities(unit):
    """The cosines of all pairs."""
    return (unit @ unit.T)[np.triu_indices(len(unit), 1)]


def cosines_of(found, wanted):
    """Of each row with the same row."""
    lengths = np.linalg.norm(found, axis=1) * np.linalg.norm(wanted, axis=1)
    return (found * wanted).sum(axis=1) / lengths


def compare(found, wanted):
    """What the table tells of one precision."""
    found, wanted = found.astype(np.float64), wanted.astype(np.float64)
    cosines = cosines_of(found, wanted)
    rank = np.corrcoef(ranks(similarities(found)), ranks(similarities(wanted)))[0, 1]
    return {"mean": cosines.mean(), "worst": cosines.min(), "rank": rank,
            "difference": np.abs(found - wanted).max(), "worst_text": int(cosines.argmin())}


def missed(precision, measured):
    """Sentences; a number that is not one misses every target."""
    return [f"{precision}: {name} is {measured[name]:.5f}, wanted at least {target}"
            for name, target in TARGETS[precision].items() if not measured[name] >= target]


def print_row(markdown, cells):
    if markdown:
        print("| " + " | ".join(cells) + " |")
    else:
        print(f"{cells[0]:24}{cells[1]:11}" + "".join(f"{cell:>14}" for cell in cells[2:]))


def print_table(markdown, rows):
    names = ("mean", "worst", "rank")
    print_row(markdown, ("inputs", "precision", "mean cosine", "worst cosine", "rank",
                         "difference"))
    if markdown:
        print("|---|---|---:|---:|---:|---:|")
    for group, precision, measured in rows:
        # Nothing looks better than it is.
        shown = [f"{np.floor(measured[name] * 1e5) / 1e5:.5f}" for name in names]
        print_row(markdown, (group, precision, *shown,
                             f"{np.ceil(measured['difference'] * 1e4) / 1e4:.4f}"))


def rows_of_pictures(arguments, group, folder):
    wanted = vectors(arguments, folder, "--images", "--precision", "f32")
    return [(f"{len(wanted)} {group}", precision, compare(
        vectors(arguments, folder, "--images", "--precision", precision), wanted))
        for precision in TARGETS]


def drawn_pictures(arguments):
    sys.path.insert(0, str(ROOT / "bench/peers"))
    import images
    from compare import Case
    from PIL import Image
    rows = []
    for name in images.MODELS:
        with tempfile.TemporaryDirectory() as text:
            folder = pathlib.Path(text)
            images.prepare(Case(name, 1, {}, {"model": name}), folder)
            (folder / "pictures").mkdir()
            for i in range(arguments.drawn_pictures):
                Image.fromarray(images.picture(240, 320, i)).save(folder / f"pictures/{i:02}.png")
            arguments.model = str(folder / "model")
            rows += rows_of_pictures(arguments, f"pictures, {name}", folder / "pictures")
    return rows


def main():
    parser = argparse.ArgumentParser(description="How much bf16, int8 and int4 lose.")
    parser.add_argument("--encore", default=str(ROOT / "build/release/bin/encore"))
    parser.add_argument("--model", default=str(MODEL), help="a model's folder [all-MiniLM-L6-v2]")
    parser.add_argument("--markdown", action="store_true",
                        help="the table as docs/precision.md has it")
    parser.add_argument("--pictures", metavar="FOLDER", help="of these, in place of texts")
    parser.add_argument("--drawn-pictures", metavar="N", type=int, help="of so many drawn ones")
    parser.add_argument("options", nargs="*", help="for `encore embed`, after --")
    arguments = parser.parse_args()
    if arguments.pictures or arguments.drawn_pictures:
        print_table(arguments.markdown,
                    drawn_pictures(arguments) if arguments.drawn_pictures else
                    rows_of_pictures(arguments, "pictures", arguments.pictures))
        return 0
    if arguments.model == str(MODEL):
        fetched = subprocess.run([ROOT / "tools/fetch_model.sh"], check=False).returncode
        if fetched != 0:
            return SKIPPED if fetched == 3 else fetched

    rows, misses = [], []
    for name in ("sentences", "greetings"):
        path = TEXTS / f"{name}.jsonl"
        texts = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        wanted = vectors(arguments, path, "--jsonl", "--precision", "f32")
        for precision in TARGETS:
            measured = compare(vectors(arguments, path, "--jsonl", "--precision", precision),
                               wanted)
            rows.append((f"{len(texts)} {name}", precision, measured))
            if name == "sentences":
                misses += missed(precision, measured)
            if not arguments.markdown:
                print(f"worst of {name} in {precision}: {texts[measured['worst_text']]!r}")
    print_table(arguments.markdown, rows)
    for miss in misses:
        print(f"MISSED {miss}", file=sys.stderr)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
