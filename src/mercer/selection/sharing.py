"""Estimators that are fitted, and predict, on a Gram matrix that others use too.

A shared estimator is one of the library's, of a class derived from its own.  Its
``fit`` runs twice: the first time up to the problems that it wants solved, the second
time on from their solutions.  On the samples of its fold it then predicts from the
shared kernel values; on others as always.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import Solution
from mercer.engines.cpu.certificates import Values
from mercer.kernels.base import Kernel
from mercer.machines.base.machine import QUIET, UNBOUNDED, Tasks
from mercer.machines.nusvc import NuSVC
from mercer.machines.one_class import OneClassSVM
from mercer.machines.svc import SVC
from mercer.machines.svr import SVR, NuSVR
from mercer.runtime.scikit_learn import check_sample_weight
from mercer.selection.stored import SharedGram

__all__ = [
    "Fold",
    "Given",
    "decide",
    "shared_copy",
    "take_tasks",
    "unshared",
    "why_not",
]

# What is computed only when it is asked for.
LATER = ("support_", "support_vectors_", "n_support_", "dual_coef_")
MACHINES = (SVC, NuSVC, SVR, NuSVR, OneClassSVM)


@dataclass(eq=False)
class Fold:
    """One split of the samples, validated."""

    train: NDArray[np.intp]
    test: NDArray[np.intp]
    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any
    stretches: list[slice]  #: of all samples, such as the classes
    learnt: dict[str, Any]  #: what validation found out
    before: Any = None  #: the fitted steps before the machine
    classes: dict[str, Any] = field(default_factory=dict)  #: what targets come to
    tasks: dict[Any, Tasks] = field(default_factory=dict)  #: problems with C = 1
    convex: dict[Any, Any] = field(default_factory=dict)  #: whether problems are

    def part_of(self, X: Any) -> str:
        """Return which samples these are: "train", "test" or "" for others."""
        if X is self.X_test:
            return "test"
        return "train" if X is self.X_train else ""


@dataclass(eq=False)
class Given:
    """What a shared estimator is given."""

    fold: Fold
    kernel: Kernel
    tasks: Tasks | None = None
    noted: dict[str, Any] = field(default_factory=dict)  #: attributes set with tasks
    gram: SharedGram | None = None
    solutions: list[Solution] | None = None
    weights: Any = None  #: coefficients of all samples, (n, n_tasks)
    decisions: dict[str, NDArray] = field(default_factory=dict)  #: by part

    def keep_weights(self, tasks: Tasks, machines: list[Solution]) -> None:
        """Note the coefficients of the machines; of several problems, each step-th."""
        step = len(tasks.specs) // len(machines)
        matrix = self.gram.matrix  # type: ignore[union-attr]
        weights = np.zeros((len(matrix), len(machines)), dtype=matrix.dtype)
        for t, (spec, machine) in enumerate(
            zip(tasks.specs[::step], machines, strict=True)
        ):
            rows = self.fold.train[tasks.samples(spec)]
            row = spec.problem.row
            weights[rows, t] = np.bincount(row, machine.beta, len(rows))
        self.weights = weights

    def is_coarse(self, tol: float, is_exact: bool) -> bool:
        """Tell whether rounding in single precision could matter beside ``tol``."""
        matrix, weights = self.gram.matrix, self.weights  # type: ignore[union-attr]
        if matrix.dtype == np.float64 or is_exact:
            return False
        largest = np.abs(matrix.diagonal()).max()
        spread = np.linalg.norm(weights, axis=0).max(initial=0.0)
        return bool(np.finfo(np.float32).eps * largest * spread > 0.1 * tol)


def decide(many: list[Given], *, on_train: bool = False) -> None:
    """Compute decision values, but for the bias, of machines on the same fold."""
    gram, fold = many[0].gram, many[0].fold
    if gram is None:
        return
    values = gram.matrix[fold.train if on_train else fold.test]
    weights = np.hstack([given.weights for given in many])
    result = np.zeros((len(values), weights.shape[1]))
    for stretch in fold.stretches:
        part = weights[stretch]
        used = np.flatnonzero(part.any(axis=0))
        # Samples of the other parts have no weight.
        result[:, used] += values[:, stretch] @ part[:, used]
    ends = np.cumsum([given.weights.shape[1] for given in many])[:-1]
    for given, own in zip(many, np.split(result, ends, axis=1), strict=True):
        given.decisions["train" if on_train else "test"] = own


class _Paused(BaseException):
    """The problems are known; the rest of ``fit`` waits for their solutions.

    A fit that ends by an exception leaves no attributes behind, so the second half
    gets from :class:`Given` what the first has found.
    """


class _Shared:
    """What a shared estimator does in another way."""

    _given: Given | None = None
    classes_: Any
    class_weight_: Any

    def _is_given(self, X: Any) -> bool:
        return self._given is not None and X is self._given.fold.X_train

    def _validate(self, X: Any, y: Any) -> tuple[Any, Any]:
        if not self._is_given(X):
            return super()._validate(X, y)  # type: ignore[misc]
        vars(self).update(self._given.fold.learnt)  # type: ignore[union-attr]
        self.shape_fit_ = X.shape
        return X, y

    def _validate_targets(self, y: Any) -> NDArray[np.intp]:
        given = self._given
        if given is None or y is not given.fold.y_train:
            return super()._validate_targets(y)  # type: ignore[misc]
        known, key = given.fold.classes, repr(self.class_weight)
        if key not in known:
            codes = super()._validate_targets(y)  # type: ignore[misc]
            known[key] = codes, self.classes_, self.class_weight_
        codes, self.classes_, self.class_weight_ = known[key]
        return codes

    def _solve(
        self, X: Any, y: Any, targets: NDArray, sample_weight: Any
    ) -> tuple[Tasks, list[Solution]]:
        given = self._given
        if given is None or not self._is_given(X):
            return super()._solve(X, y, targets, sample_weight)  # type: ignore[misc]
        if given.solutions is None or given.tasks is None:
            weight = check_sample_weight(
                sample_weight, X, dtype=np.float64, allow_all_zero_weights=True
            )
            before = set(vars(self))
            given.tasks = self._tasks(targets, weight)
            given.noted = {k: v for k, v in vars(self).items() if k not in before}
            raise _Paused
        vars(self).update(given.noted)
        self.kernel_ = given.kernel
        matrix = given.gram.matrix  # type: ignore[union-attr]
        samples = given.fold.train[given.tasks.order]
        verdicts = self._convexity(
            given.tasks, lambda rows: matrix[np.ix_(samples[rows], samples[rows])]
        )
        solutions = self._judged(given.solutions, verdicts)
        self.converged_ = all(s.converged for s in given.solutions)
        self.fit_status_ = 0 if self.converged_ else 1
        if not self.converged_:
            self._warn(given.solutions, False)
        return given.tasks, solutions

    def _convexity(self, tasks: Tasks, values: Values) -> list[bool | None]:
        given = self._given
        if given is None or given.gram is None:
            return super()._convexity(tasks, values)  # type: ignore[misc]
        # Problems that differ in the size of their bounds only are alike in this.
        specs = [
            (s.blocks, (s.problem.hi > s.problem.lo).tobytes()) for s in tasks.specs
        ]
        known, key = given.fold.convex, (given.kernel.key(), *specs)
        if key not in known:
            known[key] = super()._convexity(tasks, values)  # type: ignore[misc]
        return known[key]

    def _tasks(self, y: Any, sample_weight: NDArray) -> Tasks:
        given = self._given
        if given is None or not isinstance(self, SVC) or self._is_calibrated():
            return super()._tasks(y, sample_weight)  # type: ignore[misc]
        # Problems that differ in C only differ in the scale of their bounds.
        weights = self.class_weight_.tobytes(), self._positive_weights().tobytes()
        key = (self.code_.shape, self.code_.tobytes(), *weights)
        known = given.fold.tasks
        if key not in known:
            self.C, C = 1.0, self.C
            try:
                known[key] = super()._tasks(y, sample_weight)  # type: ignore[misc]
            finally:
                self.C = C
        C = min(self.C, UNBOUNDED)
        specs = [
            spec._replace(
                problem=problem._replace(lo=C * problem.lo, hi=C * problem.hi)
            )
            for spec, problem in ((spec, spec.problem) for spec in known[key].specs)
        ]
        return known[key]._replace(specs=specs)

    def _keep_support(self, X: Any, *work: Any) -> None:
        """Keep the machines, the last argument; the rest when it is asked for."""
        given = self._given
        if given is None or not self._is_given(X):
            super()._keep_support(X, *work)  # type: ignore[misc]
            return
        machines = work[-1] if isinstance(work[-1], list) else [work[-1]]
        given.keep_weights(given.tasks, machines)  # type: ignore[arg-type]
        self.intercept_ = np.array([s.bias for s in machines])
        for name in LATER:
            vars(self).pop(name, None)
        self._work = (X, *work)

    def __getattr__(self, name: str) -> Any:
        """Find the support vectors when somebody asks for them."""
        if name in LATER and "_work" in vars(self):
            super()._keep_support(*vars(self).pop("_work"))  # type: ignore[misc]
            return getattr(self, name)
        raise AttributeError(
            f"{type(self).__name__!r} object has no attribute {name!r}"
        )

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        given, values = self._given, None
        if given is not None:
            check_is_fitted(self)
            values = given.decisions.get(given.fold.part_of(X))
        if values is None:
            return super()._decisions(X)  # type: ignore[misc]
        return values + self.intercept_


@cache
def _shared_class(kind: Any) -> Any:
    return type(kind.__name__, (_Shared, kind), {"__module__": kind.__module__})


def shared_copy(estimator: Any, given: Given) -> Any:
    """Return an unfitted estimator with the same parameters that is given its Gram."""
    own: Any = type(estimator)
    kind = _shared_class(own)
    shared = kind.__new__(kind)
    vars(shared).update(vars(estimator))
    shared._given = given
    return shared


def unshared(estimator: Any) -> Any:
    """Turn a shared estimator, once fitted, into a plain one."""
    _ = estimator.support_
    estimator.__class__ = type(estimator).__mro__[2]
    del estimator._given
    return estimator


def take_tasks(estimator: Any, sample_weight: Any) -> None:
    """Run the first half of ``fit``: up to the problems."""
    fold = estimator._given.fold
    # The second half must draw the same random numbers.
    random_state = deepcopy(estimator.random_state)
    try:
        estimator.fit(fold.X_train, fold.y_train, sample_weight)
    except _Paused:
        pass
    estimator.random_state = random_state


def not_shared(estimator: Any) -> str:
    """Say that an estimator is none of those that can share, and which can."""
    name = type(estimator).__name__
    if name in {kind.__name__ for kind in MACHINES}:
        module = type(estimator).__module__.split(".")[0]
        owner = "scikit-learn" if module == "sklearn" else module
        return (
            f"this {name} is the one of {owner}, and only Mercer's can share kernel "
            f"values. Use mercer.{name} instead"
        )
    known = [kind.__name__ for kind in MACHINES]
    return f"{name} is not an {', '.join(known[:-1])} or {known[-1]} of Mercer"


def why_not(estimator: Any) -> str | None:
    """Return why an estimator cannot share a Gram matrix, or None if it can."""
    if not isinstance(estimator, MACHINES):
        return not_shared(estimator)
    if estimator.solver not in ("auto", "smo"):
        return f"solver={estimator.solver!r} is to be used, and needs its own matrix"
    if estimator._is_function():
        return "the kernel is a function of all samples at once"
    if getattr(estimator, "_skl_callbacks", None):
        return "the estimator has callbacks, which watch its own fits"
    return None
