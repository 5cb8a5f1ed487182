"""Compare online learning with batch learning: ``python -m benchmarks.online``.

The data sets MNIST and ijcnn1 must be in the folder MERCER_DATA. Times are wall and CPU
seconds; the machine should have nothing else to do.
"""

from __future__ import annotations

import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.cases import find
from benchmarks.data import Data, load, missing_files
from benchmarks.memory import peak_mb
from benchmarks.parts import console
from benchmarks.timing import timed
from mercer import OnlineSVC, PassiveAggressiveClassifier

SETTING = {"C": 10.0, "gamma": 0.02}


def report(name: str, work: Callable[[], Any]) -> Any:
    """Print the time that ``work`` takes, and return its result."""
    result, times = timed(work)
    wall, cpu = times.seconds, times.cpu_seconds
    console.print(f"{name:<48} {wall:8.2f} s wall {cpu:8.2f} s CPU")
    return result


def pass_and_batch(mnist: Data) -> None:
    """Compare one pass of LASVM with scikit-learn's SVC."""
    from sklearn.svm import SVC

    rows, tests = np.isin(mnist.y, (3, 8)), np.isin(mnist.y_test, (3, 8))
    X, y = mnist.X[rows], mnist.y[rows]
    X_test, y_test = mnist.X_test[tests], mnist.y_test[tests]
    OnlineSVC(**SETTING).partial_fit(X[:600], y[:600], classes=[3, 8])  # compiles
    model = report(
        f"LASVM, one pass over {len(y)} of MNIST 3 vs 8",
        lambda: OnlineSVC(**SETTING).partial_fit(X, y, classes=[3, 8]),
    )
    batch = report(
        "scikit-learn SVC on the same samples",
        lambda: SVC(**SETTING, cache_size=1000).fit(X, y),
    )
    console.print(
        f"  accuracy {model.score(X_test, y_test):.4f} and "
        f"{batch.score(X_test, y_test):.4f}; support vectors "
        f"{model.n_support_.sum()} and {batch.n_support_.sum()}"
    )


def one_sample(mnist: Data) -> None:
    """Measure the time to add one sample to many support vectors."""
    X = mnist.X[:5400]
    # With random labels all samples become support vectors.
    y = np.random.default_rng(0).integers(0, 2, len(X))
    model = OnlineSVC(**SETTING).fit(X[:5300], y[:5300])
    taken, busy = [], []
    for k in range(5300, 5400):
        start, cpu = time.perf_counter(), time.process_time()
        model.partial_fit(X[k : k + 1], y[k : k + 1])
        taken.append(1000 * (time.perf_counter() - start))
        busy.append(1000 * (time.process_time() - cpu))
    console.print(
        f"one sample into {model.n_support_.sum()} support vectors: median "
        f"{np.median(taken):.2f} ms, least {min(taken):.2f} ms wall; "
        f"median {np.median(busy):.2f} ms CPU"
    )


def linear(mnist: Data) -> None:
    """Compare linear passive-aggressive learning with scikit-learn."""
    from sklearn.linear_model import SGDClassifier

    X, y = mnist.X[:20_000], mnist.y[:20_000]
    options = {"max_iter": 3, "tol": None, "shuffle": False}
    mine = PassiveAggressiveClassifier(**options)
    theirs = SGDClassifier(penalty=None, learning_rate="pa1", eta0=1.0, **options)
    mine.fit(X[:100], y[:100])  # compiles
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        report("linear PA-I, 3 passes over 20,000 of MNIST", lambda: mine.fit(X, y))
        report("scikit-learn, the same passes", lambda: theirs.fit(X, y))


def stream(ijcnn1: Data) -> None:
    """Learn from a stream with a kernel and a budget, and watch the memory."""
    X = np.vstack([ijcnn1.X, ijcnn1.X_test])[:100_000]
    y = np.concatenate([ijcnn1.y, ijcnn1.y_test])[:100_000]
    model = PassiveAggressiveClassifier(
        kernel="rbf", gamma=1.0, budget=2000, fit_intercept=False
    )

    def chunks() -> Iterator[tuple[NDArray, NDArray]]:
        for k in range(0, len(y), 1000):
            if k in (20_000, 60_000, 99_000):
                console.print(f"  after {k} samples: peak memory {peak_mb():.0f} MB")
            yield X[k : k + 1000], y[k : k + 1000]

    report(
        "kernel PA-I, 100,000 of ijcnn1, budget 2,000",
        lambda: model.learn_stream(chunks(), classes=[0, 1]),
    )
    share = model.history_["n_mistakes"][-1] / model.history_["n_tested"][-1]
    console.print(f"  mistakes {100 * share:.1f} %")


def main() -> None:
    """Run all comparisons."""
    problem = missing_files(["ijcnn1.npz", "mnist.npz"], hint="")
    if problem:
        sys.exit(problem)
    ijcnn1, mnist = (load(find(name, False)) for name in ("ijcnn1", "mnist-60000"))
    stream(ijcnn1)
    linear(mnist)
    one_sample(mnist)
    pass_and_batch(mnist)


if __name__ == "__main__":
    main()
