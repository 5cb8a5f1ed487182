"""Measure multiple kernel learning: ``python -m benchmarks.mkl --help``.

mnist    three kernels on 5,000 images, one-vs-rest, and a single SVC on their sum
loop     the same problem solved to the same gap by a plain loop, which alternates
         between weights and scikit-learn's SVC from scratch
mklpy    the same kernels with MKLpy, run by the Python that MERCER_MKLPY names, on the
         first MERCER_MKLPY_SIZE images; MERCER_MKLPY_LAM="[0.1]" lists values of lam
hundred  a hundred kernels on 2,000 samples
large    ten kernels on 20,000 samples, within 4 GB of memory
auto     method="auto" beside the methods that it chooses from, on eight problems
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC as PlainSVC

from benchmarks.data import covtype_like, satimage_like, standardised
from benchmarks.memory import peak_mb
from benchmarks.parts import Part, run_parts
from benchmarks.timing import timed
from mercer import SVC, MKLClassifier, MKLRegressor, gram_matrix
from mercer.images import HOG
from mercer.kernels import RBF, Linear

__all__ = ["PARTS", "main"]

C, TOL = 10.0, 1e-3
# Largest number of rounds of the plain loop.
MOST_ROUNDS = 25
# Megabytes for kernel values, so that 4 GB are enough for the whole process.
CACHE = 3500


class Data(NamedTuple):
    """Samples that consist of two views, and the kernels of these views."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray
    kernels: list[Any]
    scale: list[float]  #: factors that make the mean of each diagonal 1


@cache
def digits(is_fast: bool) -> Data:
    """Return pixels and HOG of digits, and the kernels raw RBF, HOG RBF, HOG linear."""
    if is_fast:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        n, n_test = 300, 100
        few = X[: n + n_test].reshape(-1, 8, 8)
        images = np.kron(few, np.ones((3, 3))) * 15
    else:
        with np.load(Path(os.environ["MERCER_DATA"], "mnist.npz")) as file:
            images = np.concatenate([file["x_train"][:5000], file["x_test"]])
            y = np.concatenate([file["y_train"][:5000], file["y_test"]])
        n, n_test = 5000, 10_000
    raw = (images.reshape(len(images), -1) / 255).astype(np.float32)
    hog = HOG().fit_transform(images).astype(np.float32)
    X = np.hstack([raw, hog])
    left, right = slice(0, raw.shape[1]), slice(raw.shape[1], X.shape[1])
    kernels = [RBF(sigma=7).on(left), RBF(sigma=4).on(right), Linear().on(right)]
    scale = [1.0, 1.0, 1.0 / float((hog[:n] ** 2).sum(axis=1).mean())]
    test = slice(n, n + n_test)
    return Data(X[:n], y[:n].astype(int), X[test], y[test].astype(int), kernels, scale)


def _timed(make: Callable[[], Any]) -> tuple[Any, dict[str, float]]:
    made, times = timed(make)
    return made, {"seconds": times.seconds, "cpu_seconds": times.cpu_seconds}


def _in_turn(
    *makers: Callable[[], Any], repeats: int = 3
) -> list[tuple[Any, dict[str, float]]]:
    """Call the makers in turn, ``repeats`` times; return results and median times."""
    runs = [[_timed(make) for make in makers] for _ in range(repeats)]
    return [
        (own[0][0], {key: median(run[1][key] for run in own) for key in own[0][1]})
        for own in zip(*runs, strict=True)
    ]


def _facts(model: MKLClassifier, times: dict[str, float]) -> dict[str, Any]:
    return {
        **times,
        "rounds": int(np.max(model.n_iter_)),
        "relative_gap": float(model.dual_gap_ / abs(model.objective_)),
        "converged": bool(model.converged_),
        "weights": np.round(model.weights_, 4).tolist(),
    }


