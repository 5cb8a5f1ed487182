r"""What a kernel is, and how kernels combine.

A kernel is a small parameter object.  It says how to fill a block
:math:`K_{ij} = k(x_i, z_j)` and the diagonal :math:`k(x_i, x_i)`, and nothing about
memory, threads or batches.  Sums, products, positive multiples and integer powers of
kernels are kernels, as are :math:`k(x,z)/\sqrt{k(x,x)\,k(z,z)}` and a kernel that looks
at some columns only.

>>> import numpy as np
>>> from mercer.kernels import RBF, Linear
>>> k = 0.5 * RBF(gamma=1.0) + Linear().on([0])
>>> k.block(np.array([[1.0, 2.0]]), np.array([[1.0, 2.0], [3.0, 2.0]]))
array([[1.5       , 3.00915782]])
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping
from enum import IntEnum
from numbers import Integral, Real
from typing import Any, ClassVar, TypeGuard

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from mercer.kernels.pair import Pair, Samples, as_matrix, columns_key, dense_if_small
from mercer.kernels.views import (
    columns_of,
    is_named,
    names_of,
    views_of,
    views_of_names,
)
from mercer.runtime.public import public

__all__ = [
    "Definiteness",
    "Kernel",
    "Normalized",
    "OnColumns",
    "Power",
    "Product",
    "Scaled",
    "Sum",
    "bind_to_both",
    "is_number",
    "resolve_gamma",
    "seen_by",
    "with_names",
    "with_views",
    "with_views_of",
]


class Definiteness(IntEnum):
    """What a kernel promises about its matrices; the best comes last."""

    #: the matrix of some samples may have negative eigenvalues
    INDEFINITE = 0
    #: nothing is promised
    UNKNOWN = 1
    #: :math:`c^T K c \ge 0` for all c whose sum is 0: all that a machine needs
    CONDITIONAL = 2
    #: :math:`c^T K c \ge 0` for all c
    POSITIVE = 3


@public("mercer.kernels")
class Kernel(BaseEstimator):
    """Base of all kernels.

    A subclass gives :meth:`evaluate` and :meth:`diagonal`, and :meth:`bind` if it has
    parameters that depend on the data. Its :attr:`definiteness` says what is known
    about its matrices.

    See Also
    --------
    RBF : the usual choice.
    parse : a kernel from text.
    Custom : a kernel from a function.
    """

    #: Lets ``np.float64(0.5) * kernel`` reach ``__rmul__``.
    __array_ufunc__ = None

    #: whether every sample of real numbers is allowed, so that a bound kernel need not
    #: look at new samples
    takes_all_samples = False

    def evaluate(self, pair: Pair) -> NDArray:
        """Return the kernel values of a block; the array belongs to the caller.

        Parameters
        ----------
        pair : Pair
            The two sides of the block, and what can be computed from them.

        Returns
        -------
        array of shape (m, n)
            An array of ``pair.xp``.
        """
        raise NotImplementedError

    def diagonal(self, operand: Samples) -> NDArray:
        """Return ``k(x, x)`` for each row, in double precision.

        Parameters
        ----------
        operand : Samples
            The rows.

        Returns
        -------
        ndarray of shape (m,)
        """
        raise NotImplementedError

    def bind(self, X: Any) -> Kernel:
        """Return a copy whose data-dependent parameters are numbers, after checking.

        Parameters
        ----------
        X : array or CSR matrix of shape (n_samples, n_features)
            The samples.

        Returns
        -------
        Kernel

        Raises
        ------
        ValueError
            If a parameter is not allowed, or if the kernel cannot take such samples.
        """
        del X
        return self

    @property
    def definiteness(self) -> Definiteness:
        """What is known about the kernel's matrices, once it is bound."""
        return Definiteness.UNKNOWN

    def children(self) -> tuple[Kernel, ...]:
        """Return the kernels that this one is composed of."""
        return ()

    def block(self, X: Any, Z: Any = None) -> NDArray:
        """Return the values ``k(x_i, z_j)``, computed in one piece.

        For large matrices, :func:`mercer.gram_matrix` uses threads and less memory.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, n_features)
            The samples of the rows.
        Z : array or CSR matrix of shape (n, n_features), default=None
            The samples of the columns; None means X.

        Returns
        -------
        ndarray of shape (m, n)
        """
        bound, *sides = bind_to_both(self, X, Z)
        left, right = (Samples(side) for side in sides)
        pair = Pair(left, left if sides[0] is sides[1] else right)
        return bound.evaluate(pair).astype(pair.dtype, copy=False)

    def diag(self, X: Any) -> NDArray:
        """Return the values ``k(x_i, x_i)``.

        Parameters
        ----------
        X : array or CSR matrix of shape (m, n_features)
            The samples.

        Returns
        -------
        ndarray of shape (m,)
        """
        samples = Samples(as_matrix(X))
        return with_views_of(self, X).bind(samples.X).diagonal(samples)

    def key(self) -> Hashable:
        """Return a key that is equal for equal kernels only."""
        # ``vars`` is faster than ``get_params``, and a key is needed in every block.
        return (type(self), *(_frozen(value) for value in vars(self).values()))

    def is_custom(self) -> bool:
        """Tell whether a user's own function is the kernel, or a part of it."""
        return any(part.is_custom() for part in self.children())

    def leaves(self) -> Iterator[Kernel]:
        """Yield the kernels that are not composed of others."""
        parts = self.children()
        if not parts:
            yield self
        for part in parts:
            yield from part.leaves()

    def on(self, columns: Any) -> Kernel:
        """Return the kernel that looks at some columns only.

        Parameters
        ----------
        columns : list of int or str, slice, mask or str
            Numbers of columns, names of columns of a data frame, both in one list, a
            slice, a mask, or one name, of a column or a view.

        Returns
        -------
        OnColumns

        Examples
        --------
        >>> from mercer.kernels import RBF, Linear
        >>> RBF().on(["age", "income"]) + Linear().on("age")
        Sum(left=OnColumns(columns=['age', 'income'], kernel=RBF()),
            right=OnColumns(columns='age', kernel=Linear()))
        """
        return OnColumns(self, columns)

    def normalized(self) -> Kernel:
        r"""Return the kernel :math:`k(x,z)/\sqrt{k(x,x)\,k(z,z)}`."""
        return Normalized(self)

    def __add__(self, other: Any) -> Kernel:
        return Sum(self, other) if isinstance(other, Kernel) else NotImplemented

    def __mul__(self, other: Any) -> Kernel:
        if isinstance(other, Kernel):
            return Product(self, other)
        return Scaled(self, other) if isinstance(other, Real) else NotImplemented

    def __rmul__(self, other: Any) -> Kernel:
        return Scaled(self, other) if isinstance(other, Real) else NotImplemented

    def __pow__(self, exponent: int) -> Kernel:
        return Power(self, exponent)


