"""Peers for regression, novelty detection and sparse samples."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, r2_score

from benchmarks.peers import Intelex, Mercer, ScikitLearn

__all__ = ["PEERS"]


def _share_inside(y: NDArray, predicted: NDArray) -> float:
    return float(np.mean(predicted == 1))


SCORES = {
    "SVC": accuracy_score,
    "SVR": r2_score,
    "NuSVR": r2_score,
    "OneClassSVM": _share_inside,
}


class Chosen:
    """Takes the estimator and its parameters from the setting."""

    module: str
    setting: Any
    cache_mb: Any

    def model_with(self, **options: Any) -> Any:
        estimator = getattr(import_module(self.module), self.setting.estimator)
        return estimator(**self.setting.options, cache_size=self.cache_mb, **options)

    def score(self, y: NDArray, predicted: NDArray) -> float:
        """Return R² for regression, accuracy for classes, or the share of inliers."""
        return float(SCORES[self.setting.estimator](y, predicted))


class MercerChosen(Chosen, Mercer):
    """Mercer."""


class ScikitLearnChosen(Chosen, ScikitLearn):
    """scikit-learn."""


class IntelexChosen(Chosen, Intelex):
    """scikit-learn-intelex, whose OneClassSVM is scikit-learn's."""


PEERS = {
    "mercer": MercerChosen,
    "scikit-learn": ScikitLearnChosen,
    "scikit-learn-intelex": IntelexChosen,
}
