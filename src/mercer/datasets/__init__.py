"""Data sets and exact splits: what the studies and the examples run on.

Loaders and toy sets return ``(X, y)``, or a Bunch with ``as_bunch=True``.
"""

from mercer.datasets.splits import (
    per_class_split,
    stratified_folds,
    train_validation_test_split,
)

__all__ = [
    "per_class_split",
    "stratified_folds",
    "train_validation_test_split",
]
