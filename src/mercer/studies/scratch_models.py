"""Images and tuned models of the study ``svm-from-scratch``."""

from __future__ import annotations

from typing import Any

import numpy as np

import mercer
from mercer import SVC
from mercer.images import HOG, ToGrey
from mercer.kernels import RBF, Linear, Polynomial, Sigmoid
from mercer.studies.data import Images
from mercer.studies.scratch_protocol import (
    GRIDS,
    KERNELS,
)
from mercer.studies.search import (
    choose,
    mean_distance,
    pixels,
)
from mercer.studies.study import Plan

__all__ = ["images", "mkl", "settings"]


def images(plan: Plan, name: str) -> Images:
    """Return rows of features: 500 and 100 of each class, or fewer."""

    def make() -> Images:
        if name == "mnist":
            n_train, n_test = plan.pick((500, 100), (400, 100), (20, 10))
            data = plan.data.balanced(n_train, n_test)
            return data._replace(X=pixels(data.X), X_test=pixels(data.X_test))
        data = plan.data.cifar10
        if plan.quick:
            data = Images(*(array[:: len(array) // 200] for array in data))
        if name == "cifar10":
            return data._replace(X=pixels(data.X), X_test=pixels(data.X_test))
        grey, hog = ToGrey(), HOG(8, 1, 9, "L2", interpolation=True)
        own = [hog.fit_transform(grey.fit_transform(X)) for X in (data.X, data.X_test)]
        return data._replace(X=own[0], X_test=own[1])

    return plan.share(f"images {name}", make)


def settings(plan: Plan, kernel: str, name: str) -> dict[str, Any]:
    """Choose a kernel's parameters by three folds of the training images.

    γ is searched in units of 1 / mean |x − z|², which differs between the data sets.
    """

    def make() -> dict[str, Any]:
        data = images(plan, name)
        unit = 1 / mean_distance(data.X)
        grid = dict(GRIDS[kernel])
        if "gamma" in grid:
            grid["gamma"] = [unit * g for g in grid["gamma"]]
        n = plan.pick(3000, 2000, 200)
        rows = np.random.default_rng(plan.seed).permutation(len(data.y))[:n]
        model = SVC(**KERNELS[kernel])
        choice = choose(model, grid, data.X[rows], data.y[rows], 3)
        return {**KERNELS[kernel], **choice.settings}

    return plan.share(f"settings {kernel} {name}", make)


def mkl(plan: Plan, name: str, kernels: tuple[str, ...]) -> Any:
    """Return alignment MKL of the tuned kernels, one-vs-one, a weight for each pair."""
    made = []
    for kernel in kernels:
        s = settings(plan, kernel, name)
        gamma = s.get("gamma")
        made.append(
            {
                "linear": lambda s=s, g=gamma: Linear(),
                "polynomial": lambda s=s, g=gamma: Polynomial(
                    s["degree"], g, s["coef0"]
                ),
                "Gaussian": lambda s=s, g=gamma: RBF(g),
                "sigmoid": lambda s=s, g=gamma: Sigmoid(g, s["coef0"]),
            }[kernel]()
        )
    return mercer.MKLClassifier(
        made,
        method="alignment",
        C=settings(plan, "Gaussian", name)["C"],
        multiclass="ovo",
        normalize=None,
        weights="per-task",
    )
