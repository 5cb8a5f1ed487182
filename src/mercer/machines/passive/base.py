"""What a passive-aggressive learner shows: attributes, decisions, its state."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from mercer.kernels.dot import Linear
from mercer.machines.base.machine import QUIET
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.passive.learnt_weights import FeaturePart, SamplePart
from mercer.runtime.arrays import as_dense, frozen

__all__ = ["PassiveBase"]


class PassiveBase(StreamClassifier):
    """Base of :class:`PassiveAggressiveClassifier`: all but learning."""

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "_held")

    def _count_support(self) -> int:
        return 0 if isinstance(self._held, FeaturePart) else len(self._held)

    def _averaged(self, last: NDArray, less: NDArray) -> NDArray:
        """Return weights, or their average over all samples if that is wanted."""
        return last - less / max(self._held.t, 1.0) if self.average else last.copy()

    @property
    def coef_(self) -> NDArray:
        """Weights of the features, a row for each task."""
        check_is_fitted(self)
        held = self._held
        if isinstance(held, FeaturePart):
            return frozen(self._averaged(held.w, held.u))
        if not isinstance(self.kernel_, Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return frozen(as_dense(self.dual_coef_ @ held.rows.X))

    @property
    def intercept_(self) -> NDArray:
        """Intercepts, one for each task."""
        check_is_fitted(self)
        return frozen(self._averaged(self._held.b, self._held.v))

    @property
    def support_vectors_(self) -> Any:
        """The samples that have coefficients."""
        return frozen(self._samples().rows.X.copy())

    @property
    def dual_coef_(self) -> NDArray:
        """The coefficients of the support vectors, a row for each task."""
        held = self._samples()
        return frozen(self._averaged(held.beta, held.u))

    def _samples(self) -> SamplePart:
        check_is_fitted(self)
        if isinstance(self._held, FeaturePart):
            raise AttributeError(
                "The linear machine has no support vectors, but weights: coef_. With "
                "kernel='linear' it would have both."
            )
        return self._held

    @QUIET
    def decision_function(self, X: Any) -> NDArray:
        """Return the decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, positive for the second; else one for each class.
        """
        X = self._validate_for_predict(X)
        held = self._held
        if isinstance(held, FeaturePart):
            values = as_dense(X @ self.coef_.T)
        else:
            X = self._like(X, sparse.issparse(held.rows.X))
            values = held.products(X, self.dual_coef_, self.n_jobs)
        values = values + self.intercept_
        if not np.isfinite(values).all():
            raise ValueError(
                "The decision values are not finite: X has too large values; scale it."
            )
        return values.ravel() if values.shape[1] == 1 else values

    def predict(self, X: Any) -> NDArray:
        """Return the class of each sample; the model stays as it is.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self.decision_function(X)
        winner = values.argmax(axis=1) if values.ndim == 2 else (values > 0).astype(int)
        return self.classes_[winner]

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_held" in state:
            state["_held"] = state["_held"].state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        state = dict(state)
        if "_held" in state:
            held, kernel = state["_held"], state["kernel_"]
            if kernel is None:
                state["_held"] = FeaturePart.from_state(held)
            else:
                state["_held"] = SamplePart.from_state(kernel, held)
        super().__setstate__(state)
