"""Files in the format of LIBSVM and SVMlight."""

from __future__ import annotations

import os
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from sklearn.utils import Bunch

from mercer.datasets.checks import check_count
from mercer.datasets.places import REPLACE, find_file, folders
from mercer.datasets.result import pack
from mercer.runtime.public import public

__all__ = ["load_libsvm"]


@public("mercer.datasets")
def load_libsvm(
    path: str | os.PathLike[str],
    *,
    n_features: int | None = None,
    dtype: DTypeLike = np.float64,
    dense: bool = False,
    zero_based: bool | str = "auto",
    as_bunch: bool = False,
) -> tuple[Any, NDArray] | Bunch:
    """Load a file in LIBSVM format, with a line ``label index:value ...`` per sample.

    Parameters
    ----------
    path : str or path
        The file. A name that ends in ``.gz`` or ``.bz2`` means a compressed file. If a
        relative path is not a file, it is also searched in the folder that the
        environment variable ``MERCER_DATA`` names, and in the user's cache.
    n_features : int or None, default=None
        Number of columns. None takes the largest index in the file; give the number of
        the training file when you load a test file, whose largest index may be smaller.
    dtype : numpy.float32 or numpy.float64, default=numpy.float64
        Data type of X.
    dense : bool, default=False
        Whether X is a dense array. False returns a CSR matrix.
    zero_based : bool or "auto", default="auto"
        Whether indices begin at 0 (True) or at 1 (False). "auto" assumes that they
        begin at 0 if an index 0 occurs in the file.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data``, ``target`` and ``filename``.

    Returns
    -------
    X : CSR matrix or ndarray of shape (n, n_features)
        The samples.
    y : ndarray of shape (n,)
        The labels, float64.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from mercer.datasets import load_libsvm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = pathlib.Path(folder, "tiny")
    ...     _ = path.write_text("+1 1:0.5 3:2\\n-1 2:1\\n")
    ...     X, y = load_libsvm(path, dense=True)
    >>> X
    array([[0.5, 0. , 2. ],
           [0. , 1. , 0. ]])
    >>> y
    array([ 1., -1.])
    """
    _check(n_features, dtype, zero_based)
    file = _locate(path)
    X, y = _read(file, dtype, zero_based)
    if n_features is not None:
        if X.shape[1] > n_features:
            raise ValueError(
                f"{file} has {X.shape[1]} features; n_features={n_features} is too "
                f"few. Give n_features >= {X.shape[1]}."
            )
        X.resize(X.shape[0], n_features)
    return pack(X.toarray() if dense else X, y, as_bunch, filename=str(file))


def _check(n_features: Any, dtype: Any, zero_based: Any) -> None:
    if n_features is not None:
        check_count("n_features", n_features)
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype!r}.")
    if not (isinstance(zero_based, bool) or zero_based == "auto"):
        raise ValueError(
            f"zero_based must be True, False or 'auto', got {zero_based!r}."
        )


def _locate(path: str | os.PathLike[str]) -> Path:
    """Return the path of the file, which may be in one of the data folders."""
    given = Path(path).expanduser()
    if given.is_file():
        return given
    places = [] if given.is_absolute() else folders()
    found = find_file([str(given)], places)
    if found is None:
        also = f", nor in {', '.join(map(str, places))}" if places else ""
        raise FileNotFoundError(
            f"{given} is not a file{also}. Give the path of a file in LIBSVM format."
        )
    return found


def _read(path: Path, dtype: DTypeLike, zero_based: bool | str) -> tuple[Any, NDArray]:
    from sklearn.datasets import load_svmlight_file

    try:
        X, y = load_svmlight_file(str(path), dtype=dtype, zero_based=zero_based)
    except (ValueError, IndexError, OverflowError) as error:
        raise ValueError(
            f"{path} is not in LIBSVM format ({error}). Each line must read "
            "'label index:value index:value ...' with increasing indices."
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} cannot be read, or is not compressed as its name says ({error}). "
            f"{REPLACE}"
        ) from error
    if len(y) == 0:
        raise ValueError(f"{path} has no samples.")
    return X, y
