"""Model selection for the price of one kernel matrix."""

from mercer.selection.curves import (
    PathPoint,
    cross_val_decision,
    svm_path,
    validation_curve,
)
from mercer.selection.holdout import HoldoutResult, holdout_search
from mercer.selection.search import GridSearchCV, RandomizedSearchCV
from mercer.selection.searching import Sharing

__all__ = [
    "GridSearchCV",
    "HoldoutResult",
    "PathPoint",
    "RandomizedSearchCV",
    "Sharing",
    "cross_val_decision",
    "holdout_search",
    "svm_path",
    "validation_curve",
]
