"""PCA, k-means, one-class and online machines, each beside its kernel form."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import confusion_matrix
from sklearn.pipeline import make_pipeline

import mercer
from mercer import SVC, SVDD, OneClassSVM
from mercer.datasets import make_clouds, make_moons, make_rings, make_sheet
from mercer.images import GaussianProjection
from mercer.studies import figures
from mercer.studies.methods_protocol import (
    GAMMAS,
    KERNELS,
    STATEMENT,
)
from mercer.studies.online_methods import online_steps
from mercer.studies.results import Figure, Finding, Item, Row
from mercer.studies.study import Plan, Step, Study

__all__ = ["STUDY"]


def seconds_of(work: Callable[..., Any], *arguments: Any, repeats: int = 3) -> float:
    """Return the least time of some runs; the first may compile."""
    taken = []
    for _ in range(repeats):
        started = time.perf_counter()
        work(*arguments)
        taken.append(time.perf_counter() - started)
    return min(taken)


def disagreement(found: NDArray, truth: NDArray) -> float:
    """Return the per cent of labels that differ, under the best of all renamings."""
    from scipy.optimize import linear_sum_assignment

    matrix = confusion_matrix(truth, found)
    rows, columns = linear_sum_assignment(-matrix)
    return 100.0 * (1 - matrix[rows, columns].sum() / len(truth))


def share(model: Any, n: int = 2) -> float:
    """Return the per cent of variance in the first components of a fitted model."""
    return 100.0 * float(np.sum(model.explained_variance_ratio_[:n]))


def kernel_share(model: Any, X: NDArray, n: int = 2) -> float:
    """Return the same for kernel PCA: eigenvalues over the centred kernel's trace."""
    kernel = mercer.gram_matrix(model.kernel_, X)
    trace = float(np.trace(kernel) - kernel.mean() * len(kernel))
    return 100.0 * float(np.sum(model.eigenvalues_[:n])) / trace


def pca_pictures(plan: Plan) -> Iterator[Item]:
    """Three dimensions shown in two: PCA both ways, kernel PCA, the projection."""
    for n in (50, 500):
        X, _ = make_sheet(n, random_state=plan.seed)
        colour = (X[:, 0] > np.median(X[:, 0])).astype(int)
        panels = [
            figures.scatter(X[:, :2], colour, f"data, n = {n}: first two of three axes")
        ]
        ways = {
            f"PCA, {solver}": mercer.PCA(2, solver=solver) for solver in ("svd", "eigh")
        }
        ways |= {
            f"kernel PCA, {k}": mercer.KernelPCA(2, **v) for k, v in KERNELS.items()
        }
        for name, model in ways.items():
            started = time.perf_counter()
            Z = model.fit_transform(X)
            seconds = time.perf_counter() - started
            kept = share(model) if "kernel" not in name else kernel_share(model, X)
            yield Row("pca", f"{name}, n = {n}", {"variance": kept}, seconds=seconds)
            panels.append(figures.scatter(Z, colour, name))
        flat = GaussianProjection(gamma=1.0).fit_transform(X)
        model = mercer.PCA(2).fit(flat)
        label = "PCA after the report's Gaussian projection"
        yield Row("pca", f"{label}, n = {n}", {"variance": share(model)})
        panels.append(figures.scatter(model.transform(flat), colour, label))
        yield Figure(
            f"pca-{n}",
            f"{n} points near a plane in space, in two dimensions.",
            tuple(panels),
        )


