"""Candidates of a search on all folds, with as much shared between them as can be.

Candidates whose kernels are equal once they have seen the training samples make up a
*unit*: one Gram matrix, all its candidates, all its folds.  Units are dealt with one
after the other, a few at a time where they have little work each.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn import config_context, get_config
from sklearn.utils.validation import _check_method_params

from mercer.arrays import dense_if_small
from mercer.gram import is_custom
from mercer.kernels.base import Kernel
from mercer.kernels.operand import Operand
from mercer.memory import budget_bytes
from mercer.selection.bar import Bar
from mercer.selection.candidates import (
    Request,
    fit_plainly,
    group_of,
    make_candidate,
    score_entry,
    score_plainly,
    weight_name,
)
from mercer.selection.samples import (
    Samples,
    is_stateless,
    last_of,
    prepare,
    prepare_fold,
)
from mercer.selection.sharing import Given, decide, shared_copy, take_tasks
from mercer.selection.stored import GramMaker, SharedGram, bytes_of_parts
from mercer.selection.units import Answers, Entry, Job, Unit, jobs_of, solve_job
from mercer.solvers import Settings, tries_single
from mercer.threads import Threads

__all__ = ["Evaluation"]

# The part of the work of a fit that is solving, for the bar.
SOLVING = 0.8
_WHY_FAILED = "a fit failed, or single precision was not enough for it"


class Evaluation:
    """Evaluates candidates; ``results[candidate, split]`` is as scikit-learn has it."""

    def __init__(self, request: Request, threads: Threads, bar: Bar):
        self.request = request
        self.results: dict[tuple[int, int], dict[str, Any]] = {}
        self.models: dict[tuple[int, int], Any] = {}
        self.reasons: dict[str, int] = {}  #: why fits were plain ones, and how many
        self.n_grams = 0
        self._threads = threads
        self._bar = bar
        # Threads begin with scikit-learn's defaults.
        self._config = get_config()
        self._budget = budget_bytes(request.cache_size)

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
            self._run_group(group)
        for c, reason in plain:
            for split in range(n_splits):
                self._plain(c, split, reason)

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
        numbers = range(len(request.splits))
        if is_stateless(first):
            runs = [list(numbers)]
        else:
            runs = [[number] for number in numbers]
        for run in runs:
            began = time.perf_counter()
            try:
                if len(run) == len(numbers) and is_stateless(first):
                    samples = prepare(first, request.X, request.y, request.splits)
                else:
                    split = request.splits[run[0]]
                    samples = prepare_fold(first, request.X, request.y, run[0], split)
            except Exception:
                # The plain fits run into it too, and say what it is.
                for c, _ in group:
                    for split_number in run:
                        self._plain(c, split_number, "the samples cannot be validated")
                continue
            share = (time.perf_counter() - began) / (len(group) * len(run))
            units = self._units(samples, group, share)
            self._run_units(samples, units)

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
                    machine._views = fold.learnt.get("_views")
                    kernel = machine._make_kernel()
                    key = (kernel.key(), number)
                    if key not in bound:
                        bound[key], _ = machine._bound(fold.X_train)
                    kernel = bound[key]
                except Exception as error:
                    self._plain(c, number, f"the kernel cannot be used: {error}")
                    continue
                unit = units.setdefault(kernel.key(), Unit(samples, kernel))
                model = shared_copy(machine, Given(fold, kernel))
                unit.entries.append(Entry(c, number, model, estimator, share))
        return list(units.values())

    def _run_units(self, samples: Samples, units: list[Unit]) -> None:
        """Deal with units, several at a time if each alone leaves threads idle."""
        if not units:
            return
        n = samples.X.shape[0]
        dtype = np.dtype(np.float64) if samples.is_matrix else self._dtype(units)
        whole = 0 if samples.is_matrix else n * n * dtype.itemsize
        largest = max(len(fold.train) for fold in samples.folds.values())
        # Each thread has a part of the matrix to solve on, or rows to predict from.
        most = max(largest, *(len(fold.test) for fold in samples.folds.values()))
        squares = self._threads.count * most * largest * dtype.itemsize
        left = self._budget - whole - squares
        if left < 0:
            reason = (
                f"the Gram matrix of {n} samples and its parts need "
                f"{(whole + squares) / 2**20:.0f} MB, and cache_size="
                f"{self.request.cache_size!r} allows {self._budget / 2**20:.0f} MB"
            )
            for unit in units:
                for entry in unit.entries:
                    self._plain(entry.candidate, entry.split, reason)
            return
        keeps = False
        if len(units) > 1 and not samples.is_matrix:
            parts = bytes_of_parts([unit.kernel for unit in units], n)
            keeps = parts <= left
            left -= parts if keeps else 0
        X = samples.X
        if not any(is_custom(unit.kernel) for unit in units):
            X = dense_if_small(X)  # as a fit does
        maker = GramMaker(X, dtype, self._threads, keeps=keeps)
        at_once = 1
        if whole and len(units[0].entries) < len(units):
            at_once = int(np.clip(1 + left // whole, 1, len(samples.folds)))
        for begin in range(0, len(units), at_once):
            self._run_batch(units[begin : begin + at_once], maker)

    def _dtype(self, units: list[Unit]) -> np.dtype:
        """Choose the precision of the Gram matrix as a fit would."""
        X = units[0].samples.X
        tol = min(entry.model.tol for unit in units for entry in unit.entries)
        settings = Settings(tol=tol)
        if all(tries_single(unit.kernel, Operand(X), settings) for unit in units):
            return np.dtype(np.float32)
        return X.dtype

    def _run_batch(self, units: list[Unit], maker: GramMaker) -> None:
        entries = []
        jobs: list[Job] = []
        for unit in units:
            began = time.perf_counter()
            if unit.samples.is_matrix:
                unit.gram = SharedGram.given(unit.samples.X)
            else:
                unit.gram = maker.make(unit.kernel)
                self.n_grams += 1
            share = (time.perf_counter() - began) / len(unit.entries)
            for entry in unit.entries:
                entry.seconds += share
                entry.model._given.gram = unit.gram
            self._threads.map(self._ask, unit.entries)
            jobs += jobs_of(unit)
            entries += unit.entries
        n_problems = {
            id(entry): len(entry.model._given.tasks.specs)
            for entry in entries
            if not entry.has_failed
        }
        answers: Answers = {}

        def solve(job: Job) -> None:
            found = solve_job(job, self._threads.stop)
            answers.update(found)
            done = sum(1 / n_problems[entry] for entry, _ in found)
            self._bar.advance(SOLVING * done)

        # The largest first, so that no thread is left with one at the end.
        jobs.sort(key=lambda job: job.size, reverse=True)
        self._threads.map(solve, jobs)
        self._threads.map(
            lambda together: self._finish(together, answers), _by_fold(entries)
        )
        for unit in units:
            unit.gram = None
        for entry in entries:
            given = entry.model._given
            given.gram = given.weights = None
            if entry.has_failed:
                self._plain(entry.candidate, entry.split, _WHY_FAILED)

    def _ask(self, entry: Entry) -> None:
        """Let a machine say which problems it wants solved."""
        began = time.perf_counter()
        try:
            with config_context(**self._config):
                take_tasks(entry.model, self._weights(entry))
        except Exception:
            entry.has_failed = True
        entry.seconds += time.perf_counter() - began

    def _weights(self, entry: Entry) -> Any:
        request = self.request
        train = request.splits[entry.split][0]
        own = _check_method_params(request.X, request.fit_params, train)
        return own.get(weight_name(entry.whole))

    def _finish(self, entries: list[Entry], answers: Answers) -> None:
        """Let machines of one fold go on from the solutions, and score them."""
        request = self.request
        # What users set was checked the first time.
        with config_context(**{**self._config, "skip_parameter_validation": True}):
            for entry in entries:
                self._complete(entry, answers)
            good = [entry for entry in entries if not entry.has_failed]
            began = time.perf_counter()
            sharp = [
                given
                for given, model in ((e.model._given, e.model) for e in good)
                if not given.is_coarse(model.tol, model._is_precomputed())
            ]
            if sharp:
                decide(sharp)
                if request.return_train_score:
                    decide(sharp, on_train=True)
            share = (time.perf_counter() - began) / max(len(good), 1)
            for entry in good:
                began = time.perf_counter()
                scores = {} if request.scorer is None else score_entry(request, entry)
                fit_time, score_time = entry.seconds, time.perf_counter() - began
                result = {
                    "fit_error": None,
                    **scores,
                    "n_test_samples": len(entry.model._given.fold.test),
                    "fit_time": fit_time,
                    "score_time": score_time + share,
                }
                if request.keeps_models:
                    self.models[entry.candidate, entry.split] = entry.model
                self._note(entry.candidate, entry.split, result, 1 - SOLVING)

    def _complete(self, entry: Entry, answers: Answers) -> None:
        """Run the second half of ``fit``."""
        if entry.has_failed:
            return
        given = entry.model._given
        solved = [answers[id(entry), t] for t in range(len(given.tasks.specs))]
        given.solutions = [s.solution for s in solved if s.solution is not None]
        began = time.perf_counter()
        fold = given.fold
        try:
            if len(given.solutions) < len(solved):
                raise ArithmeticError("single precision is not enough")
            entry.model.fit(fold.X_train, fold.y_train, self._weights(entry))
        except Exception:
            entry.has_failed = True
        given.tasks = given.solutions = None
        entry.seconds += sum(s.seconds for s in solved) + time.perf_counter() - began

    def _plain(self, c: int, split: int, reason: str) -> None:
        """Fit and score as scikit-learn does."""
        self.reasons[reason] = self.reasons.get(reason, 0) + 1
        if self.request.scorer is None:
            model = fit_plainly(self.request, self._candidates[c], split)
            self.models[c, split] = model
            self._note(c, split, {}, 1.0)
            return
        result = score_plainly(self.request, self._candidates[c], split)
        self._note(c, split, result, 1.0)

    def _note(self, c: int, split: int, result: dict[str, Any], fits: float) -> None:
        self.results[c, split] = result
        self._bar.advance(fits)
        n_splits = len(self.request.splits)
        mine = [self.results.get((c, k)) for k in range(n_splits)]
        if all(r is not None and "test_scores" in r for r in mine):
            scores = [r["test_scores"] for r in mine if r is not None]
            if not isinstance(scores[0], dict):
                self._bar.offer(float(np.mean(scores)), self._candidates[c])


def _by_fold(entries: list[Entry]) -> list[list[Entry]]:
    """Bring entries of the same fold and Gram matrix together."""
    groups: dict[Any, list[Entry]] = {}
    for entry in entries:
        key = (id(entry.model._given.gram), entry.split)
        groups.setdefault(key, []).append(entry)
    return list(groups.values())
