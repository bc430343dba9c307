#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Writes encore's versioned namespace into every file that declares or defines something of encore:
# `namespace encore::inline v0_1 {` for version 0.1, by include/encore/version.h, wherever a file of
# the library says `namespace encore {` or has another version's; and so for what is nested in it.
# Programs say encore::Encoder as ever, but symbols are encore::v0_1::Encoder, so that two versions
# in one program do not take each other's functions. To be run after the version has changed, or
# after new files have come in. Tests and tools are a part of it only in encore::internal, which
# Clang takes for another namespace where the inline one is not named; all else there sees through
# it. Comments at closing braces leave it out.
#
#   tools/version_namespace.py           rewrites the files, and names those that changed
#   tools/version_namespace.py --check   exit 1 with one line for each that would change

import argparse
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# An opening line; a generator's format string has two braces.
NAMESPACE = re.compile(r"^(namespace encore)(?:::inline v[0-9_]+)?((?:::\w+)* \{\{?)$",
                       re.MULTILINE)
INTERNAL = re.compile(r"^(namespace encore)(?:::inline v[0-9_]+)?(::internal(?:::\w+)* \{)$",
                      re.MULTILINE)
# It writes files of the library.
GENERATOR = "tests/make/unicode_tables.py"


def name_of(root):
    """The namespace by the version in version.h: "v0_1"."""
    header = (root / "include/encore/version.h").read_text()
    numbers = [re.search(rf"#define ENCORE_VERSION_{part} (\d+)", header).group(1)
               for part in ("MAJOR", "MINOR")]
    return "v" + "_".join(numbers)


def outdated(root):
    """Yields the path and the wanted text of each file that has another namespace."""
    name = name_of(root)
    for folder in ("include", "engine", "reference", "tests", "tools", "bench"):
        ours = NAMESPACE if folder in ("include", "engine") else INTERNAL
        for path in sorted((root / folder).rglob("*")):
            is_generator = path == root / GENERATOR
            if path.suffix not in (".h", ".cc") and not is_generator:
                continue
            text = path.read_text()
            wanted = (NAMESPACE if is_generator else ours).sub(rf"\1::inline {name}\2", text)
            if wanted != text:
                yield path, wanted


def main():
    parser = argparse.ArgumentParser(description="Writes encore's versioned namespace.")
    parser.add_argument("--check", action="store_true", help="change nothing")
    check = parser.parse_args().check
    found = list(outdated(ROOT))
    for path, wanted in found:
        print(path.relative_to(ROOT))
        if not check:
            path.write_text(wanted)
    return 1 if check and found else 0


if __name__ == "__main__":
    sys.exit(main())
