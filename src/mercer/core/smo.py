r"""The pair solver: sequential minimal optimisation with second-order selection.

A step moves :math:`\delta` from :math:`\beta_j` to :math:`\beta_i` of the same group.
With :math:`G = K\beta + p` and curvature :math:`a = K_{ii} + K_{jj} - 2K_{ij}` the
best step is :math:`\delta = (G_j - G_i)/a`, clipped to the box, and decreases the
objective by :math:`(G_j - G_i)^2 / 2a`.  ``i`` is the variable with the least :math:`G`
that may grow; ``j`` is the variable that may shrink and gains most with ``i`` (Fan,
Chen & Lin 2005).  The solver stops when no pair violates by more than ``tol``.

Problems that differ in their bounds can start from the solution of another: a multiple
:math:`s\beta` of a solution keeps a sum of 0, and if :math:`f = K\beta` is known, the
objective :math:`\tfrac12 s^2 \beta^T f + s\, p^T \beta` is least at
:math:`s = -p^T \beta / \beta^T f`.  The bounds limit :math:`s` from above.
"""

from math import isqrt
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit
from mercer.core.problem import PIECE, DualProblem, Layout

__all__ = [
    "POLISHED",
    "Outcome",
    "Rows",
    "best_multiple",
    "fill_row",
    "fill_rows",
    "is_rounding",
    "minimise_pairs",
    "minimise_whole",
    "most_active",
    "multiply",
    "part_of",
    "same_type",
    "shrink_and_solve",
    "solve_and_polish",
    "solve_whole",
]

# Least curvature: rounding or an indefinite kernel can make the true one 0 or negative.
TINY = 1e-12
EPS = np.finfo(np.float64).eps
# All bits of a float64 but the sign, and an integer below the rank of every score.
MAGNITUDE = np.int64(0x7FFFFFFFFFFFFFFF)
NO_SCORE = ~MAGNITUDE
# Mask of the lower half of a packed integer, which holds an index.
INDEX = np.int64(0xFFFFFFFF)
# Number of steps between two looks at the stop flag.
CHECK_EVERY = 256


class Outcome(NamedTuple):
    """How a run of the compiled solver ended."""

    n_iter: int
    gap: float  #: largest violation at the end
    stalled: bool  #: whether only rounding was left, of a step or of the gradient


class Rows(NamedTuple):
    """A Gram matrix whose rows are put together when they are needed.

    A solver looks at few rows: those of support vectors.  They are copied from a larger
    matrix, or from the blocks of two classes with themselves and with each other.
    """

    square: NDArray  #: the matrix, shape (n, n)
    diag: NDArray  #: its diagonal
    ready: NDArray[np.uint8]  #: which rows of it are filled; empty if all of them are
    #: which rows and columns of the larger matrix ``first``; empty for two classes
    places: NDArray[np.uint64]
    first: NDArray  #: the larger matrix, or the first class with itself
    second: NDArray  #: the second class with itself
    across: NDArray  #: the first class with the second, among other columns
    begin: int  #: the column of ``across`` at which the second class begins
    #: stretches of ``places``: where each begins, its first place, and its length;
    #: empty if they are short
    runs: NDArray[np.int64]

    @property
    def dtype(self) -> np.dtype:
        """The type of the values."""
        return self.square.dtype

    @classmethod
    def of_classes(
        cls,
        square: NDArray,
        diag: NDArray,
        first: NDArray,
        second: NDArray,
        across: NDArray,
        begin: int,
    ) -> Self:
        """Return the matrix of two classes, to be filled into ``square``."""
        ready, places = np.zeros(len(diag), np.uint8), np.empty(0, np.uint64)
        runs = np.empty((0, 3), np.int64)
        return cls(square, diag, ready, places, first, second, across, begin, runs)


class _Memory:
    """The memory of a matrix, which stays alive as long as views of it do."""

    def __init__(self, matrix: NDArray):
        self._matrix = matrix
        address = matrix.ctypes.data, False
        self.__array_interface__ = {**matrix.__array_interface__, "data": address}


