#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks into the machine code of the matrix product's register tiles, of all element types: in the
loop over k of each tile no vector register may go through the stack, and there must be as many
multiplications as the tile has accumulators (twice as many for bf16 without a dot product). int4's
tiles have that loop over a group; SSE2 multiplies by several instructions there, and is left out.
And of the loops that measure the machine's roofs (bench/measure/roof_kernels.cc): the one that
reads must load eight vectors a step, those that multiply must store nothing.

usage: check_spills.py OBJECT_OR_LIBRARY [...]     exits 1 if a tile spills, 2 if no tile was found
or, in libencore_measure, a kind of loop that measures a roof was not
"""

import collections
import re
import subprocess
import sys

TILE = re.compile(r"(N_\w+)::.*RunGemmTile<(\d+)u?l?, (\d+)u?l?, [^>]*Type(\w+),[^>]*>")
CHUNK = re.compile(r"(N_(?!SSE2)\w+)::.*RunChunk<(\d+)u?l?, (\d+)u?l?>")
ROOF = re.compile(
    r"(N_\w+)::.*?(ReadLoop|MultiplyAdds|DotProducts<[^>]*Dot(?:Bf16|Int8|Int4)>)\(")
ROOF_LOOPS = ("ReadLoop", "MultiplyAdds", "DotProducts")
LABEL = re.compile(r"^([0-9a-f]+) <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
VECTOR = re.compile(r"%[xyz]mm\d+")
# A vector instruction with an address that it reads from.
LOAD = re.compile(r"^[^%]*\(%r\w+.*\).*%[xyz]mm\d+$")
STORE = re.compile(r"%[xyz]mm\d+,[^%]*\(%r")
READ_CHAINS = 8  # ReadLoop's
MULTIPLY = re.compile(r"^v?(fn?m(add|sub)\d*ps|mulps|dpbf16ps|pdpbusd|pmaddwd|pmaddubsw)$")
# Multiplications of an accumulator and a group of elements.
PER_GROUP = {"F32": 1, "Bf16": 2, "Int8": 1, "Int4": 1}


def functions(path):
    """Yields (match of TILE, CHUNK or ROOF, [(address, mnemonic, operands)]) of each."""
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", path]
    text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    found, body = None, []
    for line in text.splitlines():
        label = LABEL.match(line)
        if label:
            if found:
                yield found, body
            # The partial copies that g++ moves out of line (".cold") have no loop.
            found = None if "cold" in label[2] else next(
                filter(None, (kind.search(label[2]) for kind in (TILE, CHUNK, ROOF))), None)
            body = []
        elif found and (match := INSTRUCTION.match(line)):
            body.append((int(match[1], 16), match[2], match[3]))
    if found:
        yield found, body


def stack_operand(body):
    """What a stack access looks like: %rbp is an ordinary register unless it holds the frame."""
    framed = any(name == "mov" and operands == "%rsp,%rbp" for _, name, operands in body)
    return re.compile(r"\((%rsp|%rbp)[,)]" if framed else r"\(%rsp[,)]")


def inner_loop(body, wanted=lambda b: MULTIPLY.match(b[1])):
    """The loop with wanted instructions: those from a backward jump's target to the jump."""
    for i, (address, name, operands) in enumerate(body):
        if not name.startswith("j"):
            continue
        target = re.match(r"([0-9a-f]+)", operands)
        if not target or int(target[1], 16) >= address:
            continue
        loop = [b for b in body[: i + 1] if b[0] >= int(target[1], 16)]
        if any(wanted(b) for b in loop):
            return loop
    return None


def roof_offence(name, body):
    """What is wrong with a loop that measures a roof, or None."""
    def is_load(b):
        return LOAD.match(b[2]) and not b[1].startswith("prefetch")
    if name != "ReadLoop":
        loop = inner_loop(
            body, lambda b: MULTIPLY.match(b[1]) or b[1] in ("mulps", "addps", "pmullw"))
        if loop is None:
            return "no loop with multiplications"
        stores = [b for b in loop if STORE.search(b[2])]
        return f"{len(stores)} vectors to memory in the loop, wanted none" if stores else None
    loop = inner_loop(body, is_load)
    loads = sum(bool(is_load(b)) for b in loop or [])
    if loads == 0 or loads % READ_CHAINS != 0:
        return f"{loads} loads in the loop, wanted {READ_CHAINS} or a multiple"
    return None


def tile_offences(mr, nv, kind, body):
    """What is wrong with a tile's loop."""
    loop = inner_loop(body)
    if loop is None:
        return ["no loop with multiplications"]
    bad = []
    stack = stack_operand(body)
    spills = [b for b in loop if stack.search(b[2]) and VECTOR.search(b[2])]
    if spills:
        bad.append(f"{len(spills)} vector spills in the loop, e.g. {' '.join(spills[0][1:])}")
    products = sum(bool(MULTIPLY.match(b[1])) for b in loop)
    dot = any("dpbf16ps" in b[1] for b in loop)
    wanted = mr * nv * (1 if dot else PER_GROUP[kind])
    if products != wanted:
        bad.append(f"{products} multiplications in the loop; wanted {wanted}")
    return bad


def main():
    paths = sys.argv[1:]
    if not paths:
        sys.exit(__doc__)
    counts, bad = collections.Counter(), []
    for path in paths:
        roofs = set()
        for match, body in functions(path):
            if match.re is ROOF:
                counts["roofs"] += 1
                roofs.add(match[2].partition("<")[0])
                offence = roof_offence(match[2], body)
                bad += [f"{match[1]} {match[2]}: {offence}"] if offence else []
                continue
            mr, nv = int(match[2]), int(match[3])
            kind = match[4] if match.re is TILE else "Int4"
            counts[kind] += 1
            bad += [f"{match[1]} {kind} {mr}x{nv}: {offence}"
                    for offence in tile_offences(mr, nv, kind, body)]
        absent = [loop for loop in ROOF_LOOPS if loop not in roofs]
        if "libencore_measure" in path and absent:
            print(f"check_spills: {path}: found no {' and no '.join(absent)}; wanted the loops of "
                  "bench/measure/roof_kernels.cc", file=sys.stderr)
            sys.exit(2)
    if not any(kind in counts for kind in PER_GROUP):
        wanted = "the objects of engine/kernels/gemm_*.cc"
        print(f"check_spills: found no RunGemmTile; wanted {wanted}", file=sys.stderr)
        sys.exit(2)
    if "F32" in counts and "Int8" in counts and "Int4" not in counts:
        print("check_spills: found no RunChunk; wanted that of engine/kernels/gemm_int4.cc",
              file=sys.stderr)
        sys.exit(2)
    described = ", ".join(f"{count} of {kind}" for kind, count in sorted(counts.items()))
    print(f"check_spills: {counts.total()} loops ({described}), {len(bad)} bad")
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
