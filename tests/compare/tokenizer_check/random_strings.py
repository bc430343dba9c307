# SPDX-License-Identifier: Apache-2.0
"""Random texts that tokenizers find hard, of twelve kinds; the same seed gives the same texts.

Holds the kinds. Who tokenizes them and compares is in compare.py.
"""
import random
import unicodedata

SURROGATES = range(0xD800, 0xE000)
SPACES = " \t\n\r\u00a0\u1680\u2003\u2028\u202f\u205f\u3000\u0085"
# Dropped by cleaning, or by nobody, or a space: what joins or splits words.
CONTROLS = ([chr(c) for c in [*range(0x20), *range(0x7F, 0xA0)]] +
            list("\u00ad\u061c\u070f\u180e\u200b\u200c\u200d\u200e\u2060\u2066\ufeff\ufff9\ufffd"
                 "\ufffe\uffff\ufdd0\ue000\uf8ff\U000e0001\U000f0000\U0010fffd\U0010ffff\u0378"))
# Marks that are no Mn, so they stay, and have a combining class, so they are reordered.
REORDERED = list("\u302e\u302f\U0001d165\U0001d166\U0001d16d\U0001d16e\U0001d172")
EMOJI = [chr(c) for c in [*range(0x1F300, 0x1F650), *range(0x1F680, 0x1F6D0),
                          *range(0x1F900, 0x1FA00), *range(0x2600, 0x27C0)]]
JOINERS = ["\u200d", "\ufe0f", "\ufe0e", "\u20e3", *map(chr, range(0x1F3FB, 0x1F400))]
FLAGS = [chr(c) for c in range(0x1F1E6, 0x1F200)]
# One stretch of each script that has its own way through the normalizer.
SCRIPTS = ["abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
           *("".join(map(chr, range(*ends))) for ends in (
               (0xC0, 0x180), (0x386, 0x3D0), (0x400, 0x460), (0x5D0, 0x5EB), (0x620, 0x656),
               (0x904, 0x94E), (0xE01, 0xE4F), (0x3041, 0x30FF), (0x4E00, 0x5200),
               (0xAC00, 0xB000), (0x1E00, 0x2000), (0x10A0, 0x1100))),
           "0123456789", "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~\u00b4\u20ac\u2014\u201c\u3001\uff01"]
SPECIAL = ["[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]"]
NEAR_SPECIAL = ["[sep]", "[ SEP ]", "[SEP", "SEP]", "[[SEP]]", "[CLS][SEP]",
                "[M\u0041\u0301SK]", "[MASK]s", "\uff3bSEP\uff3d", "[UNK]\u0301", "[PAD]\u200d"]
BETWEEN = ["", "", " ", " ", "  ", "\t", "\u00a0", "\u3000", "\n", "a", " b", "c ", " x ", "_", "1",
           ".", "(", "\u00e9", "\u4e2d", "\u0301", "\u200b", "\u0000"]
CASE_TRAPS = list("\u0130\u0131\u1e9e\u00df\u03a3\u03c2\u03c3\u01c5\u0149\ufb01\u1fb3\u0345"
                  "\u212a\u212b\u2126\u0587\u10a0\u1c90\ua64a\u1c88\u13a0\uab70")


def assigned_pages():
    """First code points of the pages of 64 that have an assigned character; of Han and Hangul,
    which have most pages, one in 16."""
    def wanted(page):
        many = 0x3400 <= page < 0xA000 or 0xAC00 <= page < 0xD7A4 or 0x20000 <= page < 0x32000
        return page % 1024 == 0 if many else page not in SURROGATES
    return [page for page in range(0, 0x110000, 64) if wanted(page) and
            any(unicodedata.category(chr(c)) not in ("Cn", "Co") for c in range(page, page + 64))]


def characters_where(condition):
    return [chr(c) for c in range(0x110000) if c not in SURROGATES and condition(chr(c))]


class Pools:
    """Characters by what the normalizer may do with them; made once a process."""

    def __init__(self):
        category = unicodedata.category
        self.pages = assigned_pages()
        self.marks = characters_where(lambda c: category(c)[0] == "M") + 20 * REORDERED
        self.cased = characters_where(lambda c: c.lower() != c or c.upper() != c) + CASE_TRAPS
        self.composed = characters_where(lambda c: unicodedata.normalize("NFD", c) != c and
                                         not 0xAC00 <= ord(c) < 0xD7A4)
        self.punctuation = characters_where(lambda c: category(c)[0] in "PS")
        self.digits = characters_where(lambda c: category(c)[0] == "N")
        self.formats = characters_where(lambda c: category(c) in ("Cc", "Cf", "Zs", "Zl", "Zp"))
        self.hangul = [chr(c) for c in [*range(0x1100, 0x1200), *range(0xA960, 0xA97D),
                                        *range(0xD7B0, 0xD7FC), *range(0x3131, 0x318F)]]
        self.syllables = [chr(c) for c in range(0xAC00, 0xD7A4)]
        self.han_edges = [chr(c + d) for first, last in (
            (0x4E00, 0x9FFF), (0x3400, 0x4DBF), (0x20000, 0x2A6DF), (0x2A700, 0x2B73F),
            (0x2B740, 0x2B81F), (0x2B820, 0x2B920), (0x2B920, 0x2CEAF), (0xF900, 0xFAFF),
            (0x2F800, 0x2FA1F)) for c in (first, last) for d in (-1, 0, 1)]
        self.classes = [self.marks, self.cased, self.composed, self.punctuation, self.digits,
                        self.formats, self.hangul, self.syllables, self.han_edges, CONTROLS,
                        EMOJI, JOINERS, FLAGS, list(SPACES), CASE_TRAPS, *map(list, SCRIPTS)]


