# SPDX-License-Identifier: Apache-2.0
"""A server's way: many Python threads share a model, each call on the thread that makes it.

python many_threads.py FOLDER FILE QUERY
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from pyencore import TextEncoder


def main(folder: str, file: str, query: str) -> None:
    model = TextEncoder(folder, threads=1)
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    with ThreadPoolExecutor(8) as pool:
        vectors = np.stack(list(pool.map(model.encode, lines)))
    best = int((vectors @ model.encode(query)).argmax())
    print(f"closest: {lines[best]}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