def bind_to_both(kernel: Kernel, X: Any, Z: Any) -> tuple[Kernel, Any, Any]:
    """Return a kernel bound to ``Z``, or ``X`` if None, and the matrices of both."""
    left = as_matrix(X)
    right = left if Z is None else as_matrix(Z)
    if left.shape[1] != right.shape[1]:
        shapes = f"{left.shape} and {right.shape}"
        raise ValueError(f"X and Z must have the same columns; got shapes {shapes}.")
    bound = with_views_of(kernel, X if Z is None else Z).bind(right)
    if left is not right:
        bound.bind(left)  # checks the data; the numbers of the kernel stay
    return bound, left, right


def seen_by(kernels: Iterable[Kernel], X: Any) -> Any:
    """Return samples as kernels see them in a fit: few sparse ones are made dense.

    A user's own function gets the samples as they were given.
    """
    return X if any(kernel.is_custom() for kernel in kernels) else dense_if_small(X)


def evaluate_once(kernel: Kernel, pair: Pair) -> NDArray:
    """Evaluate a part of an expression once per block; do not change the result."""
    while isinstance(kernel, OnColumns):
        kernel, pair = kernel.kernel, pair.on(kernel.columns)
    return pair.once(kernel.key(), lambda: kernel.evaluate(pair))


def scaled_by_both(
    pair: Pair, values: NDArray, left: NDArray, right: NDArray
) -> NDArray:
    """Multiply a block by factors of its rows and factors of its columns."""
    left, right = (side.astype(values.dtype) for side in (left, right))
    values = pair.elementwise(pair.xp.multiply, values, left[:, None])
    return pair.elementwise(pair.xp.multiply, values, right)


def is_number(value: Any) -> TypeGuard[float]:
    """Tell whether a value is a finite real number."""
    is_real = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    return is_real and math.isfinite(value)


