"""Measure linear machines: ``python -m benchmarks.linear --help``.

Mercer's LinearSVC is compared with scikit-learn's, and SVC with a linear kernel with
LIBSVM as scikit-learn has it.  One code measures all: the primal objective is computed
from weights and intercepts in double precision, and its *excess* is its relative
distance from a lower bound, the dual objective of a tight fit by Mercer.
scikit-learn runs with its defaults.  Mercer gets the tolerance at which its excess is
not larger.  Times are the least of the repeats; the libraries take turns.

skglm's LinearSVC has the hinge loss and no intercept: it gets a column of ones, which
makes its problem the same.  Searches are compared with scikit-learn's in two processes.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn import model_selection, svm
from sklearn.feature_extraction.text import TfidfTransformer

from benchmarks.data import mnist
from benchmarks.parts import Part, run_parts
from benchmarks.timing import timed
from mercer import SVC, LinearSVC
from mercer.selection import GridSearchCV

__all__ = [
    "PARTS",
    "SkglmSVC",
    "dense_rows",
    "digits",
    "main",
    "objectives",
    "text_like",
    "word_counts",
]

# Tolerances of the fits that give lower bounds; the second where the first is too large
# to tell solutions apart.
EXACT = 1e-7
TIGHT = 1e-10


def objectives(X: Any, y: NDArray, model: Any, loss: str) -> NDArray[np.float64]:
    """Return the objective of each machine, with C=1 and a penalised intercept."""
    coef, bias = model.coef_, np.atleast_1d(model.intercept_)
    classes = np.unique(y)
    positive = classes[1:] if len(classes) == 2 else classes
    total = 0.5 * ((coef * coef).sum(axis=1) + bias * bias)
    step = max(1, 2**22 // X.shape[1])
    for first in range(0, X.shape[0], step):
        part = slice(first, first + step)
        sides = np.where(y[part, None] == positive, 1.0, -1.0)
        values = X[part].astype(np.float64) @ coef.T + bias
        slack = np.maximum(1.0 - sides * values, 0.0)
        total += (slack if loss == "hinge" else slack * slack).sum(axis=0)
    return total


class SkglmSVC:
    """skglm's LinearSVC, for each class against the rest, with a column of ones."""

    def __init__(self, tol: float):
        self.tol = tol

    def fit(self, X: Any, y: NDArray) -> SkglmSVC:
        from skglm import LinearSVC as Peer

        ones = np.ones((X.shape[0], 1))
        if sparse.issparse(X):
            Z = sparse.csc_matrix(sparse.hstack([X, ones]))
        else:
            Z = np.asfortranarray(np.hstack([X, ones]))
        classes = np.unique(y)
        positive = classes[1:] if len(classes) == 2 else classes
        weights = [
            np.ravel(Peer(tol=self.tol).fit(Z, np.where(y == c, 1, -1)).coef_)
            for c in positive
        ]
        self.coef_ = np.array([w[:-1] for w in weights])
        self.intercept_ = np.array([w[-1] for w in weights])
        return self


def compare(
    X: Any,
    y: NDArray,
    loss: str,
    options: argparse.Namespace,
    with_skglm: bool = False,
) -> dict[str, Any]:
    """Fit with both libraries, at equal excess."""

    def lower_bound(tol: float) -> NDArray[np.float64]:
        exact = LinearSVC(loss=loss, tol=tol).fit(X, y)
        return objectives(X, y, exact, loss) - exact.dual_gap_

    bound = lower_bound(EXACT)  # compiles, too

    def excess(model: Any) -> float:
        found = objectives(X, y, model, loss)
        return float(((found - bound) / found).max())

    def measured(make: Callable[[], Any]) -> tuple[Any, Any]:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return timed(lambda: make().fit(X, y))

    theirs, times = measured(lambda: svm.LinearSVC(loss=loss, random_state=0))
    if excess(theirs) < 10 * EXACT:
        bound = lower_bound(TIGHT)
    reached = excess(theirs)
    tol = float(np.clip(reached, TIGHT, 1e-2))
    facts: dict[str, Any] = {
        "shape": str(X.shape),
        "classes": len(np.unique(y)),
        "sklearn_seconds": times.seconds,
        "sklearn_cpu_seconds": times.cpu_seconds,
        "sklearn_excess": reached,
        "sklearn_n_iter": int(theirs.n_iter_),
        "mercer_tol": tol,
    }
    if with_skglm and find_spec("skglm"):
        measured(lambda: SkglmSVC(0.1))  # compiles
        theirs, times = measured(lambda: SkglmSVC(options.skglm_tol))
        facts |= {
            "skglm_seconds": times.seconds,
            "skglm_cpu_seconds": times.cpu_seconds,
            "skglm_excess": excess(theirs),
        }
    best, cpu = np.inf, np.inf
    for _ in range(options.repeats):
        ours, times = measured(lambda: LinearSVC(loss=loss, tol=tol, random_state=0))
        best, cpu = min(best, times.seconds), min(cpu, times.cpu_seconds)
    return facts | {
        "mercer_seconds": best,
        "mercer_cpu_seconds": cpu,
        "mercer_excess": excess(ours),
        "mercer_n_iter": ours.n_iter_,
        "speedup": facts["sklearn_seconds"] / best,
        "cpu_speedup": facts["sklearn_cpu_seconds"] / cpu,
        "others_cores": times.others_cores,
    }


