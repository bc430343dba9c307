# SPDX-License-Identifier: Apache-2.0
"""Vectors of the lines of a file, and those closest to a query, by all nodes of a Ray cluster.

python ray_embed.py FOLDER FILE QUERY

RAY_ADDRESS names the cluster; without it, this machine is one. Parquet files lie in a folder that
every node sees: here a temporary one, elsewhere one that is shared. The same call after an
interruption goes on where the run stopped.
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from pyencore import TextEncoder
from pyencore.ray import embed_parquet


def main(folder: str, file: str, query: str) -> None:
    lines = Path(file).read_text(encoding="utf-8").splitlines()
    ray.init(log_to_driver=False)  # Ray's own lines would stand among the results
    with tempfile.TemporaryDirectory() as shared:
        texts, vectors = f"{shared}/texts.parquet", f"{shared}/vectors"
        pq.write_table(pa.table({"id": range(len(lines)), "text": lines}), texts)
        embed_parquet(texts, vectors, folder, columns=["text"], show_progress=False)
        table = pq.read_table(vectors)
    matrix = np.array(table["embedding"].to_pylist(), np.float32)
    scores = matrix @ TextEncoder(folder).encode_query(query)
    found = table["text"].to_pylist()
    for i in np.argsort(-scores)[:5]:
        print(f"{scores[i]:.4f}  {found[i]}")


if __name__ == "__main__":
    main(*sys.argv[1:4])
