# SPDX-License-Identifier: Apache-2.0
"""Texts that people wrote, in many scripts: what Debian packages leave under /usr/share.

Holds where they lie and how they are read, a line a text. Nothing is installed; `download` unpacks
packages into a folder of its own.
"""
import gettext
import gzip
import json
import pathlib
import subprocess

PACKAGES = ["manpages-ja", "manpages-zh", "manpages-ru", "manpages-de", "manpages-fr", "iso-codes",
            "fortunes", "fortunes-zh", "fortunes-ru", "fortunes-de", "wamerican", "wbulgarian",
            "wukrainian", "wngerman", "wfrench", "wportuguese", "wpolish", "hunspell-ko",
            "hunspell-vi", "hunspell-he", "hunspell-ar", "hunspell-th", "hunspell-hi",
            "hunspell-el"]
SOURCES = {  # name: files below a root
    **{f"manual pages, {name}": [f"usr/share/man/{folder}/man*/*"] for name, folder in (
        ("Japanese", "ja"), ("Chinese", "zh_*"), ("Russian", "ru"), ("German", "de"),
        ("French", "fr"), ("others", "[a-z][a-z]"))},
    "iso-codes": ["usr/share/iso-codes/json/iso_*.json"],
    "iso-codes, translations": ["usr/share/locale/*/LC_MESSAGES/iso_*.mo"],
    "fortunes": ["usr/share/games/fortunes/*", "usr/share/games/fortunes/*/*"],
    "word lists": ["usr/share/dict/*", "usr/share/hunspell/*.dic"],
}


def download(into):
    """Unpacks the packages into a folder; returns those that could not be had."""
    missing = []
    for package in PACKAGES:
        folder = into / package
        folder.mkdir(parents=True, exist_ok=True)
        subprocess.run(["apt-get", "download", "-q", package], cwd=folder, capture_output=True)
        found = list(folder.glob("*.deb"))
        if not found or subprocess.run(["dpkg-deb", "-x", str(found[0]), str(folder)]).returncode:
            missing.append(package)
    return missing


def decoded(raw):
    try:
        return raw.decode()
    except UnicodeDecodeError:
        return raw.decode("latin-1")


def strings_of_json(tree):
    if isinstance(tree, str):
        yield tree
    elif isinstance(tree, (list, dict)):
        for value in tree if isinstance(tree, list) else tree.values():
            yield from strings_of_json(value)


def lines_of(path):
    """The texts of one file."""
    if path.suffix == ".mo":
        with open(path, "rb") as file:
            catalog = gettext.GNUTranslations(file)._catalog
        yield from (text for text in catalog.values() if isinstance(text, str))
    elif path.suffix == ".json":
        yield from strings_of_json(json.loads(path.read_text()))
    elif path.suffix not in (".dat", ".u8"):
        raw = path.read_bytes()
        yield from decoded(gzip.decompress(raw) if path.suffix == ".gz" else raw).split("\n")


def read(roots, limit=None):
    """Yields name and texts of each source, each text once; no texts where there is no file."""
    seen_files, seen = set(), set()
    for name, patterns in SOURCES.items():
        texts = []
        paths = (path for root in roots for pattern in patterns
                 for path in sorted(root.glob(pattern)))
        for path in paths:
            target = path.resolve()
            if not target.is_file() or target in seen_files:
                continue
            seen_files.add(target)
            for text in lines_of(target):
                if text and text not in seen and len(texts) != limit:
                    seen.add(text)
                    texts.append(text)
        yield name, texts


def roots_of(folder):
    """The system, and the packages that were unpacked."""
    return [pathlib.Path("/"), *(sorted(folder.iterdir()) if folder and folder.is_dir() else [])]
