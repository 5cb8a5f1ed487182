"""Tables as text, with commas, semicolons or tabs between the values."""

from __future__ import annotations

import csv
import math
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, TextIO

import numpy as np

from mercer.cli.data.columns import ChosenColumns, assemble, choose
from mercer.cli.data.loaded import (
    LoadedData,
    ReadOptions,
    Target,
    as_numbers,
    is_number,
)
from mercer.cli.data.sources import Source
from mercer.cli.failures import DataFailure

__all__ = ["read_csv"]

# Commas come last: values in files with tabs or semicolons may have commas in them.
DELIMITERS = ("\t", ";", ",")
SPELT = {"\t": "tabs", ";": "semicolons", ",": "commas"}
# What programs write for a value that is missing.
MISSING = {"na", "n/a", "nan", "null", "none", "nil", "?", "-", "--", ".", "missing"}
# Lines that are looked at to find the delimiter, and rows that are converted at once.
N_SNIFFED, N_AT_ONCE = 20, 2048


class _Row(NamedTuple):
    line: int
    cells: list[str]


def read_csv(source: Source, how: ReadOptions) -> LoadedData:
    """Read a table; an error names the line and the column."""
    try:
        with source.open_text() as file:
            rows = _rows(source, file)
            first = next(rows, None)
            if first is None:
                raise DataFailure(f"{source} is empty.")
            named = _is_header(first, how)
            width = len(first.cells)
            numbers = [str(j + 1) for j in range(width)]
            names = [cell.strip() for cell in first.cells] if named else numbers
            names = [name or number for name, number in zip(names, numbers)]  # noqa: B905
            choice = choose(names, named, str(source), how)
            columns = _Columns(source, names, choice, how.schema is None)
            if not named:
                columns.add([first])
            while batch := list(islice(rows, N_AT_ONCE)):
                columns.add(batch)
    except UnicodeDecodeError as error:
        raise DataFailure(
            f"{source} is not text in UTF-8 (byte {error.start}: {error.reason}). Save "
            "it as UTF-8, or name its format with --format."
        ) from error
    except (OSError, EOFError, zlib.error) as error:
        raise DataFailure(f"{source} cannot be read: {error}.") from error
    return columns.loaded()


def _rows(source: Source, file: TextIO) -> Iterator[_Row]:
    """Yield the rows that are not blank, all of the same width."""
    head = list(islice(file, N_SNIFFED))
    delimiter = _delimiter(head)

    def lines() -> Iterator[str]:
        yield from head
        yield from file

    reader = csv.reader(lines(), delimiter=delimiter, strict=True)
    width = None
    try:
        for cells in reader:
            if not any(cells) and len(cells) <= 1:
                continue
            if width is None:
                width = len(cells)
            elif len(cells) != width:
                why = (
                    "The file may be cut short."
                    if len(cells) < width
                    else f"Put values that contain {SPELT[delimiter]} into quotation "
                    'marks, such as "one, two".'
                )
                raise DataFailure(
                    f"{source}, line {reader.line_num} has {len(cells)} values, and "
                    f"the first line has {width}. {why}"
                )
            yield _Row(reader.line_num, cells)
    except csv.Error as error:
        raise DataFailure(
            f"{source}, line {reader.line_num}: {error}. Look for a quotation "
            "mark that is not closed."
        ) from error


def _delimiter(head: list[str]) -> str:
    """Return the delimiter that gives all lines the same number of values.

    If there is none, it is the one that is most frequent in the first line.
    """
    head = [line for line in head if line.strip()]
    counts = {}
    for delimiter in DELIMITERS:
        reader = csv.reader(head, delimiter=delimiter)
        widths = {len(cells) for cells in reader if cells}
        if len(widths) == 1 and widths != {1}:
            return delimiter
        counts[delimiter] = head[0].count(delimiter) if head else 0
    best = max(reversed(DELIMITERS), key=lambda d: counts[d])
    return best


def _is_header(first: _Row, how: ReadOptions) -> bool:
    if how.header != "auto":
        return how.header == "yes"
    return not any(is_number(cell) for cell in first.cells)


class _Columns:
    """Collects columns, converted while they are read."""

    def __init__(
        self, source: Source, names: list[str], choice: ChosenColumns, is_new: bool
    ):
        self._source = source
        self._names = names
        self._choice = choice
        self._is_new = is_new  # the model: an old one cannot do without a column
        self._numeric = [j for j in choice.features if j not in choice.texts]
        self._blocks: list[Any] = []
        self._texts: dict[int, list[str]] = {j: [] for j in sorted(choice.texts)}
        self._targets: list[str] = []
        self._lines: list[int] = []

    def add(self, rows: list[_Row]) -> None:
        """Convert some rows."""
        cells = [[row.cells[j] for j in self._numeric] for row in rows]
        try:
            block = np.array(cells, dtype=np.float64)
        except ValueError:
            block = None
        if block is None or not np.isfinite(block).all():
            self._refuse(rows)
        self._blocks.append(block)
        self._lines += [row.line for row in rows]
        for j, texts in self._texts.items():
            texts += [row.cells[j].strip() for row in rows]
        if (at := self._choice.target) is not None:
            self._targets += [row.cells[at].strip() for row in rows]

    def _refuse(self, rows: list[_Row]) -> None:
        """Name the first value that is not a finite number."""
        for row in rows:
            for j in self._numeric:
                cell, name = row.cells[j].strip(), self._names[j]
                where = f"{self._source}, line {row.line}, column {name!r}"
                drop = f"or leave this column out with --drop {name!r}"
                drop = drop if self._is_new else "or leave the row out"
                if not cell:
                    raise DataFailure(f"{where} is empty. Fill in a value, {drop}.")
                if not is_number(cell):
                    what = f"{where}: {cell!r} is not a number."
                    raise DataFailure(f"{what} {self._remedy(cell)}, {drop}.")
                if not math.isfinite(float(cell)):
                    raise DataFailure(
                        f"{where}: {cell!r} is not a finite number. Fill in another "
                        f"value, {drop}."
                    )

    def _remedy(self, cell: str) -> str:
        """Say what to do about a text where a number belongs."""
        if cell.lower() in MISSING:
            return "Fill in a value"
        if is_number(cell.replace(",", ".", 1)):
            return f"Write it with a decimal point, {cell.replace(',', '.', 1)}"
        if self._is_new:
            return "Turn text columns into features with --categories one-hot"
        return "The model knows this column as numbers: correct the value"

    def loaded(self) -> LoadedData:
        """Return the samples of all rows."""
        if not self._lines:
            raise DataFailure(f"{self._source} has a header, but no rows.")
        loaded = LoadedData(
            str(self._source), None, self._choice.schema, lines=self._lines
        )
        numbers = np.concatenate(self._blocks)
        X, schema = assemble(loaded, self._choice, numbers, self._texts)
        target = None
        if self._choice.target is not None:
            target = self._target(loaded, self._names[self._choice.target])
        return LoadedData(str(self._source), X, schema, target, lines=self._lines)

    def _target(self, loaded: LoadedData, name: str) -> Target:
        for i, text in enumerate(self._targets):
            if not text:
                raise DataFailure(f"{loaded.where(i, name)}, the target, is empty.")
        values = as_numbers(self._targets)
        if values is None:
            values = np.array(self._targets)
        return Target(name, values, self._targets)
