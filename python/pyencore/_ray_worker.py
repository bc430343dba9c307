# SPDX-License-Identifier: Apache-2.0
"""What an actor on another machine needs: a model's folder as bytes, and cores of its own."""

from __future__ import annotations

import fnmatch
import hashlib
import os
import socket
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pyencore._folder import ignored_patterns, patterns

# Paths relative to the folder, and their bytes: Ray keeps arrays in shared memory, uncopied.
Files = dict[str, NDArray[np.uint8]]


def read_files(folder: str | os.PathLike[str]) -> Files:
    """The files of a model's folder that encore reads."""
    root = Path(folder)
    files = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        wanted = any(fnmatch.fnmatch(name, pattern) for pattern in patterns())
        if wanted and not any(fnmatch.fnmatch(name, pattern) for pattern in ignored_patterns()):
            if path.is_file():
                files[name] = np.fromfile(path, np.uint8)
    return files


def write_files(files: Files, folder: str | os.PathLike[str]) -> None:
    for name, data in files.items():
        path = Path(folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        data.tofile(path)


def digest_of(files: Files) -> str:
    """The same for the same files, wherever they lie."""
    digest = hashlib.sha256()
    for name, data in files.items():
        digest.update(f"{name}\0{data.nbytes}\0".encode())
        digest.update(data.data)
    return digest.hexdigest()


class BoundCores:
    """Binds this process, with all its threads, to `count` cores that no other BoundCores of this
    machine has, until the process ends. `cores` is empty where there are not so many: then nothing
    is bound.
    """

    mark_of_core = "\0pyencore-core-{}"  # a socket's name without a file: freed with its process

    def __init__(self, count: int) -> None:
        self.cores: list[int] = []
        self._marks: list[socket.socket] = []
        if not hasattr(os, "sched_setaffinity"):
            return
        usable = sorted(os.sched_getaffinity(0))
        # Whole groups in a fixed order, so that two processes never hold a half each.
        for begin in range(0, len(usable) - count + 1, count):
            group = usable[begin : begin + count]
            if self._take(group):
                self.cores = group
                break
        for thread in os.listdir("/proc/self/task") if self.cores else ():
            try:
                os.sched_setaffinity(int(thread), self.cores)
            except ProcessLookupError:  # it has ended meanwhile
                pass

    def _take(self, group: list[int]) -> bool:
        for core in group:
            mark = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            self._marks.append(mark)
            try:
                mark.bind(self.mark_of_core.format(core))
            except OSError:
                self.release()
                return False
        return True

    def release(self) -> None:
        """Gives the cores to others."""
        for mark in self._marks:
            mark.close()
        self._marks, self.cores = [], []
