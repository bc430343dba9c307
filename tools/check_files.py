#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Checks what every file of the tree has in common: the licence line and an opening comment, include
# guards, the library's namespace, length of lines and files, no marks of unfinished work, no
# compiler options that break the numeric contract, no SIMD targets by Highway's choice. And that
# the source files that comments and pages name are there. Includes are check_layers.py's business.
#
#   tools/check_files.py [--root DIR]   exit 1 with one line for each offence

import argparse
import pathlib
import re
import sys

import version_namespace

TOP_LEVEL = {"CHANGELOG.md", "CMakeLists.txt", "CMakePresets.json", "CONTRIBUTING.md", "LICENSE",
             "README.md", "SECURITY.md", "bench", "docs", "engine", "examples", "include",
             "packaging", "pyproject.toml", "python", "reference", "tests", "tools"}
NOT_OURS = {"build"}  # and whatever starts with a dot, except what HIDDEN names
HIDDEN = {".ci", ".clang-format", ".clang-tidy", ".editorconfig", ".github", ".gitignore"}

COMMENT = {".h": "//", ".cc": "//", ".c": "//", ".py": "#", ".sh": "#", ".cmake": "#", ".in": "#",
           ".txt": "#", "Makefile": "#", "run": "#", ".clang-format": "#", ".clang-tidy": "#",
           ".editorconfig": "#", ".gitignore": "#", ".yml": "#"}
MAX_LINES = 500
MAX_COLUMNS = 100

# Split, so that this file does not find itself.
UNFINISHED = re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X)\b")
BAD_OPTION = re.compile(r"-mar" r"ch=|-ffast-" r"math|-Ofa" r"st|-mcp" r"u=|-mtu" r"ne=")
# These name such options because encore refuses them or undoes them.
KNOWS_BAD_OPTIONS = {"engine/base/strict_math.h", "tests/compile_failures/check.cmake",
                     "tests/consumer/package_test.sh"}
# Highway's choice of targets is the whole process's; encore has its own.
HIGHWAYS_CHOICE = re.compile(r"HWY_DYNAMIC_|SetSupportedTargetsForTest|DisableTargets\(")

# A source file in a comment, with as many of its folders as the comment gives; in a page between
# backticks.
NAMED = re.compile(r"(?<![\w./*<>$}{-])(\w[\w./-]*\.(?:h|cc|c|py|sh|cmake|md))(?![\w*/]|\.\w)")
NAMED_IN_PAGE = re.compile(r"`(\w[\w./-]*\.(?:h|cc|c|py|sh|cmake|md))`")
# Those of the system, of Highway and of transformers.
ELSEWHERE = re.compile(r"(asm|hwy|linux)/.*|(cblas|foreach_target|highway|omp|unistd)\.h|"
                       r"(activations|conversion_mapping)\.py")


def files(root):
    for entry in sorted(root.iterdir()):
        if entry.name in NOT_OURS or (entry.name.startswith(".") and entry.name not in HIDDEN):
            continue
        paths = [entry] if entry.is_file() else sorted(entry.rglob("*"))
        for path in paths:
            if path.is_file() and "__pycache__" not in path.parts:
                yield path.relative_to(root)


def guard_of(path):
    name = path.as_posix().removeprefix("include/encore/").removeprefix("include/")
    return "ENCORE_" + re.sub(r"[^A-Za-z0-9]", "_", name).upper() + "_"


