"""What the compiled functions of `mercer.engines.cuda` do, in NumPy.

A twin gets the arguments of its function: the grid, the block, then arrays, which it
changes in place, and numbers. It computes the same values in the same order wherever
the order matters; how the work is divided among threads leaves no trace in results.
Where there is a card, both must agree; where there is none, fits run through the twins.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cuda.sources import (
    GOES_ON,
    NOBODY,
    OF_GRADIENTS,
    SOLVED,
    STALLED,
    STEMS,
    typed,
)

LEAST_CURVATURE = 1e-12


def take_pair_steps(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    gram: NDArray,
    leading: int,
    apart: int,
    active: NDArray,
    first_group: NDArray,
    group_start: NDArray,
    column: NDArray,
    diagonal: NDArray,
    lo: NDArray,
    hi: NDArray,
    beta: NDArray,
    gradient: NDArray,
    ways: NDArray,
    tolerance: NDArray,
    most_steps: NDArray,
    steps: NDArray,
    gap: NDArray,
    state: NDArray,
) -> None:
    """Take pair steps on the active problems, each on its own."""
    del block, ways
    flat = gram.reshape(-1)
    for b in active[: grid[0]]:
        starts = group_start[first_group[b] : first_group[b + 1] + 1]
        own = slice(starts[0], starts[-1])
        begin = int(b) * int(apart)
        columns = column[own].astype(np.int64)

        def row(v: int, begin: int = begin, columns: NDArray = columns) -> NDArray:
            """Return the kernel values of a variable with all of this problem."""
            return flat[begin + int(columns[v]) * int(leading) + columns]

        taken, gap[b], state[b] = _steps_on_one(
            row, starts - starts[0], diagonal[own], lo[own], hi[own], beta[own],
            gradient[own], float(tolerance[b]), int(most_steps[b]),
        )  # fmt: skip
        steps[b] += taken


def _steps_on_one(
    row: Callable[[int], NDArray],
    starts: NDArray,
    diagonal: NDArray,
    lo: NDArray,
    hi: NDArray,
    beta: NDArray,
    G: NDArray,
    tolerance: float,
    most_steps: int,
) -> tuple[int, float, int]:
    """Take steps on one problem; return their number, the gap, and the state."""
    taken = 0
    single = diagonal.astype(np.float32)
    while True:
        violation, i, j, begin, end = -np.inf, 0, 0, 0, 0
        for first, last in pairwise(starts):
            g = G[first:last]
            grows = np.where(beta[first:last] < hi[first:last], -g, np.nan)
            shrinks = np.where(beta[first:last] > lo[first:last], g, np.nan)
            up, down = _first_largest(grows), _first_largest(shrinks)
            if up >= 0 and down >= 0 and grows[up] + shrinks[down] > violation:
                violation = grows[up] + shrinks[down]
                i, j, begin, end = first + up, first + down, first, last
        if not violation > tolerance:
            return taken, violation, SOLVED
        if taken >= most_steps:
            return taken, violation, GOES_ON

        K_i = row(i)
        part = slice(begin, end)
        rise = ((G[part] - G[i]) * (1.0 / violation)).astype(np.float32)
        curvature = single[i] + single[part]
        curvature -= np.float32(2.0) * K_i[part].astype(np.float32)
        gain = rise * rise / np.maximum(curvature, np.float32(LEAST_CURVATURE))
        gain[~((beta[part] > lo[part]) & (rise > 0.0) & (gain > 0.0))] = np.nan
        gain[i - begin] = np.nan
        best = _first_largest(gain)
        if best >= 0:
            j = begin + best

        K_j = row(j)
        a = float(diagonal[i]) + float(diagonal[j]) - 2.0 * float(K_i[j])
        room_i, room_j = hi[i] - beta[i], beta[j] - lo[j]
        delta = (G[j] - G[i]) / max(a, LEAST_CURVATURE)
        delta = np.fmin(delta, np.fmin(room_i, room_j))
        beta_i = hi[i] if delta >= room_i else beta[i] + delta
        beta_j = lo[j] if delta >= room_j else beta[j] - delta
        if beta_i == beta[i] and beta_j == beta[j]:
            return taken, violation, STALLED
        beta[i], beta[j] = beta_i, beta_j
        G += delta * (K_i.astype(np.float64) - K_j.astype(np.float64))
        taken += 1


def _first_largest(values: NDArray) -> int:
    """Return where the largest value is that is a number; -1 if there is none."""
    if not len(values):
        return -1
    known = np.where(np.isnan(values), -np.inf, values)
    at = int(known.argmax())
    if np.isnan(values[at]):  # all numbers are minus infinity, or there are none
        candidates = np.flatnonzero(~np.isnan(values))
        return int(candidates[0]) if len(candidates) else -1
    return at


def find_extremes(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    f: NDArray,
    row: NDArray,
    p: NDArray,
    beta: NDArray,
    lo: NDArray,
    hi: NDArray,
    group_start: NDArray,
    found: NDArray,
) -> None:
    """Find extremes of gradients; blocks look at variables in turn."""
    G = f[row] + p
    out = found.reshape(grid[1], grid[0], 4)
    for g, (first, last) in enumerate(pairwise(group_start)):
        for x in range(grid[0]):
            out[g, x] = np.inf, NOBODY, -np.inf, NOBODY
            of_block = (np.arange(last - first) // block[0]) % grid[0] == x
            own = first + np.flatnonzero(of_block)
            # Infinite on the wrong side, a gradient makes no candidate.
            grows = (beta[own] < hi[own]) & (G[own] < np.inf)
            shrinks = (beta[own] > lo[own]) & (G[own] > -np.inf)
            up = _first_largest(np.where(grows, -G[own], np.nan))
            down = _first_largest(np.where(shrinks, G[own], np.nan))
            if up >= 0:
                out[g, x, :2] = G[own[up]], own[up]
            if down >= 0:
                out[g, x, 2:] = G[own[down]], own[down]


def rank_violators(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    f: NDArray,
    row: NDArray,
    p: NDArray,
    beta: NDArray,
    lo: NDArray,
    hi: NDArray,
    group_start: NDArray,
    extremes: NDArray,
    member_in: NDArray,
    round_: int,
    out: NDArray,
    m: int,
) -> None:
    """Write violations, times -1."""
    G = f[row] + p
    least, most = np.repeat(extremes.reshape(-1, 2), np.diff(group_start), axis=0).T
    counts = ~np.isnan(G) & (member_in != round_)
    out[:m] = np.where(counts & (beta < hi), G - most, np.inf)
    out[m:] = np.where(counts & (beta > lo), least - G, np.inf)


def select_strongest(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    ranked: NDArray,
    m: int,
    tolerance: float,
    largest: float,
    count: int,
    most: int,
    found: NDArray,
) -> None:
    """Find the strongest violators of both sides; which more than `count` is open."""
    for row, out in zip(ranked.reshape(2, m), found.reshape(2, -1), strict=True):
        order = np.lexsort((np.arange(m), row))
        order = order[-row[order] > tolerance][:count]
        out[0] = len(order)
        pairs = out[1 : 1 + 2 * len(order)].reshape(-1, 2)
        pairs[:, 0], pairs[:, 1] = order, -row[order]


def load_members(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    members: NDArray,
    count: int,
    f: NDArray,
    row: NDArray,
    p: NDArray,
    beta: NDArray,
    lo: NDArray,
    hi: NDArray,
    diagonal: NDArray,
    member_in: NDArray,
    round_: int,
    own_lo: NDArray,
    own_hi: NDArray,
    own_beta: NDArray,
    own_gradient: NDArray,
    own_diagonal: NDArray,
) -> None:
    """Copy what steps need of members."""
    v = members[:count]
    member_in[v] = round_
    own_lo[:count], own_hi[:count], own_beta[:count] = lo[v], hi[v], beta[v]
    own_gradient[:count] = f[row[v]] + p[v]
    own_diagonal[:count] = diagonal[row[v]]


def store_members(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    members: NDArray,
    count: int,
    own_beta: NDArray,
    beta: NDArray,
) -> None:
    """Give members their coefficients."""
    beta[members[:count]] = own_beta[:count]


def add_rows(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    pool: NDArray,
    leading: int,
    slot: NDArray,
    weight: NDArray,
    count: int,
    column: NDArray,
    f: NDArray,
    length: int,
) -> None:
    """Add weighted rows of a pool to ``f``."""
    flat, columns = pool.reshape(-1), column[:length].astype(np.int64)
    parts = block[1]
    sums = np.zeros((parts, length))
    for k in range(count):
        values = flat[int(slot[k]) * int(leading) + columns]
        sums[k % parts] += weight[k] * values.astype(np.float64)
    total = np.zeros(length)
    for part in sums:
        total += part
    f[:length] += total


def gather(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    source: NDArray,
    leading: int,
    rows: NDArray,
    columns: NDArray,
    out: NDArray,
    out_leading: int,
    m: int,
    n: int,
) -> None:
    """Copy some rows and columns."""
    flat, target = source.reshape(-1), out.reshape(-1)
    for r in range(m):
        first, place = int(rows[r]) * int(leading), r * int(out_leading)
        target[place : place + n] = flat[first + columns[:n].astype(np.int64)]


def store_rows(
    grid: tuple[int, ...],
    block_shape: tuple[int, ...],
    block: NDArray,
    slot: NDArray,
    own: NDArray,
    diagonal: NDArray,
    pool: NDArray,
    leading: int,
    m: int,
    n: int,
) -> None:
    """Copy rows to a pool, with the values of the diagonal in their places."""
    values = block.reshape(m, n).copy()
    values[np.arange(m), own[:m]] = diagonal[own[:m]]
    flat = pool.reshape(-1)
    for r in range(m):
        place = int(slot[r]) * int(leading)
        flat[place : place + n] = values[r]


def gaussian_in_place(
    grid: tuple[int, ...],
    block: tuple[int, ...],
    dots: NDArray,
    left_norms: NDArray,
    right_norms: NDArray,
    gamma: float,
    m: int,
    n: int,
) -> None:
    """Turn products into Gaussian values."""
    products = dots.reshape(m, n)
    kind = products.dtype.type
    distance = left_norms[:, None] + right_norms - kind(2) * products
    distance[distance < 0] = 0
    np.exp(kind(-gamma) * distance, out=products)


def _sums(term: Callable[[NDArray, NDArray], NDArray]) -> Callable[..., None]:
    """Return the twin of a function that sums terms over columns."""

    def twin(
        grid: tuple[int, ...],
        block: tuple[int, ...],
        X: NDArray,
        Z: NDArray,
        out: NDArray,
        m: int,
        n: int,
        d: int,
    ) -> None:
        left, right = X.reshape(m, d), Z.reshape(n, d)
        sums = out.reshape(m, n)
        sums[:] = 0
        side = block[0]
        for first in range(0, d, side):
            part = np.zeros((m, n), dtype=X.dtype)
            for k in range(first, min(first + side, d)):
                part += term(left[:, k, None], right[:, k])
            sums += part

    return twin


def _chi2(x: NDArray, z: NDArray) -> NDArray:
    total = x + z
    positive = total > 0
    return np.where(positive, (x - z) ** 2 / np.where(positive, total, 1), 0)


_TWINS: dict[str, Callable[..., None]] = {
    "take_pair_steps": take_pair_steps,
    "find_extremes": find_extremes,
    "rank_violators": rank_violators,
    "select_strongest": select_strongest,
    "load_members": load_members,
    "store_members": store_members,
    "add_rows": add_rows,
    "gather": gather,
    "store_rows": store_rows,
    "gaussian_in_place": gaussian_in_place,
    "manhattan": _sums(lambda x, z: np.abs(x - z)),
    "minima": _sums(np.minimum),
    "squared_differences": _sums(lambda x, z: (x - z) ** 2),
    "chi2": _sums(_chi2),
}
#: the twins by the names of their functions
TWINS: dict[str, Callable[..., Any]] = {
    typed(stem, dtype): _TWINS[stem] for stem in STEMS for dtype in ("f4", "f8")
} | {typed(stem, np.float64): _TWINS[stem] for stem in OF_GRADIENTS}
