# SPDX-License-Identifier: Apache-2.0
"""Pages and figures: whole, safe and self-contained whatever the report has in it, and no label
lies on another."""

import base64
import copy
import html.parser
import itertools
import re
import shutil
import subprocess

import pytest

pytest.importorskip("pyencore.lab.pages")  # left out without the extra pyencore[plots]

from matplotlib.font_manager import FontProperties
from matplotlib.text import Text
from matplotlib.textpath import TextPath
from pyencore import lab
from pyencore.lab import measure, reports, style
from pyencore.lab.style import spread
from synthetic_report import noisy_run, synthetic_report


class Cells(html.parser.HTMLParser):
    """The rows of the tables, the words elsewhere, and the tags that are open at the end."""

    def __init__(self, page):
        super().__init__()
        self.rows, self.words, self.open, self.images = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        if tag not in ("meta", "link", "img", "source"):
            self.open.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
        self.images += [attrs[name] for name in ("src", "srcset") if name in attrs]

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.rows[-1][-1] += data
        else:
            self.words.append(data)


def sound(page):
    """Whole, without scripts and addresses, every picture in both themes inside."""
    assert page.startswith("<!DOCTYPE html>")
    assert page.rstrip().endswith("</html>")
    cells = Cells(page)
    assert cells.open == []
    for bad in ("<script", "http:", "https:", "url(", "@import", "onload", "\x1b", "\u202e"):
        assert bad not in page
    assert "default-src 'none'" in page
    assert "prefers-color-scheme: dark" in page
    for image in cells.images:
        prefix = "data:image/svg+xml;base64,"
        assert image.startswith(prefix)
        svg = base64.b64decode(image[len(prefix):]).decode("utf-8")
        assert svg.rstrip().endswith("</svg>")
        assert "<script" not in svg
        assert not re.search(r'="[^"]*\b(nan|inf)\b[^"]*"', svg)
    assert page.count("<picture>") * 2 == len(cells.images)
    return cells


def no_overlap(figure):
    """No text leaves the figure or lies on another one."""
    figure.draw_without_rendering()
    renderer = figure.canvas.get_renderer()
    texts = [text for text in figure.findobj(Text)
             if text.get_visible() and text.get_text().strip()]
    whole = figure.bbox
    ticks = [axis for axes in figure.axes for axis in (axes.xaxis, axes.yaxis)]
    labels = {id(label) for axis in ticks for tick in axis.get_major_ticks() +
              axis.get_minor_ticks() for label in (tick.label1, tick.label2)}
    shown = {id(label) for axis in ticks if axis.axes.axison for tick in axis._update_ticks()
             for label in (tick.label1, tick.label2)}
    boxes = []
    for text in texts:
        if id(text) in labels - shown:  # beyond the axis
            continue
        if text.get_rotation() not in (0.0, 90.0):  # its box is far larger than it
            continue
        box = Text.get_window_extent(text, renderer)  # without an arrow
        inside = (box.x0 >= whole.x0 - 1, box.x1 <= whole.x1 + 1, box.y0 >= whole.y0 - 1,
                  box.y1 <= whole.y1 + 1)
        assert all(inside), f"outside: {text.get_text()}"
        boxes.append((text.get_text(), box))
    for (a, one), (b, other) in itertools.combinations(boxes, 2):
        wide = min(one.x1, other.x1) - max(one.x0, other.x0)
        high = min(one.y1, other.y1) - max(one.y0, other.y0)
        assert not (wide > 1 and high > 3), f"overlap: {a!r} and {b!r}"
    return len(boxes)


def many_threads():
    report = synthetic_report(4, row_drift=0.02, row_noise=0.04,
                              threads=(1, 2, 3, 4, 8, 16, 32, 64))
    report["rows"] += [{**row, "engine": "onnxruntime", "target": ""} for row in
                       report["rows"][:40]]
    return report


def test_a_report_has_a_figure_of_each_kind_and_all_rows():
    report = synthetic_report(1, row_drift=0.01)
    cells = sound(lab.report_page(report))
    words = " ".join(cells.words)
    for title in ("Synthetic 9000", "Roofline", "Speed by precision", "Scaling by threads",
                  "Latency", "All rows"):
        assert title in words
    assert "Other processes" not in words.replace("that other processes", ""), "a quiet run"
    assert len(cells.rows) == len(report["rows"]) + 1
    for row, line in zip(report["rows"], cells.rows[1:], strict=False):
        assert line[:4] == [row["workload"], row["precision"], row["target"], row["weights"]]
        assert line[7] == reports.time_text(row["seconds"]["p50"])
        unit = "GOP/s" if row["precision"] == "int8" else "GFLOP/s"
        assert line[9] == f"{reports.number(row['gflops'])} {unit}"
    assert len(cells.images) == 2 * 6  # rooflines and latencies of 1 and 2 threads


