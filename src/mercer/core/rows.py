"""Copy, mirror and add tiles and rows of a Gram matrix."""

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = [
    "add_rows",
    "close_gaps",
    "extend_square",
    "gather_square",
    "mirror",
    "scatter_rows",
]

# Number of columns whose sums stay in the first-level cache while rows are added.
STRIP = 2048
# Side length of the squares in which a tile is transposed.
SQUARE = 32


@jit
def scatter_rows(values: NDArray, pool: NDArray, slot: NDArray, column: int):
    """Write the rows of a tile (m, w) into rows ``slot`` of ``pool`` at ``column``."""
    width = values.shape[1]
    for i in range(len(slot)):
        source = values[i]
        target = pool[slot[i], column : column + width]
        for k in range(width):
            target[k] = source[k]


@jit
def mirror(values: NDArray, matrix: NDArray, row: int, column: int):
    """Write a tile (m, w), and its transpose, into a symmetric matrix.

    The tile begins at (row, column) with column >= row.  If it crosses the diagonal,
    the values above the diagonal are used for both triangles.
    """
    m, w = values.shape
    for i in range(m):
        source = values[i]
        target = matrix[row + i, column : column + w]
        for k in range(w):
            target[k] = source[k]
    for i0 in range(0, m, SQUARE):
        i1 = min(i0 + SQUARE, m)
        for k0 in range(0, w, SQUARE):
            for k in range(k0, min(k0 + SQUARE, w)):
                last = min(i1, column + k - row)
                if last > i0:
                    target = matrix[column + k, row + i0 : row + last]
                    for i in range(last - i0):
                        target[i] = values[i0 + i, k]


@jit
def close_gaps(matrix: NDArray, target: NDArray, source: NDArray, n: int):
    """Move rows and columns ``source`` of ``matrix[:n, :n]`` to ``target``.

    No index is both a target and a source, so that doing it again changes nothing.
    """
    for k in range(len(target)):
        old = matrix[target[k], :n]
        new = matrix[source[k], :n]
        for c in range(n):
            old[c] = new[c]
    for r in range(n):
        row = matrix[r]
        for k in range(len(target)):
            row[target[k]] = row[source[k]]


@jit
def add_rows(pool: NDArray, slot: NDArray, weight: NDArray, column: int, f: NDArray):
    """Add ``weight[r] * pool[slot[r], column + c]`` to ``f[c]`` for all rows r.

    Four rows are added at a time, strip by strip, so that each sum is loaded and stored
    a quarter as often.  The order of additions does not depend on how callers split
    ``f``.
    """
    n_rows = len(slot)
    for c0 in range(0, len(f), STRIP):
        c1 = min(c0 + STRIP, len(f))
        part = f[c0:c1]
        first, last = column + c0, column + c1
        r = 0
        while r + 4 <= n_rows:
            k0 = pool[slot[r], first:last]
            k1 = pool[slot[r + 1], first:last]
            k2 = pool[slot[r + 2], first:last]
            k3 = pool[slot[r + 3], first:last]
            w0, w1, w2, w3 = weight[r], weight[r + 1], weight[r + 2], weight[r + 3]
            for c in range(len(part)):
                part[c] += (w0 * np.float64(k0[c]) + w1 * np.float64(k1[c])) + (
                    w2 * np.float64(k2[c]) + w3 * np.float64(k3[c])
                )
            r += 4
        while r < n_rows:
            k0 = pool[slot[r], first:last]
            w0 = weight[r]
            for c in range(len(part)):
                part[c] += w0 * np.float64(k0[c])
            r += 1


@jit
def extend_square(
    pool: NDArray,
    slot: NDArray,
    new: NDArray,
    columns: NDArray,
    position: NDArray,
    square: NDArray,
):
    """Fill the rows and columns of new members of a symmetric matrix.

    Row ``new[i]`` of ``square`` comes from ``pool[slot[i]]``: its entry ``position[k]``
    is the entry in column ``columns[k]`` of that row.  The columns ``new[i]`` are
    filled by symmetry.
    """
    for i in range(len(new)):
        source = pool[slot[i]]
        target = square[new[i]]
        for k in range(len(columns)):
            target[position[k]] = source[columns[k]]
    for k0 in range(0, len(columns), SQUARE):
        k1 = min(k0 + SQUARE, len(columns))
        for i in range(len(new)):
            source = square[new[i]]
            for k in range(k0, k1):
                square[position[k], new[i]] = source[position[k]]


@jit
def gather_square(
    pool: NDArray, slot: NDArray, columns: NDArray, first: int, out: NDArray
):
    """Set ``out[i, first + k] = pool[slot[i], columns[k]]``."""
    for i in range(len(slot)):
        source = pool[slot[i]]
        target = out[i, first : first + len(columns)]
        for k in range(len(target)):
            target[k] = source[columns[k]]
