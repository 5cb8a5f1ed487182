"""Compare solvers on tables: ``python -m benchmarks.tabular --help``.

Each part is a data set at several sizes.  Mercer is run with ``solver="auto"``,
``"smo"`` and ``"decompose"`` beside scikit-learn and scikit-learn-intelex, in turn,
three times or, if they are short, nine times; times are medians.  ``smo`` needs the
whole Gram matrix and is left out beyond 20,000 samples, and so is scikit-learn, which
would take minutes.

covtype   standardised numbers and indicators, one class against the rest, C=10 γ=0.5
minmax    the same with numbers from 0 to 1, C=3 γ=1
seven     the standardised table, all seven classes
letter    26 classes, 16 numbers, RBF
a9a       census data, 123 indicators, C=1 γ=0.05
ijcnn1    22 numbers, C=10 γ=1
mnist     even against odd digits, C=10 γ=0.02
digits    the ten digits of MNIST
housing   California housing, dearer than the median, C=10 γ=1
prices    California housing, prices by SVR
renewed   min-max data in double precision, where single precision is not quite enough

The shapes of :mod:`benchmarks.shapes`, on which no solver was set up:

tails     heavy-tailed columns, C=1 γ=0.1        far       the same, C=1000 γ=0.01
twins     each sample about ten times, C=10 γ=0.2
noisy     30 % wrong labels, C=1 γ=0.05          memory    the same, C=100 γ=2
three     three columns, C=10 γ=2                flat      the same, C=1000 γ=0.001
counts    200 columns of counts, four classes, C=1 γ=scale
outliers  regression, one value in twenty far off, C=10 γ=0.2
"""

from __future__ import annotations

import os
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks import shapes
from benchmarks.data import covtype_like, letter_like, standardised
from benchmarks.memory import claim_memory
from benchmarks.parts import Part, run_parts
from benchmarks.timing import timed

__all__ = ["PARTS", "Table", "binary", "images", "main"]

REPEATS = 3
# Fits of so few samples take some hundredths of a second, and need more repeats.
FEW_SAMPLES, MORE_REPEATS = 8000, 9
SOLVERS = ("auto", "smo", "decompose")
PEERS = {"scikit-learn": "sklearn.svm", "scikit-learn-intelex": "sklearnex.svm"}
# More samples than these are left to solvers that need neither minutes nor the whole
# matrix.
MOST_FOR_ALL = 20_000
# Samples of the warm-up, enough for every solver to compile what it needs.
WARM_ROWS = 2500
FAST_SIZES = (200, 400)


class Table(NamedTuple):
    """Samples, their classes or values, and the parameters of the machine."""

    X: NDArray
    y: NDArray
    options: dict[str, Any]
    machine: str = "SVC"


def _file(name: str) -> Any:
    return np.load(Path(os.environ["MERCER_DATA"], name))


def _covtype(scaling: str, C: float, gamma: float) -> Callable[[int], Table]:
    def make(n: int) -> Table:
        X, y = covtype_like(n, scaling=scaling)
        return Table(X.astype(np.float32), y == 1, {"C": C, "gamma": gamma})

    return make


def _seven(n: int) -> Table:
    X, y = covtype_like(n)
    return Table(X.astype(np.float32), y, {"C": 10.0, "gamma": 0.5})


def _letter(n: int) -> Table:
    X, y = letter_like(n)
    return Table(standardised(X).astype(np.float32), y, {"C": 10.0})


def binary(name: str, C: float, gamma: float) -> Callable[[int], Table]:
    """Return what reads the first samples of a file with two classes."""

    def make(n: int) -> Table:
        with _file(name) as file:
            X, y = file["x_train"][:n].astype(np.float32), file["y_train"][:n]
        return Table(X, y, {"C": C, "gamma": gamma})

    return make


def images(n: int, part: str = "train") -> Table:
    """Return the first digits of MNIST's training or test images."""
    with _file("mnist.npz") as file:
        X = file[f"x_{part}"][:n].reshape(n, -1).astype(np.float32) / 255
        y = file[f"y_{part}"][:n]
    return Table(X, y, {"C": 10.0, "gamma": 0.02})


def _mnist(n: int) -> Table:
    table = images(n)
    return table._replace(y=table.y % 2)


def _prices(n: int) -> Table:
    with _file("california_housing.npz") as file:
        order = np.random.default_rng(0).permutation(len(file["y"]))[:n]
        X, y = file["x"][order], file["y"][order]
    return Table(standardised(X), (y - y.mean()) / y.std(), {"C": 1.0}, "SVR")


def _housing(n: int) -> Table:
    table = _prices(n)
    y = table.y > np.median(table.y)
    return Table(table.X.astype(np.float32), y, {"C": 10.0, "gamma": 1.0})


def _renewed(n: int) -> Table:
    X, y = covtype_like(n, scaling="minmax")
    return Table(X, y == 1, {"C": 100.0, "gamma": 1.0, "tol": 1e-4})


def _shape(
    make: Callable[[int], tuple[NDArray, NDArray]], machine: str = "SVC", **options: Any
) -> Callable[[int], Table]:
    def table(n: int) -> Table:
        X, y = make(n)
        return Table(X.astype(np.float32), y, options, machine)

    return table


