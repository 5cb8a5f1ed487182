"""A store that computes base Gram matrices whenever they are needed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cpu.decompose import Task
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.solve import Progress, Settings, TaskSpec, solve_many
from mercer.engines.cpu.tiles import Tiles, plan_tiles
from mercer.kernels.base import Kernel
from mercer.machines.mkl.grams import (
    STRIP,
    BaseGrams,
    Products,
    Solved,
    by_sample,
    tile_width,
    weighted_sum,
)
from mercer.runtime.threads import Threads

__all__ = ["GramsOnDemand"]


class GramsOnDemand(BaseGrams):
    """A store that keeps only the samples, and computes matrices when needed."""

    def __init__(
        self,
        kernels: Sequence[Kernel],
        operand: Operand,
        starts: list[int],
        threads: Threads,
        budget: int | None = None,
    ):
        """Hold the samples; tiles and strips keep to their part of the budget."""
        super().__init__(len(operand), len(kernels), starts, threads)
        self.kernels = list(kernels)
        self.operand = operand
        self.spare = budget
        self._tiling = plan_tiles(kernels, operand, budget, shared=True)

    @property
    def is_double(self) -> bool:
        return self.operand.dtype == np.float64

    def solve(
        self,
        weights: NDArray,
        specs: Sequence[TaskSpec],
        F: Products | None,
        settings: Settings,
        report: Progress | None,
    ) -> Solved:
        kernel = weighted_sum(self.kernels, weights * self.factors)
        solutions = solve_many(
            kernel, self.operand, self.starts, specs, settings, self.threads, report
        )
        tasks = [Task(spec.problem, spec.blocks, self.starts) for spec in specs]
        for task, solution in zip(tasks, solutions, strict=True):
            task.beta = solution.beta
        return Solved(solutions, self.quadratic(by_sample(self.n, tasks)), None)

    def _visit(self, left: Operand, right: Operand, visit: Callable[..., None]) -> None:
        """Call with rows, columns, kernel and block, all kernels of a tile together."""

        def scaled(rows: slice, columns: slice, k: int, values: NDArray) -> None:
            if self.factors[k] != 1.0:
                values = values * values.dtype.type(self.factors[k])
            visit(rows, columns, k, values)

        height, width = self._tiling.shape(STRIP, tile_width(self.n_kernels))
        tiles = Tiles(self.kernels, right, self.threads, self._tiling, shared=True)
        tiles.rectangle(left, scaled, height, width, even=False)

    def _times(self, left: Operand, rows: NDArray, B: NDArray) -> NDArray:
        """Return the products of ``K_k(left, samples[rows])`` with ``B``."""
        F = np.zeros((self.n_kernels, len(left), B.shape[1]))
        right = self.operand.rows(rows)
        weight = B.astype(self.operand.dtype)

        def visit(part: slice, where: slice, k: int, values: NDArray) -> None:
            F[k, part] += values @ weight[where]

        if len(rows):
            self._visit(left, right, visit)
        return F

    def diagonals(self) -> NDArray:
        return np.stack([kernel.diagonal(self.operand) for kernel in self.kernels])

    def products(self, B: NDArray) -> NDArray:
        used = np.flatnonzero(B.any(axis=1))
        return self._times(self.operand, used, B[used])

    def quadratic(self, B: NDArray) -> NDArray:
        used = np.flatnonzero(B.any(axis=1))
        F = self._times(self.operand.rows(used), used, B[used])
        return np.einsum("knt,nt->k", F, B[used])

    def squares(self, rows: NDArray) -> NDArray:
        part = self.operand.rows(rows)
        shape = (self.n_kernels, len(rows), len(rows))
        squares = np.empty(shape, dtype=self.operand.dtype)

        def visit(mine: slice, where: slice, k: int, values: NDArray) -> None:
            squares[k, mine, where] = values

        self._visit(part, part, visit)
        return squares

    def add_columns(
        self, task: Task, rows: NDArray, change: NDArray, F: NDArray
    ) -> None:
        own = task.gram_rows(np.arange(len(task.f)))
        left = self.operand if len(own) == self.n else self.operand.rows(own)
        F += self._times(left, rows, change[:, None])[:, :, 0]

    def restricted(self, rows: NDArray, starts: list[int]) -> BaseGrams:
        if len(rows) == self.n:
            return self
        part = Operand(self.operand.raw_rows(rows))
        store = GramsOnDemand(self.kernels, part, starts, self.threads, self.spare)
        store.factors = self.factors
        return store

    def _strips(self, visit: Callable[[slice, NDArray], None]) -> None:
        for rows in self.strips(self.operand.dtype.itemsize):
            shape = (self.n_kernels, rows.stop - rows.start, self.n)
            strip = np.empty(shape, dtype=self.operand.dtype)

            def keep(
                mine: slice, where: slice, k: int, values: NDArray, strip: Any = strip
            ) -> None:
                strip[k, mine, where] = values

            self._visit(self.operand.rows(rows), self.operand, keep)
            visit(rows, strip)
