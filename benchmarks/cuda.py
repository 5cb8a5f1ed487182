"""Compare a graphics card with the processor: ``python -m benchmarks.cuda --help``.

Each part is one piece of work on the processor with all its threads and on the card, in
turn; times are medians, and the copies to the card and back count. Beside the times
stand the KKT gap, the objective, how many predictions differ, and the memory of the
card. What takes a device more than 20 s is not repeated there.

digits      MNIST one-vs-one, C=10 γ=0.02, 5,000 and 60,000 images, and predictions
schemes     MNIST one-vs-rest and with an error-correcting code of 15 machines
sigmoids    MNIST one-vs-one with probabilities
parity      MNIST even against odd digits
a9a         census data, C=1 γ=0.05
ijcnn1      22 numbers, C=10 γ=1
covtype     100,000 rows of a table like UCI's covertype, min-max scaled, C=3 γ=1
whole       all 581,012 x 54 of it, on the card alone
grid        5 folds, 6 values of C, 3 of γ on 10,000 images
gram        the matrix of 60,000 images
components  kernel PCA, 50 components of 10,000 images
clusters    kernel k-means, 10 clusters of 20,000 images
kernels     MKL of three kernels on 10,000 images
"""

from __future__ import annotations

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits

from benchmarks.data import covtype_like
from benchmarks.parts import Part, run_parts
from benchmarks.tabular import Table, binary, images
from benchmarks.timing import timed
from mercer import SVC, KernelKMeans, KernelPCA, MKLClassifier, gram_matrix
from mercer.engines.cuda.card import card_of
from mercer.kernels import RBF, Linear
from mercer.selection import GridSearchCV

__all__ = ["PARTS", "main"]

FEW = 300  # samples in a smoke run, and in the warm-up
COVTYPE = 100_000
WHOLE_COVTYPE = 581_012
SLOW_SECONDS = 20.0


class Work(NamedTuple):
    """Something that both devices do, and what is reported of its result."""

    run: Callable[[str], Any]
    warm_up: Callable[[str], Any]
    report: Callable[[Any], dict[str, Any]] = lambda found: {}


def _compared(
    works: dict[str, Work], options: Namespace, with_processor: bool = True
) -> dict[str, Any]:
    """Run everything on both devices in turn; return times, facts and memory."""
    card = card_of(options.device)
    devices = ["cpu", options.device] if with_processor else [options.device]
    answer: dict[str, Any] = {}
    for name, work in works.items():
        seconds: dict[str, list[float]] = {device: [] for device in devices}
        facts: dict[str, dict[str, Any]] = {}
        for device in devices:
            work.warm_up(device)
        for _ in range(options.repeats):
            for device, times in seconds.items():
                if times and times[0] > SLOW_SECONDS:
                    continue
                card.release_memory()
                found, taken = timed(lambda d=device, w=work: w.run(d))
                times.append(taken.seconds)
                facts[device] = work.report(found)
                if device != "cpu":
                    facts[device]["megabytes of the card"] = card.held_memory() / 2**20
                del found
        for device, times in seconds.items():
            answer[f"{name} {device} seconds"] = median(times)
            answer[f"{name} {device} runs"] = times
            for key, value in facts[device].items():
                answer[f"{name} {device} {key}"] = value
        if with_processor:
            ratio = median(seconds["cpu"]) / median(seconds[options.device])
            answer[f"{name} cpu / {options.device}"] = ratio
    return answer


def _of_machine(model: Any) -> dict[str, Any]:
    return {
        "gap": float(np.max(model.kkt_gap_)),
        "objective": float(np.sum(model.objective_)),
        "support vectors": len(model.support_),
        "converged": bool(model.converged_),
    }


def _fit(machine: Any, X: NDArray, y: NDArray) -> Work:
    """Return the work of a fit; the objective is computed outside of the time."""

    def run(device: str, rows: slice = slice(None)) -> Any:
        return machine().set_params(device=device).fit(X[rows], y[rows])

    return Work(run, lambda device: run(device, slice(0, FEW)), _of_machine)


def _predictions(machine: Any, X: NDArray, y: NDArray, X_new: NDArray) -> Work:
    model = machine().fit(X, y)
    here = model.predict(X_new)

    def run(device: str) -> NDArray:
        return model.set_params(device=device).predict(X_new)

    def report(found: NDArray) -> dict[str, Any]:
        return {"predictions that differ": int((found != here).sum())}

    return Work(run, run, report)


def _digits(options: Namespace) -> dict[str, Any]:
    works = {}
    for n in (FEW,) if options.fast else (5000, 60_000):
        X, y = _images(n, options)
        works[f"fit {n}"] = _fit(_svc, X, y)
    new, _ = _images(100 if options.fast else 10_000, options, "test")
    works[f"predict {len(new)}"] = _predictions(_svc, X, y, new)
    return _compared(works, options)


def _svc(**options: Any) -> SVC:
    return SVC(C=10.0, gamma=0.02, random_state=0, **options)


def _schemes(options: Namespace) -> dict[str, Any]:
    X, y = _images(60_000, options)
    works = {
        f"one-vs-rest {len(X)}": _fit(lambda: _svc(multiclass="ovr"), X, y),
        f"code of 15 {len(X)}": _fit(
            lambda: _svc(multiclass="ecoc", code="dietterich15"), X, y
        ),
    }
    return _compared(works, options)


