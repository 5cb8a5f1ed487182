"""Write model files, so that later versions can be tried on what this one has written.

Run it only to add files of a new version, under a new name: the old ones are what users
have. ``python tests/data/make_model_files.py NAME`` writes ``NAME-svc.skops``,
``NAME-svc.pickle`` and so on, and ``NAME-expected.npz`` with what the models answer.
"""

import pickle
import sys
from pathlib import Path

import numpy as np

import mercer

HERE = Path(__file__).parent


def samples():
    """Return training samples of three classes, and other samples."""
    rng = np.random.default_rng(16)
    y = np.arange(45) % 3
    X = rng.normal(size=(45, 4)) + 2.0 * np.eye(3, 4)[y]
    return X, y, rng.normal(size=(20, 4))


def models():
    """Return fitted models."""
    X, y, _ = samples()
    svc = mercer.SVC(probability=True, random_state=0).fit(X, y)
    pca = mercer.KernelPCA(n_components=3, kernel="rbf", gamma=0.2).fit(X)
    online = mercer.OnlineSVC(gamma=0.2).partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    return {"svc": svc, "kernel_pca": pca, "online": online.partial_fit(X[30:], y[30:])}


def answers(name, model, Z):
    """Return what a model answers to samples, by the names of its methods."""
    methods = ("predict", "decision_function", "predict_proba", "transform")
    return {
        f"{name} {method}": getattr(model, method)(Z)
        for method in methods
        if hasattr(model, method)
    }


def main(name):
    """Write all files."""
    Z, expected = samples()[2], {}
    for kind, model in models().items():
        mercer.save(model, HERE / f"{name}-{kind}.skops")
        (HERE / f"{name}-{kind}.pickle").write_bytes(pickle.dumps(model))
        expected |= answers(kind, model, Z)
    np.savez_compressed(HERE / f"{name}-expected.npz", Z=Z, **expected)


if __name__ == "__main__":
    main(sys.argv[1])
