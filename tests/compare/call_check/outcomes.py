# SPDX-License-Identifier: Apache-2.0
"""What a call gave, or how it was refused, of encore and of the reference; and whether these agree.
"""
import dataclasses
import math
import numbers
import pathlib
import re
import traceback

import numpy as np
import torch

import pyencore

BOUND = 2e-6  # of the largest magnitude of a result, or of 1: both are in float32
OURS = str(pathlib.Path(pyencore.__file__).parent)
CLEAR = (TypeError, ValueError, NotImplementedError, FileNotFoundError, ImportError)
# Of nanobind, and of Python where a value has the wrong type.
RAW = re.compile(r"incompatible function arguments|Invoked with types|std::|nanobind|object has no "
                 r"attribute|not iterable|has no len|unsupported operand|not supported between|"
                 r"unhashable|cannot be interpreted|invalid literal|could not convert|must be real "
                 r"number|out of range$|not subscriptable|cannot unpack|inhomogeneous|expected str,"
                 r" bytes|argument must be|cannot be converted|not callable|bad operand|codec "
                 r"can't")
# Python's own sentence on a call names the argument.
SIGNATURE = re.compile(r"\w+\(\) (got an unexpected|got multiple|got some|takes|missing)")


@dataclasses.dataclass
class Outcome:
    value: object = None
    error: BaseException | None = None

    def told(self):
        if self.error is not None:
            return f"{type(self.error).__name__}: {self.error}"[:300]
        return brief(self.value)


def outcome_of(call):
    try:
        return Outcome(call())
    except Exception as error:  # whatever it is, it is judged
        return Outcome(error=error)


def brief(value, longest=160):
    text = " ".join(repr(value).split())
    return text if len(text) <= longest else text[:longest] + " ..."


def why_raw(error):
    """Why an exception of encore's is no clear refusal, or None."""
    if not isinstance(error, CLEAR):
        return f"{type(error).__name__} is no refusal"
    sentence = str(error)
    if not sentence.strip():
        return "no sentence"
    if SIGNATURE.search(sentence):
        return None
    if RAW.search(sentence):
        return "a sentence of Python or nanobind"
    frames = traceback.extract_tb(error.__traceback__)
    last = frames[-1]
    if not last.filename.startswith(OURS):
        return f"raised in {pathlib.Path(last.filename).name}"
    return None


def plain(value):
    """A torch tensor as an array."""
    if isinstance(value, torch.Tensor):
        value = value.detach()
        return (value.to_dense() if value.is_sparse else value).cpu().numpy()
    return value


def difference(found, wanted, where="result"):
    """The first difference, in words, or None. Arrays may stand for tensors."""
    if isinstance(found, torch.Tensor) and not isinstance(wanted, torch.Tensor):
        return f"{where} is a tensor; wanted {type(wanted).__name__}"
    found, wanted = plain(found), plain(wanted)
    if isinstance(wanted, np.ndarray) and wanted.dtype != object:
        return difference_of_arrays(found, wanted, where)
    if isinstance(wanted, dict):
        if not isinstance(found, dict) or list(found) != list(wanted):
            return f"{where} has {brief(list(found) if isinstance(found, dict) else found)}; " \
                   f"wanted the keys {list(wanted)}"
        parts = ((found[key], wanted[key], f"{where}[{key!r}]") for key in wanted)
        return next((d for d in (difference(*part) for part in parts) if d), None)
    if isinstance(wanted, (list, tuple)):
        if not isinstance(found, (list, tuple)) or isinstance(found, tuple) != isinstance(
                wanted, tuple) and not hasattr(found, "_fields"):
            return f"{where} is {brief(found)}; wanted a {type(wanted).__name__}"
        if len(found) != len(wanted):
            return f"{where} has {len(found)} of {len(wanted)}"
        parts = ((f, w, f"{where}[{i}]") for i, (f, w) in enumerate(zip(found, wanted)))
        return next((d for d in (difference(*part) for part in parts) if d), None)
    if isinstance(wanted, numbers.Real) and not isinstance(wanted, (bool, int)):
        if not isinstance(found, numbers.Real) or isinstance(found, bool):
            return f"{where} is {brief(found)}; wanted {wanted}"
        return difference_of_arrays(np.float32(found), np.float32(wanted), where)
    if type(found) is not type(wanted) or found != wanted:
        return f"{where} is {brief(found)}; wanted {brief(wanted)}"
    return None


def difference_of_arrays(found, wanted, where):
    if not isinstance(found, (np.ndarray, np.generic)):
        return f"{where} is a {type(found).__name__}; wanted an array"
    if np.shape(found) != np.shape(wanted) or found.dtype != wanted.dtype:
        return (f"{where} is {found.dtype} {np.shape(found)}; wanted {wanted.dtype} "
                f"{np.shape(wanted)}")
    found, wanted = np.atleast_1d(found), np.atleast_1d(wanted)
    if not wanted.size:
        return None
    if wanted.dtype.kind in "iub":
        return difference_of_integers(found, wanted, where)
    if wanted.dtype.kind != "f":
        return None if (found == wanted).all() else f"{where} differs"
    if (np.isnan(found) != np.isnan(wanted)).any():
        return f"{where} has NaN where the other has none"
    with np.errstate(invalid="ignore"):
        off = np.abs(found.astype(np.float64) - wanted)
    off[(found == wanted) | np.isnan(wanted)] = 0
    real = np.abs(wanted[np.isfinite(wanted)])
    largest = max(1.0, float(real.max(initial=0.0)))
    worst = float(off.max())
    if not worst <= BOUND * largest:
        return f"{where} is off by {worst:.1e} of {largest:.3g}"
    return None


def difference_of_integers(found, wanted, where):
    """Quantized values may be next to each other where numbers were on a step's edge: the least and
    largest of few vectors are."""
    off = np.abs(found.astype(np.int64) - wanted.astype(np.int64))
    if off.max() <= 1 and wanted.dtype.itemsize == 1 and (off > 0).mean() <= 0.25:
        return None
    return f"{where} has {int((off > 0).sum())} other integers of {off.size}" if off.any() else None


def numbers_in(value):
    """All floats of a result below each other."""
    value = plain(value)
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind == "f":
        return np.asarray(value, np.float64).reshape(-1)
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (list, tuple)):
        return np.concatenate([np.empty(0), *map(numbers_in, value)])
    return np.array([value] if isinstance(value, float) else [], np.float64)


def distance(found, wanted):
    """Of the largest magnitude, or of 1; infinite for results of other shapes."""
    found, wanted = numbers_in(found), numbers_in(wanted)
    if found.shape != wanted.shape or not np.isfinite(wanted).all():
        return math.inf
    return float(np.abs(found - wanted).max(initial=0) / max(1, np.abs(wanted).max(initial=0)))
