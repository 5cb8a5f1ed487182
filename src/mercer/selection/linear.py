"""Evaluation of linear machines, with all folds and values of C in shared passes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.engines.cpu.tiles import budget_bytes
from mercer.selection.candidates import last_of
from mercer.selection.chains import (
    Chain,
    LinearSamples,
    chains_of,
    lacks_classes,
    prepare_linear,
    solve_chain,
)

if TYPE_CHECKING:
    from mercer.selection.evaluation import Evaluation

__all__ = ["evaluate_linear"]


def evaluate_linear(evaluation: Evaluation, group: list[tuple[int, Any]]) -> None:
    """Evaluate linear machines that see the same samples in each fold."""
    for run in evaluation.runs(group[0][1]):
        try:
            samples = prepare_linear(evaluation.request, group[0][1], run)
        except Exception as error:
            evaluation.give_up(group, run, error)
            continue
        valid = [item for item in group if _is_valid(evaluation, *item, run)]
        for chain in chains_of(valid):
            _evaluate_chain(evaluation, chain, samples)


def _is_valid(evaluation: Evaluation, c: int, estimator: Any, run: list[int]) -> bool:
    """Tell whether parameters are valid; if not, fits on their own say so."""
    try:
        if not evaluation.config["skip_parameter_validation"]:
            last_of(estimator)._validate_params()
    except Exception as error:
        for number in run:
            evaluation.fit_again(c, number, error)
        return False
    return True


def _evaluate_chain(
    evaluation: Evaluation, chain: Chain, samples: LinearSamples
) -> None:
    """Evaluate linear machines that differ in C only."""
    candidates = [c for c, _ in chain.candidates]
    numbers = []
    for number in samples.folds:
        if lacks_classes(chain.machine, samples, number):
            for c in candidates:
                reason = "a training part lacks some of the classes"
                evaluation.fit_alone(c, number, reason)
        else:
            numbers.append(number)
    if not numbers:
        return
    budget = budget_bytes(evaluation.request.cache_size)
    try:
        for step in solve_chain(chain, samples, numbers, evaluation.engine, budget):
            for number, model in step.models.items():
                place = step.candidate, number, samples.folds[number]
                evaluation.score(*place, model, step.estimator, step.seconds)
    except Exception as error:
        for c in candidates:
            for number in numbers:
                if (c, number) not in evaluation.results:
                    evaluation.fit_again(c, number, error)
