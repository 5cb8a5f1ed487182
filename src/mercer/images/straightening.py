r"""Measure the angle by which images lean, and set images upright.

Images are (n, h, w, c), C-contiguous, float32 or float64.  The mass of a pixel is the
amount by which it exceeds the darkest pixel of its image, summed over channels.
Positions :math:`(x, y)`, to the right and down, are relative to the centre of mass.  An
angle :math:`\phi` is positive if the top leans to the right.

*Moments.*  The line through the centre that best predicts :math:`x` from :math:`y`
leans by :math:`\tan\phi = -\sum m x y / \sum m y^2`.

*Hough transform.*  A pixel lies on the line that leans by :math:`\phi` at the distance
:math:`\rho = x \cos\phi + y \sin\phi` from the centre.  It votes for that line with its
mass, spread over the width of a thin stroke.  The angle whose votes
:math:`A_\phi(\rho)` have the largest :math:`\sum_\rho A_\phi(\rho)^2` has the fullest
lines.  The sum finds the direction along a stroke of any width; the single largest
:math:`A_\phi(\rho)` would belong to the diagonal of the stroke, which is a little
longer.
"""

import math

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["lean_by_lines", "lean_by_moments", "straighten"]

# Number of cells of votes per pixel; images larger than COARSE pixels have fewer.
FINE = 4
COARSE = 32
# Number of cells in a band, whose votes are summed: the width of a thin stroke.
BAND = 8
# A line must be fuller than the upright one by this factor; otherwise rounding errors
# would turn images.
GAIN = 1.0 + 1e-3
# Images whose pixels would move by less than this many pixels count as upright.
LEAST_MOVE = 0.01


@jit
def lean_by_moments(images: NDArray, angles: NDArray):
    """Write the angle of each image, in radians, into ``angles`` (n,)."""
    h, w = images.shape[1:3]
    mass = np.empty((h, w))
    for i in range(len(images)):
        total, x0, y0 = _weigh(images[i], mass)
        xy, yy = 0.0, 0.0
        for r in range(h):
            y = r - y0
            for c in range(w):
                xy += mass[r, c] * (c - x0) * y
                yy += mass[r, c] * y * y
        # If all mass is in a single row, the angle is undefined; take 0.
        angles[i] = math.atan2(-xy, yy) if yy > 1e-12 * total else 0.0


@jit
def lean_by_lines(images: NDArray, trials: NDArray, angles: NDArray):
    """Write the angle of each image, in radians, into ``angles`` (n,).

    ``trials`` (2 k + 1,) are evenly spaced around 0.
    """
    h, w = images.shape[1:3]
    mass = np.empty((h, w))
    points = np.empty((3, h * w))
    fine = FINE * min(1.0, COARSE / max(h, w))
    # The centre lies inside the image, so the diagonal bounds the distance of a pixel.
    votes = np.empty((3, 2 * (int(fine * math.hypot(h, w)) + 2 + BAND)))
    scores = np.empty(len(trials))
    for i in range(len(images)):
        total, x0, y0 = _weigh(images[i], mass)
        n, furthest = 0, 0.0
        for r in range(h):
            for c in range(w):
                if mass[r, c] > 0.0:
                    x, y = fine * (c - x0), fine * (r - y0)
                    points[0, n], points[1, n], points[2, n] = x, y, mass[r, c] / total
                    furthest = max(furthest, x * x + y * y)
                    n += 1
        used = 2 * (int(math.sqrt(furthest)) + 2 + BAND)
        for k in range(len(trials)):
            scores[k] = _fullness(points[:, :n], trials[k], votes[:, :used])
        angles[i] = _best(trials, scores)


@jit
def _fullness(points, angle, votes):
    """Return the sum of squared votes in overlapping bands."""
    cosine, sine = math.cos(angle), math.sin(angle)
    x, y, mass = points[0], points[1], points[2]
    middle = len(votes[0]) // 2 - BAND
    votes[0] = 0.0
    for k in range(len(x)):
        position = x[k] * cosine + y[k] * sine + middle
        cell = int(position)
        share = (position - cell) * mass[k]
        votes[0, cell] += mass[k] - share
        votes[0, cell + 1] += share
    # Summing over bands twice spreads each pixel over a triangle two bands wide, which
    # is smooth enough to hide the grid of pixels.
    _add_bands(votes[0], votes[1])
    _add_bands(votes[1], votes[2])
    total = 0.0
    for k in range(len(votes[2])):
        total += votes[2, k] * votes[2, k]
    return total