def mnist(options: Namespace) -> dict[str, Any]:
    """Fit by every method, and fit a single machine to the sum of the kernels."""
    data = digits(options.fast)
    total = sum(
        (s * k for s, k in zip(data.scale[1:], data.kernels[1:], strict=True)),
        data.kernels[0],
    )

    def single() -> SVC:
        return SVC(C=C, kernel=total, multiclass="ovr").fit(data.X, data.y)

    single()  # compiles
    ((model, times),) = _in_turn(single)
    answer: dict[str, Any] = {
        "single": {**times, "accuracy": model.score(data.X_test, data.y_test)}
    }
    for method, p in (
        ("group-lasso", 2), ("group-lasso", 1), ("smo", 2), ("smo", 1.1),
        ("simple", 1), ("uniform", None), ("alignment", None),
    ):  # fmt: skip
        learner = MKLClassifier(data.kernels, method=method, p=p, C=C, tol=TOL)
        learner.fit(data.X[:200], data.y[:200])
        ((fitted, times),) = _in_turn(lambda m=learner: m.fit(data.X, data.y))
        facts = _facts(fitted, times)
        facts["times_single"] = times["cpu_seconds"] / answer["single"]["cpu_seconds"]
        facts["accuracy"] = fitted.score(data.X_test, data.y_test)
        answer[f"{method} p={p}" if p else method] = facts
    return answer


def loop(options: Namespace) -> dict[str, Any]:
    """Compare with a plain loop over weights and SVCs from scratch, to the same gap.

    With the default tolerance of scikit-learn's SVC the loop may never reach the gap
    (p = 2).  A tolerance of a tenth of the gap makes the loop fastest.
    """
    data = digits(options.fast)
    repeats = 1 if options.fast else 3
    return {
        f"p={p}, gap {gap:g}, SVC(tol={tol:g})": _loop(data, p, gap, tol, repeats)
        for gap, tol in ((TOL, 1e-3), (TOL, 0.1 * TOL), (0.1 * TOL, 0.01 * TOL))
        for p in (2, 1)
    }


def _loop(data: Data, p: int, gap: float, tol: float, repeats: int) -> dict[str, Any]:
    learner = MKLClassifier(data.kernels, method="group-lasso", p=p, C=C, tol=gap)
    learner.fit(data.X[:200], data.y[:200])
    (fitted, times), (plain, plain_times) = _in_turn(
        lambda: learner.fit(data.X, data.y),
        lambda: _plain(data, p, gap, tol),
        repeats=repeats,
    )
    return {
        "mercer": _facts(fitted, times),
        "scikit-learn": {**plain_times, **plain},
        "times_mercer": {key: plain_times[key] / times[key] for key in times},
    }


def _plain(data: Data, p: int, goal: float, tol: float) -> dict[str, Any]:
    """Alternate between weights and scikit-learn's SVC from scratch."""
    grams, gram_times = _timed(lambda: _plain_grams(data))
    sides = np.where(data.y[:, None] == np.unique(data.y), 1.0, -1.0)
    rounds: list[float] = []
    d = np.full(len(grams), len(grams) ** (-1 / p))
    while True:
        gap, s = _one_round(grams, sides, d, p, tol)
        rounds.append(gap)
        if gap <= goal or len(rounds) >= MOST_ROUNDS:
            break
        d = (d * d * s) ** (1 / (p + 1))
        d /= np.linalg.norm(d, p)
    return {
        "gram_seconds": gram_times["seconds"], "rounds": len(rounds),
        "relative_gap": rounds[-1], "weights": np.round(d, 4).tolist(),
    }  # fmt: skip


def _plain_grams(data: Data) -> list[NDArray]:
    """Return the matrices, computed by scikit-learn's functions in the data's dtype."""
    found = []
    for scale, kernel in zip(data.scale, data.kernels, strict=True):
        base, columns = kernel.kernel, kernel.columns
        part = data.X[:, columns]
        if isinstance(base, RBF):
            found.append(scale * rbf_kernel(part, gamma=0.5 / base.sigma**2))
        else:
            found.append(scale * linear_kernel(part))
    return [gram.astype(np.float64) for gram in found]


def _one_round(
    grams: list[NDArray], sides: NDArray, d: NDArray, p: int, tol: float
) -> tuple[float, NDArray]:
    """Fit one SVC for each column of ``sides``; return the relative gap and s."""
    K = sum(w * gram for w, gram in zip(d, grams, strict=True))
    B = np.zeros(sides.shape)
    loss = 0.0
    for t, y in enumerate(sides.T):
        machine = PlainSVC(C=C, kernel="precomputed", tol=tol, cache_size=1000)
        machine.fit(K, y)
        B[machine.support_, t] = machine.dual_coef_[0]
        f = K @ B[:, t] + machine.intercept_[0]
        loss += C * np.maximum(0.0, 1.0 - y * f).sum()
    s = np.array([np.sum(B * (gram @ B)) for gram in grams])
    primal = 0.5 * d @ s + loss
    dual = np.abs(B).sum() - 0.5 * np.linalg.norm(s, np.inf if p == 1 else 2)
    return float((primal - dual) / primal), s


