#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""pyencore.ray on a cluster of two nodes, on this machine: a driver is killed and its run resumed;
a node is killed while Ray reads footers of Parquet files there, and another one later, and the runs
end. Nothing is lost or doubled, and every vector has the bits that one process computes.

    python python/tests/ray_cluster.py --texts 200000 [--model FOLDER]

python/tests/test_ray.py runs the same with fewer texts.
"""

from __future__ import annotations

import argparse
import logging
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import ray
from pyencore import TextEncoder
from pyencore.ray import Embedded, embed_parquet
from ray.cluster_utils import Cluster

TINY = Path(__file__).resolve().parents[2] / "tests" / "data" / "text" / "base"
WORDS = "the harbour lies between two hills and trains stop at the coast every hour".split()
NODE: dict[str, Any] = {"num_cpus": 2, "object_store_memory": 200 << 20}
FILES = 24
SECONDS = 1200  # of a run, before it is said to hang


class Input:
    """Short texts in four Parquet files, and their vectors by one process."""

    def __init__(self, root: Path, count: int, model: Path) -> None:
        self.count = count
        rng = np.random.default_rng(1)
        lengths = rng.integers(3, 9, count)
        self.texts = [f"{i} " + " ".join(rng.choice(WORDS, n)) for i, n in enumerate(lengths)]
        self.folder, self.model, self.root = root / "texts", model, root
        self.folder.mkdir()
        for ids in np.array_split(np.arange(count), 4):
            texts = [self.texts[i] for i in ids]
            table = pa.table({"id": ids, "text": texts, "length": [len(t) for t in texts]})
            pq.write_table(table, self.folder / f"{ids[0]}.parquet")
        started = time.perf_counter()
        self.vectors = TextEncoder(model, threads=1).encode(self.texts)
        print(f"{count} texts by one thread of one process: {time.perf_counter() - started:.1f} s")

    def embed(self, output: Path) -> Embedded:
        return embed_parquet(
            str(self.folder),
            str(output),
            self.model,
            columns=["length"],
            cores=1,
            actors=2,
            rows_per_file=-(-self.count // FILES),
            show_progress=False,
        )

    def check(self, output: Path) -> None:
        table = pq.read_table(output)
        width = self.vectors.shape[1]
        assert table.schema.field("embedding").type == pa.list_(pa.float32(), width)
        assert table.column_names == ["id", "length", "embedding"]
        ids = table["id"].to_numpy()
        order = np.argsort(ids)
        assert np.array_equal(ids[order], np.arange(self.count)), "rows are lost or doubled"
        assert table["length"].to_pylist() == [len(self.texts[i]) for i in ids]
        found = table["embedding"].combine_chunks().flatten().to_numpy().reshape(-1, width)[order]
        assert np.array_equal(found.view(np.uint32), self.vectors.view(np.uint32)), "other bits"
        assert not Path(f"{output}.checkpoint").exists()


def committed(output: Path) -> list[Path]:
    """Lists of ids of complete files."""
    paths = Path(f"{output}.checkpoint").glob("*.parquet")
    return [path for path in paths if not path.name.endswith(".pending.parquet")]


def wait_for_part(output: Path, share: float) -> int:
    """Until that share of the files is complete."""
    wanted = int(share * FILES)
    end = time.monotonic() + SECONDS
    while (found := len(committed(output))) < wanted:
        assert time.monotonic() < end, f"only {found} of {wanted} files after {SECONDS} s"
        time.sleep(0.01)
    return found


def kill_driver(address: str, texts: Input) -> None:
    """A run in a process of its own, killed after a part; the same call here ends it."""
    output = texts.root / "by two drivers"
    command = [sys.executable, __file__, "--driver", address, str(texts.folder), str(output)]
    driver = subprocess.Popen([*command, str(texts.model), str(texts.count)])
    try:
        wait_for_part(output, 0.3)
    finally:
        driver.send_signal(signal.SIGKILL)
        driver.wait()
    time.sleep(3)  # until Ray has ended its tasks: they go on writing for a moment
    before = committed(output)
    assert len(before) < FILES, "the run ended before it was killed"
    # As a write that was tried again after its commit leaves it where the driver dies meanwhile.
    pending = before[0].with_name(before[0].stem + ".pending.parquet")
    shutil.copyfile(before[0], pending)
    written = texts.embed(output)
    assert written.rows == texts.count
    texts.check(output)
    print(f"a driver killed after {len(before)} files, {written.files} files at the end: same bits")


def kill_node(cluster: Cluster, node: Any, texts: Input) -> None:
    """A run that loses a node after a part."""
    output = texts.root / "by a node and a half"
    found: list[int] = []

    def kill() -> None:
        found.append(wait_for_part(output, 0.3))
        cluster.remove_node(node, allow_graceful=False)
        found.append(len(committed(output)))

    thread = threading.Thread(target=kill)
    thread.start()
    written = texts.embed(output)
    thread.join()
    assert found[0] < FILES, "the run ended before the node was killed"
    texts.check(output)
    print(f"a node killed after {found[0]} files, {written.files} files at the end: same bits")


def kill_node_with_readers(cluster: Cluster, texts: Input) -> None:
    """A run that loses a node on which Ray's actors read the footers of the input."""
    node = cluster.add_node(**NODE)
    output = texts.root / "by a node that read footers"
    found: list[str] = []
    stop = threading.Event()

    def kill() -> None:
        while not stop.is_set():
            for actor in ray._private.state.actors().values():
                is_reader = actor["ActorClassName"] == "FooterReader" and actor["State"] != "DEAD"
                if is_reader and actor["Address"]["NodeID"] == node.node_id:
                    cluster.remove_node(node, allow_graceful=False)
                    found.append(actor["ActorID"])
                    return
            time.sleep(0.02)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        texts.embed(output)
    finally:
        stop.set()
        thread.join()
    texts.check(output)
    if not found:  # they ended before they were seen
        cluster.remove_node(node, allow_graceful=False)
    print(f"a node killed {'with' if found else 'without'} readers of footers: same bits")


def run(count: int, model: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="pyencore-ray-") as root:
        texts = Input(Path(root), count, model)
        cluster = Cluster(initialize_head=True, head_node_args=NODE)
        try:
            node = cluster.add_node(**NODE)
            ray.init(address=cluster.address, log_to_driver=False, logging_level=logging.ERROR)
            for work in (
                lambda: kill_driver(cluster.address, texts),
                lambda: kill_node_with_readers(cluster, texts),
                lambda: kill_node(cluster, node, texts),
            ):
                started = time.perf_counter()
                work()
                print(f"  {time.perf_counter() - started:.1f} s", flush=True)
        finally:
            ray.shutdown()
            cluster.shutdown()


def main() -> None:
    if sys.argv[1:2] == ["--driver"]:
        address, folder, output, model, count = sys.argv[2:]
        ray.init(address=address, log_to_driver=False, logging_level=logging.ERROR)
        texts = Input.__new__(Input)
        texts.folder, texts.model, texts.count = Path(folder), Path(model), int(count)
        texts.embed(Path(output))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--texts", type=int, default=200_000)
    parser.add_argument("--model", type=Path, default=TINY)
    options = parser.parse_args()
    run(options.texts, options.model)


if __name__ == "__main__":
    main()
