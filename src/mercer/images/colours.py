"""Histograms of colours: which part of each region has which colour."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from mercer.core.jit import jit
from mercer.images.base import ImageTransformer
from mercer.images.stack import Stack, pair, regions_of
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.soundness import number
from mercer.runtime.validation import stores_parameters

__all__ = ["ColourHistogram"]


@public("mercer.images")
class ColourHistogram(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """Count the colours of the pixels in each region of an image.

    The intensities of each channel are divided into ``levels`` equal steps, from the
    smallest to the largest intensity of the images in ``fit``.  A colour is one step in
    each channel.  The features are the fractions of the pixels of a region that have
    each colour, ordered by region, row by row, then by colour with the last channel
    running fastest.  Grey images have ``levels`` colours.

    Parameters
    ----------
    levels : int, default=4
        Number of steps of each channel.
    regions : int or pair of int, default=4
        Number of regions along each axis, (rows, columns).
    square_root : bool, default=True
        Whether to take the square root of the fractions, which brings frequent and rare
        colours closer together.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    low_ : float
        The smallest intensity of the images in ``fit``.
    high_ : float
        The largest intensity of the images in ``fit``.
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    References
    ----------
    Swain & Ballard, "Color indexing", International Journal of Computer Vision 7, 1991.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import ColourHistogram
    >>> image = np.array([[[0, 0, 0, 9]]])
    >>> histogram = ColourHistogram(levels=2, regions=1, square_root=False)
    >>> histogram.fit(image).transform(image)
    array([[0.75, 0.25]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "levels": [Interval(Integral, 1, None, closed="left")],
        "regions": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "square_root": ["boolean"],
        **ImageTransformer._parameter_constraints,
    }
    _is_stateless: ClassVar[bool] = False

    @stores_parameters
    def __init__(
        self,
        levels: int = 4,
        regions: int | Sequence[int] = 4,
        *,
        square_root: bool = True,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _grid(self) -> tuple[int, int]:
        return pair(self.regions, "ColourHistogram", "regions")

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        rows, columns = self._grid()
        if shape[0] < rows or shape[1] < columns:
            raise ValueError(
                f"ColourHistogram: images of {shape[0]} x {shape[1]} pixels are too "
                f"small for {rows} x {columns} regions. Lower regions, or pass images "
                f"of at least {rows} x {columns} pixels."
            )
        channels = shape[2] if len(shape) > 2 else 1
        return (rows * columns * int(self.levels) ** channels,)

    def _learn(self, stack: Stack) -> None:
        self.low_ = float(stack.pixels.min())
        self.high_ = float(stack.pixels.max())

    def _check_learnt(self) -> None:
        super()._check_learnt()
        number(self, "low_")
        number(self, "high_")

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        rows, columns = self._grid()
        colour_histograms(
            batch,
            self.low_,
            self.high_,
            int(self.levels),
            regions_of(batch.shape[1:3], (rows, columns)),
            bool(self.square_root),
            out.reshape(len(out), rows * columns, -1),
        )


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
