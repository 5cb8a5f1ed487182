"""What all classifiers share: schemes of several classes, weights, probabilities.

A classifier states its problem of two sides; the code matrix, the Gram matrix that all
problems share, decoding and calibration are the same for all classifiers.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import suppress
from copy import deepcopy
from dataclasses import dataclass
from itertools import pairwise
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state, compute_class_weight
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted

from mercer.core.problem import DualProblem, Solution
from mercer.core.stacked import Specs, betas, column, taken
from mercer.core.tiles import ranges
from mercer.engines.cpu.tiles import (
    Weights,
    from_pair_layout,
)
from mercer.engines.engine import Plan, samples_of
from mercer.kernels.base import Kernel
from mercer.machines.base.machine import KernelMachine, Validated
from mercer.multiclass.calibration import (
    N_FOLDS,
    Sigmoid,
    Sigmoids,
    class_probabilities,
    deal_out,
    fit_sigmoid,
)
from mercer.multiclass.codes import SCHEMES, make_code
from mercer.multiclass.decoding import (
    DECODINGS,
    class_means,
    most_voted,
    nearest_of_best,
    score_classes,
    votes_and_margins,
)
from mercer.runtime.scikit_learn import (
    Interval,
    StrOptions,
    num_samples,
    safe_indexing,
)
from mercer.runtime.validation import as_dense, check_classes, takes_card_arrays

__all__ = ["ClassifierPlan", "KernelClassifier", "wants_probability"]

_DEFAULT_DECODING = {"ovo": "votes", "ovr": "margin", "ecoc": "loss"}


# Number of samples, over several problems, of which problems are stated at a time.
PORTION = 2**23
# Number of decision values from which classes are predicted at a time: a thousand
# classes have half a million for each sample.
MOST_DECISIONS = 2**24


def wants_probability(self: KernelClassifier) -> bool:
    """Tell whether there are probabilities; otherwise say how to get them."""
    if not self._is_calibrated():
        raise AttributeError(
            "predict_proba is not available when probability=False. Set "
            "probability=True before fit."
        )
    return True


def _portions(sizes: NDArray) -> Iterator[slice]:
    """Divide problems so that not too many samples are looked at in one go.

    ``sizes`` has the number of samples of each problem.
    """
    ends = np.cumsum(sizes)
    first, before = 0, 0
    while first < len(ends):
        last = int(np.searchsorted(ends, before + PORTION, "right"))
        last = max(first + 1, last)
        yield slice(first, last)
        first, before = last, int(ends[last - 1])


def _one_after_the_other(parts: list[DualProblem]) -> DualProblem:
    """Return the variables of all parts in the same arrays."""
    if len(parts) == 1:
        return parts[0]
    return DualProblem(*(np.concatenate(part) for part in zip(*parts, strict=True)))


def _as_counts(weight: NDArray, given: NDArray) -> NDArray:
    """Return the weights of samples in a sigmoid, which counts as the machine does.

    A probability of one half is then where the machine decides. Only the ratio of the
    sides' weights matters for that: the samples are as many as they were ``given``.
    """
    return weight * (given[weight > 0].sum() / weight.sum())


@dataclass(frozen=True, eq=False, kw_only=True)
class ClassifierPlan(Plan):
    """The problems of a classifier, and how classes and problems belong together."""

    classes: NDArray
    class_weight: NDArray
    targets: NDArray[np.intp]  #: the number of the class of each sample
    code: NDArray  #: on which side of each machine a class is
    #: the fold of each sample, if there are folds for a calibration
    folds: NDArray[np.intp] | None = None
    #: for each machine the weights of its samples in the calibration
    weights: tuple[NDArray, ...] = ()


class KernelClassifier(ClassifierMixin, KernelMachine):
    """Base class of the classifiers."""

    _parameter_constraints: ClassVar[dict] = {
        **KernelMachine._parameter_constraints,
        "multiclass": [StrOptions(set(SCHEMES))],
        "decode": [StrOptions({"auto", *DECODINGS})],
        "code": [str, "array-like", None],
        "probability": ["boolean"],
        "class_weight": [StrOptions({"balanced"}), dict, None],
        "positive_weight": [Interval(Real, 0.0, None, closed="neither"), "array-like"],
        "decision_function_shape": [StrOptions({"ovr", "ovo"})],
        "break_ties": ["boolean"],
    }

    @abstractmethod
    def _problem(self, sides: NDArray, weight: NDArray) -> DualProblem:
        """Build the problem of two sides, -1 and 1, with a weight for each sample."""

    def _problems(
        self, sides: NDArray, weight: NDArray, begin: NDArray[np.intp]
    ) -> DualProblem:
        """Build several problems, whose samples lie one after the other.

        Each has as many variables as samples; its rows are counted from 0.
        """
        return _one_after_the_other(
            [
                self._problem(sides[first:stop], weight[first:stop])
                for first, stop in pairwise(begin.tolist())
            ]
        )

    _learnt: ClassVar[frozenset[str]] = KernelMachine._learnt | {
        *("_means", "_probA", "_probB")
    }
    #: whether samples must be sorted by class, as problems with groups need it
    _by_class: ClassVar[bool] = False
    #: how the error message begins if only one class has positive weights
    _one_side_left: ClassVar[str] = "Invalid input"

    def _check_tasks(
        self, sides: NDArray, weight: NDArray, begin: NDArray[np.intp]
    ) -> None:
        """Refuse a task that cannot be solved."""

    def _rescaled(self, solutions: Sequence[Solution]) -> Sequence[Solution]:
        """Return solutions in the scale of decision values, as most are already."""
        return solutions

    def _check_choices(self) -> None:
        """Refuse parameters that contradict each other."""
        if self.probability and self.decode not in ("auto", "platt"):
            raise ValueError(
                f"decode={self.decode!r} and probability=True contradict each other: "
                "with probability=True, predict returns the most probable class. Set "
                "decode='auto', or probability=False."
            )
        if self.multiclass != "ovr" and np.any(np.asarray(self.positive_weight) != 1):
            raise ValueError(
                f"positive_weight={self.positive_weight!r} needs multiclass='ovr', got "
                f"multiclass={self.multiclass!r}. Use class_weight."
            )
        if self._decoding() == "barycentre" and self._is_precomputed():
            raise ValueError(
                "decode='barycentre' needs the samples to find the nearest class mean, "
                "and kernel='precomputed' gives no samples. Use decode='hamming'."
            )

    def _is_calibrated(self) -> bool:
        return bool(self.probability) or self.decode == "platt"

    def _decoding(self) -> str:
        if self._is_calibrated():
            return "platt"
        if self.decode == "auto":
            return _DEFAULT_DECODING[self.multiclass]
        return self.decode

    def _classes(
        self, y: Any, counts: NDArray | None = None
    ) -> tuple[NDArray, NDArray[np.intp], NDArray]:
        """Return the classes, the class number of each sample, and class weights.

        ``counts`` says how many samples each entry of y stands for, if it is not one.
        """
        n_samples = len(y) if counts is None else counts.sum()
        are_labels = y.dtype.kind in "biu"
        if not are_labels:
            # Targets of which most are different would call for a warning.
            check_classification_targets(y if counts is None else np.repeat(y, 3))
        classes, targets = np.unique(y, return_inverse=True)
        if are_labels and 2 * len(classes) > n_samples:
            # Whole numbers can be labels, but so many of them call for a warning.
            check_classification_targets(y)
        check_classes(classes)
        if self.class_weight is None:
            return classes, targets, np.ones(len(classes))
        weights = compute_class_weight(
            self.class_weight, classes=classes, y=y, sample_weight=counts
        )
        if not (np.isfinite(weights) & (weights >= 0)).all():
            raise ValueError(
                f"class_weight must be finite and >= 0, got {self.class_weight!r}."
            )
        return classes, targets, weights

    def _plan_for(
        self,
        valid: Validated,
        sample_weight: Any,
        bound: tuple[Kernel, ...] | None = None,
    ) -> ClassifierPlan:
        """State a problem for each column of the code, and for each of its folds."""
        classes, y, class_weight = self._classes(valid.y)
        seed = 0
        if self._is_calibrated() or self.multiclass == "ecoc":
            # Drawn from a copy, because a fit moves the generator on once only: when
            # its problems are solved.
            random = deepcopy(check_random_state(self.random_state))
            seed = random.randint(2**31 - 1)
        code = make_code(self.multiclass, self.code, len(classes), seed)
        given = np.maximum(self._sample_weight(valid, sample_weight), 0.0)
        weight = class_weight[y] * given
        if not (weight > 0).any():
            raise ValueError(
                "Invalid input - all samples have zero or negative weights."
            )
        if np.count_nonzero(np.bincount(y, weight)) < 2:
            raise ValueError(
                f"{self._one_side_left} - all samples with positive weights belong to "
                "the same class."
            )
        is_by_pair = self.multiclass == "ovo" and len(classes) > 2
        if not (is_by_pair or self._by_class) and (code != 0).all():
            order, starts = np.arange(len(y)), [0, len(y)]
        else:
            order = np.argsort(y, kind="stable")
            starts = np.searchsorted(y[order], np.arange(len(classes) + 1)).tolist()
        blocks, counts = self._members(code, is_by_pair, is_whole=len(starts) == 2)
        folds = deal_out(y, seed) if self._is_calibrated() else None
        specs, shares = self._stated(
            y, weight, code, order, starts, blocks, counts, folds
        )
        return ClassifierPlan(
            specs=specs,
            order=order,
            starts=starts,
            per_machine=1 if folds is None else 1 + N_FOLDS,
            classes=classes,
            class_weight=class_weight,
            targets=y,
            code=code,
            folds=folds,
            weights=tuple(_as_counts(own, given[rows]) for rows, own in shares),
            **self._common(valid, bound),
        )

    def _stated(
        self,
        y: NDArray[np.intp],
        weight: NDArray,
        code: NDArray,
        order: NDArray[np.intp],
        starts: list[int],
        blocks: NDArray[np.int64],
        counts: NDArray[np.int64],
        folds: NDArray[np.intp] | None,
    ) -> tuple[Specs, list[tuple[NDArray[np.intp], NDArray]]]:
        """Return the problems of the machines, and of their folds, portion by portion.

        ``blocks`` has the blocks of all machines, ``counts`` how many each machine has.
        If there are folds, the list has the samples of each machine, and their weights
        in it.
        """
        n_classes, n_machines = code.shape
        positive = self._positive_weights(n_classes, n_machines)
        stop_block = np.cumsum(counts)
        sizes = np.add.reduceat(np.diff(starts)[blocks], stop_block - counts)
        n_sets = 1 if folds is None else 1 + N_FOLDS
        first = np.empty((n_machines, n_sets), dtype=np.int64)
        parts: list[DualProblem] = []
        shares, so_far = [], 0
        for some in _portions(sizes):
            own_blocks = slice((stop_block - counts)[some][0], stop_block[some][-1])
            rows, begin = samples_of(order, starts, blocks[own_blocks], counts[some])
            machine = np.repeat(np.arange(n_machines)[some], sizes[some])
            sides = code[y[rows], machine]
            own = weight[rows] * np.where(sides > 0, positive[machine], 1.0)
            self._check_tasks(sides, own, begin)
            parts.append(self._problems(sides, own, begin))
            if folds is not None:
                # A sample without weight does not count, but has a decision value.
                parts += [
                    self._problems(sides, own * (folds[rows] != k), begin)
                    for k in range(N_FOLDS)
                ]
                ends = begin.tolist()
                shares += [(rows[v:w], own[v:w]) for v, w in pairwise(ends)]
            for k in range(n_sets):
                first[some, k] = so_far + begin[:-1]
                so_far += int(begin[-1])
        specs = Specs(
            _one_after_the_other(parts),
            first.ravel(),
            (first + sizes[:, None]).ravel(),
            blocks,
            np.repeat(stop_block - counts, n_sets),
            np.repeat(stop_block, n_sets),
        )
        return specs, shares

    @staticmethod
    def _members(
        code: NDArray, is_by_pair: bool, is_whole: bool
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the blocks of all machines one after the other, and how many each has.

        If all samples are one block, it is the block of all machines.
        """
        n_classes, n_machines = code.shape
        if is_whole:
            return np.zeros(n_machines, dtype=np.int64), np.ones(n_machines, np.int64)
        if is_by_pair:  # a thousand classes have a code of half a billion entries
            pairs = np.column_stack(np.triu_indices(n_classes, 1))
            return pairs.ravel().astype(np.int64), np.full(n_machines, 2)
        machine, member = np.nonzero(code.T)
        return member, np.bincount(machine, minlength=n_machines)

    def _keep_machines(self, plan: ClassifierPlan, found: Any) -> Sequence[Solution]:
        super()._keep_machines(plan, found)
        self.classes_ = plan.classes
        self.class_weight_ = plan.class_weight
        self.code_ = plan.code
        solutions = self._rescaled(found.solutions)
        machines = solutions[:: plan.per_machine]
        self.intercept_ = column(machines, "bias")
        self.n_iter_ = column(machines, "n_iter").astype(np.int32)
        self.objective_ = column(machines, "objective").copy()
        self.dual_gap_ = column(machines, "dual_gap").copy()
        self.kkt_gap_ = column(machines, "kkt_gap").copy()
        if plan.folds is not None:
            self._calibrate(plan, plan.folds, solutions)
        if self._decoding() == "barycentre":
            self._means = class_means(plan.X, plan.targets, len(plan.classes))
        return machines

    def _positive_weights(self, n_classes: int, n_tasks: int) -> NDArray:
        """Return the factor of C on the positive side of each machine."""
        factors = np.asarray(self.positive_weight, dtype=np.float64)
        if factors.ndim == 1 and n_tasks == 1 and len(factors) == 2:
            factors = factors[1:]  # the second of two classes is the positive side
        if factors.ndim > 1 or (factors.ndim == 1 and len(factors) != n_tasks):
            raise ValueError(
                "positive_weight must be a number, or an array with one number for "
                f"each of the {n_classes} classes; got an array of shape "
                f"{factors.shape}."
            )
        if not (np.isfinite(factors).all() and (factors > 0).all()):
            raise ValueError(
                f"positive_weight must be finite and > 0, got {self.positive_weight!r}."
            )
        return np.broadcast_to(factors, n_tasks)

    def _keep_support(self, plan: ClassifierPlan, machines: Sequence[Solution]) -> None:
        """Store the union of support vectors, class by class, and the coefficients."""
        y, n_classes = plan.targets, len(plan.classes)
        is_by_pair = self.multiclass == "ovo" and n_classes > 2
        coef = np.zeros((n_classes - 1 if is_by_pair else len(machines), len(y)))
        specs = Specs.of(plan.machines)
        sizes = specs.stop - specs.first
        for some in _portions(sizes):
            part = specs[some]
            blocks = part.all_blocks()
            rows, begin = samples_of(plan.order, plan.starts, blocks, part.n_blocks())
            row = taken(part.variables.row, part.first, part.stop)
            row = row + np.repeat(begin[:-1], sizes[some])
            values = np.bincount(row, betas(machines[some]), len(rows))
            if is_by_pair:
                # As in scikit-learn, a support vector of class c has one coefficient
                # for each other class: row r belongs to class r if r < c, else to
                # class r + 1.
                one = np.repeat(blocks[::2], sizes[some])
                other = np.repeat(blocks[1::2], sizes[some])
                own_row = np.where(y[rows] == one, other - 1, one)
            else:
                own_row = np.repeat(np.arange(len(specs))[some], sizes[some])
            coef[own_row, rows] = values
        used = np.flatnonzero(coef.any(axis=0))
        support = used[np.argsort(y[used], kind="stable")]
        n_support = np.bincount(y[support], minlength=n_classes)
        self._hold(plan, support, n_support, coef)

    def _check_internals(self) -> None:
        super()._check_internals()
        if len(self.n_support_) != len(self.classes_):
            raise ValueError(
                f"n_support_ of {type(self).__name__} is not for "
                f"{len(self.classes_)} classes"
            )
        n_rows = self.code_.shape[1]
        if self.multiclass == "ovo":
            n_rows = len(self.classes_) - 1
        if self.dual_coef_.shape[0] != n_rows:
            raise NotFittedError(
                f"multiclass={self.multiclass!r} was set after fit. Call fit again."
            )

    def _weights(self) -> Weights:
        starts = np.concatenate([[0], np.cumsum(self.n_support_)])
        if self.multiclass != "ovo":
            return Weights(sparse.csr_array(self.dual_coef_.T), starts.tolist())
        labels = np.repeat(np.arange(len(self.classes_)), self.n_support_)
        rows = as_dense(self.dual_coef_)
        return Weights(from_pair_layout(rows, labels), starts.tolist())

    def _calibrate(
        self, plan: ClassifierPlan, folds: NDArray, solutions: Sequence[Solution]
    ) -> None:
        """Fit sigmoids to the decision values of the folds that were left out."""
        step = plan.per_machine
        sigmoids = []
        for t, (spec, side, weight) in enumerate(
            zip(plan.machines, plan.code.T, plan.weights, strict=True)
        ):
            rows = plan.rows(spec)
            decisions = np.empty(len(rows))
            for k, solution in enumerate(solutions[t * step + 1 : (t + 1) * step]):
                left_out = folds[rows] == k
                decisions[left_out] = solution.f[left_out] + solution.bias
            # Only samples that count tell how the machine does on new ones.
            counts = weight > 0
            is_positive = side[plan.targets[rows[counts]]] > 0
            sigmoids.append(fit_sigmoid(decisions[counts], is_positive, weight[counts]))
        self._keep_sigmoids(sigmoids)

    def _keep_sigmoids(self, sigmoids: Sequence[Sigmoid]) -> None:
        """Keep the sigmoids in the form of LIBSVM."""
        self._probA = np.array([s.A for s in sigmoids])
        self._probB = self._libsvm_sign * np.array([s.B for s in sigmoids])

    @property
    def probA_(self) -> NDArray:
        """Slopes of the machines' sigmoids; empty without ``probability=True``."""
        check_is_fitted(self)
        return self._probA

    @property
    def probB_(self) -> NDArray:
        """Offsets of the machines' sigmoids, with the signs of LIBSVM."""
        check_is_fitted(self)
        return self._probB

    def __setstate__(self, state: dict[str, Any]) -> None:
        if "probA_" in state:  # models of earlier versions
            sign = -1.0 if len(state["classes_"]) == 2 else 1.0
            A, B = state["probA_"], sign * state["probB_"]
            rest = {k: v for k, v in state.items() if k not in ("probA_", "probB_")}
            state = {**rest, "_probA": A, "_probB": B}
        super().__setstate__(state)

    @property
    def _libsvm_sign(self) -> float:
        return -1.0 if len(self.classes_) == 2 else 1.0

    @takes_card_arrays
    def decision_function(self, X: Any) -> NDArray:
        """Return the decision values.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,), (n_samples, n_classes) or (n_samples, n_tasks)
            For two classes one value for each sample, positive for the second class.
            For more classes a score for each class: votes and margins for one-vs-one,
            margins for one-vs-rest, and the score of the decoding for ECOC. With
            ``decision_function_shape="ovo"`` the values of all machines.
        """
        check_is_fitted(self)
        decisions = self._decisions(X)
        if len(self.classes_) == 2 and decisions.shape[1] == 1:
            return decisions.ravel()
        if self.decision_function_shape == "ovo":
            return decisions
        if self.multiclass == "ovo":
            return votes_and_margins(decisions, self.code_, is_by_pair=True)
        decode = self._decoding()
        if decode in ("platt", "barycentre"):
            decode = _DEFAULT_DECODING[self.multiclass]
        return score_classes(decisions, self.code_, decode)

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
        check_is_fitted(self)
        if self.break_ties and self.decision_function_shape == "ovo":
            raise ValueError(
                "break_ties must be False when decision_function_shape is 'ovo'"
            )
        decode = self._decoding()
        is_there = {
            "platt": len(self._probA) > 0,
            "barycentre": hasattr(self, "_means"),
        }
        if not is_there.get(decode, True):
            raise NotFittedError(
                f"decode={decode!r} was set after fit. Call fit again."
            )
        step, n = max(1, MOST_DECISIONS // len(self.intercept_)), 0
        with suppress(TypeError):  # the checks below say what is wrong
            n = num_samples(X)
        if n <= step or any(X is samples for samples, _ in self._known):
            return self.classes_[self._winners(X, decode)]
        self._validate_for_predict(X)  # names a wrong value by its row in all of X
        winners = [
            self._winners(safe_indexing(X, some), decode)
            for some in ranges(0, n, step, even=False)
        ]
        return self.classes_[np.concatenate(winners)]

    def _winners(self, X: Any, decode: str) -> NDArray[np.intp]:
        """Return the number of the class of each sample."""
        decisions = self._decisions(X)
        is_by_pair = self.multiclass == "ovo"
        if decode == "platt":
            return self._probabilities(decisions).argmax(axis=1)
        if decode == "barycentre":
            X = self._validate_for_predict(X)
            return nearest_of_best(X, self._means, decisions, self.code_)
        if decode == "votes" and self.break_ties and len(self.classes_) > 2:
            return votes_and_margins(decisions, self.code_, is_by_pair).argmax(axis=1)
        if decode == "votes" and is_by_pair:
            return most_voted(decisions, self.code_)
        return score_classes(decisions, self.code_, decode).argmax(axis=1)

    @takes_card_arrays
    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy: the share of samples whose class is predicted rightly.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
        y : array of shape (n_samples,)
            The true classes.
        sample_weight : array of shape (n_samples,), default=None
            Weights of the samples.

        Returns
        -------
        float
        """
        is_plain = isinstance(y, np.ndarray) and y.ndim == 1 and y.dtype.kind in "biuU"
        if not (is_plain and sample_weight is None and len(y)):
            return super().score(X, y, sample_weight)
        # scikit-learn looks at the labels for longer than it takes to compare them.
        predicted = self.predict(X)
        if predicted.dtype.kind != y.dtype.kind or len(predicted) != len(y):
            return float(accuracy_score(y, predicted))
        return float(np.mean(predicted == y))

    @available_if(wants_probability)
    @takes_card_arrays
    def predict_proba(self, X: Any) -> NDArray:
        """Return the probability of each class.

        Probabilities come from Platt's sigmoids, which were fitted on five folds, by
        pairwise coupling for one-vs-one, by normalisation for one-vs-rest, and for ECOC
        as the class probabilities that agree best with the sigmoids.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        check_is_fitted(self)
        if not len(self._probA):
            raise NotFittedError(
                "predict_proba is not available when fitted with probability=False"
            )
        return self._probabilities(self._decisions(X))

    @available_if(wants_probability)
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

    def _probabilities(self, decisions: NDArray) -> NDArray:
        offsets = self._libsvm_sign * self._probB
        sides = Sigmoids(self._probA, offsets)(decisions)
        return class_probabilities(sides, self.code_)
