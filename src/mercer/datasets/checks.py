"""Checks of arguments, shared by loaders, toy sets and splits."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, TypeAlias

import numpy as np

__all__ = ["Seed", "as_generator", "check_choice", "check_count", "check_number"]

Seed: TypeAlias = int | np.random.Generator | np.random.RandomState | None


def check_choice(name: str, value: Any, allowed: Sequence[str]) -> None:
    """Raise an error unless the value is one of the allowed values."""
    if not isinstance(value, str) or value not in allowed:
        known = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {known}; got {value!r}.")


def check_count(name: str, value: Any, least: int = 1) -> int:
    """Return the value as an int; raise an error unless it is whole and >= least."""
    if not isinstance(value, Integral) or isinstance(value, bool):
        raise TypeError(f"{name} must be a whole number, got {value!r}.")
    if value < least:
        raise ValueError(f"{name} must be >= {least}, got {value}.")
    return int(value)


def check_number(
    name: str, value: Any, least: float = 0.0, most: float = math.inf
) -> float:
    """Return the value as a float; raise an error if it is outside the bounds."""
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} must be a number, got {value!r}.")
    number = float(value)
    if not (math.isfinite(number) and least <= number <= most):
        top = "" if most == math.inf else f" and <= {most:g}"
        raise ValueError(
            f"{name} must be a finite number >= {least:g}{top}, got {value}."
        )
    return number


def as_generator(random_state: Seed) -> np.random.Generator:
    """Turn a seed, a Generator or a RandomState into a Generator."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31, size=4))
    if random_state is None:
        return np.random.default_rng()
    if not isinstance(random_state, Integral) or isinstance(random_state, bool):
        raise TypeError(
            "random_state must be a whole number >= 0, None, a numpy Generator or a "
            f"RandomState; got {random_state!r}."
        )
    return np.random.default_rng(check_count("random_state", random_state, least=0))
