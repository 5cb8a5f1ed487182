"""Measure components and clusters: ``python -m benchmarks.components --help``.

Kernel PCA and k-means are compared with scikit-learn on MNIST.  Kernel k-means is
compared with tslearn, which runs in an environment of its own (``--tslearn PYTHON``)
and is given vectors as series of one step.  Mercer and its peer take turns.  Times are
the least of the repeats, wall and CPU, and the answers are compared.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.data import mnist
from benchmarks.memory import claim_memory
from benchmarks.parts import Part, run_parts
from benchmarks.timing import timed
from mercer import KernelKMeans, KernelPCA, KMeans, gram_matrix
from mercer.kernels import RBF

__all__ = ["PARTS", "main"]

GAMMA = 0.02
N_FAST = 700

# The program that tslearn's environment runs. Its arguments are the file of the data,
# the file for labels and seconds, the number of clusters, gamma and the number of
# starts.
TSLEARN = """
import sys, time
import numpy as np
from tslearn.clustering import KernelKMeans
X = np.load(sys.argv[1])[:, None, :]
k, gamma, starts = int(sys.argv[3]), float(sys.argv[4]), int(sys.argv[5])
model = KernelKMeans(k, kernel="rbf", kernel_params={"gamma": gamma},
                     n_init=starts, max_iter=300, random_state=0)
wall, cpu = time.perf_counter(), time.process_time()
model.fit(X)
np.savez(sys.argv[2], labels=model.labels_, wall=time.perf_counter() - wall,
         cpu=time.process_time() - cpu)
"""


def images(n: int, is_fast: bool) -> NDArray[np.float32]:
    """Return MNIST images, or some of scikit-learn's digits if fast."""
    return mnist(min(n, N_FAST) if is_fast else n, is_fast)[0]


def in_turns(
    makers: dict[str, Callable[[], Any]], X: NDArray, repeats: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit each model ``repeats`` times; return the last models and the least times."""
    models: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    busiest: float | None = None
    for _ in range(repeats):
        for name, make in makers.items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                if len(X) > N_FAST:
                    claim_memory()
                models[name], times = timed(lambda make=make: make().fit(X))
            for kind in ("seconds", "cpu_seconds"):
                key = f"{name}_{kind}"
                facts[key] = min(facts.get(key, np.inf), getattr(times, kind))
            if times.others_cores is not None:
                busiest = max(busiest or 0.0, times.others_cores)
    facts["others_cores"] = busiest
    return models, facts


def kernel_pca(options: argparse.Namespace) -> dict[str, Any]:
    """Measure ten components of 10,000 images, with all of scikit-learn's solvers."""
    from sklearn.decomposition import KernelPCA as Peer

    X = images(10_000, options.fast)
    KernelPCA(10, kernel="rbf", gamma=GAMMA).fit(X[:1100])
    settings: dict[str, Any] = {"kernel": "rbf", "gamma": GAMMA, "random_state": 0}
    makers = {
        "mercer": lambda: KernelPCA(10, **settings),
        # The default solver of scikit-learn for ten components is "dense".
        "sklearn": lambda: Peer(10, **settings),
        "sklearn_arpack": lambda: Peer(10, eigen_solver="arpack", **settings),
        "sklearn_randomized": lambda: Peer(10, eigen_solver="randomized", **settings),
    }
    models, facts = in_turns(makers, X, options.repeats)
    mine, exact = models["mercer"], models["sklearn"]
    error = np.abs(mine.eigenvalues_ / exact.eigenvalues_ - 1).max()
    return facts | {
        "n": len(X),
        "ratio": facts["sklearn_seconds"] / facts["mercer_seconds"],
        "ratio_arpack": facts["sklearn_arpack_seconds"] / facts["mercer_seconds"],
        "largest_relative_difference_of_eigenvalues": float(error),
        "largest_residual": float(mine.residuals_.max() / mine.eigenvalues_[0]),
    }


def k_means(options: argparse.Namespace) -> dict[str, Any]:
    """Measure ten clusters of 60,000 images, from the same start as scikit-learn."""
    from sklearn.cluster import KMeans as Peer

    X = images(60_000, options.fast)
    KMeans(10).fit(X[:600])
    models, facts = in_turns(
        {
            "mercer": lambda: KMeans(10, random_state=0),
            "sklearn": lambda: Peer(10, random_state=0),
        },
        X,
        options.repeats,
    )
    mine, other = models["mercer"], models["sklearn"]
    return facts | {
        "n": len(X),
        "ratio": facts["sklearn_seconds"] / facts["mercer_seconds"],
        "inertia_over_sklearn": mine.inertia_ / other.inertia_,
        "rounds": [mine.n_iter_, other.n_iter_],
    }


def _objective(K: NDArray, labels: NDArray) -> float:
    """Return the objective of kernel k-means, computed by its definition."""
    inner = 0.0
    for c in np.unique(labels):
        own = np.flatnonzero(labels == c)
        inner += float(K[np.ix_(own, own)].sum(dtype=np.float64)) / len(own)
    return float(np.trace(K, dtype=np.float64)) - inner


def kernel_k_means(options: argparse.Namespace) -> dict[str, Any]:
    """Measure ten clusters of 3,000 images with three starts, and tslearn's time."""
    X, k, starts = images(3000, options.fast), 10, 3
    settings: dict[str, Any] = {"gamma": GAMMA, "n_init": starts, "random_state": 0}
    KernelKMeans(k, **settings).fit(X[:1100])
    models, facts = in_turns(
        {"mercer": lambda: KernelKMeans(k, **settings)}, X, options.repeats
    )
    K = gram_matrix(RBF(GAMMA), X)
    mine = _objective(K, models["mercer"].labels_)
    facts |= {"n": len(X), "objective": mine, "reported": models["mercer"].inertia_}
    if options.tslearn is None:
        return facts | {"tslearn": "not measured: give --tslearn PYTHON"}
    with tempfile.TemporaryDirectory() as folder:
        data, answer = Path(folder, "X.npy"), Path(folder, "answer.npz")
        np.save(data, X)
        arguments = [str(data), str(answer), str(k), str(GAMMA), str(starts)]
        subprocess.run([options.tslearn, "-c", TSLEARN, *arguments], check=True)
        with np.load(answer) as file:
            other = {name: file[name] for name in file.files}
    theirs = _objective(K, other["labels"])
    return facts | {
        "tslearn_seconds": float(other["wall"]),
        "tslearn_cpu_seconds": float(other["cpu"]),
        "ratio": float(other["wall"]) / facts["mercer_seconds"],
        "objective_over_tslearn": mine / theirs,
    }


PARTS: dict[str, Part] = {
    "kernel-pca": kernel_pca,
    "k-means": k_means,
    "kernel-k-means": kernel_k_means,
}


def _add_options(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--repeats", type=int, default=3, metavar="N", help="runs (default 3)")
    add("--tslearn", metavar="PYTHON", help="a Python that has tslearn")


def main() -> int:
    """Run the parts named on the command line."""
    return run_parts("components", __doc__, PARTS, ["mnist.npz"], _add_options)


if __name__ == "__main__":
    sys.exit(main())
