# SPDX-License-Identifier: Apache-2.0
"""Pictures, reports and comparisons of `encore bench` and `encore attend`.

    from pyencore import lab
    report = lab.load("bench.json")
    lab.roofline(report)                     # a figure, which a notebook shows
    lab.compare([report, lab.load("after.json")])[0].summary()

Or from a shell: python -m pyencore.lab report|compare|table|attention. Needs the extra
[plots]: matplotlib, Jinja2 and jsonschema.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .attention import heads, steps, weights
    from .attention import load as load_attention
    from .comparison import Pairing, compare
    from .figures import latency, ratios, roofline, scaling, speed
    from .measure import attend, bench, everything, find_encore
    from .pages import attention_page, comparison_page, report_page
    from .reports import LabError, check, load, schema
    from .style import Figure
    from .turns import compare_in_turns, in_turns

# Loaded when they are first asked for: what needs no figures starts without matplotlib.
_WHERE = {
    "attention": ("heads", "steps", "weights"),
    "comparison": ("Pairing", "compare"),
    "figures": ("latency", "ratios", "roofline", "scaling", "speed"),
    "measure": ("attend", "bench", "everything", "find_encore"),
    "pages": ("attention_page", "comparison_page", "report_page"),
    "reports": ("LabError", "check", "load", "schema"),
    "style": ("Figure",),
    "turns": ("compare_in_turns", "in_turns"),
}

__all__ = [
    "Figure", "LabError", "Pairing", "attend", "attention_page", "bench", "check", "compare",
    "compare_in_turns", "comparison_page", "everything", "find_encore", "heads", "in_turns",
    "latency", "load", "load_attention", "ratios", "report_page", "roofline", "scaling", "schema",
    "speed", "steps", "weights",
]


def __getattr__(name: str) -> Any:
    if name == "load_attention":
        return importlib.import_module(".attention", __name__).load
    for module, names in _WHERE.items():
        if name in names:
            return getattr(importlib.import_module(f".{module}", __name__), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
