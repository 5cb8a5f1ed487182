"""Linear support vector classification."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.utils import compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.engines.cpu.linear.problems import LinearProblems
from mercer.engines.cpu.linear.solve import LinearFound, Start
from mercer.machines.linear.base import LinearMachine, LinearPlan
from mercer.multiclass.calibration import (
    N_FOLDS,
    Sigmoids,
    class_probabilities,
    deal_out,
    fit_sigmoid,
)
from mercer.multiclass.codes import one_vs_rest
from mercer.runtime.progress import FitProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import StrOptions
from mercer.runtime.validation import (
    fit_method,
    takes_card_arrays,
)

__all__ = ["LinearSVC"]

#: which values of ``dual`` scikit-learn has for each loss and penalty
_SUPPORTED = {
    ("hinge", "l2"): {True},
    ("squared_hinge", "l2"): {True, False},
    ("squared_hinge", "l1"): {False},
}


def _wants_probability(self: LinearSVC) -> bool:
    if not self.probability:
        raise AttributeError(
            "predict_proba is not available when probability=False. Set "
            "probability=True before fit."
        )
    return True


@public("mercer")
class LinearSVC(ClassifierMixin, LinearMachine):
    r"""Linear support vector classification.

    For two classes, with :math:`y_i = \pm 1`, it minimises

    .. math::

        \tfrac12 \|w\|^2 + \tfrac12 (b / s)^2
            + \sum_i C_i \, \ell(1 - y_i (w \cdot x_i + b))

    with the loss :math:`\ell(t) = \max\{0, t\}` or its square. The penalty of the
    intercept b, where s is ``intercept_scaling``, is that of LIBLINEAR and
    scikit-learn; ``penalize_intercept=False`` leaves it out, and with ``loss="hinge"``
    this is the machine of ``SVC(kernel="linear")``. More than two classes have a
    machine for each class against the rest; all of them are solved in shared passes
    over the samples.

    Parameters
    ----------
    penalty : {"l1", "l2"}, default="l2"
        The norm of the weights that is penalised. "l1" gives weights of which many are
        0; it needs ``loss="squared_hinge"``.
    loss : {"hinge", "squared_hinge"}, default="squared_hinge"
        The loss of margin violations.
    dual : {"auto"} or bool, default="auto"
        As in scikit-learn, values are refused for some losses and penalties. The solver
        is chosen by the data, and solves both problems.
    tol : float, default=1e-4
        Largest duality gap, relative to the objective.
    C : float, default=1.0
        Penalty of margin violations.
    multi_class : {"ovr", "crammer_singer"}, default="ovr"
        One machine for each class against the rest, or one for all classes jointly, for
        which ``loss``, ``penalty`` and ``dual`` do not count.
    fit_intercept : bool, default=True
        Whether there is an intercept.
    intercept_scaling : float, default=1.0
        Value of the feature that stands for the intercept. A large value makes the
        penalty of the intercept small.
    class_weight : dict or "balanced", default=None
        Factors of C, one for each class, in every machine. With more than two classes,
        LIBLINEAR and scikit-learn weight a class only against the rest, not as a part
        of the rest.
    verbose : int, default=0
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Seed of the order of coordinate descent, and of the folds of ``probability``.
    max_iter : int, default=1000
        Largest number of Newton steps, or of passes of coordinate descent.
    penalize_intercept : bool, default=True
        Whether the intercept is penalised.
    probability : bool, default=False
        Whether to enable ``predict_proba``. Each machine then needs five more problems,
        and ``predict`` returns the most probable class.
    warm_start : bool, default=False
        Whether to begin with what the fit before has found. The coefficients of all
        samples are then kept for the next fit.
    n_jobs : int, default=None
        Number of threads; -1 means all cores, None as many as BLAS may use. The result
        does not depend on it.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    objective_ : ndarray of shape (n_machines,)
        The objective of each machine.
    dual_gap_ : ndarray of shape (n_machines,)
        Primal minus dual objective: each objective is at most so far from its optimum.
    converged_ : bool
        Whether all gaps are at most ``tol`` times the objectives.
    probA_, probB_ : ndarray of shape (n_machines,)
        Parameters of the machines' sigmoids, with ``probability=True``.
    n_iter_ : int
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them are strings.

    See Also
    --------
    SVC : any kernel.
    LinearSVR : regression.
    l1_min_c : the smallest useful C with an l1 penalty.
    export_liblinear : writes the model for LIBLINEAR.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import LinearSVC
    >>> X = np.array([[-1.0, -1.0], [-2.0, -1.0], [1.0, 1.0], [2.0, 1.0]])
    >>> model = LinearSVC().fit(X, [1, 1, 2, 2])
    >>> model.predict([[-0.8, -1.0]])
    array([1])
    >>> model.converged_
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        **LinearMachine._parameter_constraints,
        "penalty": [StrOptions({"l1", "l2"})],
        "loss": [StrOptions({"hinge", "squared_hinge"})],
        "multi_class": [StrOptions({"ovr", "crammer_singer"})],
        "class_weight": [None, dict, StrOptions({"balanced"})],
        "probability": ["boolean"],
    }

    def __init__(
        self,
        penalty: str = "l2",
        loss: str = "squared_hinge",
        *,
        dual: bool | str = "auto",
        tol: float = 1e-4,
        C: float = 1.0,
        multi_class: str = "ovr",
        fit_intercept: bool = True,
        intercept_scaling: float = 1,
        class_weight: dict | str | None = None,
        verbose: int = 0,
        random_state: Any = None,
        max_iter: int = 1000,
        penalize_intercept: bool = True,
        probability: bool = False,
        warm_start: bool = False,
        n_jobs: int | None = None,
    ):
        self.penalty = penalty
        self.loss = loss
        self.dual = dual
        self.tol = tol
        self.C = C
        self.multi_class = multi_class
        self.fit_intercept = fit_intercept
        self.intercept_scaling = intercept_scaling
        self.class_weight = class_weight
        self.verbose = verbose
        self.random_state = random_state
        self.max_iter = max_iter
        self.penalize_intercept = penalize_intercept
        self.probability = probability
        self.warm_start = warm_start
        self.n_jobs = n_jobs

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
        """Fit the machine.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples. Single precision stays single.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C, one for each sample.

        Returns
        -------
        self
        """
        return self._fit(X, y, sample_weight)

    @takes_card_arrays
    def decision_function(self, X: Any) -> NDArray:
        """Return the decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value for each sample, positive for the second class.
        """
        values = self._decisions(X)
        return values.ravel() if values.shape[1] == 1 else values

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the class of each sample.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        values = self._decisions(X)
        if self.probability:
            winner = self._probabilities(values).argmax(axis=1)
        elif values.shape[1] == 1:
            winner = (values.ravel() > 0).astype(np.intp)
        else:
            winner = values.argmax(axis=1)
        return self.classes_[winner]

    @available_if(_wants_probability)
    @takes_card_arrays
    def predict_proba(self, X: Any) -> NDArray:
        """Return the probability of each class.

        Probabilities come from Platt's sigmoids, which were fitted on five folds.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._probabilities(self._decisions(X))

    @available_if(_wants_probability)
    @takes_card_arrays
    def predict_log_proba(self, X: Any) -> NDArray:
        """Return the logarithms of the probabilities.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        with np.errstate(divide="ignore"):
            return np.log(self.predict_proba(X))

    def _probabilities(self, values: NDArray) -> NDArray:
        check_is_fitted(self)
        if not hasattr(self, "probA_"):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        sides = Sigmoids(self.probA_, self.probB_)(values)
        return class_probabilities(sides, one_vs_rest(len(self.classes_)))

    def _check_choices(self) -> None:
        """Refuse parameters that contradict each other."""
        if self.multi_class == "crammer_singer":
            for name, wrong in (
                ("probability", self.probability),
                (
                    "penalize_intercept",
                    self.fit_intercept and not self.penalize_intercept,
                ),
            ):
                if wrong:
                    raise ValueError(
                        f"multi_class='crammer_singer' and {name}="
                        f"{getattr(self, name)} cannot be combined. Use "
                        "multi_class='ovr'."
                    )
            return
        allowed = _SUPPORTED.get((self.loss, self.penalty), set())
        if allowed and (self.dual == "auto" or bool(self.dual) in allowed):
            return
        reason = (
            f"The combination of penalty={self.penalty!r} and loss={self.loss!r} is "
            "not supported"
        )
        if allowed:
            reason = reason.replace("is not", "are not") + f" when dual={self.dual}"
        raise ValueError(
            f"Unsupported set of arguments: {reason}, Parameters: "
            f"penalty={self.penalty!r}, loss={self.loss!r}, dual={self.dual!r}. Use "
            "dual='auto', and loss='squared_hinge' for penalty='l1'."
        )

    def _plan(self, X: Any, y: Any, sample_weight: Any) -> LinearPlan:
        self._check_choices()
        X, y, learnt = self._validated(X, y)
        check_classification_targets(y)
        classes, numbers = np.unique(y, return_inverse=True)
        if len(classes) < 2:
            raise ValueError(
                "This solver needs samples of at least 2 classes in the data, but the "
                f"data contains only one class: {classes.tolist()[0]!r}"
            )
        given = self._sample_weight(X, sample_weight)
        class_weight = compute_class_weight(
            self.class_weight, classes=classes, y=y, sample_weight=given
        )
        if not (np.isfinite(class_weight) & (class_weight >= 0)).all():
            raise ValueError(
                f"class_weight must be finite and >= 0, got {self.class_weight!r}."
            )
        weight = class_weight[numbers] * given
        if not (weight > 0).any():
            raise ValueError(
                "Invalid input - all samples have zero or negative weights."
            )
        learnt |= {"classes_": classes, "class_weight_": class_weight}
        positive = [1] if len(classes) == 2 else range(len(classes))
        sides = np.array([np.where(numbers == c, 1.0, -1.0) for c in positive])
        weights = np.tile(weight, (len(sides), 1))
        if self.probability:
            folds = deal_out(numbers, self._seed())
            learnt["_folds"] = folds
            left = [weight * (folds != k) for k in range(N_FOLDS)]
            weights = np.vstack([weights, np.repeat(left, len(sides), axis=0)])
        return LinearPlan(X, y, sides, weights, learnt)

    def _targets(self, plan: LinearPlan) -> NDArray:
        """Return the sides of all problems, those of folds after the machines."""
        return np.tile(plan.targets, (len(plan.weights) // len(plan.targets), 1))

    def _problems(self, plan: LinearPlan) -> LinearProblems:
        sides, C = self._targets(plan), self.C * plan.weights
        if self.loss == "hinge":
            most, ridge = C, np.zeros_like(C)
        else:
            # A sample without weight has no variable that may move.
            most = np.where(C > 0, np.inf, 0.0)
            ridge = 0.5 / np.where(C > 0, C, 1.0)
        lo = np.where(sides > 0, 0.0, -most)
        hi = np.where(sides > 0, most, 0.0)
        return self._with_intercept(-sides, lo, hi, ridge, plan.X.shape[0])

    def _solve_with(
        self,
        engine: Any,
        plan: LinearPlan,
        start: Start | None,
        progress: FitProgress | None,
    ) -> LinearFound:
        is_joint = self.multi_class == "crammer_singer"
        if self.penalty == "l2" and not is_joint:
            return super()._solve_with(engine, plan, start, progress)
        common = dict(
            scaling=float(self.intercept_scaling) if self.fit_intercept else None,
            tol=self.tol,
            max_iter=self.max_iter,
            seed=self._seed(),
            report=progress,
        )
        if is_joint:
            classes = plan.learnt["classes_"]
            return engine.solve_joint(
                plan.X,
                targets=np.searchsorted(classes, plan.y),
                n_classes=len(classes),
                C=self.C * plan.weights[0],
                **common,
            )
        return engine.solve_l1(
            plan.X,
            sides=self._targets(plan),
            C=self.C * plan.weights,
            is_penalised=self.penalize_intercept,
            start=start,
            **common,
        )

    def _keep(self, plan: LinearPlan, found: LinearFound) -> None:
        intercept = self._intercepts(found)
        learnt = dict(plan.learnt)
        folds = learnt.pop("_folds", None)
        self._keep_common(plan._replace(learnt=learnt), found)
        weights = found.weights
        is_joint = self.multi_class == "crammer_singer"
        n_machines = len(weights) if is_joint else len(plan.targets)
        if folds is not None:
            self._calibrate(plan, folds, weights, intercept)
        if is_joint and len(weights) == 2:
            weights = weights[1:] - weights[:1]
            intercept = intercept[1:] - intercept[:1]
            n_machines = 1
        self.coef_ = np.ascontiguousarray(weights[:n_machines])
        self.intercept_ = intercept[:n_machines] if self.fit_intercept else 0.0
        self.objective_ = found.objective[: 1 if is_joint else n_machines]
        self.dual_gap_ = found.gap[: 1 if is_joint else n_machines]

    def _calibrate(
        self, plan: LinearPlan, folds: NDArray, weights: NDArray, intercept: NDArray
    ) -> None:
        """Fit sigmoids to the decision values of the folds that were left out."""
        k = len(plan.targets)
        decisions = np.empty_like(plan.targets)
        for fold in range(N_FOLDS):
            left_out = np.flatnonzero(folds == fold)
            own = slice((fold + 1) * k, (fold + 2) * k)
            values = plan.X[left_out] @ weights[own].T + intercept[own]
            decisions[:, left_out] = values.T
        weight = plan.weights[0]
        counts = weight > 0
        # Sigmoids count samples as the machines do, as many as there are.
        scaled = weight[counts] * (np.count_nonzero(counts) / weight.sum())
        found = [
            fit_sigmoid(values[counts], sides[counts] > 0, scaled)
            for values, sides in zip(decisions, plan.targets, strict=True)
        ]
        self.probA_ = np.array([sigmoid.A for sigmoid in found])
        self.probB_ = np.array([sigmoid.B for sigmoid in found])
