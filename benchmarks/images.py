"""Measure the image transformers: ``python -m benchmarks.images --help``.

The times are those of HOG of 10,000 MNIST images, compared with
``skimage.feature.hog`` image by image, and of clean-up and HOG of all 70,000 images.
The accuracies are those of pipelines on MNIST and CIFAR-10, which are chosen among a
few candidates on training images only; the test images are used once.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from argparse import Namespace
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline

from benchmarks.parts import Part, console, run_parts
from benchmarks.timing import timed
from mercer import SVC
from mercer.images import HOG, Deskew, GaussianBlur, Trim

__all__ = ["PARTS", "main"]

REPEATS = 3
# Number of training images on which the candidates for MNIST are compared.
N_VALIDATION = 10_000


class Images(NamedTuple):
    """Training and test images, uint8, and their classes."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray


def load(name: str, is_fast: bool) -> Images:
    """Return a data set of MERCER_DATA, or some of scikit-learn's digits if fast."""
    if is_fast:
        from sklearn.datasets import load_digits

        X, y = load_digits(return_X_y=True)
        pixels = np.kron(X.reshape(-1, 8, 8), np.ones((3, 3)))
        images = np.pad(pixels * 15, ((0, 0), (2, 2), (2, 2))).astype(np.uint8)
        return Images(images[:600], y[:600], images[600:700], y[600:700])
    with np.load(Path(os.environ["MERCER_DATA"], f"{name}.npz")) as file:
        return Images(*(file[k] for k in ("x_train", "y_train", "x_test", "y_test")))


def hog(options: Namespace) -> dict[str, Any]:
    """Time HOG and skimage with the same parameters, and compare the features."""
    from skimage.feature import hog as skimage_hog

    images = load("mnist", options.fast).X[:10_000]
    transformer = HOG(cell_size=4, block_size=2, bins=12)
    transformer.transform(images[:2])
    runs = [timed(lambda: transformer.transform(images)) for _ in range(REPEATS)]
    found, other = timed(
        lambda: [skimage_hog(image, 12, (4, 4), (2, 2)) for image in images]
    )
    seconds = statistics.median(times.seconds for _, times in runs)
    loads = [times.others_cores for times in (other, *(times for _, times in runs))]
    return {
        "n": len(images),
        "seconds": seconds,
        "skimage_seconds": other.seconds,
        "ratio": other.seconds / seconds,
        "largest_difference": float(abs(runs[0][0] - np.array(found)).max()),
        "others_cores": max((v for v in loads if v is not None), default=None),
    }


def clean(options: Namespace) -> dict[str, Any]:
    """Time deskewing by both methods, trimming, blurring and HOG of all images."""
    data = load("mnist", options.fast)
    images = np.concatenate([data.X, data.X_test])
    answer: dict[str, Any] = {"n": len(images)}
    for method in ("hough", "moments"):
        pipeline = make_pipeline(
            Deskew(method), Trim(margin=2), GaussianBlur(0.5), HOG(4, 2, 12)
        ).fit(images[:2])
        _, times = timed(lambda p=pipeline: p.transform(images))
        answer[f"{method}_seconds"] = times.seconds
        answer[f"{method}_others_cores"] = times.others_cores
    return answer


class Candidate(NamedTuple):
    """A pipeline of features with parameters of the classifier."""

    features: Pipeline
    C: float
    factor: float  #: gamma times the mean squared distance of two samples

    def __str__(self) -> str:
        steps = " + ".join(repr(step) for _, step in self.features.steps)
        text = " ".join(steps.split())
        return f"{text}, C={self.C:g}, gamma={self.factor:g}/mean squared distance"


def _soft(cell: int, block: int, bins: int, norm: str, *before: Any) -> Pipeline:
    return make_pipeline(*before, HOG(cell, block, bins, norm, True, True))


def digit_candidates() -> list[Candidate]:
    """Return pipelines for MNIST."""
    kinds = product((2, 3), ("L2-Hys", "L1-sqrt"))
    features = [_soft(4, b, 12, norm, Deskew("moments")) for b, norm in kinds]
    return [Candidate(f, 5.0, g) for f, g in product(features, (1.0, 2.0))]


