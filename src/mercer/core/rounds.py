r"""A round of the working-set solver for one problem, in compiled code.

A round brings the Gram matrix of the working set up to date, takes pair steps on it,
updates :math:`f = K\beta` for all samples, and chooses the next working set.  Threads
that each do this for another problem need Python only in between.  Where problems are
few, the first and the third step are done in parts, by several threads; the result is
the same to the last bit.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.choice import Room, choose_set
from mercer.core.jit import jit
from mercer.core.problem import DualProblem, Layout, cut_pieces
from mercer.core.smo import minimise_pairs
from mercer.core.tiles import add_rows, fill_columns, fill_rows

__all__ = [
    "Choice",
    "Moves",
    "Place",
    "RowTable",
    "State",
    "choose_next",
    "extend_square",
    "gather_missing",
    "improve_set",
    "play_round",
    "update_f",
]

# More rounds than a problem takes, so that two of them fit into one number.
MOST_ROUNDS = 2.0**26


class RowTable(NamedTuple):
    """Where rows of the Gram matrix lie, for each block of columns.

    Row r of block b begins at ``pool[start[b] + slot[which[b], r] * width[b]]``; the
    block begins with column ``column[b]`` of that row.
    """

    pool: NDArray
    start: NDArray
    width: NDArray
    slot: NDArray
    which: NDArray
    column: NDArray
    capacity: int  #: rows for which each block has room


class Place(NamedTuple):
    """Which blocks a problem is on."""

    blocks: NDArray
    first: NDArray  #: the Gram row with which each block begins
    offsets: NDArray  #: the problem's own row with which it begins, then the end


class State(NamedTuple):
    """A solution on the way, and when each variable moved last and came last."""

    beta: NDArray
    f: NDArray
    moved_in: NDArray
    came_in: NDArray
    room: Room  #: memory for choices


class Moves(NamedTuple):
    """What pair steps have changed."""

    n_iter: int
    rows: NDArray  #: the problem's own rows, sorted
    weight: NDArray  #: the change of beta on each row


class Choice(NamedTuple):
    """The next working set, if any variable was chosen."""

    gap: float
    members: NDArray
    new: NDArray  #: positions of new members
    n_leaving: int
    n_chosen: int
    rows: NDArray  #: Gram rows of the members


@jit
def _gram_row(place, row):
    """Turn one of the problem's own row numbers into one of the Gram matrix."""
    b = 0
    while place.offsets[b + 1] <= row:
        b += 1
    return row - place.offsets[b] + place.first[b]


@jit
def _store(table, block):
    """Return the rows of a block as a matrix."""
    start, width = table.start[block], table.width[block]
    return table.pool[start : start + table.capacity * width].reshape(
        table.capacity, width
    )


@jit
def _slots(table, place, block, rows):
    """Return in which rows of the store of a block some rows of the problem are."""
    own = table.slot[table.which[block]]
    slots = np.empty(len(rows), dtype=np.int64)
    for k in range(len(rows)):
        slots[k] = own[_gram_row(place, rows[k])]
    return slots


@jit
def extend_square(
    table: RowTable,
    place: Place,
    row: NDArray,
    members: NDArray,
    new: NDArray,
    first: int,
    stop: int,
    square: NDArray,
):
    """Bring the matrix of a working set up to date for new members first to stop.

    Parts do not touch each other's values, so that several can be done at a time.
    """
    rows = row[members]
    some = new[first:stop]
    by_column = np.argsort(rows)
    begin = 0
    for b in range(len(place.blocks)):
        block = place.blocks[b]
        end = begin
        while end < len(rows) and rows[by_column[end]] < place.offsets[b + 1]:
            end += 1
        position = by_column[begin:end]
        columns = rows[position] - place.offsets[b] + table.column[block]
        slots = _slots(table, place, block, rows[some])
        fill_rows(_store(table, block), slots, some, columns, position, square)
        begin = end
    is_old = np.ones(len(rows), dtype=np.bool_)
    is_old[new] = False
    fill_columns(some, np.flatnonzero(is_old), square)


