"""Toy sets for the plane."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.datasets import make_clouds, make_moons, make_rings
from mercer.playground import messages
from mercer.playground.messages import MOST_POINTS, PLANE, Answer

__all__ = ["TOYS", "draw_toy"]

Arrays = tuple[NDArray, NDArray]


def _clouds(n: int, n_classes: int, noise: float, rng: np.random.Generator) -> Arrays:
    spread = 0.25 + 2.0 * noise
    return make_clouds(
        n, n_classes=max(2, n_classes), separation=2.2, spread=spread, random_state=rng
    )


def _moons(n: int, n_classes: int, noise: float, rng: np.random.Generator) -> Arrays:
    return make_moons(n, n_moons=max(2, n_classes), noise=noise, random_state=rng)


def _rings(n: int, n_classes: int, noise: float, rng: np.random.Generator) -> Arrays:
    radii = np.linspace(0.4, 2.4, max(2, n_classes)).tolist()
    return make_rings(n, radii=radii, noise=noise, random_state=rng)


def _spirals(n: int, n_classes: int, noise: float, rng: np.random.Generator) -> Arrays:
    n_arms = max(2, n_classes)
    label = rng.permutation(np.arange(n) % n_arms)
    along = np.sqrt(rng.uniform(0.02, 1.0, n))
    angle = 1.5 * np.pi * along + 2 * np.pi * label / n_arms
    X = 2.6 * along[:, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return X + noise * rng.standard_normal((n, 2)), label


def _board(n: int, n_classes: int, noise: float, rng: np.random.Generator) -> Arrays:
    X = rng.uniform(-2.6, 2.6, (n, 2))
    square = np.floor((X + 2.6) / 1.3).astype(np.intp)
    label = (square[:, 0] + square[:, 1]) % max(2, n_classes)
    return X + noise * rng.standard_normal((n, 2)), label


def _wave(n: int, n_classes: int, noise: float, rng: np.random.Generator) -> Arrays:
    del n_classes  # a curve for regression has one class
    x = rng.uniform(-2.8, 2.8, n)
    y = 1.4 * np.sin(1.8 * x) + 0.3 * x + 2 * noise * rng.standard_normal(n)
    return np.column_stack([x, y]), np.zeros(n, dtype=np.intp)


TOYS: dict[str, Callable[[int, int, float, np.random.Generator], Arrays]] = {
    "moons": _moons,
    "rings": _rings,
    "clouds": _clouds,
    "spirals": _spirals,
    "board": _board,
    "wave": _wave,
}


def draw_toy(message: Mapping[str, Any]) -> Answer:
    """Return the points of a toy set, inside the plane."""
    name = messages.choice(message, "toy", tuple(TOYS), "moons")
    n = messages.whole(message, "n", 6, MOST_POINTS, 80)
    n_classes = messages.whole(message, "n_classes", 1, messages.MOST_CLASSES, 2)
    noise = messages.number(message, "noise", 0.0, 1.0, 0.1)
    seed = messages.whole(message, "seed", 0, 2**31 - 1, 0)
    X, label = TOYS[name](n, n_classes, noise, np.random.default_rng(seed))
    # Moons lie beside the origin; what is larger than the plane is made smaller.
    X = X - 0.5 * (X.max(axis=0) + X.min(axis=0)) if name == "moons" else X
    reach = float(np.abs(X).max())
    if reach > 0.95 * PLANE or name == "moons":
        X = X * (0.85 * PLANE / reach)
    return Answer(
        {"type": "toy"},
        {
            "x": X[:, 0].astype(np.float32),
            "y": X[:, 1].astype(np.float32),
            "label": label.astype(np.uint8),
        },
    )
