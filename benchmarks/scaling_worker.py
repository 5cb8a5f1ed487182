"""What one process of the benchmark of threads and cards does.

It fits the cases with one library on some cores, or on a graphics card, first a few
samples to warm up and then all of them several times, and yields a row of facts for
each case.
"""

from __future__ import annotations

import gc
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np

from benchmarks.cases import Case, Setting
from benchmarks.data import Data, covtype_like, load
from benchmarks.memory import claim_memory, peak_mb

__all__ = ["CASES", "CLASSES", "FAST", "PARTS", "Problem", "rows"]

# More samples than one thread would compute by itself.
WARM_ROWS = 4000
# Test samples that are predicted to warm up.
WARM_PREDICTIONS = 2000
# A run that takes longer than this is not repeated.
SLOW_SECONDS = 10.0
# Where each library is. scikit-learn uses one core whatever it may have.
CLASSES = {
    "mercer": "mercer",
    "scikit-learn-intelex": "sklearnex.svm",
    "scikit-learn": "sklearn.svm",
}


class Problem(NamedTuple):
    """What is fitted, and what tables call it."""

    about: str
    data: str
    n: int
    n_test: int
    setting: Setting


MNIST = Setting(C=10.0, gamma=0.02)
CASES = {
    "mnist-5000": Problem("MNIST 5,000", "mnist", 5000, 10_000, MNIST),
    "mnist-20000": Problem("MNIST 20,000", "mnist", 20_000, 10_000, MNIST),
    "mnist-60000": Problem("MNIST 60,000", "mnist", 60_000, 10_000, MNIST),
    "a9a": Problem("a9a 32,561", "a9a", 32_561, 16_281, Setting(C=1.0, gamma=0.05)),
    "ijcnn1": Problem(
        "ijcnn1 49,990", "ijcnn1", 49_990, 91_701, Setting(C=10.0, gamma=1.0)
    ),
    "covtype-like": Problem(
        "covtype-like 20,000", "covtype", 20_000, 10_000, Setting(C=3.0, gamma=0.05)
    ),
}
FAST = {
    "digits": Problem("digits 900", "digits", 900, 300, Setting(C=10.0, gamma=0.02))
}

# Parts of a fit, and the functions that belong to them.
PARTS: dict[str, tuple[tuple[str, str], ...]] = {
    "checks": (
        ("mercer.machines.base.machine", "KernelMachine._validated"),
        ("mercer.machines.base.classifier", "KernelClassifier._plan_for"),
    ),
    "frame": (
        ("mercer.engines.cpu.tiles", "_warm_up"),
        ("mercer.engines.cpu.solve", "_prepare"),
    ),
    "matrix": (("mercer.engines.cpu.gram", "symmetric_matrix"),),
    "rows": (("mercer.engines.cpu.gram", "RowGram.provide"),),
    "steps": (
        ("mercer.engines.cpu.decompose", "_play"),
        ("mercer.engines.cpu.solve", "solve_many"),
        ("mercer.engines.cpu.engine", "solve_small"),
        ("mercer.engines.cpu.engine", "solve_small_pairs"),
    ),
    "certificates": (("mercer.engines.cpu.solve", "rounding_errors"),),
    "keep": (("mercer.machines.base.classifier", "KernelClassifier._keep_support"),),
}


def _data(problem: Problem) -> Data:
    if problem.data != "covtype":
        case = Case("", "", "fit", problem.data, problem.n, problem.n_test)
        return load(case)
    X, y = covtype_like(problem.n + problem.n_test, scaling="standard")
    X, n = X.astype(np.float32), problem.n
    return Data(X[:n], y[:n], X[n:], y[n:])


@contextmanager
def _clocks() -> Iterator[dict[str, float]]:
    """Measure how long the main thread is in each part, and in none that is inside."""
    spent: dict[str, float] = {}
    inside: list[float] = []

    def clocked(part: str, work: Callable) -> Callable:
        def timed(*args: Any, **options: Any) -> Any:
            started = time.perf_counter()
            inside.append(0.0)
            try:
                return work(*args, **options)
            finally:
                whole = time.perf_counter() - started
                spent[part] = spent.get(part, 0.0) + whole - inside.pop()
                if inside:
                    inside[-1] += whole

        return timed

    with ExitStack() as patches:
        for part, functions in PARTS.items():
            for module, name in functions:
                place: Any = import_module(module)
                *outer, last = name.split(".")
                for step in outer:
                    place = getattr(place, step)
                work = clocked(part, getattr(place, last))
                patches.enter_context(patch.object(place, last, work))
        yield spent