def digits(options: argparse.Namespace, n: int = 60_000) -> tuple[NDArray, NDArray]:
    """Return images of digits in double precision."""
    X, y = mnist(500 if options.fast else options.n or n, options.fast)[:2]
    return X.astype(np.float64), y


def squared_hinge(options: argparse.Namespace) -> dict[str, Any]:
    """Ten digits against the rest with the squared hinge loss."""
    return compare(*digits(options), "squared_hinge", options)


def hinge(options: argparse.Namespace) -> dict[str, Any]:
    """Ten digits against the rest with the hinge loss."""
    return compare(*digits(options), "hinge", options)


def two_classes(options: argparse.Namespace) -> dict[str, Any]:
    """Even against odd digits, 5,000 images, with the hinge loss; skglm takes part."""
    X, y = digits(options, 5000)
    return compare(X, y % 2, "hinge", options, with_skglm=True)


def grid(options: argparse.Namespace) -> dict[str, Any]:
    """A search over four values of C with five folds on 5,000 images."""
    X, y = digits(options, 5000)
    values = {"C": [0.001, 0.01, 0.1, 1.0]}
    searches = {
        "mercer": lambda: GridSearchCV(LinearSVC(), values, cv=5, refit=False),
        "plain": lambda: model_selection.GridSearchCV(
            LinearSVC(), values, cv=5, refit=False, n_jobs=2
        ),
        "sklearn": lambda: model_selection.GridSearchCV(
            svm.LinearSVC(random_state=0), values, cv=5, refit=False, n_jobs=2
        ),
    }
    facts: dict[str, Any] = {"shape": str(X.shape), "fits": 20}
    LinearSVC().fit(X[:500], y[:500])  # compiles
    for name, make in searches.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            search, times = timed(lambda make=make: make().fit(X, y))
        facts[f"{name}_seconds"] = times.seconds
        facts[f"{name}_cpu_seconds"] = times.cpu_seconds
        facts[f"{name}_score"] = float(search.cv_results_["mean_test_score"].max())
        facts[f"{name}_others_cores"] = times.others_cores
    return facts | {"speedup": facts["sklearn_seconds"] / facts["mercer_seconds"]}


def dense_rows(options: argparse.Namespace) -> tuple[NDArray, NDArray]:
    """Return two classes of 500,000 dense samples with 54 features."""
    rng = np.random.default_rng(0)
    n = 2000 if options.fast else 500_000
    X = rng.standard_normal((n, 54)) * rng.uniform(0.2, 1.0, 54)
    y = (X @ rng.standard_normal(54) + 2.0 * rng.standard_normal(n) > 0).astype(int)
    return X, y


def many_rows(options: argparse.Namespace) -> dict[str, Any]:
    """Two classes of 500,000 dense samples with 54 features."""
    return compare(*dense_rows(options), "squared_hinge", options)


