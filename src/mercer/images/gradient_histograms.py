r"""Histograms of oriented gradients of a batch of images.

The gradient at a pixel is the difference of its two neighbours in each direction, 0 in
the first and last row (column), taken from the channel in which it is longest.  Each
cell of pixels has a histogram of angles, to which a gradient adds its length.  A hard
vote goes to the one bin of the one cell that hold the gradient.  A soft vote is shared
among the two nearest bins and the four nearest cells, with weights that fall linearly
with the distance from their centres.  Blocks of cells, one cell apart, are then divided
by their own length:

.. math::

    \frac{v}{\sum_k |v_k| + \epsilon}, \qquad
    \frac{v}{\sqrt{\sum_k v_k^2 + \epsilon^2}}, \qquad \epsilon = 10^{-5}.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["L1", "L1_SQRT", "L2", "L2_HYS", "NONE", "Grid", "hog"]

L1, L1_SQRT, L2, L2_HYS, NONE = range(5)
EPSILON = 1e-5
# L2-Hys clips the entries of a block at this value before it divides by the length a
# second time.
CEILING = 0.2
DEGREES = 180.0 / math.pi
# The angle of a slope of 1/2.
HALF_SLOPE = DEGREES * math.atan(0.5)
TINY = np.finfo(np.float64).tiny
# Angles closer than this to the edge of a bin, in bins, are computed again exactly.
NEAR = 1e-6


class Grid(NamedTuple):
    """Sizes of cells (in pixels) and blocks (in cells), and how gradients vote."""

    cell_rows: int
    cell_columns: int
    block_rows: int
    block_columns: int
    bins: int
    turn: float  #: degrees that the bins cover: 180 or 360
    is_soft: bool
    norm: int


@jit
def hog(images: NDArray, grid: Grid, out: NDArray):
    """Write the features of ``images`` (n, h, w, c) into ``out`` (n, n_features).

    The features are ordered by block row, block column, cell row and column within the
    block, and bin.  Both arrays are C-contiguous and of one dtype, float32 or float64.
    """
    h, w = images.shape[1:3]
    n_rows, n_columns = h // grid.cell_rows, w // grid.cell_columns
    cells = np.empty((n_rows, n_columns, grid.bins))
    used = h if grid.is_soft else n_rows * grid.cell_rows
    line = np.empty((4, w))
    for i in range(len(images)):
        cells[:] = 0.0
        for r in range(used):
            _gradients(images[i], r, line)
            _angles(line, grid.turn)
            if grid.is_soft:
                _vote_softly(line, r, grid, cells)
            else:
                _vote(line, grid, cells[r // grid.cell_rows])
        _write_blocks(cells, grid, out[i])


@jit
def _gradients(image, r, line):
    """Write the gradients of row ``r``, down and to the right, and their lengths.

    Differences across the border are 0.  Differences are taken in the dtype of the
    image; the rest is computed in double precision.
    """
    h, _, n_channels = image.shape
    step = 1 if 0 < r < h - 1 else 0
    above, middle, below = image[r - step], image[r], image[r + step]
    if n_channels > 1:
        _strongest(above, middle, below, line)
    else:
        _only(above.ravel(), middle.ravel(), below.ravel(), line)


@jit
def _only(above, middle, below, line):
    """Write the gradients of a grey row."""
    down, right, length = line[0], line[1], line[2]
    w = len(length)
    for c in range(w):
        down[c] = below[c] - above[c]
    right[0] = right[w - 1] = 0.0
    before, after, inner = middle[: max(w - 2, 0)], middle[2:], right[1:]
    for c in range(len(before)):
        inner[c] = after[c] - before[c]
    for c in range(w):
        length[c] = math.sqrt(right[c] * right[c] + down[c] * down[c])


@jit
def _strongest(above, middle, below, line):
    """Write the longest gradient of all channels for each pixel of a row.

    Among channels with equal lengths the first is taken.
    """
    down, right, length = line[0], line[1], line[2]
    w, n_channels = middle.shape
    for c in range(w):
        down[c] = right[c] = length[c] = 0.0
        step = 1 if 0 < c < w - 1 else 0
        for k in range(n_channels):
            y = np.float64(below[c, k] - above[c, k])
            x = np.float64(middle[c + step, k] - middle[c - step, k])
            # The length is rounded to the dtype of the image, so that channels with
            # equal lengths compare as equal.
            size = np.float64(middle.dtype.type(math.hypot(y, x)))
            if size > length[c]:
                down[c], right[c], length[c] = y, x, size


@jit
def _angles(line, turn):
    """Write the angles of the gradients of a row, in degrees from 0 to ``turn``.

    The angles have errors below 1e-9 degrees, and are exact along the axes.
    """
    down, right, angles = line[0], line[1], line[3]
    for c in range(len(angles)):
        x, y = abs(right[c]), abs(down[c])
        t = min(x, y) / max(max(x, y), TINY)
        angle = _arctangent(t)
        angle = 90.0 - angle if y > x else angle
        angle = 180.0 - angle if right[c] < 0.0 else angle
        angles[c] = turn - angle if down[c] < 0.0 else angle


@jit
def _arctangent(t):
    """Return the angle of a slope t between 0 and 1, in degrees.

    For t above 1/4 it is the angle of the slope 1/2 plus the angle of the slope
    u = (t - 1/2) / (1 + t/2).  Since u is small, a short power series is enough.
    """
    u = (2.0 * t - 1.0) / (2.0 + t) if t > 0.25 else t
    base = HALF_SLOPE if t > 0.25 else 0.0
    v = u * u
    series = 1.0 / 17 - v / 19
    series = 1.0 / 15 - v * series
    series = 1.0 / 13 - v * series
    series = 1.0 / 11 - v * series
    series = 1.0 / 9 - v * series
    series = 1.0 / 7 - v * series
    series = 1.0 / 5 - v * series
    series = 1.0 / 3 - v * series
    return base + DEGREES * (u - u * v * series)


@jit
def _vote(line, grid, row):
    """Add every gradient to the one bin of the one cell that holds it."""
    down, right, length, angles = line[0], line[1], line[2], line[3]
    n_columns, bins = row.shape
    width = grid.turn / bins
    scale = 1.0 / width
    for j in range(n_columns):
        cell = row[j]
        for c in range(j * grid.cell_columns, (j + 1) * grid.cell_columns):
            if length[c] > 0.0:
                position = angles[c] * scale
                k = int(position)
                if not NEAR < position - k < 1.0 - NEAR:
                    k = _exact_bin(down[c], right[c], grid.turn, width) % bins
                cell[k] += length[c]


@jit
def _exact_bin(down, right, turn, width):
    """Return the bin of an angle that is close to the edge between two bins."""
    angle = math.atan2(down, right) * DEGREES
    if angle < 0.0:
        angle += turn
    # The quotient of an angle just below an edge may be rounded up to the edge.
    k = int(angle / width)
    return k - (k * width > angle)


@jit
def _vote_softly(line, r, grid, cells):
    """Share every gradient among the nearest bins and the nearest cells."""
    length, angles = line[2], line[3]
    n_rows, n_columns, bins = cells.shape
    scale = bins / grid.turn
    above, below_share = _neighbour(r, grid.cell_rows)
    for c in range(len(length)):
        if length[c] == 0.0:
            continue
        left, right_share = _neighbour(c, grid.cell_columns)
        position = angles[c] * scale - 0.5
        low = math.floor(position)
        next_share = position - low
        first, second = int(low) % bins, int(low + 1) % bins
        for s in range(2):
            if not 0 <= above + s < n_rows:
                continue
            part = length[c] * (below_share if s else 1.0 - below_share)
            for t in range(2):
                if 0 <= left + t < n_columns:
                    share = part * (right_share if t else 1.0 - right_share)
                    cell = cells[above + s, left + t]
                    cell[first] += share * (1.0 - next_share)
                    cell[second] += share * next_share


@jit
def _neighbour(pixel, size):
    """Return the last cell with its centre up to a pixel, and the next cell's share."""
    position = (pixel + 0.5) / size - 0.5
    cell = math.floor(position)
    return int(cell), position - cell


