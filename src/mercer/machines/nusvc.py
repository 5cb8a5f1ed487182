"""Support vector classification with a share of support vectors in place of C."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, Solution, nu_svc
from mercer.machines.base.classifier import KernelClassifier
from mercer.machines.svc import SVC
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import stores_parameters

__all__ = ["NuSVC"]


@public("mercer", SVC)
class NuSVC(KernelClassifier):
    r"""Classification with :math:`\nu` in place of C.

    :math:`\nu` is at least the share of margin errors and at most the share of support
    vectors. The dual problem of two classes is

    .. math::

        \min_\beta \; \tfrac12 \beta^T K \beta
            \quad\text{with}\quad 0 \le y_i \beta_i \le w_i, \quad
            \sum_{y_i = 1} \beta_i = -\sum_{y_i = -1} \beta_i
            = \tfrac\nu2 \sum_i w_i,

    scaled afterwards so that the margin is 1, as in scikit-learn.

    Parameters
    ----------
    nu : float, default=0.5
        An upper bound of the share of margin errors, and a lower bound of the share of
        support vectors; more than 0 and at most 1.
    kernel, degree, gamma, coef0, multiclass, decode, code : as in :class:`~mercer.SVC`
    probability : as in :class:`~mercer.SVC`
    class_weight : dict or "balanced", default=None
        Factors of the upper bounds, one for each class.
    positive_weight : float or array of shape (n_classes,), default=1.0
        Factor of the upper bounds on the positive side, for one-vs-rest only.
    solver : as in :class:`~mercer.SVC`
    tol : float, default=1e-3
        Largest violation of the optimality conditions at the end, before scaling.
    cache_size, max_iter, shrinking : as in :class:`~mercer.SVC`
    decision_function_shape, break_ties, n_jobs, device : as in :class:`~mercer.SVC`
    verbose : as in :class:`~mercer.SVC`
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``probability`` and of random codes.

    Attributes
    ----------
    classes_, support_, support_vectors_, n_support_ : as in :class:`~mercer.SVC`
    dual_coef_, intercept_, coef_, code_, probA_, probB_ : as in :class:`~mercer.SVC`
    kernel_, class_weight_ : as in :class:`~mercer.SVC`
    objective_ : ndarray of shape (n_tasks,)
        The dual objective, to be minimised, of each machine, before scaling.
    dual_gap_ : ndarray of shape (n_tasks,)
        Primal minus dual objective, before scaling; infinite if the problem is not
        convex.
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions, before scaling.
    n_iter_, converged_, is_convex_, fit_status_ : as in :class:`~mercer.SVC`
    n_features_in_, feature_names_in_, shape_fit_ : as in :class:`~mercer.SVC`

    See Also
    --------
    SVC : with a penalty C in place of nu.
    NuSVR : regression with nu.
    OneClassSVM : samples of one kind, with nu.

    References
    ----------
    Schölkopf, Smola, Williamson & Bartlett, "New support vector algorithms", Neural
    Computation 12, 2000.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import NuSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> NuSVC().fit(X, [1, 1, 2, 2]).predict([[-0.8, -1.0]])
    array([1])
    """

    _impl: ClassVar[str] = "nu_svc"  # as programs read it that know LIBSVM
    _parameter_constraints: ClassVar[dict] = {
        **KernelClassifier._parameter_constraints,
        "nu": [Interval(Real, 0.0, 1.0, closed="right")],
    }
    _by_class = True
    _one_side_left = "specified nu is infeasible"

    @stores_parameters
    def __init__(
        self,
        *,
        nu: float = 0.5,
        kernel: Any = "rbf",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        multiclass: str = "ovo",
        decode: str = "auto",
        code: Any = None,
        probability: bool = False,
        class_weight: dict | str | None = None,
        positive_weight: Any = 1.0,
        solver: str = "auto",
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        shrinking: bool = True,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: bool | int = False,
        random_state: Any = None,
    ): ...

    def _problem(self, sides: NDArray, weight: NDArray) -> DualProblem:
        return nu_svc(sides, weight, self.nu)

    def _check_tasks(
        self, sides: NDArray, weight: NDArray, begin: NDArray[np.intp]
    ) -> None:
        positive = np.add.reduceat(np.where(sides > 0, weight, 0.0), begin[:-1])
        negative = np.add.reduceat(np.where(sides < 0, weight, 0.0), begin[:-1])
        with np.errstate(invalid="ignore"):
            allowed = 2.0 * np.minimum(positive, negative) / (positive + negative)
        most = allowed.min()
        if self.nu > most * (1 + 1e-12):
            raise ValueError(
                f"specified nu is infeasible: nu={self.nu:g}, but the weights of two "
                f"classes allow at most {most:.4g}. Lower nu, or use class_weight."
            )

    def _rescaled(self, solutions: Sequence[Solution]) -> Sequence[Solution]:
        rescaled, n_vague = [], 0
        for solution in solutions:
            plus, minus = (*solution.multipliers, 0.0)[:2]
            margin = 0.5 * (plus - minus)
            n_vague += bool(margin <= solution.kkt_gap + solution.error)
            if margin > 0:
                solution = solution._replace(
                    beta=solution.beta / margin,
                    f=solution.f / margin,
                    bias=solution.bias / margin,
                )
            rescaled.append(solution)
        if n_vague:
            problems = "problem" if n_vague == 1 else "problems"
            warn_user(
                f"The margin of {n_vague} {problems} is not larger than the violation "
                f"of the optimality conditions that tol={self.tol:g} allows, so that "
                "decision values, which are scaled by the margin, mean little. Raise "
                f"nu={self.nu:g}, or lower tol."
            )
        return rescaled
