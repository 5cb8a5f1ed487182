r"""Pre-images: samples whose image in feature space is close to a given point.

A point in the span of the components is
:math:`\Psi = \sum_i g_i \phi(x_i)`.  For the Gaussian kernel, a sample :math:`z` whose
image is nearest to :math:`\Psi` satisfies

.. math:: z = \frac{\sum_i g_i k(z, x_i) x_i}{\sum_i g_i k(z, x_i)}.

This equation is iterated, starting at a sample nearby.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_array, check_is_fitted

from mercer.core.tiles import ranges
from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import Tiles
from mercer.engines.engine import engine_of, gram_matrix
from mercer.kernels.base import Kernel, OnColumns
from mercer.kernels.radial import RBF
from mercer.machines.base.feature_space import FeatureSpace
from mercer.runtime.validation import as_dense, takes_card_arrays

__all__ = ["PreImages", "fixed_points"]

# Number of points that are iterated together.
ROWS = 256
MOST_STEPS = 200
# The iteration ends at steps shorter than this fraction of the spread of the samples.
STILL = 1e-6


def fixed_points(
    kernel: Kernel,
    X: NDArray,
    weights: NDArray,
    coordinates: NDArray,
    start: NDArray,
    engine: CpuEngine,
) -> NDArray:
    r"""Return a pre-image for each row of ``coordinates``, iterated from ``start``.

    The weights of the samples are ``1/n + weights @ coordinates[i]``.  The iteration is
    undefined if the denominator vanishes; such a point stays where it is.
    """
    anchor = engine.operand(X)
    tiles = Tiles(kernel, anchor, engine.threads)
    spread = float(np.sqrt(X.var(axis=0, dtype=np.float64).sum()))
    found = np.array(start, dtype=np.float64)

    def settle(rows: slice) -> None:
        g = coordinates[rows] @ weights.T + 1.0 / len(X)
        z = found[rows]
        active = np.arange(len(z))
        for _ in range(MOST_STEPS):
            points = Operand(np.ascontiguousarray(z[active], dtype=X.dtype))
            mass = g[active] * tiles(points, anchor)
            total = mass.sum(axis=1)
            is_sound = np.abs(total) > 1e-12 * np.abs(mass).sum(axis=1) + 1e-300
            active, mass, total = active[is_sound], mass[is_sound], total[is_sound]
            moved = (mass @ X) / total[:, None]
            step = np.linalg.norm(moved - z[active], axis=1)
            z[active] = moved
            active = active[step > STILL * spread]
            if not len(active):
                break

    tiles.run(settle, ranges(0, len(found), ROWS, even=False))
    return found


class PreImages(FeatureSpace):
    """The methods of kernel PCA that turn coordinates back into samples."""

    fit_inverse_transform: bool
    preimage: str
    alpha: float
    eigenvalues_: NDArray
    _weights: NDArray
    _coordinates: Any
    transform: Any

    def _check_preimage(self) -> None:
        if self.fit_inverse_transform and self._is_precomputed():
            raise ValueError("Cannot fit_inverse_transform with a precomputed kernel.")
        if self.preimage == "fixed-point" and not (
            isinstance(self.kernel, RBF) or self.kernel == "rbf"
        ):
            raise ValueError(
                "preimage='fixed-point' is an iteration for the Gaussian kernel, got "
                f"kernel={self.kernel!r}. Use kernel='rbf', or preimage='ridge' with "
                "fit_inverse_transform=True."
            )

    def _fit_ridge(self, X: Any) -> None:
        if any(isinstance(part, OnColumns) for part in _parts(self.kernel_)):
            raise ValueError(
                "fit_inverse_transform applies the kernel to coordinates, but this "
                "kernel looks at single columns of the samples. Use a kernel of all "
                "columns."
            )
        self.X_transformed_fit_ = self._coordinates()
        values = self._kernel_of_coordinates(self.X_transformed_fit_)
        values.flat[:: len(values) + 1] += self.alpha
        # Pre-images are sums of samples: they are dense where the samples are sparse.
        wanted = as_dense(X)
        self.dual_coef_ = linalg.solve(values, wanted, assume_a="pos", overwrite_a=True)

    def _kernel_of_coordinates(self, Y: NDArray, Z: Any = None) -> NDArray:
        return gram_matrix(self.kernel_, Y, Z, n_jobs=self.n_jobs, device=self.device)

    @takes_card_arrays
    def inverse_transform(self, X: Any) -> NDArray:
        """Return samples whose coordinates are close to the given ones.

        Parameters
        ----------
        X : array of shape (n_samples, n_components)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        if self.preimage == "fixed-point":
            Y = self._check_coordinates(X, np.float64)
            seen = self._coordinates().astype(np.float64)
            nearest = [int(((seen - y) ** 2).sum(axis=1).argmin()) for y in Y]
            return self._settle(Y, self.X_fit_[nearest])
        if not self.fit_inverse_transform:
            raise NotFittedError(
                "The inverse transform was not learnt: set fit_inverse_transform=True, "
                "or preimage='fixed-point' with the Gaussian kernel, and fit again."
            )
        Y = self._check_coordinates(X, [np.float64, np.float32])
        values = self._kernel_of_coordinates(Y, self.X_transformed_fit_)
        return values @ self.dual_coef_

    def _check_coordinates(self, X: Any, dtype: Any) -> NDArray:
        Y = check_array(X, dtype=dtype, order="C")
        if Y.shape[1] != len(self.eigenvalues_):
            raise ValueError(
                "KernelPCA: coordinates must have shape (n_samples, "
                f"{len(self.eigenvalues_)}), got {Y.shape}."
            )
        return Y

    @takes_card_arrays
    def denoise(self, X: Any) -> NDArray:
        """Return denoised samples, the pre-images of the samples' projections.

        Each is found by the fixed-point iteration for the Gaussian kernel, which starts
        at the sample itself.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        X = self._validate_new(X)
        if not isinstance(self.kernel_, RBF):
            raise ValueError(
                "denoise needs the Gaussian kernel, kernel='rbf', got "
                f"kernel={self.kernel!r}."
            )
        return self._settle(self.transform(X).astype(np.float64), X).astype(X.dtype)

    def _settle(self, coordinates: NDArray, start: Any) -> NDArray:
        with engine_of(n_jobs=self.n_jobs) as engine:
            return fixed_points(
                self.kernel_,
                as_dense(self.X_fit_),
                self._weights,
                coordinates,
                as_dense(start),
                engine,
            )


def _parts(kernel: Kernel) -> list[Kernel]:
    """Return a kernel and all that it is made of."""
    return [kernel, *(p for child in kernel.children() for p in _parts(child))]
