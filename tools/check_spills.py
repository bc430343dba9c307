#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Looks into the machine code of the matrix product's register tiles, of all element types: in the
loop over k of each tile no vector register may go through the stack, and there must be as many
multiplications as the tile has accumulators (twice as many for bf16 without a dot product).

usage: check_spills.py OBJECT_OR_LIBRARY [...]     exits 1 if a tile spills, 2 if no tile was found
"""

import collections
import re
import subprocess
import sys

TILE = re.compile(r"(N_\w+)::.*RunGemmTile<(\d+)u?l?, (\d+)u?l?, [^>]*Type(\w+),[^>]*>")
LABEL = re.compile(r"^([0-9a-f]+) <(.*)>:$")
INSTRUCTION = re.compile(r"^\s*([0-9a-f]+):\s+(\S+)\s*(.*)$")
VECTOR = re.compile(r"%[xyz]mm\d+")
MULTIPLY = re.compile(r"^v?(fn?m(add|sub)\d*ps|mulps|dpbf16ps|pdpbusd|pmaddwd)$")
# Multiplications of an accumulator and a group of elements.
PER_GROUP = {"F32": 1, "Bf16": 2, "Int8": 1}


def functions(path):
    """Yields (target, mr, nv, type, [(address, mnemonic, operands)]) of each tile."""
    command = ["objdump", "-d", "-C", "--no-show-raw-insn", path]
    text = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE).stdout
    tile, body = None, []
    for line in text.splitlines():
        label = LABEL.match(line)
        if label:
            if tile:
                yield (*tile, body)
            match = TILE.search(label[2])
            # The partial copies that g++ moves out of line (".cold") have no loop.
            wanted = match and "cold" not in label[2]
            tile = (match[1], int(match[2]), int(match[3]), match[4]) if wanted else None
            body = []
        elif tile and (match := INSTRUCTION.match(line)):
            body.append((int(match[1], 16), match[2], match[3]))
    if tile:
        yield (*tile, body)


def stack_operand(body):
    """What a stack access looks like: %rbp is an ordinary register unless it holds the frame."""
    framed = any(name == "mov" and operands == "%rsp,%rbp" for _, name, operands in body)
    return re.compile(r"\((%rsp|%rbp)[,)]" if framed else r"\(%rsp[,)]")


def inner_loop(body):
    """The loop with multiplications: the instructions from a backward jump's target to the jump."""
    for i, (address, name, operands) in enumerate(body):
        if not name.startswith("j"):
            continue
        target = re.match(r"([0-9a-f]+)", operands)
        if not target or int(target[1], 16) >= address:
            continue
        loop = [b for b in body[: i + 1] if b[0] >= int(target[1], 16)]
        if any(MULTIPLY.match(b[1]) for b in loop):
            return loop
    return None


def main():
    paths = sys.argv[1:]
    if not paths:
        sys.exit(__doc__)
    tiles, bad = collections.Counter(), []
    for path in paths:
        for target, mr, nv, kind, body in functions(path):
            tiles[kind] += 1
            where = f"{target} {kind} {mr}x{nv}"
            loop = inner_loop(body)
            if loop is None:
                bad.append(f"{where}: no loop with multiplications")
                continue
            stack = stack_operand(body)
            spills = [b for b in loop if stack.search(b[2]) and VECTOR.search(b[2])]
            if spills:
                example = " ".join(spills[0][1:])
                bad.append(f"{where}: {len(spills)} vector spills in the loop, e.g. {example}")
            products = sum(bool(MULTIPLY.match(b[1])) for b in loop)
            dot = any("dpbf16ps" in b[1] for b in loop)
            wanted = mr * nv * (1 if dot else PER_GROUP[kind])
            if products != wanted:
                bad.append(f"{where}: {products} multiplications in the loop; wanted {wanted}")
    if not tiles:
        wanted = "the objects of engine/kernels/gemm_*.cc"
        print(f"check_spills: found no RunGemmTile; wanted {wanted}", file=sys.stderr)
        sys.exit(2)
    counts = ", ".join(f"{count} of {kind}" for kind, count in sorted(tiles.items()))
    print(f"check_spills: {sum(tiles.values())} tiles ({counts}), {len(bad)} bad")
    print("\n".join(bad), end="\n" if bad else "")
    sys.exit(1 if bad else 0)


if __name__ == "__main__":
    main()
