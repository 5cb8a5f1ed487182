"""Whether arrays and numbers that a model keeps are what compiled code takes.

Compiled code does not check the bounds of arrays, and a NaN among coefficients gives
answers that look like any others.
"""

from __future__ import annotations

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
from scipy import sparse

__all__ = ["indices", "number", "numbers", "whole_number"]


def numbers(owner: Any, name: str, *shape: int | None) -> Any:
    """Return an attribute that must be finite numbers; None in a shape fits all."""
    value = getattr(owner, name)
    if not (isinstance(value, np.ndarray) or sparse.issparse(value)):
        raise ValueError(f"{name} is a {type(value).__name__}, not an array")
    if len(value.shape) != len(shape) or any(
        wanted is not None and wanted != given
        for wanted, given in zip(shape, value.shape, strict=True)
    ):
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise ValueError(f"{name} has shape {value.shape}, not ({wanted})")
    entries = value.data if sparse.issparse(value) else value
    if entries.dtype.kind not in "fiub" or not np.isfinite(entries).all():
        raise ValueError(f"{name} has values that are not finite numbers")
    return value


def indices(owner: Any, name: str, below: int, *shape: int | None) -> Any:
    """Return an attribute that must be whole numbers from 0 to below a limit."""
    value = numbers(owner, name, *shape)
    if value.dtype.kind not in "iu" or (
        value.size and not 0 <= value.min() <= value.max() < below
    ):
        raise ValueError(f"{name} has values that do not lie from 0 to {below - 1}")
    return value


def number(owner: Any, name: str) -> float:
    """Return an attribute that must be a finite number."""
    value = getattr(owner, name)
    if not isinstance(value, Real) or not math.isfinite(value):
        raise ValueError(f"{name} is {value!r}, not a finite number")
    return float(value)


def whole_number(owner: Any, name: str, least: int = 1) -> int:
    """Return an attribute that must be a whole number from some number on."""
    value = getattr(owner, name)
    if not isinstance(value, Integral) or isinstance(value, bool) or value < least:
        raise ValueError(f"{name} is {value!r}, not a whole number from {least}")
    return int(value)
