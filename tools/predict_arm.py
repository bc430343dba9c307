#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicts how near the matrix product's register tiles are to the peak of ARM's cores, where there
is none to measure on: compiles the tiles for AArch64, finds their loops over k in the assembly, and
lets llvm-mca count the cycles of a step, as if all of A and B were in L1. The peak is what llvm-mca
gives 24 independent products of the same kind. Prints a Markdown table.

It needs clang and llvm-mca from version 17 on, which has models of these cores (on Debian 12 and
Ubuntu: `apt-get install clang-19 llvm-19`), and Highway's sources in .deps (tools/setup.sh --ci).

usage: predict_arm.py [--tile MRxNV] [--clang COMMAND] [--mca COMMAND]
"""

import argparse
import concurrent.futures
import glob
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
CORES = ("neoverse-n1", "neoverse-n2", "neoverse-v1", "neoverse-v2", "apple-m1")
OLDEST = 17
# Of a type: the kernels' file, and the instruction that a tile multiplies by.
TYPES = {"F32": ("f32", "fmla"), "Bf16": ("bf16", "fmla"), "Int8": ("int8", "sdot")}
OPERANDS = {"fmla": "v{0}.4s, v30.4s, v31.s[0]", "sdot": "v{0}.4s, v30.16b, v31.4b[0]"}
# As the library is compiled, but for fewer targets: NEON_WITHOUT_AES, which always is, and NEON.
OPTIONS = ("--target=aarch64-linux-gnu", "-std=c++20", "-O3", "-DNDEBUG", "-fno-fast-math",
           "-ffp-contract=off", "-DHWY_DISABLED_TARGETS=(HWY_ALL_SVE|HWY_NEON_BF16)")
TILE = re.compile(r"N_NEON::RunGemmTile<(\d+)ul, (\d+)ul, \(.*?\)(\d+), .*Type(\w+), 1ul>")
LABEL = re.compile(r"^(\.?\w+):")
BRANCH = re.compile(r"^(?:b\.\w+|b|cbn?z|tbn?z)\s.*?(\.LBB\w+)$")
LOAD = re.compile(r"^(ld\w*)\s")
PREFETCH_ONE_LINE = "1"  # TilePrefetch::kOneLine, which whole panels are read with


def newest_mca():
    """The newest llvm-mca of Debian's folders."""
    def version(path):
        return int(re.search(r"llvm-(\d+)", path)[1])
    found = sorted(glob.glob("/usr/lib/llvm-*/bin/llvm-mca"), key=version)
    if found and version(found[-1]) >= OLDEST:
        return found[-1]
    sys.exit(f"predict_arm: found {found or 'no llvm-mca'}; wanted llvm-mca from version {OLDEST} "
             "on, as in the package llvm-19, or --mca COMMAND")


def newest_clang():
    result = subprocess.run([os.path.join(ROOT, "tools/newest_clang.sh"), str(OLDEST)],
                            text=True, stdout=subprocess.PIPE, check=False)
    if result.returncode != 0:
        sys.exit(f"predict_arm: found no clang from version {OLDEST} on; wanted one, as in the "
                 "package clang-19, or --clang COMMAND")
    return result.stdout.strip()


def assembly(clang, kind):
    """The assembly of a type's tiles, names demangled."""
    highway = os.path.join(ROOT, ".deps/highway-source")
    if not os.path.isdir(highway):
        sys.exit(f"predict_arm: found no {highway}; wanted Highway's sources: tools/setup.sh --ci")
    command = [clang, *OPTIONS, f"-I{ROOT}", f"-I{ROOT}/include", "-isystem", highway,
               f"{ROOT}/engine/kernels/gemm_{TYPES[kind][0]}.cc", "-S", "-o", "-"]
    text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    return subprocess.run(["c++filt"], check=True, text=True, input=text,
                          stdout=subprocess.PIPE).stdout