def _runs(
    table: Table, with_peers: bool
) -> dict[str, Callable[[NDArray, NDArray], Any]]:
    """Return what fits the table, by name."""
    n = len(table.y)
    cache = {"cache_size": 2000}

    def fit(module: str, **options: Any) -> Callable[[NDArray, NDArray], Any]:
        machine = getattr(import_module(module), table.machine)
        return lambda X, y: machine(**table.options, **options).fit(X, y)

    runs = {
        solver: fit("mercer", solver=solver)
        for solver in SOLVERS
        if solver != "smo" or n <= MOST_FOR_ALL
    }
    for peer, module in PEERS.items() if with_peers else ():
        if find_spec(module.split(".")[0]) is None:
            continue
        if peer == "scikit-learn-intelex" or n <= MOST_FOR_ALL:
            runs[peer] = fit(module, **cache)
    return runs


def _measured(table: Table, with_peers: bool) -> dict[str, Any]:
    """Fit by everything in turn; return times, steps and gaps."""
    runs = _runs(table, with_peers)
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    cpu_seconds: dict[str, list[float]] = {name: [] for name in runs}
    answer: dict[str, Any] = {}
    n = len(table.y)
    few = np.linspace(0, n - 1, min(n, WARM_ROWS)).astype(int)
    for k in range(MORE_REPEATS if max(FAST_SIZES) < n <= FEW_SAMPLES else REPEATS):
        first = k % len(runs)
        names = list(runs)[first:] + list(runs)[:first]
        for name in names:
            fit = runs[name]
            # A fit after a peer's is slower, whoever does it: the peer's threads go on
            # waiting for work, and its memory goes back to the system.
            fit(table.X[few], table.y[few])
            if n > max(FAST_SIZES):
                claim_memory()
            model, times = timed(lambda fit=fit: fit(table.X, table.y))
            seconds[name].append(times.seconds)
            cpu_seconds[name].append(times.cpu_seconds)
            if name in SOLVERS:
                answer[f"{n} {name} steps"] = int(np.sum(model.n_iter_))
                answer[f"{n} {name} gap"] = float(np.max(model.kkt_gap_))
            answer[f"{n} support"] = len(model.support_)
    middle = {name: median(values) for name, values in seconds.items()}
    for name, value in middle.items():
        answer[f"{n} {name} seconds"] = value
        answer[f"{n} {name} CPU seconds"] = median(cpu_seconds[name])
    better = min(middle[name] for name in ("smo", "decompose") if name in middle)
    answer[f"{n} auto / better of smo and decompose"] = middle["auto"] / better
    for peer in PEERS:
        if peer in middle:
            answer[f"{n} {peer} / auto"] = middle[peer] / middle["auto"]
    if "smo" in middle:
        answer[f"{n} steps of decompose / steps of smo"] = (
            answer[f"{n} decompose steps"] / answer[f"{n} smo steps"]
        )
    return answer


def _part(make: Callable[[int], Table], sizes: tuple[int, ...]) -> Part:
    def part(options: Namespace) -> dict[str, Any]:
        answer: dict[str, Any] = {}
        for n in FAST_SIZES if options.fast else options.sizes or sizes:
            answer |= _measured(make(n), not options.without_peers)
        return answer

    return part


SIZES = (2000, 5000, 8000, 10_000, 20_000, 50_000)
PARTS: dict[str, Part] = {
    "covtype": _part(_covtype("standard", 10.0, 0.5), SIZES),
    "minmax": _part(_covtype("minmax", 3.0, 1.0), SIZES),
    "seven": _part(_seven, SIZES),
    "letter": _part(_letter, (2000, 5000, 10_000, 15_000)),
    "a9a": _part(binary("a9a.npz", 1.0, 0.05), (2000, 5000, 8000, 12_000, 32_561)),
    "ijcnn1": _part(binary("ijcnn1.npz", 10.0, 1.0), SIZES),
    "mnist": _part(_mnist, SIZES),
    "digits": _part(images, SIZES),
    "housing": _part(_housing, (2000, 5000, 8000, 12_000, 20_000)),
    "prices": _part(_prices, (2000, 5000, 8000, 12_000, 20_000)),
    "renewed": _part(_renewed, (5000, 10_000, 20_000)),
}
SHAPES = {
    "tails": _shape(shapes.heavy_tails, C=1.0, gamma=0.1),
    "far": _shape(shapes.heavy_tails, C=1000.0, gamma=0.01),
    "twins": _shape(shapes.twins, C=10.0, gamma=0.2),
    "noisy": _shape(shapes.noisy, C=1.0, gamma=0.05),
    "memory": _shape(shapes.noisy, C=100.0, gamma=2.0),
    "three": _shape(shapes.three_columns, C=10.0, gamma=2.0),
    "flat": _shape(shapes.three_columns, C=1000.0, gamma=0.001),
    "counts": _shape(shapes.counts),
    "outliers": _shape(shapes.outliers, "SVR", C=10.0, gamma=0.2),
}
PARTS |= {name: _part(make, (3000, 10_000)) for name, make in SHAPES.items()}
# Parts that need no files, for a smoke run.
WITHOUT_FILES = ("covtype", "minmax", "seven", "letter", "renewed", *SHAPES)
FILES = ("a9a.npz", "ijcnn1.npz", "mnist.npz", "california_housing.npz")


def _sizes(text: str) -> tuple[int, ...]:
    return tuple(int(size) for size in text.split(","))


def _add_options(parser: ArgumentParser) -> None:
    add = parser.add_argument
    add("--sizes", type=_sizes, metavar="N,M", help="numbers of samples")
    add("--without-peers", action="store_true", help="compare Mercer's solvers alone")


def main() -> int:
    """Run the parts named on the command line."""
    is_fast = "--fast" in sys.argv
    parts = {name: PARTS[name] for name in WITHOUT_FILES} if is_fast else PARTS
    return run_parts("tabular", __doc__, parts, FILES, _add_options)


if __name__ == "__main__":
    sys.exit(main())
