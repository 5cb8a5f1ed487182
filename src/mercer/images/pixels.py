"""Maps of single pixels: scaling to [0, 1], grey values, the Gaussian projection."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin, OneToOneFeatureMixin

from mercer.images.base import ImageTransformer, read_array
from mercer.images.stack import Stack, float_dtype
from mercer.kernels.base import is_number
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.soundness import number, numbers
from mercer.runtime.validation import stores_parameters

__all__ = ["GaussianProjection", "Rescale", "ToGrey"]

# The largest pixel value of the types whose images use the full range of the type.
FULL_RANGE = {
    np.dtype(np.bool_): 1.0,
    np.dtype(np.uint8): 255.0,
    np.dtype(np.uint16): 65535.0,
}


class _Pointwise(OneToOneFeatureMixin, ImageTransformer):
    """Base class of maps that ignore the position of a pixel.

    They take rows of any length, so they have no parameter ``shape``.
    """

    _parameter_constraints: ClassVar[dict] = {
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
    }
    _is_stateless: ClassVar[bool] = False

    def _read(self, X: Any, *, reset: bool) -> Stack:
        X = read_array(self, X, reset=reset)
        return Stack(X, X.shape[1:], X.ndim == 2, float_dtype(X.dtype))

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        self._map(batch.reshape(len(batch), -1), out.reshape(len(out), -1))

    def _map(self, values: NDArray, out: NDArray) -> None:
        """Write the mapped rows ``values`` (m, d) to ``out``; ``values`` may change."""
        raise NotImplementedError


@public("mercer.images")
class Rescale(_Pointwise):
    r"""Scale intensities to [0, 1].

    .. math::

        x \mapsto \min\{1, \max\{0, (x - l) / (h - l)\}\},

    where the values :math:`l` and :math:`h` become 0 and 1.

    Parameters
    ----------
    limits : "auto", "image" or pair of float, default="auto"
        The values that become 0 and 1. "auto" takes the range of the type for uint8,
        uint16 and bool, and the minimum and maximum of the data in ``fit`` for other
        types. "image" takes the minimum and maximum of each image; a constant image
        becomes 0.
    n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    low_ : float
        The value that becomes 0; NaN for ``limits="image"``.
    high_ : float
        The value that becomes 1; NaN for ``limits="image"``.
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import Rescale
    >>> images = np.array([[[0, 51], [102, 255]]], dtype=np.uint8)
    >>> Rescale().fit(images).transform(images)
    array([[[0. , 0.2],
            [0.4, 1. ]]], dtype=float32)
    """

    _parameter_constraints: ClassVar[dict] = {
        "limits": [StrOptions({"auto", "image"}), tuple, list],
        **_Pointwise._parameter_constraints,
    }

    @stores_parameters
    def __init__(
        self,
        limits: str | Sequence[float] = "auto",
        *,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _learn(self, stack: Stack) -> None:
        self.low_ = self.high_ = np.nan
        if not isinstance(self.limits, str):
            self.low_, self.high_ = self._given()
        elif self.limits == "auto" and stack.pixels.dtype in FULL_RANGE:
            self.low_, self.high_ = 0.0, FULL_RANGE[stack.pixels.dtype]
        elif self.limits == "auto":
            self.low_ = float(stack.pixels.min())
            self.high_ = float(stack.pixels.max())

    def _check_learnt(self) -> None:
        super()._check_learnt()
        if not (isinstance(self.limits, str) and self.limits == "image"):
            number(self, "low_")
            number(self, "high_")

    def _given(self) -> tuple[float, float]:
        if len(self.limits) == 2 and all(is_number(v) for v in self.limits):
            low, high = float(self.limits[0]), float(self.limits[1])
            if low < high:
                return low, high
        raise ValueError(
            "Rescale: limits must be 'auto', 'image' or two finite numbers, the lower "
            f"one first, got {self.limits!r}."
        )

    def _map(self, values: NDArray, out: NDArray) -> None:
        low: Any = self.low_
        width: Any = self.high_ - self.low_
        if isinstance(self.limits, str) and self.limits == "image":
            low = values.min(axis=1, keepdims=True)
            width = values.max(axis=1, keepdims=True) - low
        values -= low
        values /= np.where(width > 0, width, 1).astype(values.dtype)
        np.clip(values, 0, 1, out=out)


@public("mercer.images")
class ToGrey(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    r"""Turn colour images into grey images.

    The grey value of a pixel is :math:`\sum_k w_k x_k`, the weighted sum of its
    channels.  Grey images do not change.

    Parameters
    ----------
    weights : sequence of three float, default=(0.2125, 0.7154, 0.0721)
        Weights of red, green and blue.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import ToGrey
    >>> red_and_white = np.array([[[[1.0, 0.0, 0.0], [1.0, 1.0, 1.0]]]])
    >>> ToGrey().fit(red_and_white).transform(red_and_white)
    array([[[0.2125, 1.    ]]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "weights": [tuple, list, np.ndarray],
        **ImageTransformer._parameter_constraints,
    }

    @stores_parameters
    def __init__(
        self,
        weights: Sequence[float] = (0.2125, 0.7154, 0.0721),
        *,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        if len(self.weights) != 3 or not all(is_number(w) for w in self.weights):
            raise ValueError(
                "ToGrey: weights must be three finite numbers, for red, green and "
                f"blue, got {self.weights!r}."
            )
        return shape[:2]

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        if batch.shape[3] == 1:
            out[:] = batch
        else:
            np.matmul(batch, np.asarray(self.weights, batch.dtype)[:, None], out=out)


@public("mercer.images")
class GaussianProjection(_Pointwise):
    r"""Map every entry by a Gaussian around the mean of its column.

    .. math::

        x_{ij} \mapsto \exp(-\gamma (x_{ij} - \bar x_j)^2),

    where :math:`\bar x_j` is the mean of column j in ``fit``.  A linear method on the
    result is not a kernel method with a Gaussian kernel: the Gaussian kernel compares
    whole samples, and this map looks at one entry at a time.

    Parameters
    ----------
    gamma : float, default=1.0
        Rate at which the values decrease with the squared distance from the mean.
    n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    mean_ : ndarray of shape (n_features_in_,)
        Mean of each column or pixel.
    image_shape_ : tuple of int
        Shape of one sample.
    n_features_in_ : int
        Number of columns, or number of pixels times number of channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.

    Examples
    --------
    The points of two rings become separable by a straight line:

    >>> import numpy as np
    >>> from mercer.images import GaussianProjection
    >>> X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 3.0], [0.0, -3.0]])
    >>> GaussianProjection(gamma=0.5).fit(X).transform(X).round(2)
    array([[0.61, 1.  ],
           [0.61, 1.  ],
           [1.  , 0.01],
           [1.  , 0.01]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "gamma": [Interval(Real, 0.0, None, closed="left")],
        **_Pointwise._parameter_constraints,
    }

    @stores_parameters
    def __init__(
        self,
        gamma: float = 1.0,
        *,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _check_learnt(self) -> None:
        super()._check_learnt()
        numbers(self, "mean_", self.n_features_in_)

    def _learn(self, stack: Stack) -> None:
        self.mean_ = stack.pixels.mean(axis=0, dtype=np.float64).ravel()

    def _map(self, values: NDArray, out: NDArray) -> None:
        values -= self.mean_.astype(values.dtype)
        values *= values
        values *= values.dtype.type(-self.gamma)
        np.exp(values, out=out)
