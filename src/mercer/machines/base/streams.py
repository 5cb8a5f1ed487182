"""What classifiers that learn from a stream share: validation, chunks and a history.

A stream is any iterable of chunks ``(X, y)`` or ``(X, y, sample_weight)``.  Each chunk
is first predicted and then learnt from, so that the fraction of mistakes estimates the
error on new samples at every moment (progressive validation).

Learning works on a draft of the estimator.  When a step is complete, the estimator
takes over what the draft has learnt, in one assignment.  If a call ends before that
(by Ctrl-C, lack of memory, or samples that are refused), the estimator has not changed.
"""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.callback import CallbackSupportMixin
from sklearn.utils import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import column_or_1d

from mercer.kernels.base import Kernel, with_names
from mercer.kernels.given import Precomputed
from mercer.kernels.views import views_of
from mercer.machines.base.machine import KERNEL_PARAMETERS, as_kernel
from mercer.runtime.progress import EVERY, log, speak_up
from mercer.runtime.scikit_learn import (
    Interval,
    StrOptions,
    check_partial_fit_first_call,
    check_sample_weight,
)
from mercer.runtime.threads import count_threads
from mercer.runtime.validation import (
    as_in_fit,
    check_classes,
    refuse_other_things,
    takes_card_arrays,
    validate_new_samples,
    validate_samples,
)

__all__ = ["StreamClassifier"]

# Largest number of entries of a history. If there are more, every second entry is
# dropped, so that the history stays small on an endless stream.
LONGEST_HISTORY = 4096
ENTRIES = ("n_seen", "n_tested", "n_mistakes", "n_support")
# Attributes that are learnt although their names do not end with an underscore.
LEARNT = {"_held", "_views", "_seed", "_n_calls", "_chunk", "_most"}


def _is_learnt(name: str) -> bool:
    return name.endswith("_") or name in LEARNT


def _no_history() -> dict[str, list[int]]:
    return {name: [] for name in ENTRIES}


