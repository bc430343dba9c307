#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/options.md: a table of all options of `encore`, made from `--help` of each command.

    options_page.py --encore FILE > docs/options.md

check_pages.py compares the page with what this makes.
"""

import argparse
import pathlib
import re
import subprocess

CUT = "\\|"  # a | within a cell
COLUMN = 30  # of --help, where a description begins
HEAD = """<!-- SPDX-License-Identifier: Apache-2.0 -->
# Options of the command line

Every option of every command, from `encore COMMAND --help`, which also has formats and examples.
[The command line](command-line.md) says when to use which command. `tests/docs/options_page.py`
makes this page.

| option | commands | what it does |
|---|---|---|
"""


def help_of(encore, *command):
    return subprocess.run([encore, *command, "--help"], text=True, capture_output=True,
                          check=True).stdout


def entries(text, section):
    """Yields (name, description) of a section of --help."""
    name, words = "", []
    for line in text.partition(f"\n{section}:\n")[2].split("\n\n")[0].splitlines():
        if not line.startswith(" " * COLUMN):
            if name:
                yield name, " ".join(words)
            name, words = line.strip(), []
            own = line[:COLUMN].strip()
            if line[COLUMN - 1:COLUMN] == " " and own.count("(") == own.count(")"):
                name, line = own, line[COLUMN:]
            else:
                continue
        words.append(line.strip())
    if name:
        yield name, " ".join(words)


def page(encore):
    commands = [name for name, _ in entries(help_of(encore), "Subcommands")]
    rows = {}
    for command in commands:
        text = help_of(encore, command)
        for section in ("Arguments", "Options"):
            for name, what in entries(text, section):
                if not name.startswith("-h,"):
                    rows.setdefault((name, what), []).append(command)
    order = sorted(rows, key=lambda row: re.sub(r"^\W+", "", row[0]).lower())
    table = [[f"`{name}`", ", ".join(rows[name, what]), what] for name, what in order]
    lines = [" | ".join(cell.replace("|", CUT) for cell in row) for row in table]
    return HEAD + "".join(f"| {line} |\n" for line in lines)


def check(root, encore):
    """Yields what is wrong with docs/options.md."""
    if "serve" not in [name for name, _ in entries(help_of(encore), "Subcommands")]:
        return  # built without Boost: the page has options that this command has not
    path = root / "docs/options.md"
    if not path.exists() or path.read_text() != page(encore):
        yield (f"docs/options.md: not what --help says; wanted that of "
               f"`tests/docs/options_page.py --encore {encore} > docs/options.md`")


def main():
    parser = argparse.ArgumentParser(description="Writes docs/options.md.")
    parser.add_argument("--encore", type=pathlib.Path, required=True)
    print(page(parser.parse_args().encore.resolve()), end="")


if __name__ == "__main__":
    main()
