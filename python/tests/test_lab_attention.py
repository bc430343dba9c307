# SPDX-License-Identifier: Apache-2.0
"""Attention: every head of a model, the head that tells most, every step of an example."""

import numpy as np
import pytest

pytest.importorskip("pyencore.lab.pages")  # left out without the extra pyencore[plots]

from pyencore import lab
from pyencore.lab import attention
from test_lab_pages import HOSTILE, no_overlap, sound


def model(words, layers=1, heads=2, seed=None):
    """Weights of nothing, or drawn; [CLS] and [SEP] around the words."""
    names = ["[CLS]", *words, "[SEP]"]
    tokens = [{"token": name, "id": names.index(name), "special": i in (0, len(names) - 1),
               "text": 1} for i, name in enumerate(names)]
    n = len(names)
    weights = np.zeros((layers, heads, n, n))
    if seed is not None:
        weights = np.random.default_rng(seed).dirichlet(np.full(n, 0.3), (layers, heads, n))
    kinds = ["[CLS]", "other words"] if words else []
    return {"model": "a-model", "precision": "f32", "text": " ".join(words), "tokens": tokens,
            "layers": layers, "heads": heads, "kinds": kinds,
            "shares_of_layers": [[0.4, 0.6]] * layers,
            "shares_of_heads": [[[0.4, 0.6]] * heads] * layers, "weights": weights.tolist()}


def example(tokens=("The", "cat", "sat"), heads=2):
    random, n = np.random.default_rng(1), len(tokens)
    weights = random.dirichlet(np.ones(n), (heads, n))
    found = {name: random.random((n, 4)).tolist() for name in ("X", "Q", "K", "V", "output")}
    return {"title": '"The cat sat"', "tokens": list(tokens), "heads": heads, "seed": 42, **found,
            "scores": np.log(weights).tolist(), "weights": weights.tolist()}


def test_the_most_telling_head_picks_out_words():
    found = model("abcdef")
    weights = np.zeros((1, 2, 8, 8))
    weights[0, 0, 1:7, 1:7] = 1 / 6
    for i in range(1, 7):
        weights[0, 1, i, 0] = 0.5
        weights[0, 1, i, 6 if i < 4 else 1] = 0.5
    found["weights"] = weights.tolist()
    assert attention.most_telling_head(found) == (0, 1)
    # Neighbours tell nothing, nor does a text without words.
    neighbours = model("ab")
    neighbours["weights"][0][1][1][2] = 1
    assert attention.most_telling_head(neighbours) == (0, 0)
    assert attention.most_telling_head(model("")) == (0, 0)


def test_of_a_pair_the_other_text_tells():
    found = model("abcd")
    for token in found["tokens"][3:]:
        token["text"] = 2
    found["weights"][0][0][1][2] = 0.9   # a neighbour of the same text
    found["weights"][0][1][1][4] = 0.4   # the other text
    assert attention.most_telling_head(found) == (0, 1)


@pytest.mark.parametrize("dark", [False, True])
def test_every_head_is_shown(dark):
    found = model(["these", "cats", "sat"], layers=4, heads=6, seed=3)
    figure = lab.heads(found, dark=dark)
    assert len(figure.axes[0].images) == 4 * 6
    for layer in range(4):
        for head in range(6):
            np.testing.assert_allclose(figure.axes[0].images[6 * layer + head].get_array(),
                                       found["weights"][layer][head])
    assert no_overlap(figure) > 20
    assert no_overlap(lab.heads(found, 2, 3, dark=dark)) > 20
    assert "Layer 2, mean over heads" in lab.heads(found, 2).as_bytes().decode()


def test_a_large_model_and_a_long_text():
    found = model(["longish"] * 62, layers=24, heads=16, seed=1)
    figure = lab.heads(found)
    assert len(figure.as_bytes()) < 3_000_000
    no_overlap(figure)
    with pytest.raises(lab.LabError, match="65 tokens, and the figure shows 64"):
        lab.heads(model(["a"] * 63, seed=1))


def test_a_layer_or_head_that_is_not_there():
    found = model("ab", seed=1)
    for chosen, words in (((2, None), "layer is 2, wanted 1 to 1"), ((1, 3), "head is 3"),
                          ((None, 1), "without its layer"), ((0, None), "layer is 0")):
        with pytest.raises(lab.LabError, match=words):
            lab.heads(found, *chosen)


@pytest.mark.parametrize("heads", [1, 2, 5])
def test_every_step_is_shown(heads):
    found = example(heads=heads)
    svg = lab.steps(found).as_bytes().decode()
    for words in ("X: embeddings", "Q: queries", "K: keys", "V: values", "scores", "rows sum to 1",
                  "output", "drawn from seed 42", f"{found['X'][1][2]:.2f}",
                  f"{found['weights'][0][1][2]:.2f}"):
        assert words in svg
    for draw in (lab.steps, lab.weights):
        for dark in (False, True):
            assert no_overlap(draw(found, dark=dark)) > 9
    assert len(lab.weights(found).axes) == heads + 1


def test_a_nan_and_keys_without_tokens_are_drawn():
    found = example()
    del found["X"], found["seed"]
    found["weights"] = np.full((2, 3, 5), np.nan).tolist()
    found["scores"] = np.ones((2, 3, 5)).tolist()
    assert "k4" in lab.weights(found).as_bytes().decode()
    sound(lab.attention_page(found))


def test_pages_escape_what_they_show():
    for found in (model([HOSTILE, "b"], seed=1), example([HOSTILE, "b", "c"]), model("")):
        if "model" in found:
            found["model"] = found["text"] = HOSTILE
        else:
            found["title"] = HOSTILE
        sound(lab.attention_page(found))


def test_a_model_page_lists_every_head():
    cells = sound(lab.attention_page(model(["a", "b"], layers=3, heads=2, seed=1)))
    assert cells.rows[-4:] == [["layer", "head 1", "head 2"],
                               *([str(layer), *["other words 60 %"] * 2] for layer in (1, 2, 3))]


def test_what_is_no_attention_is_refused(tmp_path):
    (tmp_path / "a.json").write_text("[1]")
    for source in (tmp_path / "a.json", tmp_path / "none.json", {"checks": []}):
        with pytest.raises(lab.LabError):
            lab.load_attention(source)
    one_layer = model("ab", seed=1)
    one_layer.update(layer=1, weights=one_layer["weights"][0])
    with pytest.raises(lab.LabError, match="without --layer"):
        lab.heads(one_layer)