_MKLPY = """
import sys, time, json
import numpy as np
folder, C = sys.argv[1], float(sys.argv[2])
from importlib.metadata import version
from sklearn.svm import SVC
from MKLpy import algorithms
try:
    from torch import tensor
except ImportError:  # MKLpy needs torch since version 0.5
    tensor = np.asarray
data = np.load(folder + "/grams.npz")
K = [tensor(k) for k in data["K"]]
K_test = [tensor(k) for k in data["K_test"]]
answer = {"version": version("MKLpy")}
trials = [("AverageMKL", dict(learner=SVC(C=C))), ("CKA", dict(learner=SVC(C=C)))]
trials += [("EasyMKL", dict(lam=lam)) for lam in json.loads(sys.argv[3])]
trials += [("EasyMKL", dict(lam=0.1, learner=SVC(C=C)))]
for kind, settings in trials:
    name = kind + "(" + ", ".join(f"{k}={v}" for k, v in settings.items()) + ")"
    try:
        model = getattr(algorithms, kind)(multiclass_strategy="ova", **settings)
        wall, own = time.perf_counter(), time.process_time()
        model.fit(K, data["y"])
        times = dict(seconds=time.perf_counter() - wall,
                     cpu_seconds=time.process_time() - own)
        score = float((model.predict(K_test) == data["y_test"]).mean())
        answer[name] = dict(times, accuracy=score)
    except Exception as error:
        answer[name] = dict(error=f"{type(error).__name__}: {error}"[:300])
    print(json.dumps(answer), flush=True)
"""


def mklpy(options: Namespace, limit: float = 1800.0) -> dict[str, Any]:
    """Compare with EasyMKL, AverageMKL and CKA of MKLpy on the same matrices.

    The times do not include kernel values.
    """
    program = os.environ.get("MERCER_MKLPY")
    if not program:
        return {"skipped": "MERCER_MKLPY is not set; name a Python that has MKLpy"}
    data = digits(options.fast)
    n = min(len(data.X), int(os.environ.get("MERCER_MKLPY_SIZE", 5000)))
    X, y = data.X[:n], data.y[:n]
    pairs = list(zip(data.scale, data.kernels, strict=True))
    K = [s * gram_matrix(k, X).astype(np.float64) for s, k in pairs]
    K_test = [s * gram_matrix(k, data.X_test, X).astype(np.float64) for s, k in pairs]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "grams.npz")
        np.savez(path, K=K, K_test=K_test, y=y, y_test=data.y_test)
        trials = os.environ.get("MERCER_MKLPY_LAM", "[0.1]")
        command = [program, "-c", _MKLPY, folder, str(C), trials]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=limit, check=False
            )
            lines, error = done.stdout.splitlines(), done.stderr[-300:]
        except subprocess.TimeoutExpired as late:
            output = late.stdout or b""
            lines, error = output.decode().splitlines(), f"more than {limit:g} s"
    answer = json.loads(lines[-1]) if lines else {"error": error}
    return {"images": n, **answer, **_on_matrices(K, y, K_test, data.y_test)}


def _on_matrices(
    K: list[NDArray], y: NDArray, K_test: list[NDArray], y_test: NDArray
) -> dict[str, Any]:
    answer = {}
    for method in ("uniform", "alignment", "group-lasso"):
        learner = MKLClassifier("precomputed", method=method, C=C, tol=TOL)
        learner.fit([k[:100, :100] for k in K], y[:100])
        ((fitted, times),) = _in_turn(lambda m=learner: m.fit(K, y))
        facts = _facts(fitted, times)
        facts["accuracy"] = fitted.score(K_test, y_test)
        answer[f"mercer {method}"] = facts
    return answer


def _random(n: int, width: int) -> tuple[NDArray, NDArray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width)).astype(np.float32)
    score = X[:, 0] + X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=n)
    return X, score > 0


