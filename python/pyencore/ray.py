# SPDX-License-Identifier: Apache-2.0
"""Vectors of more texts than one machine has time for, by Ray Data: pip install '.[ray]'.

A text's vector has the same bits whichever node computed it, in whatever batch, before or after a
node was lost: the result of a cluster is that of one process.
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.fs as pafs
import ray
import ray.data
import ray.exceptions
from numpy.typing import NDArray
from ray.data.checkpoint import CheckpointConfig

from pyencore._folder import find_folder
from pyencore._inputs import checked, integer, kind, shown, vector_options
from pyencore._ray_worker import BoundCores, Files, digest_of, read_files, write_files
from pyencore._text_encoder import TextEncoder

# What a column of fixed-size lists may hold. The ranges of int8 and uint8 are those of all vectors,
# which nobody has seen before the end.
_PRECISIONS = ("float32", "float16", "binary", "ubinary")
_SETTINGS = "_encore.json"  # readers of Parquet pass over names with an underscore
_TRIES = 3  # of a run that loses a node before anything is written
_PAUSE = 5.0  # seconds, in which Ray ends the tasks of a run that failed


class EncodeBatches:
    """For Dataset.map_batches: batches with a column of vectors added to `columns` (all of them by
    default).

        dataset.map_batches(
            EncodeBatches,
            fn_constructor_kwargs={"model": ship("folder"), "cores": 4},
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=8),
            num_cpus=2,  # half of the cores: see embed_parquet
        )

    Each actor opens the model once, and is bound to `cores` cores that no other actor has. model: a
    path that every node sees, a hub name, or what ship() returned. Batches are pyarrow tables
    or dicts of arrays. model_options are TextEncoder's, encode_options those of encode().
    """

    @checked
    def __init__(
        self,
        model: str | os.PathLike[str] | ray.ObjectRef[Files],
        *,
        text_column: str = "text",
        vector_column: str = "embedding",
        columns: Sequence[str] | None = None,
        cores: int = 1,
        model_options: Mapping[str, Any] | None = None,
        encode_options: Mapping[str, Any] | None = None,
    ) -> None:
        self._columns = columns
        self._text_column = text_column
        self._vector_column = vector_column
        self._encode_options = vector_options(encode_options)
        integer("cores", cores, 1)
        self._cores = BoundCores(cores)
        options = {"threads": cores, **(model_options or {})}
        if isinstance(model, ray.ObjectRef):
            # The encoder has the files mapped: they may lose their names once it is open.
            with tempfile.TemporaryDirectory(prefix="pyencore-") as folder:
                write_files(ray.get(model), folder)
                self._encoder = TextEncoder(folder, **options)
        else:
            self._encoder = TextEncoder(model, **options)

    def __call__(self, batch: Any) -> Any:
        if not isinstance(batch, (pa.Table, Mapping)) and not hasattr(batch, "columns"):
            raise TypeError(f"batch is {kind(batch)}; wanted a table, or a dict of columns")
        found = batch.column_names if isinstance(batch, pa.Table) else list(batch)
        for name in (self._text_column, *(self._columns or ())):
            if name not in found:
                raise ValueError(f"batch has the columns {shown(found)}; wanted {name!r}")
        texts = batch[self._text_column]
        listed = texts.to_pylist() if isinstance(batch, pa.Table) else list(texts)
        vectors = self._vectors(listed)
        if not isinstance(batch, pa.Table):
            kept = batch if self._columns is None else {name: batch[name] for name in self._columns}
            return {**kept, self._vector_column: vectors}
        if self._columns is not None:
            batch = batch.select(self._columns)
        column = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), vectors.shape[1])
        return batch.append_column(self._vector_column, column)

    def _vectors(self, texts: list[str]) -> NDArray[Any]:
        """[texts, columns], also of no texts."""
        found = self._encoder.encode(texts or [""], **self._encode_options)
        vectors: NDArray[Any] = found[: len(texts)]
        return vectors


@checked
def ship(model: str | os.PathLike[str]) -> ray.ObjectRef[Files]:
    """The files of a folder, or of a hub name, in Ray's object store, for nodes that lack them."""
    files: ray.ObjectRef[Files] = ray.put(read_files(find_folder(model)))
    return files


class Embedded(NamedTuple):
    """What embed_parquet wrote, those of earlier runs included."""

    rows: int
    files: int


