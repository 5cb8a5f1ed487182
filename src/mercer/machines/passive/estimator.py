"""The passive-aggressive classifier, linear or with a kernel."""

from __future__ import annotations

from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.kernels.base import Kernel
from mercer.kernels.dot import Linear
from mercer.machines.base.held_samples import products_with_held
from mercer.machines.base.machine import UNBOUNDED
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.passive.learnt_weights import (
    FeaturePart,
    SamplePart,
    WeightedSamples,
)
from mercer.machines.passive.updates import PA, PA1, PA2, Rule
from mercer.runtime.progress import StepProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions, fit_context
from mercer.runtime.user_warnings import warn_user
from mercer.runtime.validation import (
    QUIET,
    as_dense,
    check_finite,
    fit_method,
    frozen,
    stores_parameters,
    takes_card_arrays,
)

__all__ = ["PassiveAggressiveClassifier"]

VARIANTS = {"pa": PA, "pa1": PA1, "pa2": PA2}
# The budget that stands for no limit.
ANY_NUMBER = np.iinfo(np.int64).max


@QUIET
def _next(steps: Iterator[Any]) -> Any:
    """Make a step.  Overflow is allowed here: the results are checked for it."""
    return next(steps, None)


@public("mercer")
class PassiveAggressiveClassifier(StreamClassifier):
    r"""Passive-aggressive classification, linear or with a kernel.

    A sample with loss :math:`\ell = \max\{0, 1 - y f(x)\} = 0` does not change the
    weights. Any other sample moves them as far as is needed, by :math:`\tau y x` with

    .. math::

        \tau = \frac{\ell}{\|x\|^2}, \qquad
        \tau = \min\Bigl\{C, \frac{\ell}{\|x\|^2}\Bigr\}, \qquad
        \tau = \frac{\ell}{\|x\|^2 + \frac{1}{2C}}

    for the variants PA, PA-I and PA-II. With a kernel, :math:`k(x, x)` takes the place
    of :math:`\|x\|^2`, and the sample becomes a support vector with coefficient
    :math:`\tau y`.

    Parameters
    ----------
    C : float, default=1.0
        Aggressiveness of "pa1", where it is the longest step, and of "pa2", where small
        values shorten all steps.
    variant : {"pa", "pa1", "pa2"}, default="pa1"
        Which of the three steps above is made.
    kernel : str, callable or Kernel, default=None
        None is the linear machine with weights of features, for dense or sparse
        samples. Otherwise a kernel as in :class:`SVC`, but not a precomputed one.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid". "scale" takes the
        variance of the samples in the first call; a number is better for a stream.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    fit_intercept : bool, default=True
        Whether there is an intercept. It moves by :math:`\tau y` and is not part of the
        norm, as in scikit-learn.
    intercept_share : float, default=1.0
        Factor of a step for the intercept. scikit-learn has 0.01 for sparse samples and
        1 for dense ones.
    multiclass : {"ovr", "joint"}, default="ovr"
        "ovr" learns each class against the rest. "joint" makes the multi-class update:
        the loss is :math:`1 - (f_y - \max_{r \ne y} f_r)`, and the weights of both
        classes move.
    average : bool, default=False
        Whether to predict with the average of the weights over all samples.
    budget : int, default=None
        With a kernel, the largest number of support vectors; None sets no limit.
    removal : {"oldest", "smallest"}, default="oldest"
        Which support vector is removed when a new one exceeds the budget: the oldest,
        or the one with the least sum of :math:`|\beta_i| \sqrt{k(x_i, x_i)}` over the
        classes. "smallest" keeps the samples that were hard to learn. If there is noise
        or a rare class, such samples can crowd out all others. A removed sample also
        leaves the average.
    max_iter : int, default=1000
        Largest number of passes over the data in ``fit``.
    tol : float, default=1e-3
        ``fit`` ends when the mean loss has not fallen by this much for
        ``n_iter_no_change`` passes. With None, it makes ``max_iter`` passes.
    n_iter_no_change : int, default=5
        See ``tol``.
    shuffle : bool, default=True
        Whether ``fit`` takes the samples in a new order in each pass.
    class_weight : dict or "balanced", default=None
        Factors of the steps by class; "balanced" works with ``fit`` only. Where a class
        is learnt against the rest, only the samples of this class are weighted.
    n_jobs : int, default=None
        Number of threads for predictions with a kernel; None uses as many as BLAS may
        use.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        Seed of ``shuffle``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Weights of the features, for the linear machine and the linear kernel.
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
        With a kernel, the samples that have coefficients.
    dual_coef_ : ndarray of shape (1, n_SV) or (n_classes, n_SV)
        The coefficients of the support vectors.
    kernel_ : Kernel or None
        The kernel with the values of its parameters.
    n_iter_ : int
        Number of passes over the data.
    n_seen_ : int
        Number of samples that were learnt from, in all passes.
    history_ : dict of lists
        Counts after each chunk of ``learn_stream``: "n_seen"; "n_tested", the samples
        that were predicted before they were learnt from; "n_mistakes", those that were
        predicted wrongly; and "n_support".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them were strings.

    See Also
    --------
    OnlineSVC : comes closer to the optimum, and takes more memory.

    References
    ----------
    Crammer, Dekel, Keshet, Shalev-Shwartz & Singer, "Online passive-aggressive
    algorithms", JMLR 7, 2006.

    Examples
    --------
    >>> import mercer
    >>> X, y = mercer.datasets.make_moons(200, random_state=0)
    >>> model = mercer.PassiveAggressiveClassifier(kernel="rbf", gamma=2.0, budget=50)
    >>> model.partial_fit(X[:100], y[:100], classes=[0, 1]).score(X[100:], y[100:])
    1.0
    >>> mercer.PassiveAggressiveClassifier(random_state=0).fit(X, y).coef_.shape
    (1, 2)
    """

    _parameter_constraints: ClassVar[dict] = {
        **StreamClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "variant": [StrOptions(set(VARIANTS))],
        "kernel": [str, callable, Kernel, None],
        "fit_intercept": ["boolean"],
        "intercept_share": [Interval(Real, 0.0, None, closed="left")],
        "multiclass": [StrOptions({"ovr", "joint"})],
        "average": ["boolean"],
        "removal": [StrOptions({"smallest", "oldest"})],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0.0, None, closed="left"), None],
        "n_iter_no_change": [Interval(Integral, 1, None, closed="left")],
        "shuffle": ["boolean"],
    }

    @stores_parameters
    def __init__(
        self,
        C: float = 1.0,
        variant: str = "pa1",
        kernel: Any = None,
        *,
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        fit_intercept: bool = True,
        intercept_share: float = 1.0,
        multiclass: str = "ovr",
        average: bool = False,
        budget: int | None = None,
        removal: str = "oldest",
        max_iter: int = 1000,
        tol: float | None = 1e-3,
        n_iter_no_change: int = 5,
        shuffle: bool = True,
        class_weight: dict | str | None = None,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ): ...

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Start anew, and make passes over the data until the loss stops falling.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            Factors of the steps by sample.

        Returns
        -------
        self
        """
        draft = self._draft(fresh=True)
        X, codes, weight = draft._take_in(X, y, None, sample_weight, whole=True)
        draft._begin(X)
        rng = np.random.default_rng(
            check_random_state(self.random_state).randint(2**31 - 1)
        )
        n = len(codes)
        progress = StepProgress(self, X, draft.classes_[codes], self.verbose)
        learns = np.ones(draft._n_tasks(), dtype=bool)
        best = np.full(len(learns), np.inf)
        waited = np.zeros(len(learns), dtype=np.int64)
        remedy = "Raise max_iter or tol."
        for epoch in range(1, self.max_iter + 1):
            draft.n_iter_ = epoch
            order = rng.permutation(n) if self.shuffle else np.arange(n)
            loss = np.zeros(len(learns))
            for part in draft._learn(X, codes, weight, order, learns):
                draft._held.settle()
                loss += part / n
            if self.tol is not None:
                waited = np.where(loss > best - self.tol, waited + 1, 0)
                best = np.minimum(best, loss)
                learns &= waited < self.n_iter_no_change
            ends = progress("loss", float(loss.max())) and epoch < self.max_iter
            if not learns.any():
                break
            if ends:
                remedy = "A callback asked for an early end."
                break
        self._accept(draft)
        progress.finish("loss", float(loss.max()))
        if learns.any() and (ends or self.tol is not None):
            warn_user(
                f"PassiveAggressiveClassifier did not converge in {self.n_iter_} "
                f"passes (max_iter={self.max_iter}). {remedy}",
                ConvergenceWarning,
            )
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Make one pass over some samples, in their order.

        With a kernel, the samples are processed in chunks of 256. If a call is
        interrupted, the model is that of the last complete chunk.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The classes.
        classes : array of shape (n_classes,), default=None
            All classes that can appear, now or later; needed in the first call.
        sample_weight : array of shape (n_samples,), default=None
            Factors of the steps by sample.

        Returns
        -------
        self
        """
        draft = self._draft()
        X, codes, weight = draft._take_in(X, y, classes, sample_weight)
        if not draft.__sklearn_is_fitted__():
            draft._begin(X)
        draft._check_for_kernel(X)
        draft.n_iter_ = 1
        learns = np.ones(draft._n_tasks(), dtype=bool)
        for _ in draft._learn(X, codes, weight, np.arange(len(codes)), learns):
            self._accept(draft)
        return self

    @takes_card_arrays
    def decision_function(self, X: Any) -> NDArray:
        """Return the decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            For two classes one value, which is positive for the second class; otherwise
            one value for each class.
        """
        values = self._decisions(X)
        return values.ravel() if values.shape[1] == 1 else values

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        X = self._validate_for_predict(X)
        held = self._held
        if isinstance(held, FeaturePart):
            values = as_dense(X @ self.coef_.T)
        else:
            X = self._as_held(X, held.rows)
            values = products_with_held(
                held.kernel, X, held.rows, self.dual_coef_, self.n_jobs
            )
        values = values + self.intercept_
        check_finite("decision values", values)
        return values

    def _predicted_numbers(self, X: Any) -> NDArray[np.intp]:
        values = self._decisions(X)
        if values.shape[1] == 1:
            return (values.ravel() > 0).astype(np.intp)
        return values.argmax(axis=1)

    @property
    def coef_(self) -> NDArray:
        """Weights of the features, one row for each task."""
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
        return frozen(self._sample_part().rows.X.copy())

    @property
    def dual_coef_(self) -> NDArray:
        """The coefficients of the support vectors, one row for each task."""
        held = self._sample_part()
        return frozen(self._averaged(held.beta, held.u))

    def _sample_part(self) -> SamplePart:
        check_is_fitted(self)
        if isinstance(self._held, FeaturePart):
            raise AttributeError(
                "The linear machine has weights (coef_) and no support vectors. With "
                "kernel='linear' it has both."
            )
        return self._held

    def _averaged(self, last: NDArray, less: NDArray) -> NDArray:
        """Return the last weights, or with ``average`` their average over time."""
        return last - less / max(self._held.t, 1.0) if self.average else last.copy()

    def _count_support(self) -> int:
        return 0 if isinstance(self._held, FeaturePart) else len(self._held)

    @staticmethod
    def _held_from_state(kernel: Any, state: dict[str, Any]) -> Any:
        if kernel is None:
            return FeaturePart.from_state(state)
        return SamplePart.from_state(kernel, state)

    def _n_tasks(self) -> int:
        return 1 if len(self.classes_) == 2 else len(self.classes_)

    def _begin(self, X: Any) -> None:
        """Set what depends on the first samples: the kernel and the weights."""
        if self.kernel is None:
            if self.budget is not None:
                raise ValueError(
                    f"budget={self.budget} needs a kernel: the linear machine does not "
                    "hold samples. Set budget=None, or kernel='linear'."
                )
            self.kernel_ = None
            held: Any = FeaturePart.empty(self._n_tasks(), X.shape[1])
        else:
            self.kernel_ = self._bound_kernel(X)
            held = SamplePart.empty(self.kernel_, X, self._n_tasks())
        self.n_seen_ = 0
        self._held = held

    def _learn(
        self, X: Any, codes: NDArray, weight: NDArray, order: NDArray, learns: NDArray
    ) -> Iterator[NDArray]:
        """Make one pass over samples; yield the losses of each task after each chunk.

        The caller takes over ``self._held`` and settles it before the next chunk.
        """
        rule = Rule(
            VARIANTS[self.variant],
            float(min(self.C, UNBOUNDED)),
            float(self.intercept_share) if self.fit_intercept else 0.0,
            self.multiclass == "joint",
            bool(self.average),
        )
        held = self._held
        if isinstance(held, SamplePart):
            X = self._as_held(X, held.rows, held.rows.dtype)
        samples = WeightedSamples(X, codes, weight, self.class_weight_)
        if isinstance(held, FeaturePart):
            steps = held.learn(samples, order, rule, learns)
        else:
            budget = ANY_NUMBER if self.budget is None else self.budget
            oldest = self.removal == "oldest"
            steps = held.learn(samples, order, rule, learns, budget, oldest)
        while (step := _next(steps)) is not None:
            held, count, losses = step
            check_finite("weights", losses, *held.latest())
            self._held = held
            self.n_seen_ += count
            yield losses
