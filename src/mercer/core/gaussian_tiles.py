r"""Tiles of Gaussian kernel values, computed by a team of threads without Python.

Between two tiles, a thread that runs Python needs the interpreter's lock.  Many threads
with small tiles would mostly wait for it.  Here every thread of a team is inside one
compiled function, and takes the number of its next job from a counter that all share.
What a job computes does not depend on the thread that does it.

The right-hand side is in a frame (see :mod:`mercer.engines.cpu.pair`): rows with the
origin at their mean for a matrix product, or strips of rows that are mostly zeros (see
:mod:`mercer.core.strips`).  The left-hand side of a job is brought into this frame when
the job begins, and then meets the columns piece by piece, so that a tile stays in the
thread's own cache until its values are used.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import intrinsic, jit, types
from mercer.core.strips import GROUP, join_rows, multiply
from mercer.core.tiles import (
    centre_rows,
    gaussian_double,
    gaussian_single,
    mirror,
    squared_norms_of_rows,
)

__all__ = [
    "COLUMNS",
    "ROWS",
    "Left",
    "Right",
    "Room",
    "apply_gaussian",
    "fill_gaussian_rows",
    "fill_gaussian_triangle",
    "take_next",
]

# The largest number of rows of a job, and of columns of a tile.  In single precision, a
# tile and what the left-hand side needs for it fit into a core's own cache.
ROWS = 128
COLUMNS = 1024


class Left(NamedTuple):
    """The left-hand side: rows of a matrix, and the frame that they go into."""

    X: NDArray
    rows: NDArray  #: the rows of X that are meant
    center: NDArray  #: the origin of the frame; not used if rows are mostly zeros
    active: NDArray  #: the columns that take part


class Right(NamedTuple):
    """The right-hand side in its frame: a matrix or strips, the other one is empty."""

    matrix: NDArray
    strips: NDArray
    norms: NDArray  #: squared norms


class Room(NamedTuple):
    """Scratch memory of one thread."""

    tile: NDArray  #: (rows of a job * columns of a tile,)
    left: NDArray  #: (rows of a job * d,) for the left-hand side in its frame
    columns: NDArray  #: (rows of a job / GROUP * d,) for columns in use, of uint16
    sums: NDArray  #: (rows of a job * the largest number of sums of a row,)


@intrinsic
def _add_at_once(typing_context, counter, amount):
    """Add to ``counter[0]``, and return what it was, as one step for all threads."""

    def write(context, builder, signature, args):
        array = context.make_array(signature.args[0])(context, builder, args[0])
        return builder.atomic_rmw("add", array.data, args[1], "monotonic")

    return types.int64(counter, types.int64), write


@jit
def take_next(counter):
    """Return the number of the next job, different for each call in any thread."""
    return _add_at_once(counter, np.int64(1))


@jit
def _put_left(left, first, stop, is_strips, room, start, exact, norms):
    """Bring rows of the left-hand side into the frame; fill their squared norms."""
    rows = left.rows[first:stop]
    d = len(left.active)
    if is_strips:
        squared_norms_of_rows(left.X, rows, exact)
        values = room.left.reshape(len(room.columns), GROUP)
        join_rows(left.X, rows, left.active, values, room.columns, start)
    else:
        matrix = room.left[: len(rows) * d].reshape(len(rows), d)
        centre_rows(left.X, rows, left.center, left.active, matrix, exact)
    norms[:] = exact


@jit
def _tile(left, right, first, stop, n_rows, gamma, room, start, norms, edge):
    """Return the kernel values of the prepared rows and the columns first to stop."""
    d = len(left.active)
    tile = room.tile[: n_rows * (stop - first)].reshape(n_rows, stop - first)
    if len(right.strips):
        n_groups = (n_rows + GROUP - 1) // GROUP
        values = room.left.reshape(len(room.columns), GROUP)
        groups = values, room.columns, start[: n_groups + 1]
        multiply(groups, right.strips, first, stop, edge, tile)
    else:
        rows = room.left[: n_rows * d].reshape(n_rows, d)
        np.dot(rows, right.matrix[first:stop].T, tile)
    if tile.itemsize == 4:
        gaussian_single(tile, norms[:n_rows], right.norms[first:stop], gamma)
    else:
        gaussian_double(tile, norms[:n_rows], right.norms[first:stop], gamma)
    return tile


@jit
def fill_gaussian_rows(
    counter: NDArray,
    jobs: NDArray,
    left: Left,
    right: Right,
    gamma: float,
    slots: NDArray,
    pool: NDArray,
    wide: int,
    room: Room,
):
    """Compute rows of kernel values, ``wide`` columns at a time, and store them.

    A job is (first row, end of rows, first column, end of columns, where a store begins
    in ``pool``, the width of the store, the column with which it begins).  Row r of the
    left-hand side goes to row ``slots[r]`` of the store.
    """
    start, exact, norms, edge = _small_room(right)
    while True:
        j = take_next(counter)
        if j >= len(jobs):
            break
        a, n = jobs[j, 0], jobs[j, 1] - jobs[j, 0]
        at, width, begin = jobs[j, 4], jobs[j, 5], jobs[j, 6]
        _put_left(left, a, a + n, len(right.strips) > 0, room, start, exact, norms)
        for first in range(jobs[j, 2], jobs[j, 3], wide):
            last = min(first + wide, jobs[j, 3])
            tile = _tile(left, right, first, last, n, gamma, room, start, norms, edge)
            for i in range(n):
                source = tile[i]
                to = at + slots[a + i] * width + first - begin
                target = pool[to : to + last - first]
                for k in range(len(target)):
                    target[k] = source[k]


@jit
def fill_gaussian_triangle(
    counter: NDArray,
    jobs: NDArray,
    left: Left,
    right: Right,
    gamma: float,
    matrix: NDArray,
    wide: int,
    room: Room,
):
    """Fill a symmetric matrix; a job is (first row, end, first column, end)."""
    start, exact, norms, edge = _small_room(right)
    while True:
        j = take_next(counter)
        if j >= len(jobs):
            break
        a, n = jobs[j, 0], jobs[j, 1] - jobs[j, 0]
        _put_left(left, a, a + n, len(right.strips) > 0, room, start, exact, norms)
        for first in range(jobs[j, 2], jobs[j, 3], wide):
            last = min(first + wide, jobs[j, 3])
            tile = _tile(left, right, first, last, n, gamma, room, start, norms, edge)
            mirror(tile, matrix, a, first)


@jit
def apply_gaussian(
    counter: NDArray,
    jobs: NDArray,
    left: Left,
    right: Right,
    gamma: float,
    pieces: NDArray,
    weights: NDArray,
    tasks: NDArray,
    sums: NDArray,
    room: Room,
):
    """Add products of kernel values and weights to ``sums`` (n_parts, m, n_tasks).

    A job is (part, first row, end, first piece, end).  A piece is (first column, end,
    where its weights begin, where its tasks begin, number of tasks); its weights are a
    matrix of columns by tasks.
    """
    start, exact, norms, edge = _small_room(right)
    while True:
        j = take_next(counter)
        if j >= len(jobs):
            break
        part, a, n = jobs[j, 0], jobs[j, 1], jobs[j, 2] - jobs[j, 1]
        _put_left(left, a, a + n, len(right.strips) > 0, room, start, exact, norms)
        for p in range(jobs[j, 3], jobs[j, 4]):
            first, last = pieces[p, 0], pieces[p, 1]
            tile = _tile(left, right, first, last, n, gamma, room, start, norms, edge)
            n_tasks = pieces[p, 4]
            own = weights[pieces[p, 2] : pieces[p, 2] + (last - first) * n_tasks]
            task = tasks[pieces[p, 3] : pieces[p, 3] + n_tasks]
            found = room.sums[: n * n_tasks].reshape(n, n_tasks)
            np.dot(tile, own.reshape(last - first, n_tasks), found)
            for i in range(n):
                target = sums[part, a + i]
                for t in range(n_tasks):
                    target[task[t]] += np.float64(found[i, t])


@jit
def _small_room(right):
    """Return arrays for where groups begin, norms, and the edge of a product."""
    number = right.norms.dtype
    start = np.empty(ROWS // GROUP + 1, dtype=np.int64)
    edge = np.empty((GROUP, right.strips.shape[2]), dtype=number)
    return start, np.empty(ROWS), np.empty(ROWS, dtype=number), edge
