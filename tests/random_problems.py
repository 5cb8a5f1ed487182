"""Random problems of every machine and solver, many of them badly scaled.

A problem is drawn from a seed alone, so that one that fails can be tried again:

    python tests/random_problems.py --first 1234 --count 1

:func:`run_many` solves problems in a process of its own and watches it, so that a fit
that never ends, or that ends the whole process, is found and named like a wrong result.
"""

import argparse
import subprocess
import sys
import warnings
from itertools import chain
from pathlib import Path
from queue import Empty, Queue
from threading import Thread
from typing import NamedTuple

import numpy as np

from honest_fits import CHECKS, check_fit, check_linear, check_others
from mercer import (
    PCA,
    SVC,
    SVDD,
    SVR,
    KernelKMeans,
    KernelPCA,
    KMeans,
    LinearSVC,
    LinearSVR,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    PassiveAggressiveClassifier,
)

LAYOUTS = [
    np.ascontiguousarray,
    np.asfortranarray,
    lambda X: X.repeat(2, axis=0)[::2],
    lambda X: np.hstack([X, X])[:, ::2][:, : X.shape[1]],
    lambda X: X[::-1].copy()[::-1],
]
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, bool]
LABELS = [
    lambda y: y - 1,
    lambda y: np.array(["b", "a", "Ω"])[y],
    lambda y: np.array(["b", "a", "c"], dtype=object)[y],
    lambda y: y.astype(np.float32) - 1.0,
    lambda y: (y * 2**40).astype(np.uint64),
    lambda y: y > 0,
]
SOLVERS = [
    *["auto", "auto", "smo", "decompose", "decompose"],
    *["random", "simplified", "platt", "wss1", "wss2"],
]
KERNELS = ["rbf", "rbf", "linear", "linear", "poly", "sigmoid"]
OTHERS = [
    *[LinearSVC, LinearSVR, MKLClassifier, MKLRegressor, OnlineSVC],
    *[PassiveAggressiveClassifier, KernelKMeans, KernelPCA, KMeans, PCA],
]
# Among the first problems of a process are some for which functions are compiled, which
# may take so many seconds more.
WARM_AFTER = 200
COMPILING = 90.0


