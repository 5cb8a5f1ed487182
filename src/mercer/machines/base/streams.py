"""What classifiers that learn from a stream share: validation, chunks and a history.

A stream is any iterable of chunks ``(X, y)`` or ``(X, y, sample_weight)``.  Each chunk
is first predicted and then learnt from, so that the share of mistakes is an honest
estimate at every moment (progressive validation).

Learning works on a draft of the estimator, which the estimator takes over by one
assignment when a step is complete.  Whatever ends a call before that, such as Ctrl-C,
lack of memory or samples that are refused, leaves the estimator as it was.
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from mercer.kernels.base import Kernel, with_names
from mercer.kernels.expression import as_kernel
from mercer.kernels.given import Precomputed
from mercer.kernels.views import views_of
from mercer.runtime.arrays import refuse_other_things
from mercer.runtime.progress import EVERY, log, speak_up
from mercer.runtime.scikit_learn import (
    Interval,
    StrOptions,
    check_partial_fit_first_call,
    check_sample_weight,
)
from mercer.runtime.validation import validate_data

__all__ = ["StreamClassifier"]

# Entries of a history: beyond them every second one is dropped, so that it stays small
# on a stream without end.
LONGEST_HISTORY = 4096
ENTRIES = ("n_seen", "n_tested", "n_mistakes", "n_support")
# What is learnt, besides the attributes whose names end with an underscore.
LEARNT = {"_held", "_views", "_seed", "_n_calls", "_chunk", "_most"}


def _is_learnt(name: str) -> bool:
    return name.endswith("_") or name in LEARNT


def _no_history() -> dict[str, list[int]]:
    return {name: [] for name in ENTRIES}


class StreamClassifier(ClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """Base of the classifiers with ``partial_fit``."""

    _parameter_constraints: ClassVar[dict] = {
        "degree": [Interval(Integral, 0, None, closed="left")],
        "gamma": [
            StrOptions({"scale", "auto"}),
            Interval(Real, 0.0, None, closed="left"),
        ],
        "coef0": [Interval(Real, None, None, closed="neither")],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "budget": [Interval(Integral, 2, None, closed="left"), None],
        "n_jobs": [Integral, None],
        "verbose": ["verbose"],
        "random_state": ["random_state"],
    }

    @abstractmethod
    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Any:
        """Learn from some samples."""

    @abstractmethod
    def predict(self, X: Any) -> NDArray:
        """Return the class of each sample."""

    #: what the learner holds; it has a method ``settle``
    _held: Any
    history_: dict[str, list[int]]

    @abstractmethod
    def _count_support(self) -> int:
        """Return the number of support vectors, for the history."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def learn_stream(
        self,
        chunks: Iterable[Any],
        classes: Any = None,
        *,
        progress: Callable[[dict[str, int]], Any] | None = None,
    ) -> Any:
        """Predict and then learn, chunk by chunk, as long as the stream lasts.

        Nothing of a chunk is kept but what the model holds. The counts go into
        ``history_``; the first chunk of a model that knows nothing is not predicted.

        Parameters
        ----------
        chunks : iterable
            Of pairs (X, y) or triples (X, y, sample_weight), as for ``partial_fit``.
        classes : array of shape (n_classes,), default=None
            All classes that can appear; needed if the model has not learnt before.
        progress : callable, default=None
            Called after each chunk with the latest entry of the history; it ends the
            stream by returning True. ``verbose`` logs lines of text besides.

        Returns
        -------
        self
        """
        started = spoken = time.monotonic()
        if self.verbose:
            speak_up()
        for chunk in chunks:
            X, y = chunk[0], column_or_1d(chunk[1])
            weight = chunk[2] if len(chunk) > 2 else None
            if len(y) == 0:
                continue
            knows = self.__sklearn_is_fitted__()
            wrong = int(np.sum(self.predict(X) != y)) if knows else 0
            first = classes if not hasattr(self, "classes_") else None
            self.partial_fit(X, y, classes=first, sample_weight=weight)
            entry = self._note(len(y), len(y) if knows else 0, wrong)
            now = time.monotonic()
            if self.verbose and now - spoken >= EVERY:
                spoken = now
                self._speak(entry, now - started)
            if progress is not None and progress(entry) is True:
                break
        return self

    def _note(self, n_seen: int, n_tested: int, n_mistakes: int) -> dict[str, int]:
        """Add to the counts, and return them."""
        more = n_seen, n_tested, n_mistakes
        history: dict[str, list[int]] = self.history_
        entry = {
            name: count + (history[name][-1] if history[name] else 0)
            for name, count in zip(ENTRIES, more, strict=False)
        }
        entry["n_support"] = self._count_support()
        history = {name: [*history[name], entry[name]] for name in ENTRIES}
        if len(history["n_seen"]) > LONGEST_HISTORY:
            # The latest entry stays.
            first = (len(history["n_seen"]) - 1) % 2
            history = {k: v[first::2] for k, v in history.items()}
        self.history_ = history
        return entry

    def _speak(self, entry: dict[str, int], seconds: float) -> None:
        log.log(
            logging.INFO,
            "[%s] %.1f s: %d samples, %.2f %% mistakes, %d support vectors",
            type(self).__name__,
            seconds,
            entry["n_seen"],
            100.0 * entry["n_mistakes"] / max(entry["n_tested"], 1),
            entry["n_support"],
        )

    def _draft(self, fresh: bool = False) -> Self:
        """Return a copy to learn with; a fresh one knows nothing yet."""
        draft = object.__new__(type(self))
        for name, value in vars(self).items():
            if not (fresh and _is_learnt(name)):
                setattr(draft, name, value)
        return draft

    def _accept(self, draft: Self) -> None:
        """Take over all that a draft has learnt, in one step."""
        own = {k: v for k, v in vars(self).items() if not _is_learnt(k)}
        learnt = {k: v for k, v in vars(draft).items() if _is_learnt(k)}
        self.__dict__ = own | learnt
        self._held.settle()

    def _take_in(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, whole: bool = False
    ) -> tuple[Any, NDArray[np.int64], NDArray]:
        """Validate samples; return them, their classes by number, and weights.

        ``whole`` samples are all there are, and so name the classes themselves.
        """
        known = hasattr(self, "classes_")
        if not known:
            views = views_of(X)
            if callable(self.kernel) or isinstance(self.kernel, Kernel):
                refuse_other_things(self, X)
        X, y = validate_data(
            self,
            X,
            y,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            reset=not known,
        )
        if sparse.issparse(X) and not X.has_canonical_format:
            X = X.copy()
            X.sum_duplicates()
        weight = np.ones(len(y))
        if sample_weight is not None:
            weight = check_sample_weight(
                sample_weight,
                X,
                dtype=np.float64,
                ensure_non_negative=True,
                allow_all_zero_weights=not whole,
            )
        if not known:  # later ones have to be among the classes anyway
            check_classification_targets(y)
        classes = np.unique(y) if whole else classes
        if not known and classes is not None:
            self._check_classes(np.unique(np.asarray(classes)))
        if whole:
            self.classes_ = classes
        elif not known or classes is not None:
            check_partial_fit_first_call(self, classes)
        codes = self._numbers(y)
        if not known:
            self._views = views
        if not known or self.class_weight != "balanced":
            self.class_weight_ = self._class_weights(y, whole)
        if not hasattr(self, "history_"):
            self.history_ = _no_history()
        return X, codes, weight

    def _check_classes(self, classes: NDArray) -> None:
        if len(classes) < 2:
            raise ValueError(
                "The number of classes has to be greater than one; got "
                f"{len(classes)} class"
            )

    def _numbers(self, y: NDArray) -> NDArray[np.int64]:
        """Return the place of each label among the classes."""
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, len(self.classes_) - 1)
        is_unknown = self.classes_[codes] != y
        if is_unknown.any():
            unknown = np.unique(y[is_unknown])
            raise ValueError(
                f"y has the classes {unknown.tolist()}, which were not announced: "
                f"classes were {self.classes_.tolist()}. Name all of them in `classes` "
                "on the first call."
            )
        return codes.astype(np.int64)

    def _class_weights(self, y: NDArray, whole: bool) -> NDArray:
        if self.class_weight == "balanced" and not whole:
            raise ValueError(
                "class_weight='balanced' is not supported by partial_fit: it needs all "
                "samples. Compute the weights and pass them: {class: weight, ...}."
            )
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        found = np.ones(len(self.classes_))
        # There is nothing to balance for a class that is not there.
        there = np.isin(self.classes_, y) | (self.class_weight != "balanced")
        found[there] = compute_class_weight(
            self.class_weight, classes=self.classes_[there], y=y
        )
        if not (np.isfinite(found).all() and (found >= 0).all()):
            raise ValueError(
                f"class_weight must be finite and >= 0, got {self.class_weight!r}."
            )
        return found

    def _bound_kernel(self, X: Any) -> Kernel:
        """Return the kernel with its numbers, of which some may come from the data."""
        kernel = as_kernel(
            self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0
        )
        if isinstance(kernel, Precomputed):
            raise ValueError(
                f"{type(self).__name__} cannot use a precomputed kernel: samples that "
                "are yet to come have no row in it. Give the kernel itself."
            )
        names = getattr(self, "feature_names_in_", None)
        return with_names(kernel, self._views, names).bind(X)

    def _like(self, X: Any, is_sparse: bool, dtype: Any = None) -> Any:
        """Return samples as what was learnt from: dense or sparse, and of its type."""
        if is_sparse and not sparse.issparse(X):
            X = sparse.csr_array(X)
        elif sparse.issparse(X) and not is_sparse:
            raise ValueError(
                f"cannot use sparse input in {type(self).__name__!r} trained on dense "
                "data"
            )
        return X if dtype is None else X.astype(dtype, copy=False)

    def _check_for_kernel(self, X: Any) -> None:
        """Refuse samples that the kernel is not for, such as negative histograms."""
        if self.kernel_ is not None:
            self.kernel_.bind(X)

    def _validate_for_predict(self, X: Any) -> Any:
        check_is_fitted(self)
        X = validate_data(
            self,
            X,
            dtype=[np.float64, np.float32],
            order="C",
            accept_sparse="csr",
            reset=False,
        )
        self._check_for_kernel(X)
        return X

    @abstractmethod
    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether anything was learnt."""
