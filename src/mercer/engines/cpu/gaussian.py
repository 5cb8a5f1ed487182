"""Gaussian kernel values by a team of threads that run no Python between tiles.

This is a faster way to the same values as :mod:`mercer.engines.cpu.tiles`, for the
kernel that is used most, on dense samples.  It does not know where it is not faster:
:func:`sides_of` returns None where kernels have to be asked tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.gaussian_tiles import (
    COLUMNS,
    ROWS,
    Left,
    Right,
    Room,
    apply_gaussian,
    fill_gaussian_rows,
    fill_gaussian_triangle,
)
from mercer.core.strips import GROUP, width
from mercer.core.tiles import ranges
from mercer.engines.cpu.pair import Operand, scratch_of_thread
from mercer.engines.cpu.zeros import MostlyZeros
from mercer.kernels.base import Kernel
from mercer.kernels.radial import RBF

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
# Rows of a job, where there are few.
LEAST_ROWS = 32
# For fewer values threads hardly matter, and the code need not be compiled.
LEAST_VALUES = 500_000

#: calls a function in several threads at once, but in no more than there are jobs
Team = Callable[[Callable[[], None], int], None]


class Sides(NamedTuple):
    """Both sides of Gaussian kernel values, ready for compiled code."""

    left: Left
    right: Right
    gamma: float

    @property
    def dtype(self) -> np.dtype:
        """The floating-point type of the values."""
        return self.right.norms.dtype

    def room(self, wide: int, n_sums: int = 0) -> Room:
        """Return scratch memory of the calling thread."""
        scratch = scratch_of_thread()
        d = len(self.left.active)

        def some(count: int, dtype: Any) -> NDArray:
            return scratch.empty((1, count), dtype)[0]

        return Room(
            some(ROWS * wide, self.dtype),
            some(ROWS * d + GROUP, self.dtype),
            some(ROWS // GROUP * d + 1, np.uint16),
            some(ROWS * n_sums, self.dtype),
        )


def sides_of(kernel: Kernel, left: Operand, right: Operand) -> Sides | None:
    """Return both sides, or None if compiled code cannot compute the values alone."""
    if type(kernel) is not RBF or left.dtype != right.dtype:
        return None
    if len(left) * len(right) < LEAST_VALUES:
        return None
    X, order = left.stored()
    if sparse.issparse(X) or sparse.issparse(right.stored()[0]):
        return None
    gamma = float(kernel.gamma)
    frame = right.frame(gamma, right.dtype)
    if frame.active is None or frame.dtype != right.dtype or not len(frame.active):
        return None
    rows = np.arange(len(left)) if order is None else order
    framed = right.framed(frame)
    matrix, norms = framed.matrix, framed.norms
    strips = np.empty((0, 1, width(norms.dtype)), dtype=norms.dtype)
    center = frame.center
    if isinstance(framed.matrix, MostlyZeros):
        strips = framed.matrix.strips()
        matrix = np.empty((0, 0), dtype=norms.dtype)
    if center is None:
        center = np.empty(0, dtype=norms.dtype)
    return Sides(
        Left(X, rows, center, frame.active), Right(matrix, strips, norms), gamma
    )


def _together(team: Team, jobs: NDArray, work: Callable[[NDArray], None]) -> None:
    """Let a team do all jobs; ``work`` is given the counter that its threads share."""
    counter = np.zeros(1, dtype=np.int64)
    try:
        team(lambda: work(counter), len(jobs))
    except BaseException:
        counter[0] = len(jobs)  # threads that are still at work find no more jobs
        raise


def _wide(values: int) -> int:
    """Return how many columns tiles of so many values have."""
    return int(np.clip(values // ROWS, 1, COLUMNS))


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
    left = sides.left._replace(rows=sides.left.rows[rows])
    table, wide = np.array(jobs), _wide(values)
    _together(
        team,
        table,
        lambda counter: fill_gaussian_rows(
            counter, table, left, sides.right, sides.gamma, slots, pool, wide,
            sides.room(wide),
        ),
    )  # fmt: skip


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
    table, wide = np.array(jobs), _wide(values)
    _together(
        team,
        table,
        lambda counter: fill_gaussian_triangle(
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
    m, n = len(sides.left.rows), len(sides.right.norms)
    wide = _wide(values)
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
    height = int(np.clip(-(-m // JOBS), LEAST_ROWS, ROWS))
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
        lambda counter: apply_gaussian(
            counter, table, *sides, *about, sums, sides.room(wide, most)
        ),
    )
    return sums[0] if len(sums) == 1 else sums.sum(axis=0)