class RandomStrings:
    """Texts for one tokenizer: `words` are its vocabulary's, `added` its added tokens."""

    def __init__(self, seed, pools, words, added):
        self.random = random.Random(seed)
        self.pools, self.words = pools, words
        self.added = added or SPECIAL
        self.kinds = [self.uniform, self.page, self.page, self.mixed, self.stacks, self.emoji,
                      self.jamo, self.special, self.special, self.long, self.control,
                      self.real_words, self.real_words, self.by_class]

    def one(self):
        return self.random.choice(self.kinds)()

    def scalar(self):
        c = self.random.randrange(0x110000 - 0x800)
        return chr(c if c < 0xD800 else c + 0x800)

    def uniform(self):
        return "".join(self.scalar() for _ in range(self.random.randrange(13)))

    def page(self):
        """Of one stretch of 64 code points, assigned or not, with some spaces."""
        page = self.random.choice(self.pools.pages)
        pool = [*map(chr, range(page, page + 64)), *"     a."]
        return "".join(self.random.choices(pool, k=self.random.randrange(1, 30)))

    def mixed(self):
        r = self.random
        words = ["".join(r.choices(r.choice(SCRIPTS), k=r.randrange(1, 9)))
                 for _ in range(r.randrange(1, 6))]
        return r.choice(["", " ", " ", " ", "  ", ", ", "-", "\u3000"]).join(words)

    def stacks(self):
        r, parts = self.random, []
        for _ in range(r.randrange(1, 6)):
            parts.append(r.choice(r.choice([self.pools.composed, self.pools.cased, SCRIPTS[0],
                                            self.pools.han_edges, " "])))
            parts += r.choices(self.pools.marks, k=r.randrange(7))
        return "".join(parts)

    def emoji(self):
        r, parts = self.random, []
        for _ in range(r.randrange(1, 9)):
            parts.append(r.choice(r.choice([EMOJI, EMOJI, FLAGS, "0123456789#* "])))
            if r.random() < 0.6:
                parts.append(r.choice(JOINERS))
        return "".join(parts)

    def jamo(self):
        r = self.random
        pool = r.choice([self.pools.hangul, self.pools.syllables,
                         self.pools.hangul[:0xC3] + self.pools.syllables[:600]])
        parts = r.choices(pool, k=r.randrange(1, 12))
        if r.random() < 0.3:
            parts.insert(r.randrange(len(parts)), r.choice(REORDERED + [" ", "\u3099"]))
        return "".join(parts)

    def special(self):
        """Special and added tokens in a text, with and without white space around them."""
        r, parts = self.random, []
        for _ in range(r.randrange(1, 6)):
            token = r.choice(self.added if r.random() < 0.8 else NEAR_SPECIAL)
            if r.random() < 0.2:
                token = r.choice([token.lower(), token.upper(), token + token, token[:-1],
                                  unicodedata.normalize("NFD", token), token + "\u0301"])
            parts.append(token)
            parts.append(r.choice(BETWEEN))
        if r.random() < 0.5:
            parts.insert(0, r.choice(BETWEEN))
        return "".join(parts)

    def long(self):
        """Words about as long as the longest that WordPiece cuts."""
        r, words = self.random, []
        for _ in range(r.randrange(1, 3)):
            length = r.randrange(90, 111)
            words.append(r.choice([
                r.choice("aexz\u00e9\u0439\u05d0\u1100") * length,
                "".join(r.choices(r.choice(SCRIPTS[:10]), k=length)),
                "".join(r.choices(self.words, k=length))[:length],
                # Whether it is too long depends on the normalizer.
                "".join(r.choices(["a", "b", "e\u0301", "\u00e9", "\u200d", "\uac01"], k=length)),
                "".join(r.choices(self.pools.composed, k=length // 2))]))
        return r.choice([" ", "", ".", "\u4e2d"]).join(words)

    def control(self):
        r, parts = self.random, []
        for _ in range(r.randrange(1, 7)):
            parts.append("".join(r.choices(SCRIPTS[r.randrange(2)], k=r.randrange(4))))
            parts += r.choices(CONTROLS, k=r.randrange(3))
            parts.append(r.choice(SPACES) * r.randrange(2))
        return "".join(parts)

    def real_words(self):
        """Words of the vocabulary, some with other letters, accents, or words stuck to them."""
        r, parts = self.random, []
        for word in r.choices(self.words, k=r.randrange(1, 20)):
            change = r.randrange(12)
            if change < 2:
                word = word.upper() if change == 0 else word.capitalize()
            elif change < 4:
                at = r.randrange(len(word) + 1)
                inside = self.pools.marks if change == 2 else self.pools.punctuation
                word = word[:at] + r.choice(inside) + word[at:]
            parts.append(word)
            parts.append("" if change in (4, 5) else r.choice(SPACES) if change == 6 else " ")
        return "".join(parts)

    def by_class(self):
        """Every class of characters next to every other."""
        r = self.random
        return "".join(r.choice(r.choice(self.pools.classes)) for _ in range(r.randrange(2, 10)))
