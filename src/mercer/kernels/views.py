"""Names of groups of columns that travel with the data.

A kernel may look at a view by name, ``rbf@hog``.  What columns that is, the data say:
an array from :func:`name_columns`, or a data frame whose columns are called ``hog__0``,
``hog__1``, ...
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["NamedColumns", "name_columns", "views_of"]


class NamedColumns(np.ndarray):
    """A matrix that knows the names of its groups of columns, in ``views``.

    Whatever chooses rows, copies or pickles it keeps the names.  Everything else gives
    a plain array: after arithmetic or a choice of columns they might be wrong.
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
