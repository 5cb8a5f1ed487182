"""k-means and kernel k-means in the study ``kernel-methods``."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix

import mercer
from mercer.datasets import make_clouds, make_rings
from mercer.images import GaussianProjection
from mercer.plots import EmbeddingDisplay
from mercer.studies.kernel_methods.protocol import GAMMAS
from mercer.studies.panels import curves_panel, plane_panel
from mercer.studies.results import Figure, Finding, Item, Row
from mercer.studies.study import Run

__all__ = ["clusters"]


def disagreement(found: NDArray, truth: NDArray) -> float:
    """Return the percentage of labels that differ after the best renaming."""
    matrix = confusion_matrix(truth, found)
    rows, columns = linear_sum_assignment(-matrix)
    return 100.0 * (1 - matrix[rows, columns].sum() / len(truth))


def clusters(run: Run) -> Iterator[Item]:
    """Compare k-means and kernel k-means on blobs and rings, and for several γ."""
    n = run.pick(300, 300, 100)
    sets = {
        "blobs": make_clouds(n, n_classes=3, separation=6.0, random_state=run.seed),
        "rings": make_rings(n, random_state=run.seed),
    }
    for name, (X, y) in sets.items():
        k = len(np.unique(y))
        flat = GaussianProjection(gamma=7.0).fit_transform(X)
        seed: dict[str, Any] = {"random_state": run.seed, "n_init": 10}
        ways: dict[str, Any] = {
            "k-means": (mercer.KMeans(k, **seed), X),
            "projection (γ = 7), then k-means": (mercer.KMeans(k, **seed), flat),
            "kernel k-means (Gaussian, γ = 7)": (
                mercer.KernelKMeans(
                    k, kernel="rbf", gamma=7.0 if k == 2 else 0.1, **seed
                ),
                X,
            ),
        }
        panels = [_panel(X, y, f"{name}, true classes")]
        for way, (model, data) in ways.items():
            started = time.perf_counter()
            found = model.fit_predict(data)
            seconds = time.perf_counter() - started
            values = {"error": disagreement(found, y)}
            yield Row("clusters", f"{name}: {way}", values, seconds=seconds)
            panels.append(_panel(X, found, way))
        caption = f"{name.capitalize()}: true classes and clusters that were found."
        yield Figure(f"clusters-{name}", caption, tuple(panels))
    X, y = sets["rings"]
    series: dict[str, list[float]] = {
        "projection, then k-means": [],
        "kernel k-means": [],
    }
    for gamma in GAMMAS:
        flat = GaussianProjection(gamma=gamma).fit_transform(X)
        plain = mercer.KMeans(2, random_state=run.seed, n_init=10)
        true = mercer.KernelKMeans(
            2, kernel="rbf", gamma=gamma, random_state=run.seed, n_init=10
        )
        series["projection, then k-means"].append(
            disagreement(plain.fit_predict(flat), y)
        )
        series["kernel k-means"].append(disagreement(true.fit_predict(X), y))
    drawn = {k: (GAMMAS, v) for k, v in series.items()}
    yield Figure(
        "clusters-gamma",
        "Rings: percentage of labels that differ from the true ones, against γ.",
        (curves_panel(drawn, "γ", "error, %"),),
    )
    flat = series["projection, then k-means"]
    good = [g for g, e in zip(GAMMAS, flat, strict=True) if e <= 5]
    yield Finding(
        "With the Gaussian projection the rings come apart from γ ≈ 7, and worse "
        "beyond 13.",
        bool(good) and 7 in good and 30 not in good,
        "Errors of the projection by γ: "
        + ", ".join(f"{g:g}: {e:.0f} %" for g, e in zip(GAMMAS, flat, strict=True))
        + ". The best γ depends on the scale of the rings.",
        "An error of at most 5 % counts as apart.",
    )


def _panel(X: NDArray, classes: NDArray, title: str) -> str:
    return plane_panel(
        EmbeddingDisplay.from_embedding,
        X,
        classes,
        prefix="coordinate",
        equal=True,
        title=title,
    )
