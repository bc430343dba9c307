#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""That programs have the sizes that docs/building.md tells, without their symbols: not 3 % more,
and not 15 % less, as the page is then old.

    check_sizes.py --root . --build build/release --strip strip
"""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROW = re.compile(r"^\| `((?:bin|examples)/\w+)` \|.*\| ([0-9.]+) MB \|$", re.M)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", type=pathlib.Path, required=True)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--strip", default="strip")
    arguments = parser.parse_args()
    page = (arguments.root / "docs/building.md").read_text(encoding="utf-8")
    rows = ROW.findall(page.partition("\n## Sizes\n")[2].partition("\n## ")[0])
    if len(rows) < 3:
        sys.exit(f"check_sizes: docs/building.md has {len(rows)} sizes of programs; wanted three")
    wrong = 0
    for name, told in rows:
        program = arguments.build / name
        if not program.is_file():
            sys.exit(f"check_sizes: {program} is missing; wanted the programs that "
                     "docs/building.md names")
        with tempfile.TemporaryDirectory() as folder:
            stripped = pathlib.Path(folder) / "program"
            subprocess.run([arguments.strip, "-s", "-o", stripped, program], check=True)
            found = os.path.getsize(stripped) / 1e6
        print(f"{name}: {found:.2f} MB, {told} MB are told")
        if not 0.85 <= found / float(told) <= 1.03:
            print(f"check_sizes: {name} has {found:.2f} MB; wanted the {told} MB of "
                  "docs/building.md, at most 3 % more and 15 % less", file=sys.stderr)
            wrong += 1
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
