"""The data: real sets from the folder MERCER_DATA, and small sets for smoke runs."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from benchmarks.cases import Case

__all__ = [
    "Data",
    "covtype_like",
    "histograms",
    "letter_like",
    "load",
    "missing_data",
    "missing_files",
    "mnist",
    "satimage_like",
    "standardised",
    "warm_part",
]

FILES = {
    "mnist": "mnist.npz",
    "a9a": "a9a.npz",
    "a9a-sparse": "a9a.npz",
    "ijcnn1": "ijcnn1.npz",
    "california": "california_housing.npz",
}
FAST_HINT = " Or use --fast, which needs no data files."
HISTOGRAM_BINS = 500
# From 1025 rows on, Mercer checks whether leaving out zeros is faster.
WARM_ROWS = 1100


class Data(NamedTuple):
    """Training and test samples, dense or CSR; classes are 0, 1, ...

    Samples are in single precision, for regression in double precision.
    """

    X: Any
    y: NDArray
    X_test: Any
    y_test: NDArray


def missing_data(cases: Iterable[Case]) -> str | None:
    """Return a message if the data of the cases are not on this machine, or None."""
    return missing_files({FILES[case.data] for case in cases if case.data in FILES})


def missing_files(needed: Iterable[str], hint: str = FAST_HINT) -> str | None:
    """Return a message if one of the files is not in MERCER_DATA, or None."""
    needed = sorted(needed)
    if not needed:
        return None
    files = ", ".join(needed)
    folder = os.environ.get("MERCER_DATA")
    if not folder:
        return f"MERCER_DATA is not set. Set it to the folder that holds {files}.{hint}"
    absent = [name for name in needed if not Path(folder, name).is_file()]
    if absent:
        return (
            f"MERCER_DATA={folder} lacks {', '.join(absent)}. "
            f"Set it to the folder that holds {files}.{hint}"
        )
    return None


def load(case: Case) -> Data:
    """Return the data of a case: the first ``n`` and the first ``n_test`` samples."""
    if case.data.endswith("-sparse"):
        return _sparse(load(case._replace(data=case.data.removesuffix("-sparse"))))
    if case.data in ("california", "waves"):
        return _values(case)
    if case.data == "digits":
        return _digits(case)
    if case.data == "blobs":
        return _blobs(case)
    if case.data == "hundred":
        return _hundred(case)
    if case.data == "letter":
        X, y = letter_like(case.n + case.n_test, case.seed)
        X = X.astype(np.float32)
        return Data(X[: case.n], y[: case.n], X[case.n :], y[case.n :])
    with np.load(Path(os.environ["MERCER_DATA"], FILES[case.data])) as file:
        scale = 255 if case.data == "mnist" else 1
        X = _samples(file["x_train"], case.n, scale)
        X_test = _samples(file["x_test"], case.n_test, scale)
        classes, y = np.unique(file["y_train"], return_inverse=True)
        y_test = np.searchsorted(classes, file["y_test"])
    return Data(X, y[: case.n], X_test, y_test[: case.n_test])


def mnist(n: int, is_fast: bool) -> tuple[NDArray[np.float32], NDArray]:
    """Return ``n`` training images of MNIST as rows, and their classes.

    If fast, they are images of scikit-learn's digits.
    """
    data = load(Case("", "", "fit", "digits" if is_fast else "mnist", n))
    return data.X, data.y


def _samples(raw: NDArray, n: int, scale: float) -> NDArray[np.float32]:
    # The division is in place: a temporary copy would raise the peak of memory.
    X = raw[:n].reshape(min(n, len(raw)), raw[0].size).astype(np.float32)
    X /= scale
    return X


def _digits(case: Case) -> Data:
    from sklearn.datasets import load_digits

    images, y = load_digits(return_X_y=True)
    X = (images / 16).astype(np.float32)
    stop = case.n + case.n_test
    return Data(X[: case.n], y[: case.n], X[case.n : stop], y[case.n : stop])


def _blobs(case: Case) -> Data:
    """Return two overlapping clouds of points in 20 dimensions."""
    rng = np.random.default_rng(case.seed)
    y = rng.integers(2, size=case.n + case.n_test)
    X = rng.standard_normal((len(y), 20), dtype=np.float32)
    X += 0.6 * y[:, None].astype(np.float32)
    return Data(X[: case.n], y[: case.n], X[case.n :], y[case.n :])


def _hundred(case: Case) -> Data:
    """Return equally many samples around each of 100 centres in 50 dimensions."""
    rng = np.random.default_rng(case.seed)
    centers = rng.standard_normal((100, 50)) * 1.2
    y, y_test = (np.repeat(np.arange(100), n // 100) for n in (case.n, case.n_test))
    X, X_test = (
        (centers[labels] + rng.standard_normal((len(labels), 50))).astype(np.float32)
        for labels in (y, y_test)
    )
    return Data(X, y, X_test, y_test)


def _sparse(data: Data) -> Data:
    X, X_test = (sparse.csr_array(np.maximum(A, 0)) for A in (data.X, data.X_test))
    return data._replace(X=X, X_test=X_test)


def _values(case: Case) -> Data:
    """Return standardised samples and targets for regression, in random order."""
    rng = np.random.default_rng(case.seed)
    if case.data == "california":
        with np.load(Path(os.environ["MERCER_DATA"], FILES[case.data])) as file:
            X, y = file["x"], file["y"]
    else:
        X = rng.standard_normal((case.n + case.n_test, 4))
        y = np.sin(2 * X).sum(axis=1) + 0.1 * rng.standard_normal(len(X))
    order = rng.permutation(len(X))[: case.n + case.n_test]
    X, y = X[order], y[order]
    X = (X - X[: case.n].mean(axis=0)) / X[: case.n].std(axis=0)
    y = (y - y[: case.n].mean()) / y[: case.n].std()
    return Data(X[: case.n], y[: case.n], X[case.n :], y[case.n :])


def histograms(case: Case) -> NDArray[np.float32]:
    """Return random rows that sum to 1, with most of the mass in few bins."""
    rng = np.random.default_rng(case.seed)
    X = rng.random((case.n, HISTOGRAM_BINS), dtype=np.float32) ** 4
    return X / X.sum(axis=1, keepdims=True)


def standardised(X: NDArray) -> NDArray:
    """Return columns with mean 0 and variance 1; a constant column becomes 0."""
    spread = X.std(axis=0)
    return (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)


def letter_like(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray]:
    """Return measures of 26 letters in 20 fonts: 16 whole numbers from 0 to 15.

    The sizes, and how well classes can be told apart, are those of UCI's letters.
    """
    rng = np.random.default_rng(seed)
    letters = rng.normal(7.5, 1.7, (26, 16))
    fonts = rng.normal(0.0, 0.8, (20, 16))
    shapes = rng.normal(0.0, 1.0, (26, 20, 16))
    mixing = rng.normal(0.0, 0.25, (16, 16))
    y, font = rng.integers(26, size=n), rng.integers(20, size=n)
    X = letters[y] + fonts[font] + shapes[y, font]
    X += 1.5 * rng.standard_normal((n, 16)) @ mixing
    X += 0.65 * rng.standard_normal((n, 16))
    return np.clip(np.rint(X), 0.0, 15.0), y


# Brightness of six kinds of ground in four bands of light, and how often each occurs.
GROUNDS = np.array([
    [63.0, 95.0, 108.0, 88.0], [49.0, 40.0, 114.0, 119.0], [87.0, 105.0, 111.0, 87.0],
    [77.0, 91.0, 96.0, 75.0], [60.0, 62.0, 83.0, 70.0], [69.0, 77.0, 82.0, 64.0],
])  # fmt: skip
GROUND_SHARES = (0.24, 0.11, 0.21, 0.10, 0.11, 0.23)


def satimage_like(n: int, seed: int = 0) -> tuple[NDArray[np.float64], NDArray]:
    """Return 3 x 3 pixels in four bands (36 columns), and the ground of the middle one.

    Neighbouring pixels are alike; some of them lie on another kind of ground.
    """
    rng = np.random.default_rng(seed)
    y = rng.choice(6, size=n, p=GROUND_SHARES)
    ground = np.repeat(y[:, None], 9, axis=1)
    is_other = rng.random((n, 9)) < 0.12
    is_other[:, 4] = False
    ground[is_other] = rng.choice(6, size=int(is_other.sum()), p=GROUND_SHARES)
    light = rng.normal(0.0, 7.0, (n, 1, 1)) + rng.normal(0.0, 4.0, (n, 1, 4))
    X = GROUNDS[ground] + light + rng.normal(0.0, 3.5, (n, 9, 4))
    return np.clip(np.rint(X), 27.0, 157.0).reshape(n, 36), y


def covtype_like(
    n: int, seed: int = 0, scaling: str = "standard"
) -> tuple[NDArray[np.float64], NDArray]:
    """Return measures of forest plots, as in UCI's covertype, and one of seven trees.

    Ten columns are numbers, 44 tell the area and the soil of a plot.  Numbers have
    variance 1 if ``scaling`` is "standard", lie between 0 and 1 if it is "minmax", and
    are in their own units if it is "raw".
    """
    rng = np.random.default_rng(seed)
    units = np.array([280.0, 110.0, 7.5, 210.0, 58.0, 1560.0, 27.0, 20.0, 38.0, 1320.0])
    means = np.array(
        [2960.0, 155.0, 14.0, 270.0, 46.0, 2350.0, 212.0, 223.0, 142.0, 1980.0]
    )
    hidden = rng.standard_normal((n, 6))
    numbers = np.tanh(hidden @ rng.normal(0.0, 0.5, (6, 10)))
    numbers += 0.25 * rng.standard_normal((n, 10))
    area = (hidden @ rng.normal(size=(6, 4)) + rng.gumbel(size=(n, 4))).argmax(axis=1)
    wish = 1.5 * hidden @ rng.normal(size=(6, 40)) + rng.normal(0.0, 2.0, (4, 40))[area]
    soil = (wish + rng.gumbel(size=(n, 40))).argmax(axis=1)
    # Trees grow where height, water and soil suit them; the borders are not straight.
    waves = np.sin(1.2 * numbers @ rng.normal(0.0, 0.7, (10, 24)) + rng.normal(size=24))
    suits = waves @ rng.normal(0.0, 0.9, (24, 7)) + rng.normal(0.0, 0.8, (40, 7))[soil]
    suits += np.array([1.3, 1.6, 0.0, -2.5, -1.2, -0.6, -0.4])
    y = (suits + 0.15 * rng.gumbel(size=(n, 7))).argmax(axis=1)
    if scaling == "standard":
        numbers = standardised(numbers)
    elif scaling == "minmax":
        numbers = (numbers - numbers.min(axis=0)) / np.ptp(numbers, axis=0)
    elif scaling == "raw":
        numbers = np.rint(means + units * numbers)
    else:
        raise ValueError(
            f"scaling must be 'standard', 'minmax' or 'raw', got {scaling!r}."
        )
    return np.hstack([numbers, np.eye(4)[area], np.eye(40)[soil]]), y


def warm_part(data: Data) -> tuple[NDArray, NDArray]:
    """Return samples to warm up on, with equally many of each class if possible."""
    order = np.argsort(data.y, kind="stable")
    place = np.empty(len(order), dtype=np.intp)
    place[order] = np.arange(len(order)) - np.searchsorted(data.y[order], data.y[order])
    rows = np.sort(np.argsort(place, kind="stable")[:WARM_ROWS])
    return data.X[rows], data.y[rows]
