"""Sparse samples in files of LIBSVM's format."""

from __future__ import annotations

import math
import zlib
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.loaded import (
    LoadedData,
    ReadOptions,
    Schema,
    Target,
    as_whole,
    is_number,
)
from mercer.cli.data.sources import Source
from mercer.cli.failures import DataFailure
from mercer.datasets import load_libsvm

__all__ = ["looks_like_libsvm", "read_libsvm"]


def read_libsvm(source: Source, how: ReadOptions) -> LoadedData:
    """Read a file as a sparse matrix; for a model, columns count as in its own data."""
    least = how.schema.first_index if how.schema else 0
    try:
        X, y, first = _load(source.path, how.schema)
    except (ValueError, OSError) as error:
        raise DataFailure(_find_fault(source, least) or source.told(error)) from error
    if not X.shape[1]:
        raise DataFailure(f"{source} has no features: every line has a label only.")
    if not (np.isfinite(X.data).all() and np.isfinite(y).all()):
        fault = _find_fault(source, least)
        raise DataFailure(fault or f"{source} has values that are NaN or infinite.")
    schema = how.schema
    if schema is None:
        schema = Schema(
            kind="libsvm",
            features=(),
            n_columns=X.shape[1],
            target="label",
            first_index=first,
        )
    return LoadedData(str(source), X, schema, Target("label", as_whole(y)))


def _load(path: Path, schema: Schema | None) -> tuple[Any, NDArray, int]:
    if schema is not None:
        zero_based = schema.first_index == 0
        X, y = load_libsvm(path, n_features=schema.n_columns, zero_based=zero_based)
        return X, y, schema.first_index
    # Read with a column 0, which shows whether the file uses this index.
    X, y = load_libsvm(path, zero_based=True)
    first = int(bool(X.nnz == 0 or X.indices.min() > 0))
    return (X[:, 1:] if first else X), y, first


def looks_like_libsvm(source: Source) -> bool:
    """Tell whether the first line reads ``label index:value ...``."""
    with source.open_text() as file:
        words = file.readline().split("#")[0].split()
    return len(words) > 1 and is_number(words[0]) and _is_pair(words[1])


def _is_pair(word: str) -> bool:
    index, colon, value = word.partition(":")
    return bool(colon) and index.isdecimal() and is_number(value)


def _find_fault(source: Source, least: int) -> str | None:
    """Say which line cannot be read first, and why."""
    try:
        with source.open_text() as file:
            for number, line in enumerate(file, start=1):
                if fault := _fault(line.split("#")[0].split(), least):
                    return f"{source}, line {number}: {fault}"
    except UnicodeDecodeError:
        return f"{source} is not in LIBSVM format: it is not text."
    except (OSError, EOFError, zlib.error):
        return None
    return None


def _fault(words: list[str], least: int) -> str | None:
    if not words:
        return None
    if not is_number(words[0]) or not math.isfinite(float(words[0])):
        return f"the label {words[0]!r} is not a finite number."
    last = -1
    for word in words[1:]:
        if word.startswith("qid:"):
            continue
        if not _is_pair(word):
            return f"{word!r} is not of the form index:value."
        index, value = word.split(":")
        if not math.isfinite(float(value)):
            return f"column {index}: {value!r} is not a finite number."
        if int(index) < least:
            return f"column {index}: the model counts columns from {least}."
        if int(index) <= last:
            return f"column {index} comes after column {last}: indices must increase."
        last = int(index)
    return None
