"""Tables in Parquet files, through pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.columns import assemble, choose
from mercer.cli.data.loaded import LoadedData, ReadOptions, Target, as_numbers, as_whole
from mercer.cli.data.sources import Source
from mercer.cli.failures import DataFailure, needed

__all__ = ["read_parquet"]


def read_parquet(source: Source, how: ReadOptions) -> LoadedData:
    """Read a table; an error names the row, from 1, and the column."""
    missing = (
        f"{source} is a Parquet file, and reading it needs pyarrow. Install it: "
        "pip install pyarrow."
    )
    arrow, parquet = needed("pyarrow", missing), needed("pyarrow.parquet", missing)
    try:
        file = parquet.ParquetFile(source.path)
        names = list(file.schema_arrow.names)
        choice = choose(names, True, str(source), how)
        wanted = [*choice.features, *([] if choice.target is None else [choice.target])]
        data = file.read(columns=[names[j] for j in wanted])
    except (arrow.ArrowException, OSError) as error:
        raise DataFailure(
            f"{source} cannot be read as Parquet: {source.told(error)}"
        ) from error
    if not data.num_rows:
        raise DataFailure(f"{source} has no rows.")
    loaded = LoadedData(str(source), None, choice.schema)
    texts, numbers = {}, []
    for j in choice.features:
        column = data.column(names[j])
        known = names[j] in choice.schema.categories
        if known or (j in choice.texts and _is_text(arrow, column)):
            texts[j] = _texts(arrow, column)
        else:
            numbers.append(_numbers(arrow, loaded, names[j], column))
    block = np.stack(numbers, axis=1) if numbers else np.empty((data.num_rows, 0))
    X, schema = assemble(loaded, choice, block, texts)
    target = None
    if choice.target is not None:
        name = names[choice.target]
        target = _target(arrow, loaded, name, data.column(name))
    return LoadedData(str(source), X, schema, target)


def _plain(arrow: Any, column: Any) -> Any:
    """Return a column as one array, without a dictionary."""
    column = column.combine_chunks()
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


def _is_text(arrow: Any, column: Any) -> bool:
    kind = _plain(arrow, column).type
    return arrow.types.is_string(kind) or arrow.types.is_large_string(kind)


def _texts(arrow: Any, column: Any) -> list[str]:
    values = _plain(arrow, column).to_pylist()
    return ["" if value is None else str(value).strip() for value in values]


def _numbers(arrow: Any, loaded: LoadedData, name: str, column: Any) -> NDArray:
    kind, column = column.type, _plain(arrow, column)
    types = arrow.types
    if not (
        types.is_integer(column.type)
        or types.is_floating(column.type)
        or types.is_boolean(column.type)
        or types.is_decimal(column.type)
    ):
        advice = "Leave the column out"
        if _is_text_type(kind):
            advice = (
                "Turn text into features with --categories one-hot, or leave it out"
            )
        raise DataFailure(
            f"{loaded.where(0, name)}: this column has the type {kind}, not numbers."
            f" {advice} with --drop {name!r}."
        )
    values = column.cast(arrow.float64(), safe=False).to_numpy(zero_copy_only=False)
    wrong = np.flatnonzero(~np.isfinite(values))
    if len(wrong):
        at = int(wrong[0])
        what = "is empty" if column[at].as_py() is None else f": {values[at]}"
        raise DataFailure(f"{loaded.where(at, name)} {what}, not a finite number.")
    return values


def _is_text_type(kind: Any) -> bool:
    return "string" in str(kind)


def _target(arrow: Any, loaded: LoadedData, name: str, column: Any) -> Target:
    if not _is_text(arrow, column):
        return Target(name, as_whole(_numbers(arrow, loaded, name, column)))
    texts = _texts(arrow, column)
    if "" in texts:
        where = loaded.where(texts.index(""), name)
        raise DataFailure(f"{where}, the target, is empty.")
    values = as_numbers(texts)
    return Target(name, np.array(texts) if values is None else values, texts)