def samples(rng, least=1):
    """Draw samples: scale, offset, type, layout, duplicates, constants, lines."""
    n = int(rng.integers(least, 41))
    d = int(rng.integers(1, 6)) if rng.random() < 0.9 else int(rng.integers(6, 80))
    X = rng.normal(size=(n, d)) + rng.choice([0.0, 0.0, 0.0, 3.0, 1e3])
    if rng.random() < 0.3:
        X = X[rng.integers(0, max(1, n // 2), n)]
    if rng.random() < 0.2:
        X[:, 0] = rng.choice([0.0, 1.0, -7.5])
    if rng.random() < 0.15:
        X = np.outer(np.arange(n), X[0])
    if rng.random() < 0.05:
        X[:] = X[0]
    dtype = np.dtype(DTYPES[min(len(DTYPES) - 1, int(rng.geometric(0.4)) - 1)])
    if dtype.itemsize >= 4:
        X *= 10.0 ** rng.integers(-6, 7)
    if dtype.kind in "iu":
        X = np.clip(X, np.iinfo(dtype).min / 2, np.iinfo(dtype).max / 2)
    X = _one_of(rng, LAYOUTS)(X.astype(dtype))
    X.flags.writeable = False
    return X


def _one_of(rng, some):
    return some[rng.integers(len(some))]


def labels(rng, n):
    """Draw at least two classes, as text, numbers or booleans."""
    n_classes = int(rng.integers(2, min(3, n) + 1))
    y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
    if rng.random() < 0.3:
        y = np.minimum(np.arange(n), n_classes - 1)  # one sample of most classes
    return _one_of(rng, LABELS)(y)


def _kernel(rng):
    return dict(
        kernel=_one_of(rng, KERNELS),
        gamma=_one_of(rng, ["scale", "auto", 0.0, 10.0 ** rng.integers(-6, 7)]),
        coef0=_one_of(rng, [0.0, 1.0, -1.0, 100.0]),
        degree=int(rng.integers(0, 5)),
    )


def _price(rng):
    return 10.0 ** int(rng.integers(-6, 9))


def _steps(rng):
    return _one_of(rng, [50, 1000, 10_000, 20_000])


def _kernel_machine(rng, machine):
    """Draw one of the machines of a dual problem; return it with its data."""
    tol = 10.0 ** -int(rng.integers(1, 10))
    own = dict(**_kernel(rng), tol=tol, n_jobs=1, random_state=0, max_iter=_steps(rng))
    own |= dict(shrinking=bool(rng.integers(2)), solver=_one_of(rng, SOLVERS))
    is_classifier = machine in (SVC, NuSVC)
    X = samples(rng, 2 if is_classifier else 1)
    n = len(X)
    y = rng.normal(size=n) * 10.0 ** rng.integers(-6, 7)
    if machine in (SVC, SVR, NuSVR):
        own["C"] = _price(rng)
    if machine is SVDD and rng.random() < 0.7:
        own["C"] = min(1.0 / n + 10.0 ** rng.uniform(-9, 8), 1e8)
    if machine is SVR:
        own["epsilon"] = _one_of(rng, [0.0, 0.1, 10.0])
    if machine in (NuSVR, OneClassSVM):
        own["nu"] = rng.uniform(1e-3, 1.0)
    if is_classifier:
        y = labels(rng, n)
        own["multiclass"] = _one_of(rng, ["ovo", "ovr", "ecoc"])
        own["probability"] = bool(rng.random() < 0.2)
    if machine is NuSVC:
        smallest = np.unique(y, return_counts=True)[1].min() / n
        own["nu"] = rng.uniform(0.01, 1.0) * 2 * smallest
    return machine(**own), X, y


def _linear_machine(rng, machine):
    X = samples(rng, 2)
    own = dict(C=_price(rng), tol=10.0 ** -int(rng.integers(1, 8)), random_state=0)
    own |= dict(max_iter=_one_of(rng, [20, 1000]), n_jobs=1)
    own["fit_intercept"] = bool(rng.random() < 0.8)
    own["penalize_intercept"] = bool(rng.random() < 0.7)
    if machine is LinearSVR:
        own["loss"] = _one_of(
            rng, ["epsilon_insensitive", "squared_epsilon_insensitive"]
        )
        own["epsilon"] = _one_of(rng, [0.0, 0.1, 10.0])
        return machine(**own), X, rng.normal(size=len(X)) * 10.0 ** rng.integers(-6, 7)
    own["loss"] = _one_of(rng, ["hinge", "squared_hinge"])
    if own["loss"] == "squared_hinge" and rng.random() < 0.3:
        own |= dict(penalty="l1", dual="auto", penalize_intercept=True)
    return machine(**own), X, labels(rng, len(X))


def _other_machine(rng, machine):
    if machine in (KMeans, PCA, KernelKMeans, KernelPCA):
        X = samples(rng, 4)
        own = {} if machine is PCA else dict(n_jobs=1, random_state=0)
        if machine in (KernelKMeans, KernelPCA):
            own |= _kernel(rng)
        own["n_clusters" if "KMeans" in machine.__name__ else "n_components"] = 1
        return machine(**own), X, None
    X = samples(rng, 2)
    own = dict(C=_price(rng), tol=10.0 ** -int(rng.integers(1, 7)), n_jobs=1)
    own |= dict(max_iter=_steps(rng))
    if machine is MKLRegressor:
        return machine(**own), X, rng.normal(size=len(X)) * 10.0 ** rng.integers(-6, 7)
    own |= dict(random_state=0)
    if machine is OnlineSVC:
        own |= dict(method=_one_of(rng, ["lasvm", "smo"]), **_kernel(rng))
    if machine is PassiveAggressiveClassifier:
        own |= dict(variant=_one_of(rng, ["pa", "pa1", "pa2"]), max_iter=50)
    return machine(**own), X, labels(rng, len(X))


def draw(seed, machine=None):
    """Return a machine, samples and targets; the machine is drawn too if not given."""
    rng = np.random.default_rng(seed)
    if machine is None:
        # The machines of a dual problem have most solvers and most parameters.
        machine = _one_of(rng, list(CHECKS) if rng.random() < 0.75 else OTHERS)
    if machine in CHECKS:
        return _kernel_machine(rng, machine)
    if machine in (LinearSVC, LinearSVR):
        return _linear_machine(rng, machine)
    return _other_machine(rng, machine)


def try_one(seed, machine=None):
    """Fit the problem of a seed, and check all that the fit claims."""
    model, X, y = draw(seed, machine)
    if type(model) in CHECKS:
        check_fit(model, X, y)
    elif isinstance(model, LinearSVC | LinearSVR):
        check_linear(model, X, y)
    else:
        check_others(model, X, y)


class Failure(NamedTuple):
    """A problem that went wrong."""

    seed: int
    what: str

    def __str__(self):
        return f"{self.seed}: {self.what}\n    {describe(self.seed)}"


def describe(seed):
    """Say in one line what the problem of a seed is."""
    model, X, _ = draw(seed)
    return f"{' '.join(repr(model).split())} on {X.shape} {X.dtype}"


def _watched(first, stop, limit):
    """Yield failures until the process ends; then where to go on, and the reason."""
    command = [sys.executable, __file__, "--worker", str(first), str(stop)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, bufsize=1)
    lines = Queue()
    # The last line is empty: the process has ended.
    Thread(target=lambda: [lines.put(s) for s in chain(process.stdout, [""])]).start()
    seed, patience = first, limit + COMPILING
    try:
        while (line := lines.get(timeout=patience).rstrip()) not in ("", "end"):
            kind, number, *what = line.split(" ", 2)
            if kind == "failed":
                yield Failure(int(number), *what)
            else:
                seed = int(number)
                patience = limit + COMPILING * (seed < first + WARM_AFTER)
        if line == "end":
            return
        yield Failure(seed, f"the process ended with status {process.wait()}")
    except Empty:
        yield Failure(seed, f"no end after {limit} s")
    finally:
        process.kill()
        process.wait()
    yield seed + 1


def run_many(first, count, limit=30.0):
    """Return the failures among the problems of so many seeds.

    A problem may take ``limit`` seconds, and more only while functions are compiled.
    """
    failures, stop = [], first + count
    while first is not None and first < stop:
        begin, first = first, None
        for found in _watched(begin, stop, limit):
            if isinstance(found, Failure):
                failures.append(found)
            else:
                first = found
    return failures


def _work(first, stop):
    """Try problems one after the other, and tell the watching process of each."""
    for seed in range(first, stop):
        print(f"begin {seed}", flush=True)
        try:
            with warnings.catch_warnings():
                try_one(seed)
        except Exception as error:
            text = " ".join(f"{type(error).__name__}: {error}".split())
            print(f"failed {seed} {text[:300]}", flush=True)
    print("end", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=30_000)
    parser.add_argument("--limit", type=float, default=30.0, help="seconds for each")
    parser.add_argument("--worker", type=int, nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        return _work(*options.worker)
    failures = run_many(options.first, options.count, options.limit)
    print(*failures, sep="\n")
    print(f"{options.count} problems, {len(failures)} failures")
    return bool(failures)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    sys.exit(main())
