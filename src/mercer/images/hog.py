"""Histograms of oriented gradients."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import ClassVar

from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin

from mercer.images.base import ImageTransformer
from mercer.images.gradient_histograms import (
    L1,
    L1_SQRT,
    L2,
    L2_HYS,
    NONE,
    Grid,
    hog,
)
from mercer.images.stack import pair
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.validation import stores_parameters

__all__ = ["HOG"]

NORMS = {
    "L1": L1,
    "L1-sqrt": L1_SQRT,
    "L2": L2,
    "L2-Hys": L2_HYS,
    "none": NONE,
}


@public("mercer.images")
class HOG(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    r"""Describe images by histograms of oriented gradients.

    The gradient at a pixel is the difference between its neighbours below and above,
    and between those to the right and left.  A colour pixel takes the gradient of the
    channel in which the gradient is longest.  Each cell of pixels has a histogram of
    the gradients' angles, weighted by their lengths, and each block of cells is
    normalised.  The histograms :math:`v` of a block become, with
    :math:`\epsilon = 10^{-5}`,

    .. math::

        \text{L1: } \frac{v}{\|v\|_1 + \epsilon}, \quad
        \text{L1-sqrt: } \sqrt{\frac{v}{\|v\|_1 + \epsilon}}, \quad
        \text{L2: } \frac{v}{\sqrt{\|v\|_2^2 + \epsilon^2}},

    and L2-Hys is L2, clipped at 0.2 and then divided by its length again.  Blocks are
    one cell apart, so most cells belong to several blocks.  The features are ordered by
    block row, block column, cell row, cell column and bin.

    With ``interpolation=False``, the default, the features equal those of
    ``skimage.feature.hog``.  There is one exception: if fractional pixel values put an
    angle on the edge between two bins up to rounding, the two may choose different
    bins.  With ``interpolation=True`` a gradient is shared among the two nearest bins
    and the four nearest cells, with weights that fall linearly with the distance from
    their centres, so that small shifts and rotations change the features only a little.
    The features of blank and constant images are 0.

    Parameters
    ----------
    cell_size : int or pair of int, default=8
        Rows and columns of a cell, in pixels. Pixels on the right and at the bottom
        that do not fill a cell are left out.
    block_size : int or pair of int, default=3
        Rows and columns of a block, in cells.
    bins : int, default=9
        Number of orientation bins of a histogram.
    block_norm : {"L1", "L1-sqrt", "L2", "L2-Hys", "none"}, default="L2-Hys"
        How the blocks are normalised.
    signed : bool, default=False
        Whether opposite directions are different: the bins cover 360 degrees if they
        are, and 180 degrees if they are not.
    interpolation : bool, default=False
        Whether a gradient is shared among the nearest bins and cells.
    shape, n_jobs, verbose : as in :class:`ImageTransformer`

    Attributes
    ----------
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    See Also
    --------
    PatchFeatures : learns its features from the images.
    Views : puts several features side by side.

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

    @stores_parameters
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
    ): ...

    def _grid(self) -> Grid:
        return Grid(
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
                f"HOG: images of {shape[0]} x {shape[1]} pixels are too small for a "
                f"block of {grid.block_rows} x {grid.block_columns} cells of "
                f"{grid.cell_rows} x {grid.cell_columns} pixels. Lower cell_size or "
                f"block_size, or pass images of at least {height} x {width} pixels."
            )
        size = grid.block_rows * grid.block_columns * grid.bins
        return (n_rows * n_columns * size,)

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        hog(batch, self._grid(), out)