def _frozen(value: Any) -> Hashable:
    if isinstance(value, Kernel):
        return value.key()
    if isinstance(value, np.ndarray):
        return (value.shape, value.dtype.str, value.tobytes())
    return value if isinstance(value, Hashable) else repr(value)


def resolve_gamma(gamma: float | str, X: Any) -> float:
    """Turn ``"scale"``, 1 / (d var X), or ``"auto"``, 1 / d, into a number."""
    if is_number(gamma) and gamma >= 0:
        return float(gamma)
    d = max(X.shape[1], 1)
    if isinstance(gamma, str) and gamma == "auto":
        return 1.0 / d
    if isinstance(gamma, str) and gamma == "scale":
        if 0 in X.shape:
            return 1.0
        if sparse.issparse(X):
            X = X.astype(np.float64, copy=False)
            variance = float(X.multiply(X).mean() - X.mean() ** 2)
        else:
            variance = float(X.var(dtype=np.float64))
        return 1.0 / (d * variance) if variance > 0 else 1.0
    raise ValueError(
        f"gamma must be a finite number >= 0, 'scale' or 'auto', got {gamma!r}."
    )


class _Binary(Kernel):
    """Two kernels joined by an elementwise operation."""

    _operation: ClassVar[str]  #: its name among the array functions

    def __init__(self, left: Kernel, right: Kernel):
        self.left = left
        self.right = right

    def children(self) -> tuple[Kernel, ...]:
        return (self.left, self.right)

    def bind(self, X: Any) -> Kernel:
        return type(self)(self.left.bind(X), self.right.bind(X))

    def evaluate(self, pair: Pair) -> NDArray:
        left, right = evaluate_once(self.left, pair), evaluate_once(self.right, pair)
        return pair.elementwise(getattr(pair.xp, self._operation), left, right)

    def diagonal(self, operand: Samples) -> NDArray:
        join = getattr(np, self._operation)
        return join(self.left.diagonal(operand), self.right.diagonal(operand))


@public("mercer.kernels")
class Sum(_Binary):
    """The sum of two kernels, ``left + right``.

    Samples are similar if they are similar in one part or the other.

    Parameters
    ----------
    left, right : Kernel
        The parts.

    See Also
    --------
    Product : samples are similar if they are similar in both.
    mercer.MKLClassifier : learns the weights of a sum.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import RBF, Linear
    >>> k = RBF(gamma=1.0) + Linear()
    >>> k.block(np.array([[1.0, 2.0]]))
    array([[6.]])
    """

    _operation = "add"

    @property
    def definiteness(self) -> Definiteness:
        return min(self.left.definiteness, self.right.definiteness)


def _of_factors(*factors: Definiteness) -> Definiteness:
    """Return what is known about a product of kernels.

    A product of kernels that are only conditionally definite may be indefinite.
    """
    least = min(factors)
    conditional = least == Definiteness.CONDITIONAL
    return Definiteness.INDEFINITE if conditional else least


@public("mercer.kernels")
class Product(_Binary):
    """The product of two kernels, ``left * right``, value by value.

    Samples are similar if they are similar in both parts.

    Parameters
    ----------
    left, right : Kernel
        The parts.

    See Also
    --------
    Sum : samples are similar if they are similar in one of two.
    Power : a kernel times itself.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Cosine, Linear
    >>> k = Linear() * Cosine()
    >>> k.block(np.array([[3.0, 4.0]]))
    array([[25.]])
    """

    _operation = "multiply"

    @property
    def definiteness(self) -> Definiteness:
        return _of_factors(self.left.definiteness, self.right.definiteness)


class _Unary(Kernel):
    """A kernel made of another one."""

    kernel: Kernel

    def children(self) -> tuple[Kernel, ...]:
        return (self.kernel,)