def pca_scaling(plan: Plan) -> Iterator[Item]:
    """Time and variance against n, and against γ, with ten features."""
    sizes = plan.pick(
        (100, 200, 500, 1000, 2000), (100, 200, 500, 1000, 2000), (50, 100)
    )
    names = ("PCA", "Gaussian projection, PCA", "kernel PCA")
    times: dict[str, list[float]] = {name: [] for name in names}
    kept: dict[str, list[float]] = {name: [] for name in names}
    rng = np.random.default_rng(plan.seed)
    for n in sizes:
        X = rng.normal(size=(n, 10))
        flat = GaussianProjection(gamma=1.0)
        linear, projected = mercer.PCA(2), mercer.PCA(2)
        kernel = mercer.KernelPCA(2, kernel="rbf", gamma=0.1)
        times["PCA"].append(seconds_of(linear.fit, X))
        times[names[1]].append(seconds_of(make_pipeline(flat, projected).fit, X))
        times["kernel PCA"].append(seconds_of(kernel.fit, X))
        kept["PCA"].append(share(linear))
        kept[names[1]].append(share(projected))
        kept["kernel PCA"].append(kernel_share(kernel, X))
    X = rng.normal(size=(plan.pick(500, 500, 60), 10))
    by_gamma: dict[str, list[float]] = {
        "Gaussian projection, PCA": [],
        "kernel PCA": [],
    }
    time_by_gamma: dict[str, list[float]] = {name: [] for name in by_gamma}
    for gamma in GAMMAS:
        flat = GaussianProjection(gamma=gamma).fit_transform(X)
        projected = mercer.PCA(2)
        kernel = mercer.KernelPCA(2, kernel="rbf", gamma=gamma / 10)
        time_by_gamma[names[1]].append(seconds_of(projected.fit, flat))
        time_by_gamma["kernel PCA"].append(seconds_of(kernel.fit, X))
        by_gamma[names[1]].append(share(projected))
        by_gamma["kernel PCA"].append(kernel_share(kernel, X))
    over_n = {k: (sizes, v) for k, v in times.items()}
    kept_n = {k: (sizes, v) for k, v in kept.items()}
    over_g = {k: (GAMMAS, v) for k, v in time_by_gamma.items()}
    kept_g = {k: (GAMMAS, v) for k, v in by_gamma.items()}
    yield Figure(
        "pca-scaling",
        "Ten features, two components: time and variance against n and γ (for kernel "
        "PCA γ/10, as its distances add up ten features).",
        (
            figures.lines(over_n, "n", "seconds", "Time", log_x=True, log_y=True),
            figures.lines(kept_n, "n", "variance, %", "Variance", log_x=True),
            figures.lines(over_g, "γ", "seconds", "Time", log_y=True),
            figures.lines(kept_g, "γ", "variance, %", "Variance"),
        ),
    )
    yield Finding(
        "The computing time of PCA with and without kernels is of the same order.",
        times["kernel PCA"][-1] < 10 * times["PCA"][-1],
        f"That is so of the report's pointwise projection; true kernel PCA needs the "
        f"n × n matrix: at n = {sizes[-1]:,} it takes {times['kernel PCA'][-1]:.3f} s, "
        f"PCA {times['PCA'][-1]:.4f} s.",
        "Less than ten times as long counts as the same order.",
    )


