"""What machines share that are one problem on all samples: regression and novelty."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils import assert_all_finite

from mercer.core.problem import DualProblem, Solution
from mercer.engines.cpu.coefficients import Weights, coefficient_matrix
from mercer.engines.cpu.solve import TaskSpec
from mercer.machines.base.machine import KernelMachine, Tasks

__all__ = ["SingleMachine"]


class SingleMachine(KernelMachine):
    """Base of the machines that are one problem."""

    @abstractmethod
    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        """Build the problem, with a weight for each sample."""

    def _fit(self, X: Any, y: Any, sample_weight: Any) -> Solution:
        X, y = self._validate(X, y)
        targets = np.zeros(X.shape[0]) if y is None else y.astype(np.float64)
        assert_all_finite(targets, input_name="y")
        tasks, (solution,) = self._solve(X, y, targets, sample_weight)
        self.n_iter_ = int(solution.n_iter)
        self.objective_ = solution.objective
        self.dual_gap_ = solution.dual_gap
        self.kkt_gap_ = solution.kkt_gap
        self._keep_support(X, tasks, solution)
        return solution

    def _tasks(self, y: NDArray, sample_weight: NDArray) -> Tasks:
        weight = np.maximum(sample_weight, 0.0)
        if not (weight > 0).any():
            raise ValueError(
                "Invalid input - all samples have zero or negative weights."
            )
        n = len(weight)
        spec = TaskSpec(self._problem(y, weight), (0,))
        return Tasks([spec], np.arange(n), [0, n])

    def _keep_support(self, X: Any, tasks: Tasks, solution: Solution) -> None:
        row = tasks.specs[0].problem.row
        weights = coefficient_matrix(X.shape[0], [(row, solution.beta)]).toarray()
        # A sample above and below the tube at once counts by the difference.
        self.support_ = np.flatnonzero(weights).astype(np.int32)
        if self._is_precomputed():
            self.support_vectors_ = np.empty((0, 0), dtype=X.dtype)
        else:
            self.support_vectors_ = X[self.support_]
        self.n_support_ = np.array([len(self.support_)], dtype=np.int32)
        self.dual_coef_ = weights[self.support_].T.copy()
        if sparse.issparse(X):
            self.dual_coef_ = sparse.csr_array(self.dual_coef_)
        self.intercept_ = np.array([solution.bias])

    def _weights(self) -> Weights:
        matrix = sparse.csr_array(self.dual_coef_.T)
        return Weights(matrix, [0, len(self.support_)])