def rows(job: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Do a job of :func:`benchmarks.scaling.measure`; yield the facts of each case."""
    cases = FAST if job["is_fast"] else CASES
    for name in job["cases"]:
        problem = cases[name]
        facts = {
            "case": name,
            "about": problem.about,
            "peer": job["peer"],
            "device": job["device"],
            "threads": job["threads"],
            "n": problem.n,
            "n_test": problem.n_test,
            "dtype": "float32",
            "setting": problem.setting._asdict(),
            "cache_mb": job["cache_mb"],
        }
        try:
            yield facts | {"status": "ok", **_measured(job, problem)}
        except _TooLongError as error:
            yield facts | {"status": "too long", "message": str(error)}
        except ModuleNotFoundError as error:
            yield facts | {"status": "not installed", "message": str(error)}


class _TooLongError(Exception):
    """A case is left out, since one library would take too long for it."""


def _measured(job: dict[str, Any], problem: Problem) -> dict[str, Any]:
    """Return what one library takes for one case, and how good its solution is."""
    machine = _machine(job, problem.setting)
    data = _data(problem)
    card = _card(job["device"])
    _warm_up(job, machine, data)
    gc.collect()
    if card is not None:
        card.release_memory()
    if not job["is_fast"]:
        claim_memory()
    fits: list[float] = []
    predictions: list[float] = []
    repeats = job["repeats"]
    # The first whole run only warms up, unless it is the only one: large problems go
    # through code that a few samples do not reach.
    while len(fits) < repeats + (repeats > 1):
        started = time.perf_counter()
        model = machine().fit(data.X, data.y)
        fitted = time.perf_counter()
        predicted = model.predict(data.X_test)
        predictions.append(time.perf_counter() - fitted)
        fits.append(fitted - started)
        if len(fits) > 1 and fits[-1] + predictions[-1] > SLOW_SECONDS:
            break
    peak = peak_mb()
    counted = slice(1, None) if len(fits) > 1 else slice(None)
    facts = {
        "fit_seconds": statistics.median(fits[counted]),
        "predict_seconds": statistics.median(predictions[counted]),
        "repeats": len(fits[counted]),
        "runs": {
            "fit_seconds": fits[counted],
            "predict_seconds": predictions[counted],
            "first_fit_seconds": fits[0],
            "first_predict_seconds": predictions[0],
        },
        "peak_mb": peak,
        "n_features": data.X.shape[1],
        "n_classes": len(np.unique(data.y)),
        "n_support": len(model.support_),
        "accuracy": float(np.mean(predicted == data.y_test)),
        "converged": _has_converged(model),
    }
    if card is not None:
        facts["card_mb"] = card.held_memory() / 2**20
    if job["peer"] == "mercer":
        facts["kkt_gap"] = float(np.max(model.kkt_gap_))
    del model
    if job["peer"] == "mercer" and card is None:
        with _clocks() as parts:
            started = time.perf_counter()
            machine().fit(data.X, data.y)
            whole = time.perf_counter() - started
        facts["parts"] = {**parts, "rest": whole - sum(parts.values())}
    return facts


def _machine(job: dict[str, Any], setting: Setting) -> Callable[[], Any]:
    """Return what makes a new machine of the library with the same options."""
    machine = import_module(CLASSES[job["peer"]]).SVC
    options = {**setting._asdict(), "cache_size": job["cache_mb"]}
    if job["device"] != "cpu":
        # cache_size is memory of the card there, which "auto" takes as far as it goes.
        options |= {"device": job["device"], "cache_size": "auto"}
    elif job["peer"] == "mercer":
        options["n_jobs"] = job["threads"]
    return lambda: machine(**options)


def _card(device: str) -> Any:
    if device == "cpu":
        return None
    return import_module("mercer.engines.cuda.card").card_of(device)


def _warm_up(job: dict[str, Any], machine: Callable[[], Any], data: Data) -> None:
    """Fit and predict some samples; refuse a case that would take too long.

    The time of all samples is guessed from that of some: kernel values grow with the
    square of the samples, predictions with support vectors times samples.
    """
    n, n_test = min(WARM_ROWS, len(data.X)), min(WARM_PREDICTIONS, len(data.X_test))
    started = time.perf_counter()
    model = machine().fit(data.X[:n], data.y[:n])
    fitted = time.perf_counter()
    model.predict(data.X_test[:n_test])
    predicted = time.perf_counter()
    if job["peer"] != "scikit-learn":  # the others take seconds for every case
        return
    growth = len(data.X) / n
    guess = (fitted - started) * growth**2
    guess += (predicted - fitted) * growth * len(data.X_test) / n_test
    if guess > job["limit"]:
        raise _TooLongError(
            f"It would take about {guess:.0f} s, judging by {n} samples; the limit is "
            f"{job['limit']:g} s."
        )


def _has_converged(model: Any) -> bool:
    """Tell what the library says of its solution."""
    if hasattr(model, "converged_"):
        return bool(np.all(model.converged_))
    return bool(np.all(model.fit_status_ == 0))


def main() -> None:
    """Do the job given on the command line; print a line of JSON for each case."""
    for facts in rows(json.loads(sys.argv[1])):
        print(json.dumps(facts), flush=True)


if __name__ == "__main__":
    main()