def same_type(K: NDArray) -> NDArray:
    """Return a matrix that compiled code only reads, without the mark that it must.

    A mapped file or a frame of pandas is read-only, which to Numba is another type:
    all solvers would be compiled once more for it, and those that can fill rows of a
    matrix would not compile.
    """
    return K if K.flags.writeable else np.asarray(_Memory(K))


# Stretches shorter than this on average are gathered value by value.
LEAST_RUN = 16


@jit
def part_of(matrix: NDArray, diag: NDArray, rows: NDArray, square: NDArray):
    """Return ``matrix[rows][:, rows]`` as rows to be filled into ``square``.

    ``diag`` is the diagonal of the matrix.
    """
    n = len(rows)
    runs = np.empty((n, 3), dtype=np.int64)
    count = 0
    for k in range(n):
        if k > 0 and rows[k] == rows[k - 1] + 1:
            runs[count - 1, 2] += 1
        else:
            runs[count, 0], runs[count, 1], runs[count, 2] = k, rows[k], 1
            count += 1
    if count * LEAST_RUN > n:
        count = 0
    nothing = np.empty((0, 0), dtype=square.dtype)
    return Rows(
        square, diag[rows], np.zeros(n, dtype=np.uint8), rows.astype(np.uint64),
        matrix, nothing, nothing, 0, runs[:count].copy(),
    )  # fmt: skip


@jit
def fill_rows(source: Rows, rows: NDArray):
    """Fill those of the rows that are not there yet."""
    for k in range(len(rows)):
        if source.ready[rows[k]] == 0:
            fill_row(source, rows[k])


@jit
def fill_row(source, r):
    """Fill one row."""
    target, places = source.square[r], source.places
    if len(places) > 0:
        larger, runs = source.first[places[r]], source.runs
        if len(runs) == 0:
            for k in range(len(target)):
                target[k] = larger[places[k]]
        for s in range(len(runs)):
            first, begin, length = runs[s, 0], runs[s, 1], runs[s, 2]
            into = target[first : first + length]
            values = larger[begin : begin + length]
            for k in range(len(into)):
                into[k] = values[k]
    else:
        a, b = len(source.first), len(source.second)
        begin = source.begin
        left, right = target[:a], target[a : a + b]
        if r < a:
            own = source.first[r]
            for k in range(a):
                left[k] = own[k]
            other = source.across[r, begin : begin + b]
            for k in range(b):
                right[k] = other[k]
        else:
            own = source.second[r - a]
            for k in range(b):
                right[k] = own[k]
            for k in range(a):
                left[k] = source.across[k, begin + r - a]
    source.ready[r] = 1


@jit
def _filled(K):
    """Return a matrix all of whose rows are there."""
    nothing, no_diag = np.empty((0, 0), dtype=K.dtype), np.empty(0, dtype=K.dtype)
    ready, places = np.empty(0, dtype=np.uint8), np.empty(0, dtype=np.uint64)
    runs = np.empty((0, 3), dtype=np.int64)
    return Rows(K, no_diag, ready, places, nothing, nothing, nothing, np.int64(0), runs)


@jit
def minimise_pairs(
    K: NDArray,
    where: Layout,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    stop: NDArray,
):
    """Take pair steps on ``beta`` and ``f`` in place until the gap is within ``tol``.

    ``where`` describes the part of the Gram matrix ``K`` that is in use.  Another
    thread may set ``stop[0]`` to end the run.  Return the fields of :class:`Outcome`.
    """
    return _take_steps(_filled(K), where, problem, beta, f, tol, max_iter, stop)


