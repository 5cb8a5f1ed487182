"""Virtual support vectors: train again on distorted copies of the support vectors."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from mercer.images.base import read_array
from mercer.images.distort import Distort
from mercer.images.views import as_rows
from mercer.kernels.views import NamedColumns, name_columns
from mercer.machines.svc import SVC
from mercer.runtime.progress import Lines
from mercer.runtime.public import public
from mercer.runtime.scikit_learn import Interval, StrOptions, check_sample_weight
from mercer.runtime.validation import (
    fit_method,
    stores_parameters,
    takes_card_arrays,
    validate_data,
)

__all__ = ["VirtualSVC"]


def _has(method: str) -> Any:
    """Tell whether the estimator, fitted or not, has a method."""

    def check(self: VirtualSVC) -> bool:
        return hasattr(getattr(self, "estimator_", self._estimator()), method)

    return check


def _of_machine(name: str, explanation: str) -> Any:
    """Return a property that is an attribute of the machine."""
    return property(lambda self: getattr(self._machine(), name), doc=explanation)


@public("mercer.images")
class VirtualSVC(MetaEstimatorMixin, ClassifierMixin, BaseEstimator):
    """Train a support vector machine on distorted copies of its support vectors.

    A machine that is trained on all samples depends on its support vectors only.  If
    the classes do not change under small distortions, neither should the machine: it is
    trained a second time, on its support vectors and on distorted copies of them, the
    virtual support vectors.  That costs far less than copies of all samples.

    Where the estimator is a pipeline, the samples are distorted first, and then pass
    through its transformers, which are fitted once, to the samples as they are.  Test
    samples are not distorted.

    Parameters
    ----------
    estimator : classifier or Pipeline, default=None
        A classifier with the attribute ``support_``, such as :class:`mercer.SVC`, or a
        pipeline that ends with one. None is ``SVC()``.
    distortion : transformer, default=None
        What makes a copy of the samples. Every copy comes from a clone of it with
        another ``random_state``. None is ``Distort()``.
    n_copies : int, default=8
        Number of copies of each sample.
    copied : {"support", "all"}, default="support"
        Which samples are copied: the support vectors of the first machine, which are
        then the only samples of the second one, or all samples, without a first
        machine. The latter suits small data sets, where most samples are support
        vectors anyway.
    max_samples : int, default=None
        Largest number of samples, copies included, of the second machine. If there
        would be more, fewer copies of each sample are made, but at least one. None is
        no limit.
    random_state : int, RandomState instance or None, default=None
        Seed of the distortions.
    verbose : bool or int, default=False
        Whether to log progress.

    Attributes
    ----------
    estimator_ : classifier or Pipeline
        The fitted estimator.
    copied_ : ndarray of shape (n_copied,)
        The samples that were copied.
    n_virtual_ : int
        Number of copies that the machine was trained on.
    classes_ : ndarray of shape (n_classes,)
        The classes.
    n_features_in_ : int
        Number of values of a sample: its columns, or its pixels times channels.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns in ``fit``, if all of them were strings.

    See Also
    --------
    Distort : makes the copies.

    References
    ----------
    Schölkopf, Burges & Vapnik, "Incorporating invariances in support vector learning
    machines", ICANN 1996.

    DeCoste & Schölkopf, "Training invariant support vector machines", Machine Learning
    46, 2002.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.pipeline import make_pipeline
    >>> from mercer import SVC
    >>> from mercer.images import HOG, Distort, VirtualSVC
    >>> X, y = load_digits(return_X_y=True)
    >>> pipeline = make_pipeline(HOG(2, 2, interpolation=True), SVC(C=5))
    >>> distortion = Distort(elastic=0.2, smoothness=2)
    >>> model = VirtualSVC(pipeline, distortion, n_copies=4, random_state=0)
    >>> model.fit(X[:900], y[:900]).score(X[900:], y[900:]) > 0.95
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [Pipeline, BaseEstimator, None],
        "distortion": [BaseEstimator, None],
        "n_copies": [Interval(Integral, 1, None, closed="left")],
        "copied": [StrOptions({"support", "all"})],
        "max_samples": [Interval(Integral, 2, None, closed="left"), None],
        "random_state": ["random_state"],
        "verbose": ["verbose"],
    }

    @stores_parameters
    def __init__(
        self,
        estimator: Any = None,
        distortion: Any = None,
        n_copies: int = 8,
        copied: str = "support",
        *,
        max_samples: int | None = None,
        random_state: Any = None,
        verbose: bool | int = False,
    ): ...

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = False
        return tags

    def _estimator(self) -> Any:
        return SVC() if self.estimator is None else self.estimator

    @fit_method
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> VirtualSVC:
        """Train the machine, copy its support vectors, and train it again.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Samples that the distortion accepts: images, flattened or not.
        y : array of shape (n_samples,)
            The classes.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the samples; a copy has the weight of its sample.

        Returns
        -------
        self
        """
        X = read_array(self, X, reset=True)
        y = validate_data(self, y=y)
        check_consistent_length(X, y)
        check_classification_targets(y)
        self.classes_ = np.unique(y)
        weight = None
        if sample_weight is not None:
            weight = check_sample_weight(sample_weight, X, ensure_non_negative=True)
        lines = Lines(type(self).__name__, int(self.verbose))
        features, machine = _split(self._estimator())
        F = _named_rows(X if features is None else features.fit_transform(X, y))
        rows = self._rows_to_copy(machine, F, y, weight)
        n_copies = self.n_copies
        if self.max_samples is not None:
            n_copies = max(1, min(n_copies, self.max_samples // len(rows) - 1))
        told = (lines.seconds, len(rows), n_copies)
        lines.write("%.1f s: %d samples are copied %d times", *told)
        samples, random = X[rows], check_random_state(self.random_state)
        joined = np.empty((len(rows) * (1 + n_copies), F.shape[1]), F.dtype)
        joined[: len(rows)] = F[rows]
        for k in range(1, 1 + n_copies):
            copy = self._copy(samples, random)
            part = joined[k * len(rows) : (k + 1) * len(rows)]
            part[:] = as_rows(copy if features is None else features.transform(copy))
            if lines.is_due():
                done = (lines.seconds, k, n_copies)
                lines.write("%.1f s: %d of %d copies are made", *done)
        origin = np.tile(rows, 1 + n_copies)
        joined = name_columns(joined, F.views)
        del F
        more = {} if weight is None else {"sample_weight": weight[origin]}
        machine.fit(joined, y[origin], **more)
        self.copied_ = rows
        self.n_virtual_ = len(origin) - len(rows)
        self.estimator_ = machine
        if features is not None:
            name = self._estimator().steps[-1][0]
            self.estimator_ = Pipeline([*features.steps, (name, machine)])
        lines.write("fitted in %.2f s with %d copies", lines.seconds, self.n_virtual_)
        return self

    def _rows_to_copy(self, machine: Any, F: Any, y: NDArray, weight: Any) -> NDArray:
        """Return the samples to copy: all, or a first machine's support vectors."""
        if self.copied == "all":
            return np.arange(len(y))
        first = clone(machine)
        first.fit(F, y, **({} if weight is None else {"sample_weight": weight}))
        if not hasattr(first, "support_"):
            raise TypeError(
                f"VirtualSVC: {type(first).__name__} has no attribute support_, so its "
                "support vectors are unknown. Take a machine such as SVC, or "
                "copied='all'."
            )
        return np.unique(first.support_)

    def _copy(self, samples: NDArray, random: np.random.RandomState) -> NDArray:
        """Return a distorted copy of the samples."""
        distortion = Distort() if self.distortion is None else clone(self.distortion)
        seed = int(random.randint(np.iinfo(np.int32).max))
        if "random_state" in distortion.get_params():
            distortion.set_params(random_state=seed)
        copy = distortion.fit_transform(samples)
        if len(copy) != len(samples):
            raise ValueError(
                f"VirtualSVC: {type(distortion).__name__} made {len(copy)} copies of "
                f"{len(samples)} samples. It must return one copy of each."
            )
        return copy

    dual_gap_ = _of_machine(
        "dual_gap_", "The gap between primal and dual of the machine, by problem."
    )
    objective_ = _of_machine(
        "objective_", "The value of the dual of the machine, by problem."
    )
    kkt_gap_ = _of_machine(
        "kkt_gap_", "The largest violation of the optimality conditions, by problem."
    )
    converged_ = _of_machine(
        "converged_", "Whether the machine was solved to its tolerance."
    )

    def _machine(self) -> Any:
        check_is_fitted(self)
        is_pipeline = isinstance(self.estimator_, Pipeline)
        return self.estimator_[-1] if is_pipeline else self.estimator_

    def _apply(self, method: str, X: Any) -> NDArray:
        check_is_fitted(self)
        X = read_array(self, X, reset=False)
        if not isinstance(self.estimator_, Pipeline):
            X = as_rows(X)
        return getattr(self.estimator_, method)(X)

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the class of each sample.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Samples like those in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        return self._apply("predict", X)

    @available_if(_has("decision_function"))
    @takes_card_arrays
    def decision_function(self, X: Any) -> NDArray:
        """Return the decision values of the machine.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Samples like those in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_columns)
        """
        return self._apply("decision_function", X)

    @available_if(_has("predict_proba"))
    @takes_card_arrays
    def predict_proba(self, X: Any) -> NDArray:
        """Return the probability of each class.

        Parameters
        ----------
        X : array of shape (n_samples, ...)
            Samples like those in ``fit``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        return self._apply("predict_proba", X)


def _named_rows(values: Any) -> NamedColumns:
    """Return samples as rows that keep the names of their views, if they have names."""
    views = values.views if isinstance(values, NamedColumns) else {}
    return name_columns(as_rows(values), views)


def _split(estimator: Any) -> tuple[Pipeline | None, Any]:
    """Return clones of the transformers of a pipeline, and of its last step."""
    copy = clone(estimator)
    if not isinstance(copy, Pipeline):
        return None, copy
    if len(copy) == 1:
        return None, copy[-1]
    return copy[:-1], copy[-1]