@public("mercer.kernels")
class Scaled(_Unary):
    """A multiple of a kernel, ``factor * kernel``, with a factor >= 0.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    factor : float
        The factor.

    See Also
    --------
    Sum : adds kernels with their factors.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> (0.5 * Linear()).block(np.array([[3.0, 4.0]]))
    array([[12.5]])
    """

    def __init__(self, kernel: Kernel, factor: Any):
        self.kernel = kernel
        self.factor = factor

    @property
    def definiteness(self) -> Definiteness:
        return self.kernel.definiteness if self.factor else Definiteness.POSITIVE

    def bind(self, X: Any) -> Kernel:
        if not (is_number(self.factor) and self.factor >= 0):
            raise ValueError(
                f"A kernel's factor must be a finite number >= 0, got {self.factor!r}: "
                "a negative multiple is not a kernel."
            )
        return Scaled(self.kernel.bind(X), float(self.factor))

    def evaluate(self, pair: Pair) -> NDArray:
        values = evaluate_once(self.kernel, pair)
        return pair.elementwise(pair.xp.multiply, values, self.factor)

    def diagonal(self, operand: Samples) -> NDArray:
        return self.factor * self.kernel.diagonal(operand)


@public("mercer.kernels")
class Power(_Unary):
    """A power of a kernel, ``kernel ** exponent``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    exponent : int
        A whole number >= 1.

    See Also
    --------
    Polynomial : a power of products.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> (Linear() ** 2).block(np.array([[3.0, 4.0]]))
    array([[625.]])
    """

    def __init__(self, kernel: Kernel, exponent: int):
        self.kernel = kernel
        self.exponent = exponent

    @property
    def definiteness(self) -> Definiteness:
        part = self.kernel.definiteness
        return part if self.exponent == 1 else _of_factors(part)

    def bind(self, X: Any) -> Kernel:
        if not (isinstance(self.exponent, Integral) and self.exponent >= 1):
            raise ValueError(
                "A kernel's exponent must be a whole number >= 1, got "
                f"{self.exponent!r}: other powers are not kernels."
            )
        return Power(self.kernel.bind(X), int(self.exponent))

    def evaluate(self, pair: Pair) -> NDArray:
        return pair.power(evaluate_once(self.kernel, pair), self.exponent)

    def diagonal(self, operand: Samples) -> NDArray:
        return self.kernel.diagonal(operand) ** self.exponent


@public("mercer.kernels")
class Normalized(_Unary):
    r"""A kernel with 1 on the diagonal, :math:`k(x,z)/\sqrt{k(x,x)\,k(z,z)}`.

    Values are 0 where a diagonal value is not > 0. ``kernel.normalized()`` makes it.

    Parameters
    ----------
    kernel : Kernel
        The kernel.

    See Also
    --------
    Cosine : the linear kernel, normalised.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Polynomial
    >>> Polynomial(2, gamma=1.0).normalized().block(np.array([[3.0, 4.0]]))
    array([[1.]])
    """

    def __init__(self, kernel: Kernel):
        self.kernel = kernel

    @property
    def definiteness(self) -> Definiteness:
        return _of_factors(self.kernel.definiteness)

    def bind(self, X: Any) -> Kernel:
        return Normalized(self.kernel.bind(X))

    def _inverse_root(self, operand: Samples) -> NDArray:
        def make(own: Samples) -> NDArray:
            diag = self.kernel.diagonal(own)
            return np.where(diag > 0, 1.0 / np.sqrt(np.where(diag > 0, diag, 1.0)), 0.0)

        return operand.keep(("inverse root", self.kernel.key()), make)

    def evaluate(self, pair: Pair) -> NDArray:
        values = evaluate_once(self.kernel, pair)
        left, right = map(self._inverse_root, (pair.left, pair.right))
        return scaled_by_both(pair, values, left, right)

    def diagonal(self, operand: Samples) -> NDArray:
        return (self._inverse_root(operand) > 0).astype(np.float64)