@jit
def _take_steps(source, where, problem, beta, f, tol, max_iter, stop):
    K, ready = source.square, source.ready
    is_filled = len(ready) == 0
    p, lo, hi, row = problem.p, problem.lo, problem.hi, problem.row
    piece, group_start = where.piece, where.group_start
    m = len(p)
    # The entries are 0 if the variable may move that way and -inf if not. Adding them
    # to a score replaces a branch.
    up = np.empty(m)
    down = np.empty(m)
    # The steps change the gradient, and f is written when they are done: that is one
    # array less to read in every loop.
    G = np.empty(m)
    diag = np.empty(m, dtype=np.float32)
    column = np.empty(m, dtype=np.int64)
    for s in range(piece.shape[0]):
        for k in range(piece[s, 1]):
            column[piece[s, 0] + k] = piece[s, 3] + k
    for t in range(m):
        up[t] = 0.0 if beta[t] < hi[t] else -np.inf
        down[t] = 0.0 if beta[t] > lo[t] else -np.inf
        G[t] = f[row[t]] + p[t]
        c = column[t]
        diag[t] = K[c, c] if is_filled else source.diag[c]

    n_iter = 0
    is_stalled = False
    Ki = Kj = np.zeros(K.shape[1], dtype=K.dtype)
    delta = 0.0
    while True:
        gap = -np.inf
        top = bottom = -np.inf
        i = j = first = last = np.int64(0)
        for g in range(len(group_start) - 1):
            a, b = group_start[g], group_start[g + 1]
            most_up, most_down, at_up, at_down = _move(
                piece, a, b, G, up, down, Ki, Kj, delta
            )
            if at_up >= 0 and at_down >= 0 and most_up + most_down > gap:
                gap = most_up + most_down
                top, bottom, i, j, first, last = (
                    most_up,
                    most_down,
                    at_up,
                    at_down,
                    a,
                    b,
                )
        if gap <= tol or n_iter >= max_iter:
            break
        if n_iter % CHECK_EVERY == 0 and stop[0] != 0:
            break
        i = _nearest(top, piece[i], G, up, -1.0)
        if is_rounding(gap, top, bottom, p[i]):
            is_stalled = True
            break
        if not is_filled and ready[column[i]] == 0:
            fill_row(source, column[i])
        Ki = K[column[i]]
        Kii = np.float64(Ki[column[i]])
        down[i] = -np.inf  # rounding must not make i its own partner
        at = _best_piece(piece, first, last, G, down, Ki, diag, G[i], Kii, gap)
        if at >= 0:
            j = _best_partner(piece[at], G, down, Ki, diag, G[i], Kii, gap)
        else:
            j = _nearest(bottom, piece[j], G, down, 1.0)

        # A variable that reaches a bound is set to it exactly, so that it counts as
        # being at the bound.
        if not is_filled and ready[column[j]] == 0:
            fill_row(source, column[j])
        Kj = K[column[j]]
        curvature = Kii + np.float64(Kj[column[j]]) - 2.0 * np.float64(Ki[column[j]])
        delta = (G[j] - G[i]) / max(curvature, TINY)
        room_i = hi[i] - beta[i]
        room_j = beta[j] - lo[j]
        delta = min(delta, room_i, room_j)
        new_i = hi[i] if delta >= room_i else beta[i] + delta
        new_j = lo[j] if delta >= room_j else beta[j] - delta
        if new_i == beta[i] and new_j == beta[j]:
            is_stalled = True
            break
        beta[i] = new_i
        beta[j] = new_j
        for t in (i, j):
            up[t] = 0.0 if beta[t] < hi[t] else -np.inf
            down[t] = 0.0 if beta[t] > lo[t] else -np.inf
        n_iter += 1
    for t in range(m):
        f[row[t]] = G[t] - p[t]
    return n_iter, gap, is_stalled


# Two habits let the compiler turn the loops below into vector instructions, which are
# several times as fast. Arrays are sliced first and then indexed from 0, which needs no
# test for a negative index. And maxima are taken without their index, of integers that
# have the same order as the floats.