@jit
def _write_blocks(cells, grid, out):
    """Write the normalised blocks into ``out``, one after the other."""
    n_rows, n_columns, bins = cells.shape
    scale = 1.0 / (grid.cell_rows * grid.cell_columns)
    size = grid.block_rows * grid.block_columns * bins
    block = np.empty(size)
    at = 0
    for r in range(n_rows - grid.block_rows + 1):
        for c in range(n_columns - grid.block_columns + 1):
            k = 0
            for s in range(grid.block_rows):
                for t in range(grid.block_columns):
                    _copy_scaled(cells[r + s, c + t], scale, block[k : k + bins])
                    k += bins
            _normalise(block, grid.norm)
            _copy_scaled(block, 1.0, out[at : at + size])
            at += size


@jit
def _normalise(block, norm):
    """Normalise a block of votes, all of which are >= 0, in place."""
    if norm == NONE:
        return
    if norm == L1 or norm == L1_SQRT:
        total = 0.0
        for k in range(len(block)):
            total += block[k]
        scale = 1.0 / (total + EPSILON)
        for k in range(len(block)):
            share = block[k] * scale
            block[k] = math.sqrt(share) if norm == L1_SQRT else share
        return
    ceiling = CEILING if norm == L2_HYS else np.inf
    scale = 1.0 / math.sqrt(_square(block) + EPSILON * EPSILON)
    for k in range(len(block)):
        block[k] = min(block[k] * scale, ceiling)
    if norm == L2_HYS:
        scale = 1.0 / math.sqrt(_square(block) + EPSILON * EPSILON)
        for k in range(len(block)):
            block[k] *= scale


@jit
def _square(values):
    """Return the sum of squares."""
    total = 0.0
    for k in range(len(values)):
        total += values[k] * values[k]
    return total


@jit
def _copy_scaled(source, scale, target):
    """Write ``scale * source`` into ``target``."""
    for k in range(len(target)):
        target[k] = scale * source[k]
