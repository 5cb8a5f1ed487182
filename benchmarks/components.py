"""Measure components and clusters: ``python -m benchmarks.components --help``.

Kernel PCA and k-means beside scikit-learn on MNIST, kernel k-means beside tslearn,
which runs in an environment of its own (``--tslearn PYTHON``), on vectors as series of
one step.  Mercer and its peer take turns; times are the least of the repeats, wall and
CPU, and the answers are compared.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from benchmarks.load import Watch
from benchmarks.machine import environment
from mercer import KernelKMeans, KernelPCA, KMeans, gram_matrix
from mercer.kernels import RBF

__all__ = ["PARTS", "main"]

RESULTS = Path(__file__).parent / "results"
GAMMA = 0.02
console = Console()

# What tslearn's environment runs: data, clusters, gamma, starts; labels and seconds.
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
    """Return MNIST images of MERCER_DATA, or some of scikit-learn's digits if fast."""
    if is_fast:
        from sklearn.datasets import load_digits

        return (load_digits().data[: min(n, 700)] / 16).astype(np.float32)
    with np.load(Path(os.environ["MERCER_DATA"], "mnist.npz")) as file:
        X = file["x_train"][:n].reshape(n, -1).astype(np.float32)
    X /= 255
    return X


def in_turns(
    makers: dict[str, Callable[[], Any]], X: NDArray, repeats: int
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Fit each model ``repeats`` times; return the last ones, and the least times."""
    models: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    watch = Watch()
    for _ in range(repeats):
        for name, make in makers.items():
            wall, cpu = time.perf_counter(), time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                models[name] = make().fit(X)
            taken = time.perf_counter() - wall, time.process_time() - cpu
            for kind, seconds in zip(("seconds", "cpu_seconds"), taken, strict=True):
                key = f"{name}_{kind}"
                facts[key] = min(facts.get(key, np.inf), seconds)
    facts["others_cores"] = watch.others()
    return models, facts


def kernel_pca(options: argparse.Namespace) -> dict[str, Any]:
    """Ten components of 10,000 images beside scikit-learn's faster solver."""
    from sklearn.decomposition import KernelPCA as Peer

    X = images(10_000, options.fast)
    KernelPCA(10, kernel="rbf", gamma=GAMMA).fit(X[:600])
    settings: dict[str, Any] = {"kernel": "rbf", "gamma": GAMMA, "random_state": 0}
    models, facts = in_turns(
        {
            "mercer": lambda: KernelPCA(10, **settings),
            "sklearn_arpack": lambda: Peer(10, eigen_solver="arpack", **settings),
            "sklearn_randomized": lambda: Peer(
                10, eigen_solver="randomized", **settings
            ),
        },
        X,
        options.repeats,
    )
    mine, exact = models["mercer"], models["sklearn_arpack"]
    error = np.abs(mine.eigenvalues_ / exact.eigenvalues_ - 1).max()
    best = min(facts["sklearn_arpack_seconds"], facts["sklearn_randomized_seconds"])
    return facts | {
        "n": len(X),
        "ratio": best / facts["mercer_seconds"],
        "largest_relative_difference_of_eigenvalues": float(error),
        "largest_residual": float(mine.residuals_.max() / mine.eigenvalues_[0]),
    }


def k_means(options: argparse.Namespace) -> dict[str, Any]:
    """Ten clusters of 60,000 images beside scikit-learn, from the same start."""
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
    """Return the objective of kernel k-means by its definition."""
    inner = 0.0
    for c in np.unique(labels):
        own = np.flatnonzero(labels == c)
        inner += float(K[np.ix_(own, own)].sum(dtype=np.float64)) / len(own)
    return float(np.trace(K, dtype=np.float64)) - inner


def kernel_k_means(options: argparse.Namespace) -> dict[str, Any]:
    """Ten clusters of 5,000 images, five starts, beside tslearn."""
    X, k, starts = images(5000, options.fast), 10, 5
    settings: dict[str, Any] = {"gamma": GAMMA, "n_init": starts, "random_state": 0}
    KernelKMeans(k, **settings).fit(X[:600])
    models, facts = in_turns(
        {"mercer": lambda: KernelKMeans(k, **settings)}, X, options.repeats
    )
    K = gram_matrix(RBF(GAMMA), X)
    mine = _objective(K, models["mercer"].labels_)
    facts |= {"n": len(X), "objective": mine, "reported": models["mercer"].inertia_}
    if options.tslearn is None:
        return facts | {"tslearn": "not asked for: --tslearn PYTHON"}
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


PARTS: dict[str, Callable[[argparse.Namespace], dict[str, Any]]] = {
    "kernel-pca": kernel_pca,
    "k-means": k_means,
    "kernel-k-means": kernel_k_means,
}


def main() -> int:
    """Run the parts that are asked for; every answer is a line of JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.components")
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--fast", action="store_true", help="tiny, no data files")
    parser.add_argument("--repeats", type=int, default=3, metavar="N")
    parser.add_argument("--tslearn", metavar="PYTHON", help="one that has tslearn")
    parser.add_argument("--output", type=Path, default=RESULTS, metavar="DIR")
    options = parser.parse_args()
    unknown = set(options.parts) - set(PARTS)
    if unknown:
        parser.error(f"unknown: {', '.join(unknown)}. Known: {', '.join(PARTS)}.")
    if not options.fast and "MERCER_DATA" not in os.environ:
        parser.error(
            "MERCER_DATA is not set. Set it to the folder that holds mnist.npz, or use "
            "--fast, which needs no data files."
        )
    place = environment()
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / f"components-{time.strftime('%Y-%m-%d-%H%M%S')}.jsonl"
    for name in options.parts or PARTS:
        console.print(f"{time.strftime('%H:%M:%S')}  {name}")
        answer = PARTS[name](options)
        for key, value in answer.items():
            text = f"{value:.5g}" if isinstance(value, float) else value
            console.print(f"  {key:<44} {text}", soft_wrap=True, highlight=False)
        with path.open("a") as file:
            facts = {"part": name, "is_fast": options.fast, **answer}
            file.write(json.dumps(facts | {"environment": place}) + "\n")
    console.print(str(path), soft_wrap=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