def test_figures_name_roofs_and_percentiles():
    report = synthetic_report(1)
    svg = lab.roofline(report).as_bytes().decode()
    for words in ("f32 (peak 250 GFLOP/s)", "int8 (peak 1,000 GOP/s", "memory 22 GB/s",
                  "speed (GOP/s)", "operations for each byte"):
        assert words in svg
    svg = lab.latency(report).as_bytes().decode()
    for words in ("p99", "latency (us)", "percentile of the calls", ">f32  minilm_1x16, 1 layer<",
                  "no p99 of 60 calls"):
        assert (words in svg) == (words[:2] != "no")
    for row in report["rows"]:
        row["seconds"]["p99"] = None
    assert "no p99 of 60 calls" in lab.latency(report).as_bytes().decode()
    assert lab.roofline(report).label == "Roofline of Synthetic 9000 on 1 thread"
    assert lab.roofline(report, 7) is None
    assert lab.scaling(synthetic_report(1, threads=(1,))) is None
    assert lab.speed(report).as_bytes("png").startswith(b"\x89PNG")


def test_every_figure_says_whose_it_is():
    report = synthetic_report(1)
    report["machine"]["commit"] = "abc123"
    busy = copy.deepcopy(report)
    busy["noise"]["busy_percent"] = 31
    ratios = lab.ratios(lab.compare([report, busy])[0])
    for figure in (lab.roofline(busy, 2), lab.speed(busy, 2), lab.latency(busy, 2),
                   lab.scaling(busy), ratios):
        svg = figure.as_bytes().decode()
        for words in ("Synthetic 9000, ", "2026-11-23, encore 0.1.0 (abc123), beside other work, "
                      "which took 31 % of the time", figure.label):
            assert words in svg
        assert figure is ratios or "AVX3_ZEN4" in svg
        assert figure is ratios or "2 threads, " in svg or "2 cores, " in svg
    assert "A: Synthetic 9000, AVX3_ZEN4, 2026-11-23, encore 0.1.0 (abc123), g++ 12.2.0" in svg
    assert "B: Synthetic 9000, " in svg
    named = lab.ratios(lab.compare([report, busy], ["old/encore", "new/encore"])[0])
    assert "B: new/encore, Synthetic 9000, " in named.as_bytes().decode()


def test_a_cache_is_not_slower_than_memory():
    report = synthetic_report(1)
    for roof in report["roofs"]:
        if roof.get("level") == "L3":
            roof["bytes_per_s"] = 1e9
    svg = lab.roofline(report).as_bytes().decode()
    assert "memory 22 GB/s" in svg and "L3 " not in svg
    assert "L3 " in lab.roofline(synthetic_report(1)).as_bytes().decode()
    report["rows"][0]["roof"].update(name="L3 bandwidth", value=1.0, share=1.32)
    assert "more than the L3 bandwidth that was measured" in lab.report_page(report)


def test_disturbed_rows_are_hatched_and_have_their_interval():
    report = synthetic_report(1, slot_noise=0.01)
    assert not any(map(reports.disturbed, report["rows"]))
    calm = lab.speed(report)
    report["rows"][0]["slots"] = [slot * (1 + i / 50) for i, slot in
                                  enumerate(report["rows"][0]["slots"])]
    assert [reports.disturbed(row) for row in report["rows"]].count(True) == 1

    def hatched(figure):
        return [bar for axes in figure.axes for bar in axes.patches if bar.get_hatch()]

    figure = lab.speed(report)
    assert (len(hatched(calm)), len(hatched(figure))) == (0, 1)
    assert "disturbed" in figure.as_bytes().decode()
    assert "disturbed" not in calm.as_bytes().decode()
    bar, line = hatched(figure)[0], figure.axes[0].lines[0]
    slow, fast = sorted(line.get_xdata())
    assert slow < bar.get_width() < 1.1 * fast
    assert fast / slow == pytest.approx(1.4, rel=0.1)