def text_like(options: argparse.Namespace) -> tuple[Any, NDArray]:
    """Return twenty classes of sparse samples that are like text."""
    rng = np.random.default_rng(0)
    n, d = (400, 4000) if options.fast else (20_000, 50_000)
    each = d // 500  # non-zeros of a row
    # scikit-learn takes indices of 32 bits only.
    columns = rng.integers(0, d, n * each, dtype=np.int32)
    ends = np.arange(0, n * each + 1, each, dtype=np.int32)
    X = sparse.csr_array((rng.random(n * each), columns, ends), shape=(n, d))
    X.sum_duplicates()
    weights = rng.standard_normal((d, 20))
    y = (X @ weights + 0.5 * rng.standard_normal((n, 20))).argmax(axis=1)
    return X, y


def word_counts(options: argparse.Namespace) -> tuple[Any, NDArray]:
    """Return twenty classes of documents that are weighted counts of their words.

    A few words are in most documents and most words in few, as the law of Zipf has it;
    a third of the words of a document follow the frequencies of its class.  Counts are
    weighted by tf-idf, and documents have unit length.
    """
    rng = np.random.default_rng(1)
    n, d = (400, 4000) if options.fast else (20_000, 50_000)
    shares = 1.0 / np.arange(1, d + 1) ** 1.05
    y = rng.choice(20, n, p=rng.dirichlet(np.full(20, 3.0)))
    lengths = np.maximum(5, rng.lognormal(np.log(130), 0.6, n).astype(int))
    rows = np.repeat(np.arange(n, dtype=np.int32), lengths)
    # Words of topic 0 are common to all classes.
    topic = np.where(rng.random(len(rows)) < 0.35, y[rows] + 1, 0)
    words = np.empty(len(rows), dtype=np.int64)
    for number in range(21):
        own = shares * np.exp(rng.standard_normal(d)) if number else shares
        chosen = np.flatnonzero(topic == number)
        ends = np.cumsum(own) / own.sum()
        words[chosen] = np.searchsorted(ends[:-1], rng.random(len(chosen)))
    columns = rng.permutation(d).astype(np.int32)[words]
    counts = sparse.coo_array((np.ones(len(rows)), (rows, columns)), shape=(n, d))
    noise = np.where(rng.random(n) < 0.03, rng.integers(0, 20, n), y)
    X = TfidfTransformer(sublinear_tf=True).fit_transform(counts.tocsr())
    return sparse.csr_array(X), noise


def sparse_text(options: argparse.Namespace) -> dict[str, Any]:
    """Twenty classes of sparse samples that are like text."""
    return compare(*text_like(options), "squared_hinge", options)


def sparse_words(options: argparse.Namespace) -> dict[str, Any]:
    """Twenty classes of documents with the frequencies of words in a language."""
    return compare(*word_counts(options), "squared_hinge", options)


def raw_pixels(options: argparse.Namespace) -> dict[str, Any]:
    """SVC with a linear kernel and C=10 on pixels from 0 to 255."""
    X, y = digits(options, 5000)
    if not options.fast:
        X = 255.0 * X
    models = {
        "mercer": lambda: SVC(kernel="linear", C=10.0),
        "libsvm": lambda: svm.SVC(kernel="linear", C=10.0, cache_size=1000),
    }
    facts: dict[str, Any] = {"shape": str(X.shape)}
    for _ in range(options.repeats + 1):  # the first fit compiles
        for name, make in models.items():
            model, times = timed(lambda make=make: make().fit(X, y))
            facts[f"{name}_seconds"] = min(
                facts.get(f"{name}_seconds", np.inf), times.seconds
            )
            if name == "mercer":
                facts["mercer_converged"] = model.converged_
                facts["mercer_kkt_gap"] = float(model.kkt_gap_.max())
    return facts | {"speedup": facts["libsvm_seconds"] / facts["mercer_seconds"]}


PARTS: dict[str, Part] = {
    "squared-hinge": squared_hinge,
    "hinge": hinge,
    "many-rows": many_rows,
    "sparse": sparse_text,
    "words": sparse_words,
    "two-classes": two_classes,
    "grid": grid,
    "raw-pixels": raw_pixels,
}


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--repeats", type=int, default=1, help="fits of Mercer")
    parser.add_argument(
        "--skglm-tol", type=float, default=1e-4, help="tolerance of skglm"
    )
    parser.add_argument("--n", type=int, help="number of images (default: 60000)")


def main() -> int:
    """Run the parts that are asked for."""
    return run_parts("linear", __doc__, PARTS, ["mnist.npz"], _options)


if __name__ == "__main__":
    sys.exit(main())
