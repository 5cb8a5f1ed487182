"""Samples in the arrays of an npz file."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.columns import match, warn_of_order
from mercer.cli.data.features import check_numbers, finished
from mercer.cli.data.loaded import ImageForm, LoadedData, ReadOptions, Schema
from mercer.cli.data.sources import Source
from mercer.cli.failures import DataFailure, UsageFailure

__all__ = ["read_npz"]

BROKEN = (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


def read_npz(source: Source, how: ReadOptions) -> LoadedData:
    """Read the samples, (n, d) or images (n, h, w), and the target, if there is one."""
    if not zipfile.is_zipfile(source.path):
        raise DataFailure(f"{source} is not an npz file, or it was cut short.")
    try:
        with np.load(source.path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
    except BROKEN as error:
        why = source.told(error)
        raise DataFailure(f"{source} cannot be read as an npz file: {why}.") from error
    X = _pick(arrays, how.samples, source, "--samples")
    X, form = _rows(X, how.samples, source)
    names = _names(arrays.get("feature_names"), X.shape[1], source)
    schema = Schema(
        kind="arrays",
        features=names or tuple(str(j + 1) for j in range(X.shape[1])),
        n_columns=X.shape[1],
        named=names is not None,
        image=form,
        missing=how.missing,
    )
    X, schema = _for_model(X, schema, how, source)
    loaded = LoadedData(str(source), X, schema)
    check_numbers(loaded, schema.features, X, {}, how.schema is None)
    target = _target(arrays, len(X), how, source)
    if target is not None and how.schema is None:
        schema = replace(schema, target=target[0])
    return finished(loaded, X, schema, target)


def _pick(
    arrays: Mapping[str, NDArray], name: str, source: Source, option: str
) -> NDArray:
    if name not in arrays:
        raise UsageFailure(
            f"{source} has no array {name!r}. Name another array with {option}. The "
            f"file has {', '.join(arrays) or 'none'}."
        )
    return arrays[name]


def _rows(X: NDArray, name: str, source: Source) -> tuple[NDArray, ImageForm | None]:
    if X.dtype.kind not in "fiub" or X.ndim < 2 or 0 in X.shape:
        raise DataFailure(
            f"{source}, array {name!r} must be numbers of shape (samples, features), "
            f"got {X.dtype} of shape {X.shape}."
        )
    # Small integers and half precision fit into single precision.
    single = X.dtype == np.float32 or X.dtype.itemsize <= 2
    form = None
    if X.ndim == 3 or (X.ndim == 4 and X.shape[3] == 3):
        colour = "grey" if X.ndim == 3 else "rgb"
        form = ImageForm(int(X.shape[2]), int(X.shape[1]), colour)
    X = X.reshape(len(X), -1)
    return np.ascontiguousarray(X, np.float32 if single else np.float64), form


def _names(given: NDArray | None, width: int, source: Source) -> tuple[str, ...] | None:
    if given is None:
        return None
    names = tuple(map(str, given.ravel().tolist()))
    if len(names) != width or len(set(names)) != width:
        raise DataFailure(
            f"{source}, array 'feature_names' must be {width} different names, got "
            f"{len(names)}."
        )
    return names


def _for_model(
    X: NDArray, schema: Schema, how: ReadOptions, source: Source
) -> tuple[NDArray, Schema]:
    """Bring the columns into the order of the model that the data are for."""
    wanted = how.schema
    if wanted is None:
        return X, schema
    if wanted.categories:
        raise DataFailure(
            f"{source} has numbers only, but the model has text columns: "
            f"{', '.join(wanted.categories)}. Give a CSV or Parquet file."
        )
    if schema.named and wanted.named:
        X = X[:, match(wanted, schema.features, str(source))]
    elif X.shape[1] != wanted.n_columns:
        raise DataFailure(
            f"{source} has {X.shape[1]} features; the model has {wanted.n_columns}."
        )
    elif wanted.named:
        warn_of_order(str(source))
    return X, wanted


def _target(
    arrays: Mapping[str, NDArray], n: int, how: ReadOptions, source: Source
) -> tuple[str, list[str] | NDArray] | None:
    name = how.target or (how.schema and how.schema.target) or "y"
    if name not in arrays and not how.needs_target and how.target is None:
        return None
    if how.schema is not None and not how.needs_target:
        return None
    y = _pick(arrays, name, source, "--target")
    if y.dtype.kind not in "fiubU" or y.shape not in ((n,), (n, 1)):
        raise DataFailure(
            f"{source}, array {name!r} must be {n} numbers or texts, one for each "
            f"sample, got {y.dtype} of shape {y.shape}."
        )
    y = y.ravel()
    return name, y.tolist() if y.dtype.kind == "U" else y