def test_int4_has_a_colour_of_its_own_and_int8s_peak():
    report = synthetic_report(1, threads=(1,), targets=("AVX2",))
    for kind, rate in (("rows", "gflops"), ("roofs", "flops_per_s")):
        report[kind] += [{**one, "precision": "int4", rate: 1.001 * one[rate]} for one in
                         report[kind] if one.get("precision") == "int8"]
    figure = lab.roofline(report)
    titles = [axes.get_title("left") for axes in figure.axes]
    assert titles == ["f32 (peak 127 GFLOP/s)", "bf16 (peak 254 GFLOP/s)",
                      "int8 (peak 508 GOP/s, as of int4)", "int4 (peak 508 GOP/s, as of int8)"]
    for theme in (style.LIGHT, style.DARK):
        colours = theme.series[:len(reports.PRECISIONS)]
        assert len({*colours, theme.muted, theme.grid, theme.ink}) == len(colours) + 3
        red, green, blue = (int(colours[-1][i:i + 2], 16) for i in (1, 3, 5))
        assert max(red, green, blue) - min(red, green, blue) > 100, "no grey"


def test_engines_have_marks_of_their_own():
    report = synthetic_report(1, threads=(1,), targets=("AVX2",))
    report["rows"] += [{**row, "engine": engine} for row in report["rows"][:3]
                       for engine in ("onnxruntime", "openvino")]
    marks = {line.get_marker() for line in lab.roofline(report).axes[0].lines}
    assert {"o", "s", "^"} <= marks


def test_tables_fit_a_page_of_1200_pixels():
    report = synthetic_report(1)
    report["rows"] += [{**row, "engine": "onnxruntime", "workload": "minilm_6_layers_of_ids_1x128",
                        "tokens_per_s": 1234567, "gflops": 1234.5, "useful_tokens_per_s": 1.0}
                       for row in report["rows"]]
    texts = copy.deepcopy(synthetic_report(1))
    for row in texts["rows"]:
        row.update(workload="all-MiniLM-L6-v2 64 texts, 8 to 128 tokens", texts_per_s=1234.5)
    pairing = lab.compare([report, report])[0]
    font = FontProperties(family="DejaVu Sans")  # of those that the page asks for the widest

    def width(text):
        return TextPath((0, 0), text, size=13, prop=font).get_extents().width if text else 0

    for page in (lab.report_page(report), lab.report_page(texts),
                 lab.comparison_page([pairing], [report] * 2, ["a", "b"])):
        head, *lines = Cells(page).rows
        cells = [{*name.split(), *(part for line in lines for part in
                                   ([line[i]] if line[i][:1].isdigit() else line[i].split()))}
                 for i, name in enumerate(head)]
        assert sum(12 + max(map(width, parts)) for parts in cells) < 1160


@pytest.mark.parametrize("dark", [False, True])
def test_no_label_lies_on_another(dark):
    pairing = lab.compare([synthetic_report(1), noisy_run(2, 1.1)])[0]
    narrow = lab.compare([synthetic_report(1), synthetic_report(3, targets=("AVX2",))])[0]
    for report in (synthetic_report(1, row_drift=0.01), many_threads()):
        for draw in (lab.roofline, lab.speed, lab.latency):
            for threads in reports.thread_counts(report)[::7] or [1]:
                assert no_overlap(draw(report, threads, dark=dark)) > 10
        assert no_overlap(lab.scaling(report, dark=dark)) > 10
    for one in (pairing, narrow):
        assert no_overlap(lab.ratios(one, dark=dark)) > 100


def test_an_overlap_is_seen():
    figure = lab.scaling(synthetic_report(1))
    for _ in range(2):
        figure.text(0.3, 0.5, "twice")
    with pytest.raises(AssertionError, match="overlap: 'twice' and 'twice'"):
        no_overlap(figure)


def test_light_and_dark_differ():
    report = synthetic_report(1)
    assert lab.scaling(report).as_bytes() != lab.scaling(report, dark=True).as_bytes()
    assert lab.scaling(report).as_bytes() == lab.scaling(report).as_bytes()


def test_noise_is_told_once():
    report, again, other = (synthetic_report(1, threads=(1,), targets=("AVX2",)) for _ in range(3))
    report["noise"].update(busy_percent=31, notes=["2 threads shared 1 core: minilm_1x16"])
    page = lab.report_page(report)
    assert "Other processes took 31 %" in page
    assert "shared 1 core: minilm_1x16" in page
    again["noise"]["notes"] = ["2 threads shared 1 core: base_1x16", "once: base_1x16"]
    assert measure.merged([report, again, other])["noise"]["notes"] == [
        "2 threads shared 1 core: in 2 of 3 runs", "once: base_1x16"]


