"""Online learning beside batch learning: ``python -m benchmarks.online``.

Needs the data sets of MERCER_DATA. Times are processor and wall-clock seconds of this
process; the machine should have nothing else to do.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from mercer import OnlineSVC, PassiveAggressiveClassifier

console = Console()
SETTING = {"C": 10.0, "gamma": 0.02}


def read(name: str) -> dict[str, NDArray]:
    with np.load(Path(os.environ["MERCER_DATA"]) / f"{name}.npz") as arrays:
        return dict(arrays)


def images(x: NDArray) -> NDArray:
    return (x.reshape(-1, 784) / np.float32(255)).astype(np.float32)


def timed(name: str, work: Callable[[], Any]) -> Any:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    console.print(f"{name:<48} {wall:8.2f} s wall {cpu:8.2f} s processor")
    return result


def pass_beside_batch(mnist: dict[str, NDArray]) -> None:
    from sklearn.svm import SVC

    rows, tests = np.isin(mnist["y_train"], (3, 8)), np.isin(mnist["y_test"], (3, 8))
    X, y = images(mnist["x_train"][rows]), mnist["y_train"][rows]
    X_test, y_test = images(mnist["x_test"][tests]), mnist["y_test"][tests]
    OnlineSVC(**SETTING).partial_fit(X[:600], y[:600], classes=[3, 8])  # compiles
    model = timed(
        f"LASVM, one pass over {len(y)} of MNIST 3 vs 8",
        lambda: OnlineSVC(**SETTING).partial_fit(X, y, classes=[3, 8]),
    )
    batch = timed(
        "scikit-learn SVC on the same",
        lambda: SVC(**SETTING, cache_size=1000).fit(X, y),
    )
    console.print(
        f"  accuracy {model.score(X_test, y_test):.4f} and "
        f"{batch.score(X_test, y_test):.4f}; support vectors "
        f"{model.n_support_.sum()} and {batch.n_support_.sum()}"
    )


def one_sample(mnist: dict[str, NDArray]) -> None:
    X = images(mnist["x_train"][:5400])
    y = np.random.default_rng(0).integers(0, 2, len(X))  # nothing to learn: all stay
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
        f"median {np.median(busy):.2f} ms processor"
    )


def linear(mnist: dict[str, NDArray]) -> None:
    from sklearn.linear_model import SGDClassifier

    X, y = images(mnist["x_train"][:20_000]), mnist["y_train"][:20_000]
    options = {"max_iter": 3, "tol": None, "shuffle": False}
    mine = PassiveAggressiveClassifier(**options)
    theirs = SGDClassifier(penalty=None, learning_rate="pa1", eta0=1.0, **options)
    mine.fit(X[:100], y[:100])  # compiles
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        timed("linear PA-I, 3 passes over 20,000 of MNIST", lambda: mine.fit(X, y))
        timed("scikit-learn, the same", lambda: theirs.fit(X, y))


def stream(ijcnn1: dict[str, NDArray]) -> None:
    X = np.vstack([ijcnn1["x_train"], ijcnn1["x_test"]])[:100_000].astype(np.float32)
    y = np.concatenate([ijcnn1["y_train"], ijcnn1["y_test"]])[:100_000]
    model = PassiveAggressiveClassifier(
        kernel="rbf", gamma=1.0, budget=2000, fit_intercept=False
    )

    def chunks() -> Iterator[tuple[NDArray, NDArray]]:
        for k in range(0, len(y), 1000):
            if k in (20_000, 60_000, 99_000):
                peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
                console.print(f"  after {k} samples: peak memory {peak:.0f} MB")
            yield X[k : k + 1000], y[k : k + 1000]

    timed(
        "kernel PA-I, 100,000 of ijcnn1, budget 2,000",
        lambda: model.learn_stream(chunks(), classes=[-1, 1]),
    )
    share = model.history_["n_mistakes"][-1] / model.history_["n_tested"][-1]
    console.print(f"  mistakes {100 * share:.1f} %")


def main() -> None:
    """Run everything."""
    ijcnn1, mnist = read("ijcnn1"), read("mnist")
    stream(ijcnn1)
    linear(mnist)
    one_sample(mnist)
    pass_beside_batch(mnist)


if __name__ == "__main__":
    main()
