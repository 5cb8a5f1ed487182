"""Regression with several kernels."""

from __future__ import annotations

from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, epsilon_svr
from mercer.engines.cpu.solve import TaskSpec
from mercer.machines.base.machine import SingleMachine
from mercer.machines.mkl.multi_kernel import MultiKernelMachine
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.validation import fit_method, takes_card_arrays

__all__ = ["MKLRegressor"]


@public("mercer")
class MKLRegressor(RegressorMixin, MultiKernelMachine, SingleMachine):
    r"""Support vector regression that learns how to weigh several kernels.

    The weights :math:`d \ge 0` with :math:`\|d\|_p \le 1` minimise the optimal value of
    :class:`~mercer.SVR` with the kernel :math:`\sum_k d_k K_k`. With
    :math:`s_k = \beta^T K_k \beta` and :math:`1/p + 1/q = 1` the dual problem is

    .. math::

        \max_\beta \; z^T \beta - \varepsilon \|\beta\|_1 - \tfrac12 \|s\|_q
            \quad\text{with}\quad |\beta_i| \le C_i, \; \sum_i \beta_i = 0.

    Parameters
    ----------
    kernels : list of str, callable or Kernel, default=("linear", "poly", "rbf")
        The kernels, each as in :class:`~mercer.SVR`; ``k.on(columns)``
        looks at some columns only. With "precomputed", X is a list of matrices or an
        array of shape (n_kernels, n_samples, n_samples); for new samples the shape is
        (n_kernels, n_new, n_samples).
    method : str, default="auto"
        How the weights are found. "auto" takes the method that is fastest for the
        problem at hand: it begins with "group-lasso" and, if that needs many rounds,
        goes on with "smo" or "simple". These three solve the problem above:
        "group-lasso" alternates between machines and closed-form weights, "smo" makes
        pair steps that also move the weights (for p > 1), and "simple" follows the
        reduced gradient (for p = 1). Two methods are heuristics, for which only the
        machines are optimal: "uniform" makes all weights equal, and "alignment" weighs
        a kernel by how well it agrees with the targets.
    p : float, default=None
        Norm of the weights, at least 1. The closer p is to 1, the fewer kernels have a
        weight. None is 1 for "simple" and 2 otherwise. "uniform" and "alignment" ignore
        p.
    penalty : float, default=None
        For "auto", "group-lasso" and "smo": the factor :math:`\lambda` of a penalty
        :math:`\frac\lambda2 \|d\|_p^2` that replaces the bound :math:`\|d\|_p \le 1`.
    alignment : {"plain", "centred", "joint"}, default="plain"
        For ``method="alignment"``. "plain" weighs each kernel by its own alignment,
        "centred" does the same with kernels centred in feature space, and "joint" takes
        the weights whose sum of centred kernels is aligned best.
    normalize : {"trace", "variance"} or None, default="trace"
        "trace" scales each kernel to a mean of 1 on the diagonal, and "variance" to a
        variance of 1 of the samples in its feature space. None does not scale kernels.
    C : float, default=1.0
        Penalty of errors beyond the tube; a finite number > 0.
    epsilon : float, default=0.1
        Half the width of the tube within which errors are not penalised.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid" that are given by name.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid" that are given by name.
    tol : float, default=1e-3
        Largest duality gap at the end, as a fraction of the objective.
    cache_size : float or "auto", default="auto"
        Megabytes for the base Gram matrices, their sum and scratch memory. If the
        matrices do not fit, they are computed again when they are needed.
        "auto" is at most a quarter of the memory that is free.
    max_iter : int, default=-1
        Largest number of rounds, in each of which all machines are solved or improved;
        -1 is 1000.
    n_jobs : int, default=None
        Number of threads; None uses as many as BLAS may use. The result does not depend
        on it.
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        Where to compute: on the processor, or on a graphics card, the first one or
        number N. On a card, the matrices and the machines stay there if ``cache_size``,
        or what is free, allows it; the weights are found on the processor. If they do
        not fit, the card computes kernel values and the processor the rest.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        It has no effect: it is there because ``MKLClassifier`` has it.

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
    converged_ : bool
        Whether every gap is within ``tol``, rounding errors included.
    is_convex_ : bool or None
        Whether the problem is known to be convex, as in :class:`~mercer.SVC`. It is
        convex if all kernels are positive semi-definite. For "uniform" and "alignment"
        it is enough if the weighted sum is.
    fit_status_ : int
        0 if converged, 1 if not.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.
    shape_fit_ : tuple of int
        Shape of the samples, or shape (n_kernels, n_samples, n_samples) of precomputed
        matrices.

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
        random_state: Any = None,
    ):
        self.kernels = kernels
        self.method = method
        self.p = p
        self.penalty = penalty
        self.alignment = alignment
        self.normalize = normalize
        self.C = C
        self.epsilon = epsilon
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.tol = tol
        self.cache_size = cache_size
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.device = device
        self.verbose = verbose
        self.random_state = random_state

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> MKLRegressor:
        """Fit the machine and the weights.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for precomputed kernels a list of matrices.
        y : array of shape (n_samples,)
            The target values.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C by sample.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the predicted value of each sample.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples; for precomputed kernels a list of matrices.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        check_is_fitted(self)
        return self._decisions(X).ravel()

    @takes_card_arrays
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the coefficient of determination, :math:`R^2`.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
        sample_weight : array of shape (n_samples,), default=None

        Returns
        -------
        float
        """
        return super().score(X, y, sample_weight)

    def _problem(self, targets: NDArray, weight: NDArray) -> DualProblem:
        return epsilon_svr(targets, self.C * weight, self.epsilon)

    def _alignment_target(self, spec: TaskSpec) -> NDArray:
        # The linear term of the first half of the variables is epsilon minus the value.
        n = len(spec.problem.p) // 2
        values = self.epsilon - spec.problem.p[:n]
        counts = spec.problem.hi[:n] > 0
        return np.where(counts, values - values[counts].mean(), 0.0)
