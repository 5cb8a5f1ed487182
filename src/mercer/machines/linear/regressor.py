"""Linear support vector regression."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils import assert_all_finite

from mercer.engines.cpu.linear.problems import LinearProblems
from mercer.engines.cpu.linear.solve import LinearFound
from mercer.machines.linear.base import LinearMachine, LinearPlan
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions
from mercer.runtime.validation import (
    fit_method,
    takes_card_arrays,
)

__all__ = ["LinearSVR"]


@public("mercer")
class LinearSVR(RegressorMixin, LinearMachine):
    r"""Linear support vector regression.

    .. math::

        \min_{w, b} \; \tfrac12 \|w\|^2 + \tfrac12 (b / s)^2
            + \sum_i C_i \, \ell(|w \cdot x_i + b - y_i| - \varepsilon)

    with the loss :math:`\ell(t) = \max\{0, t\}` or its square. The penalty of the
    intercept b, where s is ``intercept_scaling``, is that of LIBLINEAR and
    scikit-learn; ``penalize_intercept=False`` leaves it out, which gives the machine of
    ``SVR(kernel="linear")``.

    Parameters
    ----------
    epsilon : float, default=0.0
        Half the width of the tube in which deviations are not penalised.
    tol : float, default=1e-4
        Largest duality gap, relative to the objective.
    C : float, default=1.0
        Penalty of deviations.
    loss : str, default="epsilon_insensitive"
        The loss of deviations: "epsilon_insensitive", or its square,
        "squared_epsilon_insensitive".
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_scaling : float, default=1.0
        Value of the feature that stands for the intercept. A large value makes the
        penalty of the intercept small.
    dual : {"auto"} or bool, default="auto"
        As in scikit-learn, False is refused for the loss "epsilon_insensitive". The
        solver is chosen by the data, and solves both problems.
    verbose : int, default=0
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the order in which coordinate descent visits sparse samples.
    max_iter : int, default=1000
        Largest number of Newton steps, or of passes of coordinate descent.
    penalize_intercept : bool, default=True
        Whether the intercept is penalised.
    warm_start : bool, default=False
        Whether to begin with what the fit before has found. The coefficients of all
        samples are then kept for the next fit.
    n_jobs : int, default=None
        Number of threads; -1 means all cores, None as many as BLAS may use. The result
        does not depend on it.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : ndarray of shape (1,)
    objective_ : float
        The objective above.
    dual_gap_ : float
        Primal minus dual objective: the objective is at most so far from the optimum.
    converged_ : bool
        Whether the gap is at most ``tol`` times the objective.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them are strings.

    See Also
    --------
    SVR : any kernel.
    LinearSVC : classification.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LinearSVR
    >>> X = np.arange(6.0)[:, None]
    >>> model = LinearSVR(C=100.0, tol=1e-8).fit(X, 2.0 * X.ravel())
    >>> model.coef_.round(3)
    array([2.])
    >>> model.converged_
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **LinearMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
        "loss": [StrOptions({"epsilon_insensitive", "squared_epsilon_insensitive"})],
    }

    def __init__(
        self,
        *,
        epsilon: float = 0.0,
        tol: float = 1e-4,
        C: float = 1.0,
        loss: str = "epsilon_insensitive",
        fit_intercept: bool = True,
        intercept_scaling: float = 1.0,
        dual: bool | str = "auto",
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        penalize_intercept: bool = True,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ):
        self.epsilon = epsilon
        self.tol = tol
        self.C = C
        self.loss = loss
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.dual = dual
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVR:
        """Fit the machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples. Single precision stays single.
        y : array of shape (n_samples,)
            The values.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C, one for each sample.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the value of each sample.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._decisions(X).ravel()

    def _plan(self, X: Any, y: Any, sample_weight: Any) -> LinearPlan:
        if self.loss == "epsilon_insensitive" and self.dual is False:
            raise ValueError(
                "Unsupported set of arguments: The combination of penalty='l2' and "
                "loss='epsilon_insensitive' are not supported when dual=False, "
                "Parameters: penalty='l2', loss='epsilon_insensitive', dual=False. "
                "Set dual='auto'."
            )
        X, y, learnt = self._validated(X, y)
        targets = y.astype(np.float64)
        assert_all_finite(targets, input_name="y")
        weight = self._sample_weight(X, sample_weight)
        return LinearPlan(X, y, targets[None], weight[None], learnt)

    def _problems(self, plan: LinearPlan) -> LinearProblems:
        z, n = plan.targets, plan.X.shape[0]
        C = self.C * plan.weights
        p = np.hstack([self.epsilon - z, -self.epsilon - z])
        if self.loss == "epsilon_insensitive":
            lo, hi = np.hstack([0 * C, -C]), np.hstack([C, 0 * C])
            ridge = np.zeros_like(p)
        else:
            # A sample without weight has no variable that may move.
            most = np.where(C > 0, np.inf, 0.0)
            lo, hi = np.hstack([0 * C, -most]), np.hstack([most, 0 * C])
            ridge = np.tile(0.5 / np.where(C > 0, C, 1.0), 2)
        return self._with_intercept(p, lo, hi, ridge, n)

    def _keep(self, plan: LinearPlan, found: LinearFound) -> None:
        intercept = self._intercepts(found)
        self._keep_common(plan, found)
        self.coef_ = found.weights[0]
        self.intercept_ = intercept if self.fit_intercept else 0.0
        self.objective_ = float(found.objective[0])
        self.dual_gap_ = float(found.gap[0])