def clusters(plan: Plan) -> Iterator[Item]:
    """k-means and kernel k-means on blobs and rings; error against γ."""
    n = plan.pick(300, 300, 100)
    sets = {
        "blobs": make_clouds(n, n_classes=3, separation=6.0, random_state=plan.seed),
        "rings": make_rings(n, random_state=plan.seed),
    }
    for name, (X, y) in sets.items():
        k = len(np.unique(y))
        flat = GaussianProjection(gamma=7.0).fit_transform(X)
        seed: dict[str, Any] = {"random_state": plan.seed, "n_init": 10}
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
        panels = [figures.scatter(X, y, f"{name}, as made")]
        for way, (model, data) in ways.items():
            started = time.perf_counter()
            found = model.fit_predict(data)
            seconds = time.perf_counter() - started
            values = {"error": disagreement(found, y)}
            yield Row("clusters", f"{name}: {way}", values, seconds=seconds)
            panels.append(figures.scatter(X, found, way))
        caption = f"{name.capitalize()}: clusters found, up to their names."
        yield Figure(f"clusters-{name}", caption, tuple(panels))
    X, y = sets["rings"]
    series: dict[str, list[float]] = {
        "projection, then k-means": [],
        "kernel k-means": [],
    }
    for gamma in GAMMAS:
        flat = GaussianProjection(gamma=gamma).fit_transform(X)
        plain = mercer.KMeans(2, random_state=plan.seed, n_init=10)
        true = mercer.KernelKMeans(
            2, kernel="rbf", gamma=gamma, random_state=plan.seed, n_init=10
        )
        series["projection, then k-means"].append(
            disagreement(plain.fit_predict(flat), y)
        )
        series["kernel k-means"].append(disagreement(true.fit_predict(X), y))
    drawn = {k: (GAMMAS, v) for k, v in series.items()}
    yield Figure(
        "clusters-gamma",
        "Rings: labels that differ from the true ones, up to names, against γ.",
        (figures.lines(drawn, "γ", "error, %"),),
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
        "Up to 5 % counts as apart.",
    )


def balls(plan: Plan) -> Iterator[Item]:
    """SVDD hard and soft, thresholds, one-class SVM, then a two-class machine."""
    X, y = make_moons(plan.pick(200, 200, 80), noise=0.12, random_state=plan.seed)
    own, n = X[y == 0], int((y == 0).sum())
    gamma = 1.5
    hard = SVDD(kernel="rbf", gamma=gamma)
    soft = SVDD(kernel="rbf", gamma=gamma, C=1 / (0.1 * n))
    wide = SVDD(kernel="rbf", gamma=gamma, C=1 / (0.1 * n), offset=0.02)
    narrow = SVDD(kernel="rbf", gamma=gamma, C=1 / (0.1 * n), offset=-0.02)
    single = OneClassSVM(kernel="rbf", gamma=gamma, nu=0.1)
    ways = {
        "SVDD, hard": hard,
        "SVDD, soft": soft,
        "SVDD, soft, wider": wide,
        "SVDD, soft, narrower": narrow,
        "one-class SVM": single,
    }
    panels = []
    for name, model in ways.items():
        started = time.perf_counter()
        model.fit(own)
        seconds = time.perf_counter() - started
        # Boundary points are on the boundary, to the tolerance.
        inside = model.decision_function(X) >= -model.tol
        yield Row(
            "balls",
            name,
            _caught(inside, y == 0),
            seconds=seconds,
            gap=float(model.dual_gap_),
        )
        edge = model.boundary_ if isinstance(model, SVDD) else model.support_
        marked = np.flatnonzero(y == 0)[edge]
        panels.append(figures.plane(X, y, model.decision_function, name, marked=marked))
    machine = SVC(kernel="rbf", gamma=gamma).fit(X, y == 0)
    values = _caught(machine.predict(X), y == 0)
    yield Row("balls", "two-class SVM", values, gap=float(np.sum(machine.dual_gap_)))
    panels.append(figures.plane(X, y, machine.decision_function, "two-class SVM"))
    yield Figure(
        "balls",
        "One class enclosed (blue), boundary points ringed; the last panel is told of "
        "both classes.",
        tuple(panels),
    )


def _caught(inside: NDArray, own: NDArray) -> dict[str, float]:
    """Return precision and recall of the class that is enclosed, in per cent."""
    right = float((inside & own).sum())
    return {
        "precision": 100 * right / max(inside.sum(), 1),
        "recall": 100 * right / own.sum(),
    }


def steps(plan: Plan) -> list[Step]:
    """Return the steps of the study."""
    return [
        Step("PCA in pictures", pca_pictures),
        Step("PCA against n and γ", pca_scaling),
        Step("k-means", clusters),
        Step("one-class machines", balls),
        *online_steps(),
    ]


STUDY = Study(**STATEMENT, steps=steps)
