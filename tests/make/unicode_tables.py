#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes engine/tokenizer/unicode_data.cc: what the Hugging Face `tokenizers` library does with
each code point, found by asking the library.

That library mixes versions of Unicode: general categories of 8.0, decompositions of 9.0, lower case
and white space of the Rust it was built with. No system library has that mixture, so each table is
an answer of the installed wheel, about every scalar value. Needs tokenizers 0.23.3 (from PyPI).

  tests/make/unicode_tables.py           asks and writes the file
  tests/make/unicode_tables.py --check   asks and compares with the file; exit 1 if they differ

engine/tokenizer/unicode_data.h describes the tables.
"""
import pathlib
import struct
import sys
import unicodedata

from tokenizers import Regex, normalizers, pre_tokenizers

from made_files import VERSION, write_or_check

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "engine" / "tokenizer"
SCALARS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic
NFD = normalizers.NFD()

# Bits of CharProperty in unicode.h.
CLEANED, WHITE, CHINESE, NONSPACING, MARK, PUNCTUATION, WORD, DECOMPOSES, HAS_LOWER = (
    1 << bit for bit in range(9))
ORDER_SHIFT = 24

# And those of patterns there, behind these.
PATTERN_SHIFT = 9
(LETTER, NUMBER, SPACE, NUMERIC, EXTENDS, PREPENDS, CONTROLS, PICTOGRAPH, CONSONANT, LINKER,
 CONJOINS) = (1 << bit for bit in range(11))


def bert(**options):
    settings = {"clean_text": False, "handle_chinese_chars": False, "strip_accents": False,
                "lowercase": False, **options}
    return normalizers.BertNormalizer(**settings).normalize_str


def decompositions():
    """{code point: its full canonical decomposition}, Hangul syllables left out."""
    found = {}
    for c in SCALARS:
        parts = NFD.normalize_str(chr(c))
        if c in HANGUL:
            assert parts == unicodedata.normalize("NFD", chr(c)), hex(c)
        elif parts != chr(c):
            found[c] = parts
    return found


def lowercase():
    """{code point: its lower case}; only U+0130 may have one of two characters."""
    lower = normalizers.Lowercase().normalize_str
    found = {c: lower(chr(c)) for c in SCALARS if lower(chr(c)) != chr(c)}
    assert {c: v for c, v in found.items() if len(v) > 1} == {0x130: "i\u0307"}
    return {c: ord(v[0]) for c, v in found.items()}


def order_ranks(decomposed):
    """{code point: rank of its canonical combining class among those in use, from 1}, found by
    which pairs the library reorders. Class 0 is left out."""

    def swaps(first, second):
        return NFD.normalize_str(first + second) != first + second

    lowest, highest = "\u0334", "\u0345"  # of classes 1 and 240
    marks = [c for c in SCALARS if c not in decomposed and c not in HANGUL
             and (swaps(chr(c), lowest) or swaps(highest, chr(c)))]
    one_of = {}  # class: a mark that has it
    for c in marks:
        if unicodedata.combining(chr(c)):
            one_of.setdefault(unicodedata.combining(chr(c)), chr(c))
    classes = sorted(one_of)
    assert classes[0] == 1 and classes[-1] == 240 and len(classes) < 63
    for low, high in zip(classes, classes[1:]):
        assert swaps(one_of[high], one_of[low]) and not swaps(one_of[low], one_of[high])
    ranks = {}
    for c in marks:
        fits = [rank for rank, which in enumerate(classes, start=1)
                if not swaps(chr(c), one_of[which]) and not swaps(one_of[which], chr(c))]
        assert len(fits) == 1, hex(c)
        ranks[c] = fits[0]
    return ranks


def classes(decomposed):
    """[class] by code point; surrogates have class 0."""
    found = [0] * 0x110000
    clean, chinese = bert(clean_text=True), bert(handle_chinese_chars=True)
    strip, accents = bert(strip_accents=True), normalizers.StripAccents().normalize_str
    punctuation = pre_tokenizers.BertPreTokenizer().pre_tokenize_str
    words = pre_tokenizers.Whitespace().pre_tokenize_str
    for c in SCALARS:
        between = "a" + chr(c) + "a"
        bits = 0
        splits = len(punctuation(between))  # 1: a letter, 2: white space, 3: punctuation
        bits |= {1: 0, 2: WHITE, 3: PUNCTUATION}[splits]
        pieces = len(words(between))  # 1: \w, 2: \s, 3: neither
        assert (pieces == 2) == (splits == 2), hex(c)
        bits |= WORD if pieces == 1 else 0
        cleaned = clean(between)
        if cleaned == "aa":
            bits |= CLEANED
        else:
            assert cleaned == ("a a" if bits & WHITE else between), hex(c)
        if chinese(chr(c)) != chr(c):
            assert chinese(chr(c)) == f" {chr(c)} ", hex(c)
            bits |= CHINESE
        if c not in decomposed and c not in HANGUL and strip(between) == "aa":
            bits |= NONSPACING
        if accents(between) == "aa":
            bits |= MARK
        found[c] = bits
    for c, parts in decomposed.items():  # a character is decomposed first, then stripped
        wanted = "".join(p for p in parts if not found[ord(p)] & NONSPACING)
        assert strip("a" + chr(c)) == "a" + wanted, hex(c)
    for c, rank in order_ranks(decomposed).items():
        found[c] |= rank << ORDER_SHIFT
    return found


def replacing(key):
    """A Precompiled normalizer that turns one string into X: a double array of the darts-clone kind
    whose nodes lie 256 apart, as the charsmap of sentencepiece holds one."""
    units, place = [0] * (256 * (len(key) + 2)), 0
    units[0] = 256 << 10
    for depth, byte in enumerate(key, start=1):
        place = 256 * depth ^ byte
        leaf = depth == len(key)
        units[place] = (place ^ 256 * (depth + 1)) << 10 | leaf << 8 | byte
    units[256 * (len(key) + 1)] = 1 << 31  # the value: where X begins
    blob = struct.pack(f"<{len(units)}I", *units)
    return normalizers.Precompiled(struct.pack("<I", len(blob)) + blob + b"X\0").normalize_str


def pattern_classes():
    """[class] by code point, as regular expressions, Digits, NFC and grapheme clusters see it."""
    check_contractions()
    found = [0] * 0x110000
    regexes = {LETTER: r"\p{L}", NUMBER: r"\p{N}", SPACE: r"\s"}
    for bit, regex in regexes.items():
        split = pre_tokenizers.Split(Regex(regex), "removed").pre_tokenize_str
        for c in SCALARS:
            found[c] |= 0 if split(chr(c)) else bit
    digits = pre_tokenizers.Digits(individual_digits=True).pre_tokenize_str
    after_a, after_joiner = replacing(b"a"), replacing("\u00a9".encode())
    two_marks = replacing("\u0301\u0323".encode())
    ssa = replacing("\u0937".encode())  # Devanagari: a consonant; virama is a linker
    for c in SCALARS:
        found[c] |= NUMERIC if len(digits("a" + chr(c) + "a")) == 3 else 0
        # Clusters of 6 bytes are not looked up as a whole, so longer ones need no answer.
        one = replacing(chr(c).encode())
        if after_a("a" + chr(c)) == "X":
            found[c] |= EXTENDS
        elif after_joiner("\u00a9\u200d" + chr(c)) != "X" + chr(c):
            found[c] |= PICTOGRAPH
        if one(chr(c) + "a") == "X":
            found[c] |= PREPENDS
        if two_marks(chr(c) + "\u0301\u0323").endswith("X"):  # they are a cluster of their own
            found[c] |= CONTROLS
        # What joins another consonant to it makes the cluster longer than the accent's.
        if ssa(chr(c) + "\u094d\u0937\u0301").endswith("\u0301"):
            found[c] |= CONSONANT
        if not found[c] & PREPENDS and ssa(f"\u0915{chr(c)}\u0937\u0301").endswith("\u0301"):
            found[c] |= LINKER
        if found[c] & EXTENDS and ssa(f"\u0915{chr(c)}\u094d\u0937\u0301").endswith("\u0301"):
            found[c] |= CONJOINS
    return found


def check_contractions():
    """Without regard to case, 's has a third form, with the long s."""
    regex = Regex("(?i:'s|'t|'re|'ve|'m|'ll|'d)")
    split = pre_tokenizers.Split(regex, "removed").pre_tokenize_str
    for before, behind, letters in (("'", "", "stmdSTMD\u017f"), ("'", "e", "rvRV"),
                                    ("'", "l", "lL"), ("'r", "", "eE"), ("'v", "", "eE"),
                                    ("'l", "", "lL")):
        matches = {chr(c) for c in SCALARS if not split(before + chr(c) + behind)}
        assert matches == set(letters), (before, behind, sorted(matches))


