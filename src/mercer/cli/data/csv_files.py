"""Tables as text, with commas, semicolons or tabs between the values."""

from __future__ import annotations

import csv
import zlib
from collections.abc import Iterator
from itertools import islice
from typing import Any, NamedTuple, TextIO

import numpy as np

from mercer.cli.data.columns import ChosenColumns, choose
from mercer.cli.data.features import Odd, as_floats, assemble, finished
from mercer.cli.data.loaded import LoadedData, ReadOptions, is_number
from mercer.cli.data.sources import Source
from mercer.cli.failures import DataFailure

__all__ = ["read_csv"]

# Commas come last: values in files with tabs or semicolons may have commas in them.
DELIMITERS = ("\t", ";", ",")
SPELT = {"\t": "tabs", ";": "semicolons", ",": "commas"}
# Lines that are looked at to find the delimiter, and rows that are converted at once.
N_SNIFFED, N_AT_ONCE = 20, 2048


class _Row(NamedTuple):
    line: int
    cells: list[str]


def read_csv(source: Source, how: ReadOptions) -> LoadedData:
    """Read a table; an error names the line and the column."""
    try:
        with source.open_text(how.encoding) as file:
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
            columns = _Columns(source, names, choice)
            if not named:
                columns.add([first])
            while batch := list(islice(rows, N_AT_ONCE)):
                columns.add(batch)
    except UnicodeError as error:
        raise DataFailure(source.not_text(how.encoding, error)) from error
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

    def __init__(self, source: Source, names: list[str], choice: ChosenColumns):
        self._source = source
        self._names = names
        self._choice = choice
        self._numeric = [j for j in choice.features if j not in choice.texts]
        self._blocks: list[Any] = []
        self._texts: dict[int, list[str]] = {j: [] for j in sorted(choice.texts)}
        self._kept: dict[int, list[str]] = {j: [] for j in choice.kept}
        self._odd: dict[int, Odd] = {}
        self._targets: list[str] = []
        self._lines: list[int] = []

    def add(self, rows: list[_Row]) -> None:
        """Convert some rows."""
        cells = [[row.cells[j] for j in self._numeric] for row in rows]
        try:
            block = np.array(cells, dtype=np.float64)
        except ValueError:
            block = np.empty((len(rows), len(self._numeric)))
            for k, column in enumerate(zip(*cells, strict=True)):
                block[:, k], odd = as_floats(column, len(self._lines))
                if odd is not None:
                    self._note(self._numeric[k], odd)
        self._blocks.append(block)
        self._lines += [row.line for row in rows]
        for j, texts in (*self._texts.items(), *self._kept.items()):
            texts += [row.cells[j].strip() for row in rows]
        if (at := self._choice.target) is not None:
            self._targets += [row.cells[at].strip() for row in rows]

    def _note(self, j: int, odd: Odd) -> None:
        """Add to what stands in a column in the place of numbers."""
        first = self._odd.get(j, odd._replace(number=0))
        self._odd[j] = first._replace(number=first.number + odd.number)

    def loaded(self) -> LoadedData:
        """Return the samples of all rows."""
        if not self._lines:
            raise DataFailure(f"{self._source} has a header, but no rows.")
        loaded = LoadedData(
            str(self._source), None, self._choice.schema, lines=self._lines
        )
        numbers = np.concatenate(self._blocks)
        X, schema = assemble(
            loaded, self._choice, self._names, numbers, self._texts, self._odd
        )
        at = self._choice.target
        target = None if at is None else (self._names[at], self._targets)
        kept = {self._names[j]: texts for j, texts in self._kept.items()}
        return finished(loaded, X, schema, target, kept)
