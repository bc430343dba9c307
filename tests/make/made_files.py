# SPDX-License-Identifier: Apache-2.0
"""What scripts that ask other libraries share: whether the right versions are installed, and files
that are made from their answers, written or compared with those that are there.
"""
import argparse
import importlib.metadata
import sys

VERSION = "0.23.3"  # of tokenizers
SENTENCES = {"torch": "2.15.0", "transformers": "5.23.0", "sentence-transformers": "6.2.0"}


def other_versions(wanted):
    """A sentence for each package of {name: version} that is not installed in that version. A
    version may end before its last number."""
    found = {}
    for name in wanted:
        try:
            found[name] = importlib.metadata.version(name).split("+")[0]
        except importlib.metadata.PackageNotFoundError:
            found[name] = "nothing"
    return [f"{name} {version} is wanted, and {found[name]} is installed for {sys.executable}"
            for name, version in wanted.items()
            if not (found[name] + ".").startswith(version + ".")]


def require(wanted):
    """Ends the script where a package has another version."""
    wrong = other_versions(wanted)
    if wrong:
        raise SystemExit("\n".join(wrong))


def write_or_check(description, folder, made):
    """Reads the command line. made: by a file's name what makes its text. The exit status."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--check", action="store_true", help="compare with the files instead")
    check = parser.parse_args().check
    require({"tokenizers": VERSION})
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