@jit
def improve_set(
    problem: DualProblem,
    state: State,
    members: NDArray,
    square: NDArray,
    tol: float,
    max_iter: int,
    n_rounds: int,
    stop: NDArray,
):
    """Take pair steps on a working set; return the fields of :class:`Moves`."""
    m = len(members)
    rows = problem.row[members]
    part = DualProblem(
        problem.p[members],
        problem.lo[members],
        problem.hi[members],
        problem.start[members],
        np.arange(m),
        problem.group[members],
    )
    span = np.zeros((1, 3), dtype=np.int64)
    span[0, 1] = m
    piece, span, group_start = cut_pieces(part.row, part.group, span)
    before = state.beta[members]
    beta, f = before.copy(), state.f[rows]
    where = Layout(piece, span, group_start)
    n_iter, _, _ = minimise_pairs(square, where, part, beta, f, tol, max_iter, stop)
    # Changes of variables that share a row are added up.
    moved = np.empty(m, dtype=np.int64)
    change = np.empty(m)
    n_moved = 0
    for k in np.argsort(rows):
        if beta[k] == before[k]:
            continue
        state.beta[members[k]] = beta[k]
        state.moved_in[members[k]] = n_rounds
        if n_moved > 0 and moved[n_moved - 1] == rows[k]:
            change[n_moved - 1] += beta[k] - before[k]
        else:
            moved[n_moved] = rows[k]
            change[n_moved] = beta[k] - before[k]
            n_moved += 1
    return n_iter, moved[:n_moved].copy(), change[:n_moved].copy()


@jit
def update_f(
    table: RowTable,
    place: Place,
    moved: NDArray,
    weight: NDArray,
    first: int,
    stop: int,
    f: NDArray,
):
    """Add the changes of some rows to ``f[first:stop]``."""
    for b in range(len(place.blocks)):
        block = place.blocks[b]
        a, e = max(first, place.offsets[b]), min(stop, place.offsets[b + 1])
        if a < e:
            slots = _slots(table, place, block, moved)
            column = table.column[block] + a - place.offsets[b]
            add_rows(_store(table, block), slots, weight, column, f[a:e])


@jit
def choose_next(
    place: Place,
    problem: DualProblem,
    state: State,
    members: NDArray,
    n_rounds: int,
    size: int,
    fresh: int,
    tol: float,
):
    """Choose the working set of the next round; return the fields of :class:`Choice`.

    Members that stay keep their position, so that their part of the square Gram matrix
    stays too; new ones take the places of those that leave, or come last.
    """
    # Members that moved last stay, and of those the ones that came last.
    standing = state.moved_in[members] * MOST_ROUNDS + state.came_in[members]
    chosen, gap = choose_set(
        problem, state.beta, state.f, members, standing, size, fresh, tol, state.room
    )
    is_leaving = ~chosen[members]
    leaving = np.flatnonzero(is_leaving)
    after_all = np.flatnonzero(chosen)
    is_member = state.room.is_out  # which the choice does not need any more
    is_member[after_all] = False
    is_member[members] = True
    coming = after_all[~is_member[after_all]]
    for t in coming:
        state.came_in[t] = n_rounds + 1
        state.moved_in[t] = n_rounds
    if problem.group[len(problem.group) - 1] > 0:
        # Groups must stay together, so members cannot keep their positions.
        after = after_all
        new = np.arange(len(after))
    else:
        old = len(members)
        n_added = max(0, len(coming) - len(leaving))
        new = np.empty(len(leaving) + n_added, dtype=np.int64)
        new[: len(leaving)] = leaving
        new[len(leaving) :] = np.arange(old, old + n_added)
        after = np.empty(old + n_added, dtype=np.int64)
        after[:old] = members
        if len(coming) == len(new):
            after[new] = coming
    rows = np.empty(len(after), dtype=np.int64)
    for k in range(len(after)):
        rows[k] = _gram_row(place, problem.row[after[k]])
    return gap, after, new, len(leaving), len(after_all), rows


@jit
def play_round(
    table: RowTable,
    place: Place,
    problem: DualProblem,
    state: State,
    members: NDArray,
    new: NDArray,
    square: NDArray,
    inner_tol: float,
    max_iter: int,
    n_rounds: int,
    size: int,
    fresh: int,
    tol: float,
    stop: NDArray,
):
    """Do all steps of a round; return the fields of two NamedTuples."""
    extend_square(table, place, problem.row, members, new, 0, len(new), square)
    n_iter, moved, weight = improve_set(
        problem, state, members, square, inner_tol, max_iter, n_rounds, stop
    )
    update_f(table, place, moved, weight, 0, len(state.f), state.f)
    choice = choose_next(place, problem, state, members, n_rounds, size, fresh, tol)
    return (n_iter, moved, weight), choice


@jit
def gather_missing(
    rows: NDArray,
    slot: NDArray,
    used_at: NDArray,
    clock: int,
    found: NDArray,
    n_found: int,
):
    """Note that rows are in use; add those that have no slot to ``found``.

    Their slot becomes -2, so that they are added once.  Return how many there are.
    """
    for r in rows:
        if slot[r] >= 0:
            used_at[slot[r]] = clock
        elif slot[r] == -1:
            slot[r] = -2
            found[n_found] = r
            n_found += 1
    return n_found