def check_text(path, text):
    """Yields offences of one file that has comments."""
    mark = COMMENT.get(path.suffix) or COMMENT.get(path.name)
    lines = text.splitlines()
    head = lines[1:] if lines and lines[0].startswith("#!") else lines
    if not head or head[0] != f"{mark} SPDX-License-Identifier: Apache-2.0":
        yield f"{path}:1: the first line must be '{mark} SPDX-License-Identifier: Apache-2.0'"
    elif not any(line.startswith((mark + " ", '"""')) for line in head[1:4]):
        yield f"{path}:2: after the licence line, a comment says what the file holds"
    if path.suffix == ".h":
        guard = guard_of(path)
        wanted = [f"#ifndef {guard}", f"#define {guard}"]
        # Files under Highway's foreach_target are read once for each target and have a guard of
        # their own kind.
        if not path.name.endswith("-inl.h") and not all(line in lines for line in wanted):
            yield f"{path}:1: the include guard must be {guard}"
    if len(lines) > MAX_LINES:
        yield f"{path}:{len(lines)}: longer than {MAX_LINES} lines"
    # An address or one long word cannot be broken.
    wide = [number for number, line in enumerate(lines, start=1)
            if len(line) > MAX_COLUMNS and len(line.split()) > 2 and "://" not in line]
    if wide:
        yield f"{path}:{wide[0]}: {len(wide)} lines of more than {MAX_COLUMNS} columns"
    for number, line in enumerate(lines, start=1):
        if UNFINISHED.search(line):
            yield f"{path}:{number}: a mark of unfinished work"
        if (BAD_OPTION.search(line) and not line.lstrip().startswith(mark)
                and path.as_posix() not in KNOWS_BAD_OPTIONS):
            yield f"{path}:{number}: a compiler option that breaks the numeric contract"
        if (path.parts[0] in ("engine", "bench") and HIGHWAYS_CHOICE.search(line)
                and not line.lstrip().startswith(mark)):
            yield f"{path}:{number}: Highway's choice of targets; wanted engine/kernels/dispatch.h"
        if line != line.rstrip():
            yield f"{path}:{number}: blanks at the end"


def names_in(path, text):
    """Yields the source files that a file's comments name, with their lines."""
    mark = COMMENT.get(path.suffix) or COMMENT.get(path.name)
    for number, line in enumerate(text.splitlines(), start=1):
        if path.suffix == ".md":
            found = NAMED_IN_PAGE.findall(line)
        elif mark == "//":
            found = NAMED.findall(line.partition(mark)[2])
        else:
            found = NAMED.findall(line) if line.lstrip().startswith(mark) else []
        yield from ((number, name) for name in found)


def check_names(root):
    """Comments and pages name files that are there."""
    there = {}
    for path in files(root):
        there.setdefault(path.name, []).append(f"/{path.as_posix()}")
    for path in files(root):
        if path.parts[:2] == ("tests", "data") or not (
                path.suffix in COMMENT or path.name in COMMENT or path.suffix == ".md"):
            continue
        for number, name in names_in(path, (root / path).read_text()):
            places = there.get(name.rpartition("/")[2], [])
            if not any(place.endswith(f"/{name}") for place in places) \
                    and not ELSEWHERE.fullmatch(name):
                yield f"{path}:{number}: names {name}, which is not in the tree"


def check(root):
    for entry in sorted(root.iterdir()):
        if entry.name not in TOP_LEVEL | NOT_OURS and not entry.name.startswith("."):
            yield f"{entry.name}: no such room at the top level: {', '.join(sorted(TOP_LEVEL))}"
    for path in files(root):
        if path.suffix in COMMENT or path.name in COMMENT:
            if path.parts[:2] != ("tests", "data"):
                yield from check_text(path, (root / path).read_text())
    yield from check_names(root)
    if (root / "include/encore/version.h").is_file():
        for path, _ in version_namespace.outdated(root):
            yield (f"{path.relative_to(root)}: a namespace without the version, or of another; "
                   "tools/version_namespace.py mends it")
    licence = (root / "LICENSE").read_text() if (root / "LICENSE").is_file() else ""
    if "Apache License" not in licence or "Version 2.0" not in licence:
        yield "LICENSE: not the text of the Apache License, Version 2.0"


def main():
    parser = argparse.ArgumentParser(description="Checks what all files have in common.")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    offences = list(check(parser.parse_args().root))
    for offence in offences:
        print(offence, file=sys.stderr)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
