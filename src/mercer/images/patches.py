r"""Features learnt from patches: how much of an image looks like each direction.

A patch is a square of pixels with all channels, read row by row.  Its contrast is
normalised by :math:`(x - \bar x) / \sqrt{\operatorname{var} x + \epsilon}`.  The matrix
products between patches and directions are left to BLAS; compiled functions, on
C-contiguous arrays of float32 or float64, do the rest.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state

from mercer.core.jit import jit
from mercer.images.base import ImageTransformer
from mercer.images.directions import spherical_kmeans
from mercer.images.stack import Stack, pair, regions_of
from mercer.runtime.progress import CountProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.soundness import number, numbers
from mercer.runtime.threads import Threads
from mercer.runtime.validation import stores_parameters

__all__ = ["PatchFeatures"]

# Values of the responses that are computed at a time: half a megabyte in single
# precision, which fits into a second-level cache.
RESPONSES = 2**17
# Number of patches that are read, or converted to double precision, at a time.
AT_ONCE = 4096


@public("mercer.images")
class PatchFeatures(ClassNamePrefixFeaturesOutMixin, ImageTransformer):
    r"""Describe images by their patches, compared with directions that are learnt.

    ``fit`` draws patches from the images, normalises their contrast,
    :math:`(x - \bar x) / \sqrt{\operatorname{var} x + c}`, and whitens them:
    :math:`V (\Lambda + \epsilon)^{-1/2} V^\top (x - m)` with mean :math:`m` and
    covariance :math:`V \Lambda V^\top`.  Spherical k-means then finds unit vectors
    :math:`d_k` along which many patches are long.

    ``transform`` treats the patches at all positions of an image in the same way.  The
    responses :math:`z_k = d_k^\top x` beyond a threshold :math:`t`, on either side,

    .. math:: \max(z_k - t, 0) \quad \text{and} \quad \max(-z_k - t, 0),

    are averaged over regions of the image.  The features are ordered by region, row by
    row, then by side, then by direction.

    Parameters
    ----------
    patch_size : int, default=6
        Rows and columns of a patch, in pixels.
    n_directions : int, default=400
        Number of directions.
    regions : int or pair of int, default=3
        Number of regions along each axis, (rows, columns).
    threshold : float, default=0.25
        Responses up to this value do not count.
    pooling : {"mean", "sum"}, default="mean"
        Whether responses are averaged over a region, or added.
    square_root : bool, default=False
        Whether to take the square root of the features, which brings large and small
        ones closer together.
    contrast : float, default=0.01
        Variance that is added to that of a patch, so that noise in even patches is not
        amplified: a fraction of the mean variance of the patches.
    epsilon : float, default=0.1
        Number that is added to the eigenvalues of the covariance before whitening.
    n_patches : int, default=50000
        Number of patches from which the directions are learnt.
    max_iter : int, default=10
        Number of rounds of k-means.
    cache_size : float, default=500.0
        Memory in megabytes for the patches in ``fit``; more are an error.
    random_state : int, RandomState instance or None, default=None
        Seed of the patches and of k-means.
    shape, n_jobs : as in :class:`ImageTransformer`
    verbose : bool or int, default=False
        Whether to log progress.

    Attributes
    ----------
    directions_ : ndarray of shape (n_directions, n_values)
        The directions, as unit vectors in the space of whitened patches.
    whitening_ : ndarray of shape (n_values, n_values)
        The symmetric matrix that whitens a normalised patch.
    mean_ : ndarray of shape (n_values,)
        The mean of the normalised patches.
    contrast_ : float
        The variance that is added to that of a patch.
    objective_history_ : ndarray of shape (max_iter + 1,)
        The sum of the squared largest responses, before each round and at the end; it
        does not decrease.
    n_iter_ : int
        Number of rounds of k-means.
    image_shape_, n_features_in_, feature_names_in_ : as in :class:`ImageTransformer`

    See Also
    --------
    HOG : gradients, which need no learning.
    Views : puts several features side by side.

    References
    ----------
    Coates & Ng, "The importance of encoding versus training with sparse coding and
    vector quantization", ICML 2011.

    Coates & Ng, "Learning feature representations with k-means", 2012.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from sklearn.preprocessing import StandardScaler
    >>> from mercer import SVC
    >>> from mercer.images import PatchFeatures
    >>> X, y = load_digits(return_X_y=True)
    >>> patches = PatchFeatures(patch_size=3, n_directions=50, random_state=0)
    >>> model = make_pipeline(patches, StandardScaler(), SVC(C=5))
    >>> model.fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "patch_size": [Interval(Integral, 1, None, closed="left")],
        "n_directions": [Interval(Integral, 1, None, closed="left")],
        "regions": [Interval(Integral, 1, None, closed="left"), tuple, list],
        "threshold": [Interval(Real, 0.0, None, closed="left")],
        "pooling": [StrOptions({"mean", "sum"})],
        "square_root": ["boolean"],
        "contrast": [Interval(Real, 0.0, None, closed="neither")],
        "epsilon": [Interval(Real, 0.0, None, closed="neither")],
        "n_patches": [Interval(Integral, 2, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "cache_size": [Interval(Real, 0.0, None, closed="neither")],
        "random_state": ["random_state"],
        **ImageTransformer._parameter_constraints,
    }
    _is_stateless: ClassVar[bool] = False

    @stores_parameters
    def __init__(
        self,
        patch_size: int = 6,
        n_directions: int = 400,
        regions: int | Sequence[int] = 3,
        threshold: float = 0.25,
        *,
        pooling: str = "mean",
        square_root: bool = False,
        contrast: float = 0.01,
        epsilon: float = 0.1,
        n_patches: int = 50000,
        max_iter: int = 10,
        cache_size: float = 500.0,
        random_state: Any = None,
        shape: Sequence[int] | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
    ): ...

    def _positions(self, shape: tuple[int, ...]) -> tuple[int, int]:
        return shape[0] - self.patch_size + 1, shape[1] - self.patch_size + 1

    def _output_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        regions = pair(self.regions, "PatchFeatures", "regions")
        positions = self._positions(shape)
        if positions[0] < regions[0] or positions[1] < regions[1]:
            least = [self.patch_size + g - 1 for g in regions]
            raise ValueError(
                f"PatchFeatures: images of {shape[0]} x {shape[1]} pixels are too "
                f"small for patches of {self.patch_size} x {self.patch_size} pixels in "
                f"{regions[0]} x {regions[1]} regions. Lower patch_size or regions, or "
                f"pass images of at least {least[0]} x {least[1]} pixels."
            )
        return (regions[0] * regions[1] * 2 * int(self.n_directions),)

    def _learn(self, stack: Stack) -> None:
        random = check_random_state(self.random_state)
        patches = self._draw(stack, random)
        self.mean_ = patches.mean(axis=0, dtype=np.float64)
        patches -= self.mean_.astype(patches.dtype)
        self.whitening_ = _whitening(patches, self.epsilon)
        patches = patches @ self.whitening_.astype(patches.dtype)
        k, n_iter = int(self.n_directions), int(self.max_iter)
        progress = CountProgress(self, n_iter, "rounds of k-means", self.verbose)
        with Threads(self.n_jobs) as threads:
            found = spherical_kmeans(
                patches, k, n_iter, random, threads, lambda _: progress.add(1)
            )
        progress.finish()
        self.directions_ = found.vectors
        self.objective_history_ = np.array(found.history)
        self.n_iter_ = n_iter

    def _check_learnt(self) -> None:
        super()._check_learnt()
        channels = self.image_shape_[2] if len(self.image_shape_) > 2 else 1
        n_values = int(self.patch_size) ** 2 * channels
        numbers(self, "directions_", int(self.n_directions), n_values)
        numbers(self, "whitening_", n_values, n_values)
        numbers(self, "mean_", n_values)
        if number(self, "contrast_") <= 0:
            raise ValueError(f"contrast_ is {self.contrast_!r}, not a number above 0")

    def _draw(self, stack: Stack, random: np.random.RandomState) -> NDArray:
        """Return normalised patches from random places of the images."""
        n_rows, n_columns = self._positions(stack.shape)
        channels = stack.pixels.shape[3]
        n, size = int(self.n_patches), int(self.patch_size)
        n_values = size * size * channels
        # The patches are held twice while they are whitened.
        needed = 2 * n * n_values * stack.dtype.itemsize / 2**20
        if needed > self.cache_size:
            most = int(n * self.cache_size / needed)
            raise ValueError(
                f"PatchFeatures: n_patches={n} patches of {n_values} values need "
                f"{needed:.0f} MB, and cache_size={self.cache_size:g}. Take at most "
                f"{most} patches, or raise cache_size."
            )
        places = np.empty((n, 3), dtype=np.intp)
        places[:, 0] = np.sort(random.randint(len(stack), size=n))
        places[:, 1] = random.randint(n_rows, size=n)
        places[:, 2] = random.randint(n_columns, size=n)
        patches = np.empty((n, n_values), dtype=stack.dtype)
        for first in range(0, n, AT_ONCE):
            part = slice(first, first + AT_ONCE)
            used, local = np.unique(places[part, 0], return_inverse=True)
            places[part, 0] = local
            images = np.array(stack.pixels[used], dtype=stack.dtype, order="C")
            read_patches(images, places[part], size, patches[part])
        # What is added to the variances is in proportion to them, so that the features
        # do not depend on the unit of the intensities.
        variance = float(np.mean(patches.var(axis=1, dtype=np.float64)))
        self.contrast_ = self.contrast * variance if variance > 0 else 1.0
        normalise(patches, self.contrast_)
        return patches

    def _fill(self, batch: NDArray, out: NDArray) -> None:
        size, k = int(self.patch_size), int(self.n_directions)
        n_rows, n_columns = self._positions(batch.shape[1:])
        grid = pair(self.regions, "PatchFeatures", "regions")
        # One matrix whitens patches and compares them with the directions.
        weights = self.directions_.astype(np.float64) @ self.whitening_
        offset = (weights @ self.mean_).astype(batch.dtype)
        weights = np.ascontiguousarray(weights.T, dtype=batch.dtype)
        region = regions_of((n_rows, n_columns), grid)
        counts = np.bincount(region.ravel(), minlength=grid[0] * grid[1])
        at_once = max(1, RESPONSES // (n_columns * k))
        patches = np.empty((at_once * n_columns, len(weights)), dtype=batch.dtype)
        responses = np.empty((at_once * n_columns, k), dtype=batch.dtype)
        pooled = out.reshape(len(out), len(counts), 2, k)
        for image, target in zip(batch, pooled, strict=True):
            target[:] = 0
            for first in range(0, n_rows, at_once):
                rows = region[first : first + at_once]
                used = rows.size
                read_rows(image, first, len(rows), size, patches)
                normalise(patches[:used], self.contrast_)
                np.matmul(patches[:used], weights, out=responses[:used])
                pool_two_sided(
                    responses[:used], rows.ravel(), offset, self.threshold, target
                )
            if self.pooling == "mean":
                target /= counts[:, None, None].astype(batch.dtype)
            if self.square_root:
                np.sqrt(target, out=target)


def _whitening(patches: NDArray, epsilon: float) -> NDArray:
    """Return the symmetric matrix that whitens centred patches."""
    d = patches.shape[1]
    covariance = np.zeros((d, d))
    for first in range(0, len(patches), AT_ONCE):
        part = patches[first : first + AT_ONCE].astype(np.float64)
        covariance += part.T @ part
    values, vectors = np.linalg.eigh(covariance / len(patches))
    return (vectors / np.sqrt(np.maximum(values, 0.0) + epsilon)) @ vectors.T


@jit
def read_patches(images: NDArray, places: NDArray, size: int, out: NDArray):
    """Copy patches; ``places`` (n, 3) are image, row and column of their corners."""
    for i in range(len(places)):
        image = images[places[i, 0]]
        _copy_patch(image, places[i, 1], places[i, 2], size, out[i])


@jit
def read_rows(image: NDArray, first: int, n_rows: int, size: int, out: NDArray):
    """Copy the patches of some rows of positions, row by row."""
    n_columns = image.shape[1] - size + 1
    for r in range(n_rows):
        for c in range(n_columns):
            _copy_patch(image, first + r, c, size, out[r * n_columns + c])


@jit
def _copy_patch(image, row, column, size, patch):
    """Copy one patch, row by row."""
    length = size * image.shape[2]
    for r in range(size):
        source = image[row + r, column : column + size].ravel()
        target = patch[r * length : (r + 1) * length]
        for k in range(length):
            target[k] = source[k]


@jit
def normalise(patches: NDArray, epsilon: float):
    """Normalise the contrast of every patch in place."""
    d = patches.shape[1]
    for i in range(len(patches)):
        patch = patches[i]
        total, square = 0.0, 0.0
        for k in range(d):
            total += patch[k]
        mean = total / d
        for k in range(d):
            difference = patch[k] - mean
            square += difference * difference
        scale = 1.0 / math.sqrt(square / d + epsilon)
        for k in range(d):
            patch[k] = (patch[k] - mean) * scale


@jit
def pool_two_sided(
    responses: NDArray,
    regions: NDArray,
    offset: NDArray,
    threshold: float,
    out: NDArray,
):
    r"""Add what exceeds the threshold on either side to the region of its position.

    ``responses`` (n, k) less ``offset`` (k,) are added to ``out`` (regions, 2, k):
    :math:`\max(z - t, 0)` first, then :math:`\max(-z - t, 0)`.
    """
    limit = responses.dtype.type(threshold)
    zero = responses.dtype.type(0.0)
    for i in range(len(responses)):
        row = responses[i]
        above, below = out[regions[i], 0], out[regions[i], 1]
        for k in range(len(row)):
            z = row[k] - offset[k]
            above[k] += max(z - limit, zero)
            below[k] += max(-z - limit, zero)
