#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The metadata of the package pyencore out of pyproject.toml, where no wheel's builder writes them:
pip, `importlib.metadata` and pyencore.__version__ know the package by them.

    packaging/python_metadata.py --into DESTDIR/usr/lib/python3/dist-packages

writes pyencore-VERSION.dist-info there.
"""

import argparse
import pathlib
import re
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]


def metadata():
    """The version, and the text of METADATA."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    project, version = settings["project"], settings["tool"]["scikit-build"]["metadata"]["version"]
    numbers = re.search(version["regex"], (ROOT / version["input"]).read_text("utf-8"))
    number = version["result"].format(**numbers.groupdict())
    lines = ["Metadata-Version: 2.4", f"Name: {project['name']}", f"Version: {number}",
             f"Summary: {project['description']}",
             f"License-Expression: {project['license']}",
             f"Requires-Python: {project['requires-python']}"]
    lines += [f"Classifier: {name}" for name in project["classifiers"]]
    lines += [f"Requires-Dist: {need}" for need in project["dependencies"]]
    for extra, needs in project["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f"Requires-Dist: {need}; extra == \"{extra}\"" for need in needs]
    return number, "\n".join([*lines, ""])


def main():
    parser = argparse.ArgumentParser(description="Writes the metadata of pyencore.")
    parser.add_argument("--into", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    number, text = metadata()
    folder = arguments.into / f"pyencore-{number}.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
