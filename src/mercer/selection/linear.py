"""Evaluation of linear machines, with all folds and values of C in shared passes."""

from __future__ import annotations

import time
from typing import Any

from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.tiles import budget_bytes
from mercer.runtime.threads import Threads
from mercer.selection.candidates import Fold, Request, last_of, score_model
from mercer.selection.chains import (
    Chain,
    LinearSamples,
    Step,
    chains_of,
    lacks_classes,
    prepare_linear,
    solve_chain,
)

__all__ = ["LinearEvaluation"]


class LinearEvaluation:
    """The part of an evaluation that deals with linear machines."""

    request: Request
    results: dict[tuple[int, int], dict[str, Any]]
    models: dict[tuple[int, int], tuple[Any, Any]]
    _threads: Threads
    _config: dict[str, Any]

    def _runs(self, estimator: Any) -> list[list[int]]:
        raise NotImplementedError

    def _not_prepared(
        self, group: list[tuple[int, Any]], run: list[int], error: Exception
    ) -> None:
        raise NotImplementedError

    def _plain(self, c: int, split: int, reason: str) -> None:
        raise NotImplementedError

    def _again(self, c: int, split: int, failure: Exception) -> None:
        raise NotImplementedError

    def _note(self, c: int, split: int, result: dict[str, Any]) -> None:
        raise NotImplementedError

    def _run_linear(self, group: list[tuple[int, Any]]) -> None:
        """Evaluate linear machines that see the same samples in each fold."""
        for run in self._runs(group[0][1]):
            try:
                samples = prepare_linear(self.request, group[0][1], run)
            except Exception as error:
                self._not_prepared(group, run, error)
                continue
            valid = [item for item in group if self._is_valid(*item, run)]
            for chain in chains_of(valid):
                self._run_chain(chain, samples)

    def _is_valid(self, c: int, estimator: Any, run: list[int]) -> bool:
        """Tell whether parameters are valid; if not, fits on their own say so."""
        try:
            if not self._config["skip_parameter_validation"]:
                last_of(estimator)._validate_params()
        except Exception as error:
            for number in run:
                self._again(c, number, error)
            return False
        return True

    def _run_chain(self, chain: Chain, samples: LinearSamples) -> None:
        """Evaluate linear machines that differ in C only."""
        candidates = [c for c, _ in chain.candidates]
        numbers = []
        for number in samples.folds:
            if lacks_classes(chain.machine, samples, number):
                for c in candidates:
                    self._plain(c, number, "a training part lacks some of the classes")
            else:
                numbers.append(number)
        if not numbers:
            return
        engine = CpuEngine.on(self._threads)
        budget = budget_bytes(self.request.cache_size)
        try:
            for step in solve_chain(chain, samples, numbers, engine, budget):
                for number, model in step.models.items():
                    self._finish_linear(step, number, model, samples.folds[number])
        except Exception as error:
            for c in candidates:
                for number in numbers:
                    if (c, number) not in self.results:
                        self._again(c, number, error)

    def _finish_linear(self, step: Step, number: int, model: Any, fold: Fold) -> None:
        """Score a fitted linear machine."""
        request, began = self.request, time.perf_counter()
        scores = {}
        if request.scorer is not None:
            scores = score_model(request, model, step.estimator, fold, number)
        result = {
            "fit_error": None,
            **scores,
            "n_test_samples": len(fold.test),
            "fit_time": step.seconds,
            "score_time": time.perf_counter() - began,
        }
        if request.keeps_models:
            self.models[step.candidate, number] = model, fold.X_test
        self._note(step.candidate, number, result)
