"""A store that keeps all base Gram matrices in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from mercer.core.mkl import add_scaled
from mercer.core.smo import solve_and_polish
from mercer.core.tiles import add_rows, gather_square, ranges
from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import (
    MOST_STEPS,
    SAFETY,
    Progress,
    Settings,
    TaskSpec,
)
from mercer.engines.cpu.tiles import USUAL, WORKERS, Tiles, Tiling, divide
from mercer.kernels.base import Kernel
from mercer.machines.mkl.grams import BaseGrams, Products, Solved
from mercer.runtime.threads import Threads

__all__ = ["GramsInMemory"]

# Size of the tiles of a triangle; for more than four kernels they have fewer columns.
TILE_ROWS = 256
TILE_COLUMNS = 1024
# Number of rows of a matrix, and of columns of a product, in one job of a thread.
SUM_ROWS = 64
SPAN = 2048


class GramsInMemory(BaseGrams):
    """A store that keeps all base matrices in memory."""

    def __init__(self, matrices: list[NDArray], starts: list[int], threads: Threads):
        super().__init__(len(matrices[0]), len(matrices), starts, threads)
        self.matrices = matrices
        self._sum: NDArray | None = None

    @classmethod
    def compute(
        cls,
        kernels: Sequence[Kernel],
        operand: Operand,
        starts: list[int],
        threads: Threads,
        tiling: Tiling = USUAL,
    ) -> GramsInMemory:
        """Evaluate one triangle of all kernels, tile by tile, and mirror it."""
        n = len(operand)
        matrices = [np.empty((n, n), dtype=operand.dtype) for _ in kernels]
        width = TILE_COLUMNS * 4 // max(4, min(len(kernels), 32))
        tiles = Tiles(kernels, operand, threads, tiling)
        tiles.triangle(matrices, TILE_ROWS, width, even=False)
        for kernel, matrix in zip(kernels, matrices, strict=True):
            np.fill_diagonal(matrix, kernel.diagonal(operand))
        return cls(matrices, starts, threads)

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
        K = self.combined(weights)
        tol = SAFETY * settings.tol
        stop = self.threads.stop

        # Shrinking copies at most the rows and columns of half of the variables.
        most = max(len(task.beta) for task in tasks) ** 2 // 4 * K.dtype.itemsize
        total = len(tasks) * most if self.spare is None else max(0, self.spare)
        room = divide(total, most, min(len(tasks), WORKERS))

        def improve(task: Task) -> None:
            problem, where = task.problem, task.layout()
            outcome = solve_and_polish(
                K, where, problem, task.beta, task.f, tol, MOST_STEPS, stop, True,
                room.each,
            )  # fmt: skip
            task.note(outcome, tol)

        after_each = None if report is None else (lambda: report(tasks))
        self.threads.map(improve, tasks, after_each, room.at_once)
        return self.certified(weights, tasks, settings.tol)

    def combined(self, weights: NDArray) -> NDArray:
        """Return the weighted sum, in memory that the next sum overwrites."""
        if self._sum is None:
            dtype = np.result_type(*self.matrices)
            self._sum = np.empty((self.n, self.n), dtype=dtype)
        total = self._sum
        used = np.flatnonzero(weights > 0)
        factors = weights * self.factors

        def fill(rows: slice) -> None:
            if not len(used):
                total[rows] = 0
            for position, k in enumerate(used):
                source = self.matrices[k][rows]
                add_scaled(total[rows], source, float(factors[k]), position == 0)

        self.threads.map(fill, ranges(0, self.n, SUM_ROWS, even=False))
        return total

    def diagonals(self) -> NDArray:
        return np.stack([m.diagonal().astype(np.float64) for m in self.matrices])

    def products(self, B: NDArray) -> NDArray:
        F = np.zeros((self.n_kernels, B.shape[1], self.n))
        columns = [(np.flatnonzero(b), b[np.flatnonzero(b)]) for b in B.T]

        def fill(part: tuple[int, slice]) -> None:
            k, where = part
            matrix, factor = self.matrices[k], self.factors[k]
            for t, (rows, values) in enumerate(columns):
                add_rows(matrix, rows, factor * values, where.start, F[k, t, where])

        parts = ranges(0, self.n, SPAN, even=False)
        self.threads.map(fill, [(k, w) for k in range(self.n_kernels) for w in parts])
        return F.transpose(0, 2, 1)

    def products_of(self, tasks: Sequence[Task]) -> Products:
        F = [np.zeros((self.n_kernels, len(task.f))) for task in tasks]
        jobs = []
        for task, own in zip(tasks, F, strict=True):
            values = np.bincount(task.problem.row, task.beta, len(task.f))
            used = np.flatnonzero(values)
            rows = task.gram_rows(used)
            jobs += [
                (rows, values[used], k, column, own[k, part])
                for column, part in _spans(task)
                for k in range(self.n_kernels)
            ]

        def add(job: tuple[NDArray, NDArray, int, int, NDArray]) -> None:
            rows, values, k, column, f = job
            add_rows(self.matrices[k], rows, self.factors[k] * values, column, f)

        self.threads.map(add, jobs)
        return F

    def squares(self, rows: NDArray, out: NDArray | None = None) -> NDArray:
        shape = (self.n_kernels, len(rows), len(rows))
        squares = (
            np.empty(shape, np.result_type(*self.matrices)) if out is None else out
        )
        columns = rows.astype(np.uint64)

        def fill(part: tuple[int, slice]) -> None:
            k, where = part
            target = squares[k, where]
            gather_square(self.matrices[k], rows[where], columns, 0, target)
            if self.factors[k] != 1.0:
                target *= target.dtype.type(self.factors[k])

        parts = ranges(0, len(rows), SUM_ROWS, even=False)
        self.threads.map(fill, [(k, w) for k in range(self.n_kernels) for w in parts])
        return squares

    def add_columns(
        self, task: Task, rows: NDArray, change: NDArray, F: NDArray
    ) -> None:
        def fill(part: tuple[int, int, slice]) -> None:
            k, column, own = part
            add_rows(
                self.matrices[k], rows, self.factors[k] * change, column, F[k, own]
            )

        jobs = [(k, *span) for k in range(self.n_kernels) for span in _spans(task)]
        self.threads.map(fill, jobs)

    def memory_for(self, n: int) -> NDArray:
        """Return memory for a store of ``n`` samples and its weighted sum."""
        return np.empty((self.n_kernels + 1) * n * n, np.result_type(*self.matrices))

    def restricted(
        self, rows: NDArray, starts: list[int], memory: NDArray | None = None
    ) -> GramsInMemory:
        m = len(rows)
        if m == self.n:
            return self
        if memory is None:
            memory = self.memory_for(m)
        parts = memory[: (self.n_kernels + 1) * m * m].reshape(-1, m, m)
        self.squares(rows, parts[:-1])
        store = GramsInMemory(list(parts[:-1]), starts, self.threads)
        store._sum = parts[-1]
        if self.spare is not None:
            # While a part is solved, the weighted sum of all samples is not needed.
            own_sum = self.n * self.n * memory.dtype.itemsize
            store.spare = max(0, self.spare + own_sum - memory.nbytes)
        return store

    def _strips(self, visit: Callable[[slice, NDArray], None]) -> None:
        for rows in self.strips(np.result_type(*self.matrices).itemsize):
            parts = zip(self.matrices, self.factors, strict=True)
            visit(rows, np.stack([m[rows] * m.dtype.type(f) for m, f in parts]))


def _spans(task: Task) -> list[tuple[int, slice]]:
    """Return the parts of a machine's blocks as (first column, slice of its rows)."""
    return [
        (int(first) + part.start, slice(offset + part.start, offset + part.stop))
        for (first, last), offset in zip(
            task.columns, task.offsets[:-1].tolist(), strict=True
        )
        for part in ranges(0, int(last - first), SPAN, even=False)
    ]