def compatibility():
    """Like decompositions(), of what has another compatibility decomposition."""
    decompose = normalizers.NFKD().normalize_str
    return {c: decompose(chr(c)) for c in SCALARS
            if decompose(chr(c)) != NFD.normalize_str(chr(c))}


def records(decomposed, lower):
    """[(its CharProperty bits, what it adds to become lower case)] by code point."""
    found = [own | pattern << PATTERN_SHIFT
             for own, pattern in zip(classes(decomposed), pattern_classes())]
    for c in (*decomposed, *HANGUL):
        found[c] |= DECOMPOSES
    for c in lower:
        found[c] |= HAS_LOWER
    return [(bits, lower.get(c, c) - c) for c, bits in enumerate(found)]


def parts_of(decomposed, compatible):
    """[where its parts are] by code point, and the parts: for each code point that has some, how
    many canonical ones + 256 * how many compatible ones, then these. Place 0 has none. Four can be
    read at each."""
    values, place_of = [0], {("", ""): 0}
    places = [0] * 0x110000
    for c in sorted({*decomposed, *compatible}):
        both = decomposed.get(c, ""), compatible.get(c, "")
        if both not in place_of:
            place_of[both] = len(values)
            values += [len(both[0]) + 256 * len(both[1]), *map(ord, both[0] + both[1])]
        places[c] = place_of[both]
    return places, values + [0] * 3