@jit
def _move(piece, first, last, G, up, down, Ki, Kj, delta):
    """Take a step of ``delta``, and find the variables that violate most after it.

    Only the pieces from ``first`` up to ``last`` are moved and looked at.  Return the
    largest ``-G`` of the variables that may grow, the largest ``G`` of those that may
    shrink, and the pieces that hold the two (-1 for none).
    """
    best_up = NO_SCORE
    best_down = NO_SCORE
    at_up = np.int64(-1)
    at_down = np.int64(-1)
    for s in range(first, last):
        v0, length, c0 = piece[s, 0], piece[s, 1], piece[s, 3]
        G_, Ki_, Kj_ = G[v0 : v0 + length], Ki[c0 : c0 + length], Kj[c0 : c0 + length]
        up_, down_ = up[v0 : v0 + length], down[v0 : v0 + length]
        top = NO_SCORE
        bottom = NO_SCORE
        for k in range(length):
            moved = G_[k] + delta * (np.float64(Ki_[k]) - np.float64(Kj_[k]))
            G_[k] = moved
            top = max(top, _ordinal(up_[k] - moved))
            bottom = max(bottom, _ordinal(down_[k] + moved))
        if top > best_up:
            best_up = top
            at_up = s
        if bottom > best_down:
            best_down = bottom
            at_down = s
    return _cardinal(best_up), _cardinal(best_down), at_up, at_down


@jit
def _ordinal(x):
    """Map a float64 to an int64 so that the order is kept."""
    bits = np.float64(x).view(np.int64)
    return bits ^ ((bits >> 63) & MAGNITUDE)


@jit
def _cardinal(rank):
    """Undo :func:`_ordinal`: the map is its own inverse on the bits."""
    return np.int64(rank ^ ((rank >> 63) & MAGNITUDE)).view(np.float64)


@jit
def _packed(value, index):
    """Join the bits of a non-negative float32 and an index into one ordered integer."""
    return (np.int64(np.float32(value).view(np.int32)) << 32) | np.int64(index)


@jit
def _nearest(target, run, G, free, sign):
    """Return the variable of a piece whose score ``free + sign * G`` is ``target``.

    Distance and index are packed into one integer, so that the nearest variable is
    found even if rounding makes the score differ from ``target``.
    """
    v0, length = run[0], run[1]
    G_, free_ = G[v0 : v0 + length], free[v0 : v0 + length]
    best = MAGNITUDE
    for k in range(length):
        off = abs(target - (free_[k] + sign * G_[k]))
        best = min(best, _packed(off, length - 1 - k))  # the last of equals wins
    return v0 + length - 1 - (best & INDEX)


@jit
def _gain(rise, Kii, Kjj, Kij):
    """Return the gain of a pair whose violation is ``rise``; negative for no violation.

    Single precision is enough to rank the gains.
    """
    b = np.float32(rise)
    a = Kii + Kjj - np.float32(2.0) * np.float32(Kij)
    return np.float32(b * abs(b) / max(a, np.float32(TINY)))


@jit
def is_rounding(violation, G_i, G_j, p_i):
    """Tell whether two gradients differ by hardly more than they are rounded.

    Between runs ``f = G - p`` is kept, which may be much larger than ``G``.  Steps
    would follow the rounding errors for ever.
    """
    return violation <= EPS * (abs(G_i) + abs(G_j) + 2.0 * abs(p_i))


@jit
def _best_piece(piece, first, last, G, down, Ki, diag, Gi, Kii, gap):
    """Return the piece that holds the best partner of ``i``; -1 if no gain is positive.

    Violations are scaled to [0, 1], so that gains do not overflow.
    """
    scale = 1.0 / gap
    Kii = np.float32(Kii)
    best = np.int32(0)
    at = np.int64(-1)
    for s in range(first, last):
        v0, length, c0 = piece[s, 0], piece[s, 1], piece[s, 3]
        G_, down_ = G[v0 : v0 + length], down[v0 : v0 + length]
        diag_, Ki_ = diag[v0 : v0 + length], Ki[c0 : c0 + length]
        top = np.int32(0)
        for k in range(length):
            rise = (G_[k] + down_[k] - Gi) * scale
            gain = np.float32(_gain(rise, Kii, diag_[k], Ki_[k]))
            top = max(top, gain.view(np.int32))
        if top > best:
            best = top
            at = s
    return at


