r"""Histograms of oriented gradients of a batch of images.

The gradient of a pixel is the difference of its two neighbours in each direction, 0 in
the first and last row (column), taken from the channel where it is longest.  Its length
is voted into a histogram of angles, one for each cell of pixels: into the bin and the
cell that hold it, or, softly, into the two nearest bins and the four nearest cells with
weights that fall linearly with the distance from their centres.  Blocks of cells, one
cell apart, are then divided by their own length:

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
# No entry of an L2-Hys block is larger before it is divided by its length again.
CEILING = 0.2


class Grid(NamedTuple):
    """Sizes of cells (pixels) and blocks (cells), rows first, and kinds of vote."""

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

    Features run over block rows, block columns, cell rows and columns within the block,
    and bins.  Both arrays are C-contiguous and of one dtype, float32 or float64.
    """
    n_rows = images.shape[1] // grid.cell_rows
    n_columns = images.shape[2] // grid.cell_columns
    cells = np.empty((n_rows, n_columns, grid.bins))
    for i in range(len(images)):
        cells[:] = 0.0
        if grid.is_soft:
            _vote_softly(images[i], grid, cells)
        else:
            _vote(images[i], grid, cells)
        cells /= grid.cell_rows * grid.cell_columns
        _write_blocks(cells, grid, out[i])


@jit
def _gradient(image, r, c):
    """Return the strongest gradient among the channels, down and to the right."""
    h, w, n_channels = image.shape
    best_down, best_right, best = 0.0, 0.0, 0.0
    for k in range(n_channels):
        down, right = 0.0, 0.0
        # The differences keep the dtype of the image; angles are taken in double.
        if 0 < r < h - 1:
            down = np.float64(image[r + 1, c, k] - image[r - 1, c, k])
        if 0 < c < w - 1:
            right = np.float64(image[r, c + 1, k] - image[r, c - 1, k])
        if n_channels == 1:
            return down, right, math.sqrt(down * down + right * right)
        # Rounded to the dtype of the image, so that equal channels stay equal.
        length = np.float64(image.dtype.type(math.hypot(down, right)))
        if length > best:
            best_down, best_right, best = down, right, length
    return best_down, best_right, best


@jit
def _angle(down, right, turn):
    """Return the angle in degrees, at least 0 and below ``turn``."""
    angle = math.atan2(down, right) * (180.0 / math.pi)
    if angle < 0.0:
        angle += turn
    # A half turn is none if the sign does not count, nor is a turn that rounding made.
    return angle - turn if angle >= turn else angle


@jit
def _vote(image, grid, cells):
    """Add every gradient to the one bin of the one cell that holds it."""
    n_rows, n_columns, bins = cells.shape
    width = grid.turn / bins
    for r in range(n_rows * grid.cell_rows):
        row = cells[r // grid.cell_rows]
        for c in range(n_columns * grid.cell_columns):
            down, right, length = _gradient(image, r, c)
            if length > 0.0:
                angle = _angle(down, right, grid.turn)
                k = min(int(angle / width), bins - 1)
                # The quotient of an angle just below an edge may round to the edge.
                k -= k * width > angle
                row[c // grid.cell_columns, k] += length


@jit
def _vote_softly(image, grid, cells):
    """Share every gradient out among near bins and near cells."""
    n_rows, n_columns, bins = cells.shape
    scale = bins / grid.turn
    for r in range(image.shape[0]):
        above, down_share = _neighbour(r, grid.cell_rows)
        for c in range(image.shape[1]):
            down, right, length = _gradient(image, r, c)
            if length == 0.0:
                continue
            left, right_share = _neighbour(c, grid.cell_columns)
            position = _angle(down, right, grid.turn) * scale - 0.5
            low = math.floor(position)
            up_share = position - low
            first, second = low % bins, (low + 1) % bins
            for s in range(2):
                if not 0 <= above + s < n_rows:
                    continue
                part = length * (down_share if s else 1.0 - down_share)
                for t in range(2):
                    if 0 <= left + t < n_columns:
                        share = part * (right_share if t else 1.0 - right_share)
                        cell = cells[above + s, left + t]
                        cell[first] += share * (1.0 - up_share)
                        cell[second] += share * up_share


@jit
def _neighbour(pixel, size):
    """Return the last cell whose centre is not beyond a pixel, and the next's share."""
    position = (pixel + 0.5) / size - 0.5
    cell = math.floor(position)
    return int(cell), position - cell


@jit
def _write_blocks(cells, grid, out):
    """Write the normalised blocks one after the other."""
    width = grid.block_columns * grid.bins
    size = grid.block_rows * width
    block = np.empty(size)
    at = 0
    for r in range(cells.shape[0] - grid.block_rows + 1):
        for c in range(cells.shape[1] - grid.block_columns + 1):
            for s in range(grid.block_rows):
                row = cells[r + s, c : c + grid.block_columns]
                block[s * width : (s + 1) * width] = row.ravel()
            _normalise(block, grid.norm)
            out[at : at + size] = block
            at += size


@jit
def _normalise(block, norm):
    """Divide a block of votes, none below 0, by its length."""
    if norm == L1 or norm == L1_SQRT:
        block /= block.sum() + EPSILON
        if norm == L1_SQRT:
            block[:] = np.sqrt(block)
    elif norm == L2 or norm == L2_HYS:
        block /= math.sqrt((block * block).sum() + EPSILON * EPSILON)
        if norm == L2_HYS:
            block[:] = np.minimum(block, CEILING)
            block /= math.sqrt((block * block).sum() + EPSILON * EPSILON)
