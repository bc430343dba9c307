#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reads what a program for macOS asks of its system, where no Mac is there to run it:

    tools/check_macho.py PROGRAM ARCHITECTURE MACOS    e.g. build/.../encore arm64 15.0

It is a program for that architecture, for that macOS and newer, and loads the system's library
alone. Prints what it found. Exit status: 0, or 1 and a sentence.
"""

import struct
import sys

MAGIC = 0xFEEDFACF  # 64 bits, little-endian
EXECUTE = 2
CPUS = {0x01000007: "x86_64", 0x0100000C: "arm64"}
LOADS = {0xC, 0x80000018, 0x8000001F}  # LC_LOAD_DYLIB, _WEAK_ and REEXPORT_
BUILD_VERSION = 0x32
PLATFORM_MACOS = 1
SYSTEM = "/usr/lib/libSystem.B.dylib"


def read(path):
    """(architecture, kind, macOS, libraries) of the file."""
    with open(path, "rb") as file:
        data = file.read()
    if len(data) < 32 or struct.unpack_from("<I", data)[0] != MAGIC:
        sys.exit(f"{path}: found no Mach-O file of 64 bits, wanted one")
    cpu, _, kind, commands = struct.unpack_from("<IIII", data, 4)
    at, version, libraries = 32, None, []
    for _ in range(commands):
        command, size = struct.unpack_from("<II", data, at)
        if command in LOADS:
            name = struct.unpack_from("<I", data, at + 8)[0]
            libraries.append(data[at + name:at + size].split(b"\0")[0].decode())
        elif command == BUILD_VERSION:
            platform, minimum = struct.unpack_from("<II", data, at + 8)
            if platform == PLATFORM_MACOS:
                version = f"{minimum >> 16}.{minimum >> 8 & 255}"
        at += size
    return CPUS.get(cpu, hex(cpu)), kind, version, libraries


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    path, architecture, version = sys.argv[1:]
    found = read(path)
    wanted = (architecture, EXECUTE, version, [SYSTEM])
    for name, is_there, is_wanted in zip(
            ("architecture", "type of file", "oldest macOS", "libraries"), found, wanted):
        if is_there != is_wanted:
            sys.exit(f"{path}: {name}: found {is_there}, wanted {is_wanted}")
    print(f"{path}: for {architecture}, macOS {version} and newer; it loads {SYSTEM} alone")


if __name__ == "__main__":
    main()
