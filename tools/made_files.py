# SPDX-License-Identifier: Apache-2.0
"""Files that are made from the answers of Hugging Face's `tokenizers`: written, or compared with
those that are there.

"""
import argparse
import sys

import tokenizers

VERSION = "0.23.3"


def write_or_check(description, folder, made):
    """Reads the command line. made: by a file's name what makes its text. The exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="compare with the files instead")
    check = parser.parse_args().check
    if tokenizers.__version__ != VERSION:
        sys.exit(f"tokenizers is {tokenizers.__version__}, wanted {VERSION}")
    different = False
    folder.mkdir(exist_ok=True)
    for name, make in made.items():
        path, text = folder / name, make()
        if not check:
            path.write_text(text)
        elif path.read_text() != text:
            print(f"{path} is not what tokenizers {VERSION} makes", file=sys.stderr)
            different = True
    return 1 if different else 0
