"""Evaluation of candidates on all folds, with shared kernel values.

Candidates whose kernels are equal once they have seen the training samples make up a
*unit*: one Gram matrix, all its candidates, all its folds.  Each machine states its
problems in a plan; problems of all plans that differ in their bounds only are solved
one after the other, and each machine keeps what was found for its plan.  Units are
evaluated one after the other, or a few at a time if each of them is small.
"""

from __future__ import annotations

import pickle
import textwrap
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from copy import copy, deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn import config_context, get_config

from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.small import is_tiny
from mercer.engines.cpu.solve import tries_single
from mercer.engines.cpu.tiles import TILES_PART, WORKERS, budget_bytes
from mercer.engines.engine import Plan, Settings, certified
from mercer.kernels.base import Kernel, seen_by
from mercer.machines.base.machine import UNBOUNDED
from mercer.machines.svc import SVC
from mercer.runtime.scikit_learn import check_method_params, safe_indexing
from mercer.runtime.validation import QUIET
from mercer.selection.bar import Bar
from mercer.selection.candidates import (
    LINEAR_MACHINES,
    MACHINES,
    Fold,
    Request,
    Samples,
    asks_predictions_only,
    fit_plainly,
    group_of,
    is_stateless,
    last_of,
    make_candidate,
    prepare,
    prepare_fold,
    score_model,
    score_plainly,
    told,
    weight_name,
)
from mercer.selection.linear import evaluate_linear
from mercer.selection.path import (
    Course,
    Entry,
    Portion,
    SharedGram,
    Unit,
    courses_of,
    decide,
    is_coarse,
    portions_of,
    repair,
    small_gram,
    solve_portion,
    verdicts,
)
from mercer.selection.stored import GramMaker, bytes_of_parts, exact_bytes

__all__ = ["Evaluation", "bar_of"]

# The part of the work of a fit that is solving, for the bar.
SOLVING = 0.8
# What a plan depends on beside the samples, the kernel and C.
STATED_BY = (
    "multiclass",
    "decode",
    "code",
    "probability",
    "class_weight",
    "positive_weight",
    "random_state",
)


def bar_of(name: str, total: int, verbose: int) -> AbstractContextManager[Bar | None]:
    """Return a bar for so many fits, or None in its place if nobody wants to see it."""
    return Bar(name, total, verbose) if verbose else nullcontext()


class NotPrecise(ArithmeticError):
    """Says that the precision of the matrix is not enough to certify a solution."""


