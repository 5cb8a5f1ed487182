r"""Distort images: rotation, scale, shear, shift, mirror image and elastic deformation.

Images are (n, h, w, c), C-contiguous, float32 or float64.  A pixel of the result at
:math:`p`, relative to the centre of the image, is read from

.. math::

    A p + s + e(p), \qquad
    A = \begin{pmatrix} \cos\phi & -\sin\phi \\ \sin\phi & \cos\phi \end{pmatrix}
        \begin{pmatrix} a & b \\ 0 & d \end{pmatrix},

with an angle, two scales, a shear and a shift that are drawn evenly from their ranges.
:math:`e` is white noise, smoothed by a Gaussian and scaled to its root mean square.

The random numbers of an image follow from a seed and from the pixels of the image.  An
image is therefore distorted in the same way in whatever stack, batch or thread it is.
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["Ranges", "distort"]

# The constants of the generator SplitMix64 (Steele, Lea & Flood, 2014), and the prime
# of the hash FNV-1a.
STRIDE = np.uint64(0x9E3779B97F4A7C15)
FIRST_MIX = np.uint64(0xBF58476D1CE4E5B9)
SECOND_MIX = np.uint64(0x94D049BB133111EB)
PRIME = np.uint64(0x100000001B3)
# Random numbers have 53 bits.
UNIT = 1.0 / 2**53
# A Gaussian is cut off at this many standard deviations.
REACH = 3.0


class Ranges(NamedTuple):
    """The largest distortions."""

    rotation: float  #: radians
    scale: float  #: relative change of width and height
    shear: float  #: pixels per pixel
    shift: float  #: pixels
    elastic: float  #: root mean square of the elastic shift, in pixels
    smoothness: float  #: standard deviation of the smoothing, in pixels
    mirror: float  #: fraction of the images that are mirrored


@jit
def distort(images: NDArray, seed: int, ranges: Ranges, out: NDArray):
    """Write a distorted copy of every image into ``out``, of the same shape."""
    h, w = images.shape[1:3]
    weights = _gaussian(ranges.smoothness)
    reach = len(weights) - 1
    state = np.empty(1, dtype=np.uint64)
    noise = np.empty((h + reach, w + reach))
    halfway = np.empty((h, w + reach))
    shifts = np.zeros((2, h, w))
    for i in range(len(images)):
        _begin(images[i], seed, state)
        angle = ranges.rotation * _even(state)
        wide = 1.0 + ranges.scale * _even(state)
        high = 1.0 + ranges.scale * _even(state)
        slant = ranges.shear * _even(state)
        across = ranges.shift * _even(state)
        down = ranges.shift * _even(state)
        is_flipped = _even(state) < 2.0 * ranges.mirror - 1.0
        if ranges.elastic > 0.0:
            for axis in range(2):
                _draw_field(state, weights, noise, halfway, shifts[axis])
            # The two axes have half of the squared shift each.
            size = ranges.elastic / math.sqrt(2.0)
            for axis in range(2):
                for r in range(h):
                    for c in range(w):
                        shifts[axis, r, c] *= size
        cosine, sine = math.cos(angle), math.sin(angle)
        xx, xy = cosine * wide, cosine * slant - sine * high
        yx, yy = sine * wide, sine * slant + cosine * high
        y0, x0 = 0.5 * (h - 1), 0.5 * (w - 1)
        for r in range(h):
            y = r - y0
            for c in range(w):
                x = x0 - c if is_flipped else c - x0
                column = x0 + across + xx * x + xy * y + shifts[0, r, c]
                row = y0 + down + yx * x + yy * y + shifts[1, r, c]
                _read_between(images[i], row, column, out[i, r, c])


@jit
def _gaussian(deviation):
    """Return the weights of a Gaussian whose squares have the sum 1.

    White noise of variance 1 keeps this variance when it is smoothed by them.
    """
    reach = math.ceil(REACH * deviation)
    weights = np.empty(2 * reach + 1)
    total = 0.0
    for k in range(len(weights)):
        z = (k - reach) / max(deviation, 1e-9)
        weights[k] = math.exp(-0.5 * z * z)
        total += weights[k] * weights[k]
    for k in range(len(weights)):
        weights[k] /= math.sqrt(total)
    return weights


@jit
def _begin(image, seed, state):
    """Set the state of the generator from the seed and the pixels of an image."""
    value = np.empty(1)
    bits = value.view(np.uint64)
    state[0] = np.uint64(seed) * STRIDE
    for r in range(image.shape[0]):
        for c in range(image.shape[1]):
            for k in range(image.shape[2]):
                value[0] = image[r, c, k]
                # The low bits of most pixel values are 0; the high ones must count.
                state[0] = (state[0] ^ bits[0] ^ (bits[0] >> np.uint64(32))) * PRIME
    # Similar images may have similar hashes, which mixing sets apart.
    state[0] = _mixed(state[0])


@jit
def _mixed(z):
    """Return a number of 64 bits, all of which depend on all bits of ``z``."""
    z = (z ^ (z >> np.uint64(30))) * FIRST_MIX
    z = (z ^ (z >> np.uint64(27))) * SECOND_MIX
    return z ^ (z >> np.uint64(31))


@jit
def _even(state):
    """Return the next random number, evenly distributed between -1 and 1."""
    state[0] = state[0] + STRIDE
    return 2.0 * (np.float64(_mixed(state[0]) >> np.uint64(11)) * UNIT) - 1.0


@jit
def _draw_field(state, weights, noise, halfway, field):
    """Write white noise of variance 1, smoothed along both axes, into ``field``."""
    root = math.sqrt(3.0)  # numbers between -1 and 1 have the variance 1/3
    for r in range(noise.shape[0]):
        for c in range(noise.shape[1]):
            noise[r, c] = root * _even(state)
    halfway[:] = 0.0
    field[:] = 0.0
    for k in range(len(weights)):
        for r in range(field.shape[0]):
            _add_scaled(noise[r + k], weights[k], halfway[r])
    for r in range(field.shape[0]):
        for k in range(len(weights)):
            _add_scaled(halfway[r, k : k + field.shape[1]], weights[k], field[r])


@jit
def _add_scaled(source, weight, target):
    """Add ``weight * source`` to ``target``."""
    for c in range(len(target)):
        target[c] += weight * source[c]


@jit
def _read_between(image, row, column, pixel):
    """Interpolate between four pixels; outside, the nearest border pixel counts."""
    h, w, n_channels = image.shape
    # Shifts that overflow may be NaN, for which no comparison is true.
    row = min(row, h - 1.0) if row > 0.0 else 0.0
    column = min(column, w - 1.0) if column > 0.0 else 0.0
    top, left = int(row), int(column)
    below, right = min(top + 1, h - 1), min(left + 1, w - 1)
    t, s = row - top, column - left
    for k in range(n_channels):
        first = (1.0 - s) * image[top, left, k] + s * image[top, right, k]
        second = (1.0 - s) * image[below, left, k] + s * image[below, right, k]
        pixel[k] = (1.0 - t) * first + t * second