@jit
def _best_partner(run, G, down, Ki, diag, Gi, Kii, gap):
    """Return the best partner of ``i`` in a piece that has one."""
    scale = 1.0 / gap
    Kii = np.float32(Kii)
    v0, length, c0 = run[0], run[1], run[3]
    G_, down_ = G[v0 : v0 + length], down[v0 : v0 + length]
    diag_, Ki_ = diag[v0 : v0 + length], Ki[c0 : c0 + length]
    best = np.int64(0)
    for k in range(length):
        rise = (G_[k] + down_[k] - Gi) * scale
        best = max(best, _packed(_gain(rise, Kii, diag_[k], Ki_[k]), k))
    return v0 + (best & INDEX)


@jit
def best_multiple(
    p: NDArray,
    lo: NDArray,
    hi: NDArray,
    row: NDArray,
    beta: NDArray,
    f: NDArray,
    new_beta: NDArray,
    new_f: NDArray,
):
    """Write the best feasible multiple of ``beta`` and its ``f``.

    Both are 0 if no multiple decreases the objective.

    ``p``, ``lo``, ``hi``, ``row``, ``beta`` have shape (m,), ``f`` (n_rows,).
    """
    quadratic, slope, most = 0.0, 0.0, np.inf
    for v in range(len(beta)):
        b = beta[v]
        if b != 0.0:
            quadratic += b * f[row[v]]
            slope += p[v] * b
            most = min(most, (hi[v] if b > 0.0 else lo[v]) / b)
    s = 0.0
    if quadratic > 0.0 and slope < 0.0:
        s = min(-slope / quadratic, most)
    if not (s > 0.0 and s < np.inf):
        s = 0.0
    for v in range(len(beta)):
        new_beta[v] = min(max(s * beta[v], lo[v]), hi[v])
    for r in range(len(f)):
        new_f[r] = s * f[r]


# Up to this many variables, a task is solved to a fraction of the tolerance, if that
# takes no more than this many steps for each variable.
POLISHED = 320
POLISH = 1e-7
POLISHING_STEPS = 20
# For fewer variables a step is so cheap that shrinking does not save time.
SHRINK_FROM = 200
# Before variables are left out, there is a step for each of this many variables.
FIRST_STEPS = 4
# Steps on a part of the variables before more of them are left out, at least.
LEAST_STEPS = 200


@jit
def minimise_whole(
    K: NDArray,
    where: Layout,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    stop: NDArray,
    most: int,
):
    """Take pair steps like :func:`minimise_pairs`, and shrink the problem.

    Variables that sit at a bound and cannot take part in any violating pair are left
    out for a while: the rest is solved on a copy of its part of the matrix, then all
    are looked at again. The copy has at most ``most`` rows.
    """
    rows = _filled(K)
    return shrink_and_solve(rows, where, problem, beta, f, tol, max_iter, stop, most)


