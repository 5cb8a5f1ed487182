"""Histograms of the colours of pixels, by regions of an image."""

import math

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["colour_histograms"]


@jit
def colour_histograms(
    images: NDArray,
    low: float,
    high: float,
    levels: int,
    regions: NDArray,
    square_root: bool,
    out: NDArray,
):
    """Fill ``out`` (n, regions, levels ** channels) with fractions of pixels.

    ``images`` are (n, h, w, c), and ``regions`` (h, w) has the region of each pixel.
    Each channel has equal steps from ``low`` to ``high``; values beyond them count as
    the nearest step.
    """
    channels = images.shape[3]
    scale = levels / (high - low) if high > low else 0.0
    sizes = np.zeros(out.shape[1])
    for r in range(regions.shape[0]):
        for c in range(regions.shape[1]):
            sizes[regions[r, c]] += 1.0
    for i in range(len(images)):
        found = out[i]
        found[:] = 0.0
        for r in range(regions.shape[0]):
            for c in range(regions.shape[1]):
                colour = 0
                for k in range(channels):
                    level = math.floor((images[i, r, c, k] - low) * scale)
                    level = min(max(level, 0), levels - 1)
                    colour = colour * levels + level
                found[regions[r, c], colour] += 1.0
        for g in range(len(found)):
            for k in range(found.shape[1]):
                share = found[g, k] / sizes[g]
                found[g, k] = math.sqrt(share) if square_root else share
