"""Regression with several kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, epsilon_svr
from mercer.engines.cpu.solve import TaskSpec
from mercer.machines.mkl.classifier import MKLClassifier
from mercer.machines.mkl.multi_kernel import MultiKernelMachine
from mercer.machines.svr import KernelRegressor
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import stores_parameters

__all__ = ["MKLRegressor"]


@public("mercer", MKLClassifier)
class MKLRegressor(MultiKernelMachine, KernelRegressor):
    r"""Support vector regression that learns how to weigh several kernels.

    The weights :math:`d \ge 0` with :math:`\|d\|_p \le 1` minimise the optimal value of
    :class:`~mercer.SVR` with the kernel :math:`\sum_k d_k K_k`. With
    :math:`s_k = \beta^T K_k \beta` and :math:`1/p + 1/q = 1` the dual problem is

    .. math::

        \max_\beta \; z^T \beta - \varepsilon \|\beta\|_1 - \tfrac12 \|s\|_q
            \quad\text{with}\quad |\beta_i| \le C_i, \; \sum_i \beta_i = 0.

    Parameters
    ----------
    kernels, method, p, penalty, alignment : as in :class:`~mercer.MKLClassifier`
    normalize : as in :class:`~mercer.MKLClassifier`
    C : float, default=1.0
        Penalty of errors beyond the tube; a finite number > 0.
    epsilon : float, default=0.1
        Half the width of the tube within which errors are not penalised.
    degree, gamma, coef0, tol, cache_size : as in :class:`~mercer.MKLClassifier`
    max_iter, n_jobs, device, verbose : as in :class:`~mercer.MKLClassifier`

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,)
        Weights of the kernels after they were scaled by ``normalize``.
    kernel_ : Kernel
        The weighted sum, without kernels of weight 0.
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (1,)
    dual_coef_ : ndarray of shape (1, n_SV)
    intercept_ : ndarray of shape (1,)
    coef_ : ndarray of shape (1, n_features)
        Weights of the features, if only a linear kernel of all columns has a weight.
    objective_ : float
        The dual objective, to be minimised.
    dual_gap_ : float
        Primal minus dual objective of machine and weights together. For "uniform" and
        "alignment" the weights count as given. It is infinite if the problem is not
        convex, because it is not a bound then.
    kkt_gap_ : float
        Largest violation of the optimality conditions of the machine, with fixed
        weights.
    n_iter_ : int
        Rounds.
    history_ : dict of lists
        An entry for each round: "problem" (always 0), "objective", "dual_gap" and
        "weights". In rounds on a part of the samples, they are those of that part.
        These gaps assume that the problem is convex.
    converged_, is_convex_, fit_status_ : as in :class:`~mercer.MKLClassifier`
    n_features_in_, feature_names_in_, shape_fit_ : as in :class:`~mercer.MKLClassifier`

    See Also
    --------
    SVR : one kernel, or a sum with given weights.
    MKLClassifier : the same for classes.

    References
    ----------
    Sun, Ampornpunt, Varma & Vishwanathan, "Multiple kernel learning and the SMO
    algorithm", NIPS 2010.
    Xu, Jin, Yang, King & Lyu, "Simple and efficient multiple kernel learning by group
    lasso", ICML 2010.
    Rakotomamonjy, Bach, Canu & Grandvalet, "SimpleMKL", JMLR 9, 2008.
    Cortes, Mohri & Rostamizadeh, "Algorithms for learning kernels based on centered
    alignment", JMLR 13, 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import MKLRegressor
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(60, 2))
    >>> kernels = [RBF().on([0]), RBF().on([1])]
    >>> model = MKLRegressor(kernels, method="simple", C=10.0)
    >>> model.fit(X, np.sin(2 * X[:, 0])).weights_.round(2)
    array([1., 0.])
    """

    _parameter_constraints: ClassVar[dict] = {
        **MultiKernelMachine._parameter_constraints,
        "epsilon": [Interval(Real, 0.0, None, closed="left")],
    }

    @stores_parameters
    def __init__(
        self,
        kernels: Any = ("linear", "poly", "rbf"),
        *,
        method: str = "auto",
        p: float | None = None,
        penalty: float | None = None,
        alignment: str = "plain",
        normalize: str | None = "trace",
        C: float = 1.0,
        epsilon: float = 0.1,
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: bool | int = False,
    ): ...

    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        return epsilon_svr(targets, self.C * weight, self.epsilon)

    def _alignment_target(self, spec: TaskSpec) -> NDArray:
        # The linear term of the first half of the variables is epsilon minus the value.
        n = len(spec.problem.p) // 2
        values = self.epsilon - spec.problem.p[:n]
        counts = spec.problem.hi[:n] > 0
        return np.where(counts, values - values[counts].mean(), 0.0)
