"""What a classifier that holds samples shows: attributes, decisions, its state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.engines.cpu.certificates import all_of, are_convex
from mercer.engines.cpu.held import STRIPS
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import MOST_STEPS
from mercer.engines.cpu.tiles import budget_bytes
from mercer.kernels.dot import Linear
from mercer.kernels.pair import squared_norms
from mercer.machines.base.machine import QUIET, UNBOUNDED
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.online.learning import Plan, products_with
from mercer.machines.online.members import HeldMachines
from mercer.multiclass.codes import (
    make_code,
)
from mercer.multiclass.decoding import (
    score_classes,
    votes_and_margins,
)
from mercer.runtime.arrays import as_dense, frozen

__all__ = ["HeldClassifier"]

# Most samples whose kernel values are computed at once.
CHUNK = 512
# What a held sample needs besides its kernel values, in bytes: its key, and numbers for
# each machine, of which there are two copies while a step is under way.
BYTES_OF_SAMPLE = 400
BYTES_OF_MEMBER = 120
# Strips of kernel values, and what a kernel computes on the way to them, as a part of
# the matrix.
SCRATCH = 4 / STRIPS


def _side_of_matrix(budget: int, itemsize: int, n_tasks: int) -> int:
    """Return how many samples a budget of bytes allows to hold."""
    square = (1.0 + SCRATCH) * itemsize
    linear = BYTES_OF_SAMPLE + BYTES_OF_MEMBER * n_tasks
    root = np.sqrt(linear**2 + 4.0 * square * budget)
    return int((root - linear) / (2.0 * square))


class HeldClassifier(StreamClassifier):
    """Base of :class:`OnlineSVC`: all but learning."""

    _held: HeldMachines

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_held")

    def _begin(self, X: Any) -> None:
        """Fix what the first samples decide."""
        kernel = self._bound_kernel(X)
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._n_calls = 0
        self.kernel_ = kernel
        self.code_ = make_code(self.multiclass, None, len(self.classes_))
        side = _side_of_matrix(
            budget_bytes(self.cache_size), X.dtype.itemsize, self.code_.shape[1]
        )
        self._chunk = int(np.clip(side // 4, 1, CHUNK))
        self._most = max(2, side - self._chunk)
        self.n_seen_ = 0
        self._held = HeldMachines.empty(kernel, X, self.code_, self._most + self._chunk)
        self._conclude()

    def _plan(self) -> Plan:
        return Plan(
            holds_all=self.method == "smo",
            tol=self.tol,
            max_iter=MOST_STEPS if self.max_iter < 0 else self.max_iter,
            n_reprocess=self.n_reprocess,
            selection=self.selection,
            n_candidates=self.n_candidates,
            fraction=self.fraction,
            adds_up=self.duplicates == "add",
            limit=self._most if self.budget is None else min(self.budget, self._most),
            side=self._most + self._chunk,
            chunk=self._chunk,
            n_jobs=self.n_jobs,
            classes=self.classes_,
        )

    def _random(self) -> np.random.Generator:
        """Return the random numbers of one call: the same ones after a resumption."""
        self._n_calls += 1
        return np.random.default_rng([self._seed, self._n_calls])

    def _costs(self, codes: NDArray, weight: NDArray) -> NDArray:
        return min(self.C, UNBOUNDED) * self.class_weight_[codes] * weight

    def _like_held(self, X: Any) -> Any:
        rows = self._held.gram.rows
        return self._like(X, sparse.issparse(rows.X), rows.dtype)

    @QUIET
    def _refuse_too_large(self, X: Any) -> None:
        """Refuse samples without finite kernel values: held, they would spoil all."""
        self._check_for_kernel(X)
        most = np.finfo(X.dtype).max / 4
        sizes = squared_norms(X), np.abs(self.kernel_.diagonal(Operand(X)))
        if all((size <= most).all() for size in sizes):
            return
        raise ValueError(
            "The kernel values are not finite: X has too large values; scale it. "
            "Nothing was learnt from these samples."
        )

    def _conclude(self) -> None:
        """Bring the intercepts up to date, after looking for overflow."""
        found = self._held.certificates()
        self.intercept_ = np.array([c.bias for c in found])
        if not np.isfinite([c.objective for c in found]).all():
            raise ValueError(
                "The dual coefficients or intercepts are not finite. The input data "
                "may contain large values and need to be preprocessed."
            )

    def _count_support(self) -> int:
        return int(self._held.coefficients().any(axis=0).sum())

    @property
    def samples_(self) -> Any:
        """The samples that are held."""
        check_is_fitted(self)
        return frozen(self._held.gram.rows.X.copy())

    @property
    def labels_(self) -> NDArray:
        """The classes of the samples that are held."""
        check_is_fitted(self)
        return self.classes_[self._held.label[: len(self._held)]]

    @property
    def support_(self) -> NDArray[np.int64]:
        """Which held samples are support vectors, class by class."""
        check_is_fitted(self)
        used = np.flatnonzero(self._held.coefficients().any(axis=0))
        return used[np.argsort(self._held.label[used], kind="stable")]

    @property
    def support_vectors_(self) -> Any:
        """The support vectors, class by class."""
        return frozen(self._held.gram.rows.X[self.support_])

    @property
    def n_support_(self) -> NDArray[np.int64]:
        """Number of support vectors of each class."""
        labels = self._held.label[self.support_]
        return np.bincount(labels, minlength=len(self.classes_))

    @property
    def dual_coef_(self) -> NDArray:
        """Coefficients of the support vectors, a row for each machine."""
        return frozen(self._held.coefficients()[:, self.support_])

    @property
    def coef_(self) -> NDArray:
        """Weights of the features, one row for each machine."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return frozen(as_dense(self._held.coefficients() @ self._held.gram.rows.X))

    @property
    def n_iter_(self) -> NDArray[np.int64]:
        """Steps that each machine has taken."""
        check_is_fitted(self)
        return self._held.n_steps.copy()

    def _certified(self, name: str) -> NDArray:
        check_is_fitted(self)
        return np.array([getattr(c, name) for c in self._held.certificates()])

    @property
    def objective_(self) -> NDArray:
        """The dual objective of each machine."""
        return self._certified("objective")

    def _convexity(self) -> list[bool | None]:
        check_is_fitted(self)
        held = self._held
        n, K = len(held), held.gram.matrix
        if not n:
            return [True] * held.n_tasks
        problems = [(held.problem(t), np.arange(n)) for t in range(held.n_tasks)]
        return are_convex(self.kernel_, lambda rows: K[np.ix_(rows, rows)], problems)

    @property
    def is_convex_(self) -> bool | None:
        """Whether the problems are convex: True, False, or None if it is not known."""
        return all_of(self._convexity())

    @property
    def dual_gap_(self) -> NDArray:
        """Primal minus dual objective of each machine; infinite where not convex."""
        is_bound = np.array([verdict is not False for verdict in self._convexity()])
        return np.where(is_bound, self._certified("dual_gap"), np.inf)

    @property
    def kkt_gap_(self) -> NDArray:
        """Largest violation of the optimality conditions in each machine."""
        return self._certified("kkt_gap")

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        X = self._validate_for_predict(X)
        held = self._held
        X = self._like(X, sparse.issparse(held.gram.rows.X))
        if isinstance(self.kernel_, Linear):
            values = as_dense(X @ self.coef_.T)
        else:
            values = products_with(held, X, self.n_jobs)
        values = values + self.intercept_
        if not np.isfinite(values).all():
            raise ValueError(
                "The decision values are not finite: X has too large values; scale it."
            )
        return values

    def decision_function(self, X: Any) -> NDArray:
        """Return the decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for the second. Otherwise a score for
            each class: the margin (one-vs-rest), or votes and margins (one-vs-one).
        """
        decisions = self._decisions(X)
        if decisions.shape[1] == 1:
            return decisions.ravel()
        if self.multiclass == "ovo":
            return votes_and_margins(decisions, self.code_)
        return decisions

    def predict(self, X: Any) -> NDArray:
        """Return the class of each sample; the model stays as it is.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        decisions = self._decisions(X)
        decode = "votes" if self.multiclass == "ovo" else "margin"
        return self.classes_[
            score_classes(decisions, self.code_, decode).argmax(axis=1)
        ]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_held" in state:
            state["_held"] = state["_held"].state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_held" in state:
            state["_held"] = HeldMachines.from_state(state["kernel_"], state["_held"])
        super().__setstate__(state)
