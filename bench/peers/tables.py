# SPDX-License-Identifier: Apache-2.0
"""Tables of results as text or Markdown, the name of the CPU that stands above them, JSON files.

"""

import json
import os
import pathlib


def write_whole(path, tree):
    """JSON to a file, whole or not at all."""
    part = path.with_name(path.name + ".part")
    try:
        part.write_text(json.dumps(tree, indent=1) + "\n", encoding="utf-8")
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)


def cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(l.split(":", 1)[1].strip() for l in lines if l.startswith("model name"))
    except (OSError, StopIteration):
        return "unknown CPU"


def write(rows, left, markdown):
    """rows of strings, the titles first; the columns in left are set flush left."""
    if markdown:
        lines = ["| " + " | ".join(row) + " |" for row in rows]
        lines.insert(1, "|" + "".join("---|" if i in left else "---:|"
                                      for i in range(len(rows[0]))))
        return "\n".join(lines)
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(text.ljust(width) if i in left else text.rjust(width)
                               for i, (text, width) in enumerate(zip(row, widths))).rstrip()
                     for row in rows)
