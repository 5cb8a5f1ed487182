"""PCA and kernel PCA in the study ``kernel-methods``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import make_pipeline

import mercer
from mercer.datasets import make_sheet
from mercer.images import GaussianProjection
from mercer.plots import EmbeddingDisplay
from studies.kernel_methods.protocol import DRAWN_GAMMAS, GAMMAS, KERNELS
from studies.measures import seconds_of, timed
from studies.panels import curves_panel, plane_panel, space_panel
from studies.results import Figure, Item, Row
from studies.study import Run, shared

__all__ = ["kernel_share", "measured", "pca_pictures", "pca_scaling", "share"]

RBF: dict[str, Any] = {"n_components": 2, "kernel": "rbf"}


def share(model: Any, n: int = 2) -> float:
    """Return the percentage of variance in the first components of a fitted model."""
    return 100.0 * float(np.sum(model.explained_variance_ratio_[:n]))


def kernel_share(model: Any, X: NDArray, n: int = 2) -> float:
    """Return that percentage for kernel PCA: eigenvalues over the centred trace."""
    kernel = mercer.gram_matrix(model.kernel_, X)
    trace = float(np.trace(kernel) - kernel.mean() * len(kernel))
    return 100.0 * float(np.sum(model.eigenvalues_[:n])) / trace


def pca_pictures(run: Run) -> Iterator[Item]:
    """Draw three dimensions in two: PCA, kernel PCA and the report's projection."""
    for n in (50, 500):
        X, _ = make_sheet(n, random_state=run.seed)
        colour = (X[:, 0] > np.median(X[:, 0])).astype(int)
        panels = [space_panel(X, colour, title=f"data, n = {n}, three dimensions")]
        ways = {
            f"PCA, {solver}": mercer.PCA(2, solver=solver) for solver in ("svd", "eigh")
        }
        ways |= {
            f"kernel PCA, {k}": mercer.KernelPCA(2, **v) for k, v in KERNELS.items()
        }
        for name, model in ways.items():
            seconds, Z = timed(model.fit_transform, X)
            kept = share(model) if "kernel" not in name else kernel_share(model, X)
            yield Row("pca", f"{name}, n = {n}", {"variance": kept}, seconds=seconds)
            panels.append(_panel(Z, colour, name))
        model = make_pipeline(GaussianProjection(gamma=1.0), mercer.PCA(2))
        seconds, Z = timed(model.fit_transform, X)
        label = "PCA after Gaussian projection"
        values = {"variance": share(model[-1])}
        yield Row("pca", f"{label}, n = {n}", values, seconds=seconds)
        panels.append(_panel(Z, colour, label))
        yield Figure(
            f"pca-{n}",
            f"{n} points near a plane in three dimensions, and drawn in two. The "
            "colours are the halves of the first coordinate.",
            tuple(panels),
            "pca",
        )
    X, _ = make_sheet(500, random_state=run.seed)
    colour = (X[:, 0] > np.median(X[:, 0])).astype(int)
    for name, title in (("projection", "projection"), ("kernel", "kernel PCA")):
        panels = []
        for gamma in DRAWN_GAMMAS:
            model = (
                make_pipeline(GaussianProjection(gamma=gamma), mercer.PCA(2))
                if name == "projection"
                else mercer.KernelPCA(2, kernel="rbf", gamma=gamma)
            )
            Z = model.fit_transform(X)
            panels.append(_panel(Z, colour, f"{title}, γ = {gamma:g}"))
        words = {
            "projection": "the report’s Gaussian projection and PCA",
            "kernel": "true kernel PCA with a Gaussian kernel",
        }
        caption = f"500 points near a plane by {words[name]}, for several γ."
        yield Figure(f"pca-gamma-{name}", caption, tuple(panels), "pca")


def _panel(Z: NDArray, colour: NDArray, title: str) -> str:
    return plane_panel(
        EmbeddingDisplay.from_embedding, Z, colour, equal=True, title=title
    )


class Measured(NamedTuple):
    """Times and shares of variance against n and against γ, by method."""

    sizes: tuple[int, ...]
    times: dict[str, list[float]]
    kept: dict[str, list[float]]
    time_by_gamma: dict[str, list[float]]
    by_gamma: dict[str, list[float]]


@shared
def measured(run: Run) -> Measured:
    """Measure PCA with ten features, with and without kernels."""
    sizes = run.pick(
        (20, 100, 200, 500, 1000, 2000), (20, 100, 200, 500, 1000, 2000), (20, 50, 100)
    )
    names = ("PCA", "Gaussian projection, PCA", "kernel PCA")
    times: dict[str, list[float]] = {name: [] for name in names}
    kept: dict[str, list[float]] = {name: [] for name in names}
    rng = np.random.default_rng(run.seed)
    for n in sizes:
        X = rng.normal(size=(n, 10))
        plain = (mercer.PCA(2), _pipeline(1.0), mercer.KernelPCA(**RBF, gamma=0.1))
        for name, model in zip(names, plain, strict=True):
            times[name].append(seconds_of(model.fit, X))
            kept[name].append(_share_of(model, X))
    X = rng.normal(size=(run.pick(500, 500, 60), 10))
    by_gamma: dict[str, list[float]] = {name: [] for name in names[1:]}
    time_by_gamma: dict[str, list[float]] = {name: [] for name in names[1:]}
    for gamma in GAMMAS:
        models = (_pipeline(gamma), mercer.KernelPCA(**RBF, gamma=gamma / 10))
        for name, model in zip(names[1:], models, strict=True):
            time_by_gamma[name].append(seconds_of(model.fit, X))
            by_gamma[name].append(_share_of(model, X))
    return Measured(sizes, times, kept, time_by_gamma, by_gamma)


def _pipeline(gamma: float) -> Any:
    """Return the report's method: its projection, then PCA."""
    return make_pipeline(GaussianProjection(gamma=gamma), mercer.PCA(2))


def _share_of(model: Any, X: NDArray) -> float:
    if isinstance(model, mercer.KernelPCA):
        return kernel_share(model, X)
    return share(getattr(model, "steps", [("", model)])[-1][1])


def pca_scaling(run: Run) -> Iterator[Item]:
    """Draw time and variance against n and against γ, with ten features."""
    sizes, times, kept, time_by_gamma, by_gamma = measured(run)
    over_n = {k: (sizes, v) for k, v in times.items()}
    kept_n = {k: (sizes, v) for k, v in kept.items()}
    over_g = {k: (GAMMAS, v) for k, v in time_by_gamma.items()}
    kept_g = {k: (GAMMAS, v) for k, v in by_gamma.items()}
    yield Figure(
        "pca-scaling",
        "Time and variance of two components of ten features, against n and γ (kernel "
        "PCA has γ/10, because its distances are sums over ten features). Times of the "
        "projection contain both steps.",
        (
            curves_panel(over_n, "n", "seconds", "Time", log_x=True, log_y=True),
            curves_panel(kept_n, "n", "variance, %", "Variance", log_x=True),
            curves_panel(over_g, "γ", "seconds", "Time", log_y=True),
            curves_panel(kept_g, "γ", "variance, %", "Variance"),
        ),
        "pca",
    )
