#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# Draws the rooms of the source tree and checks the direction of includes between them: downward
# only. Also checks that third-party and system headers stay in the rooms made for them, and that no
# files include each other in a circle, and with --objects that links go the same way as includes.
#
#   tools/check_layers.py            draw, check, exit 1 with one line for each offence
#   tools/check_layers.py --quiet    check only
#   tools/check_layers.py --root DIR look at another tree
#   tools/check_layers.py --objects BUILD  also check the engine's objects in a build folder

import argparse
import collections
import graphlib
import pathlib
import re
import subprocess
import sys

# The rooms of the library encore::text, and those of encore::encore with the public headers.
TEXT = ["engine/text", "engine/models", "engine/tokenizer", "engine/images"]
ENGINE = ["engine/nn", "engine/io", "engine/ops", "engine/kernels", "engine/platform",
          "engine/base", "include/encore"]

# The names and shapes of a layer's tensors: a header without functions to link.
LAYER_TABLE = "engine/nn/layer_tensors.h"

# Top to bottom: each room with the rooms, or single headers, it may include besides itself.
ROOMS = {
    "bench": ["bench/measure", "reference", *TEXT, *ENGINE],
    "tests": ["tools/encore", "tools/serve", "tools/images", "reference/exhaustive",
              "bench/measure", "reference", *TEXT, *ENGINE],
    "tools/encore": ["tools/serve", "tools/images", "bench/measure", *TEXT, *ENGINE],
    # Files of pictures, for the command and for fuzzing.
    "tools/images": ["engine/platform", "engine/base", "include/encore"],
    # The server is a client of the libraries: it sees their public interface alone.
    "tools/serve": ["include/encore"],
    # The search over all floats, of `encore verify` and of the tests.
    "reference/exhaustive": ["reference", "engine/kernels", "engine/base", "include/encore"],
    # What the benchmarks share with `encore bench`: sizes, data, timing, the peak.
    "bench/measure": ["reference", "engine/nn", "engine/kernels", "engine/platform",
                      "engine/base", "include/encore"],
    # The references say what is right, so they share no arithmetic with the engine.
    "reference": ["include/encore"],
    # The C interface is a client: it sees the C++ interface alone.
    "engine/c_api": ["engine/base", "include/encore"],
    # The library encore::text: of the engine it sees the public interface, files and the bottom.
    "engine/text": ["engine/models", "engine/tokenizer", "engine/images", "engine/io",
                    "engine/platform", "engine/base", "include/encore"],
    "engine/models": [LAYER_TABLE, "engine/io", "engine/platform", "engine/base",
                      "include/encore"],
    "engine/tokenizer": ["engine/io", "engine/platform", "engine/base", "include/encore"],
    "engine/images": ["engine/io", "engine/platform", "engine/base", "include/encore"],
    # The library encore::encore.
    "engine/nn": ["engine/ops", "engine/kernels", "engine/platform", "engine/base",
                  "include/encore"],
    "engine/ops": ["engine/kernels", "engine/platform", "engine/base", "include/encore"],
    "engine/io": ["engine/platform", "engine/base", "include/encore"],
    # No threads, no allocation, no I/O: kernels see the bottom only.
    "engine/kernels": ["engine/base", "include/encore"],
    "engine/platform": ["engine/base", "include/encore"],
    "engine/base": ["include/encore"],
    "include/encore": [],
}

# Single files that may include a room which their own room may not.
EXCEPTIONS = {
    # What the command takes of the references, and why.
    "tools/encore/definitions.h": ["reference/exhaustive", "reference"],
    # Holds no reference, but the list of kernels that are checked against one.
    "reference/accuracy.h": ["engine/kernels"],
    # Draw weights, tensor after tensor of the engine's table, and round them to bf16 and f16.
    "reference/layer_weights.cc": [LAYER_TABLE],
    "reference/encoder_model.cc": ["engine/base"],
}

# C's headers in the header for C: all other public headers are C++.
C_HEADERS = {"include/encore/c_api.h": ["stddef.h", "stdint.h"]}

# Headers from elsewhere, and the places that may include them.
FOREIGN = {
    "hwy/": ["engine/kernels/", "engine/platform/cpu_info.cc",
             "engine/base/simd_targets.cc", "tests/", "bench/"],
    "omp.h": ["engine/platform/thread_team.", "bench/"],
    "nlohmann/": ["engine/io/", "tests/", "tools/", "bench/"],
    "boost/": ["tools/serve/", "tests/fuzz/serve_target.cc"],
    "png.h": ["tools/images/decode_png.cc"],
    **dict.fromkeys(("jpeglib.h", "jerror.h"), ["tools/images/decode_jpeg.cc"]),
    "webp/": ["tools/images/decode_webp.cc"],
    "CLI/": ["tools/encore/command_line.cc", "bench/common.cc"],
    "gtest/": ["tests/"],
    "gmock/": ["tests/"],
    "benchmark/": ["bench/"],
    # The operating system.
    **dict.fromkeys(("sys/", "linux/", "mach/", "unistd.h", "fcntl.h", "sched.h", "pthread.h",
                     "windows.h", "io.h"),
                    ["engine/platform/", "bench/", "tests/", "tools/"]),
}
# Ask for large pages, and whether an ARM processor has SDOT.
FOREIGN["sys/"] = [*FOREIGN["sys/"], "engine/base/aligned_buffer.cc",
                   "engine/base/simd_targets.cc"]

INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
OMP_PRAGMA = re.compile(r"^\s*#\s*pragma\s+omp\b|_Pragma\s*\(\s*\"omp\b")


