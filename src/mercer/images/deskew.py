"""Deskewing: measure how far images lean, and set them upright."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin

from mercer.images.base import ImageTransformer, in_batches
from mercer.images.straightening import lean_by_lines, lean_by_moments, straighten
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.validation import stores_parameters

__all__ = ["Deskew"]

# Degrees between two angles that the Hough transform tries. A parabola through the best
# angle and its two neighbours finds the maximum to a few tenths of a degree.
STEP = 2.0


@public("mercer.images")
class Deskew(OneToOneFeatureMixin, ImageTransformer):
    r"""Set images upright.

    With ``method="hough"`` the image is turned so that its dominant straight line
    becomes vertical.  A pixel at :math:`(x, y)`, to the right and down from the centre
    of mass, lies on the line that leans by :math:`\phi` at the distance
    :math:`\rho = x \cos\phi + y \sin\phi`, and votes for that line with its mass.  If
    :math:`A_\phi(\rho)` are the votes, summed over the width of a thin stroke, the
    angle is

    .. math::

        \phi = \arg\max_\phi \sum_\rho A_\phi(\rho)^2 .

    With ``method="moments"`` the rows are shifted so that the :math:`x` and :math:`y`
    of the mass :math:`m` become uncorrelated: :math:`\tan\phi = -\sum m x y / \sum m
    y^2`, and :math:`(x, y) \mapsto (x + y \tan\phi, y)`.

    The mass of a pixel is the amount by which it exceeds the darkest pixel of the
    image, summed over the channels.  The centre of mass stays where it is, pixels are
    interpolated linearly, and pixels from outside the image are as dark as its darkest
    pixel.  Blank and constant images, single dots and upright images do not change.

    Parameters
    ----------
    method : {"hough", "moments"}, default="hough"
        "hough" finds the dominant line and rotates the image; "moments" uses second
        moments and shears the image.
    max_angle : float, default=45.0
        Largest angle, in degrees and at most 90, by which the Hough transform turns an
        image. The limit keeps a 7 from being turned until its bar is vertical. An
        image whose only line is horizontal is not turned.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    See Also
    --------
    Trim : cuts off the border.
    Distort : makes images crooked on purpose.

    References
    ----------
    Duda & Hart, "Use of the Hough transformation to detect lines and curves in
    pictures", Communications of the ACM 15, 1972.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import Deskew
    >>> leaning = np.eye(9)[None, ::-1]
    >>> deskew = Deskew().fit(leaning)
    >>> deskew.angles(leaning).round()
    array([45.])
    >>> abs(deskew.angles(deskew.transform(leaning))) < 0.5
    array([ True])
    """

    _parameter_constraints: ClassVar[dict] = {
        "method": [StrOptions({"hough", "moments"})],
        "max_angle": [Interval(Real, 0.0, 90.0, closed="right")],
        **ImageTransformer._parameter_constraints,
    }

    @stores_parameters
    def __init__(
        self,
        method: str = "hough",
        *,
        max_angle: float = 45.0,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def angles(self, X: Any) -> NDArray:
        """Return the angle by which each image leans to the right, in degrees.

        Parameters
        ----------
        X : array of shape (n, h, w), (n, h, w, 3) or (n, n_pixels)
            The images.

        Returns
        -------
        ndarray of shape (n,)
            The angles by which ``transform`` rotates or shears the images back. The
            angle of an image that leans to the left is negative.
        """
        stack = self._read_again(X)
        angles = np.empty(len(stack), dtype=stack.dtype)

        def measure(batch: NDArray, out: NDArray) -> None:
            out[:] = np.degrees(self._lean(batch))

        in_batches(stack.pixels, angles, measure, self)
        return angles

    def _lean(self, batch: NDArray) -> NDArray:
        angles = np.empty(len(batch))
        if self.method == "moments":
            lean_by_moments(batch, angles)
        else:
            n_steps = math.ceil(self.max_angle / STEP)
            step = math.radians(self.max_angle) / n_steps
            lean_by_lines(batch, step * np.arange(-n_steps, n_steps + 1), angles)
        return angles

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        straighten(batch, self._lean(batch), self.method == "moments", out)
