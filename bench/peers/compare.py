#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times encore and its peers side by side.

    tools/python_env.sh peers && .deps/venv/bin/pip install .
    .deps/venv/bin/python bench/peers/compare.py BENCHMARK [options]

BENCHMARK is layers, deberta, texts, ids, max_sim, loop or images, each a module of this folder; its
--help says what it measures. Each engine is opened in a process of its own, bound to as many cores
as threads (one thread: the last core), and its output is compared first. One that is too far off is
left out, with the reason, as is one that cannot be had. Then all take turns for some rounds, one at
a time; a turn that other processes disturbed is taken again. With --busy N they take them beside N
processes that only burn time, and none again.

p50 is the median over the rounds of the median call, p99 of the call that 1 in 100 is slower than
(from 100 calls of a turn on), min the fastest call. "to" an engine is the time by that engine's of
the same round (above 1: that engine is faster): the median, in brackets the lowest and the highest
of a round. --markdown prints the table of docs/measurements in place of all figures.
"""

import argparse
import dataclasses
import datetime
import importlib
import json
import pathlib
import statistics
import sys
import tempfile
import typing

import isa
import remote

BENCHMARKS = ("layers", "deberta", "texts", "ids", "max_sim", "loop", "images")


@dataclasses.dataclass(frozen=True)
class Case:
    """What the engines do in turns."""
    name: str
    threads: int
    labels: dict  # what is timed: its amount and unit, of which a row has so many a second
    work: typing.Any = None  # the benchmark's own
    compared: str = "p50"  # the figure whose ratios are given


def say(*words):
    print("compare:", *words, file=sys.stderr)


# ---- In an engine's process ---------------------------------------------------------------------

def serve(path):
    """Opens the engine that a file describes and says what it is; its output is a file then.
    Answers a label with the times of its calls."""
    job = json.loads(pathlib.Path(path).read_text("utf-8"))
    isa.limit(job.get("max_isa", ""))  # before anything that may load an engine
    import numpy

    def make():
        try:
            opened = importlib.import_module(job["benchmark"]).opened(job)
            for call in opened.calls.values():
                call()
        # Such as packages that are absent, a folder or a type that the engine does not have.
        except Exception as error:
            said = " ".join(str(error).split())[:300]
            return {"left_out": f"{type(error).__name__}: {said}"}, None
        if opened.output is not None:
            numpy.save(job["output"], opened.output())

        def answer(label):
            if job.get("whole_turns"):  # a call is a turn, and returns its summary
                found, others = remote.turn(opened.calls[label], job["retakes"])
                return {**found, "others": others}
            samples, others = remote.turn(
                lambda: remote.call_times(opened.calls[label], job["seconds"], job["least"],
                                          job.get("timed", False)), job["retakes"])
            return {**remote.summary(samples), "others": others}

        return opened.about, answer

    return remote.serve(make)


# ---- In the process that compares ---------------------------------------------------------------

class Engine:
    """An engine in its process, with what it found in each round by label."""

    def __init__(self, options, case, folder, job):
        self.path = folder / f"{job['engine']} {job['precision']} {case.threads}.json"
        self.output = self.path.with_suffix(".npy")
        threads = str(case.threads)
        job = {"benchmark": options.benchmark, "threads": case.threads, "folder": str(folder),
               "seconds": options.seconds, "retakes": options.retakes, "least": 3, **job,
               "output": str(self.output)}
        self.path.write_text(json.dumps(job), "utf-8")
        self.name, self.precision = job["engine"], job["precision"]
        self.is_base, self.turns = job.get("is_base", False), {label: [] for label in case.labels}
        self.remote = remote.Remote(
            f"{self.name} {self.precision}".strip(),
            [job.get("python", sys.executable), __file__, "--serve", self.path],
            remote.last_cores(case.threads),
            # Large pages, as encore takes them: 1 to 5 % for a peer whose weights are many.
            {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=1", "OMP_NUM_THREADS": threads,
             "OPENBLAS_NUM_THREADS": threads, "HF_HUB_OFFLINE": "1",
             "TOKENIZERS_PARALLELISM": "false"})
        self.about = self.remote.ready

    def close(self):
        self.remote.close()


def open_engines(options, module, case, folder):
    """Those that there are, and are right, with how far the output is from what is wanted."""
    import numpy
    made, wanted = [], None
    if (folder / "wanted.npy").exists():
        wanted = numpy.load(folder / "wanted.npy")
    for job in module.engines(options, case):
        name = f"{case.name}, {case.threads} threads: {job['engine']}"
        try:
            engine = Engine(options, case, folder, job)
        except remote.RemoteError as error:  # it ended: killed, or its interpreter is another's
            say(f"{name} is left out: {str(error)[-400:]}")
            continue
        why = engine.about.get("left_out")
        if why is None and engine.output.exists():
            found = numpy.load(engine.output)
            wanted = found if wanted is None else wanted
            engine.about["difference"], why = module.difference(options, engine, found, wanted)
        if why is None:
            made.append(engine)
        else:
            say(f"{name} is left out: {why}")
            engine.close()
    return made


def take_turns(options, case, engines):
    for index in range(options.rounds):
        order = [(engine, label) for label in case.labels for engine in engines]
        shift = index * len(order) // options.rounds  # each round begins with another one
        for engine, label in order[shift:] + order[:shift]:
            if len(engine.turns[label]) < index:
                continue
            try:
                engine.turns[label].append(engine.remote.ask(label))
            except remote.RemoteError as error:
                say(f"{case.name}, {case.threads} threads: left out from here: {error}")


def row(case, label, engine):
    turns = engine.turns[label]
    each = {key: [turn["seconds"][key] for turn in turns if turn["seconds"][key] is not None]
            for key in ("min", "p50", "p90", "p99", "max")}
    seconds = {key: statistics.median(values) if values else None for key, values in each.items()}
    seconds.update(min=min(each["min"]), max=max(each["max"]))
    return {"case": case, "label": label, "threads": case.threads, "engine": engine.name,
            "precision": engine.precision, "is_base": engine.is_base, "detail": "",
            "difference": "", **engine.about, "seconds": seconds, "rounds": each[case.compared],
            "calls": sum(turn["calls"] for turn in turns),
            "slots": [slot for turn in turns for slot in turn["slots"]],
            "others": max(turn["others"] for turn in turns)}


def run_case(options, module, case):
    """Every engine: a row for each label, without the case, as JSON may have it."""
    with tempfile.TemporaryDirectory() as text:
        folder = pathlib.Path(text)
        module.prepare(case, folder)
        engines = open_engines(options, module, case, folder)
        try:
            with remote.busy_processes(options.busy):
                take_turns(options, case, engines)
        finally:
            for engine in engines:
                engine.close()
    rows = [row(case, label, engine) for label in case.labels for engine in engines
            if len(engine.turns[label]) == options.rounds]
    add_ratios(rows)
    return [{key: value for key, value in r.items() if key != "case"} for r in rows]


def add_ratios(rows):
    """To each row: its times by those of the bases of its label and precision, round by round. The
    base is the first engine where none is one."""
    for r in rows:
        alike = [a for a in rows if (a["label"], a["precision"]) == (r["label"], r["precision"])]
        bases = [a for a in alike if a["is_base"]] or alike[:1]
        each = {base["engine"]: [a / b for a, b in zip(r["rounds"], base["rounds"])]
                for base in bases if not r["is_base"]}
        r["ratios"] = {name: (statistics.median(all), min(all), max(all))
                       for name, all in each.items()}


def per_second(r):
    amount, unit = r["case"].labels[r["label"]]
    rate = amount / r["seconds"]["p50"]
    return f"{rate:.{0 if rate >= 100 else 2}f} {unit}/s"


def ratio_text(ratio):
    return f"{ratio[0]:.2f} ({ratio[1]:.2f} to {ratio[2]:.2f})" if ratio else ""


def all_figures(rows):
    """A line for each row."""
    bases = list(dict.fromkeys(name for r in rows for name in r["ratios"]))
    lines = [["case", "threads", "precision", "engine", "detail", "p50 us", "p99 us", "min us",
              "rate", *(f"to {name}" for name in bases), "difference"]]
    for r in rows:
        lines.append([" ".join((r["case"].name, r["label"])).strip(), str(r["threads"]),
                      r["precision"], r["engine"], r["detail"],
                      *("" if r["seconds"][key] is None else f"{r['seconds'][key] * 1e6:.1f}"
                        for key in ("p50", "p99", "min")), per_second(r),
                      *(ratio_text(r["ratios"].get(name)) for name in bases), r["difference"]])
    return lines, range(5, 9 + len(bases))


def engines_across(rows):
    """A line a case, precision and number of threads, a column an engine: microseconds, and for
    peers how many times as fast encore is."""
    names = sorted(dict.fromkeys(r["engine"] for r in rows),
                   key=lambda name: not name.startswith("encore"))
    lines = {}
    for r in rows:
        ratio = next(iter(r["ratios"].values()), None)
        lines.setdefault((r["case"].name, r["precision"], str(r["threads"])), {})[r["engine"]] = (
            f"{r['seconds']['p50'] * 1e6:,.0f}" + (f" ({ratio[0]:.2f})" if ratio else ""))
    return ([["us (times as fast encore is)", "precision", "threads", *names],
             *([*key, *(cells.get(name, "") for name in names)] for key, cells in lines.items())],
            range(2, 3 + len(names)))


def print_tables(options, module, rows):
    from pyencore.lab.reports import table_text
    if not options.markdown:
        return print(table_text(*all_figures(rows), False))
    if module.ENGINES_ACROSS:
        return print(table_text(*engines_across(rows), True))
    for threads in dict.fromkeys(r["threads"] for r in rows):
        print(table_text(*module.table([r for r in rows if r["threads"] == threads]), True), "\n")


def cpu_name():
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if "model name" in line)
    except (OSError, StopIteration):
        return "unknown CPU"


def parser_of(name, module):
    parser = argparse.ArgumentParser(
        prog=f"compare.py {name}", description=module.__doc__ + "\n" + __doc__.split("\n\n", 2)[2],
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2], metavar="N")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="of each turn in a round")
    parser.add_argument("--retakes", type=int, default=3, help="of a turn that was disturbed")
    parser.add_argument("--busy", type=int, default=0, metavar="N",
                        help="beside N processes that only burn time")
    parser.add_argument("--markdown", action="store_true", help="the tables of docs/performance.md")
    parser.add_argument("--kept", metavar="FILE",
                        help="keeps what is done, until all is; the same command goes on after it "
                             "[--json with .kept behind it]")
    module.add_options(parser)
    return parser


def parse_args(arguments):
    if not arguments or arguments[0] not in BENCHMARKS:
        print(__doc__)
        raise SystemExit(0 if arguments[:1] in (["-h"], ["--help"]) else
                         f"compare: found '{' '.join(arguments[:1])}', wanted one of "
                         f"{', '.join(BENCHMARKS)}")
    module = importlib.import_module(arguments[0])
    parser = parser_of(arguments[0], module)
    options = parser.parse_args(arguments[1:])
    options.benchmark = arguments[0]
    if options.rounds < 1 or min(options.threads) < 1 or not options.seconds > 0:
        parser.error("--rounds, --threads and --seconds must be above zero")
    if options.retakes < 0 or options.busy < 0:
        parser.error("--retakes and --busy must not be below zero")
    if options.busy:
        options.retakes = 0
    return module, options


def main(arguments):
    if arguments[:1] == ["--serve"]:
        return serve(arguments[1])
    remote.import_or_leave("numpy")
    encore = remote.import_or_leave("pyencore").__version__
    module, options = parse_args(arguments)
    finish = module.begin(options) if hasattr(module, "begin") else None
    from pyencore.lab import measure, reports
    path = options.kept or (f"{options.json}.kept" if getattr(options, "json", None) else None)
    kept = measure.Kept(path, [encore, cpu_name(), *arguments], say)
    rows, status = [], 0
    try:
        for case in module.cases(options):
            found = kept.value([case.name, case.threads], lambda: run_case(options, module, case))
            rows += [{**r, "case": case} for r in found]
            say(f"{case.name}, {case.threads} threads: done")
    except (KeyboardInterrupt, reports.LabError) as error:
        say(f"{str(error) or 'interrupted'}; what was measured before follows" +
            (f", and the same command goes on from {path}" if path else ""))
        status = 1
    if not rows:
        raise SystemExit("compare: nothing was measured")
    head = {"date": datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="minutes"),
            "cpu": cpu_name(), "encore": encore, "rounds": options.rounds,
            "seconds of a turn": options.seconds, "busy processes": options.busy,
            "other processes": f"{max(r['others'] for r in rows):.2f} of a core in the worst turn"}
    for r in rows:
        if r.get("version"):
            head[r["engine"]] = r["version"]
    print("; ".join(f"{key}: {value}" for key, value in head.items()) + "\n")
    print_tables(options, module, rows)
    if finish:
        try:
            finish(rows, head)
        except reports.LabError as error:
            raise SystemExit(f"compare: {error}") from error
    if status == 0:
        kept.drop()
    return status


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit("compare: interrupted; nothing was written")
