"""Gram matrices of small problems, put together from blocks where they are needed.

With many classes, a problem of two of them is small, and the matrix of all samples is
large.  The block of each class with itself is computed once and kept; that of two
classes serves the problems of this pair only, and lasts as long as they are solved.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mercer.core.rows import mirror
from mercer.engines.cpu.gram import Tiles, warm_up
from mercer.kernels.base import Kernel
from mercer.kernels.operand import Operand
from mercer.runtime.threads import Threads

__all__ = ["RUN_COLUMNS", "BlockGram"]

# Columns that are computed in one go.
RUN_COLUMNS = 2000

Choice = tuple[int, ...]  #: some of the blocks


class BlockGram:
    """The blocks of a Gram matrix, of classes with themselves and with each other."""

    def __init__(
        self,
        kernel: Kernel,
        operand: Operand,
        starts: Sequence[int],
        threads: Threads,
        at_once: int | None = None,
    ):
        """Compute the blocks of classes with themselves, ``at_once`` in threads."""
        self.dtype = operand.dtype
        self._operand = operand
        self._starts = list(starts)
        self._tile_of = Tiles(kernel)
        self._parts = [
            operand.rows(slice(first, stop)) for first, stop in pairwise(starts)
        ]
        self._local = threading.local()
        warm_up(kernel, operand)
        diag = kernel.diagonal(operand).astype(self.dtype)

        def own_block(b: int) -> NDArray:
            values = self._tile_of(self._parts[b], self._parts[b])
            block = np.empty(values.shape, dtype=self.dtype)
            mirror(values, block, 0, 0)
            np.fill_diagonal(block, diag[starts[b] : starts[b + 1]])
            return block

        self._own = threads.map(own_block, range(len(self._parts)), at_once=at_once)

    def runs(self, choices: Iterable[Choice]) -> list[list[Choice]]:
        """Part choices of blocks so that what is in one run is computed in one go.

        Such are pairs of one block with neighbouring others.
        """
        runs: list[list[Choice]] = []
        width = 0
        for choice in choices:
            last = runs[-1][-1] if runs else ()
            width += len(self._parts[choice[-1]])
            goes_on = (
                len(choice) == len(last) == 2
                and choice == (last[0], last[1] + 1)
                and width <= RUN_COLUMNS
            )
            if goes_on:
                runs[-1].append(choice)
            else:
                runs.append([choice])
                width = len(self._parts[choice[-1]])
        return runs

    def squares(self, run: list[Choice]) -> Iterator[tuple[Choice, NDArray]]:
        """Yield the matrices of a run; each lasts until the next."""
        if len(run[0]) != 2:
            yield run[0], self._square(run[0])
            return
        a = run[0][0]
        first, stop = self._starts[run[0][1]], self._starts[run[-1][1] + 1]
        values = self._tile_of(self._parts[a], self._operand.rows(slice(first, stop)))
        for choice in run:
            b = choice[1]
            begin, end = self._starts[b] - first, self._starts[b + 1] - first
            n_a, n_b = len(values), end - begin
            square = self._room(n_a + n_b)
            square[:n_a, :n_a] = self._own[a]
            square[n_a:, n_a:] = self._own[b]
            mirror(values[:, begin:end], square, 0, n_a)
            yield choice, square

    def _square(self, choice: Choice) -> NDArray:
        sizes = [len(self._parts[b]) for b in choice]
        at = np.concatenate([[0], np.cumsum(sizes)])
        square = self._room(int(at[-1]))
        for i, a in enumerate(choice):
            rows = slice(at[i], at[i + 1])
            square[rows, rows] = self._own[a]
            for j in range(i + 1, len(choice)):
                values = self._tile_of(self._parts[a], self._parts[choice[j]])
                mirror(values, square, at[i], at[j])
        return square

    def _room(self, n: int) -> NDArray:
        room = getattr(self._local, "room", None)
        if room is None or room.size < n * n:
            room = self._local.room = np.empty(n * n, dtype=self.dtype)
        return room[: n * n].reshape(n, n)