@checked
def embed_parquet(
    input: str | Sequence[str],  # noqa: A002 (beside output)
    output: str,
    model: str | os.PathLike[str],
    *,
    text_column: str = "text",
    id_column: str = "id",
    columns: Sequence[str] = (),
    vector_column: str = "embedding",
    cores: int | None = None,
    actors: int | None = None,
    rows_per_file: int = 8192,
    ship_model: bool = True,
    show_progress: bool = True,
    model_options: Mapping[str, Any] | None = None,
    encode_options: Mapping[str, Any] | None = None,
) -> Embedded:
    """Reads Parquet files of texts; writes id_column, `columns` and the vectors, a fixed-size list.

    input and output are paths that every node sees, or URIs of pyarrow's file systems. Ids should
    be unique: of rows with one id, a call that goes on leaves out those that are not written yet,
    and ends with RuntimeError. `rows_per_file` rows are read, computed, written and remembered
    together: that and the number of actors bound the memory. The order of rows is not that of the
    input.

    A run that was interrupted goes on where it stopped, by the same call: `output + ".checkpoint"`
    has the ids of complete files. A call of a complete output does nothing. Input files whose size
    or time of modification is another than at the beginning are refused: ValueError. At the end
    the rows are counted: RuntimeError if there are more or fewer than in the input. A lost node's
    texts are computed by the others. Where it ends the run all the same, as it does while Ray reads
    the files' footers there, the run begins again as long as nothing is written (three times at
    most); later it is a RuntimeError, and the same call goes on.

    cores: of an actor; by default those of the smallest node, at most 8. actors: by default one for
    each such group of cores. An actor asks Ray for half of its cores: the rest is for tasks that
    read and write, and for the actors of a lost node. ship_model=False leaves the folder where
    it is: a path that every node sees, or a hub name that every node fetches.
    """
    given = vector_options(encode_options)
    for name, number in (("cores", cores), ("actors", actors), ("rows_per_file", rows_per_file)):
        if number is not None:
            integer(name, number, 1)
    precision = given.get("precision", "float32")
    if precision not in _PRECISIONS:
        raise ValueError(f"precision is {precision!r}; wanted one of {', '.join(_PRECISIONS)}")
    if not ray.is_initialized():
        ray.init()
    inputs = [_absolute(path) for path in ([input] if isinstance(input, str) else input)]
    files = read_files(find_folder(model)) if ship_model else {}
    target = _Output(
        _absolute(output),
        {
            "input": inputs,
            "model": digest_of(files) if ship_model else os.fspath(model),
            "columns": [id_column, text_column, vector_column, *columns],
            "model_options": _without(model_options, "threads"),
            "encode_options": _without(given, "show_progress_bar", "batch_size"),
        },
        {
            **_states(inputs),
            **({} if ship_model or not os.path.isdir(model) else _states([_absolute(model)])),
        },
    )
    if target.complete:
        return target.count()

    read = list(dict.fromkeys([id_column, text_column, *columns]))
    options = {
        "model": ray.put(files) if ship_model else os.fspath(model),
        "text_column": text_column,
        "vector_column": vector_column,
        "columns": list(dict.fromkeys([id_column, *columns])),
        "model_options": dict(model_options or {}),
        "encode_options": given,
    }

    def run() -> int:
        dataset = ray.data.read_parquet(inputs, columns=read, num_cpus=0.25)
        dataset.context.checkpoint_config = CheckpointConfig(
            id_column, target.checkpoint, delete_checkpoint_on_success=False
        )
        dataset.context.enable_progress_bars = show_progress
        group, pool = _groups(cores, actors)
        dataset.repartition(target_num_rows_per_block=rows_per_file).map_batches(
            EncodeBatches,
            fn_constructor_kwargs={**options, "cores": group},
            batch_size=rows_per_file,
            batch_format="pyarrow",
            compute=ray.data.ActorPoolStrategy(size=pool),
            num_cpus=group / 2,
        ).write_parquet(target.path, ray_remote_args={"num_cpus": 0.25})
        return ray.data.read_parquet(inputs).count()

    wanted = _again_where_a_node_is_lost(run, target)
    written = target.count()
    if written.rows != wanted:
        raise RuntimeError(
            f"{output} has {written.rows} rows, the input has {wanted}; wanted unique ids in "
            f"{id_column}, and an input that does not change"
        )
    target.finish()
    return written


def _again_where_a_node_is_lost(run: Callable[[], int], target: _Output) -> int:
    for left in reversed(range(_TRIES)):
        try:
            return run()
        except Exception as error:
            if not _is_loss(error):
                raise
            time.sleep(_PAUSE)
            if left == 0 or target.is_begun():
                raise RuntimeError(
                    f"{target.path}: a node or a process of Ray was lost, and Ray ended the run "
                    "with it; the same call goes on with the texts that have no vector yet"
                ) from error
    raise AssertionError("a run neither ended nor failed")