def test_a_page_claims_what_was_checked():
    report = synthetic_report(1, threads=(1,), targets=("AVX2",))
    assert "bit for bit" in lab.report_page(report)
    report["rows"][0]["engine"] = "onnxruntime"
    report["run"]["settings"] = ["rounds: 3"]
    page = lab.report_page(report)
    assert "<p>rounds: 3</p>" in page  # a text, no warning
    assert "bit for bit" not in page
    assert "bound asks" in page
    assert "base_1x128, 1 layer" in lab.speed(report).as_bytes().decode()


def test_the_machine_is_described():
    report = synthetic_report(1, threads=(1,), targets=("AVX2",))
    assert "The machine" not in lab.report_page(report)  # an older program did not say
    facts = lab.schema()["properties"]["machine"]["properties"]["hardware"]["properties"]
    report["machine"]["hardware"] = {**dict.fromkeys(facts), "memory_channels": 12,
                                     "core_types": ["16 x core", "8 x atom"], "mitigations": [],
                                     "product": HOSTILE}
    rows = sound(lab.report_page(reports.check(report))).rows
    for row in (["memory channels", "12"], ["core types", "16 x core"], ["", "8 x atom"],
                ["mitigations", "none"], ["governor", "not known"]):
        assert row in rows


HOSTILE = "\"><script>alert(1)</script>\x1b[31m\u202e$x_1$ &"


def test_energy_and_clocks_are_shown_where_they_are_known():
    report = synthetic_report(1, threads=(1,), targets=("AVX2",))
    row = lab.schema()["properties"]["rows"]["items"]["properties"]["sensors"]["properties"]
    for one in report["rows"]:
        one["sensors"] = dict.fromkeys(row)
    assert "Energy, clock" not in lab.report_page(reports.check(report))
    report["run"].update(energy_source="package-0, dram", idle_watts=41.25)
    report["rows"][1]["sensors"].update(watts=180.5, joules_per_token=0.0025, clock_mhz=2100,
                                        throttled=True)
    page = lab.report_page(reports.check(report))
    assert "Energy is that of package-0, dram, the idle machine&#39;s included: 41.2 W." in page
    (line,) = (row for row in sound(page).rows if "0.0025" in row)
    assert line[5:] == ["180", "", "0.0025", "", "2,100", "", "yes"]


def test_foreign_names_are_escaped():
    report = synthetic_report(1, threads=(1,))
    report["machine"]["cpu"] = HOSTILE
    report["machine"]["targets"].append(HOSTILE)
    report["noise"]["notes"] = [HOSTILE]
    for row in report["rows"]:
        row["workload"] = HOSTILE + row["workload"]
        row["engine_version"] = row["roof"]["name"] = HOSTILE
    report["rows"][0]["engine"] = report["rows"][2]["target"] = HOSTILE
    sound(lab.report_page(report))
    sound(lab.comparison_page(lab.compare([report, report]), [report] * 2, [HOSTILE, "b"]))


def odd_reports():
    full = synthetic_report(1, threads=(1,))

    def odd():
        return copy.deepcopy(full)

    report = odd()
    report["rows"] = []
    yield report
    report = odd()
    report["rows"] = report["rows"][:1]
    yield report
    yield {**full, "roofs": []}
    report = odd()
    for row in report["rows"]:
        del row["quantiles"]
        row["seconds"]["p99"] = None
    yield report
    report = odd()
    for row in report["rows"]:
        row.update(roof=None, weights="cold", threads=3)
    yield report
    report = odd()
    for row in report["rows"]:
        row.update(quantiles=[1] * 101, slots=[1] * 9, flops=1, weight_bytes=1,
                   seconds=dict.fromkeys(("min", "p50", "p90", "p99", "max"), 1))
    yield report
    report = odd()  # as far apart as the schema lets through
    report["rows"][0].update(flops=1e30, weight_bytes=1e-30, tokens_per_s=1e30)
    report["rows"][1]["seconds"] = dict(min=1e-30, p50=1e30, p90=1e30, p99=1e-30, max=1e30)
    report["rows"][1]["slots"] = [1e-30, 1e30, 1]
    report["rows"][2]["threads"] = 2 ** 31 - 1
    report["roofs"][0]["flops_per_s"] = 1e-30
    report["roofs"][-1]["bytes_per_s"] = 1e30
    yield report


