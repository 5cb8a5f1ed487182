"""Data sets, and splits with exact sizes.

Loaders and toy sets return ``(X, y)``, or a Bunch with ``as_bunch=True``.
"""

from mercer.datasets.cifar import load_cifar10
from mercer.datasets.digits import load_digits
from mercer.datasets.libsvm import load_libsvm
from mercer.datasets.mnist import load_mnist
from mercer.datasets.splits import (
    per_class_split,
    stratified_folds,
    train_validation_test_split,
)
from mercer.datasets.stream import noisy_stream
from mercer.datasets.toys import make_clouds, make_moons, make_rings, make_sheet

__all__ = [
    "load_cifar10",
    "load_digits",
    "load_libsvm",
    "load_mnist",
    "make_clouds",
    "make_moons",
    "make_rings",
    "make_sheet",
    "noisy_stream",
    "per_class_split",
    "stratified_folds",
    "train_validation_test_split",
]
