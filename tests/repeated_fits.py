"""Fits that must come out the same to the last bit, and a digest of each.

Run as a program with the number of threads, it prints the digests.
"""

import hashlib
import json
import sys

import numpy as np
from scipy import sparse

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
    NuSVC,
    OneClassSVM,
    OnlineSVC,
)
from mercer.kernels import RBF, Linear

MKL = {"kernels": [RBF(0.1), Linear()], "random_state": 0}
MODELS = {
    "KernelPCA": KernelPCA(3, kernel="rbf"),
    "KernelPCA, pre-images": KernelPCA(3, kernel="rbf", fit_inverse_transform=True),
    "KernelPCA, randomized": KernelPCA(
        3, kernel="poly", eigen_solver="randomized", random_state=0
    ),
    "PCA": PCA(3),
    "KMeans": KMeans(5, random_state=0),
    "KernelKMeans": KernelKMeans(5, kernel="rbf", random_state=0),
    "MKL by SMO": MKLClassifier(**MKL, method="smo"),
    "MKL, simple": MKLClassifier(**MKL, method="simple"),
    "SVC": SVC(),
    "SVC, one-vs-rest": SVC(multiclass="ovr", probability=True, random_state=0),
    "LinearSVC": LinearSVC(probability=True, random_state=0),
    "LinearSVC, hinge": LinearSVC(loss="hinge", random_state=0),
    "LinearSVC, l1": LinearSVC("l1", random_state=0),
    "LinearSVC, joint": LinearSVC(multi_class="crammer_singer", random_state=0),
    "LinearSVR": LinearSVR(random_state=0),
    "NuSVC": NuSVC(nu=0.2),
    "SVR": SVR(),
    "OneClassSVM": OneClassSVM(),
    "SVDD": SVDD(),
    "OnlineSVC": OnlineSVC(random_state=0),
}
ANSWERS = ("transform", "decision_function", "predict_proba", "predict")


def samples(kind):
    """Return samples of three classes: float64, float32, or sparse."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((520, 6))
    y = (X[:, 0] + 0.3 * rng.standard_normal(520) > 0).astype(int) + (X[:, 1] > 1)
    if kind == "sparse":
        return sparse.csr_array(np.where(np.abs(X) > 0.6, X, 0.0)), y
    return X.astype(kind), y


def digest(name, kind, n_jobs):
    """Fit a model, and return a number for all that it has learnt and answers."""
    X, y = samples(kind)
    model = MODELS[name]
    model = type(model)(**model.get_params(deep=False))
    if "n_jobs" in model.get_params():
        model.set_params(n_jobs=n_jobs)
    model.fit(X, y)
    learnt = [value for key, value in sorted(vars(model).items()) if key[-1:] == "_"]
    answers = [getattr(model, m)(X[:99]) for m in ANSWERS if hasattr(model, m)]
    found = hashlib.sha256()
    for value in (*learnt, *answers):
        if sparse.issparse(value):
            value = value.toarray()
        if isinstance(value, np.ndarray | float | int):
            found.update(np.ascontiguousarray(value).tobytes())
    return found.hexdigest()


def digests(n_jobs):
    kinds = ("float64", "float32", "sparse")
    return {f"{m}, {k}": digest(m, k, n_jobs) for m in MODELS for k in kinds}


if __name__ == "__main__":
    print(json.dumps(digests(int(sys.argv[1]))))