def photograph_candidates() -> list[Candidate]:
    """Return pipelines for CIFAR-10."""
    kinds = product((6, 8), (12, 18), ("L2-Hys", "L1-sqrt"))
    features = [_soft(cell, 2, bins, norm) for cell, bins, norm in kinds]
    return [Candidate(f, 5.0, g) for f, g in product(features, (1.0, 2.0))]


def _fit(F: NDArray, y: NDArray, candidate: Candidate) -> SVC:
    # The mean of |x - z|^2 over all pairs of samples.
    distance = 2.0 * float(F.var(axis=0, dtype=np.float64).sum())
    return SVC(C=candidate.C, gamma=candidate.factor / distance).fit(F, y)


def _choose(
    candidates: Sequence[Candidate],
    X: NDArray,
    y: NDArray,
    splits: Sequence[tuple[NDArray, NDArray]],
) -> tuple[Candidate, float]:
    """Return the candidate with the highest mean accuracy over the splits."""
    best, most, features, last = candidates[0], -1.0, np.empty(0), None
    for candidate in candidates:
        if candidate.features is not last:
            features, last = candidate.features.fit_transform(X), candidate.features
        scores = [
            _fit(features[a], y[a], candidate).score(features[b], y[b])
            for a, b in splits
        ]
        score = float(np.mean(scores))
        console.print(f"  {100 * score:.2f} %  {candidate}", soft_wrap=True)
        if score > most:
            best, most = candidate, score
    return best, most


def _final(best: Candidate, data: Images, n: int) -> dict[str, Any]:
    """Fit the chosen candidate to ``n`` training images, and score the test images."""
    started = time.perf_counter()
    features = best.features.fit_transform(data.X[:n])
    test = best.features.transform(data.X_test)
    prepared = time.perf_counter()
    model = _fit(features, data.y[:n], best)
    fitted = time.perf_counter()
    accuracy = model.score(test, data.y_test)
    return {
        "n": n,
        "n_test": len(data.y_test),
        "n_features": features.shape[1],
        "chosen": str(best),
        "test_accuracy": float(accuracy),
        "features_seconds": prepared - started,
        "fit_seconds": fitted - prepared,
        "predict_seconds": time.perf_counter() - fitted,
        "n_support": len(model.support_),
        "is_converged": bool(model.converged_),
    }


def mnist(n: int, is_fast: bool) -> dict[str, Any]:
    """Choose on the last training images, fit to the first ``n``, and test."""
    data = load("mnist", is_fast)
    n_validation = 200 if is_fast else N_VALIDATION
    n = min(n, len(data.X))
    last = np.arange(len(data.X) - n_validation, len(data.X))
    first = np.arange(min(n, last[0]))
    rows = np.concatenate([first, last])
    split = (np.arange(len(first)), np.arange(len(first), len(rows)))
    best, score = _choose(digit_candidates(), data.X[rows], data.y[rows], [split])
    return {"validation_accuracy": score, **_final(best, data, n)}


def cifar10(options: Namespace) -> dict[str, Any]:
    """Choose by five folds of the training images, fit to all of them, and test."""
    data = load("cifar10_subset", options.fast)
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    splits = list(folds.split(data.X, data.y))
    best, score = _choose(photograph_candidates(), data.X, data.y, splits)
    return {"validation_accuracy": score, **_final(best, data, len(data.X))}


PARTS: dict[str, Part] = {
    "hog": hog,
    "clean": clean,
    "mnist-5000": lambda options: mnist(5000, options.fast),
    "mnist-60000": lambda options: mnist(60_000, options.fast),
    "cifar10": cifar10,
}


def main() -> int:
    """Run the parts named on the command line."""
    files = ["mnist.npz", "cifar10_subset.npz"]
    return run_parts("images", __doc__, PARTS, files)


if __name__ == "__main__":
    sys.exit(main())