@jit
def shrink_and_solve(source, where, problem, beta, f, tol, max_iter, stop, most):
    """Take steps as in :func:`minimise_whole`, on rows that are filled as needed."""
    m = len(beta)
    n_iter = 0
    while most > 0 and n_iter < max_iter:
        steps = min(m // FIRST_STEPS, max_iter - n_iter)
        n, gap, stalled = _take_steps(source, where, problem, beta, f, tol, steps, stop)
        n_iter += n
        if gap <= tol or stalled or stop[0] != 0:
            return n_iter, gap, stalled
        active = _may_move(problem, beta, f)
        while 0 < len(active) <= most and n_iter < max_iter and stop[0] == 0:
            # After some steps, even fewer variables may be active.
            steps = min(max(len(active), LEAST_STEPS), max_iter - n_iter)
            n, is_solved, stalled = _solve_part(
                source, where, problem, beta, f, active, tol, steps, stop
            )
            n_iter += n
            if stalled:
                return n_iter, gap, True
            if is_solved:
                break
            active = _may_move(problem, beta, f)
    n, gap, stalled = _take_steps(
        source, where, problem, beta, f, tol, max_iter - n_iter, stop
    )
    return n_iter + n, gap, stalled


@jit
def _may_move(problem, beta, f):
    """Return the variables that are free or can be part of a violating pair."""
    p, lo, hi, row, group = (
        problem.p,
        problem.lo,
        problem.hi,
        problem.row,
        problem.group,
    )
    m = len(p)
    active = np.empty(m, dtype=np.int64)
    count = first = 0
    while first < m:
        stop = first
        least, most = np.inf, -np.inf
        while stop < m and group[stop] == group[first]:
            G = f[row[stop]] + p[stop]
            if beta[stop] < hi[stop]:
                least = min(least, G)
            if beta[stop] > lo[stop]:
                most = max(most, G)
            stop += 1
        for v in range(first, stop):
            G = f[row[v]] + p[v]
            up, down = beta[v] < hi[v], beta[v] > lo[v]
            if (up and (down or G < most)) or (down and G > least):
                active[count] = v
                count += 1
        first = stop
    return active[:count]


@jit
def _solve_part(source, where, problem, beta, f, active, tol, max_iter, stop):
    """Solve for the active variables, then update ``f`` for all rows."""
    span = where.span
    n = len(active)
    column = np.empty(len(f), dtype=np.int64)
    for s in range(span.shape[0]):
        for k in range(span[s, 1]):
            column[span[s, 0] + k] = span[s, 2] + k
    row = problem.row[active]
    mine = column[row]
    K = source.square
    if len(source.ready) > 0:
        fill_rows(source, mine)
    square = np.empty((n, n), dtype=K.dtype)
    at = mine.astype(np.uint64)
    for i in range(n):
        source, target = K[mine[i]], square[i]
        for k in range(n):
            target[k] = source[at[k]]
    own = np.arange(n)
    part = DualProblem(
        problem.p[active], problem.lo[active], problem.hi[active],
        problem.start[active], own, problem.group[active],
    )  # fmt: skip
    part_beta, part_f = beta[active], f[row]
    n_iter, gap, stalled = _take_steps(
        _filled(square), _one_stretch(part.group), part, part_beta, part_f, tol,
        max_iter, stop,
    )  # fmt: skip
    for i in range(n):
        change = part_beta[i] - beta[active[i]]
        beta[active[i]] = part_beta[i]
        if change != 0.0:
            source = K[mine[i]]
            for s in range(span.shape[0]):
                into = f[span[s, 0] : span[s, 0] + span[s, 1]]
                values = source[span[s, 2] : span[s, 2] + span[s, 1]]
                for k in range(len(into)):
                    into[k] += change * np.float64(values[k])
    return n_iter, gap <= tol, stalled


@jit
def _one_stretch(group):
    """Return the layout of variables that are the rows of a matrix, in their order."""
    m = len(group)
    piece = np.empty((m, 4), dtype=np.int64)
    group_start = np.empty(m + 1, dtype=np.int64)
    n_pieces = n_groups = 0
    for v in range(m):
        is_new = v == 0 or group[v] != group[v - 1]
        if is_new:
            group_start[n_groups] = n_pieces
            n_groups += 1
        if is_new or piece[n_pieces - 1, 1] == PIECE:
            piece[n_pieces, :] = (v, 0, v, v)
            n_pieces += 1
        piece[n_pieces - 1, 1] += 1
    group_start[n_groups] = n_pieces
    span = np.array([[0, m, 0]])
    return Layout(piece[:n_pieces].copy(), span, group_start[: n_groups + 1].copy())


def most_active(m: int, shrinking: bool, room: int | None, dtype: np.dtype) -> int:
    """Return how many of ``m`` variables may be copied to shrink a problem; 0 for none.

    The copy takes at most ``room`` bytes.
    """
    if not shrinking or m < SHRINK_FROM:
        return 0
    return (
        m // 2 if room is None else min(m // 2, isqrt(max(room, 0) // dtype.itemsize))
    )


def solve_whole(
    K: NDArray | Rows,
    where: Layout,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    stop: NDArray,
    shrinking: bool = True,
    room: int | None = None,
) -> Outcome:
    """Solve a problem on a Gram matrix in memory; ``beta`` and ``f`` change in place.

    With ``shrinking``, the problem may be solved on a copy of a part of the matrix; the
    copy takes at most ``room`` bytes.
    """
    most = most_active(len(beta), shrinking, room, K.dtype)
    run: Any = shrink_and_solve
    if not isinstance(K, Rows):
        run, K = minimise_whole, same_type(K)
    return Outcome(*run(K, where, problem, beta, f, tol, max_iter, stop, most))


def solve_and_polish(
    K: NDArray | Rows,
    where: Layout,
    problem: DualProblem,
    beta: NDArray,
    f: NDArray,
    tol: float,
    max_iter: int,
    stop: NDArray,
    shrinking: bool,
    room: int | None = None,
) -> Outcome:
    """Solve a task; if it is small and in double precision, solve it more exactly.

    This takes hardly any time, and makes the solution independent of the rounding of
    kernel values, which in small problems can decide between solutions that are equally
    good. Shrinking copies at most ``room`` bytes of the matrix.
    """
    if len(beta) > POLISHED or K.dtype != np.float64:
        return solve_whole(
            K, where, problem, beta, f, tol, max_iter, stop, shrinking, room
        )
    if isinstance(K, Rows):
        fill_rows(K, np.arange(len(K.square)))
        K = K.square
    K = same_type(K)
    return Outcome(*_solve_and_polish(K, where, problem, beta, f, tol, max_iter, stop))


@jit
def _solve_and_polish(K, where, problem, beta, f, tol, max_iter, stop):
    n_iter, gap, stalled = minimise_pairs(
        K, where, problem, beta, f, tol, max_iter, stop
    )
    if gap > tol:
        return n_iter, gap, stalled
    old_beta, old_f = beta.copy(), f.copy()
    steps = min(max_iter - n_iter, POLISHING_STEPS * len(beta))
    more, _, _ = minimise_pairs(K, where, problem, beta, f, POLISH * tol, steps, stop)
    n_iter += more
    # The rounding errors of many steps add up, but a product has hardly any. If the
    # errors were larger than the tolerance, a few more steps are enough.
    multiply(K, where.span, problem.row, beta, f)
    more, last_gap, last_stalled = minimise_pairs(
        K, where, problem, beta, f, tol, max_iter - n_iter, stop
    )
    n_iter += more
    if last_gap <= tol:
        return n_iter, last_gap, last_stalled
    # Steps always decrease the objective, but not the gap.
    beta[:] = old_beta
    f[:] = old_f
    return n_iter, gap, stalled


@jit
def multiply(K: NDArray, span: NDArray, row: NDArray, beta: NDArray, f: NDArray):
    """Write ``f = K beta`` by Gram row; the rows lie in the matrix as ``span`` says."""
    by_row = np.zeros(len(f))
    for v in range(len(beta)):
        by_row[row[v]] += beta[v]
    for s in range(len(span)):
        r0, length, c0 = span[s, 0], span[s, 1], span[s, 2]
        for r in range(length):
            total = 0.0
            for t in range(len(span)):
                q0, width, d0 = span[t, 0], span[t, 1], span[t, 2]
                values, weights = K[c0 + r, d0 : d0 + width], by_row[q0 : q0 + width]
                for k in range(width):
                    total += values[k] * weights[k]
            f[r0 + r] = total
