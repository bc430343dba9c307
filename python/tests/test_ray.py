# SPDX-License-Identifier: Apache-2.0
"""pyencore.ray: a class for map_batches, cores that are bound, folders that are shipped, and
Parquet to Parquet on a cluster that loses a driver and a node."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import DATA, TEXTS, has, run_python
from pyencore import TextEncoder
from pyencore._ray_worker import digest_of, read_files, write_files

needs_ray = pytest.mark.skipif(not has("ray"), reason="ray is not installed")

BOUND = """
import os, threading
from pyencore._ray_worker import BoundCores
BoundCores.mark_of_core = f"\\0test-{os.getpid()}-{{}}"  # as if nobody else ran Ray here
usable = sorted(os.sched_getaffinity(0))
stop = threading.Event()
other = threading.Thread(target=stop.wait, daemon=True)
other.start()
first = BoundCores(1)
assert first.cores[0] in usable and os.sched_getaffinity(0) == set(first.cores)
assert os.sched_getaffinity(other.native_id) == set(first.cores)
stop.set()
# A process with one usable core, which another has.
assert BoundCores(1).cores == []
held = first.cores
first.release()
assert BoundCores(1).cores == held
assert BoundCores(10_000).cores == []
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="this system binds no threads")
def test_cores_are_of_one_process() -> None:
    run = run_python(BOUND)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("folder", sorted((DATA / "sentences").iterdir()), ids=lambda p: p.name)
def test_a_folder_is_shipped(folder: Path, tmp_path: Path) -> None:
    files = read_files(folder)
    write_files(files, tmp_path)
    assert digest_of(read_files(tmp_path)) == digest_of(files)
    texts = ["a short text", "another one"]
    options: dict[str, Any] = {"threads": 1, "ignore_unknown_keys": True}
    wanted = TextEncoder(folder, **options).encode(texts)
    assert np.array_equal(TextEncoder(tmp_path, **options).encode(texts), wanted)
    name = next(iter(files))
    files[name] = np.append(files[name], np.uint8(32))
    assert digest_of(files) != digest_of(read_files(tmp_path))


@needs_ray
class TestBatches:
    def test_tables_and_arrays(self, folders: Any) -> None:
        import pyarrow as pa
        from pyencore.ray import EncodeBatches

        wanted = TextEncoder(folders("base"), threads=1).encode(TEXTS, precision="float16")
        options: dict[str, Any] = {"encode_options": {"precision": "float16"}, "cores": 10_000}
        options["model_options"] = {"threads": 1}
        encode = EncodeBatches(folders("base"), **options)
        batch = {"id": np.arange(len(TEXTS)), "text": np.array(TEXTS, object)}
        found = encode(batch)
        assert found.keys() == {"id", "text", "embedding"}
        assert np.array_equal(found["embedding"], wanted)
        some = EncodeBatches(folders("base"), columns=["id"], vector_column="v", **options)
        table = some(pa.table(batch))
        assert table.column_names == ["id", "v"]
        assert table.schema.field("v").type == pa.list_(pa.float16(), 32)
        flat = table["v"].combine_chunks().flatten().to_numpy(zero_copy_only=False)
        assert np.array_equal(flat.reshape(wanted.shape), wanted)
        assert some(batch).keys() == {"id", "v"}
        none = some(pa.table(batch).slice(0, 0))
        assert none.schema == table.schema and none.num_rows == 0
        empty = encode({"id": np.arange(0), "text": np.array([], object)})["embedding"]
        assert empty.shape == (0, 32) and empty.dtype == np.float16
        with pytest.raises(TypeError, match=r"inputs\[1\] is of type NoneType; wanted str"):
            some(pa.table({"id": [1, 2], "text": ["a", None]}))