def _is_loss(error: BaseException | None) -> bool:
    """Whether Ray lost a process or what it had. Not where an actor's model does not open."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, ray.exceptions.RayActorError):
            return not error.actor_init_failed
        if isinstance(error, ray.exceptions.UnserializableException):
            # Ray cannot read its own ActorDiedError where a task raised it: there is its text.
            text = str(error)
            return "in its creation task" not in text and any(name in text for name in _LOST_NAMES)
        if isinstance(error, _LOSSES):
            return True
        error = getattr(error, "cause", None) or error.__cause__ or error.__context__
    return False


_LOSSES = (
    ray.exceptions.LocalRayletDiedError,
    ray.exceptions.NodeDiedError,
    ray.exceptions.ObjectLostError,
    ray.exceptions.WorkerCrashedError,
)
_LOST_NAMES = [
    f"ray.exceptions.{of.__name__}:"
    for of in (ray.exceptions.ActorDiedError, ray.exceptions.ActorUnavailableError, *_LOSSES)
]


def _absolute(path: str | os.PathLike[str]) -> str:
    name = os.fspath(path)
    return name if "://" in name else os.path.abspath(name)


def _states(paths: Sequence[str | os.PathLike[str]]) -> dict[str, str]:
    """Size and time of modification of each file, and of those in folders: what a checkpoint of
    ids does not have."""
    states = {}
    for path in paths:
        files, place = pafs.FileSystem.from_uri(os.fspath(path))
        found = files.get_file_info(place)
        if found.type == pafs.FileType.Directory:
            listed = files.get_file_info(pafs.FileSelector(place, recursive=True))
        else:
            listed = [found]
        for info in listed:
            if info.type == pafs.FileType.File:
                states[info.path] = f"{info.size} bytes, {info.mtime_ns} ns"
    return states


def _without(options: Mapping[str, Any] | None, *names: str) -> dict[str, Any]:
    """Options that tell which vectors come out."""
    return {key: value for key, value in (options or {}).items() if key not in names}


def _groups(cores: int | None, actors: int | None) -> tuple[int, int]:
    """Cores of an actor, and how many actors."""
    nodes: list[dict[str, Any]] = ray.nodes()  # type: ignore[no-untyped-call, unused-ignore]
    of_nodes = [int(node["Resources"].get("CPU", 0)) for node in nodes if node["Alive"]]
    of_nodes = [count for count in of_nodes if count > 0] or [1]
    group = cores or min(8, *of_nodes)
    return group, actors or max(1, sum(count // group for count in of_nodes))


class _Output:
    """The folder that is written, and the settings of the run that began it."""

    def __init__(
        self, uri: str, settings: Mapping[str, Any], files: Mapping[str, str] | None = None
    ) -> None:
        self.path = uri.rstrip("/")
        self.checkpoint = self.path + ".checkpoint"
        self._files, self._folder = pafs.FileSystem.from_uri(self.path)
        self._remembered = self._files.from_uri(self.checkpoint)[1]
        # As JSON has them.
        self._settings = json.loads(json.dumps(dict(settings), default=str))
        self._read = dict(files or {})  # what is read, and its state
        found = self._load()
        if found is None:
            if self._list(self._folder):
                raise ValueError(f"{uri} has files of others; wanted a new or an empty folder")
            self.complete = False
            self._files.create_dir(self._folder)
            self._save()
            return
        self.complete = bool(found.pop("complete"))
        for key, value in self._settings.items():
            if found.get(key) != value:
                raise ValueError(
                    f"{uri} was begun with {key} {found.get(key)!r}, found {value!r}; wanted the "
                    "same to go on, or a new folder"
                )
        if not self.complete and "files" in found:
            self._want_same_files(found["files"])
        self._forget_halves()

    def _want_same_files(self, then: Mapping[str, str]) -> None:
        """An id of a complete file is not computed again, whatever its text has become."""
        for name in sorted({*then, *self._read}):
            was, now = then.get(name), self._read.get(name)
            if was != now:
                what = "is new" if was is None else "is gone" if now is None else "was changed"
                raise ValueError(
                    f"{name} {what} since {self.path} was begun; wanted an input and a model that "
                    "do not change, or a new folder"
                )

    def count(self) -> Embedded:
        import pyarrow.dataset

        dataset = pyarrow.dataset.dataset(self._folder, filesystem=self._files, format="parquet")
        return Embedded(dataset.count_rows(), len(dataset.files))

    def is_begun(self) -> bool:
        """Whether rows are written, or are about to be."""
        names = [info.base_name for info in self._list(self._folder)]
        return names != [_SETTINGS] or bool(self._list(self._remembered))

    def finish(self) -> None:
        self.complete = True
        self._save()
        if self._files.get_file_info(self._remembered).type != pafs.FileType.NotFound:
            self._files.delete_dir(self._remembered)

    def _forget_halves(self) -> None:
        """A write that was tried again after its commit, and then interrupted, has left a pending
        and a committed list of ids. Ray deletes its file for the former: the latter goes too."""
        names = {info.path for info in self._list(self._remembered)}
        for name in names:
            committed = name.removesuffix(".pending.parquet") + ".parquet"
            if name.endswith(".pending.parquet") and committed in names:
                self._files.delete_file(committed)

    def _list(self, folder: str) -> list[pafs.FileInfo]:
        selector = pafs.FileSelector(folder, allow_not_found=True)
        found: list[pafs.FileInfo] = self._files.get_file_info(selector)
        return found

    def _load(self) -> dict[str, Any] | None:
        path = f"{self._folder}/{_SETTINGS}"
        if self._files.get_file_info(path).type == pafs.FileType.NotFound:
            return None
        with self._files.open_input_stream(path) as stream:
            settings: dict[str, Any] = json.loads(stream.read())
        return settings

    def _save(self) -> None:
        saved = {**self._settings, "files": self._read, "complete": self.complete}
        text = json.dumps(saved, indent=1)
        with self._files.open_output_stream(f"{self._folder}/{_SETTINGS}") as stream:
            stream.write(text.encode())
