"""Measure multiple kernel learning: ``python -m benchmarks.mkl --help``.

Parts: ``mnist``, three kernels on 5,000 images one-vs-rest beside the single fit on
their sum; ``loop``, the same by weights and scikit-learn's SVC from scratch in turn, to
the same gap; ``mklpy``, the same by MKLpy, run by the Python that MERCER_MKLPY names,
on the first MERCER_MKLPY_SIZE images; ``hundred`` kernels on 2,000 samples and
``large``, ten on 20,000, in 4 GB.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from sklearn.metrics.pairwise import linear_kernel, rbf_kernel
from sklearn.svm import SVC as PlainSVC

from benchmarks.machine import environment
from benchmarks.memory import peak_mb
from mercer import SVC, MKLClassifier, gram_matrix
from mercer.images import HOG
from mercer.kernels import RBF, Linear

__all__ = ["PARTS", "main"]

RESULTS = Path(__file__).parent / "results"
C, TOL = 10.0, 1e-3
# Of the plain loop.
MOST_ROUNDS = 25
# Megabytes of kernel values, so that with all the rest 4 GB are enough.
CACHE = 3500
console = Console()


class Data(NamedTuple):
    """Samples with views side by side, and the kernels on them."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray
    kernels: list[Any]
    scale: list[float]  #: what makes each a kernel of mean 1 on the diagonal


@cache
def digits(is_fast: bool) -> Data:
    """Return raw pixels and HOG of digits, and {raw RBF, HOG RBF, HOG linear}."""
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
    wall, own = time.perf_counter(), time.process_time()
    made = make()
    seconds = time.perf_counter() - wall
    return made, {"seconds": seconds, "cpu_seconds": time.process_time() - own}


def _in_turn(
    *makers: Callable[[], Any], repeats: int = 3
) -> list[tuple[Any, dict[str, float]]]:
    """Return what each makes, and its median times, run in turn a few times."""
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


def mnist(is_fast: bool) -> dict[str, Any]:
    """Fit by every method, and a single machine on the sum of the kernels."""
    data = digits(is_fast)
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


def loop(is_fast: bool) -> dict[str, Any]:
    """Gram matrices, then weights and SVCs from scratch in turn, to the same gap.

    With its default tolerance scikit-learn's SVC may never get there (p = 2); a tenth
    of the gap is what serves it best.
    """
    data = digits(is_fast)
    repeats = 1 if is_fast else 3
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
    """Learn by weights and scikit-learn's SVC from scratch in turn."""
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
    """Return the matrices by scikit-learn's functions, which keep the precision."""
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
    """Fit one SVC for each column of sides; return the relative gap, and s."""
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
except ImportError:  # before version 0.5 it had no need of it
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


def mklpy(is_fast: bool, limit: float = 1800.0) -> dict[str, Any]:
    """Fit EasyMKL, and the average and CKA with SVCs, and Mercer, on the same matrices.

    Kernel values are counted for neither; MERCER_MKLPY_SIZE says how many images,
    MERCER_MKLPY_LAM which numbers to try in EasyMKL ("[0.1]").
    """
    program = os.environ.get("MERCER_MKLPY")
    if not program:
        return {"skipped": "MERCER_MKLPY names no Python that has MKLpy"}
    data = digits(is_fast)
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
            lines, error = output.decode().splitlines(), f"over {limit:g} s"
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


def hundred(is_fast: bool) -> dict[str, Any]:
    """A hundred kernels on 2,000 samples."""
    X, y = _random(200 if is_fast else 2000, 50)
    kernels: list[Any] = [RBF(gamma=0.5).on([k, k + 1]) for k in range(49)]
    kernels += [Linear().on([k]) for k in range(49)]
    kernels += [RBF(gamma=0.01), Linear()]
    return {f"p={p}": _within_budget(kernels, X, y, p) for p in (1, 2)}


def large(is_fast: bool) -> dict[str, Any]:
    """Ten kernels on 20,000 samples, more than fits."""
    X, y = _random(300 if is_fast else 20_000, 10)
    kernels: list[Any] = [RBF(gamma=g) for g in (0.01, 0.03, 0.1, 0.3, 1.0)]
    kernels += [RBF(gamma=0.3).on([k, k + 1, k + 2]) for k in (0, 3, 6)]
    kernels += [Linear(), Linear().on([0])]
    return {"p=2": _within_budget(kernels, X, y, 2)}


PARTS: dict[str, Callable[[bool], dict[str, Any]]] = {
    "mnist": mnist,
    "loop": loop,
    "mklpy": mklpy,
    "hundred": hundred,
    "large": large,
}


def main() -> int:
    """Run the parts that are asked for; every answer is a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mkl")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--fast", action="store_true", help="tiny, no data files")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    arguments = parser.parse_args()
    unknown = set(arguments.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(PARTS)}.")
    if not arguments.fast and "MERCER_DATA" not in os.environ:
        parser.error("MERCER_DATA is not set; it is where mnist.npz is. Or use --fast.")
    place = environment()
    arguments.output.mkdir(parents=True, exist_ok=True)
    path = arguments.output / f"mkl-{time.strftime('%Y-%m-%d-%H%M%S')}.jsonl"
    for name in arguments.parts or PARTS:
        console.print(f"{time.strftime('%H:%M:%S')}  {name}")
        answer = PARTS[name](arguments.fast)
        for key, value in answer.items():
            console.print(f"  {key:<18} {value}", soft_wrap=True, highlight=False)
        with path.open("a") as file:
            facts = {"part": name, "is_fast": arguments.fast, **answer}
            file.write(json.dumps(facts | {"environment": place}) + "\n")
    console.print(str(path), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
