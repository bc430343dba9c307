# SPDX-License-Identifier: Apache-2.0
"""python -m pyencore.lab report|compare|table|attention: pages, pictures, tables from a shell."""

from __future__ import annotations

import argparse
import itertools
import json
import os
import pathlib
import shutil
import sys
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .comparison import Pairing
    from .pages import Section
    from .reports import Report

MOST_RUNS = 8  # more than a person compares

REPORT = """\
Without REPORT, measures all that this machine can do by `encore bench`: every SIMD target and
precision, on one thread and on all, in some ten minutes (--quick: one). With it, shows a report of
`encore bench --json` or of bench/peers/compare.py.

  python -m pyencore.lab report --out report.html
  python -m pyencore.lab report bench.json --out bench.html --figures pictures --image png
"""

COMPARE = """\
The first run is the base: every further one is compared with it, row by row. A run is a report, a
page of one, or an encore program, which is run: two programs run in turns, with the flags of
`encore bench` behind --, until every row has a verdict; with short turns (--seconds 0.05) that is
soonest. Behind --a and --b come flags of one of them alone; one program may be both then. Rows
belong together that agree in engine, workload and its sizes, layers, sequences, tokens, precision,
AMX for bf16, threads, weights and target; where the best targets of two reports differ, their rows
are compared as well.

  python -m pyencore.lab compare before.json after.json --out page.html
  python -m pyencore.lab compare old/bin/encore new/bin/encore -- --workload base_1x128
  python -m pyencore.lab compare ./encore -- --warm --a --target SSE4 --b --target AVX2
  python -m pyencore.lab compare report.json report.json --precision f32,int8
"""

TABLE = """\
A line for each report and number of threads, or with csv, jsonl and sql a line for each row.

  python -m pyencore.lab table zen4.json xeon.html
  python -m pyencore.lab table *.json --format sql | sqlite3 rows.db
"""

ATTENTION = """\
Runs `encore attend` with what follows the options, or shows what `encore attend --json` wrote.

  python -m pyencore.lab attention --out page.html -- --model all-MiniLM-L6-v2 "The cat sat"
  python -m pyencore.lab attention --out weights.png -- "The cat sat" --heads 2 --seed 7
  python -m pyencore.lab attention attend.json --layer 3 --head 7 --out head.svg
"""

PICTURES = (".svg", ".png", ".pdf")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m pyencore.lab",
                                     description="Pages and pictures of encore's measurements and "
                                                 "of attention.")
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")

    def add(name: str, words: str, text: str, page: bool = True) -> argparse.ArgumentParser:
        command = commands.add_parser(name, help=words, description=text,
                                      formatter_class=argparse.RawDescriptionHelpFormatter)
        if not page:
            return command
        command.add_argument("--out", metavar="FILE.html", help="write the page there")
        command.add_argument("--figures", metavar="FOLDER", help="write each figure there")
        command.add_argument("--image", choices=("svg", "png"), default="svg",
                             help="what kind of file each figure is [svg]")
        command.add_argument("--dark", action="store_true", help="dark figures in these files")
        return command

    report = add("report", "all that this machine can do, or a report, as a page", REPORT)
    report.add_argument("report", nargs="?", metavar="REPORT", help="measure nothing; show this")
    report.add_argument("--json", metavar="FILE", help="write what was measured there")
    report.add_argument("--quick", action="store_true", help="fewer workloads and shorter rows")
    report.add_argument("--encore", metavar="PROGRAM", help="the encore command")

    from pyencore.lab import comparison, tables, turns
    compare = add("compare", "runs side by side: ratios, and which are real",
                  COMPARE + "\n" + textwrap.fill(comparison.RULE, 100))
    compare.add_argument("runs", nargs="+", metavar="RUN", help="reports, or two programs")
    compare.add_argument("--precision", metavar="A,B",
                         help="rows of the base in the first, of the others in the second")
    compare.add_argument("--rounds", type=int, metavar="N",
                         help="of two programs in turns, at most [as many as they need]")
    compare.add_argument("--budget", type=float, metavar="MINUTES",
                         help=f"for them, at most [{turns.BUDGET_MINUTES:.0f}]")
    compare.add_argument("--kept", metavar="FILE",
                         help="keeps their rounds until all is told; the same command goes on "
                              "after them [--out with .kept behind it]")
    compare.add_argument("--format", choices=("table", "markdown", "json"), default="table",
                         help="what is printed")

    table = add("table", "many reports as one table", TABLE, page=False)
    table.add_argument("reports", nargs="+", metavar="REPORT", help="of bench, or a page of it")
    table.add_argument("--workload", metavar="NAME",
                       help="of a line a CPU [minilm_1x128, or the first that all have]")
    table.add_argument("--format", choices=tables.FORMATS, default="markdown",
                       help="what is printed [markdown]")

    attention = add("attention", "who attends to whom, in a model or step by step", ATTENTION)
    attention.add_argument("attention", nargs="?", metavar="FILE.json", help="of encore attend")
    attention.add_argument("--layer", type=int, metavar="N", help="show this layer large, from 1")
    attention.add_argument("--head", type=int, metavar="N", help="and this head, from 1")
    attention.add_argument("--encore", metavar="PROGRAM", help="the encore command")
    return parser


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def _want_outputs(args: argparse.Namespace, inputs: Sequence[str | None],
                  pictures: bool = False) -> None:
    """Before long work rather than after it: what cannot be written, or would take the place of an
    input."""
    from .reports import LabError
    for option in ("out", "json"):
        path = getattr(args, option, None)
        if path is None:
            continue
        suffix = pathlib.Path(path).suffix.lower()
        if option == "out" and suffix not in (".html", ".htm", *(PICTURES if pictures else ())):
            wanted = ".html, .svg, .png or .pdf" if pictures else ".html"
            raise LabError(f"--out: found '{path}', wanted a name that ends in {wanted}")
        parent = pathlib.Path(path).parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise LabError(f"--{option}: {path}: found no folder {parent} that can be written to")
        for taken in inputs:
            if taken and os.path.realpath(taken) == os.path.realpath(path):
                raise LabError(f"--{option}: {path} is an input, wanted another file")


