"""The libraries that are compared, each with the same few methods.

``prepare`` converts the data to the form that ``fit`` takes, and ``duals`` converts the
solution to the common layout.  Neither is part of the time of ``fit``.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, ClassVar
from unittest.mock import patch

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import Setting
from benchmarks.objective import Duals, by_pair

__all__ = ["PEERS", "Intelex", "Mercer", "ScikitLearn"]

# Mercer's decomposition is warmed up on at most this many classes, because many pairs
# of classes would take long.
MOST_CLASSES = 10


class ScikitLearn:
    """scikit-learn's SVC, and base class of peers with the same interface."""

    module = "sklearn.svm"
    options: ClassVar[Mapping[str, Any]] = {}  #: parameters not in the setting

    def __init__(self, setting: Setting, cache_mb: float | None):
        self.setting = setting
        self.cache_mb = cache_mb
        self.SVC = import_module(self.module).SVC

    def model_with(self, **options: Any) -> Any:
        options = {**self.options, **options}
        return self.SVC(**self.setting._asdict(), cache_size=self.cache_mb, **options)

    def warm_up(self, X: NDArray, y: NDArray) -> None:
        self.model_with().fit(X, y).predict(X)

    def prepare(self, X: NDArray, y: NDArray) -> Any:
        return X, y

    def fit(self, problem: Any) -> None:
        self.model = self.model_with().fit(*problem)

    def predict(self, X: NDArray) -> NDArray:
        return self.model.predict(X)

    @property
    def machines(self) -> list[Any]:
        """The fitted SVCs."""
        return [self.model]

    def count_support(self) -> int:
        return len(np.unique(np.concatenate([m.support_ for m in self.machines])))

    def duals(self, y: NDArray) -> Duals:
        support = np.asarray(self.model.support_, dtype=np.int64)
        n_classes = len(self.model.classes_)
        # With two classes the second is the positive one, unlike with more classes.
        order = (1, 0) if n_classes == 2 else tuple(range(n_classes))
        return Duals(support, by_pair(self.model.dual_coef_, y[support], order))


class Intelex(ScikitLearn):
    """scikit-learn-intelex, which uses oneDAL."""

    module = "sklearnex.svm"

    def fit(self, problem: Any) -> None:
        super().fit(problem)
        if not all(hasattr(m, "_onedal_estimator") for m in self.machines):
            raise RuntimeError("scikit-learn-intelex fell back to scikit-learn")


class Mercer(ScikitLearn):
    """Mercer; ``cache_mb=None`` is Mercer's default."""

    module = "mercer"

    def __init__(self, setting: Setting, cache_mb: float | None):
        super().__init__(setting, "auto" if cache_mb is None else cache_mb)
        self.Gram = import_module("mercer.engines.cpu.gram").WholeGram

    def warm_up(self, X: NDArray, y: NDArray) -> None:
        super().warm_up(X, y)
        # Large problems use shrinking or the decomposition, and hard problems double
        # precision. Compile that code too, for which a few classes are enough. So few
        # samples would be small work otherwise.
        few = y < MOST_CLASSES
        X, y = X[few], y[few]
        with (
            patch("mercer.core.smo.SHRINK_FROM", 0),
            patch("mercer.engines.cpu.small.MOST_SAMPLES", 0),
            patch("mercer.engines.cpu.small.MOST_VALUES", 0),
            patch("mercer.engines.cpu.class_pairs.MOST_SAMPLES", 0),
        ):
            for solver in ("auto", "decompose"):
                for dtype in (X.dtype, np.float64):
                    model = self.model_with(solver=solver)
                    model.fit(X.astype(dtype), y).predict(X.astype(dtype))

    def fit(self, problem: Any) -> None:
        with patch.object(self.Gram, "compute", wraps=self.Gram.compute) as compute:
            super().fit(problem)
        self.is_whole = compute.called  #: whether the whole matrix was in memory


class Libsvm:
    """LIBSVM, with its own Python interface."""

    KERNELS = ("linear", "poly", "rbf")

    def __init__(self, setting: Setting, cache_mb: float | None):
        self.api = import_module("libsvm.svmutil")
        self.options = (
            f"-s 0 -t {self.KERNELS.index(setting.kernel)} -c {setting.C!r} "
            f"-g {setting.gamma!r} -d {setting.degree} -r {setting.coef0!r} "
            f"-m {cache_mb:g} -q"
        )

    def warm_up(self, X: NDArray, y: NDArray) -> None:
        self.fit(self.prepare(X, y))
        self.predict(X)

    def prepare(self, X: NDArray, y: NDArray) -> Any:
        return self.api.svm_problem(y, X)

    def fit(self, problem: Any) -> None:
        self.model = self.api.svm_train(problem, self.options)

    def predict(self, X: NDArray) -> NDArray:
        return np.array(self.api.svm_predict([], X, self.model, "-q")[0], dtype=int)

    def count_support(self) -> int:
        return len(self.model.get_sv_indices())

    def duals(self, y: NDArray) -> Duals:
        support = np.array(self.model.get_sv_indices(), dtype=np.int64) - 1
        rows = np.array(self.model.get_sv_coef()).T
        return Duals(support, by_pair(rows, y[support], self.model.get_labels()))


PEERS = {
    "mercer": Mercer,
    "scikit-learn": ScikitLearn,
    "scikit-learn-intelex": Intelex,
    "libsvm": Libsvm,
}
