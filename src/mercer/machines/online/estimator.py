"""The estimator that learns a support vector machine sample by sample."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import budget_bytes
from mercer.engines.engine import all_of
from mercer.kernels.base import Kernel
from mercer.kernels.dot import Linear
from mercer.kernels.pair import squared_norms
from mercer.machines.base.machine import CACHE_SIZE, UNBOUNDED
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.online.held_machines import HeldMachines, most_held
from mercer.machines.online.learning_steps import (
    CHOICES,
    DistinctSamples,
    LearningSettings,
    finish_over,
    start_from,
    take_samples,
)
from mercer.machines.svc import SVC
from mercer.multiclass.codes import make_code
from mercer.multiclass.decoding import most_voted, score_classes, votes_and_margins
from mercer.runtime.progress import RelayProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions, fit_context
from mercer.runtime.validation import (
    QUIET,
    as_dense,
    check_finite,
    fit_method,
    frozen,
    stores_parameters,
    takes_card_arrays,
)

__all__ = ["OnlineSVC"]

# Largest number of samples whose kernel values are computed at once.
CHUNK = 512


@public("mercer", SVC)
class OnlineSVC(StreamClassifier):
    r"""Support vector classification, learnt sample by sample.

    The problem is that of :class:`SVC`: with :math:`f = K\beta`,

    .. math::

        \max_\beta \; y^T \beta - \tfrac12 \beta^T K \beta
            \quad\text{with}\quad 0 \le y_i \beta_i \le C_i, \; \sum_i \beta_i = 0,

    over the samples that are held. ``partial_fit`` learns from new samples; ``fit``
    starts from a whole data set, which is solved by the batch solver; ``finish`` solves
    to the optimum, over the held samples or over a data set; ``forget`` removes
    samples; ``learn_stream`` predicts and learns chunk by chunk. The machines of
    several classes share the held samples and their kernel values.

    Parameters
    ----------
    C : float, default=1.0
        Penalty of margin violations.
    kernel : str, callable or Kernel, default="rbf"
        The kernel as in :class:`SVC`, but not a precomputed one.
    method : {"lasvm", "smo"}, default="lasvm"
        "lasvm" processes each sample, then reprocesses the worst pair of the held
        samples, and removes samples that cannot become support vectors. "smo" holds all
        samples (within the budget); after each call, and after every 512 samples of a
        larger call, no pair of them violates by more than ``tol``.
    degree, gamma, coef0 : as in :class:`~mercer.SVC`
    multiclass : {"ovr", "ovo"}, default="ovr"
        One machine for each class against the rest, or for each pair of classes.
    tol : float, default=1e-3
        Largest violation of the optimality conditions that is left as it is.
    n_reprocess : int, default=1
        For "lasvm": the number of steps on the worst pair after each sample.
    selection : {"stream", "random", "active", "gradient"}, default="stream"
        The order in which "lasvm" processes the samples of a call: as they come
        ("stream") or at random ("random"). Otherwise some of the waiting samples are
        drawn at random, and the one that is nearest to the decision boundary ("active")
        or farthest on the wrong side of it ("gradient") is next.
    n_candidates : int, default=50
        For "active" and "gradient": how many samples are drawn.
    fraction : float, default=1.0
        Fraction of the samples of a call that are learnt from; below 1 it needs a
        ``selection`` other than "stream".
    duplicates : {"skip", "add"}, default="skip"
        What happens with a sample that is held already. "skip" ignores it, which is
        right for a second pass over the data. "add" adds its cost to that of the held
        sample, as if the sample were held twice.
    budget : int, default=None
        Largest number of samples to hold; None is as many as ``cache_size`` allows.
        Samples that are not support vectors are removed first, then support vectors on
        the wrong side of a machine, then the others; within each kind the oldest come
        first. Their coefficients go to the samples that they suit best. The last sample
        of a class is kept if possible; otherwise a warning names the class.
    cache_size : float or "auto", default="auto"
        Megabytes for the kernel values of the held samples and for everything else that
        learning needs, except the samples themselves. "auto" is at most a quarter of
        the memory that is free at the first call.
    batch_weight : float, default=1.0
        Factor of C for the samples of ``fit``, relative to samples that come later.
    class_weight : dict or "balanced", default=None
        Factors of C by class; "balanced" works with ``fit`` and ``finish(X, y)`` only.
    max_iter : int, default=-1
        Limit on the steps of each solution over the held samples; -1 is ten million.
    n_jobs : int, default=None
        Number of threads, which share the machines; None uses as many as BLAS may use.
    verbose : as in :class:`~mercer.SVC`
    random_state : int, RandomState instance or None, default=None
        Seed of ``selection``.

    Attributes
    ----------
    classes_, class_weight_, code_, kernel_ : as in :class:`~mercer.SVC`
    samples_ : ndarray or CSR matrix of shape (n_held, n_features)
        The held samples.
    labels_ : ndarray of shape (n_held,)
        The classes of the held samples.
    support_ : ndarray of shape (n_SV,)
        Indices of the support vectors among the held samples, class by class.
    support_vectors_, n_support_ : as in :class:`~mercer.SVC`
    dual_coef_ : ndarray of shape (n_tasks, n_SV)
    intercept_, coef_, objective_ : as in :class:`~mercer.SVC`
    dual_gap_ : ndarray of shape (n_tasks,)
        Primal minus dual objective, over the members of each machine; infinite where
        the problem is not convex.
    is_convex_ : as in :class:`~mercer.SVC`
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions by a pair of these members.
    n_iter_ : ndarray of shape (n_tasks,)
        Number of steps on pairs of samples that each machine has made.
    n_seen_ : int
        Number of samples that were learnt from.
    history_ : dict of lists
        Counts after each chunk of ``learn_stream``: "n_seen"; "n_tested", the samples
        that were predicted before they were learnt from; "n_mistakes", those that were
        predicted wrongly; and "n_support".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, if all of them were strings.

    See Also
    --------
    PassiveAggressiveClassifier : simpler, and takes less memory.
    SVC : all samples at once.

    References
    ----------
    Bordes, Ertekin, Weston & Bottou, "Fast kernel classifiers with online and active
    learning", JMLR 6, 2005.

    Examples
    --------
    >>> import mercer
    >>> X, y = mercer.datasets.make_moons(200, random_state=0)
    >>> model = mercer.OnlineSVC(gamma=2.0)
    >>> model = model.partial_fit(X[:100], y[:100], classes=[0, 1])
    >>> model.partial_fit(X[100:], y[100:]).finish().score(X, y)
    1.0
    >>> bool(model.kkt_gap_[0] <= model.tol)
    True
    >>> mercer.OnlineSVC(gamma=2.0).fit(X, y).partial_fit([[0.0, 0.5]], [1]).n_seen_
    201
    """

    _parameter_constraints: ClassVar[dict] = {
        **StreamClassifier._parameter_constraints,
        "C": [Interval(Real, 0.0, None, closed="right")],
        "kernel": [str, callable, Kernel],
        "method": [StrOptions({"lasvm", "smo"})],
        "multiclass": [StrOptions({"ovr", "ovo"})],
        "tol": [Interval(Real, 0.0, None, closed="neither")],
        "n_reprocess": [Interval(Integral, 0, None, closed="left")],
        "selection": [StrOptions(set(CHOICES))],
        "n_candidates": [Interval(Integral, 1, None, closed="left")],
        "fraction": [Interval(Real, 0.0, 1.0, closed="right")],
        "duplicates": [StrOptions({"skip", "add"})],
        "cache_size": CACHE_SIZE,
        "batch_weight": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
    }

    @stores_parameters
    def __init__(
        self,
        C: float = 1.0,
        kernel: Any = "rbf",
        *,
        method: str = "lasvm",
        degree: int = 3,
        gamma: float | str = "scale",
        coef0: float = 0.0,
        multiclass: str = "ovr",
        tol: float = 1e-3,
        n_reprocess: int = 1,
        selection: str = "stream",
        n_candidates: int = 50,
        fraction: float = 1.0,
        duplicates: str = "skip",
        budget: int | None = None,
        cache_size: float | str = "auto",
        batch_weight: float = 1.0,
        class_weight: dict | str | None = None,
        max_iter: int = -1,
        n_jobs: int | None = None,
        verbose: bool | int = False,
        random_state: Any = None,
    ): ...

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineSVC:
        """Start anew from a whole data set, which is solved by the batch solver.

        "lasvm" holds the support vectors, and "smo" holds all samples.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C by sample.

        Returns
        -------
        self
        """
        draft = self._draft(fresh=True)
        X, codes, weight = draft._take_in(X, y, None, sample_weight, whole=True)
        draft._begin(X)
        if self.__sklearn_is_fitted__():  # the new matrix needs the memory
            self._held.gram.drop()
        cost = draft._costs(codes, weight) * self.batch_weight
        progress = RelayProgress(self, X, draft.classes_[codes])
        batch = SVC(
            1.0,
            draft.kernel_,
            multiclass=self.multiclass,
            tol=self.tol,
            cache_size=self.cache_size,
            max_iter=self.max_iter,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        batch.set_callbacks(progress).fit(X, codes, sample_weight=cost)
        beta = np.zeros((draft.code_.shape[1], X.shape[0]))
        beta[:, batch.support_] = as_dense(batch._weights().matrix).T
        draft._held = start_from(
            draft.kernel_,
            X,
            codes,
            cost,
            draft.code_,
            beta,
            draft._learning_settings(),
            is_optimal=batch.converged_,
        )
        draft._held.n_steps += batch.n_iter_
        draft.n_seen_ += X.shape[0]
        draft._conclude()
        self._accept(draft)
        progress.finish()
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> OnlineSVC:
        """Continue learning, from one sample or from many.

        Samples are processed in chunks of up to 512. If a call is interrupted, the
        model is that of the last complete chunk, and ``n_seen_`` counts the samples
        until then.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The classes.
        classes : array of shape (n_classes,), default=None
            All classes that can appear, now or later; needed in the first call.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C by sample.

        Returns
        -------
        self
        """
        if self.selection == "stream" and self.fraction != 1:
            raise ValueError(
                f"fraction={self.fraction!r} needs a selection: selection='stream' "
                "learns from all samples. Set selection='random', 'active' or "
                "'gradient', or fraction=1."
            )
        draft = self._draft()
        X, codes, weight = draft._take_in(X, y, classes, sample_weight)
        if not draft.__sklearn_is_fitted__():
            draft._begin(X)
        X = draft._like_held(X)
        draft._refuse_too_large(X)
        cost = draft._costs(codes, weight)
        n_seen = draft.n_seen_ + X.shape[0]
        for held, count in take_samples(
            draft._held, X, codes, cost, draft._learning_settings(), draft._random()
        ):
            draft._held = held
            draft.n_seen_ += count
            draft._conclude()
            self._accept(draft)
        # Samples that have no weight, or were not selected, count as seen too.
        draft.n_seen_ = n_seen
        self._accept(draft)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def finish(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Solve to the optimum: the KKT gap is at most ``tol``.

        Without data, this is the optimum over the held samples, with the costs that
        they came with. With data, the machine becomes exactly that of :class:`SVC` on
        these data, with the present ``C`` and ``class_weight``: repeated samples count
        as often as they occur, held samples that are not in the data or have weight 0
        are removed, and samples that violate are added until none is left.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), default=None
        y : array of shape (n_samples,), default=None
            The classes, if X is given.
        sample_weight : array of shape (n_samples,), default=None
            Factors of C by sample.

        Returns
        -------
        self
        """
        check_is_fitted(self)
        draft, samples = self._draft(), None
        if X is not None:
            X, codes, weight = draft._take_in(X, y, None, sample_weight)
            if self.class_weight == "balanced":
                draft.class_weight_ = draft._class_weights(draft.classes_[codes], True)
            X = draft._like_held(X)
            draft._refuse_too_large(X)
            samples = DistinctSamples.gather(X, codes, draft._costs(codes, weight))
        self._take_steps(draft, samples)
        return self

    def forget(self, sample: Any) -> int:
        """Remove samples from the model, as if they had never been held.

        Their coefficients go to other samples, among which optimality is restored.

        Parameters
        ----------
        sample : int or array of shape (n_features,) or (n_samples, n_features)
            The index of a sample in ``samples_``, or the samples themselves, of any
            class. Samples that are not held are ignored.

        Returns
        -------
        int
            The number of samples that were removed.
        """
        check_is_fitted(self)
        n = len(self._held)
        if isinstance(sample, Integral):
            if not -n <= int(sample) < n:
                raise ValueError(
                    f"forget({sample}): there are {n} held samples. Pass an index of "
                    f"samples_ from 0 to {n - 1}, or the sample itself."
                )
            leaving = np.array([int(sample) % n])
        else:
            rows = sample if hasattr(sample, "tocsr") else np.atleast_2d(sample)
            leaving = self._held.find(self._like_held(self._validate_for_predict(rows)))
        draft = self._draft()
        draft._held = self._held.fork()
        draft._held.release(leaving, self.tol)
        draft._held.remove(leaving)
        draft._conclude()
        self._accept(draft)
        if self.method == "smo":
            self._take_steps(draft, None)
        return len(leaving)

    def _take_steps(self, draft: OnlineSVC, samples: DistinctSamples | None) -> None:
        """Solve a draft to the optimum, and take over each step."""
        for held in finish_over(draft._held, samples, draft._learning_settings()):
            draft._held = held
            draft._conclude()
            self._accept(draft)

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
            a score for each class: the margin (one-vs-rest), or votes and margins
            (one-vs-one).
        """
        decisions = self._decisions(X)
        if decisions.shape[1] == 1:
            return decisions.ravel()
        if self.multiclass == "ovo":
            return votes_and_margins(decisions, self.code_, is_by_pair=True)
        return decisions

    @QUIET
    def _decisions(self, X: Any) -> NDArray:
        X = self._validate_for_predict(X)
        held = self._held
        X = self._as_held(X, held.gram.rows)
        if isinstance(self.kernel_, Linear):
            values = as_dense(X @ self.coef_.T)
        else:
            values = held.products(X, self.n_jobs)
        values = values + self.intercept_
        check_finite("decision values", values)
        return values

    def _predicted_numbers(self, X: Any) -> NDArray[np.intp]:
        decisions = self._decisions(X)
        if self.multiclass == "ovo":
            return most_voted(decisions, self.code_)
        return score_classes(decisions, self.code_, "margin").argmax(axis=1)

    @property
    def samples_(self) -> Any:
        """The held samples."""
        check_is_fitted(self)
        return frozen(self._held.gram.rows.X.copy())

    @property
    def labels_(self) -> NDArray:
        """The classes of the held samples."""
        check_is_fitted(self)
        return self.classes_[self._held.label[: len(self._held)]]

    @property
    def support_(self) -> NDArray[np.int64]:
        """Indices of the support vectors among the held samples, class by class."""
        check_is_fitted(self)
        used = np.flatnonzero(self._held.coefficients().any(axis=0))
        return used[np.argsort(self._held.label[used], kind="stable")]

    @property
    def support_vectors_(self) -> Any:
        """The support vectors, class by class."""
        return frozen(self._held.gram.rows.X[self.support_])

    @property
    def n_support_(self) -> NDArray[np.int64]:
        """Number of support vectors of each class."""
        labels = self._held.label[self.support_]
        return np.bincount(labels, minlength=len(self.classes_))

    @property
    def dual_coef_(self) -> NDArray:
        """Coefficients of the support vectors, one row for each machine."""
        return frozen(self._held.coefficients()[:, self.support_])

    @property
    def coef_(self) -> NDArray:
        """Weights of the features, one row for each machine."""
        if not isinstance(getattr(self, "kernel_", None), Linear):
            raise AttributeError("coef_ is only available when using a linear kernel")
        return frozen(as_dense(self._held.coefficients() @ self._held.gram.rows.X))

    @property
    def n_iter_(self) -> NDArray[np.int64]:
        """Number of steps that each machine has made."""
        check_is_fitted(self)
        return self._held.n_steps.copy()

    @property
    def objective_(self) -> NDArray:
        """The dual objective of each machine."""
        return self._certified("objective")

    @property
    def is_convex_(self) -> bool | None:
        """Whether the problems are convex: True, False, or None if it is not known."""
        check_is_fitted(self)
        return all_of(self._held.convexity())

    @property
    def dual_gap_(self) -> NDArray:
        """Primal minus dual objective of each machine; infinite if it is not convex."""
        gaps = self._certified("dual_gap")
        is_bound = [verdict is not False for verdict in self._held.convexity()]
        return np.where(is_bound, gaps, np.inf)

    @property
    def kkt_gap_(self) -> NDArray:
        """Largest violation of the optimality conditions in each machine."""
        return self._certified("kkt_gap")

    def _certified(self, name: str) -> NDArray:
        check_is_fitted(self)
        return np.array([getattr(c, name) for c in self._held.certificates()])

    def _count_support(self) -> int:
        return int(self._held.coefficients().any(axis=0).sum())

    @staticmethod
    def _held_from_state(kernel: Any, state: dict[str, Any]) -> HeldMachines:
        return HeldMachines.from_state(kernel, state)

    def _begin(self, X: Any) -> None:
        """Set what depends on the first samples: kernel, code and memory."""
        self._seed = int(check_random_state(self.random_state).randint(2**31 - 1))
        self._n_calls = 0
        self.kernel_ = self._bound_kernel(X)
        self.code_ = make_code(self.multiclass, None, len(self.classes_))
        memory = budget_bytes(self.cache_size)
        side = most_held(memory, X.dtype.itemsize, self.code_.shape[1])
        self._chunk = int(np.clip(side // 4, 1, CHUNK))
        self._most = max(2, side - self._chunk)
        self.n_seen_ = 0
        self._held = HeldMachines.empty(
            self.kernel_, X, self.code_, self._most + self._chunk
        )
        self._conclude()

    def _learning_settings(self) -> LearningSettings:
        return LearningSettings.of(self, self._most, self._chunk)

    def _random(self) -> np.random.Generator:
        """Return the generator of one call; it is the same in a model from a file."""
        self._n_calls += 1
        return np.random.default_rng([self._seed, self._n_calls])

    def _costs(self, codes: NDArray, weight: NDArray) -> NDArray:
        return min(self.C, UNBOUNDED) * self.class_weight_[codes] * weight

    def _like_held(self, X: Any) -> Any:
        rows = self._held.gram.rows
        return self._as_held(X, rows, rows.dtype)

    @QUIET
    def _refuse_too_large(self, X: Any) -> None:
        """Refuse samples without finite kernel values, which would spoil all others."""
        self._check_for_kernel(X)
        most = np.finfo(X.dtype).max / 4
        sizes = squared_norms(X), np.abs(self.kernel_.diagonal(Operand(X)))
        if all((size <= most).all() for size in sizes):
            return
        raise ValueError(
            "The kernel values are not finite: values of X are too large. Scale X. "
            "Nothing was learnt from these samples."
        )

    def _conclude(self) -> None:
        """Update the intercepts, and check for overflow."""
        found = self._held.certificates()
        self.intercept_ = np.array([c.bias for c in found])
        check_finite("dual coefficients or intercepts", [c.objective for c in found])