def _write_pages(args: argparse.Namespace, page: str, sections: Sequence[Section]) -> None:
    from . import reports
    if args.out and pathlib.Path(args.out).suffix.lower() not in PICTURES:
        reports.write(args.out, page)
    pictures = [picture for section in sections for picture in section.pictures]
    if args.out and pathlib.Path(args.out).suffix.lower() in PICTURES:
        figure = pictures[0].dark if args.dark else pictures[0].light
        reports.write(args.out, figure.as_bytes(pathlib.Path(args.out).suffix[1:].lower()))
    if args.figures:
        os.makedirs(args.figures, exist_ok=True)
        for picture in pictures:
            figure = picture.dark if args.dark else picture.light
            reports.write(os.path.join(args.figures, f"{picture.name}.{args.image}"),
                   figure.as_bytes(args.image))


def _report(args: argparse.Namespace, rest: Sequence[str]) -> None:
    from . import measure, pages, reports
    from .reports import LabError
    if rest:
        raise LabError(f"found '{rest[0]}' behind --, which report takes nothing of")
    if not (args.out or args.figures or args.json):
        raise LabError("found none of --out, --figures and --json, wanted one of them or more")
    if args.report and (args.json or args.quick):
        raise LabError(f"{'--json' if args.json else '--quick'} is for measuring, and the report "
                       f"{args.report} was given")
    _want_outputs(args, [args.report])
    kept = f"{args.json or args.out or str(args.figures).rstrip('/')}.kept"
    try:
        report = (reports.load(args.report) if args.report else
                  measure.everything(measure.find_encore(args.encore), args.quick, _tell, kept))
    except KeyboardInterrupt:
        _tell(f"the parts that were done are in {kept}; the same command goes on after them"
              if os.path.exists(kept) else "no part was done, and nothing is kept")
        raise
    if args.json:
        reports.write(args.json, json.dumps(report, indent=1) + "\n")
    if args.out or args.figures:
        sections = pages.report_sections(report)
        title = f"encore on {report['machine']['cpu']}"
        _write_pages(args, pages.page(title, sections), sections)
    if not args.report:
        pathlib.Path(kept).unlink(missing_ok=True)


def _is_program(name: str) -> bool:
    """A file that can be run, or a command on the PATH."""
    return shutil.which(name) is not None


def _flags_of_each(rest: Sequence[str]) -> list[list[str]]:
    """A's and B's: those before --a and --b are both's. Raises LabError."""
    from .reports import LabError
    parts: dict[str, list[str]] = {"both": []}
    of = "both"
    for flag in rest:
        if flag not in ("--a", "--b"):
            parts[of].append(flag)
            continue
        if flag in parts:
            raise LabError(f"found {flag} twice, wanted all flags of {flag[2:].upper()} behind one")
        of = flag
        parts[of] = []
    return [parts["both"] + parts.get(one, []) for one in ("--a", "--b")]


