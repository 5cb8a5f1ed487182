"""Kernel values by a team of threads that run no Python between tiles.

This is a faster way to the same values as :mod:`mercer.engines.cpu.tiles`, for kernels
whose formula is known, on dense samples.  It does not know where it is not faster:
:func:`sides_of` returns None where kernels have to be asked tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.formula_tiles import (
    COLUMNS,
    ROWS,
    Formula,
    Left,
    Right,
    Room,
    apply_formula,
    fill_formula_rows,
    fill_formula_triangle,
)
from mercer.core.strips import GROUP, width
from mercer.core.tiles import ranges
from mercer.engines.cpu.formula import Notes, noted
from mercer.engines.cpu.pair import Operand, scratch_of_thread
from mercer.engines.cpu.zeros import MostlyZeros
from mercer.kernels.base import Kernel

__all__ = [
    "Sides",
    "Stretch",
    "Team",
    "apply_sides",
    "fill_rows",
    "fill_triangle",
    "sides_of",
]

# Jobs are cut so that there are this many: several for each of many threads.  None has
# fewer columns than this, because its rows are brought into the frame only for it.
JOBS = 96
LEAST_COLUMNS = 512
# Rows of a job, where there are few.  Sums over features bring their columns into
# another order for each job, so that more rows have to share that work.
LEAST_ROWS = 32
LEAST_ROWS_OF_SUMS = 64
# For fewer values threads hardly matter, and the code need not be compiled.
LEAST_VALUES = 500_000

#: calls a function in several threads at once, but in no more than there are jobs
Team = Callable[[Callable[[], None], int], None]


class Sides(NamedTuple):
    """A formula and both sides of its values, ready for compiled code."""

    formula: Formula
    left: Left
    right: Right
    over_features: int | None  #: 1 if the formula has sums over features

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the values."""
        return self.right.norms.dtype

    @property
    def n_columns(self) -> int:
        """The number of rows of the right-hand side."""
        return max(len(self.right.plain), len(self.right.norms))

    def some_rows(self, index: NDArray) -> Sides:
        """Return the same with some rows of the left-hand side, in any order."""
        left = self.left
        chosen = left._replace(
            rows=left.rows[index], factors=np.ascontiguousarray(left.factors[:, index])
        )
        return self._replace(left=chosen)

    def room(self, wide: int, n_sums: int = 0) -> Room:
        """Return scratch memory of the calling thread."""
        scratch = scratch_of_thread()
        d = len(self.left.active)
        plain = self.left.X.shape[1] if len(self.right.plain) else 0

        def some(count: int, dtype: Any) -> NDArray:
            return scratch.empty((1, count), dtype)[0]

        return Room(
            some(self.formula.n_registers * ROWS * wide, self.dtype),
            some(ROWS * d + GROUP, self.dtype),
            some(ROWS // GROUP * d + 1, np.uint16),
            some(ROWS * plain, self.dtype),
            some(ROWS * n_sums, self.dtype),
        )


def sides_of(kernel: Kernel, left: Operand, right: Operand) -> Sides | None:
    """Return both sides, or None if compiled code cannot compute the values alone."""
    if len(left) * len(right) < LEAST_VALUES:
        return None
    found = noted(kernel, left, right)
    if found is None:
        return None
    formula, notes, sums = found
    return Sides(formula, _left_side(notes), _right_side(notes), 1 if sums else None)


def _left_side(notes: Notes) -> Left:
    X, order = notes.left.stored()
    frame, dtype = notes.frame, notes.dtype
    rows = np.arange(len(X)) if order is None else order
    center, active = np.empty(0, dtype=dtype), np.empty(0, dtype=np.int64)
    if frame is not None:
        assert frame.active is not None
        active = frame.active
        if frame.center is not None:
            center = frame.center
    return Left(X, rows, center, active, _stacked(notes.row_factors, notes.left))


def _right_side(notes: Notes) -> Right:
    dtype = notes.dtype
    plain = matrix = np.empty((0, 0), dtype=dtype)
    strips = np.empty((0, 1, width(dtype)), dtype=dtype)
    norms = np.empty(0, dtype=dtype)
    if notes.needs_plain:
        plain = notes.right.X
    if notes.frame is not None:
        matrix, norms = notes.right.framed(notes.frame)
        if isinstance(matrix, MostlyZeros):
            strips = matrix.strips()
            matrix = np.empty((0, 0), dtype=dtype)
    return Right(
        plain, matrix, strips, norms, _stacked(notes.column_factors, notes.right)
    )


def _stacked(factors: list[NDArray], side: Operand) -> NDArray:
    return np.array(factors, dtype=side.dtype).reshape(len(factors), len(side))


def _together(team: Team, jobs: NDArray, work: Callable[[NDArray], None]) -> None:
    """Let a team do all jobs; ``work`` is given the counter that its threads share."""
    counter = np.zeros(1, dtype=np.int64)
    try:
        team(lambda: work(counter), len(jobs))
    except BaseException:
        counter[0] = len(jobs)  # threads that are still at work find no more jobs
        raise


def _wide(sides: Sides, values: int) -> int:
    """Return how many columns tiles have, if all registers have so many values."""
    return int(np.clip(values // (ROWS * sides.formula.n_registers), 1, COLUMNS))


class Stretch(NamedTuple):
    """Rows that are missing in one store, and where they go."""

    rows: NDArray  #: row numbers of the left-hand side
    slots: NDArray  #: their places in the store
    first: int  #: the first column of the store
    stop: int  #: the end of its columns
    start: int  #: where it begins in the pool


def fill_rows(
    sides: Sides, stretches: Sequence[Stretch], pool: NDArray, team: Team, values: int
) -> None:
    """Compute rows and put them into stores, with tiles of at most ``values``."""
    total = sum(len(s.rows) * (s.stop - s.first) for s in stretches)
    jobs, done = [], 0
    for s in stretches:
        n = len(s.rows)
        for part in ranges(0, n, ROWS):
            share = total // (JOBS * (part.stop - part.start))
            # Strips begin at multiples of their width.
            columns = max(LEAST_COLUMNS, -(-share // 64) * 64)
            cuts = [s.first, *range(-(-s.first // 64) * 64 + columns, s.stop, columns)]
            jobs += [
                (done + part.start, done + part.stop, a, b, s.start, s.stop - s.first,
                 s.first)
                for a, b in zip(cuts, [*cuts[1:], s.stop], strict=True)
            ]  # fmt: skip
        done += n
    if not jobs:
        return
    rows = np.concatenate([s.rows for s in stretches])
    slots = np.concatenate([s.slots for s in stretches])
    chosen = sides.some_rows(rows)
    table, wide = np.array(jobs), _wide(sides, values)
    _together(
        team,
        table,
        lambda counter: fill_formula_rows(
            counter, table, *chosen, slots, pool, wide, sides.room(wide)
        ),
    )


def fill_triangle(sides: Sides, matrix: NDArray, team: Team, values: int) -> None:
    """Fill the symmetric matrix of samples with themselves."""
    n = len(matrix)
    share = n * n // (2 * JOBS * ROWS)
    columns = int(np.clip(-(-share // 64) * 64, LEAST_COLUMNS, COLUMNS))
    jobs = [
        (rows.start, rows.stop, part.start, part.stop)
        for rows in ranges(0, n, ROWS, even=False)
        for part in ranges(rows.start, n, columns, even=False)
    ]
    table, wide = np.array(jobs), _wide(sides, values)
    _together(
        team,
        table,
        lambda counter: fill_formula_triangle(
            counter, table, *sides, matrix, wide, sides.room(wide)
        ),
    )


def apply_sides(
    sides: Sides,
    parts: Callable[[slice], list[tuple[slice, NDArray, NDArray]]],
    n_tasks: int,
    team: Team,
    values: int,
    room: int,
) -> NDArray:
    """Return the products of kernel values with weights, shape (m, n_tasks).

    ``parts(columns)`` returns stretches within some columns, the tasks they take part
    in, and their weights.  Sums of parts take at most ``room`` bytes.
    """
    m, n = len(sides.left.rows), sides.n_columns
    wide = _wide(sides, values)
    pieces, weights, tasks = [], [], []
    at = at_task = most = 0
    for columns in ranges(0, n, wide, even=False):
        for stretch, used, weight in parts(columns):
            first = columns.start + stretch.start
            pieces.append((first, columns.start + stretch.stop, at, at_task, len(used)))
            weights.append(np.ascontiguousarray(weight, dtype=sides.dtype).ravel())
            tasks.append(used)
            at, at_task = at + weight.size, at_task + len(used)
            most = max(most, len(used))
    if not pieces:
        return np.zeros((m, n_tasks))
    least = LEAST_ROWS if sides.over_features is None else LEAST_ROWS_OF_SUMS
    height = int(np.clip(-(-m // JOBS), least, ROWS))
    strips = ranges(0, m, height)
    # Where strips are few, several threads share one: each adds up a part of it.
    count = min(JOBS // len(strips), len(pieces), room // (8 * m * n_tasks))
    shares = ranges(0, len(pieces), -(-len(pieces) // max(1, count)))
    sums = np.zeros((len(shares), m, n_tasks))
    table = np.array(
        [
            (k, rows.start, rows.stop, share.start, share.stop)
            for k, share in enumerate(shares)
            for rows in strips
        ]
    )
    about = np.array(pieces), np.concatenate(weights), np.concatenate(tasks)
    _together(
        team,
        table,
        lambda counter: apply_formula(
            counter, table, *sides, *about, sums, sides.room(wide, most)
        ),
    )
    return sums[0] if len(sums) == 1 else sums.sum(axis=0)