def _sigmoids(options: Namespace) -> dict[str, Any]:
    X, y = _images(60_000, options)
    work = _fit(lambda: _svc(probability=True), X, y)
    return _compared({f"fit {len(X)}": work}, options)


def _images(
    n: int, options: Namespace, part: str = "train"
) -> tuple[NDArray[np.float32], NDArray]:
    if options.fast:
        X, y = load_digits(return_X_y=True)
        return X[: min(n, FEW)].astype(np.float32) / 16, y[: min(n, FEW)]
    table = images(n, part)
    return table.X, table.y


def _table(make: Callable[[int], Table], n: int, with_processor: bool = True) -> Part:
    """Return the part that fits one machine to a table."""

    def part(options: Namespace) -> dict[str, Any]:
        table = make(FEW if options.fast else options.rows or n)
        machine = lambda: SVC(**table.options)  # noqa: E731
        works = {f"fit {len(table.X)}": _fit(machine, table.X, table.y)}
        return _compared(works, options, with_processor)

    return part


def _parity(options: Namespace) -> dict[str, Any]:
    X, y = _images(60_000, options)
    return _compared({f"fit {len(X)}": _fit(_svc, X, y % 2)}, options)


def _covtype(n: int) -> Table:
    X, y = covtype_like(n, scaling="minmax")
    return Table(X.astype(np.float32), y == 1, {"C": 3.0, "gamma": 1.0})


def _grid(options: Namespace) -> dict[str, Any]:
    X, y = _images(10_000, options)
    grid = {"C": [0.1, 1.0, 3.0, 10.0, 30.0, 100.0], "gamma": [0.01, 0.02, 0.05]}

    def run(device: str, rows: slice = slice(None)) -> Any:
        search = GridSearchCV(SVC(device=device), grid, cv=5, refit=False)
        return search.fit(X[rows], y[rows])

    def report(found: Any) -> dict[str, Any]:
        return {"best score": float(found.best_score_)}

    work = Work(run, lambda d: run(d, slice(FEW)), report)
    return _compared({f"search {len(X)}": work}, options)


def _simple(run: Callable[[str, NDArray], Any], n: int, report: Any) -> Part:
    """Return the part of a piece of work on images."""

    def part(options: Namespace) -> dict[str, Any]:
        X, _ = _images(n, options)
        whole = Work(lambda d: run(d, X), lambda d: run(d, X[:FEW]), report)
        return _compared({f"run {len(X)}": whole}, options)

    return part


def _kernels(options: Namespace) -> dict[str, Any]:
    X, y = _images(10_000, options)
    base = [RBF(gamma=0.02), RBF(gamma=0.1), Linear()]

    def run(device: str, rows: slice = slice(None)) -> Any:
        return MKLClassifier(base, C=10.0, device=device).fit(X[rows], y[rows])

    def report(found: Any) -> dict[str, Any]:
        return {"weights": np.round(found.weights_, 4).tolist()}

    work = Work(run, lambda d: run(d, slice(FEW)), report)
    return _compared({f"fit {len(X)}": work}, options)


def _components(device: str, X: NDArray) -> Any:
    return KernelPCA(50, kernel="rbf", gamma=0.02, device=device).fit(X)


def _clusters(device: str, X: NDArray) -> Any:
    return KernelKMeans(10, gamma=0.02, random_state=0, device=device).fit(X)


def _gram(device: str, X: NDArray) -> NDArray:
    return gram_matrix(RBF(gamma=0.02), X, n_jobs=-1, device=device)


PARTS: dict[str, Part] = {
    "digits": _digits,
    "schemes": _schemes,
    "sigmoids": _sigmoids,
    "parity": _parity,
    "a9a": _table(binary("a9a.npz", 1.0, 0.05), 32_561),
    "ijcnn1": _table(binary("ijcnn1.npz", 10.0, 1.0), 49_990),
    "covtype": _table(_covtype, COVTYPE),
    "whole": _table(_covtype, WHOLE_COVTYPE, with_processor=False),
    "grid": _grid,
    "gram": _simple(_gram, 60_000, lambda K: {"a value": float(K[0, -1])}),
    "components": _simple(
        _components, 10_000, lambda m: {"largest": float(m.eigenvalues_[0])}
    ),
    "clusters": _simple(_clusters, 20_000, lambda m: {"inertia": float(m.inertia_)}),
    "kernels": _kernels,
}
FILES = ("a9a.npz", "ijcnn1.npz", "mnist.npz")
# Parts that need no files, for a smoke run.
WITHOUT_FILES = tuple(name for name in PARTS if name not in ("a9a", "ijcnn1"))


def _add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--device", default="cuda", help="the card (default: %(default)s)")
    add("--repeats", type=int, default=3, help="runs of each device")
    add("--rows", type=int, metavar="N", help="samples of the tables, instead of all")


def main() -> int:
    """Run the parts named on the command line."""
    is_fast = "--fast" in sys.argv
    parts = {name: PARTS[name] for name in WITHOUT_FILES} if is_fast else PARTS
    return run_parts("cuda", __doc__, parts, FILES, _add_options)


if __name__ == "__main__":
    sys.exit(main())
