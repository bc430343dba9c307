# SPDX-License-Identifier: Apache-2.0
"""Makes maps of characters as sentencepiece's models hold them, for the normalizer Precompiled.

Holds the layout: the size of a double array in bytes, its units of 32 bits (darts-clone's), and the
replacements with a zero byte behind each, all little-endian.
"""
import struct


def make(replacements):
    """The bytes of a map from {string: what it becomes}."""
    texts = sorted(set(replacements.values()))
    blob = b"".join(text.encode() + b"\0" for text in texts)
    places, place = {}, 0
    for text in texts:
        places[text] = place
        place += len(text.encode()) + 1

    tree = {}  # of bytes; the key None holds a value
    for key, text in replacements.items():
        node = tree
        for byte in key.encode():
            node = node.setdefault(byte, {})
        node[None] = places[text]

    units, bases = [0] * 256, {0}
    taken = {0}

    def base_for(node):
        """Where the children's places, base ^ byte, and the value's, base, are free."""
        for base in range(1, 1 << 20):
            wanted = {base} | {base ^ byte for byte in node if byte is not None}
            if base not in bases and not wanted & taken:
                bases.add(base)
                taken.update(wanted)
                while len(units) <= (base | 0xFF):
                    units.extend([0] * 256)
                return base
        raise ValueError("too many strings")

    def fill(node, place, label):
        base = base_for(node)
        units[place] = (place ^ base) << 10 | (None in node) << 8 | label
        if None in node:
            units[base] = 1 << 31 | node[None]
        for byte, child in sorted((b, c) for b, c in node.items() if b is not None):
            fill(child, base ^ byte, byte)

    fill(tree, 0, 0)
    array = struct.pack(f"<{len(units)}I", *units)
    return struct.pack("<I", len(array)) + array + blob
