#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Copies engine/kernels and applies a patch to the copy.

usage: break_kernels.py ROOT PATCH FOLDER      writes FOLDER/engine/kernels/

The patch is a unified diff without line numbers. Of each hunk, the lines before the change must
stand in the file exactly once, or nothing is written and the exit status is 1.
"""

import pathlib
import re
import sys

HUNK = re.compile(r"^@@.*@@\n((?:[ +-].*\n)+)", re.MULTILINE)
FILE = re.compile(r"^--- (\S+)\n\+\+\+ \1\n", re.MULTILINE)


def apply(patch, text, name):
    hunks = HUNK.findall(patch)
    if not hunks:
        sys.exit(f"break_kernels: no hunk for {name}; wanted at least one")
    for hunk in hunks:
        lines = hunk.splitlines(keepends=True)
        old, new = ("".join(line[1:] for line in lines if line[0] in kinds)
                    for kinds in (" -", " +"))
        if (found := text.count(old)) != 1:
            sys.exit(f"break_kernels: {name} has these lines {found} times; wanted once:\n{old}")
        text = text.replace(old, new)
    return text


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    root, patch, folder = map(pathlib.Path, sys.argv[1:])
    _, *parts = FILE.split(patch.read_text())
    patches = dict(zip(parts[::2], parts[1::2]))
    copies = {path.relative_to(root).as_posix(): path.read_text()
              for path in (root / "engine/kernels").iterdir()}
    if not patches or not patches.keys() <= copies.keys():
        sys.exit(f"break_kernels: {patch} is about {', '.join(patches) or 'no file'}; wanted files "
                 "of engine/kernels")
    for name, text in copies.items():
        copies[name] = apply(patches[name], text, name) if name in patches else text
    for name, text in copies.items():
        copy = folder / name
        copy.parent.mkdir(parents=True, exist_ok=True)
        if not copy.exists() or copy.read_text() != text:
            copy.write_text(text)


if __name__ == "__main__":
    main()
