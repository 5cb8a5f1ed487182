"""Model selection for the price of one kernel matrix."""

from mercer.datasets import train_validation_test_split
from mercer.selection.curves import (
    HoldoutResult,
    PathPoint,
    cross_val_decision,
    holdout_search,
    svm_path,
    validation_curve,
)
from mercer.selection.search import GridSearchCV, RandomizedSearchCV, Sharing

__all__ = [
    "GridSearchCV",
    "HoldoutResult",
    "PathPoint",
    "RandomizedSearchCV",
    "Sharing",
    "cross_val_decision",
    "holdout_search",
    "svm_path",
    "train_validation_test_split",
    "validation_curve",
]
