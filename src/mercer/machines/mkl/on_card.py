"""A store that keeps all base Gram matrices on a graphics card."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.solve import MOST_STEPS, SAFETY, Progress, Settings, TaskSpec
from mercer.engines.cuda.card import Card
from mercer.engines.cuda.operand import CardOperand
from mercer.engines.cuda.pair import parts, whole_gram
from mercer.engines.cuda.products import gather, product_with
from mercer.engines.cuda.whole import Member, PairSolver
from mercer.kernels.base import Kernel
from mercer.machines.mkl.grams import BaseGrams, Products, Solved
from mercer.runtime.threads import Threads

__all__ = ["GramsOnCard", "has_room"]

# Bytes of a part of a matrix that is brought into double precision at once.
PART_BYTES = 256 * 2**20


def has_room(n: int, n_kernels: int, itemsize: int, budget: int) -> bool:
    """Tell whether matrices, their sum, a part of each and scratch fit the card."""
    return (2 * n_kernels + 3) * n * n * itemsize <= budget


class GramsOnCard(BaseGrams):
    """A store that keeps all base matrices, and solves, on a card.

    Parameters
    ----------
    card : Card
    matrices : list of arrays on the card, each of shape (n, n)
    diagonals : array of shape (n_kernels, n)
        In the main memory.
    starts : list of int
        Where each block of samples begins, then the end.
    threads : Threads
    """

    def __init__(
        self,
        card: Card,
        matrices: list[Any],
        diagonals: NDArray,
        starts: list[int],
        threads: Threads,
    ):
        n_kernels, n = diagonals.shape
        super().__init__(n, n_kernels, starts, threads)
        self.card = card
        self.matrices = matrices
        self._diagonals = diagonals

    @classmethod
    def compute(
        cls,
        card: Card,
        kernels: Sequence[Kernel],
        X: Any,
        starts: list[int],
        threads: Threads,
    ) -> GramsOnCard:
        """Evaluate all kernels on samples that are in order."""
        with card.at_work():
            operand = CardOperand(card, X)
            matrices = [whole_gram(kernel, operand) for kernel in kernels]
            diagonals = np.stack([kernel.diagonal(operand.host) for kernel in kernels])
        return cls(card, matrices, diagonals, starts, threads)

    @property
    def is_double(self) -> bool:
        return all(matrix.dtype == np.float64 for matrix in self.matrices)

    def solve(
        self,
        weights: NDArray,
        specs: Sequence[TaskSpec],
        F: Products | None,
        settings: Settings,
        report: Progress | None,
    ) -> Solved:
        tasks = self.begin(weights, specs, F)
        goals = np.full(len(tasks), SAFETY * settings.tol)
        most = np.full(len(tasks), MOST_STEPS)
        members = [
            Member(task.problem, _rows_of(task), task.beta, task.f) for task in tasks
        ]

        def tell(steps: NDArray, gap: NDArray, goes_on: NDArray) -> None:
            for t, task in enumerate(tasks):
                task.n_iter, task.gap = int(steps[t]), float(max(gap[t], 0.0))
            if report is not None:
                report(tasks)

        with self.card.at_work():
            diag = (weights * self.factors) @ self._diagonals
            K = self._combined(weights)
            solver = PairSolver(self.card, K, diag, self.threads.stop)
            outcomes = solver.run(members, goals, most, tell)
            solver.polish(members, goals, most - outcomes.steps)
        for t, task in enumerate(tasks):
            task.n_iter = 0
            task.note(outcomes.of(t), goals[t])
        return self.certified(weights, tasks, settings.tol)

    def _combined(self, weights: NDArray) -> Any:
        """Return the weighted sum."""
        dtype = np.result_type(*(matrix.dtype for matrix in self.matrices))
        total = self.card.xp.zeros((self.n, self.n), dtype=dtype)
        for k in np.flatnonzero(weights > 0):
            factor = dtype.type(weights[k] * self.factors[k])
            for rows in parts(self.n, self.n * dtype.itemsize, PART_BYTES):
                total[rows] += self.matrices[k][rows] * factor
        return total

    def diagonals(self) -> NDArray:
        return self._diagonals

    def products(self, B: NDArray) -> NDArray:
        F = np.empty((self.n_kernels, self.n, B.shape[1]))
        with self.card.at_work():
            there = self.card.to_card(np.ascontiguousarray(B, dtype=np.float64))
            for k, matrix in enumerate(self.matrices):
                for rows in parts(self.n, 8 * self.n, PART_BYTES):
                    values = matrix[rows].astype(np.float64) @ there
                    F[k, rows] = self.factors[k] * self.card.to_host(values)
        return F

    def products_of(self, tasks: Sequence[Task]) -> Products:
        F = [np.empty((self.n_kernels, len(task.f))) for task in tasks]
        with self.card.at_work():
            for task, own in zip(tasks, F, strict=True):
                rows = _rows_of(task)
                by_row = np.bincount(task.problem.row, task.beta, len(task.f))
                for k, matrix in enumerate(self.matrices):
                    found = product_with(self.card, matrix, rows, by_row)
                    own[k] = self.factors[k] * found
        return F

    def squares(self, rows: NDArray) -> NDArray:
        with self.card.at_work():
            found = [self.card.to_host(part) for part in self._parts(rows)]
        return np.stack(
            [v * v.dtype.type(f) for v, f in zip(found, self.factors, strict=True)]
        )

    def _parts(self, rows: NDArray) -> list[Any]:
        """Return the submatrices of some samples on the card, without the factors."""
        return [gather(self.card, matrix, rows, rows) for matrix in self.matrices]

    def add_columns(
        self, task: Task, rows: NDArray, change: NDArray, F: NDArray
    ) -> None:
        own = _rows_of(task)
        weight = np.zeros(self.n)
        np.add.at(weight, rows, change)
        everything = np.arange(self.n)
        with self.card.at_work():
            for k, matrix in enumerate(self.matrices):
                found = product_with(self.card, matrix, everything, weight)
                F[k] += self.factors[k] * found[own]

    def restricted(self, rows: NDArray, starts: list[int]) -> BaseGrams:
        if len(rows) == self.n:
            return self
        with self.card.at_work():
            matrices = self._parts(rows)
        diagonals = self._diagonals[:, rows]
        store = GramsOnCard(self.card, matrices, diagonals, starts, self.threads)
        store.factors = self.factors
        return store

    def _strips(self, visit: Callable[[slice, NDArray], None]) -> None:
        for rows in self.strips(self.matrices[0].dtype.itemsize):
            with self.card.at_work():
                strips = [self.card.to_host(matrix[rows]) for matrix in self.matrices]
            pairs = zip(strips, self.factors, strict=True)
            visit(rows, np.stack([m * m.dtype.type(f) for m, f in pairs]))


def _rows_of(task: Task) -> NDArray[np.intp]:
    """Return the rows of the matrices that are the samples of a machine."""
    return task.gram_rows(np.arange(len(task.f)))
