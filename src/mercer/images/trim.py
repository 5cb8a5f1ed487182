r"""Trimming: cut off black borders, and resize to one size.

Output pixel :math:`j` of an axis, with :math:`s` input pixels per output pixel, weights
input pixel :math:`i` by the triangle
:math:`\max\{0, 1 - |i - (j + 1/2) s + 1/2| / \max(s, 1)\}`.  This is linear
interpolation if the image grows, and a weighted average of the covered pixels if the
image shrinks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from mercer.core.jit import jit
from mercer.images.base import ImageTransformer
from mercer.images.stack import pair
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import stores_parameters

__all__ = ["Trim"]


@public("mercer.images")
class Trim(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    """Cut off the black border of images, and resize the rest to a fixed size.

    Images that grow are interpolated linearly, and images that shrink are averaged.  A
    blank image stays blank; a single pixel or stroke grows until it fills the size.

    Parameters
    ----------
    size : int or pair of int, default=None
        Height and width of the results, or the side of a square. None keeps the size
        of the images.
    keep_aspect : bool, default=True
        Whether height and width are scaled by the same factor. The image then fills
        one of them and is centred along the other, between black pixels.
    margin : int, default=0
        Number of black pixels to leave on every side, inside ``size``. A margin is
        useful before HOG, which does not see gradients across the border of an image.
    threshold : float, default=0.0
        Pixels up to this value are black. A colour pixel is black if all its channels
        are.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    See Also
    --------
    Deskew : straightens images first.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import Trim
    >>> image = np.zeros((1, 4, 4))
    >>> image[0, 1, 1:3] = [1, 2]
    >>> Trim(size=2, keep_aspect=False).fit(image).transform(image)
    array([[[1., 2.],
            [1., 2.]]])
    >>> Trim(size=(1, 2)).fit(image).transform(image)
    array([[[1., 2.]]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "size": [Interval(Integral, 1, None, closed="left"), tuple, list, None],
        "keep_aspect": ["boolean"],
        "margin": [Interval(Integral, 0, None, closed="left")],
        "threshold": [Interval(Real, None, None, closed="neither")],
        **ImageTransformer._parameter_constraints,
    }

    @stores_parameters
    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        *,
        keep_aspect: bool = True,
        margin: int = 0,
        threshold: float = 0.0,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        size = shape[:2] if self.size is None else pair(self.size, "Trim", "size")
        if min(size) <= 2 * self.margin:
            raise ValueError(
                f"Trim: margin={self.margin} on both sides leaves no pixels of images "
                f"of size {size}. Lower margin to at most {(min(size) - 1) // 2}, or "
                "raise size."
            )
        return (*size, *shape[2:])

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        trim(batch, float(self.threshold), self.margin, self.keep_aspect, out)


@jit
def trim(
    images: NDArray, threshold: float, margin: int, is_aspect_kept: bool, out: NDArray
):
    """Write the boxes of the pixels above ``threshold`` into ``out`` (n, H, W, c).

    The box of an image holds all pixels that exceed the threshold in any channel.  It
    fills ``out`` except for ``margin`` pixels on each side.  If the aspect is kept, the
    box fills one axis and is centred along the other.  All other pixels are 0.
    """
    h, w, n_channels = images.shape[1:]
    height, width = out.shape[1] - 2 * margin, out.shape[2] - 2 * margin
    most = 2 * math.ceil(max(h / height, w / width, 1.0)) + 3
    firsts = np.empty((2, max(height, width)), np.intp)
    counts = np.empty_like(firsts)
    weights = np.empty((2, max(height, width), most))
    middle = np.empty((height, w))
    for i in range(len(images)):
        image, target = images[i], out[i]
        target[:] = 0
        top, bottom, left, right = _box(image, threshold)
        if top == bottom:
            continue
        rows, columns = bottom - top, right - left
        H, W = height, width
        if is_aspect_kept:
            scale = min(height / rows, width / columns)
            # Sizes are rounded to whole pixels, and are at least one pixel.
            H = min(max(int(rows * scale + 0.5), 1), height)
            W = min(max(int(columns * scale + 0.5), 1), width)
        _triangles(rows, H, firsts[0], counts[0], weights[0])
        _triangles(columns, W, firsts[1], counts[1], weights[1])
        y, x = margin + (height - H) // 2, margin + (width - W) // 2
        for k in range(n_channels):
            cut = image[top:bottom, left:right, k]
            _resample_rows(cut, firsts[0], counts[0], weights[0], middle[:H, :columns])
            _resample_rows(
                middle[:H, :columns].T, firsts[1], counts[1], weights[1],
                target[y : y + H, x : x + W, k].T,
            )  # fmt: skip


@jit
def _box(image, threshold):
    """Return the rows and columns that bound the pixels above the threshold.

    All four are 0 if there are no such pixels.
    """
    h, w, n_channels = image.shape
    top, bottom, left, right = h, 0, w, 0
    for r in range(h):
        for c in range(w):
            for k in range(n_channels):
                if image[r, c, k] > threshold:
                    top, bottom = min(top, r), max(bottom, r + 1)
                    left, right = min(left, c), max(right, c + 1)
    if bottom == 0:
        return 0, 0, 0, 0
    return top, bottom, left, right


@jit
def _triangles(size, new_size, firsts, counts, weights):
    """Write the input pixels that each output pixel averages, and their weights."""
    step = size / new_size
    spread = max(step, 1.0)
    for j in range(new_size):
        centre = (j + 0.5) * step - 0.5
        first = max(math.floor(centre - spread) + 1, 0)
        last = min(math.ceil(centre + spread) - 1, size - 1)
        total = 0.0
        for i in range(first, last + 1):
            weight = 1.0 - abs(i - centre) / spread
            weights[j, i - first] = weight
            total += weight
        firsts[j], counts[j] = first, last + 1 - first
        weights[j, : counts[j]] /= total


@jit
def _resample_rows(source, firsts, counts, weights, target):
    """Write weighted sums of rows of ``source`` into the rows of ``target``."""
    for j in range(len(target)):
        for c in range(target.shape[1]):
            total = 0.0
            for t in range(counts[j]):
                total += weights[j, t] * source[firsts[j] + t, c]
            target[j, c] = total
