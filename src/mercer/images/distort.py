"""Random distortions: copies of images as they might have been drawn or taken."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import OneToOneFeatureMixin
from sklearn.utils import check_random_state

from mercer.images.base import ImageTransformer
from mercer.images.stack import Stack
from mercer.images.warping import Ranges, distort
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.soundness import whole_number
from mercer.runtime.validation import stores_parameters

__all__ = ["Distort"]

# Noise of a wider Gaussian would need more memory than there is.
WIDEST = 1e6


@public("mercer.images")
class Distort(OneToOneFeatureMixin, ImageTransformer):
    r"""Distort images at random, to make new samples of the same classes.

    Every image is rotated about its centre, scaled along both axes, sheared and shifted
    by amounts that are drawn evenly from their ranges, and bent by an elastic field:
    each pixel of the result is read from a place that is moved by smooth noise.  Pixels
    are interpolated linearly; outside the image its border continues.

    The random numbers of an image follow from ``random_state`` and from its pixels.  An
    image is distorted in the same way each time, whatever the other images are and
    however many threads work.  Another copy comes from another ``random_state``.

    Distorted copies belong to training only, which :class:`VirtualSVC` takes
    care of.  As a step of a pipeline, ``Distort`` would distort test images, too.

    Parameters
    ----------
    rotation : float, default=8.0
        Largest angle, in degrees, at most 180.
    scale : float, default=0.1
        Largest relative change of width and height, below 1.
    shear : float, default=0.1
        Largest shear: the shift of a row, in pixels, by one row further down.
    shift : float, default=0.0
        Largest shift along each axis, in pixels.
    elastic : float, default=1.0
        Root mean square of the distance by which the elastic field moves a pixel, in
        pixels. 0 leaves the elastic field out.
    smoothness : float, default=4.0
        Standard deviation of the Gaussian that smooths the elastic field, in pixels.
    mirror : float, default=0.0
        Fraction of the images that are mirrored, left to right: 0.5 is every second one
        at random, 1 is all.
    random_state : int, RandomState instance or None, default=None
        Seed of the distortions.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    seed_ : int
        The seed that ``fit`` drew from ``random_state``.
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    References
    ----------
    Simard, Steinkraus & Platt, "Best practices for convolutional neural networks
    applied to visual document analysis", ICDAR 2003.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import Distort
    >>> images = np.zeros((1, 28, 28), dtype=np.float32)
    >>> images[0, 4:24, 13:15] = 1
    >>> copies = [Distort(random_state=k).fit(images).transform(images) for k in (0, 1)]
    >>> bool(abs(copies[0] - copies[1]).max() > 0.5)
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "rotation": [Interval(Real, 0.0, 180.0, closed="both")],
        "scale": [Interval(Real, 0.0, 1.0, closed="left")],
        "shear": [Interval(Real, 0.0, None, closed="left")],
        "shift": [Interval(Real, 0.0, None, closed="left")],
        "elastic": [Interval(Real, 0.0, None, closed="left")],
        "smoothness": [Interval(Real, 0.0, WIDEST, closed="right")],
        "mirror": [Interval(Real, 0.0, 1.0, closed="both")],
        "random_state": ["random_state"],
        **ImageTransformer._parameter_constraints,
    }
    _is_stateless: ClassVar[bool] = False

    @stores_parameters
    def __init__(
        self,
        rotation: float = 8.0,
        scale: float = 0.1,
        shear: float = 0.1,
        shift: float = 0.0,
        elastic: float = 1.0,
        smoothness: float = 4.0,
        *,
        mirror: float = 0.0,
        random_state: Any = None,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _learn(self, stack: Stack) -> None:
        random = check_random_state(self.random_state)
        self.seed_ = int(random.randint(np.iinfo(np.int32).max))

    def _check_learnt(self) -> None:
        super()._check_learnt()
        whole_number(self, "seed_", least=0)

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        ranges = Ranges(
            math.radians(self.rotation),
            float(self.scale),
            float(self.shear),
            float(self.shift),
            float(self.elastic),
            float(self.smoothness),
            float(self.mirror),
        )
        distort(batch, self.seed_, ranges, out)