@pytest.mark.parametrize("report", list(odd_reports()), ids=range(7))
def test_odd_reports_have_pages_too(report):
    reports.check(report)
    sound(lab.report_page(report))
    if report["rows"]:
        report["rows"] = report["rows"][:6]
        sound(lab.comparison_page(lab.compare([report, report]), [report] * 2, ["a", "b"]))


def test_a_comparison_has_a_row_for_each_pair():
    runs = [synthetic_report(1, slot_noise=0.01), synthetic_report(2, speed=1.2, slot_noise=0.01)]
    pairings = lab.compare(runs)
    cells = sound(lab.comparison_page(pairings, runs, ["a.json", "b.json"]))
    assert len(cells.rows) == 91
    for row, line in zip(pairings[0].rows, cells.rows[1:], strict=False):
        assert line[0] == reports.workload_of(row.base)
        assert line[7:9] == [str(row.ratio), str(row.band)]
        assert line[9] == row.verdict_text
        assert line[9].startswith("faster: 1.")
    assert "order statistics" in " ".join(cells.words), "the rule is told"
    svg = lab.ratios(pairings[0]).as_bytes().decode()
    assert svg.count("faster") == 92  # in the legend, and under the axis
    for verdict in ("slower", "no real difference", "inconclusive", "too few to tell"):
        assert svg.count(verdict) == 1  # in the legend


def test_spread_keeps_gaps_and_order():
    assert spread([10, 11, 12, 100], 15, 0, 100) == [10, 25, 40, 100]
    assert spread([99, 98, 100], 15, 0, 100) == [85, 70, 100]


# ---- In a browser -------------------------------------------------------------------------------

BROWSER = next((name for name in ("chromium", "chromium-browser", "google-chrome")
                if shutil.which(name)), None)


@pytest.mark.skipif(BROWSER is None, reason="NO BROWSER: there is no chromium")
def test_a_browser_shows_pages_light_and_dark(tmp_path):
    (tmp_path / "page.html").write_text(lab.report_page(synthetic_report(1)))
    pictures = []
    for scheme in (0, 1):  # dark, light
        picture = tmp_path / f"{scheme}.png"
        done = subprocess.run(
            [BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
             "--enable-logging=stderr", "--window-size=1300,2000", f"--screenshot={picture}",
             f"--user-data-dir={tmp_path}/profile", "--host-resolver-rules=MAP * ~NOTFOUND",
             f"--blink-settings=preferredColorScheme={scheme}", f"file://{tmp_path}/page.html"],
            capture_output=True, text=True, timeout=120, check=False)
        if not picture.exists():
            pytest.skip("NO BROWSER: this chromium shows no file")
        assert "CONSOLE" not in done.stderr
        pictures.append(picture.read_bytes())
    assert pictures[0] != pictures[1]
    assert min(map(len, pictures)) > 20000


def test_servers_and_openings_have_tables():
    report = synthetic_report(threads=(1, 2))
    rows = report["rows"] = [row for row in report["rows"] if row["precision"] == "f32" and
                             row["target"] == "AVX3_ZEN4"]
    server = {"calls_per_s": 80.5, "load_percent": None, "p99_9": None}
    loaded = {**server, "load_percent": 80, "p99_9": 0.25}
    rows += [{**row, "workload": f"{name} of {row['workload']}", "server": of_row}
             for row in rows[:2] for name, of_row in (("rate", server), ("80 % load", loaded))]
    opening = {"seconds": 0.25, "cached": None, "first_call": 0.02, "packed_bytes": 42_000_000,
               "resident_bytes": 0}
    rows.append({**rows[0], "model": {"name": "mini", "bytes": 90_900_000, "values": 9},
                 "texts_per_s": 583.24, "opening": opening})
    cells = sound(lab.report_page(report))
    assert ["mini", "f32", "90.9 MB", "42.0 MB", "", "250 ms", "", "20.0 ms"] in cells.rows
    served = [row for row in cells.rows if row[3] == "80 %"]
    assert len(served) == 2 and served[0][4] == "80.5" and served[0][9] == "250 ms"
    assert sum(row[3] == "back to back" for row in cells.rows) == 2
    assert sum("583.2" in row for row in cells.rows) == 1  # texts/s
    assert ">f32  80 % load of " in lab.latency(report).as_bytes().decode()
    for figure in (lab.scaling, lab.speed, lab.roofline):  # under load as fast as calls arrive
        assert "% load" not in figure(report).as_bytes().decode()
    assert "rate of minilm" in lab.speed(report).as_bytes().decode()
