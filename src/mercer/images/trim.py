"""Trimming: cut off black borders, and resize to one size."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import ClassVar

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from mercer.core.trim import trim
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
