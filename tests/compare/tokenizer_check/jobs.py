# SPDX-License-Identifier: Apache-2.0
"""The jobs of each part: which texts go through which folder, with what settings.

A job is small to send and makes its texts in the process that runs it. How a job is run is in
compare.py.
"""
import dataclasses
import functools
import random
from dataclasses import dataclass

from . import compare
from .compare import Settings
from .composed import Composed
from .folders import Folder
from .random_strings import SPECIAL, Pools, RandomStrings

LAST = 0x110000
RANDOM_CHUNK = 20000
SCALAR_CHUNK = 0x110000 // 4  # a folder with every scalar takes seconds to open
TEXT_CHUNK = 20000


@dataclass(frozen=True)
class Scalars:
    """Scalar values begin, begin + step ... below end, in four settings."""
    folder: Folder
    begin: int
    end: int
    step: int = 1

    def group(self):
        return f"scalars: {self.folder.name}"

    def make(self, _):
        scalars = [chr(c) for c in range(self.begin, self.end, self.step)
                   if not 0xD800 <= c < 0xE000]
        return [text for c in scalars for text in (c, f"a{c}b", f"a {c} b", c + c)], Settings()


@dataclass(frozen=True)
class Random:
    """Random texts or pairs; a third of the jobs cut short, some with special tokens as text."""
    folder: Folder
    seed: str
    count: int

    def group(self):
        return f"random: {self.folder.name}"

    def make(self, tokenizer):
        draw = random.Random(self.seed)
        words = sorted({w.removeprefix("##").replace("\u2581", " ").replace("\u0120", " ")
                        for w in tokenizer.get_vocab() if w not in SPECIAL} - {""})
        added = [token.content for token in tokenizer.get_added_tokens_decoder().values()]
        strings = RandomStrings(self.seed + "/texts", pools(), words, added)
        pairs, cut = draw.random() < 0.3, draw.random() < 0.35
        texts = [strings.one() for _ in range(self.count)]
        if pairs:  # with some texts among them
            texts = [t if i % 8 == 0 else (t, draw.choice(texts)) for i, t in enumerate(texts)]
        return texts, Settings(draw.randrange(3, 21) if cut else 0, plain=draw.random() < 0.15)


@dataclass(frozen=True)
class Given:
    """Texts that are given, alone, cut, or as pairs of neighbours."""
    folder: Folder
    name: str
    texts: list
    pairs: bool = False
    max_length: int = 0

    def group(self):
        return f"texts: {self.name}"

    def make(self, _):
        texts = list(zip(self.texts, self.texts[1:])) if self.pairs else self.texts
        return texts, Settings(self.max_length)


def scalar_jobs(folders, step=1):
    for folder in folders:
        chunk = SCALAR_CHUNK if "every scalar" in folder.name else SCALAR_CHUNK // 4
        for begin in range(0, LAST, chunk):
            yield Scalars(folder, begin, min(begin + chunk, LAST), step)


def random_jobs(folders, count, seed, chunk=RANDOM_CHUNK):
    for number, begin in enumerate(range(0, count, chunk)):
        yield Random(folders[number % len(folders)], f"{seed}/{number}", min(chunk, count - begin))


def text_jobs(folders, name, texts):
    """Every text through the first folder; a chunk through one other, as pairs and cut too."""
    for number, begin in enumerate(range(0, len(texts), TEXT_CHUNK)):
        chunk = texts[begin:begin + TEXT_CHUNK]
        other = folders[(1 + number % max(1, len(folders) - 1)) % len(folders)]
        yield Given(folders[0], name, chunk)
        yield Given(other, name, chunk)
        yield Given(folders[0], name, chunk[:4000], pairs=True, max_length=12 + number % 9)


# Once in a process.
pools = functools.cache(Pools)
_last = {}  # the tokenizer of the last folder


def run(encore_and_job):
    """Runs one job in a worker."""
    encore, number, job = encore_and_job
    if isinstance(job, Composed):
        return job.run(encore)
    if job.folder not in _last:
        _last.clear()  # before the next one is there: some are large
        _last[job.folder] = job.folder.reference()
    tokenizer = _last[job.folder]
    texts, settings = job.make(tokenizer)
    settings = dataclasses.replace(settings, escaped=number % 2 == 0)
    return compare.compare(encore, job.folder, tokenizer, texts, settings, job.group())