def _compare(args: argparse.Namespace, rest: Sequence[str]) -> None:
    from . import comparison, measure, reports, turns
    from .reports import LabError
    names = args.runs
    flags = _flags_of_each(rest)
    own = flags[0] != flags[1]
    if len(names) == 1 and own:
        names = names * 2
    if not 2 <= len(names) <= MOST_RUNS:
        raise LabError(f"RUN: found {reports.counted(len(names), 'run')}, wanted 2 to {MOST_RUNS}: "
                       "the base and what is compared with it, or one program with flags behind "
                       "-- --a and --b")
    for name in names:
        if not _is_program(name) and not os.path.exists(name):
            raise LabError(f"{name}: no such file, and no command on the PATH")
    programs = [name for name in names if _is_program(name)]
    if programs and (len(programs) != 2 or len(names) != 2):
        raise LabError(f"found {reports.counted(len(programs), 'program')} among "
                       f"{reports.counted(len(names), 'run')}, wanted two programs or none")
    if rest and not programs:
        raise LabError("flags behind -- are for programs, and reports were given")
    for option in ("rounds", "budget", "kept"):
        if getattr(args, option) is not None and not programs:
            raise LabError(f"--{option} is for programs that run in turns, and reports were given")
    budget = turns.BUDGET_MINUTES if args.budget is None else args.budget
    precisions = args.precision.split(",") if args.precision else []
    if precisions and len(precisions) != 2:
        raise LabError(f"--precision: found '{args.precision}', wanted two: f32,int8")
    if (args.rounds is not None and args.rounds < 1) or not budget >= 0:
        raise LabError(f"found --rounds {args.rounds} and --budget {budget:g}, wanted 1 round or "
                       "more, and no negative time")
    _want_outputs(args, names)

    def of_precision(report: Report, i: int) -> Report:
        return (comparison.keep_precision(report, precisions[i > 0], names[i]) if precisions else
                report)

    if programs:
        path = args.kept or (f"{args.out}.kept" if args.out else None)
        kept = measure.Kept(path, [*map(measure.changed, programs), flags, precisions], _tell)
        runs_of = {letter: itertools.count(1) for letter in "AB"}

        def bench(letter: str) -> Report:
            i = "AB".index(letter)
            found: Report = kept.value(
                [letter, next(runs_of[letter])],
                lambda: of_precision(measure.bench(programs[i], flags[i]), i))
            return found

        if own:
            names = [" ".join([name, *found]) for name, found in zip(names, flags, strict=True)]
        turned = turns.until_told(bench, names, args.rounds, budget, _tell)
        pairing = turned.pairing()
        runs, pairings = [pairing.base, pairing.other], [pairing]
    else:
        runs = [of_precision(reports.load(name), i) for i, name in enumerate(names)]
        pairings = comparison.compare(runs, names)
    if args.format == "json":
        print(json.dumps(comparison.as_json(pairings, runs, names), indent=1))
    else:
        print(_as_text(pairings, runs, names, args.format == "markdown"), end="")
    if args.out or args.figures:  # after it, as the disk may be full
        from . import pages
        sections = pages.comparison_sections(pairings, runs, names)
        _write_pages(args, pages.page("Reports side by side", sections), sections)
    if not programs:
        return
    if not turned.untold():
        kept.drop()
    elif path:
        _tell(f"the same command goes on from {path}")
    if turned.failure:
        raise turned.failure


def _table(args: argparse.Namespace, rest: Sequence[str]) -> None:
    from . import reports, tables
    if rest:
        raise reports.LabError(f"found '{rest[0]}' behind --, which table takes nothing of")
    found = [reports.load(name) for name in args.reports]
    print(tables.as_text(found, args.format, args.workload), end="")


def _as_text(pairings: Sequence[Pairing], runs: Sequence[Report], names: Sequence[str],
             markdown: bool) -> str:
    """The runs with what disturbed them, then a table for each but the first."""
    from . import comparison, reports
    lines = []
    for i, (name, run) in enumerate(zip(names, runs, strict=True)):
        lines.append(f"{'- ' if markdown else ''}{chr(65 + i)}{':' if markdown else ' '} "
                     f"{reports.clean(name)}: {reports.machine_text(run)}, {run['created']}")
        lines += [("  - " if markdown else "   ") + sentence
                  for sentence in reports.noise_sentences(run)]
    for pairing in pairings:
        lines += ["", f"{'### ' if markdown else ''}{pairing.letter} against A"]
        lines += [""] * markdown
        lines += [("- " if markdown else "  ") + note for note in pairing.notes()]
        table = reports.table_text(comparison.table(pairing), comparison.NUMBER_COLUMNS, markdown)
        lines += ["", table, "",
                  pairing.summary() + "."]
    return "\n".join(lines) + "\n"


def _attention(args: argparse.Namespace, rest: Sequence[str]) -> None:
    from . import attention, measure, pages
    from .reports import LabError
    if bool(args.attention) == bool(rest):
        raise LabError(f"found {'both' if rest else 'neither'} a file and a text for `encore "
                       "attend` behind --, wanted one")
    if not (args.out or args.figures):
        raise LabError("found neither --out nor --figures, wanted one of them or both")
    _want_outputs(args, [args.attention], pictures=True)
    found = attention.load(args.attention or measure.attend(measure.find_encore(args.encore), rest))
    sections = pages.attention_sections(found, args.layer, args.head)
    _write_pages(args, pages.page(attention.title(found), sections), sections)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit status: 0; 2 for unfit flags, files and programs, with one sentence; 130 after
    Ctrl-C."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    # Behind -- is what the encore command gets.
    at = given.index("--") if "--" in given else len(given)
    from .reports import LabError
    try:
        args = _parser().parse_args(given[:at])
        commands = {"report": _report, "compare": _compare, "table": _table,
                    "attention": _attention}
        commands[args.command](args, given[at + 1:])
    except ModuleNotFoundError as error:
        print(f"pyencore.lab: {error.name} is missing. Pages and figures need: pip install "
              "matplotlib jinja2 jsonschema numpy",
              file=sys.stderr)
        return 2
    except LabError as error:
        print(f"pyencore.lab: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pyencore.lab: interrupted", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
