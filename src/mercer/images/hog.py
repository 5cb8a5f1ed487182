"""Histograms of oriented gradients."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import ClassVar

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils._param_validation import Interval, StrOptions

from mercer.core import hog as core
from mercer.images.base import ImageTransformer
from mercer.images.stack import pair

__all__ = ["HOG"]

NORMS = {
    "L1": core.L1,
    "L1-sqrt": core.L1_SQRT,
    "L2": core.L2,
    "L2-Hys": core.L2_HYS,
    "none": core.NONE,
}


class HOG(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    r"""Describe images by histograms of oriented gradients.

    The gradient of a pixel is the difference of its neighbours below and above, and to
    the right and left; of colour pixels, that of the channel where it is longest.  Each
    cell of pixels has a histogram of the angles, weighted by length, and each block of
    cells is divided by its own length.  With :math:`v` the histograms of a block and
    :math:`\epsilon = 10^{-5}`, it becomes

    .. math::

        \text{L1: } \frac{v}{\|v\|_1 + \epsilon}, \quad
        \text{L1-sqrt: } \sqrt{\frac{v}{\|v\|_1 + \epsilon}}, \quad
        \text{L2: } \frac{v}{\sqrt{\|v\|_2^2 + \epsilon^2}},

    and for L2-Hys that of L2, cut off at 0.2 and divided by its length once more.
    Blocks are one cell apart, so that most cells count in several.  Features run over
    block rows, block columns, cell rows, cell columns and bins.

    With the defaults, and ``interpolation=False`` in general, features equal those of
    ``skimage.feature.hog``; only where an angle lies on the edge between two bins but
    for the rounding of fractional pixels may it count in the other.  With
    ``interpolation=True`` a gradient is shared among the two nearest bins and the four
    nearest cells, with weights that fall linearly with the distance from their centres:
    small shifts and turns then make small changes.  Blank and constant images have
    features 0.

    Parameters
    ----------
    cell_size : int or pair of int, default=8
        Rows and columns of a cell, in pixels. Pixels that fill no cell, on the right
        and at the bottom, are left out.
    block_size : int or pair of int, default=3
        Rows and columns of a block, in cells.
    bins : int, default=9
        Number of directions.
    block_norm : {"L1", "L1-sqrt", "L2", "L2-Hys", "none"}, default="L2-Hys"
        How blocks are normalised.
    signed : bool, default=False
        Whether opposite directions differ: bins then cover 360 degrees, not 180.
    interpolation : bool, default=False
        Whether gradients are shared among near bins and cells.
    shape : tuple of int, default=None
        Shape of one image if they come flattened, (h, w) or (h, w, 3), channels last;
        one number may be -1. None is for square images.
    n_jobs : int, default=None
        Threads; None is as many as BLAS may use. The result is the same for any
        number.
    verbose : bool or int, default=False
        Whether to log progress on large stacks.

    Attributes
    ----------
    image_shape_ : tuple of int
        Shape of one image.
    n_features_in_ : int
        Number of pixels of an image, times channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where flattened images had names that are all text.

    References
    ----------
    Dalal & Triggs, "Histograms of oriented gradients for human detection", CVPR 2005.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.images import HOG
    >>> ramp = np.tile(np.arange(8.0), (1, 8, 1))
    >>> hog = HOG(cell_size=4, block_size=2, bins=4, block_norm="L2")
    >>> hog.fit(ramp).transform(ramp).reshape(4, 4).round(2)
    array([[0.5, 0. , 0. , 0. ],
           [0.5, 0. , 0. , 0. ],
           [0.5, 0. , 0. , 0. ],
           [0.5, 0. , 0. , 0. ]])
    """

    _parameter_constraints: ClassVar[dict] = {
        "cell_size": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "block_size": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "bins": [Interval(Integral, 1, None, closed="left")],
        "block_norm": [StrOptions(set(NORMS))],
        "signed": ["boolean"],
        "interpolation": ["boolean"],
        **ImageTransformer._parameter_constraints,
    }

    def __init__(
        self,
        cell_size: int | Sequence[int] = 8,
        block_size: int | Sequence[int] = 3,
        bins: int = 9,
        block_norm: str = "L2-Hys",
        signed: bool = False,
        interpolation: bool = False,
        *,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ):
        self.cell_size = cell_size
        self.block_size = block_size
        self.bins = bins
        self.block_norm = block_norm
        self.signed = signed
        self.interpolation = interpolation
        self.shape = shape
        self.n_jobs = n_jobs
        self.verbose = verbose

    def _grid(self) -> core.Grid:
        return core.Grid(
            *pair(self.cell_size, "HOG", "cell_size"),
            *pair(self.block_size, "HOG", "block_size"),
            int(self.bins),
            360.0 if self.signed else 180.0,
            bool(self.interpolation),
            NORMS[self.block_norm],
        )

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        grid = self._grid()
        n_rows = shape[0] // grid.cell_rows - grid.block_rows + 1
        n_columns = shape[1] // grid.cell_columns - grid.block_columns + 1
        if n_rows < 1 or n_columns < 1:
            height = grid.cell_rows * grid.block_rows
            width = grid.cell_columns * grid.block_columns
            raise ValueError(
                f"HOG: images of {shape[0]} x {shape[1]} pixels hold no block of "
                f"{grid.block_rows} x {grid.block_columns} cells of {grid.cell_rows} x "
                f"{grid.cell_columns} pixels. Lower cell_size or block_size, or pass "
                f"images of at least {height} x {width} pixels."
            )
        size = grid.block_rows * grid.block_columns * grid.bins
        return (n_rows * n_columns * size,)

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        core.hog(batch, self._grid(), out)
