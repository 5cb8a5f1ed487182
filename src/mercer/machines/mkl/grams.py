"""The interface of a store of base Gram matrices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import Solution
from mercer.core.tiles import ranges
from mercer.engines.cpu.certificates import to_solution
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.solve import Progress, Settings, TaskSpec
from mercer.engines.cpu.tiles import coefficient_matrix
from mercer.kernels.base import Kernel, Scaled, Sum
from mercer.machines.mkl.weights import Moments
from mercer.runtime.threads import Threads

__all__ = [
    "STRIP",
    "BaseGrams",
    "Products",
    "Solved",
    "by_sample",
    "tile_width",
    "weighted_sum",
]

# Number of rows that are computed or visited together.
STRIP = 128
# Largest number of values of one kernel in a tile; all kernels together have at most
# four times as many.
TILE_VALUES = 512 * 1024

#: For each machine ``K_k beta`` on its rows, shape (n_kernels, n_rows)
Products = list[NDArray]


class Solved(NamedTuple):
    """The solutions of all machines for some weights."""

    solutions: list[Solution]
    s: NDArray  #: beta' K_k beta, summed over the machines, shape (n_kernels,)
    F: Products | None  #: the products, if they are known


def by_sample(n: int, tasks: Sequence[Task]) -> NDArray:
    """Return the coefficients of machines by sample, shape (n, n_tasks)."""
    columns = [(task.gram_rows(task.problem.row), task.beta) for task in tasks]
    return coefficient_matrix(n, columns).toarray()


def weighted_sum(kernels: Sequence[Kernel], weights: NDArray) -> Kernel:
    """Return the weighted sum of kernels, without the kernels of weight 0."""
    total: Kernel | None = None
    for kernel, weight in zip(kernels, weights, strict=True):
        if weight > 0:
            # Factors are combined, so that a kernel is scaled only once.
            factor = float(weight)
            if isinstance(kernel, Scaled):
                kernel, factor = kernel.kernel, factor * kernel.factor
            part = kernel if factor == 1.0 else Scaled(kernel, factor)
            total = part if total is None else Sum(total, part)
    # If all weights are 0, the sum is a kernel that is zero everywhere.
    return Scaled(kernels[0], 0.0) if total is None else total


def tile_width(n_kernels: int) -> int:
    """Return the number of columns in a tile of one strip."""
    return max(STRIP, TILE_VALUES // STRIP * 4 // max(4, n_kernels))


class BaseGrams(ABC):
    """Base Gram matrices of samples that are ordered in blocks."""

    def __init__(self, n: int, n_kernels: int, starts: list[int], threads: Threads):
        self.n = n
        self.n_kernels = n_kernels
        self.starts = starts
        self.threads = threads
        #: factors by which the matrices are multiplied wherever they are used
        self.factors = np.ones(n_kernels)
        #: memory for copies of parts of the matrices; None for as much as they take
        self.spare: int | None = None

    def part_of_spare(self, part: int, most: int) -> int:
        """Return one part in so many of the memory for copies, up to ``most``."""
        return most if self.spare is None else max(0, min(most, self.spare // part))

    def strips(self, itemsize: int) -> list[slice]:
        """Cut the rows into strips that fit a quarter of the memory for copies."""
        row = self.n_kernels * self.n * itemsize
        most = max(1, self.part_of_spare(4, STRIP * row) // row)
        return ranges(0, self.n, most, even=False)

    @property
    @abstractmethod
    def is_double(self) -> bool:
        """Whether all values are in double precision."""

    @abstractmethod
    def solve(
        self,
        weights: NDArray,
        specs: Sequence[TaskSpec],
        F: Products | None,
        settings: Settings,
        report: Progress | None,
    ) -> Solved:
        """Solve machines with the weighted sum; ``F`` are the products at the start."""

    @abstractmethod
    def products(self, B: NDArray) -> NDArray:
        """Return ``K_k B`` in double precision, shape (n_kernels, n, n_columns)."""

    def products_of(self, tasks: Sequence[Task]) -> Products:
        """Return ``K_k beta`` of every machine on its own rows."""
        F = self.products(by_sample(self.n, tasks))
        rows = [task.gram_rows(np.arange(len(task.f))) for task in tasks]
        return [np.ascontiguousarray(F[:, own, t]) for t, own in enumerate(rows)]

    def begin(
        self, weights: NDArray, specs: Sequence[TaskSpec], F: Products | None
    ) -> list[Task]:
        """Return the tasks of machines, with their products with the weighted sum.

        ``F`` are the products with each matrix, if they are known.
        """
        tasks = [Task(spec.problem, spec.blocks, self.starts) for spec in specs]
        for task, own in zip(tasks, F or self.products_of(tasks), strict=True):
            task.f[:] = weights @ own
        return tasks

    def certified(self, weights: NDArray, tasks: Sequence[Task], tol: float) -> Solved:
        """Return the solutions of machines, with products computed anew."""
        F = self.products_of(tasks)
        s = np.zeros(self.n_kernels)
        for task, own in zip(tasks, F, strict=True):
            task.f[:] = weights @ own
            task.certificate = None
            s += own @ np.bincount(task.problem.row, task.beta, len(task.f))
        return Solved([to_solution(task, 0.0, tol) for task in tasks], s, F)

    @abstractmethod
    def squares(self, rows: NDArray) -> NDArray:
        """Return the submatrices ``K_k[rows, rows]`` of all kernels."""

    @abstractmethod
    def add_columns(
        self, task: Task, rows: NDArray, change: NDArray, F: NDArray
    ) -> None:
        """Add ``K_k[own, rows] change`` to ``F``; ``own`` are the rows of a machine."""

    @abstractmethod
    def restricted(self, rows: NDArray, starts: list[int]) -> BaseGrams:
        """Return the store of some samples."""

    @abstractmethod
    def diagonals(self) -> NDArray:
        """Return the diagonals without the factors, shape (n_kernels, n)."""

    @abstractmethod
    def _strips(self, visit: Callable[[slice, NDArray], None]) -> None:
        """Call ``visit(rows, K_k[rows] of all kernels)`` strip by strip."""

    def normalize(self, how: str | None) -> None:
        r"""Scale the matrices to a mean diagonal, or a variance, of 1.

        The variance is that of the samples in the feature space of the kernel,
        :math:`\frac1n \sum_i K_{ii} - \frac1{n^2} \sum_{ij} K_{ij}`. A matrix whose
        value is not positive is not scaled: the kernel is constant, or is not a kernel.
        """
        if how is None:
            return
        size = self.diagonals().mean(axis=1)
        least = 0.0
        if how == "variance":
            least = 1e-6 * np.abs(size)  # smaller variances may be rounding errors
            ones = np.full((self.n, 1), 1.0 / self.n)
            size = size - self.quadratic(ones)
        usable = np.isfinite(size) & (size > least)
        self.factors = np.where(usable, 1.0 / np.where(usable, size, 1.0), 1.0)

    def quadratic(self, B: NDArray) -> NDArray:
        """Return ``b_t^T K_k b_t`` summed over the columns, shape (n_kernels,)."""
        return np.einsum("knt,nt->k", self.products(B), B)

    def moments(self, Y: NDArray, centred: bool, joint: bool) -> Moments:
        """Return inner products of the matrices and ``Y Y^T``, centred if asked."""
        Y = Y - Y.mean(axis=0) if centred else Y
        target = self.quadratic(Y)
        shape = (self.n_kernels, self.n_kernels) if joint else (self.n_kernels,)
        gram = np.zeros(shape)
        sums = np.zeros((self.n_kernels, self.n))

        def visit(rows: slice, values: NDArray) -> None:
            sums[:, rows] = values.sum(axis=2, dtype=np.float64)
            flat = values.reshape(self.n_kernels, -1)
            if joint:
                np.add(gram, flat @ flat.T, out=gram)
            else:
                np.add(gram, [float(np.dot(v, v)) for v in flat], out=gram)

        self._strips(visit)
        if centred:
            # <HKH, HLH> = <K, L> - 2/n <K1, L1> + (1'K1)(1'L1)/n^2
            total = sums.sum(axis=1)
            inner = sums @ sums.T if joint else (sums * sums).sum(axis=1)
            outer = np.outer(total, total) if joint else total * total
            gram = gram - 2.0 / self.n * inner + outer / self.n**2
        return Moments(target, gram, float((Y.T @ Y).ravel() @ (Y.T @ Y).ravel()))