def _within_budget(kernels: list[Any], X: NDArray, y: NDArray, p: float) -> Any:
    learner = MKLClassifier(kernels, method="group-lasso", p=p, cache_size=CACHE)
    learner.fit(X[:100], y[:100])
    fitted, times = _timed(lambda: learner.fit(X, y))
    peak = peak_mb() / 1024
    return {**_facts(fitted, times), "peak_gb": peak}


def hundred(options: Namespace) -> dict[str, Any]:
    """Measure a hundred kernels on 2,000 samples."""
    X, y = _random(200 if options.fast else 2000, 50)
    kernels: list[Any] = [RBF(gamma=0.5).on([k, k + 1]) for k in range(49)]
    kernels += [Linear().on([k]) for k in range(49)]
    kernels += [RBF(gamma=0.01), Linear()]
    return {f"p={p}": _within_budget(kernels, X, y, p) for p in (1, 2)}


def large(options: Namespace) -> dict[str, Any]:
    """Measure ten kernels on 20,000 samples, whose matrices do not fit into memory."""
    X, y = _random(300 if options.fast else 20_000, 10)
    kernels: list[Any] = [RBF(gamma=g) for g in (0.01, 0.03, 0.1, 0.3, 1.0)]
    kernels += [RBF(gamma=0.3).on([k, k + 1, k + 2]) for k in (0, 3, 6)]
    kernels += [Linear(), Linear().on([0])]
    return {"p=2": _within_budget(kernels, X, y, 2)}


def _eight(is_fast: bool) -> Iterator[tuple[str, Any, NDArray, NDArray, str]]:
    """Yield problems: a name, a learner, samples, targets, and another method."""
    n = 200 if is_fast else 2000
    X, y = covtype_like(n)
    three: list[Any] = [RBF(gamma=g) for g in (0.025, 0.1, 0.4)]
    trees = (y == 2).astype(int)
    yield "trees p=2", MKLClassifier(three, p=2), X, trees, "smo"
    yield "trees p=1", MKLClassifier(three, p=1), X, trees, "simple"
    X, y = satimage_like(3 * n // 4)
    several = [*(RBF(gamma=g) for g in (0.01, 0.03, 0.1)), Linear()]
    yield "ground p=2", MKLClassifier(several, p=2), standardised(X), y, "smo"
    X, y = _random(n // 2, 20)
    columns = [*(RBF(gamma=1.0).on([k]) for k in range(20)), RBF(gamma=0.1)]
    for p, other in ((1, "simple"), (1.1, "smo")):
        yield f"columns p={p}", MKLClassifier(columns, p=p, C=C), X, y, other
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3 * n // 2, 4))
    z = np.sin(2 * X).sum(axis=1) + 0.1 * rng.standard_normal(len(X))
    waves = [*three, *(RBF(gamma=1.0).on([k]) for k in range(4))]
    for p, other in ((1, "simple"), (2, "smo")):
        yield f"waves p={p}", MKLRegressor(waves, p=p, C=C), X, z, other
    yield "waves, three kernels", MKLRegressor(three), X, z, "smo"


def auto(options: Namespace) -> dict[str, Any]:
    """Measure the default method beside the others that solve the same problem."""
    answer: dict[str, Any] = {}
    for name, learner, X, y, other in _eight(options.fast):
        methods = ("auto", "group-lasso", other)
        for method in methods:
            learner.set_params(method=method).fit(X[:100], y[:100])
        runs: dict[str, list[float]] = {method: [] for method in methods}
        objective = {}
        for _ in range(1 if options.fast else 3):
            for method in methods:
                learner.set_params(method=method)
                fitted, times = timed(lambda m=learner, X=X, y=y: m.fit(X, y))
                runs[method].append(times.seconds)
                objective[method] = float(np.sum(fitted.objective_))
        seconds = {method: median(some) for method, some in runs.items()}
        best = min(seconds[method] for method in methods[1:])
        answer[name] = {
            "seconds": seconds,
            "auto_over_best": seconds["auto"] / best,
            "objective": objective,
        }
    return answer


PARTS: dict[str, Part] = {
    "mnist": mnist,
    "loop": loop,
    "mklpy": mklpy,
    "hundred": hundred,
    "large": large,
    "auto": auto,
}


def main() -> int:
    """Run the parts named on the command line."""
    return run_parts("mkl", __doc__, PARTS, ["mnist.npz"])


if __name__ == "__main__":
    sys.exit(main())
