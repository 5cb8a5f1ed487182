"""Model selection for the price of one kernel matrix."""

from mercer.selection.search import GridSearchCV, RandomizedSearchCV, Sharing

__all__ = ["GridSearchCV", "RandomizedSearchCV", "Sharing"]
