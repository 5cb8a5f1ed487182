"""Tables in Parquet files, through pyarrow."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.columns import choose
from mercer.cli.data.features import Odd, as_floats, assemble, finished
from mercer.cli.data.loaded import LoadedData, ReadOptions
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
        wanted = {*choice.features, *choice.kept}
        wanted |= set() if choice.target is None else {choice.target}
        data = file.read(columns=[names[j] for j in wanted])
    except (arrow.ArrowException, OSError) as error:
        raise DataFailure(
            f"{source} cannot be read as Parquet: {source.told(error)}"
        ) from error
    if not data.num_rows:
        raise DataFailure(f"{source} has no rows.")
    loaded = LoadedData(str(source), None, choice.schema)
    texts: dict[int, list[str]] = {}
    numbers: list[NDArray] = []
    odd: dict[int, Odd] = {}
    for j in choice.features:
        column = _plain(arrow, data.column(names[j]))
        known = names[j] in choice.schema.categories
        if known or (j in choice.texts and _is_text(arrow, column)):
            texts[j] = _texts(column)
            continue
        values, wrong = _floats(arrow, column)
        numbers.append(values)
        odd |= {} if wrong is None else {j: wrong}
    block = np.stack(numbers, axis=1) if numbers else np.empty((data.num_rows, 0))
    X, schema = assemble(loaded, choice, names, block, texts, odd)
    target = None
    if choice.target is not None:
        name = names[choice.target]
        target = name, _target(arrow, _plain(arrow, data.column(name)))
    kept = {names[j]: data.column(names[j]).to_pylist() for j in choice.kept}
    return finished(loaded, X, schema, target, kept)


def _plain(arrow: Any, column: Any) -> Any:
    """Return a column as one array, without a dictionary."""
    column = column.combine_chunks()
    if arrow.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column


def _is_text(arrow: Any, column: Any) -> bool:
    types, kind = arrow.types, column.type
    return types.is_string(kind) or types.is_large_string(kind)


def _texts(column: Any) -> list[str]:
    values = column.to_pylist()
    return ["" if value is None else str(value).strip() for value in values]


def _floats(arrow: Any, column: Any) -> tuple[NDArray, Odd | None]:
    """Return a column as numbers, NaN where a value is missing."""
    types, kind = arrow.types, column.type
    if any(
        is_one(kind)
        for is_one in (
            types.is_integer,
            types.is_floating,
            types.is_boolean,
            types.is_decimal,
            types.is_null,
        )
    ):
        numbers = column.cast(arrow.float64(), safe=False)
        return numbers.to_numpy(zero_copy_only=False), None
    return as_floats(_texts(column))


def _target(arrow: Any, column: Any) -> list[str] | NDArray:
    values, odd = _floats(arrow, column)
    is_text = _is_text(arrow, column) or arrow.types.is_boolean(column.type)
    return _texts(column) if is_text or odd is not None else values
