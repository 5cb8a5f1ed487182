r"""Tiles of kernel values, computed from a formula by a team of threads without Python.

Between two tiles, a thread that runs Python needs the interpreter's lock.  Many threads
with small tiles would mostly wait for it.  Here every thread of a team is inside one
compiled function, and takes the number of its next job from a counter that all share.
What a job computes does not depend on the thread that does it.

What a kernel value is, is said by a formula: a list of operations on a few tiles, the
*registers* (see :mod:`mercer.engines.cpu.formula`).  The first operations fill a
register with products or with sums over features, the others change it.

The right-hand side of products is in a frame (see :mod:`mercer.engines.cpu.pair`): rows
with the origin at their mean for a matrix product, or strips of rows that are mostly
zeros (see :mod:`mercer.core.strips`).  Other operations take the rows as they are.  The
left-hand side of a job is brought into this form when the job begins, and then meets
the columns piece by piece, so that a tile stays in the thread's own cache until its
values are used.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import intrinsic, jit, types
from mercer.core.strips import GROUP, join_rows, multiply
from mercer.core.tiles import (
    additive_chi2,
    centre_rows,
    exponential_double,
    exponential_single,
    gaussian_double,
    gaussian_single,
    hyperbolic_tangent,
    intersection,
    manhattan,
    mirror,
    powers,
    squared_distances,
    squared_norms_of_rows,
)

__all__ = [
    "ADD",
    "AFFINE",
    "CHI2",
    "COLUMNS",
    "COLUMN_FACTORS",
    "DISTANCES",
    "EXPONENTIAL",
    "FRAMED_PRODUCTS",
    "GAUSSIAN",
    "MANHATTAN",
    "MINIMA",
    "MULTIPLY",
    "POWER",
    "PRODUCTS",
    "ROWS",
    "ROW_FACTORS",
    "TANH",
    "Formula",
    "Left",
    "Right",
    "Room",
    "apply_formula",
    "fill_formula_rows",
    "fill_formula_triangle",
    "take_next",
]

# The largest number of rows of a job, and of columns of a tile.  In single precision, a
# tile and what the left-hand side needs for it fit into a core's own cache.
ROWS = 128
COLUMNS = 1024

# Operations that fill a register,
PRODUCTS, FRAMED_PRODUCTS, MANHATTAN, MINIMA, CHI2 = range(5)
# and those that change one.
(
    DISTANCES, GAUSSIAN, EXPONENTIAL, AFFINE, POWER, TANH, ROW_FACTORS, COLUMN_FACTORS,
    ADD, MULTIPLY,
) = range(5, 15)  # fmt: skip


class Formula(NamedTuple):
    """What to do to have kernel values; the last operation leaves them.

    An operation has a code, the register that it fills, the register that it begins
    with, and a whole number: another register, an exponent or the number of a factor.
    """

    operations: NDArray  #: (n_operations, 4)
    numbers: NDArray  #: (n_operations, 2), such as a scale and a shift
    n_registers: int


class Left(NamedTuple):
    """The left-hand side: rows of a matrix, and the frame that they go into."""

    X: NDArray
    rows: NDArray  #: the rows of X that are meant
    center: NDArray  #: the origin of the frame; not used if rows are mostly zeros
    active: NDArray  #: the columns of the frame; none if no operation uses it
    factors: NDArray  #: (n_factors, number of rows), with which values are multiplied


class Right(NamedTuple):
    """The right-hand side, as operations need it; what none needs is empty."""

    plain: NDArray  #: the rows as they are
    matrix: NDArray  #: the rows in their frame
    strips: NDArray  #: the same for rows that are mostly zeros
    norms: NDArray  #: squared norms in the frame
    factors: NDArray  #: (n_factors, number of rows)


class Room(NamedTuple):
    """Scratch memory of one thread."""

    registers: NDArray  #: (n_registers * rows of a job * columns of a tile,)
    left: NDArray  #: (rows of a job * d,) for the left-hand side in its frame
    columns: NDArray  #: (rows of a job / GROUP * d,) for columns in use, of uint16
    plain: NDArray  #: (rows of a job * d,) for the left-hand side as it is
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
def _put_left(left, right, first, stop, room, start, exact, norms):
    """Bring rows of the left-hand side into the frame; fill their squared norms."""
    rows = left.rows[first:stop]
    d = len(left.active)
    if len(right.strips):
        squared_norms_of_rows(left.X, rows, exact)
        values = room.left.reshape(len(room.columns), GROUP)
        join_rows(left.X, rows, left.active, values, room.columns, start)
        norms[:] = exact
    elif d > 0:
        matrix = room.left[: len(rows) * d].reshape(len(rows), d)
        centre_rows(left.X, rows, left.center, left.active, matrix, exact)
        norms[:] = exact
    if len(right.plain):
        width = left.X.shape[1]
        for i in range(len(rows)):
            source = left.X[rows[i]]
            target = room.plain[i * width : (i + 1) * width]
            for k in range(len(target)):
                target[k] = source[k]


@jit
def _products(left, right, first, stop, room, start, edge, tile):
    """Fill a tile with products in the frame."""
    n_rows, d = len(tile), len(left.active)
    if len(right.strips):
        n_groups = (n_rows + GROUP - 1) // GROUP
        values = room.left.reshape(len(room.columns), GROUP)
        groups = values, room.columns, start[: n_groups + 1]
        multiply(groups, right.strips, first, stop, edge, tile)
    else:
        rows = room.left[: n_rows * d].reshape(n_rows, d)
        np.dot(rows, right.matrix[first:stop].T, tile)


@jit
def _exponential(tile, factor):
    if tile.itemsize == 4:
        exponential_single(tile, factor)
    else:
        exponential_double(tile, factor)


@jit
def _gaussian(tile, x_norm, z_norm, gamma):
    if tile.itemsize == 4:
        gaussian_single(tile, x_norm, z_norm, gamma)
    else:
        gaussian_double(tile, x_norm, z_norm, gamma)


@jit
def _copy(source, target):
    for i in range(len(source)):
        a, b = source[i], target[i]
        for k in range(len(a)):
            b[k] = a[k]


@jit
def _scale_columns(tile, factors):
    for i in range(len(tile)):
        row = tile[i]
        for k in range(len(row)):
            row[k] *= factors[k]


@jit
def _scale_and_shift(tile, scale, shift):
    factor, summand = tile.dtype.type(scale), tile.dtype.type(shift)
    for i in range(len(tile)):
        row = tile[i]
        for k in range(len(row)):
            row[k] = factor * row[k] + summand


@jit
def _join(tile, other, adds):
    for i in range(len(tile)):
        row, more = tile[i], other[i]
        if adds:
            for k in range(len(row)):
                row[k] += more[k]
        else:
            for k in range(len(row)):
                row[k] *= more[k]


@jit
def _register(room, step, number, n_rows, width):
    at = number * step
    return room.registers[at : at + n_rows * width].reshape(n_rows, width)


@jit
def _tile(formula, left, right, a, n_rows, first, stop, room, small, over_features):
    """Return the kernel values of the prepared rows and the columns first to stop.

    ``a`` is where the prepared rows begin, ``small`` is what :func:`_small_room` gave.
    """
    start, _, norms, edge = small
    width, d = stop - first, left.X.shape[1]
    step = len(room.registers) // formula.n_registers
    for k in range(len(formula.operations)):
        code, target = formula.operations[k, 0], formula.operations[k, 1]
        source, number = formula.operations[k, 2], formula.operations[k, 3]
        x, y = formula.numbers[k, 0], formula.numbers[k, 1]
        tile = _register(room, step, target, n_rows, width)
        if code == FRAMED_PRODUCTS:
            _products(left, right, first, stop, room, start, edge, tile)
            continue
        if code <= CHI2:
            rows = room.plain[: n_rows * d].reshape(n_rows, d)
            others = right.plain[first:stop]
            # Numba leaves this branch out, and need not compile it, where it is None.
            if over_features is not None:
                if code == MANHATTAN:
                    manhattan(rows, others, tile)
                elif code == MINIMA:
                    intersection(rows, others, tile)
                elif code == CHI2:
                    additive_chi2(rows, others, tile)
            if code == PRODUCTS:
                np.dot(rows, others.T, tile)
            continue
        if source != target:
            _copy(_register(room, step, source, n_rows, width), tile)
        if code == GAUSSIAN:
            _gaussian(tile, norms[:n_rows], right.norms[first:stop], x)
        elif code == POWER:
            powers(tile, x, y, number, tile)
        elif code == TANH:
            hyperbolic_tangent(tile, x, y)
        elif code == EXPONENTIAL:
            _exponential(tile, x)
        elif code == DISTANCES:
            squared_distances(tile, norms[:n_rows], right.norms[first:stop])
        elif code == AFFINE:
            _scale_and_shift(tile, x, y)
        elif code == ROW_FACTORS:
            for i in range(n_rows):
                _scale_and_shift(tile[i : i + 1], left.factors[number, a + i], 0.0)
        elif code == COLUMN_FACTORS:
            _scale_columns(tile, right.factors[number, first:stop])
        else:
            other = _register(room, step, number, n_rows, width)
            _join(tile, other, code == ADD)
    last = formula.operations[len(formula.operations) - 1, 1]
    return _register(room, step, last, n_rows, width)


@jit
def fill_formula_rows(
    counter: NDArray,
    jobs: NDArray,
    formula: Formula,
    left: Left,
    right: Right,
    over_features,
    slots: NDArray,
    pool: NDArray,
    wide: int,
    room: Room,
):
    """Compute rows of kernel values, ``wide`` columns at a time, and store them.

    A job is (first row, end of rows, first column, end of columns, where a store begins
    in ``pool``, the width of the store, the column with which it begins).  Row r of the
    left-hand side goes to row ``slots[r]`` of the store.  ``over_features`` is 1 if the
    formula has sums over features, else None.
    """
    small = _small_room(right)
    start, exact, norms, _ = small
    while True:
        j = take_next(counter)
        if j >= len(jobs):
            break
        a, n = jobs[j, 0], jobs[j, 1] - jobs[j, 0]
        at, width, begin = jobs[j, 4], jobs[j, 5], jobs[j, 6]
        _put_left(left, right, a, a + n, room, start, exact, norms)
        for first in range(jobs[j, 2], jobs[j, 3], wide):
            last = min(first + wide, jobs[j, 3])
            tile = _tile(
                formula, left, right, a, n, first, last, room, small, over_features
            )
            for i in range(n):
                source = tile[i]
                to = at + slots[a + i] * width + first - begin
                target = pool[to : to + last - first]
                for k in range(len(target)):
                    target[k] = source[k]


@jit
def fill_formula_triangle(
    counter: NDArray,
    jobs: NDArray,
    formula: Formula,
    left: Left,
    right: Right,
    over_features,
    matrix: NDArray,
    wide: int,
    room: Room,
):
    """Fill a symmetric matrix; a job is (first row, end, first column, end)."""
    small = _small_room(right)
    start, exact, norms, _ = small
    while True:
        j = take_next(counter)
        if j >= len(jobs):
            break
        a, n = jobs[j, 0], jobs[j, 1] - jobs[j, 0]
        _put_left(left, right, a, a + n, room, start, exact, norms)
        for first in range(jobs[j, 2], jobs[j, 3], wide):
            last = min(first + wide, jobs[j, 3])
            tile = _tile(
                formula, left, right, a, n, first, last, room, small, over_features
            )
            mirror(tile, matrix, a, first)


@jit
def apply_formula(
    counter: NDArray,
    jobs: NDArray,
    formula: Formula,
    left: Left,
    right: Right,
    over_features,
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
    small = _small_room(right)
    start, exact, norms, _ = small
    while True:
        j = take_next(counter)
        if j >= len(jobs):
            break
        part, a, n = jobs[j, 0], jobs[j, 1], jobs[j, 2] - jobs[j, 1]
        _put_left(left, right, a, a + n, room, start, exact, norms)
        for p in range(jobs[j, 3], jobs[j, 4]):
            first, last = pieces[p, 0], pieces[p, 1]
            tile = _tile(
                formula, left, right, a, n, first, last, room, small, over_features
            )
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
