"""Code matrices: how a problem of several classes becomes problems of two.

A code is a matrix over {-1, 0, +1} with a row for each class and a column for each
task: class ``c`` is on the side ``code[c, t]`` of task ``t``, or, for 0, is left out.
:mod:`mercer.multiclass.decoding` turns the decision values of the tasks into classes.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from mercer.runtime.public import public

__all__ = [
    "CODES",
    "SCHEMES",
    "check_code",
    "dietterich15",
    "exhaustive",
    "hadamard",
    "make_code",
    "one_vs_one",
    "one_vs_rest",
    "random_code",
    "row_distances",
]

SCHEMES = ("ovo", "ovr", "ecoc")

# An exhaustive code of more classes would have more than 500 columns.
MOST_EXHAUSTIVE = 10
# A random code is the best of so many draws.
DRAWS = 200


@public("mercer.multiclass")
def one_vs_one(n_classes: int) -> NDArray[np.int8]:
    """Return the code of all pairs of classes, (0, 1), (0, 2), ..., (1, 2), ...

    The first class of a pair is the positive side. With two classes in all, the second
    class is the positive side, as everywhere in scikit-learn.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_classes, n_columns)

    Examples
    --------
    >>> one_vs_one(3)
    array([[ 1,  1,  0],
           [-1,  0,  1],
           [ 0, -1, -1]], dtype=int8)
    """
    if n_classes == 2:
        return np.array([[-1], [1]], dtype=np.int8)
    first, second = np.triu_indices(n_classes, 1)
    code = np.zeros((n_classes, len(first)), dtype=np.int8)
    task = np.arange(len(first))
    code[first, task] = 1
    code[second, task] = -1
    return code


@public("mercer.multiclass")
def one_vs_rest(n_classes: int) -> NDArray[np.int8]:
    """Return the code that sets each class against all others.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_classes, n_columns)

    Examples
    --------
    >>> one_vs_rest(3)
    array([[ 1, -1, -1],
           [-1,  1, -1],
           [-1, -1,  1]], dtype=int8)
    """
    if n_classes == 2:
        return np.array([[-1], [1]], dtype=np.int8)
    return (2 * np.eye(n_classes, dtype=np.int8) - 1).astype(np.int8)


@public("mercer.multiclass")
def dietterich15(n_classes: int = 10) -> NDArray[np.int8]:
    """Return the 15 columns of Dietterich & Bakiri (1995) for ten classes.

    The matrix is the one in a report on digits; some of its rows differ in only 6
    columns.

    Parameters
    ----------
    n_classes : int, default=10
        Number of classes, which must be ten.

    Returns
    -------
    ndarray of shape (10, 15)

    Raises
    ------
    ValueError
        If there are not ten classes.
    """
    if n_classes != 10:
        raise ValueError(
            f"code='dietterich15' is for ten classes, but there are {n_classes}. Use "
            "code='hadamard', 'exhaustive', 'random-dense' or your own matrix."
        )
    rows = (
        "++----+-+--++-+", "--++++-+-++--+-", "+--+---++++-+-+", "--++-+++----+-+",
        "+++-+-++--++--+", "-+--++--++----+", "+-+++----+-+--+", "---++++-+-++--+",
        "++-+-++--+---++", "-+++----+-+--++",
    )  # fmt: skip
    return np.array([[1 if c == "+" else -1 for c in r] for r in rows], dtype=np.int8)


@public("mercer.multiclass")
def hadamard(n_classes: int) -> NDArray[np.int8]:
    """Return the rows of a Hadamard matrix, without its constant column.

    If N is the smallest power of 2 that is at least the number of classes, there are
    N - 1 columns, and any two rows differ in N / 2 of them: 8 of 15 for ten classes.

    Parameters
    ----------
    n_classes : int
        Number of classes.

    Returns
    -------
    ndarray of shape (n_classes, N - 1)

    Examples
    --------
    >>> hadamard(4)
    array([[ 1,  1,  1],
           [-1,  1, -1],
           [ 1, -1, -1],
           [-1, -1,  1]], dtype=int8)
    """
    matrix = np.ones((1, 1), dtype=np.int8)
    while len(matrix) < n_classes:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix[:n_classes, 1:]


@public("mercer.multiclass")
def exhaustive(n_classes: int) -> NDArray[np.int8]:
    """Return all divisions of the classes in two: 2 ** (n_classes - 1) - 1 columns.

    Parameters
    ----------
    n_classes : int
        Number of classes, at most ten.

    Returns
    -------
    ndarray of shape (n_classes, n_columns)

    Raises
    ------
    ValueError
        If there are more than ten classes, which would need too many columns.

    Examples
    --------
    >>> exhaustive(3)
    array([[ 1,  1,  1],
           [-1, -1,  1],
           [-1,  1, -1]], dtype=int8)
    """
    if n_classes > MOST_EXHAUSTIVE:
        raise ValueError(
            f"An exhaustive code for {n_classes} classes would have "
            f"{2 ** (n_classes - 1) - 1} columns; it is for at most {MOST_EXHAUSTIVE} "
            "classes. Use code='hadamard' or 'random-dense'."
        )
    number = np.arange(2 ** (n_classes - 1) - 1)
    bits = number >> np.arange(n_classes - 2, -1, -1)[:, None] & 1
    first = np.ones((1, len(number)), dtype=np.int64)
    return np.vstack([first, 2 * bits - 1]).astype(np.int8)


@public("mercer.multiclass")
def random_code(
    n_classes: int,
    n_columns: int | None = None,
    *,
    sparse: bool = False,
    random_state: Any = None,
) -> NDArray[np.int8]:
    """Return the best of many random codes: its closest rows are furthest apart.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    n_columns : int, default=None
        Number of columns. None means 10 log2(n_classes), or 15 log2(n_classes) if
        sparse (Allwein, Schapire & Singer 2000), but not more than there are.
    sparse : bool, default=False
        Whether half of the entries are 0; otherwise none is.
    random_state : int, RandomState instance or None, default=None
        Seed of the draws.

    Returns
    -------
    ndarray of shape (n_classes, n_columns)
    """
    if n_columns is None:
        n_columns = int(np.ceil((15 if sparse else 10) * np.log2(n_classes)))
    if not sparse and n_columns >= 2 ** (n_classes - 1) - 1:
        return exhaustive(n_classes)
    if sparse:
        # A column must have both signs, and two opposite columns count once. Half of
        # these columns at most are used, so that there is a choice.
        there_are = (3**n_classes - 2 ** (n_classes + 1) + 1) // 2
        n_columns = min(n_columns, max(1, there_are // 2))
    random = check_random_state(random_state)
    best, best_distance = None, -1.0
    for _ in range(DRAWS):
        code = _draw(n_classes, n_columns, sparse, random)
        distance = row_distances(code)[np.triu_indices(n_classes, 1)].min()
        if distance > best_distance and (code != 0).any(axis=1).all():
            best, best_distance = code, distance
    if best is None or best_distance <= 0:
        raise ValueError(
            f"No random code of {n_columns} columns tells {n_classes} classes apart. "
            "Raise n_columns."
        )
    return best


def _draw(
    n_classes: int, n_columns: int, sparse: bool, random: np.random.RandomState
) -> NDArray[np.int8]:
    """Draw columns until there are enough different ones."""
    columns: dict[bytes, NDArray] = {}
    while len(columns) < n_columns:
        column = random.choice(
            np.array([-1, 0, 0, 1] if sparse else [-1, 1]), n_classes
        )
        if column.min() < 0 < column.max():
            # Two opposite columns are the same task: keep the one that begins with +1.
            column = column * column[np.flatnonzero(column)[0]]
            columns.setdefault(column.tobytes(), column)
    return np.column_stack(list(columns.values())).astype(np.int8)


CODES: dict[str, Callable[[int, Any], NDArray[np.int8]]] = {
    "dietterich15": lambda n_classes, _: dietterich15(n_classes),
    "hadamard": lambda n_classes, _: hadamard(n_classes),
    "exhaustive": lambda n_classes, _: exhaustive(n_classes),
    "random-dense": lambda n_classes, seed: random_code(n_classes, random_state=seed),
    "random-sparse": lambda n_classes, seed: random_code(
        n_classes, sparse=True, random_state=seed
    ),
}


def make_code(
    multiclass: str, code: Any, n_classes: int, random_state: Any = None
) -> NDArray[np.int8]:
    """Return the code matrix that the parameters of an estimator ask for."""
    if multiclass != "ecoc" and code is not None:
        raise ValueError(
            f"code is for multiclass='ecoc', but multiclass={multiclass!r}. Leave code "
            "at None, or set multiclass='ecoc'."
        )
    if multiclass == "ovo":
        return one_vs_one(n_classes)
    if multiclass == "ovr" or (n_classes == 2 and code is None):
        return one_vs_rest(n_classes)
    if code is None:
        code = "exhaustive" if n_classes <= 4 else "hadamard"
    if isinstance(code, str):
        if code not in CODES:
            raise ValueError(
                f"Unknown code {code!r}. Known: {', '.join(CODES)}; or give a matrix "
                "of -1, 0 and 1 with a row for each class."
            )
        return check_code(CODES[code](n_classes, random_state), n_classes)
    return check_code(code, n_classes)


def check_code(code: Any, n_classes: int) -> NDArray[np.int8]:
    """Return a code matrix, or say why it is not one."""
    code = np.asarray(code)
    if code.ndim != 2 or code.shape[0] != n_classes or code.shape[1] == 0:
        raise ValueError(
            f"A code has a row for each of the {n_classes} classes and a column for "
            f"each task; got an array of shape {code.shape}."
        )
    if code.dtype.kind not in "iufb" or not np.isin(code, (-1, 0, 1)).all():
        strange = [v for v in np.unique(code).tolist() if v not in (-1, 0, 1)]
        raise ValueError(f"A code consists of -1, 0 and 1; got {strange[:3]}.")
    code = code.astype(np.int8)
    for t, column in enumerate(code.T):
        if not column.min() < 0 < column.max():
            raise ValueError(
                f"Column {t} of the code has classes on one side only. Each column "
                "needs a class with 1 and a class with -1."
            )
    for first, second in combinations(range(code.shape[1]), 2):
        same = "equal" if (code[:, first] == code[:, second]).all() else None
        if (code[:, first] == -code[:, second]).all():
            same = "complementary"
        if same:
            raise ValueError(
                f"Columns {first} and {second} of the code are {same}, and would give "
                "the same machine twice. Leave one out."
            )
    for first, second in combinations(range(n_classes), 2):
        if (code[first] == code[second]).all():
            raise ValueError(
                f"Rows {first} and {second} of the code are equal, so that nothing "
                "tells these classes apart. Add a column in which they differ."
            )
    return code


@public("mercer.multiclass")
def row_distances(code: NDArray) -> NDArray:
    """Return the Hamming distances of the rows; a 0 counts as half a difference.

    Parameters
    ----------
    code : array of shape (n_classes, n_columns)
        A matrix of -1, 0 and 1.

    Returns
    -------
    ndarray of shape (n_classes, n_classes)
    """
    wide = code.astype(np.float64)
    return 0.5 * (code.shape[1] - wide @ wide.T)
