"""What is read from a file: samples, targets, and how columns became features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BOOLEANS",
    "ImageForm",
    "LoadedData",
    "ReadOptions",
    "Schema",
    "Target",
    "as_numbers",
    "as_whole",
    "is_code",
    "is_number",
    "typed",
]

# How booleans are spelt in text, with lower-case letters.
BOOLEANS = {"false": False, "true": True}


@dataclass(frozen=True)
class ImageForm:
    """The form that all images of a model have."""

    width: int
    height: int
    colour: str  #: "grey" or "rgb"
    resize: bool = False  #: whether images of other sizes are brought to this one

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of one image as an array."""
        plane = (self.height, self.width)
        return plane if self.colour == "grey" else (*plane, 3)


@dataclass(frozen=True)
class Schema:
    """How columns become features; a model file keeps it."""

    kind: str  #: "table", "arrays", "libsvm" or "images"
    features: tuple[str, ...]  #: columns, in the order of the features; may be empty
    n_columns: int
    named: bool = False  #: whether the file has names for the columns
    target: str | None = None
    target_at: int | None = None  #: where the target was among the columns
    categories: dict[str, list[str]] = field(default_factory=dict)
    image: ImageForm | None = None
    first_index: int = 1  #: the number of the first column in LIBSVM files
    #: what is done about missing values: see --missing; "steps" leaves them, and text,
    #: to the model's own steps
    missing: str = "refuse"

    def with_categories(self, categories: dict[str, list[str]]) -> Schema:
        """Return the schema with the values of its text columns."""
        return replace(self, categories=categories)

    def layout(self) -> dict[str, list[int]]:
        """Return which features each column became."""
        found, start = {}, 0
        for name in self.features:
            width = len(self.categories[name]) if name in self.categories else 1
            found[name] = list(range(start, start + width))
            start += width
        return found


@dataclass(frozen=True)
class Target:
    """Classes or values of the samples, as the file has them."""

    name: str
    values: NDArray  #: bool, or int64 or float64 if all are numbers, else text
    texts: Sequence[str] | None = None  #: as the file spells the values


@dataclass(frozen=True)
class LoadedData:
    """Samples from a file."""

    source: str
    X: Any
    schema: Schema
    target: Target | None = None
    #: lines of the file or names of images, by sample; without either, rows are counted
    lines: Sequence[int] | None = None
    files: Sequence[str] | None = None
    #: which rows of the file are samples, if rows with missing values were left out
    complete: NDArray | None = None
    #: values of the columns of --keep, by row of the file
    kept: dict[str, list[Any]] = field(default_factory=dict)

    def place(self, i: int, column: str | None = None) -> str:
        """Say where in the source a sample, or one of its values, is."""
        if self.files is not None:
            return self.files[i]
        at = i if self.complete is None else int(np.flatnonzero(self.complete)[i])
        row = f"row {at + 1}" if self.lines is None else f"line {self.lines[at]}"
        return row + (f", column {column!r}" if column else "")

    def where(self, i: int, column: str | None = None) -> str:
        """Say where a sample, or one of its values, is."""
        return f"{self.source}, {self.place(i, column)}"


@dataclass(frozen=True)
class ReadOptions:
    """How a file is to be read."""

    format: str = "auto"
    target: str | None = None
    needs_target: bool = False
    drop: tuple[str, ...] = ()
    header: str = "auto"
    encoding: str = "utf-8"
    one_hot: bool = False
    samples: str = "X"
    size: tuple[int, int] | None = None
    colour: str = "auto"
    schema: Schema | None = None  #: of the model that the data are for
    missing: str = "refuse"  #: what a new model does about missing values
    keep: tuple[str, ...] = ()  #: columns that go to the output as they are


def is_number(text: str) -> bool:
    """Tell whether a text is a number, finite or not."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def is_code(text: str) -> bool:
    """Tell whether a text is a code such as 007, which is a name and not a number."""
    return len(text) > 1 and text[0] == "0" and text[1].isdigit()


def as_numbers(texts: Sequence[str]) -> NDArray | None:
    """Return texts as numbers, int64 if all are whole; None if some are not numbers."""
    if any(map(is_code, texts)):
        return None
    try:
        values = np.array(texts, dtype=np.float64)
    except ValueError:
        return None
    return as_whole(values)


def typed(texts: Sequence[str]) -> NDArray:
    """Return texts as numbers or booleans if all of them are, else as text."""
    values = as_numbers(texts)
    if values is not None:
        return values
    if {text.lower() for text in texts} <= BOOLEANS.keys():
        return np.array([BOOLEANS[text.lower()] for text in texts])
    return np.array(texts)


def as_whole(values: NDArray) -> NDArray:
    """Return numbers as int64 if all are whole, else as float64; booleans stay."""
    if values.dtype.kind == "b":
        return values
    if values.dtype.kind in "iu":
        return values.astype(np.int64)
    values = values.astype(np.float64)
    with np.errstate(invalid="ignore"):
        whole = np.isfinite(values).all() and (np.abs(values) < 2**53).all()
        return values.astype(np.int64) if whole and (values % 1 == 0).all() else values