class StreamClassifier(ClassifierMixin, CallbackSupportMixin, BaseEstimator):
    """Base class of the classifiers with ``partial_fit``."""

    _parameter_constraints: ClassVar[dict] = {
        **KERNEL_PARAMETERS,
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

    #: what has been learnt; an object with the methods ``settle`` and ``state``
    _held: Any
    history_: dict[str, list[int]]

    @abstractmethod
    def _predicted_numbers(self, X: Any) -> NDArray[np.intp]:
        """Return the number of the predicted class of each sample."""

    @staticmethod
    @abstractmethod
    def _held_from_state(kernel: Any, state: dict[str, Any]) -> Any:
        """Return what has been learnt, from what its method ``state`` has returned."""

    @abstractmethod
    def _count_support(self) -> int:
        """Return the number of support vectors, for the history."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        """Tell whether anything has been learnt."""
        return hasattr(self, "_held")

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_held" in state:
            state["_held"] = state["_held"].state()
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "_held" in state:
            held = self._held_from_state(state["kernel_"], state["_held"])
            state = {**state, "_held": held}
        super().__setstate__(state)

    @takes_card_arrays
    def predict(self, X: Any) -> NDArray:
        """Return the predicted class of each sample; the model does not change.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        numbers = self._predicted_numbers(X)
        return self.classes_[numbers]

    def learn_stream(
        self,
        chunks: Iterable[Any],
        classes: Any = None,
        *,
        progress: Callable[[dict[str, int]], Any] | None = None,
    ) -> Any:
        """Predict and then learn, chunk by chunk, as long as the stream lasts.

        A chunk is not kept, except for the samples that the model holds. The counts of
        mistakes go into ``history_``. If the model has not learnt anything before, the
        first chunk is not predicted.

        Parameters
        ----------
        chunks : iterable
            Pairs (X, y) or triples (X, y, sample_weight), as for ``partial_fit``.
        classes : array of shape (n_classes,), default=None
            All classes that can appear; needed if the model has not learnt before.
        progress : callable, default=None
            Called after each chunk with the latest entry of the history. If it returns
            True, the stream ends. With ``verbose``, lines of text are logged as well.

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
        """Add to the counts in the history, and return them."""
        more = n_seen, n_tested, n_mistakes
        history: dict[str, list[int]] = self.history_
        entry = {
            name: count + (history[name][-1] if history[name] else 0)
            for name, count in zip(ENTRIES, more, strict=False)
        }
        entry["n_support"] = self._count_support()
        history = {name: [*history[name], entry[name]] for name in ENTRIES}
        if len(history["n_seen"]) > LONGEST_HISTORY:
            # This keeps the latest entry.
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
        """Return a copy to learn with; if ``fresh``, it has not learnt anything."""
        draft = object.__new__(type(self))
        for name, value in vars(self).items():
            if not (fresh and _is_learnt(name)):
                setattr(draft, name, value)
        return draft

    def _accept(self, draft: Self) -> None:
        """Take over everything that a draft has learnt, in one step."""
        own = {k: v for k, v in vars(self).items() if not _is_learnt(k)}
        learnt = {k: v for k, v in vars(draft).items() if _is_learnt(k)}
        self.__dict__ = own | learnt
        self._held.settle()

    def _take_in(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, whole: bool = False
    ) -> tuple[Any, NDArray[np.int64], NDArray]:
        """Return validated samples, the numbers of their classes, and their weights.

        ``whole`` means that there are no other samples, so that ``y`` has all classes.
        """
        if self.n_jobs == 0:
            count_threads(0)  # raises; without a kernel no thread would be counted
        known = hasattr(self, "classes_")
        if not known:
            views = views_of(X)
            if callable(self.kernel) or isinstance(self.kernel, Kernel):
                refuse_other_things(self, X)
        X, y = validate_samples(self, X, y, reset=not known)
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
        if not known:  # later labels must be among the classes anyway
            check_classification_targets(y)
        classes = np.unique(y) if whole else classes
        if not known and classes is not None:
            check_classes(np.unique(np.asarray(classes)))
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

    def _numbers(self, y: NDArray) -> NDArray[np.int64]:
        """Return the number of the class of each label."""
        codes = np.searchsorted(self.classes_, y)
        codes = np.minimum(codes, len(self.classes_) - 1)
        is_unknown = self.classes_[codes] != y
        if is_unknown.any():
            unknown = np.unique(y[is_unknown])
            raise ValueError(
                f"y has the unknown classes {unknown.tolist()}; the known classes are "
                f"{self.classes_.tolist()}. Name all classes in `classes` in the first "
                "call."
            )
        return codes.astype(np.int64)

    def _class_weights(self, y: NDArray, whole: bool) -> NDArray:
        if self.class_weight == "balanced" and not whole:
            raise ValueError(
                "class_weight='balanced' is not supported by partial_fit, because it "
                "needs all samples. Compute the weights and pass {class: weight, ...}."
            )
        if self.class_weight is None:
            return np.ones(len(self.classes_))
        found = np.ones(len(self.classes_))
        # A class without samples cannot be balanced, and keeps the weight 1.
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
        """Return the kernel, with the parameters that follow from the data set."""
        kernel = as_kernel(
            self.kernel, degree=self.degree, gamma=self.gamma, coef0=self.coef0
        )
        if isinstance(kernel, Precomputed):
            raise ValueError(
                f"{type(self).__name__} cannot use a precomputed kernel: it has no "
                "values of future samples. Pass the kernel itself."
            )
        names = getattr(self, "feature_names_in_", None)
        return with_names(kernel, self._views, names).bind(X)

    def _as_held(self, X: Any, rows: Any, dtype: Any = None) -> Any:
        """Return samples dense or sparse as the held ``rows``, and in ``dtype``."""
        X = as_in_fit(self, X, sparse.issparse(rows.X))
        return X if dtype is None else X.astype(dtype, copy=False)

    def _check_for_kernel(self, X: Any) -> None:
        """Refuse samples for which the kernel is not defined: negative histograms."""
        if self.kernel_ is not None:
            self.kernel_.bind(X)

    def _validate_for_predict(self, X: Any) -> Any:
        X = validate_new_samples(self, X)
        self._check_for_kernel(X)
        return X
