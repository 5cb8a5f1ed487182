"""Images and tuned models of the study ``svm-from-scratch``."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import mercer
from mercer import SVC
from mercer.images import HOG, ToGrey
from mercer.kernels import RBF, Kernel, Linear, Polynomial, Sigmoid
from studies.choices import choose
from studies.data import Images
from studies.features import mean_distance, pixels
from studies.measures import Fitted, timed_fit
from studies.study import Run, shared
from studies.svm_from_scratch.protocol import GRIDS, KERNELS

__all__ = ["MAKERS", "combined_fit", "images", "mkl", "settings"]

# How each kernel is made from its tuned parameters.
MAKERS: dict[str, Callable[[dict[str, Any]], Kernel]] = {
    "linear": lambda s: Linear(),
    "polynomial": lambda s: Polynomial(s["degree"], s["gamma"], s["coef0"]),
    "Gaussian": lambda s: RBF(s["gamma"]),
    "sigmoid": lambda s: Sigmoid(s["gamma"], s["coef0"]),
}


@shared
def images(run: Run, name: str) -> Images:
    """Return features of 500 training and 100 test images of each class, or fewer."""
    if name == "mnist":
        n_train, n_test = run.pick((500, 100), (400, 100), (20, 10))
        data = run.data.balanced(n_train, n_test)
        return data._replace(X=pixels(data.X), X_test=pixels(data.X_test))
    data = run.data.cifar10
    if run.quick:
        data = Images(*(array[:: len(array) // 200] for array in data))
    if name == "cifar10":
        return data._replace(X=pixels(data.X), X_test=pixels(data.X_test))
    grey, hog = ToGrey(), HOG(8, 1, 9, "L2", interpolation=True)
    own = [hog.fit_transform(grey.fit_transform(X)) for X in (data.X, data.X_test)]
    return data._replace(X=own[0], X_test=own[1])


@shared
def settings(run: Run, kernel: str, name: str) -> dict[str, Any]:
    """Choose a kernel's parameters by three folds of the training images.

    γ is searched in units of 1 / mean |x − z|², which differs between the data sets.
    """
    data = images(run, name)
    unit = 1 / mean_distance(data.X)
    grid = dict(GRIDS[kernel])
    if "gamma" in grid:
        grid["gamma"] = [unit * g for g in grid["gamma"]]
    n = run.pick(3000, 2000, 200)
    rows = np.random.default_rng(run.seed).permutation(len(data.y))[:n]
    model = SVC(**KERNELS[kernel])
    choice = choose(model, grid, data.X[rows], data.y[rows], 3)
    return {**KERNELS[kernel], **choice.settings}


def mkl(run: Run, name: str, kernels: tuple[str, ...]) -> Any:
    """Return alignment MKL of the tuned kernels; each pair of classes has weights."""
    chosen = [settings(run, kernel, name) for kernel in kernels]
    made = [MAKERS[kernel](s) for kernel, s in zip(kernels, chosen, strict=True)]
    return mercer.MKLClassifier(
        made,
        method="alignment",
        C=settings(run, "Gaussian", name)["C"],
        multiclass="ovo",
        normalize=None,
        weights="per-task",
    )


@shared
def combined_fit(run: Run, name: str, kernels: tuple[str, ...]) -> Fitted:
    """Return alignment MKL of these kernels, fitted once for all tables."""
    data = images(run, name)
    return timed_fit(mkl(run, name, kernels), data.X, data.y)
