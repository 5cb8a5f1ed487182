"""Searches over linear machines: all folds in shared passes over the samples.

A sample that a fold leaves out has the weight 0, which is the same as its absence.  So
the problems of all folds have the same samples, and are solved side by side.  Machines
that differ in C only make up a *chain*: each begins with the weights of the next
smaller C.
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline

from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.cpu.linear.curvature import MOST_DIRECT, Products
from mercer.engines.cpu.linear.solve import LinearFound, Start
from mercer.machines.base.machine import Validated
from mercer.machines.linear.base import LinearPlan
from mercer.runtime.scikit_learn import check_method_params, safe_indexing
from mercer.runtime.validation import QUIET, check_finite
from mercer.selection.candidates import (
    Fold,
    Request,
    is_stateless,
    last_of,
    weight_name,
)

__all__ = [
    "Chain",
    "LinearSamples",
    "Step",
    "chains_of",
    "lacks_classes",
    "prepare_linear",
    "solve_chain",
]

# Arrays as long as there are samples that a problem needs while it is being solved.
ARRAYS_OF_A_PROBLEM = 12
# Matrices as large as the products of features that it needs: these, and products of
# samples near the margin with the samples themselves.
MATRICES_OF_A_PROBLEM = 3


@dataclass(eq=False)
class LinearSamples:
    """Samples that some folds share, and how often each fold counts each of them."""

    X: Any
    y: Any
    weight: NDArray | None  #: the weights that the user gave
    folds: dict[int, Fold]  #: by the number of their split
    counts: dict[int, NDArray]


class Chain(NamedTuple):
    """Candidates that differ in C only, from the smallest to the largest."""

    candidates: list[tuple[int, Any]]  #: their numbers, and their estimators

    @property
    def machine(self) -> Any:
        """A machine of the chain."""
        return last_of(self.candidates[0][1])


class Step(NamedTuple):
    """The machines of one candidate, one for each fold."""

    candidate: int
    estimator: Any
    models: dict[int, Any]  #: by the number of the split
    seconds: float  #: for each of them


def prepare_linear(
    request: Request, estimator: Any, numbers: Sequence[int]
) -> LinearSamples:
    """Return samples that some splits share.

    Steps of a pipeline that learn from the training part give each split samples of its
    own; ``numbers`` is then one split.
    """
    X, y = request.X, request.y
    n = _length(X)
    whole = check_method_params(X, request.fit_params, np.arange(n))
    weight = whole.get(weight_name(estimator))
    folds, counts = {}, {}
    rows = {k: [np.arange(n)[part] for part in request.splits[k]] for k in numbers}
    if is_stateless(estimator):
        before = None
        if isinstance(estimator, Pipeline) and len(estimator.steps) > 1:
            before = clone(estimator)[:-1]
            X = before.fit_transform(X, y)
        for number, (train, test) in rows.items():
            folds[number] = _fold(request, X, train, test, before)
            # Splits may draw a sample several times.
            counts[number] = np.bincount(train, minlength=n).astype(np.float64)
        return LinearSamples(X, y, weight, folds, counts)
    (number,) = numbers
    train, test = rows[number]
    y_train, before = safe_indexing(y, train), clone(estimator)[:-1]
    X_train = before.fit_transform(safe_indexing(X, train), y_train)
    X_test = before.transform(safe_indexing(X, test))
    valid = Validated(X_train, y_train, {}, ())
    fold = Fold(train, test, valid, X_test, safe_indexing(y, test), before)
    own = None if weight is None else np.asarray(weight)[train]
    ones = np.ones(len(train))
    return LinearSamples(X_train, y_train, own, {number: fold}, {number: ones})


def _length(X: Any) -> int:
    return X.shape[0] if hasattr(X, "shape") else len(X)


def _fold(request: Request, X: Any, train: NDArray, test: NDArray, before: Any) -> Fold:
    """Return a fold; its training samples are copied only if they are scored."""
    X_train = safe_indexing(X, train) if request.return_train_score else None
    y_train = safe_indexing(request.y, train)
    valid = Validated(X_train, y_train, {}, ())
    y_test = safe_indexing(request.y, test)
    return Fold(train, test, valid, safe_indexing(X, test), y_test, before)


def lacks_classes(machine: Any, samples: LinearSamples, number: int) -> bool:
    """Tell whether a training part has fewer classes than all samples together."""
    if not is_classifier(machine):
        return False
    y = np.asarray(samples.y)
    return len(np.unique(y[samples.counts[number] > 0])) < len(np.unique(y))


def chains_of(group: Sequence[tuple[int, Any]]) -> list[Chain]:
    """Bring candidates together that differ in C only."""
    chains: dict[Any, list[tuple[int, Any]]] = {}
    for c, estimator in group:
        machine = last_of(estimator)
        params = {k: v for k, v in machine.get_params().items() if k != "C"}
        key = (type(machine), pickle.dumps(params))
        chains.setdefault(key, []).append((c, estimator))
    return [
        Chain(sorted(some, key=lambda item: float(last_of(item[1]).C)))
        for some in chains.values()
    ]


def solve_chain(
    chain: Chain,
    samples: LinearSamples,
    numbers: Sequence[int],
    engine: CpuEngine,
    budget: int,
) -> Iterator[Step]:
    """Solve the problems of some folds for one C after the other."""
    machine = chain.machine
    plans = {}
    for number in numbers:
        weight = samples.counts[number]
        if samples.weight is not None:
            weight = weight * np.asarray(samples.weight, dtype=np.float64)
        plans[number] = deepcopy(machine)._plan(samples.X, samples.y, weight)
    batches = _batches(plans, budget)
    starts = [Start(None, None, None, Products()) for _ in batches]
    for c, estimator in chain.candidates:
        began = time.perf_counter()
        models: dict[int, Any] = {}
        for b, batch in enumerate(batches):
            model = deepcopy(last_of(estimator))
            found = _solve(model, [plans[k] for k in batch], engine, starts[b])
            beta = found.beta if found.beta.size else None
            products = starts[b].products
            starts[b] = Start(found.weights, found.shifts, beta, products)
            first = 0
            for number in batch:
                k = len(plans[number].weights)
                own = found.part(slice(first, first + k))
                models[number] = _kept(last_of(estimator), plans[number], own)
                first += k
        yield Step(c, estimator, models, (time.perf_counter() - began) / len(models))


def _batches(plans: dict[int, LinearPlan], budget: int) -> list[list[int]]:
    """Put as many folds together as the memory allows, and at least one."""
    numbers = list(plans)
    plan = plans[numbers[0]]
    n, d = plan.X.shape
    width = d + 1 if d < MOST_DIRECT else 0
    each = 8 * (MATRICES_OF_A_PROBLEM * width * width + ARRAYS_OF_A_PROBLEM * n)
    at_once = int(np.clip(budget // (len(plan.weights) * each), 1, len(numbers)))
    return [numbers[i : i + at_once] for i in range(0, len(numbers), at_once)]


@QUIET
def _solve(
    model: Any, plans: list[LinearPlan], engine: CpuEngine, start: Start
) -> LinearFound:
    """Solve the problems of several plans on the same samples."""
    stacked = plans[0]._replace(
        targets=np.vstack([model._targets(plan) for plan in plans]),
        weights=np.vstack([plan.weights for plan in plans]),
    )
    found = model._solve_with(engine, stacked, start, None)
    check_finite("weights or intercepts", found.weights, found.objective)
    return found


def _kept(machine: Any, plan: LinearPlan, found: LinearFound) -> Any:
    """Return a machine that keeps what was found."""
    model = copy(machine)
    model.random_state = deepcopy(machine.random_state)
    model._keep(plan, found)
    if not found.converged:
        model._warn(found)
    return model
