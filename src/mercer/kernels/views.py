"""Names of columns, and of groups of columns, that travel with the data.

A kernel may look at columns by name, ``rbf@age`` or ``rbf@[age, income]``, or at a
view, ``rbf@hog``.  The data say which columns these are: a data frame by the names of
its columns, of which ``hog__0``, ``hog__1``, ... are also the view ``hog``, or an array
from :func:`name_columns`.  A name that is both a column and a view is the view.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.runtime.public import public
from mercer.runtime.scikit_learn import get_feature_names

__all__ = [
    "NamedColumns",
    "columns_of",
    "is_named",
    "name_columns",
    "names_of",
    "unknown_name",
    "views_of",
    "views_of_names",
]

# Number of names that a message lists; a table may have thousands.
MOST_LISTED = 10


class NamedColumns(np.ndarray):
    """A matrix that knows the names of its groups of columns, in ``views``.

    Choosing rows, copying and pickling keep the names.  Everything else returns a plain
    array: after arithmetic or a choice of columns, the names might be wrong.
    """

    views: dict[str, slice]

    def __array_finalize__(self, obj: Any) -> None:
        self.views = {}

    def __array_wrap__(self, array: Any, context: Any = None, scalar: bool = False):
        return array[()] if scalar else np.asarray(array)

    def __getitem__(self, key: Any) -> Any:
        found = super().__getitem__(key)
        if not isinstance(found, np.ndarray):
            return found
        return self._named(found) if self._is_of_rows(key) else np.asarray(found)

    def _is_of_rows(self, key: Any) -> bool:
        """Tell whether an index chooses rows and leaves columns alone."""
        first, *rest = key if isinstance(key, tuple) else (key,)
        if rest and not (rest == [Ellipsis] or rest == [slice(None)]):
            return False
        if isinstance(first, slice):
            return True
        return first is not None and first is not Ellipsis and np.ndim(first) == 1

    def _named(self, array: NDArray) -> NamedColumns:
        return name_columns(array, self.views)

    def copy(self, order: Any = "C") -> NamedColumns:
        """Return a copy with the same names."""
        return self._named(super().copy(order))

    def take(
        self, indices: Any, axis: Any = None, out: Any = None, mode: Any = "raise"
    ):
        """Choose rows (``axis=0``), with the same names, or anything else, without."""
        found = np.asarray(self).take(indices, axis=axis, out=out, mode=mode)
        is_of_rows = axis == 0 and np.ndim(indices) == 1 and out is None
        return self._named(found) if is_of_rows else found

    def __reduce__(self) -> Any:
        return name_columns, (np.asarray(self), self.views)


@public("mercer.kernels")
def name_columns(X: NDArray, views: Mapping[str, slice]) -> NamedColumns:
    """Return the matrix with names for groups of its columns.

    Parameters
    ----------
    X : ndarray of shape (n_samples, n_features)
        The samples; not copied.
    views : dict of slices
        The columns of each view.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import kernels
    >>> X = kernels.name_columns(np.eye(3), {"a": slice(0, 1), "b": slice(1, 3)})
    >>> kernels.parse("linear@b").block(X)
    array([[0., 0., 0.],
           [0., 1., 0.],
           [0., 0., 1.]])
    """
    named = np.asarray(X).view(NamedColumns)
    named.views = dict(views)
    return named


def views_of(X: Any) -> dict[str, Any]:
    """Return the columns of each view that the data name; none for plain data."""
    if isinstance(X, NamedColumns):
        return X.views
    names = getattr(X, "columns", ())
    views: dict[str, list[int]] = {}
    for k, name in enumerate(() if callable(names) else names):
        if isinstance(name, str) and "__" in name:
            views.setdefault(name.split("__")[0], []).append(k)
    return {name: np.array(columns) for name, columns in views.items()}


def names_of(X: Any) -> NDArray | None:
    """Return the names of the columns of a data frame; None for other data."""
    return get_feature_names(X)


def views_of_names(names: Iterable[str]) -> dict[str, Any]:
    """Return for each name of a column where the columns of this name are."""
    found: dict[str, list[int]] = {}
    for k, name in enumerate(names):
        found.setdefault(name, []).append(k)
    return found


def is_named(columns: Any) -> bool:
    """Tell whether columns are given by name: one name, or names in a list."""
    if isinstance(columns, str):
        return True
    if isinstance(columns, slice | range) or np.ndim(columns) != 1:
        return False
    return any(isinstance(column, str) for column in columns)


def columns_of(columns: Any, views: Mapping[str, Any]) -> Any:
    """Return the columns that a name stands for, or the names in a list."""
    if isinstance(columns, str):
        if columns not in views:
            raise ValueError(unknown_name(columns, views))
        return views[columns]
    found: list[int] = []
    for column in columns:
        found += _numbers(column, views) if isinstance(column, str) else [column]
    return found


def _numbers(name: str, views: Mapping[str, Any]) -> list[int]:
    """Return the columns of a view as numbers, so that others can stand beside them."""
    columns = columns_of(name, views)
    if isinstance(columns, slice):
        start, stop, step = columns.start or 0, columns.stop, columns.step or 1
        if stop is None or min(start, stop, step) < 0:
            raise ValueError(
                f"The view {name!r} is {columns}, whose columns cannot be counted "
                "without the data. Give it a start and a stop, not negative."
            )
        return list(range(start, stop, step))
    index = np.asarray(columns)
    return (np.flatnonzero(index) if index.dtype == bool else index).tolist()


def unknown_name(name: str, known: Iterable[str]) -> str:
    """Return a message on a name that is not among those known."""
    names = sorted(known)
    close = get_close_matches(name, names, n=3)
    hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
    listed = ", ".join(names[:MOST_LISTED]) or "none"
    if len(names) > MOST_LISTED:
        listed += f" and {len(names) - MOST_LISTED} more"
    return f"Unknown column or view {name!r}.{hint} Known: {listed}."
