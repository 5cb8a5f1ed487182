"""The estimator that learns a support vector machine sample by sample."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from mercer.kernels.base import Kernel
from mercer.machines.base.streams import StreamClassifier
from mercer.machines.online.base import HeldClassifier
from mercer.machines.online.learning_steps import (
    CHOICES,
    DistinctSamples,
    finish_over,
    start_from,
    take_samples,
)
from mercer.machines.svc import SVC
from mercer.runtime.arrays import as_dense
from mercer.runtime.fitting import fit_method
from mercer.runtime.progress import RelayProgress
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions, fit_context

__all__ = ["OnlineSVC"]


@public("mercer")
class OnlineSVC(HeldClassifier):
    r"""Support vector classification, learnt sample by sample.

    The problem is that of :class:`SVC`: with :math:`f = K\beta`,

    .. math::

        \max_\beta \; y^T \beta - \tfrac12 \beta^T K \beta
            \quad\text{with}\quad 0 \le y_i \beta_i \le C_i, \; \sum_i \beta_i = 0,

    over the samples that are held. ``partial_fit`` takes samples in; ``fit`` starts
    from a whole data set, solved by the batch solver; ``finish`` brings the machine to
    the optimum, over what is held or over a data set; ``forget`` takes a sample out;
    ``learn_stream`` predicts and learns chunk by chunk. Machines of several classes
    share the held samples and their kernel values.

    Parameters
    ----------
    C : float, default=1.0
        Price of a margin violation.
    kernel : str, callable or Kernel, default="rbf"
        As for :class:`SVC`, but not precomputed.
    method : {"lasvm", "smo"}, default="lasvm"
        "lasvm": each sample is processed, the worst pair of the held ones reprocessed,
        and what cannot become a support vector is let go. "smo": all samples are held
        (within the budget), and after each call, or every 512 samples of a larger one,
        no pair of them violates by more than ``tol``.
    degree : int, default=3
        Degree of the kernel "poly".
    gamma : {"scale", "auto"} or float, default="scale"
        Coefficient of the kernels "rbf", "poly" and "sigmoid". "scale" takes the
        variance of the first call's samples: for a stream better give a number.
    coef0 : float, default=0.0
        Constant of the kernels "poly" and "sigmoid".
    multiclass : {"ovr", "ovo"}, default="ovr"
        One machine for each class against the rest, or for each pair of classes.
    tol : float, default=1e-3
        A pair that violates by no more is left alone.
    n_reprocess : int, default=1
        Steps on the worst pair after each sample, for "lasvm".
    selection : {"stream", "random", "active", "gradient"}, default="stream"
        In which order "lasvm" goes through the samples of a call: as they come, at
        random, or, of some that are drawn at random and wait, next the one nearest to
        the decision boundary ("active") or most on the wrong side ("gradient").
    n_candidates : int, default=50
        How many are drawn, for "active" and "gradient".
    fraction : float, default=1.0
        Share of the samples of a call that is learnt from, when ``selection`` chooses.
    duplicates : {"skip", "add"}, default="skip"
        A sample that is held already is skipped, as in a second pass over the data, or
        adds to the cost of the one that is held, as if it were there twice.
    budget : int, default=None
        Most samples to hold. First those leave that are not support vectors, then
        support vectors on the wrong side of a machine, then the others; of each kind
        the oldest first. Their coefficients go to the samples that they suit best.
        The last sample of a class stays, unless there are more classes than samples
        may be held; then a warning names the class that is lost.
        None: as many as ``cache_size`` allows.
    cache_size : float or "auto", default="auto"
        Megabytes for the kernel values of the held samples, and for all that learning
        needs besides the samples themselves; "auto" is at most a quarter of the memory
        that is free at the first call.
    batch_weight : float, default=1.0
        Factor of C for the samples of ``fit``, beside those that come later.
    class_weight : dict or "balanced", default=None
        Factors of C by class; "balanced" with ``fit`` only.
    max_iter : int, default=-1
        Limit on steps of each solution over the held samples; -1 is ten million.
    n_jobs : int, default=None
        Threads, over machines; None is as many as BLAS may use.
    verbose : bool or int, default=False
        Whether to log progress.
    random_state : int, RandomState instance or None, default=None
        For ``selection``.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_weight_ : ndarray of shape (n_classes,)
    code_ : ndarray of shape (n_classes, n_tasks)
        On which side of each machine a class is: 1, -1, or 0 for neither.
    kernel_ : Kernel
        The kernel with its numbers.
    samples_ : ndarray or CSR matrix of shape (n_held, n_features)
        The samples that are held.
    labels_ : ndarray of shape (n_held,)
        Their classes.
    support_ : ndarray of shape (n_SV,)
        Which of them are support vectors, class by class.
    support_vectors_ : ndarray or CSR matrix of shape (n_SV, n_features)
    n_support_ : ndarray of shape (n_classes,)
    dual_coef_ : ndarray of shape (n_tasks, n_SV)
    intercept_ : ndarray of shape (n_tasks,)
    coef_ : ndarray of shape (n_tasks, n_features)
        Weights of the features, for the linear kernel.
    objective_ : ndarray of shape (n_tasks,)
        The dual objective, to be minimised, of each machine.
    dual_gap_ : ndarray of shape (n_tasks,)
        Primal minus dual objective, over the members of each machine; infinite where
        the problem is not convex.
    is_convex_ : bool or None
        Whether the problems are known to be convex, as in :class:`~mercer.SVC`.
    kkt_gap_ : ndarray of shape (n_tasks,)
        Largest violation of the optimality conditions by a pair of them.
    n_iter_ : ndarray of shape (n_tasks,)
        Steps on pairs of samples that each machine has taken.
    n_seen_ : int
        Samples learnt from.
    history_ : dict of lists
        Counts after each chunk of ``learn_stream``: "n_seen", "n_tested",
        "n_mistakes" (of those predicted before they were learnt from), "n_support".
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where the samples had names that are all text.

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
        "cache_size": [StrOptions({"auto"}), Interval(Real, 0, None, closed="neither")],
        "batch_weight": [Interval(Real, 0.0, None, closed="neither")],
        "max_iter": [Interval(Integral, -1, None, closed="left")],
    }

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
    ):
        self.C = C
        self.kernel = kernel
        self.method = method
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.multiclass = multiclass
        self.tol = tol
        self.n_reprocess = n_reprocess
        self.selection = selection
        self.n_candidates = n_candidates
        self.fraction = fraction
        self.duplicates = duplicates
        self.budget = budget
        self.cache_size = cache_size
        self.batch_weight = batch_weight
        self.class_weight = class_weight
        self.max_iter = max_iter
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.random_state = random_state

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> OnlineSVC:
        """Start anew from a whole data set, by the batch solver.

        Of the samples, "lasvm" holds the support vectors, "smo" all.

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
        """Go on learning, from one sample or from many.

        Samples are taken in chunks of up to 512. A call that is interrupted leaves the
        model after the last complete chunk; ``n_seen_`` counts the samples until then.

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
        # Samples without weight, or not chosen, have been looked at too.
        draft.n_seen_ = n_seen
        self._accept(draft)
        return self

    @fit_context(prefer_skip_nested_validation=True)
    def finish(self, X: Any = None, y: Any = None, sample_weight: Any = None) -> Any:
        """Bring the machine to the optimum, so that no pair violates by over ``tol``.

        Without data that is the optimum over the held samples, with the costs that they
        came with. With data, the machine becomes that of :class:`SVC` on exactly these
        data, with ``C`` and ``class_weight`` as they are now: samples that stand there
        several times count so often, held samples that are not among them or have
        weight 0 are let go, and samples that violate are taken in until none is left.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features), default=None
        y : array of shape (n_samples,), default=None
            The classes, if there are data.
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
        for held in finish_over(draft._held, samples, draft._learning_settings()):
            draft._held = held
            draft._conclude()
            self._accept(draft)
        return self

    def forget(self, sample: Any) -> int:
        """Take samples out of the model, as if they had never been held.

        What they carried goes to others, and optimality is restored among these.

        Parameters
        ----------
        sample : int or array of shape (n_features,) or (n_samples, n_features)
            The place of one in ``samples_``, or the samples themselves, of whatever
            class. Those that are not held have nothing to be forgotten.

        Returns
        -------
        int
            How many were held.
        """
        check_is_fitted(self)
        n = len(self._held)
        if isinstance(sample, Integral):
            if not -n <= int(sample) < n:
                raise ValueError(
                    f"forget({sample}): there are {n} held samples. Give a place from "
                    f"0 to {n - 1}, see samples_, or the sample itself."
                )
            leaving = np.array([int(sample) % n])
        else:
            rows = sample if hasattr(sample, "tocsr") else np.atleast_2d(sample)
            leaving = self._held.find(self._like_held(self._validate_for_predict(rows)))
        draft = self._draft()
        draft._held = held = self._held.fork()
        held.release(leaving, self.tol)
        held.remove(leaving)
        draft._conclude()
        self._accept(draft)
        if self.method == "smo":
            for finished in finish_over(held, None, self._learning_settings()):
                draft._held = finished
                draft._conclude()
                self._accept(draft)
        return len(leaving)
