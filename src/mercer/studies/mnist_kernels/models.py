"""Images, features and machines of the study ``mnist-kernels``."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline

from mercer import SVC
from mercer.datasets import stratified_folds
from mercer.images import HOG, Rescale, Views
from mercer.studies.data import Images
from mercer.studies.measures import percent
from mercer.studies.mnist_kernels.protocol import C_MINUS, STEPS
from mercer.studies.study import Run

__all__ = ["cleaning", "cross_validate", "features", "images", "one_vs_rest"]


def images(run: Run) -> Images:
    """Return 500 images of each digit and the official test images, or fewer."""

    def make() -> Images:
        n_train, n_test = run.pick((500, 10_000), (400, 100), (20, 10))
        return run.data.balanced(n_train, n_test)

    return run.share("images", make)


def cleaning(clean: tuple[str, ...]) -> Pipeline:
    """Return a pipeline with these steps of the clean-up and the two views."""
    views = Views(raw=Rescale(), hog=HOG(4, 1, 9, "L2", interpolation=True))
    return make_pipeline(*(STEPS[name] for name in clean), views)


def features(run: Run, clean: tuple[str, ...]) -> tuple[Any, Any]:
    """Return training and test images after clean-up, as pixels and as HOG."""

    def make() -> tuple[Any, Any]:
        data, pipeline = images(run), cleaning(clean)
        return pipeline.fit_transform(data.X), pipeline.transform(data.X_test)

    return run.share(f"features {clean}", make)


def one_vs_rest(run: Run, beta: float, **more: Any) -> SVC:
    """Return the report's machine: C₊ = β C₋, decided by Platt's probabilities."""
    chosen = {"multiclass": "ovr", "decode": "platt", "positive_weight": beta, **more}
    return SVC(C=C_MINUS, kernel="precomputed", random_state=run.seed, **chosen)


def cross_validate(run: Run, model: Any, K: NDArray, y: NDArray) -> float:
    """Return Acc1: the accuracy by five folds of one Gram matrix."""
    found = np.empty_like(y)
    for train, test in stratified_folds(y, run.pick(5, 5, 2), random_state=run.seed):
        model.fit(K[np.ix_(train, train)], y[train])
        found[test] = model.predict(K[np.ix_(test, train)])
    return percent(found, y)
