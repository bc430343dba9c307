# SPDX-License-Identifier: Apache-2.0
"""Random arguments: texts and what is none, by position and by name."""
import dataclasses

import numpy as np
import torch

WORDS = ("harbour hills road lighthouse tea caf\u00e9 na\u00efve \u6771\u4eac 3.14 , . - -- xyzzy "
         "unbelievable Ana Lisbon [SEP] [MASK] trains boats boulangerie \u00ab \u00bb ! 's co-op "
         "30\u20ac \U0001F600 THE The").split()


@dataclasses.dataclass
class Once:
    """An iterator over values, made anew for each side; the reference is given a list."""
    values: list

    def __repr__(self):
        return f"iter({self.values!r})"


@dataclasses.dataclass
class Parameter:
    """draw: of rng, a value that is meant to be taken; default: what by position stands for it."""
    name: str
    draw: object
    default: object = None
    share: float = 0.25  # of calls that have it
    wrong: bool = True  # at times something else


@dataclasses.dataclass
class Call:
    method: str
    args: tuple = ()
    options: dict = dataclasses.field(default_factory=dict)

    def __repr__(self):
        given = [*map(short, self.args), *(f"{k}={short(v)}" for k, v in self.options.items())]
        return f"{self.method}({', '.join(given)})"

    def of(self, ours):
        """args and options for one side."""
        def fresh(value):
            if isinstance(value, Once):
                return iter(value.values) if ours else list(value.values)
            return value
        return (tuple(map(fresh, self.args)),
                {key: fresh(value) for key, value in self.options.items()})


def short(value):
    if isinstance(value, (np.ndarray, torch.Tensor)) and (value.ndim > 1 or len(repr(value)) > 90):
        return f"{type(value).__name__} {tuple(value.shape)} {value.dtype}"
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:150]} ... ({len(text)} characters)"


def one_in(rng, n):
    return rng.random() < 1 / n


def draw_text(rng, longest=60):
    kind = rng.random()
    if kind < 0.04:
        return ""
    if kind < 0.08:
        return rng.choice([" ", "\n\t", "  tea  ", "x", "ab", "\u00a0", "a\x00b"])
    if kind < 0.11:
        return " ".join(rng.choice(WORDS) for _ in range(600))
    words = [rng.choice(WORDS) for _ in range(1 + int(longest * rng.random() ** 2))]
    return " ".join(words) + rng.choice(["", ".", "?", " "])


def draw_texts(rng, most=5):
    return [draw_text(rng) for _ in range(rng.choice([0, 1, 1, 2, 2, 3, most]))]


def draw_wrong(rng):
    """What nearly no argument takes."""
    return rng.choice([
        3, -1, 0, 2.5, "x", b"x", [], {}, (), True, False, None, np.float32(2.5), np.int64(2),
        ["a"], {"a"}, {"a": 1}, object(), float("nan"), "cosine", [None], [["a"]], 10**30, "",
        np.array([1.0, 2.0]), lambda x: x, Exception, 1j])


def wrong_inputs(rng):
    """In place of texts."""
    some = draw_text(rng)
    return rng.choice([
        None, 3, 2.5, b"bytes", {some, "tea"}, {"text": some}, {some: "tea", "x": "y"},
        [some, None], [some, 3], [some, b"x"], [[some], "tea"], [{"text": some}], (some, 2.5),
        np.array([1.0]),
        [np.str_("tea"), 4], object(), True, [True], frozenset([some, "b"]), range(3), [["a", 3]],
        bytearray(b"tea"), Once([some, None]), Once([some, 4]), {}, [None], [()], [[]], [set()],
        [("a", None)], torch.tensor([1]), [some, np.nan], np.array([some, None], object)])


def draw_inputs(rng, most=5):
    """A text, or several of them in all kinds of containers."""
    kind = rng.random()
    if kind < 0.1:
        return wrong_inputs(rng)
    if kind < 0.4:
        return draw_text(rng)
    texts = draw_texts(rng, most)
    container = rng.choice(["list", "list", "list", "tuple", "array", "objects", "once", "str_"])
    if container == "tuple":
        return tuple(texts)
    if container == "array":
        return np.array(texts, dtype=str) if not any(t.endswith("\0") for t in texts) else texts
    if container == "once" and not texts:
        return []
    if container == "objects":
        return np.array(texts, dtype=object)
    if container == "once":
        return Once(texts)
    if container == "str_":
        return [np.str_(text) for text in texts]
    return texts


def draw_call(rng, method, parameters, wrong=0.05):
    """The first of the parameters are by position, others by name, few are wrong."""
    by_position = rng.choice([0, 1, 1, 1, 1, 1, 2, 3, 4, rng.randrange(len(parameters) + 1)])
    args, options = [], {}
    for i, parameter in enumerate(parameters):
        given = rng.random() < parameter.share
        value = parameter.draw(rng) if given else parameter.default
        if given and i and parameter.wrong and rng.random() < wrong:
            value = draw_wrong(rng)
        if i < by_position:
            args.append(value)
        elif given:
            options[parameter.name] = value
    return Call(method, tuple(args), options)


def choice(*values):
    return lambda rng: rng.choice(values)


FLAG = choice(True, False, True, False, 1, 0, np.True_, None)
