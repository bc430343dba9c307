# SPDX-License-Identifier: Apache-2.0
"""bench/replay/simulate.py minilm_encode_10000: batches, parts of a call, and their costs."""

import json
import os
import pathlib
import sys

import pytest
from conftest import MINILM
from pyencore.lab.reports import LabError

pytest.importorskip("jsonschema")
REPLAY = pathlib.Path(__file__).resolve().parents[2] / "bench/replay"
sys.path.insert(0, str(REPLAY))

replay = pytest.importorskip("replay")
replay_encode = pytest.importorskip("replay_encode")
replay_encode_costs = pytest.importorskip("replay_encode_costs")
replay_texts = pytest.importorskip("replay_texts")
simulate = pytest.importorskip("simulate")

ENCORE = os.environ.get("ENCORE")


def test_batches_are_those_of_encode():
    # The longest first; 2,048 tokens, or 512 for each thread.
    assert replay_encode.batches([4] * 600, 1) == [(4,) * 512, (4,) * 88]
    assert replay_encode.batches([4] * 600, 16) == [(4,) * 600]
    assert replay_encode.batches([2000, 3000, 48, 1], 4) == [(3000,), (2000, 48), (1,)]
    assert [len(chunk) for chunk in replay_encode.chunks([3] * 10000)] == [8192, 1808]


def halves(layer, threads):
    """A plan by sequences with one task for each thread."""
    each = len(layer.lengths) // threads
    groups = [{"first_sequence": i * each, "sequences": each,
               "rows": sum(layer.lengths[i * each:(i + 1) * each])} for i in range(threads)]
    return {"threads": {"kind": "sequences", "threads": threads, "groups": groups}}


def test_a_call_worked_out_by_hand():
    work = replay_encode.workload("minilm_encode_600")
    costs = replay.Costs(lambda rows: 1e9, attention=1e9)
    text = replay_encode.TextCosts(tokenizing=1e-3, rows=1e-5, serial=1e-4, cold=0.5,
                                  fresh=1e-7)
    flops = 8 * 2400 * 384 ** 2 + 4 * 2400 * 384 * 1536 + 4 * 2400 * 4 * 384

    def call(threads, hand_over=0.0):
        return replay_encode.replayed(work, [4] * 600, threads, halves, costs, text,
                                      replay.Machine(hand_over))

    one = call(1)
    assert one.kinds == ("sequences", "sequences")
    assert one.parts["tokenizing"] == pytest.approx(2.4)
    assert one.parts["embedding and pooling"] == pytest.approx(2400 * 384e-5)
    assert one.parts["one thread"] == pytest.approx(0.24)
    assert one.parts["new memory"] == pytest.approx(600 * 384 * 4e-7)  # the zeros of 600 vectors
    # Six layers, whose weights come from memory in each of two batches.
    assert one.parts["layers"] == pytest.approx(6 * flops / 1e9 + 6 * 2 * 0.5)
    assert one.seconds == pytest.approx(sum(one.parts.values()))
    two = call(2)
    # 37 tasks of 16 texts and one of 8: a thread has 19 of the former. 2,048 rows are 64 tasks of
    # 32, and 352 are 11, so that a thread has 32 and 6 of them.
    assert two.parts["tokenizing"] == pytest.approx(19 * 64e-3)
    assert two.parts["embedding and pooling"] == pytest.approx((1024 + 192) * 384e-5)
    for part in ("one thread", "new memory"):
        assert two.parts[part] == one.parts[part]
    assert two.parts["layers"] == pytest.approx(6 * flops / 1e9 / 2 + 6 * 2 * 0.5)
    # Tokenizing, and in each batch embedding, six layers and pooling.
    assert call(2, 1.0).seconds == pytest.approx(two.seconds + 1 + 2 * 8)


def test_memory_that_is_new_in_each_call():
    work = replay_encode.workload("minilm_encode_4000")
    result = 4000 * 384 * 4
    # Batches of 512 tokens a thread, of 64 tokens each. What 16 threads need is kept.
    assert replay_encode.new_bytes(work, [64] * 4000, 16) == result
    # Of more, 32 MiB of the workspace and of the input; the input of 32 threads is less.
    assert replay_encode.new_bytes(work, [64] * 4000, 32) == (result + (32 << 20) +
                                                              32 * 512 * 384 * 5)
    assert replay_encode.new_bytes(work, [64] * 4000, 128) == result + 2 * (32 << 20)


def test_costs_of_texts_are_found_again():
    tokenizing, row, serial, hand_over = 50, 2, 10, 5
    outside = tokenizing + serial + 16 * row
    wide = tokenizing + serial + 64 * row
    timed = replay_encode_costs.TimedTexts(
        narrow=outside + 100, narrow_two_layers=outside + 200,
        narrow_on_two=serial + (outside + 100 - serial) / 2 + hand_over,
        wide=wide + 300, wide_two_layers=wide + 600)
    assert replay_encode_costs.costs_of_texts(timed, hand_over, 7, 3) == replay_encode.TextCosts(
        tokenizing, row, serial, 7, 3)


def test_table():
    names = ("tokenizing", "embedding and pooling", "one thread", "new memory")
    parts = dict(zip((*names, "layers"), (0.1, 0.2, 0.1, 0.05, 0.55), strict=True))
    call = replay.Replayed(parts, ("rows", "sequences", "rows"))
    alone = replay.Replayed({**parts, "layers": 1.35}, ("sequences",))
    found = {("base_encode_9", count): [one] for count, one in ((1, alone), (2, call), (64, call))}
    head, first, last = simulate.table(names, (found, {("base_encode_9", 2): [1.1]}),
                                       ["base_encode_9"], [2, 64])
    assert len(head) == len(first) == len(last)
    assert first[2:] == ["2 rows, 1 sequences", "1,000.0", "90 %", "10.0 %", "20.0 %", "10.0 %",
                         "5.0 %", "1,100.0", "1.100"]
    assert last[-2:] == ["", ""]


def test_drawn_texts(tmp_path):
    (tmp_path / "vocab.txt").write_text("[PAD]\n##ing\n!\na\nthe\nengine\n", encoding="utf-8")
    texts = replay_texts.drawn(str(tmp_path), 50)
    assert texts == replay_texts.drawn(str(tmp_path), 50)
    assert {word for text in texts for word in text.split()} == {"the", "engine"}
    assert all(3 <= len(text.split()) <= 100 for text in texts)
    with pytest.raises(LabError, match=r"vocab\.txt"):
        replay_texts.drawn(str(tmp_path / "none"), 1)


def test_only_berts(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "llama"}), encoding="utf-8")
    with pytest.raises(LabError, match="llama"):
        replay_texts.write_folder(str(tmp_path), str(tmp_path / "made"), 16, 1, 16, 1)


@pytest.mark.skipif(not (ENCORE and MINILM.is_dir()), reason="wants ENCORE and the MiniLM folder")
def test_with_the_command(capsys):
    assert simulate.main(["minilm_encode_40", "--model", str(MINILM), "--threads", "1,64",
                          "--seconds", "0.01", "--rounds", "1", "--encore", ENCORE]) == 0
    head, one, many = capsys.readouterr().out.splitlines()
    assert "one thread" in head and one.split()[:4] == ["minilm_encode_40", "1", "1", "sequences"]
    assert "100 %" in one and many.split()[:2] == ["minilm_encode_40", "64"]
    assert len(one.split()) == len(many.split()) + 2  # one thread was measured