@needs_ray
class TestLosses:
    """What embed_parquet does where Ray ends a run because it lost something."""

    def tries(self, error: Exception, begun: bool, monkeypatch: Any) -> int:
        """How many runs there are until one succeeds, the third; or raises."""
        from pyencore import ray as own

        monkeypatch.setattr(own, "_PAUSE", 0)
        runs = []

        class Target:
            path = "out"

            def is_begun(self) -> bool:
                return begun

        def run() -> int:
            runs.append(1)
            if len(runs) < 3:
                raise error
            return len(runs)

        target: Any = Target()
        return own._again_where_a_node_is_lost(run, target)

    def losses(self) -> list[Exception]:
        from ray import exceptions as e

        lost = [e.ActorDiedError(), e.NodeDiedError("node"), e.WorkerCrashedError()]
        # As a task raises it in which another one's was raised.
        wrapped = [e.RayTaskError("list", "traceback", error) for error in lost]
        # As the driver sees it where Ray cannot read what a task raised.
        text = "RayTaskError: ray::ListFiles()\nray.exceptions.ActorDiedError: The actor died.\n"
        unread = e.UnserializableException(text)
        from_others = []
        for error in lost:
            outer = RuntimeError("outer")
            outer.__cause__ = error
            from_others.append(outer)
        return [*lost, unread, *wrapped, *(w.as_instanceof_cause() for w in wrapped), *from_others]

    def test_a_run_that_wrote_nothing_is_made_again(self, monkeypatch: Any) -> None:
        for error in self.losses():
            assert self.tries(error, False, monkeypatch) == 3, repr(error)

    def test_one_that_wrote_something_says_how_it_goes_on(self, monkeypatch: Any) -> None:
        for error in self.losses():
            with pytest.raises(RuntimeError, match="out: a node .* lost, .* the same call goes on"):
                self.tries(error, True, monkeypatch)

    def test_other_errors_stay(self, monkeypatch: Any) -> None:
        from ray import exceptions as e

        cause = e.RayTaskError("init", "traceback", ValueError("no model"))
        cause._actor_id = "1"
        failed = e.ActorDiedError(cause)  # its __init__ raised
        unread = e.UnserializableException(f"ray.exceptions.ActorDiedError: {failed}")
        of_task = e.RayTaskError("f", "t", TypeError("None"))
        for error in (failed, unread, ValueError("a text"), of_task):
            with pytest.raises(type(error)):
                self.tries(error, False, monkeypatch)


@needs_ray
class TestCluster:
    def test_a_driver_and_a_node_are_lost(self) -> None:
        import ray_cluster

        ray_cluster.run(8000, DATA / "text" / "base")

    def test_settings_of_a_run(self, tmp_path: Path) -> None:
        """What needs no cluster of embed_parquet: which outputs are refused, and which are done."""
        from pyencore.ray import _Output, embed_parquet

        output = tmp_path / "out"
        first = _Output(str(output), {"model": "a", "encode_options": {}})
        assert not first.complete
        assert not _Output(str(output), {"model": "a", "encode_options": {}}).complete
        with pytest.raises(ValueError, match="begun with model 'a', found 'b'; wanted the same"):
            _Output(str(output), {"model": "b", "encode_options": {}})
        first.finish()
        assert _Output(str(output), {"model": "a", "encode_options": {}}).complete
        assert json.loads((output / "_encore.json").read_text())["complete"]
        self._changes_of_the_input(tmp_path)
        with pytest.raises(ValueError, match="has files of others; wanted a new or an empty"):
            _Output(str(DATA), {})
        with pytest.raises(ValueError, match="precision is 'int8'; wanted one of float32, float16"):
            embed_parquet("in", "out", "model", encode_options={"precision": "int8"})

    def _changes_of_the_input(self, root: Path) -> None:
        """Ids alone would not tell."""
        from pyencore.ray import _absolute, _Output, _states

        assert _absolute(root) == str(root) and _absolute("s3://a") == "s3://a"
        texts, output = root / "texts", str(root / "of_texts")
        texts.mkdir()
        for name in ("a.parquet", "b.parquet"):
            (texts / name).write_bytes(b"12345678")
        _Output(output, {}, _states([str(texts)]))
        assert len(_states([str(texts)])) == 2
        assert _states([str(texts / "a.parquet")]).keys() == {str(texts / "a.parquet")}
        begun = _Output(output, {}, _states([str(texts)]))
        state = (texts / "a.parquet").stat()
        for change, what in (
            (lambda: (texts / "a.parquet").write_bytes(b"12345679"), r"a\.parquet was changed"),
            (lambda: (texts / "c.parquet").write_bytes(b""), r"c\.parquet is new"),
            (lambda: (texts / "b.parquet").unlink(), r"b\.parquet is gone"),
        ):
            change()
            with pytest.raises(ValueError, match=what + " since .*of_texts was begun; wanted"):
                _Output(output, {}, _states([str(texts)]))
            (texts / "a.parquet").write_bytes(b"12345678")
            os.utime(texts / "a.parquet", ns=(state.st_atime_ns, state.st_mtime_ns))
            (texts / "c.parquet").unlink(missing_ok=True)
        settings = Path(output) / "_encore.json"
        saved = settings.read_text()
        earlier = {key: value for key, value in json.loads(saved).items() if key != "files"}
        settings.write_text(json.dumps(earlier))  # of an encore that did not write the files down
        assert not _Output(output, {}, _states([str(texts)])).complete
        settings.write_text(saved)
        begun.finish()
        (texts / "a.parquet").write_bytes(b"1234567")
        assert _Output(output, {}, _states([str(texts)])).complete
