"""Dask collections as chunks of rows: samples, targets and weights side by side."""

from __future__ import annotations

from typing import Any, NamedTuple

import dask
import dask.array as da
import numpy as np
from scipy import sparse

from mercer.runtime.scikit_learn import get_feature_names

__all__ = [
    "Chunked",
    "as_rows",
    "delayed_chunks",
    "is_frame",
    "load_chunk",
    "to_chunks",
]


class Chunked(NamedTuple):
    """A data set in chunks, of which nothing has been computed yet."""

    parts: list[tuple[Any, Any, Any]]  #: delayed samples, targets, weights (or None)
    names: Any  #: names of the columns, if all of them are strings


def to_chunks(X: Any, y: Any = None, sample_weight: Any = None) -> Chunked:
    """Cut a data set into chunks of the rows of X."""
    names = get_feature_names(X._meta) if is_frame(X) else None
    X = as_rows(X)
    columns = [
        None if values is None else _aligned(values, X, name)
        for values, name in ((y, "y"), (sample_weight, "sample_weight"))
    ]
    blocks = [block for (block,) in X.to_delayed()]
    others = [
        [None] * len(blocks) if column is None else list(column.to_delayed())
        for column in columns
    ]
    return Chunked(list(zip(blocks, *others, strict=True)), names)


def as_rows(X: Any) -> da.Array:
    """Return a collection as an array whose chunks have whole rows."""
    if is_frame(X):
        X = X.to_dask_array()
    if not isinstance(X, da.Array):
        raise TypeError(
            f"X must be a Dask array or data frame, got {type(X).__name__}. Data that "
            "fit the memory of one machine are fitted faster by the class without "
            "'Dask' in its name; dask.array.from_array makes a Dask array of others."
        )
    if X.ndim != 2:
        raise ValueError(f"X must have rows and columns, got {X.ndim} dimension(s).")
    return X if X.numblocks[1] == 1 else X.rechunk({1: -1})


def is_frame(X: Any) -> bool:
    """Tell whether X is a data frame or series of Dask."""
    return hasattr(X, "to_dask_array") and not isinstance(X, da.Array)


def _aligned(values: Any, X: da.Array, name: str) -> da.Array:
    """Return targets or weights in the chunks of X."""
    if is_frame(values):
        values = values.to_dask_array()
    rows = X.chunks[0]
    is_known = not np.isnan(rows).any()
    if not isinstance(values, da.Array):
        if not is_known:
            raise ValueError(
                f"{name} is not a Dask collection, and the lengths of the chunks of X "
                f"are not known. Take {name} from the same data frame as X, or call "
                "X.compute_chunk_sizes() first."
            )
        values = np.asarray(values)
        _check_length(name, values.shape[0] if values.ndim else 0, X.shape[0])
        values = da.from_array(values, chunks=(rows, *values.shape[1:]))
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"{name} must have one dimension, got {values.ndim}.")
    if is_known and not np.isnan(values.chunks[0]).any():
        _check_length(name, values.shape[0], X.shape[0])
        return values if values.chunks[0] == rows else values.rechunk((rows,))
    if values.numblocks[0] != X.numblocks[0]:
        raise ValueError(
            f"{name} has {values.numblocks[0]} chunks and X has {X.numblocks[0]}, of "
            "unknown lengths, so that rows cannot be matched. Call "
            "compute_chunk_sizes() on both."
        )
    return values


def _check_length(name: str, found: int, wanted: int) -> None:
    if found != wanted:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has "
            f"{wanted} rows and {name} has {found}."
        )


def load_chunk(
    machine: Any, number: int, X: Any, y: Any, sample_weight: Any, dtype: Any
) -> tuple[Any, Any, Any]:
    """Validate a chunk; errors say which chunk it is."""
    if sparse.issparse(X):
        X = X.tocsr()
    elif not isinstance(X, np.ndarray):
        X = np.asarray(X)
    X = X.astype(dtype, copy=False)
    if not X.shape[0]:
        return X, None if y is None else y[:0], np.empty(0)
    try:
        valid = machine._validated(X, y)
        weight = machine._sample_weight(valid, sample_weight)
    except (TypeError, ValueError) as error:
        raise type(error)(f"In chunk {number} of X: {error}") from None
    return valid.X, valid.y, np.maximum(weight, 0.0)


def delayed_chunks(machine: Any, data: Chunked, dtype: Any, name: str) -> list[Any]:
    """Return a task for each chunk that loads and validates it."""
    load = dask.delayed(load_chunk, pure=False, traverse=False)
    shared = dask.delayed(machine, pure=False, traverse=False, name=f"{name}-machine")
    return [
        load(shared, number, *part, dtype, dask_key_name=f"{name}-load-{number}")
        for number, part in enumerate(data.parts)
    ]