class Evaluation:
    """Evaluates candidates; ``results[candidate, split]`` is as scikit-learn has it."""

    def __init__(self, request: Request, engine: CpuEngine, bar: Bar | None = None):
        self.request = request
        self.results: dict[tuple[int, int], dict[str, Any]] = {}
        #: fitted models, if they are kept, and the test samples as they see them
        self.models: dict[tuple[int, int], tuple[Any, Any]] = {}
        #: candidates and splits of fits that did not share, by the reason
        self.plain: dict[str, list[tuple[int, int]]] = {}
        self.n_grams = 0
        self._candidates: list[dict[str, Any]] = []
        self.engine = engine
        self._is_brief = False  # whether threads would take longer to wake
        self._bar = bar
        self._room: int | None = None  # bytes that shrinking may copy
        # Threads begin with scikit-learn's defaults.
        self.config = get_config()
        self._counted: dict[tuple[int, int], float] = {}  # parts of fits, for the bar
        self._counting = threading.Lock()

    def run(self, candidates: Sequence[dict[str, Any]]) -> None:
        """Evaluate all candidates; on Ctrl-C ``results`` holds what was finished."""
        self._candidates = list(candidates)
        n_splits = len(self.request.splits)
        plain: list[tuple[int, str]] = []
        groups: dict[Any, list[tuple[int, Any]]] = {}
        for c, params in enumerate(self._candidates):
            estimator, reason = make_candidate(self.request, params)
            if reason is None:
                groups.setdefault(group_of(estimator, params), []).append(
                    (c, estimator)
                )
            else:
                plain.append((c, reason))
        for group in groups.values():
            if isinstance(last_of(group[0][1]), LINEAR_MACHINES):
                evaluate_linear(self, group)
            else:
                self._run_group(group)
        for c, reason in plain:
            for split in range(n_splits):
                self.fit_alone(c, split, reason)

    def finished(self) -> list[int]:
        """Return the candidates that have results on all splits."""
        numbers = range(len(self.request.splits))
        return [
            c
            for c in range(len(self._candidates))
            if all((c, k) in self.results for k in numbers)
        ]

    def _run_group(self, group: list[tuple[int, Any]]) -> None:
        """Evaluate candidates that see the same samples in each fold."""
        request = self.request
        first = group[0][1]
        for run in self.runs(first):
            began = time.perf_counter()
            try:
                if is_stateless(first):
                    samples = prepare(first, request.X, request.y, request.splits)
                else:
                    split = request.splits[run[0]]
                    samples = prepare_fold(first, request.X, request.y, run[0], split)
            except Exception as error:
                self.give_up(group, run, error)
                continue
            share = (time.perf_counter() - began) / (len(group) * len(run))
            units = self._units(samples, group, share)
            self._run_units(samples, units)

    def runs(self, estimator: Any) -> list[list[int]]:
        """Return the splits whose samples are prepared together."""
        numbers = range(len(self.request.splits))
        if is_stateless(estimator):
            return [list(numbers)]
        return [[number] for number in numbers]

    def give_up(
        self, group: list[tuple[int, Any]], run: list[int], error: Exception
    ) -> None:
        """Leave candidates to fits of their own.

        Such a fit meets the same error, or does not see all samples.
        """
        reason = f"all samples together cannot be validated: {told(error)}"
        for c, _ in group:
            for number in run:
                self.fit_alone(c, number, reason)

    def _units(
        self, samples: Samples, group: list[tuple[int, Any]], share: float
    ) -> list[Unit]:
        """Bind the kernels, and bring entries with the same one together."""
        units: dict[Any, Unit] = {}
        bound: dict[Any, Kernel] = {}
        for c, estimator in group:
            machine = last_of(estimator)
            for number, fold in samples.folds.items():
                try:
                    key = (machine._make_kernel(fold.valid).key(), number)
                    if key not in bound:
                        bound[key] = machine._bound(fold.valid)[0][0]
                    kernel = bound[key]
                except Exception as error:
                    self.fit_again(c, number, error, "the kernel cannot be used")
                    continue
                unit = units.setdefault(kernel.key(), Unit(samples, kernel))
                model = copy(machine)
                # Each fold starts from the same random numbers, as in plain fits.
                model.random_state = deepcopy(machine.random_state)
                unit.entries.append(
                    Entry(c, number, model, estimator, fold, seconds=share)
                )
        return list(units.values())

    def _run_units(self, samples: Samples, units: list[Unit]) -> None:
        """Evaluate units, several at a time if one alone leaves threads idle."""
        if not units:
            return
        device = units[0].entries[0].model.device
        if device != "cpu":
            self._run_on_card(samples, units, device)
            return
        n, allowed = samples.X.shape[0], self._cache_size(units)
        if allowed == "auto" and is_tiny(samples.X, n) and not samples.is_matrix:
            self._run_tiny(samples, units)
            return
        dtype = np.dtype(np.float64) if samples.is_matrix else self._dtype(units)
        whole = 0 if samples.is_matrix else n * n * dtype.itemsize + exact_bytes(n)
        budget = budget_bytes(allowed)
        squares = self.engine.count * self._largest_part(samples, dtype)
        tiles = budget // TILES_PART
        left = budget - whole - squares - tiles
        if left < 0:
            reason = (
                f"the Gram matrix of {n} samples and the copies that threads make of "
                f"its parts need {(whole + squares + tiles) / 2**20:.0f} MB, but "
                f"cache_size={allowed!r} allows {budget / 2**20:.0f} MB"
            )
            self._all_plain(units, reason)
            return
        keeps = False
        if len(units) > 1 and not samples.is_matrix:
            parts = bytes_of_parts([unit.kernel for unit in units], n)
            keeps = parts <= left
            left -= parts if keeps else 0
        make: Any = None
        if not samples.is_matrix:
            kernels = [unit.kernel for unit in units]
            X = seen_by(kernels, samples.X)
            maker = GramMaker(
                X, dtype, kernels, budget, self.engine.threads, keeps=keeps
            )
            make = maker.make
        at_once = 1
        if whole and len(units[0].entries) < len(units):
            at_once = int(np.clip(1 + left // whole, 1, len(samples.folds)))
            left -= (at_once - 1) * whole
        # The remaining memory is for the copies that shrinking makes.
        self._room = left // max(self.engine.count, WORKERS)
        for begin in range(0, len(units), at_once):
            self._run_batch(units[begin : begin + at_once], make)

    def _run_tiny(self, samples: Samples, units: list[Unit]) -> None:
        """Evaluate units of so few samples that kernels need not share distances."""
        kernels = [unit.kernel for unit in units]
        make = partial(small_gram, seen_by(kernels, samples.X))
        self._is_brief = True
        for unit in units:
            self._run_batch([unit], make)
        self._is_brief = False

    def _run_on_card(self, samples: Samples, units: list[Unit], device: str) -> None:
        """Evaluate units on a graphics card, one after the other."""
        # What a card needs is loaded only when one is asked for.
        from mercer.engines.cuda.card import card_of
        from mercer.selection.on_card import CardGrams

        dtype = samples.X.dtype if samples.is_matrix else self._dtype(units)
        allowed = self._cache_size(units)
        try:
            kernels = [unit.kernel for unit in units]
            maker = CardGrams(
                card_of(device), samples, kernels, dtype, self.engine.threads, allowed
            )
            reason = maker.why_no_room()
        except Exception as error:
            reason = f"the graphics card cannot be used: {told(error)}"
        if reason is not None:
            self._all_plain(units, reason)
            return
        for unit in units:
            self._run_batch([unit], maker.make, maker.solve)

    def _all_plain(self, units: list[Unit], reason: str) -> None:
        for unit in units:
            for entry in unit.entries:
                self.fit_alone(entry.candidate, entry.split, reason)

    def _largest_part(self, samples: Samples, dtype: np.dtype) -> int:
        """Return the memory of what a thread copies of a Gram matrix.

        A thread copies the part on which it solves, or rows for predictions, and the
        sampled rows.
        """
        n, folds = samples.X.shape[0], samples.folds.values()
        train = max(len(fold.train) for fold in folds)
        rows = max(len(fold.test) for fold in folds)
        if self.request.return_train_score:
            rows = max(rows, train)
        if self.request.scorer is None:
            rows = 0
        most = max(train * train, rows * n)
        return most * dtype.itemsize + exact_bytes(train)

    def _cache_size(self, units: list[Unit]) -> float | str:
        """Return that of the search, or else the smallest of the machines."""
        own = self.request.cache_size
        models = [entry.model for unit in units for entry in unit.entries]
        sizes = {m.cache_size for m in models} if own == "auto" else {own}
        numbers = [size for size in sizes if size != "auto"]
        return min(numbers) if numbers else "auto"

    def _dtype(self, units: list[Unit]) -> np.dtype:
        """Choose the precision of the Gram matrix as a fit would."""
        X = units[0].samples.X
        tol = min(entry.model.tol for unit in units for entry in unit.entries)
        settings = Settings(tol=tol)
        if all(tries_single(unit.kernel, Operand(X), settings) for unit in units):
            return np.dtype(np.float32)
        return X.dtype

    def _run_batch(
        self,
        units: list[Unit],
        make: Callable[[Kernel], SharedGram] | None,
        solve_all: Callable[[list[Course], NDArray], None] | None = None,
    ) -> None:
        """Evaluate units on Gram matrices that are made, or given as the samples.

        Threads solve one portion after the other, unless there is a function that
        solves everything at once.
        """
        courses: list[tuple[Unit, Course]] = []
        for unit in units:
            began = time.perf_counter()
            if make is None:
                unit.gram = SharedGram.given(unit.samples.X)
            else:
                unit.gram = make(unit.kernel)
                self.n_grams += not unit.samples.is_matrix
            share = (time.perf_counter() - began) / len(unit.entries)
            for entry in unit.entries:
                entry.seconds += share
            self._map(partial(self._ask, unit.kernel), unit.entries)
            courses += [(unit, course) for course in courses_of(unit)]
        portions = portions_of([course for _, course in courses])

        def solve(portion: Portion) -> None:
            solve_portion(portion, self.engine.stop, self._room)
            self._count_portion(portion)

        if solve_all is None:
            self._map(solve, portions)
        else:
            solve_all([course for _, course in courses], self.engine.stop)
            for portion in portions:
                self._count_portion(portion)
        self._map(lambda pair: self._finish(*pair), courses)
        for unit in units:
            unit.gram = None
            for entry in unit.entries:
                entry.weights = entry.plan = None
                if entry.failure is not None:
                    self.fit_again(entry.candidate, entry.split, entry.failure)

    def _map(self, function: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Apply a function to every item in threads, or here if the work is brief."""
        if not self._is_brief:
            self.engine.map(function, items)
            return
        with np.errstate(over="ignore", invalid="ignore"):
            for item in items:
                function(item)

    def _count_portion(self, portion: Portion) -> None:
        course, first, last = portion
        part = SOLVING * (last - first) / (len(course.stated.chains.begin) - 1)
        self._count((e.candidate, e.split, part) for e in course.entries)

    def _ask(self, kernel: Kernel, entry: Entry) -> None:
        """Let a machine state its problems."""
        began = time.perf_counter()
        try:
            with config_context(**self.config):
                if not self.config["skip_parameter_validation"]:
                    entry.model._validate_params()
                entry.model._check_choices()
                entry.plan = self._plan(kernel, entry)
        except Exception as error:
            entry.failure = error
        entry.seconds += time.perf_counter() - began

    @QUIET
    def _plan(self, kernel: Kernel, entry: Entry) -> Plan:
        model, fold, weight = entry.model, entry.fold, self._weights(entry)
        if not isinstance(model, SVC):
            return model._plan_for(fold.valid, weight, (kernel,))
        # Problems that differ in C only differ in the scale of their bounds.
        key = pickle.dumps([getattr(model, name) for name in STATED_BY])
        own = (key, min(model.C, UNBOUNDED))
        if own not in fold.plans:
            if key not in fold.plans:
                unit = copy(model)
                unit.C = 1.0
                fold.plans[key] = unit._plan_for(fold.valid, weight, (kernel,))
            fold.plans[own] = fold.plans[key].with_costs(own[1])
        return replace(fold.plans[own], kernels=(kernel,))

    def _weights(self, entry: Entry) -> Any:
        request = self.request
        train = request.splits[entry.split][0]
        own = check_method_params(request.X, request.fit_params, train)
        return own.get(weight_name(entry.whole))

    def _finish(self, unit: Unit, course: Course) -> None:
        """Let machines of one course keep what was found, and score them."""
        request = self.request
        is_single = course.gram.matrix.dtype == np.float32
        if is_single and not unit.samples.is_matrix and self._room is not None:
            repair(course, unit.kernel, unit.samples.X, self.engine.stop, self._room)
        # What users set was checked when the machines stated their problems.
        with config_context(**{**self.config, "skip_parameter_validation": True}):
            for e in range(len(course.entries)):
                self._complete(course, e)
            good = [entry for entry in course.entries if not entry.has_failed]
            began = time.perf_counter()
            sharp = [entry for entry in good if not entry.is_coarse]
            if sharp and len(sharp[0].fold.test):
                decide(course, sharp)
            if sharp and request.return_train_score:
                decide(course, sharp, on_train=True)
            share = (time.perf_counter() - began) / max(len(good), 1)
            for entry in good:
                place = entry.candidate, entry.split, entry.fold
                self.score(*place, entry.model, entry.whole, entry.seconds, share)

    def score(
        self,
        c: int,
        split: int,
        fold: Fold,
        model: Any,
        whole: Any,
        fit_time: float,
        share: float = 0.0,
    ) -> None:
        """Score a fitted machine, and take note of it.

        The machine may be the last step of a ``whole`` pipeline; ``share`` are seconds
        of scoring that have passed already.
        """
        request, began, scores = self.request, time.perf_counter(), {}
        if request.scorer is not None:
            scores = score_model(request, model, whole, fold, split)
        result = {
            "fit_error": None,
            **scores,
            "n_test_samples": len(fold.test),
            "fit_time": fit_time,
            "score_time": time.perf_counter() - began + share,
        }
        if request.keeps_models:
            self.models[c, split] = model, fold.X_test
        self._note(c, split, result)

    @QUIET
    def _complete(self, course: Course, e: int) -> None:
        """Let a machine keep what was found."""
        began = time.perf_counter()
        entry = course.entries[e]
        plan, model = entry.plan, entry.model
        try:
            lost = course.lost(e)
            if len(lost):
                errors = 0.5 * course.results.certificate[e, lost, 4]
                precision = "single" if course.gram.matrix.itemsize == 4 else "double"
                raise NotPrecise(
                    f"{precision} precision is not enough for tol={model.tol}, "
                    f"with rounding errors of {np.max(errors):.0e} in decision values"
                )
            verdict = verdicts(course.gram, entry)
            found = certified(plan, course.solutions(e), verdict)
            machines = model._keep_machines(plan, found)
            entry.weights = course.coefficients(machines)
            entry.is_coarse = is_coarse(course, entry)
            if self._needs_support(entry):
                model._keep_support(plan, machines)
        except Exception as error:
            entry.failure = error
        share = course.seconds / len(course.entries)
        entry.seconds += share + time.perf_counter() - began

    def _needs_support(self, entry: Entry) -> bool:
        """Tell whether anybody will ask a model for more than known predictions."""
        request, model = self.request, entry.model
        return (
            request.keeps_models
            or type(model) not in MACHINES
            or not asks_predictions_only(request.scorer)
            or hasattr(model, "_means")
            or entry.is_coarse
        )

    def fit_again(
        self, c: int, split: int, failure: Exception, what: str = "the fit fails"
    ) -> None:
        """Fit a candidate on its own after the fit on shared values has failed."""
        if isinstance(failure, NotPrecise | MemoryError):
            self.fit_alone(c, split, str(failure) or "memory ran out")
            return
        self.fit_alone(c, split, f"{what}: {told(failure)}")
        if not self.results[c, split].get("fit_error"):
            # A mistake of the user would make the fit on its own fail as well.
            raise RuntimeError(
                f"The fit of {self.describe(c)} on split {split} fails on shared "
                f"kernel values, but not on its own: {told(failure)}. This is an "
                "error in Mercer; please report it. Until it is corrected, use "
                "scikit-learn's search, which does not share kernel values."
            ) from failure

    def fit_alone(self, c: int, split: int, reason: str) -> None:
        """Fit and score as scikit-learn does."""
        self.plain.setdefault(reason, []).append((c, split))
        if self.request.scorer is None:
            model = fit_plainly(self.request, self._candidates[c], split)
            test = self.request.splits[split][1]
            self.models[c, split] = model, safe_indexing(self.request.X, test)
            self._note(c, split, {})
            return
        self._note(c, split, score_plainly(self.request, self._candidates[c], split))

    def describe(self, c: int) -> str:
        """Name a candidate by its parameters."""
        words = ", ".join(f"{k}={v!r}" for k, v in self._candidates[c].items())
        return textwrap.shorten(words, 100) if words else "the estimator"

    def _count(self, parts: Iterable[tuple[int, int, float]]) -> None:
        """Count parts of fits, given by candidate and split; a fit counts as one.

        The lock is taken once for all of them: threads would often wait for it.
        """
        if self._bar is None:
            return
        more = 0.0
        with self._counting:
            for c, split, part in parts:
                before = self._counted.get((c, split), 0.0)
                self._counted[c, split] = after = min(1.0, before + part)
                more += after - before
        self._bar.advance(more)

    def _note(self, c: int, split: int, result: dict[str, Any]) -> None:
        self.results[c, split] = result
        if self._bar is None:
            return
        self._count([(c, split, 1.0)])
        n_splits = len(self.request.splits)
        self._bar.tell(f"{split + 1}/{n_splits}", self._candidates[c], result)
        mine = [self.results.get((c, k)) for k in range(n_splits)]
        if all(r is not None and "test_scores" in r for r in mine):
            scores = [r["test_scores"] for r in mine if r is not None]
            if not isinstance(scores[0], dict):
                self._bar.offer(float(np.mean(scores)), self._candidates[c])