def compositions(decomposed):
    """[(first, second, composed)] by slot: a hash table that is half empty. A character composes of
    the one that its other parts compose to, and its last part."""
    compose = normalizers.NFC().normalize_str
    slots = [(0, 0, 0)] * 2048
    for c, parts in decomposed.items():
        if compose(chr(c)) != chr(c):
            continue
        first = compose(parts[:-1])
        assert len(first) == 1, hex(c)
        pair = ord(first), ord(parts[-1])
        # As Compose in unicode.cc.
        slot = (pair[0] << 32 | pair[1]) * 0x9E3779B97F4A7C15 % 2**64 >> 53
        while slots[slot] != (0, 0, 0):
            slot = (slot + 1) % len(slots)
        slots[slot] = *pair, c
    return slots


def blocks(values):
    """The number of each block of 256 values, and the blocks, of which none is there twice."""
    number = {}
    numbers = [number.setdefault(tuple(values[c:c + 256]), len(number))
               for c in range(0, len(values), 256)]
    assert len(number) <= 256
    return numbers, list(number)


def array(kind, name, values):
    """A line has a row of 256 values, or up to 64 structs, or up to 256 numbers."""
    def text(value):
        if not isinstance(value, tuple):
            return str(value)
        return "{" + ",".join(map(str, value if any(value) else ())) + "}"

    size = len(values[0]) if isinstance(values[0], tuple) else 1
    width = {256: 1, 1: 256}.get(size, 64)
    lines = [",".join(map(text, values[i:i + width])) for i in range(0, len(values), width)]
    return f"extern const {kind} {name} = {{\n" + ",\n".join(lines) + "};\n"


def data():
    decomposed, lower = decompositions(), lowercase()
    of_char = records(decomposed, lower)
    kinds = sorted(set(of_char))
    kind_of = {kind: number for number, kind in enumerate(kinds)}
    assert len(kinds) <= 256
    char_blocks, char_rows = blocks([kind_of[record] for record in of_char])
    places, parts = parts_of(decomposed, compatibility())
    part_blocks, part_rows = blocks(places)
    assert len(parts) < 65536
    tables = [
        array("CharRecord", "kCharRecords[]", kinds),
        array("uint8_t", "kCharBlocks[]", char_blocks),
        array("uint8_t", "kCharRows[][256]", char_rows),
        array("uint8_t", "kPartBlocks[]", part_blocks),
        array("uint16_t", "kPartRows[][256]", part_rows),
        array("char32_t", "kParts[]", parts),
        array("Composition", "kCompositions[2048]", compositions(decomposed)),
    ]
    return f"""\
// SPDX-License-Identifier: Apache-2.0
//
// Made by tests/make/unicode_tables.py from the answers of tokenizers {VERSION}; not to be edited.
// What code points are, and what they turn into.

#include "engine/tokenizer/unicode_data.h"

// clang-format off
namespace encore::inline v0_1::internal {{

{chr(10).join(tables)}
}}  // namespace encore::internal
"""


def main():
    return write_or_check(__doc__.splitlines()[0], FOLDER, {"unicode_data.cc": data})


if __name__ == "__main__":
    sys.exit(main())
