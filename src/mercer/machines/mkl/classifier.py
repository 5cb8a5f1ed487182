"""Classification with several kernels."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, c_svc
from mercer.engines.cpu.solve import TaskSpec
from mercer.machines.base.classifier import KernelClassifier
from mercer.machines.mkl.multi_kernel import MultiKernelMachine
from mercer.machines.svc import SVC
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import StrOptions
from mercer.runtime.validation import stores_parameters

__all__ = ["MKLClassifier"]


@public("mercer", SVC)
class MKLClassifier(MultiKernelMachine, KernelClassifier):
    r"""Support vector classification that learns how to weigh several kernels.

    For two classes, with :math:`K = \sum_k d_k K_k` and
    :math:`s_k = \beta^T K_k \beta`, the primal and the dual problem are

    .. math::

        \min_{d \ge 0,\, \|d\|_p \le 1} \; \max_\beta \;
            y^T \beta - \tfrac12 \beta^T K \beta
        \qquad
        \max_\beta \; y^T \beta - \tfrac12 \|s\|_q,
            \quad \tfrac1p + \tfrac1q = 1,

    with the box and sum constraints of :class:`~mercer.SVC`. More than two classes need
    several such machines; if the machines share the weights, their objectives are
    added.

    Parameters
    ----------
    kernels : list of str, callable or Kernel, default=("linear", "poly", "rbf")
        The kernels, each as in :class:`~mercer.SVC`; ``k.on(columns)``
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
        Penalty of margin violations; a finite number > 0.
    weights : {"shared", "per-task"}, default="shared"
        Whether all machines have the same weights, or each has its own.
    degree : as in :class:`~mercer.SVC`
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid" that are given by name.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid" that are given by name.
    multiclass : {"ovo", "ovr", "ecoc"}, default="ovr"
        One machine for each pair of classes, for each class against the rest, or for
        each column of an error-correcting output code.
    decode, code : as in :class:`~mercer.SVC`
    probability : bool, default=False
        Whether to fit what ``predict_proba`` needs: five more problems for each
        machine, with the kernel weights that were learnt from all samples. Class and
        sample weights count in the probabilities, as for :class:`~mercer.SVC`.
    class_weight, positive_weight : as in :class:`~mercer.SVC`
    tol : float, default=1e-3
        Largest duality gap at the end, as a fraction of the objective.
    cache_size : float or "auto", default="auto"
        Megabytes for the base Gram matrices, their sum and scratch memory. If the
        matrices do not fit, they are computed again when they are needed.
        "auto" is at most a quarter of the memory that is free.
    max_iter : int, default=-1
        Largest number of rounds, in each of which all machines are solved or improved;
        -1 is 1000.
    decision_function_shape, break_ties, n_jobs : as in :class:`~mercer.SVC`
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        Where to compute: on the processor, or on a graphics card, the first one or
        number N. On a card, the matrices and the machines stay there if ``cache_size``,
        or what is free, allows it; the weights are found on the processor. If they do
        not fit, the card computes kernel values and the processor the rest.
    verbose : as in :class:`~mercer.SVC`
    random_state : int, RandomState instance or None, default=None
        Seed of the folds of ``probability`` and of random codes.

    Attributes
    ----------
    weights_ : ndarray of shape (n_kernels,) or (n_tasks, n_kernels)
        Weights of the kernels after they were scaled by ``normalize``.
    kernel_ : Kernel or list of Kernel
        The weighted sum, without kernels of weight 0; one for each machine with
        ``weights="per-task"``.
    classes_, support_, support_vectors_, n_support_ : as in :class:`~mercer.SVC`
    dual_coef_, intercept_ : as in :class:`~mercer.SVC`
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of the features, if only a linear kernel of all columns has a weight.
    code_, probA_, probB_, class_weight_ : as in :class:`~mercer.SVC`
    objective_ : float or ndarray of shape (n_tasks,)
        The dual objective, to be minimised, of all machines together; one for each
        machine with ``weights="per-task"``.
    dual_gap_ : float or ndarray of shape (n_tasks,)
        Primal minus dual objective of machines and weights together. For "uniform" and
        "alignment" the weights count as given. It is infinite if the problem is not
        convex, because it is not a bound then.
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions of each machine, with fixed
        weights.
    n_iter_ : int or ndarray of shape (n_tasks,)
        Rounds.
    history_ : dict of lists
        An entry for each round: "problem" (the number of the machine with
        ``weights="per-task"``, otherwise 0), "objective", "dual_gap" and "weights". In
        rounds on a part of the samples, they are those of that part. These gaps assume
        that the problem is convex.
    converged_ : bool
        Whether every gap is within ``tol``, rounding errors included.
    is_convex_ : bool or None
        Whether the problem is known to be convex, as in :class:`~mercer.SVC`. It is
        convex if all kernels are positive semi-definite. For "uniform" and "alignment"
        it is enough if the weighted sum is.
    fit_status_, n_features_in_, feature_names_in_ : as in :class:`~mercer.SVC`
    shape_fit_ : tuple of int
        Shape of the samples, or shape (n_kernels, n_samples, n_samples) of precomputed
        matrices.

    See Also
    --------
    SVC : one kernel, or a sum with given weights.
    MKLRegressor : the same for numbers.
    mercer.images.Views : several kinds of features, by name.
    mercer.plots.KernelWeightsDisplay : draws the weights.

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
    >>> from mercer import MKLClassifier
    >>> from mercer.kernels import RBF
    >>> X = np.random.default_rng(0).normal(size=(200, 4))
    >>> y = X[:, 0] ** 2 + X[:, 1] ** 2 > 1.5
    >>> useful, noise = RBF().on([0, 1]), RBF().on([2, 3])
    >>> model = MKLClassifier([useful, noise], method="group-lasso", p=1)
    >>> model.fit(X, y).weights_.round(1)
    array([1., 0.])
    >>> model.converged_
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **{
            name: allowed
            for name, allowed in KernelClassifier._parameter_constraints.items()
            if name not in ("kernel", "solver", "shrinking")
        },
        **MultiKernelMachine._parameter_constraints,
        "weights": [StrOptions({"shared", "per-task"})],
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
        weights: str = "shared",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        multiclass: str = "ovr",
        decode: str = "auto",
        code: Any = None,
        probability: bool = False,
        class_weight: dict | str | None = None,
        positive_weight: Any = 1.0,
        tol: float = 1e-3,
        cache_size: float | str = "auto",
        max_iter: int = -1,
        decision_function_shape: str = "ovr",
        break_ties: bool = False,
        n_jobs: int | None = None,
        device: str = "cpu",
        verbose: bool | int = False,
        random_state: Any = None,
    ): ...

    def _problem(self, sides: NDArray, weight: NDArray) -> DualProblem:
        return c_svc(sides, self.C * weight)

    def _is_shared(self) -> bool:
        return self.weights == "shared"

    def _alignment_target(self, spec: TaskSpec) -> NDArray:
        # The linear term is minus the side. Samples of weight 0 are left out.
        return np.where(spec.problem.hi > spec.problem.lo, -spec.problem.p, 0.0)