@public("mercer.kernels")
class OnColumns(_Unary):
    """A kernel that looks at some of the columns.

    ``kernel.on(columns)`` makes it, and so does ``@`` in text:
    ``"rbf@[age, income]"``.

    Parameters
    ----------
    kernel : Kernel
        The kernel.
    columns : list of int or str, slice, mask or str
        Numbers or names of columns, or the name of a view.

    See Also
    --------
    name_columns : gives names to groups of columns.
    mercer.images.Views : computes features side by side, with names.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.kernels import Linear
    >>> Linear().on([0]).block(np.array([[3.0, 4.0]]))
    array([[9.]])
    """

    def __init__(self, kernel: Kernel, columns: Any):
        self.kernel = kernel
        self.columns = columns

    @property
    def definiteness(self) -> Definiteness:
        return self.kernel.definiteness

    def bind(self, X: Any) -> Kernel:
        columns = self._indices(X.shape[1])
        return OnColumns(self.kernel.bind(X[:, columns]), columns)

    def key(self) -> Hashable:
        return (OnColumns, self.kernel.key(), columns_key(self.columns))

    def _indices(self, width: int) -> Any:
        columns = self.columns
        if is_named(columns):
            what = "column or view" if isinstance(columns, str) else "columns"
            first = columns
            if not isinstance(columns, str):
                first = next(c for c in columns if isinstance(c, str))
            raise ValueError(
                f"The kernel looks at the {what} {columns!r}, but no views are known "
                "here, and the data are not a data frame with names. Pass a data "
                "frame (steps of a pipeline before the machine keep the names with "
                "set_output(transform='pandas')), or data straight from images.Views "
                "or kernels.name_columns, or give the columns: kernels.with_views("
                f"kernel, {{{first!r}: ...}})."
            )
        if isinstance(columns, slice):
            columns = range(width)[columns]
        if isinstance(columns, range) and columns:
            # A range may have more entries than fit into memory.
            first, last = columns[0], columns[-1]
            _check_bounds(min(first, last), max(first, last), width)
            if columns.step == 1 and columns[0] >= 0:
                return slice(columns[0], columns[-1] + 1)
        index = np.asarray(columns)
        if index.dtype == bool and index.ndim == 1:
            if len(index) != width:
                raise ValueError(
                    f"A mask of columns has {len(index)} entries, and the data have "
                    f"{width} columns. Give one entry for each column."
                )
            index = np.flatnonzero(index)
        if index.size == 0:
            raise ValueError(
                f"A kernel on columns {columns!r} has no column left. Choose at least "
                f"one of the {width} columns of the data."
            )
        if index.dtype.kind not in "iu" or index.ndim != 1:
            raise ValueError(f"Columns must be whole numbers, got {columns!r}.")
        _check_bounds(index.min(), index.max(), width)
        index = index % width
        if (np.diff(index) == 1).all():
            return slice(int(index[0]), int(index[-1]) + 1)
        return index

    def evaluate(self, pair: Pair) -> NDArray:
        return self.kernel.evaluate(pair.on(self.columns))

    def diagonal(self, operand: Samples) -> NDArray:
        return self.kernel.diagonal(operand.columns(self.columns))


def _check_bounds(least: int, most: int, width: int) -> None:
    """Refuse numbers of columns that the data do not have."""
    if least < -width or most >= width:
        raise ValueError(
            f"Columns {least} to {most} were asked for; the data have {width}, from 0 "
            f"to {width - 1}."
        )


@public("mercer.kernels")
def with_views(kernel: Kernel, views: Mapping[str, Any]) -> Kernel:
    """Return the kernel with names of columns and views replaced by their columns.

    Parameters
    ----------
    kernel : Kernel
        The kernel; ``kernel.on("hog")`` or ``"rbf@hog"`` name a view.
    views : mapping of str to columns
        The columns of each name: a slice, a list of numbers or a mask.

    Returns
    -------
    Kernel

    Raises
    ------
    ValueError
        If the kernel uses a name that is not among the views.
    """
    changed = {
        name: with_views(value, views)
        for name, value in kernel.get_params(deep=False).items()
        if isinstance(value, Kernel)
    }
    if isinstance(kernel, OnColumns):
        _check_not_inside(kernel.kernel, kernel.columns)
        if is_named(kernel.columns):
            changed["columns"] = columns_of(kernel.columns, views)
    return type(kernel)(**{**kernel.get_params(deep=False), **changed})


def _check_not_inside(kernel: Kernel, columns: Any) -> None:
    """Refuse names inside chosen columns: names are those of all columns."""
    if isinstance(kernel, OnColumns) and is_named(kernel.columns):
        raise ValueError(
            f"The kernel looks at {kernel.columns!r} inside the columns {columns!r}, "
            "where columns have numbers from 0 and no names. Give the numbers, or "
            "choose columns only once."
        )
    for part in kernel.children():
        _check_not_inside(part, columns)


def with_names(kernel: Kernel, views: Mapping[str, Any] | None, names: Any) -> Kernel:
    """Return the kernel for data that have these views and names of columns, if any."""
    known = {} if names is None else views_of_names(names)
    known.update(views or {})
    return with_views(kernel, known) if known else kernel


def with_views_of(kernel: Kernel, X: Any) -> Kernel:
    """Return the kernel with the columns and views that the data name, if any."""
    return with_names(kernel, views_of(X), names_of(X))