def tiles(text, kind):
    """{(mr, nv): lines} of the tiles of a type that prefetch a line a step."""
    found, body = {}, None
    for line in text.splitlines():
        if ": " in line and (match := TILE.search(line)) and line.rstrip().endswith(")"):
            wanted = match[3] == PREFETCH_ONE_LINE and match[4] == kind
            body = found.setdefault((int(match[1]), int(match[2])), []) if wanted else None
        elif ".cfi_endproc" in line:
            body = None
        elif body is not None:
            body.append(line.partition("//")[0].strip())
    return found


def loop_over_k(body, product):
    """The instructions of the loop with the most products."""
    begins, best = {}, []
    for i, line in enumerate(body):
        if label := LABEL.match(line):
            begins[label[1]] = i
        elif (branch := BRANCH.match(line)) and branch[1] in begins:
            loop = [b for b in body[begins[branch[1]]: i] if b and b[0] != "." and b[-1] != ":"]
            if sum(b.startswith(product) for b in loop) > sum(b.startswith(product) for b in best):
                best = loop + ["b.ne 0"]
    return best


def cycles(mca, core, instructions, rounds=1000):
    """Of one round of the instructions."""
    command = [mca, "-mtriple=aarch64", "-mcpu", core, f"-iterations={rounds}"]
    out = subprocess.run(command, check=True, text=True, input="\n".join(instructions) + "\n",
                         stdout=subprocess.PIPE).stdout
    return int(re.search(r"Total Cycles:\s+(\d+)", out)[1]) / rounds


def peak_cycles(mca, core, product):
    """Of one product, with 24 chains."""
    return cycles(mca, core, [f"{product} " + OPERANDS[product].format(i)
                              for i in range(24)]) / 24


def row(mca, kind, shape, body):
    """A row of the table."""
    name, product = TYPES[kind]
    loop = loop_over_k(body, product)
    products = sum(b.startswith(product) for b in loop)
    if products == 0:
        sys.exit(f"predict_arm: found no {product} in the tile of {shape[0]} rows and {shape[1]} "
                 f"vectors of {name}; wanted a loop of them")
    # A pair of registers is two loads.
    loads = sum(2 if LOAD.match(b)[1] == "ldp" else 1 for b in loop if LOAD.match(b))
    cells = []
    for core in CORES:
        of_step = cycles(mca, core, loop)
        share = products * peak_cycles(mca, core, product) / of_step
        cells.append(f"{of_step:.1f}, {100 * share:.0f} %")
    fields = [name, f"{shape[0]}x{shape[1]}", f"{products} {product.upper()}", str(loads),
              str(len(loop)), *cells]
    return "| " + " | ".join(fields) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\nusage")[0],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tile", metavar="MRxNV", action="append",
                        help="rows and vectors; default: the tallest with three vectors")
    parser.add_argument("--clang", metavar="COMMAND")
    parser.add_argument("--mca", metavar="COMMAND")
    args = parser.parse_args()
    clang, mca = args.clang or newest_clang(), args.mca or newest_mca()
    with concurrent.futures.ThreadPoolExecutor() as pool:
        texts = list(pool.map(lambda kind: assembly(clang, kind), TYPES))
    print("| precision | tile | products | loads | instructions | "
          + " | ".join(core.partition("-")[2].upper() for core in CORES) + " |")
    print("|---|---|--:|--:|--:|" + "--:|" * len(CORES))
    for kind, text in zip(TYPES, texts):
        found = tiles(text, kind)
        wanted = [tuple(map(int, tile.split("x"))) for tile in args.tile or []]
        for shape in wanted or [max(shape for shape in found if shape[1] == 3)]:
            if shape not in found:
                sys.exit(f"predict_arm: found no tile {shape[0]}x{shape[1]} of {TYPES[kind][0]}; "
                         "wanted one of " + " ".join(f"{m}x{n}" for m, n in sorted(found)))
            print(row(mca, kind, shape, found[shape]))


if __name__ == "__main__":
    main()