@jit
def _add_bands(cells, bands):
    """Write the sum of each cell and the ``BAND - 1`` cells before it."""
    total = 0.0
    for k in range(len(cells)):
        total += cells[k]
        if k >= BAND:
            total -= cells[k - BAND]
        bands[k] = total


@jit
def _best(trials, scores):
    """Return the angle of the largest score, refined by a parabola through three."""
    half, last = len(trials) // 2, len(trials) - 1
    best, most = half, scores[half] * GAIN
    for step in range(1, half + 1):
        for k in (half - step, half + step):
            if scores[k] > most:
                best, most = k, scores[k]
    if best == 0 or best == last:
        # A horizontal line has equal scores at both ends of the range; such an image is
        # not turned.
        return trials[best] if scores[best] > GAIN * scores[last - best] else 0.0
    before, here, after = scores[best - 1], scores[best], scores[best + 1]
    bend = 2.0 * here - before - after
    shift = 0.5 * (after - before) / bend if bend > 0.0 else 0.0
    return trials[best] + (trials[1] - trials[0]) * min(max(shift, -1.0), 1.0)


@jit
def straighten(images: NDArray, angles: NDArray, is_shear: bool, out: NDArray):
    """Rotate or shear every image about its centre of mass by minus its angle.

    Pixels are interpolated linearly.  Pixels from outside the image have the least
    value of their channel.
    """
    h, w, n_channels = images.shape[1:]
    mass = np.empty((h, w))
    framed = np.empty((h + 3, w + 3))
    for i in range(len(images)):
        image, target = images[i], out[i]
        across = -math.tan(angles[i])
        if abs(across) * max(h, w) < LEAST_MOVE:
            _copy(image, target)
            continue
        _, x0, y0 = _weigh(image, mass)
        along, down = 1.0, 0.0
        if not is_shear:
            along, down = math.cos(angles[i]), math.sin(angles[i])
            across = -down
        for k in range(n_channels):
            _frame(image, k, framed)
            for r in range(h):
                y = r - y0
                for c in range(w):
                    x = c - x0
                    column = x0 + along * x + across * y
                    row = y0 + down * x + along * y
                    target[r, c, k] = _between(framed, row, column)


@jit
def _copy(image, target):
    """Copy an image."""
    h, w, n_channels = image.shape
    for r in range(h):
        for c in range(w):
            for k in range(n_channels):
                target[r, c, k] = image[r, c, k]


@jit
def _darkest(image, k):
    """Return the least value of a channel."""
    dark = np.float64(image[0, 0, k])
    for r in range(image.shape[0]):
        for c in range(image.shape[1]):
            dark = min(dark, np.float64(image[r, c, k]))
    return dark


@jit
def _frame(image, k, framed):
    """Copy a channel into ``framed`` (h + 3, w + 3), with a dark frame around it."""
    dark = _darkest(image, k)
    for r in range(framed.shape[0]):
        for c in range(framed.shape[1]):
            framed[r, c] = dark
    for r in range(image.shape[0]):
        for c in range(image.shape[1]):
            framed[r + 1, c + 1] = image[r, c, k]


@jit
def _between(framed, row, column):
    """Interpolate a framed channel between four pixels."""
    # Positions further out are moved to the frame, which has the same dark value.
    # NaN, for which no comparison is true, is moved as well.
    row, column = row + 1.0, column + 1.0
    row = min(row, framed.shape[0] - 2.0) if row > 0.0 else 0.0
    column = min(column, framed.shape[1] - 2.0) if column > 0.0 else 0.0
    top, left = int(row), int(column)
    t, s = row - top, column - left
    above = (1.0 - s) * framed[top, left] + s * framed[top, left + 1]
    below = (1.0 - s) * framed[top + 1, left] + s * framed[top + 1, left + 1]
    return (1.0 - t) * above + t * below


@jit
def _weigh(image, mass):
    """Write the mass of each pixel; return the total and the centre, column first."""
    h, w, n_channels = image.shape
    mass[:] = 0.0
    for k in range(n_channels):
        dark = _darkest(image, k)
        for r in range(h):
            for c in range(w):
                mass[r, c] += image[r, c, k] - dark
    total, x, y = 0.0, 0.0, 0.0
    for r in range(h):
        for c in range(w):
            total += mass[r, c]
            x += mass[r, c] * c
            y += mass[r, c] * r
    # Sums of large values may overflow; such an image counts as blank.
    if total > 0.0 and max(total, x, y) < math.inf:
        return total, x / total, y / total
    mass[:] = 0.0
    return 0.0, 0.0, 0.0
