"""Products of kernel values with coefficients on a card, in double precision."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cpu.decompose import Task
from mercer.engines.cuda.card import Card, to_card_together
from mercer.engines.cuda.pair import parts
from mercer.engines.cuda.sources import grid_of, typed
from mercer.engines.cuda.values import Values, stretches

__all__ = ["add_rows", "compute_f", "gather", "product_with"]


def add_rows(
    card: Card, pool: Any, slot: NDArray, weight: NDArray, column: Any, f: Any
) -> None:
    """Add weighted rows of a matrix on the card to ``f``.

    ``column`` and ``f`` are on the card; ``slot`` and ``weight`` are in the main
    memory.
    """
    length = len(f)
    if not (len(slot) and length):
        return
    function = card.function(typed("add_rows", pool.dtype))
    slots, weights = to_card_together(
        card, slot.astype(np.int32), weight.astype(np.float64)
    )
    function(
        *grid_of("add_rows", length),
        (
            pool, np.int64(pool.shape[1]), slots, weights, np.int32(len(slot)), column,
            f, np.int32(length),
        ),
    )  # fmt: skip


def gather(
    card: Card, source: Any, rows: NDArray, columns: NDArray, out: Any = None
) -> Any:
    """Return ``source[rows][:, columns]`` of a matrix on the card, of any size.

    ``rows`` and ``columns`` are in the main memory. With ``out``, a square array on the
    card, its first rows and columns are filled.
    """
    m, n = len(rows), len(columns)
    if out is None:
        out = card.xp.empty((m, n), dtype=source.dtype)
    if m and n:
        places = to_card_together(
            card, *(index.astype(np.int32) for index in (rows, columns))
        )
        function = card.function(typed("gather", source.dtype))
        function(
            *grid_of("gather", m, n),
            (
                source, np.int64(source.shape[1]), *places, out,
                np.int64(out.shape[1]), np.int32(m), np.int32(n),
            ),
        )  # fmt: skip
    return out


def product_with(card: Card, matrix: Any, rows: NDArray, weight: NDArray) -> NDArray:
    """Return ``matrix[rows][:, rows] @ weight`` for a matrix on the card."""
    used = np.flatnonzero(weight)
    if not len(used):
        return np.zeros(len(rows))
    sums = card.xp.zeros(len(rows), dtype=np.float64)
    column = card.to_card(rows.astype(np.int32))
    add_rows(card, matrix, rows[used], weight[used], column, sums)
    return card.to_host(sums)


def compute_f(values: Values, task: Task, matrix: Any, part_bytes: int = 0) -> None:
    """Compute ``f`` of a task from its coefficients, in the precision of the values.

    ``matrix`` is the whole matrix on the card; if it is None, rows are computed, in
    parts of at most so many bytes.
    """
    card = values.card
    by_row = np.bincount(task.problem.row, task.beta, len(task.f))
    used = np.flatnonzero(by_row)
    own = task.gram_rows(np.arange(len(task.f)))
    if matrix is not None:
        task.f[:] = product_with(card, matrix, own, by_row)
        return
    f = card.xp.zeros(len(own), dtype=np.float64)
    column = card.xp.arange(len(own), dtype=np.int32)
    for part in parts(len(used), len(own) * values.dtype.itemsize, part_bytes):
        some = used[part]
        block = values.block(own[some], stretches(task.columns))
        add_rows(card, block, np.arange(len(some)), by_row[some], column, f)
    task.f[:] = card.to_host(f)
