#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Prints a public header as Doxygen wants to read it: its plain comments become documentation, and
# indented lines in them, which are formulas, stay as they are laid out. docs/Doxyfile calls it.
#
#   docs/doxygen_filter.py HEADER

import re
import sys

COMMENT = re.compile(r"^(\s*)//( ?)(.*)$")
TRAILING = re.compile(r"^(.*\S\s+)// (.*)$")
ESCAPED = re.compile(r"[\\@<>#%&$]")
FORMULA = "   "  # what indents one


def escaped(words):
    return ESCAPED.sub(lambda match: "\\" + match[0], words)


def documented(lines):
    """Yields the lines with /// for //, and ///< for // behind code."""
    column = None  # of the comment behind the code above
    formula = False
    for number, line in enumerate(lines):
        comment = COMMENT.match(line)
        trailing = None if comment else TRAILING.match(line)
        if formula and not (comment and comment[3].startswith(FORMULA[1:])):
            yield "/// @endverbatim"
            formula = False
        if number == 0 and comment:
            yield "/// @file"  # in place of the licence
        elif comment and column == len(comment[1]):
            yield f"{comment[1]}///< {escaped(comment[3])}"
            continue
        elif comment and comment[3].startswith(FORMULA[1:]):
            if not formula:
                yield f"{comment[1]}/// @verbatim"
            formula = True
            yield f"{comment[1]}/// {comment[3]}"
        elif comment:
            yield f"{comment[1]}/// {escaped(comment[3])}"
        elif trailing and not line.startswith("#") and "IWYU" not in line:
            yield f"{trailing[1]}///< {escaped(trailing[2])}"
        else:
            yield line
        column = len(trailing[1]) if trailing else None
    if formula:
        yield "/// @endverbatim"


def main():
    with open(sys.argv[1], encoding="utf-8") as header:
        print("\n".join(documented(header.read().splitlines())))


if __name__ == "__main__":
    main()
