"""The base of estimators that work in feature space but solve no dual problem."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.products import GivenProduct, GramProduct
from mercer.engines.cpu.tiles import given_budget
from mercer.engines.engine import engine_of
from mercer.kernels.base import Kernel, with_names
from mercer.kernels.given import Custom, Pairwise, Precomputed
from mercer.machines.base.machine import as_kernel
from mercer.runtime.validation import (
    QUIET,
    as_dense,
    check_finite,
    check_square,
    refuse_other_things,
    validate_new_samples,
    validate_samples,
)

__all__ = ["FeatureSpace"]


class FeatureSpace:
    """Binds the kernel, and multiplies kernel values of samples with vectors.

    The class that uses it has the parameters ``kernel``, ``degree``, ``coef0``,
    ``kernel_params``, ``cache_size``, ``n_jobs`` and ``device``, and after the fit
    ``kernel_`` and ``X_fit_``.
    """

    kernel: Any
    kernel_: Kernel
    kernel_params: dict | None
    degree: float
    coef0: float
    cache_size: float | str
    n_jobs: int | None
    # Models in files of earlier versions have no device: they use the processor.
    device: str = "cpu"
    X_fit_: Any

    def _is_precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (
            isinstance(self.kernel, str) and self.kernel == "precomputed"
        )

    def _validate(self, X: Any, **more: Any) -> Any:
        if not isinstance(self.kernel, str):
            refuse_other_things(self, X)
        X = validate_samples(self, X, **more)
        if self._is_precomputed():
            check_square(X)
        return X

    def _bound_kernel(self, X: Any, gamma: float, views: Any) -> Kernel:
        """Return the kernel with its numbers."""
        if callable(self.kernel) and not isinstance(self.kernel, Kernel | type):
            function = partial(self.kernel, **(self.kernel_params or {}))
            return (
                Custom(function) if _takes_matrices(function, X) else Pairwise(function)
            )
        degree = self.degree
        if float(degree).is_integer():
            degree = int(degree)
        kernel = as_kernel(
            self.kernel,
            degree=degree,  # type: ignore[arg-type]
            gamma=gamma,
            coef0=self.coef0,
        )
        names = getattr(self, "feature_names_in_", None)
        return with_names(kernel, views, names).bind(X)

    @QUIET
    def _product(
        self,
        X: Any,
        engine: CpuEngine,
        small: int = 0,
        order: NDArray[np.intp] | None = None,
        work: int = 0,
    ) -> GramProduct | GivenProduct:
        """Return the Gram matrix of the samples, in double precision if it is small.

        ``order`` is another order of the samples, for kernels that are not functions
        of the user; ``work`` is the number of bytes of the budget that are left to the
        caller.
        """
        if self._is_precomputed():
            given = X
            if not (given == given.T).all():
                given = (given + given.T) / given.dtype.type(2)
            product: Any = GivenProduct(given, engine.threads)
        else:
            if X.shape[0] <= small:
                X = X.astype(np.float64)
            product = engine.product(self.kernel_, X, order, self.cache_size, work)
        check_finite("kernel values", product.sums)
        return product

    def _validate_new(self, X: Any) -> Any:
        """Check new samples, and make them sparse or dense like those of the fit."""
        X = validate_new_samples(self, X)
        if not self._is_precomputed():
            self.kernel_.bind(X)  # checks the data: a kernel may be for histograms only
        if self._is_precomputed() or sparse.issparse(X) == sparse.issparse(self.X_fit_):
            return X
        return X.toarray() if sparse.issparse(X) else sparse.csr_array(X)

    @QUIET
    def _times(self, X: Any, weights: NDArray) -> NDArray:
        """Return ``K(X, seen samples) @ weights``, in double precision."""
        if self._is_precomputed():
            found = X.astype(np.float64, copy=False) @ weights
        else:
            budget = given_budget(self.cache_size)
            with engine_of(X, self.device, self.n_jobs) as engine:
                found = engine.apply(self.kernel_, X, self.X_fit_, weights, budget)
        check_finite("kernel values", found)
        return found


def _takes_matrices(function: Any, X: Any) -> bool:
    """Tell a function of two matrices from one of two samples, by a trial.

    scikit-learn's KernelPCA takes functions of two samples.  Such a function also
    returns a single number for two matrices, or it fails.
    """
    try:
        return np.ndim(as_dense(function(X[:2], X[:1]))) > 0
    except Exception as error:
        one = X[[0]] if sparse.issparse(X) else X[0]
        try:
            is_number = np.size(function(one, one)) == 1
        except Exception:
            raise error from None
        if not is_number:
            raise
        return False
