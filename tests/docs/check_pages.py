#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks README.md and the pages of docs/: what they link to is there, and blocks of code hold. And
what stands beside them: presets, and GitHub's workflow.

    check_pages.py --root DIR --encore FILE [--cxx COMPILER] [--cc COMPILER]

A block's language says how it is tried:
  cpp, c   compiled by itself; after `<!-- fragment -->` inside a function; after
           `<!-- fragment of FILE -->` compared with that file, whose own test runs it
  cmake    configured in a project of somebody who has a target your_program
  sh       as shell_blocks.py says
  python   compiled
  (none)   what a program prints: not tried
"""

import argparse
import ast
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import textwrap

import options_page
import shell_blocks

README_LINES = 200
OPENING = re.compile(r"^```(\w*)$")
FRAGMENT = re.compile(r"^<!-- fragment(?: of (\S+))? -->$")
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
# What a fragment may take for given.
AROUND_FRAGMENT = """
#include "encore/encore.h"
#include "encore/text_encoder.h"
void Fragment(const std::string& folder, const encore::EncoderConfig& config,
              const encore::EncoderWeights& weights);
void Fragment([[maybe_unused]] const std::string& folder,
              [[maybe_unused]] const encore::EncoderConfig& config,
              [[maybe_unused]] const encore::EncoderWeights& weights) {
"""


class Block:
    def __init__(self, page, line, language, mark):
        self.page, self.line, self.language = page, line, language
        self.fragment = mark is not None
        self.source = mark.group(1) if mark else None
        self.lines = []

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"

    @property
    def place(self):
        return f"{self.page}:{self.line}"


def pages(root):
    """Every page of the tree."""
    hidden = {"build", ".deps", ".git"}
    return sorted(path.relative_to(root) for path in root.rglob("*.md")
                  if not hidden & set(path.relative_to(root).parts))


def has_tried_code(page):
    return page.parts[0] in ("docs", "examples") or len(page.parts) == 1


def blocks(root, page):
    """The fenced blocks of a page, and its lines outside of them with their numbers."""
    found, outside, current = [], [], None
    lines = (root / page).read_text().splitlines()
    for number, line in enumerate(lines, start=1):
        if current is not None:
            if line == "```":
                found.append(current)
                current = None
            else:
                current.lines.append(line)
        elif opening := OPENING.match(line):
            mark = FRAGMENT.match(lines[number - 2]) if number > 1 else None
            current = Block(page, number, opening.group(1), mark)
        else:
            outside.append((number, line))
    if current is not None:
        raise SystemExit(f"{current.place}: a block without an end")
    return found, outside


def anchors(root, page):
    """The ids that headings get: lower case, without punctuation, blanks as hyphens."""
    _, outside = blocks(root, page)
    headings = [line.lstrip("#") for _, line in outside if re.match(r"^#+ ", line)]
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")
            for heading in headings}


def check_links(root, page):
    _, outside = blocks(root, page)
    for number, line in outside:
        for target in LINK.findall(line):
            if "://" in target:
                continue
            path, _, anchor = target.partition("#")
            where = root / page
            if path:
                where = pathlib.Path(os.path.normpath(where.parent / path))
            if not where.exists():
                yield f"{page}:{number}: a link to {target}, which is not there"
            elif anchor and anchor not in anchors(root, pathlib.Path(os.path.relpath(where, root))):
                yield f"{page}:{number}: a link to {target}, which has no such heading"


def run(command, **arguments):
    done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False, **arguments)
    return None if done.returncode == 0 else done.stdout[-2000:]


def check_source(block, root, compiler):
    """A block in C or C++."""
    text = block.text
    if block.source:
        source = root / block.source
        wanted = textwrap.dedent(text).strip()
        # At any depth.
        lines = source.read_text().splitlines() if source.exists() else []
        count = len(wanted.splitlines())
        if not any(textwrap.dedent("\n".join(lines[i:i + count])).strip() == wanted
                   for i in range(len(lines))):
            yield f"{block.place}: not a part of {block.source}"
        return
    if block.fragment:
        text = AROUND_FRAGMENT + text + "}\n"
    with tempfile.TemporaryDirectory() as folder:
        source = pathlib.Path(folder) / ("block.cc" if block.language == "cpp" else "block.c")
        source.write_text(text)
        standard = "-std=c++20" if block.language == "cpp" else "-std=c99"
        warnings = ["-Wall", "-Wextra", "-Werror"] + ["-Wno-unused-variable"] * block.fragment
        error = run([compiler, standard, *warnings, "-fsyntax-only", "-I", root / "include",
                     source])
    if error:
        yield f"{block.place}: does not compile: {error}"


def check_cmake(block, root):
    """A block of CMake: an encore of two empty targets stands for the installed one."""
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        package = folder / "prefix/lib/cmake/encore"
        package.mkdir(parents=True)
        (package / "encoreConfig.cmake").write_text(
            "add_library(encore::encore INTERFACE IMPORTED)\n"
            "add_library(encore::text INTERFACE IMPORTED)\n")
        (package / "encoreConfigVersion.cmake").write_text(
            "set(PACKAGE_VERSION 0.1.0)\nset(PACKAGE_VERSION_COMPATIBLE TRUE)\n")
        (folder / "main.cc").write_text("int main() {}\n")
        (folder / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.20)\nproject(your_project LANGUAGES CXX)\n"
            "add_executable(your_program main.cc)\n" +
            block.text.replace("/path/to/encore", str(root)))
        error = run(["cmake", "-S", folder, "-B", folder / "build",
                     f"-DCMAKE_PREFIX_PATH={folder / 'prefix'};{root / '.deps/highway'}"])
    if error:
        yield f"{block.place}: CMake refuses it: {error}"


def check_python(block):
    try:
        ast.parse(block.text)
    except SyntaxError as error:
        yield f"{block.place}: {error}"


def check_blocks(root, page, args):
    found, _ = blocks(root, page)
    for block in found:
        if block.language in ("cpp", "c"):
            yield from check_source(block, root, args.cxx if block.language == "cpp" else args.cc)
        elif block.language == "cmake":
            yield from check_cmake(block, root)
        elif block.language == "python":
            yield from check_python(block)
        elif block.language not in ("", "sh"):
            yield f"{block.place}: nothing tries blocks of {block.language}"
    shell = [block for block in found if block.language == "sh"]
    yield from shell_blocks.check(shell, root, args.encore)


def check_options(root):
    """Every option of CMake stands in docs/building.md's table."""
    text = (root / "CMakeLists.txt").read_text()
    table = (root / "docs/building.md").read_text()
    for name in re.findall(r"^(?:option|set)\((ENCORE_\w+)\s+\"", text, re.M):
        if f"`{name}`" not in table:
            yield f"docs/building.md: does not name the option {name}"


def check_names_of_tests(root, page):
    """Tests that a page names are there: executables, which are folders, or files."""
    for name in re.findall(r"`(\w+_test)`", (root / page).read_text()):
        if not ((root / "tests" / name.removesuffix("_test")).is_dir()
                or any((root / "tests").rglob(f"{name}.cc"))):
            yield f"{page}: names the test {name}, which is not there"


def check_index(root, page):
    """The index of Python packages has no pyencore."""
    for number, line in enumerate((root / page).read_text().splitlines(), start=1):
        if re.search(r"pip install[^`#]*pyencore", line):
            yield f"{page}:{number}: installs pyencore by name; wanted '.' or '.[extra]' of a clone"


def check_workflow(root):
    """GitHub runs every step of .ci/run, and no other."""
    steps = re.search(r"all_steps=\(([^)]*)\)", (root / ".ci/run").read_text()).group(1)
    steps = steps.replace("+", " ").split()
    workflow = (root / ".github/workflows/ci.yml").read_text()
    named = re.findall(r"^ +- ((?:[a-z0-9_]+ ?)+)$", workflow, re.M)
    run_there = set(" ".join(named).split())
    for step in sorted(run_there ^ set(steps)):
        yield f".github/workflows/ci.yml: the step {step} is in one of it and .ci/run alone"


def check_presets(root):
    if error := run(["cmake", "--list-presets"], cwd=root):
        yield f"CMakePresets.json: {error}"
    presets = json.loads((root / "CMakePresets.json").read_text())
    text = (root / "CMakeLists.txt").read_text()
    for preset in presets["configurePresets"]:
        for name in preset["cacheVariables"]:
            if name.startswith("ENCORE_") and name not in text:
                yield f"CMakePresets.json: {preset['name']}: there is no option {name}"


def check(root, args):
    lines = len((root / "README.md").read_text().splitlines())
    if lines > README_LINES:
        yield f"README.md: {lines} lines, wanted {README_LINES} at most"
    yield from check_options(root)
    yield from check_workflow(root)
    yield from check_presets(root)
    yield from options_page.check(root, args.encore.resolve())
    for page in pages(root):
        yield from check_links(root, page)
        yield from check_names_of_tests(root, page)
        yield from check_index(root, page)
        if has_tried_code(page):
            yield from check_blocks(root, page, args)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--encore", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--cc", default="cc")
    args = parser.parse_args()
    offences = list(check(args.root.resolve(), args))
    for offence in offences:
        print(offence, file=sys.stderr)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
