"""k-means and kernel k-means in the study ``kernel-methods``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import Pipeline, make_pipeline

import mercer
from mercer.datasets import make_clouds, make_rings
from mercer.images import GaussianProjection
from mercer.plots import EmbeddingDisplay
from studies.kernel_methods.protocol import DRAWN_GAMMAS, GAMMAS
from studies.measures import timed
from studies.panels import curves_panel, plane_panel
from studies.results import Figure, Item, Row
from studies.study import Run

__all__ = ["GAMMA", "clusters", "data_sets", "disagreement", "gammas"]

# The γ from which the report finds the rings apart.
GAMMA = 7.0


def matched(found: NDArray, truth: NDArray) -> NDArray:
    """Rename clusters so that they agree with the true classes as well as they can.

    >>> matched(np.array([1, 1, 0]), np.array([0, 0, 1])).tolist()
    [0, 0, 1]
    """
    matrix = confusion_matrix(truth, found)
    classes, clusters = linear_sum_assignment(-matrix)
    names = np.empty(len(matrix), dtype=int)
    names[clusters] = classes
    return names[found]


def disagreement(found: NDArray, truth: NDArray) -> float:
    """Return the percentage of labels that differ after the best renaming."""
    return 100.0 * float(np.mean(matched(found, truth) != truth))


def clusters(run: Run) -> Iterator[Item]:
    """Compare k-means and kernel k-means on blobs and on rings."""
    for name, (X, y) in data_sets(run).items():
        k = len(np.unique(y))
        seed: dict[str, Any] = {"random_state": run.seed, "n_init": 10}
        random: dict[str, Any] = {"init": "random", **seed}
        gaussian: dict[str, Any] = {"kernel": "rbf", **seed}
        projection = GaussianProjection(gamma=GAMMA)
        models: list[Any] = [
            mercer.KMeans(k, **random),
            make_pipeline(projection, mercer.KMeans(k, **random)),
            mercer.KernelKMeans(k, gamma=GAMMA, **gaussian),
            mercer.KernelKMeans(k, gamma="tune", **gaussian),
        ]
        panels = [_panel(X, y, f"{name}, true classes")]
        for model in models:
            seconds, found = timed(model.fit_predict, X)
            way = words_of(model)
            values = {"error": disagreement(found, y)}
            yield Row("clusters", f"{name}: {way}", values, len(y), seconds=seconds)
            panels.append(_panel(X, matched(found, y), way))
        caption = (
            f"{name.capitalize()}: the true classes, and the clusters that were found, "
            "in the colours of the classes that they match best."
        )
        yield Figure(f"clusters-{name}", caption, tuple(panels), "clusters")


def words_of(model: Any) -> str:
    """Return what a fitted clustering did, from its own parameters.

    >>> words_of(mercer.KMeans(2))
    'k-means'
    """
    if isinstance(model, Pipeline):
        return f"projection (γ = {model[0].gamma:g}), then {words_of(model[-1])}"
    if isinstance(model, mercer.KernelKMeans):
        tuned = ", tuned" if model.gamma == "tune" else ""
        return f"kernel k-means (γ = {model.gamma_:.3g}{tuned})"
    return "k-means"


def data_sets(run: Run) -> dict[str, tuple[NDArray, NDArray]]:
    """Return three blobs and two rings, with their classes."""
    n = run.pick(300, 300, 100)
    return {
        "blobs": make_clouds(n, n_classes=3, separation=6.0, random_state=run.seed),
        "rings": make_rings(n, random_state=run.seed),
    }


def gammas(run: Run) -> Iterator[Item]:
    """Measure the error on the rings against γ, and draw some of the clusterings."""
    X, y = data_sets(run)["rings"]
    series: dict[str, list[float]] = {
        "projection, then k-means": [],
        "kernel k-means": [],
    }
    pictures: dict[str, list[str]] = {"original": [], "projected": [], "kernel": []}
    for gamma in GAMMAS:
        flat = GaussianProjection(gamma=gamma).fit_transform(X)
        plain = mercer.KMeans(2, init="random", random_state=run.seed, n_init=10)
        true = mercer.KernelKMeans(
            2, kernel="rbf", gamma=gamma, random_state=run.seed, n_init=10
        )
        by_plain, by_true = plain.fit_predict(flat), true.fit_predict(X)
        series["projection, then k-means"].append(disagreement(by_plain, y))
        series["kernel k-means"].append(disagreement(by_true, y))
        if gamma in DRAWN_GAMMAS:
            title = f"γ = {gamma:g}"
            found = matched(by_plain, y)
            pictures["original"].append(_panel(X, found, f"projection, {title}"))
            pictures["projected"].append(_panel(flat, found, f"as projected, {title}"))
            pictures["kernel"].append(
                _panel(X, matched(by_true, y), f"kernel k-means, {title}")
            )
    drawn = {k: (GAMMAS, v) for k, v in series.items()}
    yield Figure(
        "clusters-gamma",
        "Rings: percentage of labels that differ from the true ones, against γ.",
        (curves_panel(drawn, "γ", "error, %"),),
        "clusters",
    )
    captions = {
        "original": "k-means after the Gaussian projection, for several γ.",
        "projected": "the same clusters in the coordinates of the projection.",
        "kernel": "true kernel k-means, for several γ.",
    }
    for name, panels in pictures.items():
        caption = f"Rings: {captions[name]}"
        yield Figure(f"clusters-gamma-{name}", caption, tuple(panels), "clusters")


def _panel(X: NDArray, classes: NDArray, title: str) -> str:
    return plane_panel(
        EmbeddingDisplay.from_embedding,
        X,
        classes,
        prefix="coordinate",
        equal=True,
        title=title,
    )
