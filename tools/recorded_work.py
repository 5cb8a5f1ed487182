"""What is recorded of a commit: cases and jobs, the ways that they take, their results.

:mod:`compare_commits` runs this file in fresh processes, with the package of one side:

    python tools/recorded_work.py record FILE --match TEXT
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numba.core import event
from scipy import sparse

import mercer
from mercer.runtime.writing import write_file

# Where each way is to be seen: "file below mercer:qualified name", the places of old
# and new code with a space between. One of them runs when the way is taken.
PLACES = {
    "small": "engines/cpu/small.py:solve_small",
    "class pairs": "engines/cpu/class_pairs.py:solve_small_pairs",
    "weights": "engines/cpu/linear/through_weights.py:solve_through_weights",
    "single tried": "engines/cpu/solve.py:tries_single",
    "double after all": "engines/cpu/solve.py:_OnThreads.solve_in_double",
    "trial of support": "engines/cpu/solve.py:_share_of_support",
    "whole": "engines/cpu/gram.py:WholeGram.__init__",
    "rows": "engines/cpu/gram.py:RowGram.__init__",
    "blocks": "engines/cpu/gram.py:BlockGram.__init__",
    "product": "engines/cpu/products.py:GramProduct.__init__",
    "given product": "engines/cpu/products.py:GivenProduct.__init__",
    "held": "engines/cpu/held.py:HeldGram.__init__",
    "kernels in memory": "machines/mkl/inmemory.py:GramsInMemory.__init__",
    "kernels on demand": "machines/mkl/ondemand.py:GramsOnDemand.__init__",
    "kernels in chunks": "machines/mkl/chunks.py:Chunk.__init__",
    "pairs in memory": "engines/cpu/solve.py:_in_memory",
    "pairs on blocks": "engines/cpu/solve.py:_solve_small",
    "working sets": "engines/cpu/decompose.py:decompose",
    "textbook by rows": "engines/cpu/solve.py:_by_rows",
    "tiles in a team": (
        "engines/cpu/teams.py:fill_rows engines/cpu/teams.py:fill_triangle"
    ),
    "product in a team": "engines/cpu/teams.py:apply_sides",
    "product in tiles": "engines/cpu/tiles.py:apply",
    "few products": "engines/cpu/small.py:few_products",
    "few rows": "engines/cpu/small.py:Expansion.__call__",
    "few columns": "engines/cpu/small.py:is_tiny",
    "zeros left out": "engines/cpu/zeros.py:columns_in_use",
    "lanczos": "engines/cpu/eigen.py:lanczos",
    "dense eigenvectors": "engines/cpu/eigen.py:dense",
    "linear: small": "engines/cpu/linear/solve.py:_solve_small",
    "linear: lanes": "engines/cpu/linear/descent.py:coordinate_descent",
    "linear: wide": "engines/cpu/linear/wide.py:wide_descent",
    "linear: newton": "engines/cpu/linear/newton.py:newton",
    "linear: by samples": "engines/cpu/linear/pool.py:Pool.__init__",
    "linear: gradients": "engines/cpu/linear/curvature.py:conjugate_gradients",
    "linear: l1": "engines/cpu/linear/coordinates.py:solve_l1",
    "linear: joint": "engines/cpu/linear/coordinates.py:solve_joint",
    "search: portion": "selection/path.py:solve_portion",
    "search: repair": "selection/path.py:repair",
    "search: small": "selection/path.py:small_gram",
    "search: stored": "selection/stored.py:GramMaker.__init__",
    "search: linear": "selection/linear.py:evaluate_linear",
    "search: alone": "selection/candidates.py:score_plainly",
}


def given_up(local: dict[str, Any], result: Any) -> str | None:
    """Tell of a way that returns None when it cannot go to its end."""
    return " (given up)" if result is None else ""


def if_true(local: dict[str, Any], result: Any) -> str | None:
    """Count a way as taken if the answer is yes, or anything else than nothing."""
    return None if result is None or result is False else ""


def of_dtype(local: dict[str, Any], result: Any) -> str | None:
    """Tell the data type of a Gram matrix."""
    return f" {local['self'].dtype}"


# What else to say of a way, by local variables and result; None: it was not taken.
TOLD: dict[str, Callable[[dict[str, Any], Any], str | None]] = {
    "small": given_up,
    "class pairs": given_up,
    "weights": given_up,
    "single tried": if_true,
    "whole": of_dtype,
    "rows": of_dtype,
    "blocks": of_dtype,
    "few columns": if_true,
    "zeros left out": if_true,
    "linear: small": given_up,
}


class Case(NamedTuple):
    """A machine, made data, and settings; 0 classes are a regression."""

    machine: str
    n: int
    d: int
    classes: int = 2
    settings: Mapping[str, Any] = MappingProxyType({})
    kind: str = "dense"  #: or "zeros", "csr", "given"
    dtype: str = "float64"
    grid: dict[str, list[Any]] | None = None

    @property
    def name(self) -> str:
        """Return a text that no other case has."""
        words = [self.machine, f"{self.n}x{self.d}", f"{self.classes} classes"]
        words += [word for word in (self.kind, self.dtype) if word != "dense"]
        words += [f"{key}={value}" for key, value in self.settings.items()]
        return " ".join(words) + (f" grid {self.grid}" if self.grid else "")


def cases() -> Iterator[Case]:
    """Yield what is tried: all machines and solvers, from 20 to 8,000 samples."""
    for n, d, classes in [
        (20, 4, 2), (150, 4, 3), (256, 10, 2), (257, 10, 2), (600, 5, 2), (1000, 20, 3),
        (1024, 40, 2), (1025, 20, 2), (2000, 20, 3), (5000, 20, 3), (8000, 20, 2),
        (1000, 5, 100), (3000, 30, 10), (6000, 10, 10),
    ]:  # fmt: skip
        yield Case("SVC", n, d, classes, {"gamma": 0.3 / d})
    yield Case("SVC", 5000, 20, 2, dtype="float32")
    yield Case("SVC", 2000, 784, 10, kind="zeros")
    yield Case("SVC", 2000, 300, 2, kind="csr")
    yield Case("SVC", 8000, 10, 4, {"cache_size": 60})
    yield Case("SVC", 3000, 20, 2, {"cache_size": 20})
    yield Case("SVC", 6000, 10, 10, {"cache_size": 130})
    yield Case("SVC", 2000, 6, 2, {"C": 1e4, "gamma": 0.1, "tol": 1e-4})
    for solver in ("smo", "decompose", "random", "simplified", "platt", "wss1", "wss2"):
        yield Case("SVC", 400, 6, 2, {"solver": solver})
    for kernel in ("poly", "sigmoid", "laplacian", "rbf + 0.5 * linear", "linear"):
        yield Case("SVC", 1500, 8, 3, {"kernel": kernel, "tol": 1e-2})
    yield Case("SVC", 300, 40, 2, {"kernel": "linear"})
    yield Case("SVC", 700, 700, 2, {"kernel": "precomputed"}, kind="given")
    yield Case("SVC", 1200, 6, 2, {"C": 500.0, "tol": 1e-6})
    yield Case("SVC", 400, 6, 3, {"probability": True, "class_weight": "balanced"})
    yield Case("SVC", 2000, 10, 4, {"multiclass": "ovr"})
    for n in (150, 2000, 6000):
        yield Case("SVR", n, 8, 0)
        yield Case("OneClassSVM", n, 8, 0, {"nu": 0.1})
    yield Case("SVR", 3000, 8, 0, {"cache_size": 20})
    yield Case("NuSVC", 1500, 8, 2, {"nu": 0.3})
    yield Case("NuSVR", 1500, 8, 0)
    yield Case("SVDD", 1500, 8, 0, {"C": 0.02})
    for method in ("auto", "simple", "group-lasso", "smo", "alignment", "uniform"):
        yield Case("MKLClassifier", 300, 6, 2, {"method": method})
    yield Case("MKLClassifier", 1500, 6, 3, {"cache_size": 20, "p": 2.0})
    yield Case("MKLClassifier", 2500, 6, 2)
    yield Case("MKLRegressor", 300, 6, 0)
    for n, d, kind in [(150, 4, "dense"), (4000, 20, "dense"), (600, 400, "dense"),
                       (3000, 300, "dense"), (3000, 2000, "csr")]:  # fmt: skip
        yield Case("LinearSVC", n, d, 3, kind=kind)
        yield Case("LinearSVC", n, d, 2, {"loss": "hinge"}, kind=kind)
    yield Case("LinearSVC", 6000, 4000, 2, {"loss": "hinge", "C": 50.0}, kind="csr")
    yield Case("LinearSVC", 800, 30, 2, {"penalty": "l1", "dual": False})
    yield Case("LinearSVC", 800, 30, 3, {"multi_class": "crammer_singer"})
    yield Case("LinearSVR", 2000, 20, 0, {"epsilon": 0.1})
    yield Case("PassiveAggressiveClassifier", 2000, 20, 3)
    yield Case("PassiveAggressiveClassifier", 1000, 200, 2, kind="csr")
    yield Case(
        "PassiveAggressiveClassifier", 600, 6, 2, {"kernel": "rbf", "budget": 60}
    )
    yield Case("OnlineSVC", 800, 8, 2)
    yield Case("OnlineSVC", 500, 8, 3, {"selection": "active"})
    yield Case("OnlineSVC", 500, 8, 2, {"method": "smo", "budget": 80})
    for n in (300, 2500):
        yield Case("KernelPCA", n, 10, 2, {"kernel": "rbf", "n_components": 5})
        yield Case("KMeans", n, 10, 6, {"n_clusters": 6})
        yield Case("KernelKMeans", n, 10, 4, {"n_clusters": 4})
    given = {"kernel": "precomputed", "n_components": 4}
    yield Case("KernelPCA", 700, 700, 2, given, kind="given")
    yield Case("PCA", 1000, 30, 2, {"n_components": 5})
    rbf = {"C": [0.5, 5.0], "gamma": [0.02, 0.1]}
    for n in (150, 900, 2400):
        yield Case("SVC", n, 10, 3, grid=rbf)
    yield Case("SVC", 80, 4, 2, grid=rbf)
    yield Case("SVC", 1500, 10, 2, {"cache_size": 10}, grid=rbf)
    yield Case("SVR", 600, 8, 0, grid={"C": [0.1, 1.0, 10.0]})
    yield Case("LinearSVC", 600, 20, 3, grid={"C": [0.1, 1.0]})
    for name, settings in [
        ("Deskew", {}), ("Deskew", {"method": "moments"}), ("Trim", {}),
        ("HOG", {"cell_size": 4}), ("Distort", {}), ("MedianFilter", {}),
        ("GaussianBlur", {}), ("ColourHistogram", {}),
        ("PatchFeatures", {"n_directions": 20}),
    ]:  # fmt: skip
        yield Case(f"images.{name}", 60, 28, 2, settings, kind="images")


def samples(case: Case) -> tuple[Any, np.ndarray]:
    """Return made samples and their labels, the same in every process."""
    rng = np.random.default_rng([case.n, case.d, case.classes])
    if case.kind == "images":
        shape = (case.n, case.d, case.d, 3)[: 4 if "Colour" in case.machine else 3]
        return (rng.random(shape) ** 4 * 255).astype(np.uint8), np.arange(case.n) % 2
    X = rng.normal(size=(case.n, case.d))
    if case.classes:
        y = np.arange(case.n) % case.classes
        X += 1.5 * rng.normal(size=(case.classes, case.d))[y]
        wrong = rng.random(case.n) < 0.05
        y[wrong] = rng.integers(case.classes, size=int(wrong.sum()))
    else:
        y = np.sin(X[:, 0]) + 0.5 * X[:, 1] + 0.1 * rng.normal(size=case.n)
    if case.kind in ("zeros", "csr"):
        X[rng.random(X.shape) < (0.8 if case.kind == "zeros" else 0.95)] = 0.0
    if case.kind == "csr":
        return sparse.csr_array(X), y
    if case.kind == "given":
        X = np.exp(-0.01 * ((X[:, None, :20] - X[None, :, :20]) ** 2).sum(axis=2))
    return X.astype(case.dtype), y


class Watch:
    """Notes which ways are taken, in all threads that begin after it."""

    def __init__(self) -> None:
        self.seen: set[str] = set()
        self._ways = {place: way for way in PLACES for place in PLACES[way].split()}
        self._way_of: dict[Any, str | None] = {}
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: Any, event: str, result: Any) -> None:
        """Be told by the interpreter what happens; returns say the result too."""
        if event != "return":
            return
        code = frame.f_code
        if code not in self._way_of:
            file = Path(code.co_filename).as_posix().rpartition("/mercer/")[2]
            self._way_of[code] = self._ways.get(f"{file}:{code.co_qualname}")
        way = self._way_of[code]
        if way is not None:
            told = TOLD[way](frame.f_locals, result) if way in TOLD else ""
            if told is not None:
                self.seen.add(way + told)

    def taken(self, call: Callable[[], Any]) -> tuple[Any, list[str]]:
        """Return the result of a call, and the ways that it took."""
        self.seen.clear()
        result = call()
        return result, sorted(self.seen)


LEARNT = (
    "support_ dual_coef_ intercept_ coef_ weights_ eigenvalues_ eigenvectors_ labels_ "
    "cluster_centers_ inertia_ components_ n_iter_ probA_ probB_ directions_"
).split()
CERTIFICATES = ("converged_", "kkt_gap_", "dual_gap_", "objective_")


def _numbers(value: Any) -> Iterator[np.ndarray]:
    """Yield what a learnt value consists of, as arrays."""
    if isinstance(value, (list, tuple)):
        for part in value:
            yield from _numbers(part)
    elif hasattr(value, "indptr"):
        yield from (value.data, value.indices, value.indptr)
    elif value is not None:
        yield np.ascontiguousarray(value)


def record_case(case: Case, watch: Watch) -> dict[str, Any]:
    """Fit a machine and predict; return ways, bits and certificates."""
    X, y = samples(case)
    kind: Any = mercer
    for name in case.machine.split("."):
        kind = getattr(kind, name)
    settings = dict(case.settings)
    if "random_state" in kind().get_params():
        settings["random_state"] = 0
    # Of the memory that is free, which may differ, small cases do not take much.
    if case.n > 500 and "cache_size" in kind().get_params():
        settings.setdefault("cache_size", 1000)
    model = kind(**settings)
    if case.grid:
        model = mercer.selection.GridSearchCV(model, case.grid, cv=3)
    _, taken = watch.taken(lambda: model.fit(X, y))
    ways = {"fit": taken}
    found: list[Any] = []
    for verb in ("decision_function", "predict_proba", "transform", "predict"):
        if hasattr(model, verb):
            for rows, name in ((X[:3000], "many rows"), (X[:1], "one row")):
                value, taken = watch.taken(lambda v=verb, r=rows: getattr(model, v)(r))
                ways.setdefault(name, taken)
                found += _numbers(value)
    best = getattr(model, "best_estimator_", model)
    if case.grid:
        found += _numbers(model.cv_results_["mean_test_score"])
    for name in LEARNT:
        found += _numbers(getattr(best, name, None))
    certificates = {
        name: np.asarray(value, dtype=float).ravel().tolist()
        for name in CERTIFICATES
        if (value := getattr(best, name, None)) is not None
    }
    return {
        "ways": [f"{call}: {way}" for call, taken in ways.items() for way in taken],
        "bits": hashlib.sha256(b"".join(a.tobytes() for a in found)).hexdigest(),
        "values": np.concatenate([a.ravel().astype(float) for a in found]).tolist(),
        "certificates": certificates,
    }


def record(match: str) -> dict[str, Any]:
    """Return what there is to record of the cases whose names have a text."""
    watch = Watch()
    found = {}
    for case in cases():
        if match in case.name:
            try:
                found[case.name] = record_case(case, watch)
            except Exception as error:  # a failure is compared like a result
                ways = [f"{type(error).__name__}: {error}"]
                found[case.name] = {
                    "ways": ways, "bits": "", "values": [], "certificates": {}
                }  # fmt: skip
    sys.setprofile(None)
    return found


def first_fit() -> dict[str, Any]:
    """Return what the first fit of 5,000 samples compiles in this process."""
    X, y = samples(Case("SVC", 5000, 20, 3))
    start = time.perf_counter()
    with event.install_recorder("numba:compile") as compiled:
        mercer.SVC(cache_size=1000).fit(X, y)
    seconds = time.perf_counter() - start
    count = sum(found.is_start for _, found in compiled.buffer)
    return {"compilations": count, "seconds": seconds}


def jobs() -> Iterator[tuple[str, Callable[[], Any]]]:
    """Yield what people do, each with its data."""

    def made(*case: Any, **more: Any) -> tuple[Any, Any]:
        return samples(Case(*case, **more))

    X, y = made("SVC", 5000, 20, 3)
    model = mercer.SVC()
    yield "SVC fit 5000x20", lambda: model.fit(X, y)
    yield "SVC predict 5000x20", lambda: model.predict(X)
    yield "SVC predict one row", lambda: model.predict(X[:1])
    yield "SVC fit 150x4", lambda: mercer.SVC().fit(X[:150, :4], y[:150])
    digits, label = made("SVC", 5000, 784, 10, kind="zeros")
    if "MERCER_DATA" in os.environ:
        with np.load(Path(os.environ["MERCER_DATA"]) / "mnist.npz") as stored:
            digits = stored[next(k for k in stored.files if stored[k].ndim > 1)][:5000]
            label = stored[next(k for k in stored.files if stored[k].ndim == 1)][:5000]
        digits = digits.reshape(len(digits), -1) / 255.0
    many = mercer.SVC(C=5.0)
    yield "SVC fit digits 5000", lambda: many.fit(digits, label)
    yield "SVC predict digits 5000", lambda: many.predict(digits)
    A, z = made("SVR", 5000, 8, 0)
    yield "SVR fit 5000x8", lambda: mercer.SVR().fit(A, z)
    yield "OneClassSVM fit 2000x8", lambda: mercer.OneClassSVM(nu=0.1).fit(A[:2000])
    rows = mercer.SVC(cache_size=60)
    B, b = made("SVC", 12000, 10, 2)
    yield "SVC fit 12000x10 by rows", lambda: rows.fit(B, b)
    grid = {"C": [1, 3, 10], "gamma": [0.01, 0.03, 0.1]}
    search = mercer.selection.GridSearchCV(mercer.SVC(), grid, cv=3)
    yield "GridSearchCV fit 2000x20", lambda: search.fit(X[:2000], y[:2000])
    yield "LinearSVC fit 5000x20", lambda: mercer.LinearSVC().fit(X, y)
    S, s = made("LinearSVC", 5000, 3000, 3, kind="csr")
    yield "LinearSVC fit 5000x3000 csr", lambda: mercer.LinearSVC().fit(S, s)
    yield (
        "MKLClassifier fit 600x6",
        lambda: mercer.MKLClassifier().fit(A[:600, :6], z[:600] > 0),
    )
    yield "OnlineSVC fit 2000x8", lambda: mercer.OnlineSVC().fit(A[:2000], z[:2000] > 0)
    yield (
        "PassiveAggressive fit 5000x20",
        lambda: mercer.PassiveAggressiveClassifier(max_iter=20).fit(X, y),
    )
    pca = mercer.KernelPCA(5, kernel="rbf")
    yield "KernelPCA fit 2000x20", lambda: pca.fit(X[:2000])
    means = mercer.KMeans(10, n_init=3, random_state=0)
    yield "KMeans fit 5000x20", lambda: means.fit(X)
    kernel_means = mercer.KernelKMeans(4, n_init=3, random_state=0)
    yield "KernelKMeans fit 1500x20", lambda: kernel_means.fit(X[:1500])
    pictures = digits.reshape(-1, 28, 28)
    for name in ("Deskew", "HOG", "Trim", "Distort", "MedianFilter"):
        seed = {"random_state": 0} if name == "Distort" else {}
        step = getattr(mercer.images, name)(**seed)
        yield f"{name} 5000 images", lambda s=step: s.fit_transform(pictures)
    patches = mercer.images.PatchFeatures(n_directions=50, random_state=0)
    yield "PatchFeatures 500 images", lambda: patches.fit_transform(pictures[:500])


def measure() -> dict[str, float]:
    """Return the seconds of every job, warm; of the first job the first run too."""
    found: dict[str, float] = {}
    for name, job in jobs():
        runs: list[float] = []
        start = time.perf_counter()
        while len(runs) < 3 or (time.perf_counter() - start < 0.3 and len(runs) < 50):
            begin = time.perf_counter()
            job()
            runs.append(time.perf_counter() - begin)
        if not found:
            found["first fit in a process"] = runs[0]
        found[name] = min(runs[1:])
    return found


def not_to_be_seen(package: Path) -> list[str]:
    """Return the ways of which a package has none of the places."""

    def names(node: ast.AST, before: str = "") -> Iterator[str]:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                yield before + child.name
                yield from names(child, f"{before}{child.name}.")

    def exists(place: str) -> bool:
        file, _, name = place.partition(":")
        path = package / file
        return path.exists() and name in names(ast.parse(path.read_text()))

    return [way for way in PLACES if not any(map(exists, PLACES[way].split()))]


def main() -> None:
    """Do a task in this process, and write what came of it."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("task", choices=("first", "record", "measure"))
    parser.add_argument("out", type=Path, help="the file to write, JSON")
    parser.add_argument("--match", default="", help="cases whose names have this text")
    told = parser.parse_args()
    if gone := not_to_be_seen(Path(mercer.__file__).parent):
        sys.exit(f"PLACES has no place in {mercer.__file__} for: {', '.join(gone)}.")
    warnings.simplefilter("ignore")
    tasks = {"first": first_fit, "measure": measure}
    found = record(told.match) if told.task == "record" else tasks[told.task]()
    text = json.dumps({"package": mercer.__file__, "found": found})
    write_file(told.out, text)


if __name__ == "__main__":
    main()