def room_of(path):
    """The room of a repository path, or None: the longest name in ROOMS that it starts with."""
    fits = [room for room in ROOMS if path.startswith(room + "/")]
    return max(fits, key=len, default=None)


def repository_path(name):
    """Where an include of this name lies in the tree: public headers are named without include/."""
    return "include/" + name if name.startswith("encore/") else name


def source_files(root):
    for top in ("include", "engine", "reference", "tests", "bench", "tools"):
        for path in sorted((root / top).rglob("*")):
            if path.suffix in (".h", ".cc") and "tests/consumer" not in path.as_posix():
                yield path.relative_to(root).as_posix()


def check_file(root, path, offences):
    """Checks one file alone; returns the files of the tree that it includes."""
    included = []
    room = room_of(path)
    if room is None:
        offences.append(f"{path}: lies in no room; the rooms are {', '.join(ROOMS)}")
        return included
    for number, line in enumerate((root / path).read_text().splitlines(), start=1):
        where = f"{path}:{number}"
        if OMP_PRAGMA.search(line) and not path.startswith("engine/platform/thread_team."):
            if not path.startswith("bench/"):
                offences.append(f"{where}: OpenMP outside engine/platform/thread_team")
        match = INCLUDE.match(line)
        if not match:
            continue
        bracket, name = match.groups()
        for prefix, places in FOREIGN.items():
            fits = name.startswith(prefix) if prefix.endswith("/") else name == prefix
            if fits and not path.startswith(tuple(places)):
                offences.append(f"{where}: <{name}> belongs to {', '.join(places)} only")
        target = repository_path(name)
        target_room = room_of(target)
        if target_room is None:
            if bracket == '"' and not any(name.startswith(p) for p in FOREIGN):
                offences.append(f'{where}: "{name}" is no path from the root of the tree')
            elif (room == "include/encore" and ("/" in name or name.endswith(".h"))
                  and name not in C_HEADERS.get(path, [])):
                offences.append(f"{where}: public headers include encore/ and the standard "
                                f"library only, not <{name}>")
            continue
        if bracket == "<":
            offences.append(f'{where}: write "{name}", it is our own')
        if not (root / target).is_file():
            offences.append(f"{where}: there is no {target}")
            continue
        allowed = [room, *ROOMS[room], *EXCEPTIONS.get(path, [])]
        if target_room not in allowed and target not in allowed:
            offences.append(f"{where}: {room} may not include {target_room} ({name})")
        included.append(target)
    return included


def check_links(build, offences):
    """Checks that a room's objects need internal functions of the rooms that it may include only.

    Functions of the public headers may be defined in any room. Needs nm.
    """
    internal = re.compile(r"([UTDBR]) (_ZN[KVrO]*6encore4v\d+_\d+8internal.*)")
    defined, needed = collections.defaultdict(set), collections.defaultdict(set)
    for path in sorted(build.glob("engine/CMakeFiles/encore*objects.dir/**/*.o")):
        name = path.as_posix()
        room = re.search(r"objects\.dir/(?:Unity/unity_)?([a-z]+)", name)[1]
        symbols = subprocess.run(["nm", str(path)], check=True, capture_output=True, text=True)
        for kind, symbol in internal.findall(symbols.stdout):
            if kind == "U":
                needed["engine/" + room].add(symbol)
            else:
                defined[symbol].add("engine/" + room)
    if not defined:
        offences.append(f"{build}: no objects of the engine here")
    for room, symbols in needed.items():
        for symbol in sorted(symbols & defined.keys()):
            # A build folder may also have objects of files that were moved since.
            if defined[symbol].isdisjoint([room, *ROOMS[room]]):
                offences.append(f"{symbol}: {room} needs it, and {', '.join(defined[symbol])} "
                                "defines it")


def find_circle(graph):
    """A list of files that include each other in a circle, or None."""
    # A file under foreach_target includes itself.
    others = {path: [t for t in targets if t != path] for path, targets in graph.items()}
    try:
        graphlib.TopologicalSorter(others).prepare()
    except graphlib.CycleError as error:
        return error.args[1][::-1]
    return None


def draw(graph):
    """Prints each room, top to bottom, with the number of includes into each room below."""
    files = collections.Counter(map(room_of, graph))
    includes = collections.Counter((room_of(path), room_of(target))
                                   for path, targets in graph.items() for target in targets)
    for room in ROOMS:
        arrows = ", ".join(f"{below} ({includes[room, below]})" for below in ROOMS
                           if below != room and includes[room, below])
        print(f"{room:16} {files[room]:3} files  ->  {arrows or 'nothing'}")


def main():
    parser = argparse.ArgumentParser(description="Draws and checks the direction of includes.")
    parser.add_argument("--quiet", action="store_true", help="do not draw")
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).resolve().parent.parent)
    parser.add_argument("--objects", type=pathlib.Path, help="a build folder")
    arguments = parser.parse_args()

    offences = []
    graph = {path: check_file(arguments.root, path, offences)
             for path in source_files(arguments.root)}
    if arguments.objects:
        check_links(arguments.objects, offences)
    if not graph:
        offences.append(f"{arguments.root}: no source files here")
    circle = find_circle(graph)
    if circle:
        offences.append("a circle of includes: " + " -> ".join(circle))
    if not arguments.quiet:
        draw(graph)
    for offence in offences:
        print(offence, file=sys.stderr)
    return 1 if offences else 0


if __name__ == "__main__":
    sys.exit(main())
