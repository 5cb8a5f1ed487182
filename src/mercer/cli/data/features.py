"""How the columns of a table become features: numbers, categories, missing values."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import compress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.columns import MOST_NAMED, ChosenColumns, listed
from mercer.cli.data.loaded import (
    BOOLEANS,
    LoadedData,
    Schema,
    Target,
    as_whole,
    is_code,
    is_number,
    typed,
)
from mercer.cli.failures import DataFailure, needed
from mercer.runtime.user_warnings import warn_user

__all__ = [
    "Odd",
    "as_floats",
    "assemble",
    "check_for_steps",
    "check_numbers",
    "finished",
]

# A column with more different texts than this, if they differ in most rows, has names
# of samples and not categories.
MOST_CATEGORIES = 100
# What programs write for a value that is missing.
MISSING = {
    "",
    "na",
    "n/a",
    "nan",
    "null",
    "none",
    "nil",
    "?",
    "-",
    "--",
    ".",
    "missing",
}
# Those that count as missing in a column whose other values are text.
MISSING_TEXTS = {"", "na", "n/a", "nan", "null", "none"}
# Dates such as 2024-01-31, 31.1.2024 or 1/31/24, also with a time, and times alone.
DATE = re.compile(r"(\d{4}[-/]\d\d?[-/]\d\d?|\d\d?[./-]\d\d?[./-]\d{2,4})([T ].*)?")
TIME = re.compile(r"\d\d?:\d\d(:\d\d.*)?")


class Odd(NamedTuple):
    """What stands in a column of numbers without being a number."""

    number: int  #: how many there are
    row: int  #: the first sample that has such a value
    value: str


def as_floats(texts: Sequence[str], first: int = 0) -> tuple[NDArray, Odd | None]:
    """Return a column of texts as numbers, and which of them are something else.

    Missing values become NaN. Texts that are neither that nor numbers become infinite;
    if all values are booleans, they become 0 and 1. ``first`` is the first sample.
    """
    with suppress(ValueError):  # which columns with gaps or text raise
        return np.array(texts, dtype=np.float64), None
    cells = [text.strip() for text in texts]
    known: dict[str, float] = dict.fromkeys(MISSING, np.nan)
    if {cell.lower() for cell in cells} <= MISSING | BOOLEANS.keys():
        known |= BOOLEANS
    values = np.array(
        [float(c) if is_number(c) else known.get(c.lower(), np.inf) for c in cells]
    )
    infinite = np.flatnonzero(np.isinf(values)).tolist()
    odd = [i for i in infinite if not is_number(cells[i])]
    return values, Odd(len(odd), first + odd[0], cells[odd[0]]) if odd else None


def assemble(
    loaded: LoadedData,
    choice: ChosenColumns,
    names: Sequence[str],
    numbers: NDArray,
    texts: Mapping[int, list[str]],
    odd: Mapping[int, Odd],
) -> tuple[NDArray, Schema]:
    """Put the features together: columns of numbers, and 0 and 1 for categories.

    ``numbers`` has the features that are not among ``texts``, in their order, and
    ``odd`` what is wrong with them. A new model takes texts for numbers where it can.
    """
    if choice.schema.missing == "steps":
        return _for_steps(loaded, choice, names, numbers, texts, odd), choice.schema
    is_new = choice.is_new
    numeric = [j for j in choice.features if j not in texts]
    if is_new and texts:
        found = [(j, _numbers_in(column)) for j, column in texts.items()]
        numeric += [j for j, values in found if values is not None]
        numbers = np.column_stack([numbers, *(v for _, v in found if v is not None)])
    wrong = {k: odd[j] for k, j in enumerate(numeric) if j in odd}
    check_numbers(loaded, [names[j] for j in numeric], numbers, wrong, is_new)
    if numeric == choice.features:
        return numbers, choice.schema
    known, parts = dict(choice.schema.categories), []
    for name, j in zip(choice.schema.features, choice.features, strict=True):
        if j in numeric:
            parts.append(numbers[:, [numeric.index(j)]])
            continue
        if is_new:
            known[name] = _categories(loaded, name, texts[j])
        parts.append(_one_hot(loaded, name, texts[j], known[name]))
    return np.hstack(parts), choice.schema.with_categories(known)


def _for_steps(
    loaded: LoadedData,
    choice: ChosenColumns,
    names: Sequence[str],
    numbers: NDArray,
    texts: Mapping[int, list[str]],
    odd: Mapping[int, Odd],
) -> Any:
    """Return columns of numbers or text as a data frame, with gaps where they are."""
    schema = choice.schema
    numeric = [j for j in choice.features if j not in texts]
    wrong = {k: odd[j] for k, j in enumerate(numeric) if j in odd}
    check_numbers(loaded, [names[j] for j in numeric], numbers, wrong, is_new=False)
    columns: dict[int, Any] = dict(zip(numeric, numbers.T, strict=True))
    for j, column in texts.items():
        values, other = as_floats(column)
        if other is None and not any(map(is_code, column)):
            columns[j] = values
            continue
        gaps = [text.lower() in MISSING_TEXTS for text in column]
        columns[j] = np.array(column, dtype=object)
        columns[j][gaps] = np.nan
    found = [columns[j] for j in choice.features]
    if not schema.named:
        return np.column_stack(found)
    pandas = needed(
        "pandas",
        f"the model's steps take columns of {loaded.source} by their names, which "
        "needs pandas. Install it: pip install pandas.",
    )
    return pandas.DataFrame(dict(zip(schema.features, found, strict=True)))


def check_for_steps(loaded: LoadedData) -> None:
    """Say where values are missing or not numbers, which the model's steps refused."""
    columns = [np.asarray(column) for column in np.asarray(loaded.X).T]
    found = [as_floats(list(map(str, column))) for column in columns]
    numbers = np.column_stack([values for values, _ in found])
    odd = {k: other for k, (_, other) in enumerate(found) if other is not None}
    strict = replace(loaded, schema=replace(loaded.schema, missing="refuse"))
    check_numbers(strict, loaded.schema.features, numbers, odd, is_new=False)


def _numbers_in(texts: Sequence[str]) -> NDArray | None:
    """Return a column as numbers, unless its texts are categories."""
    values, odd = as_floats(texts)
    is_finite = np.isfinite(values)
    are_numbers = odd is None and is_finite.any() and not np.isinf(values).any()
    return values if are_numbers and not any(map(is_code, texts)) else None


def _categories(loaded: LoadedData, name: str, texts: list[str]) -> list[str]:
    if "" in texts and loaded.schema.missing == "refuse":
        raise DataFailure(
            f"{loaded.where(texts.index(''), name)} is empty ({texts.count('')} "
            "missing). Fill in a value, or give --missing most-frequent."
        )
    found = sorted(set(texts) - {""})
    if len(found) > max(MOST_CATEGORIES, len(texts) // 2):
        raise DataFailure(
            f"{loaded.source}, column {name!r} has {len(found)} different texts, such "
            f"as {found[0]!r}, which are too many for categories. Leave the column out "
            f"with --drop {name!r}."
        )
    return found


def _one_hot(
    loaded: LoadedData, name: str, texts: list[str], categories: list[str]
) -> NDArray:
    codes = {category: k for k, category in enumerate(categories)}
    columns = np.zeros((len(texts), len(categories)))
    for i, text in enumerate(texts):
        if not text and loaded.schema.missing != "refuse":
            columns[i] = np.nan
            continue
        if text not in codes:
            raise DataFailure(
                f"{loaded.where(i, name)}: the training data did not have the value "
                f"{text!r}, only {listed([repr(c) for c in categories])}."
            )
        columns[i, codes[text]] = 1
    return columns


def check_numbers(
    loaded: LoadedData,
    names: Sequence[str],
    numbers: NDArray,
    odd: Mapping[int, Odd],
    is_new: bool,
) -> None:
    """Refuse columns that are not numbers, all of them in one message.

    Missing values are NaN. What is not a number is infinite and, by the position of its
    column, among ``odd``.
    """
    said: list[str] = []
    bad: list[str] = []
    kinds: dict[str, str] = {}
    allowed = loaded.schema.missing != "refuse"
    for k in np.flatnonzero(~np.isfinite(numbers).all(axis=0)).tolist():
        name, column, before = names[k], numbers[:, k], len(said)
        gaps, infinite = np.isnan(column), np.isinf(column)
        if k in odd:
            kind, what = _kind(odd[k].value)
            kinds[kind] = odd[k].value
            said.append(_counted(loaded, name, *odd[k], what))
        elif infinite.any():
            kinds["infinite"] = ""
            at, count = int(infinite.argmax()), int(infinite.sum())
            value = str(column[at])
            said.append(
                _counted(loaded, name, count, at, value, "is not a finite number")
            )
        if gaps.any() and not allowed:
            kinds["missing"] = ""
            at, count = int(gaps.argmax()), int(gaps.sum())
            said.append(f"{loaded.place(at, name)}: no value ({count} missing)")
        elif is_new and gaps.all():
            raise DataFailure(
                f"{loaded.source}, column {name!r} has no value in any row. Leave it "
                f"out with --drop {name!r}."
            )
        if len(said) > before:
            bad.append(name)
    if said:
        advice = _remedies(kinds, bad, is_new)
        raise DataFailure(f"{loaded.source}, {listed(said, '; ')}. {advice}.")


def _kind(value: str) -> tuple[str, str]:
    """Return what a text in a column of numbers is, in a word and for messages."""
    if DATE.fullmatch(value) or TIME.fullmatch(value):
        return "date", "is a date or a time, not a number"
    is_decimal = is_number(value.replace(",", ".", 1))
    return "decimal" if is_decimal else "text", "is not a number"


def _counted(
    loaded: LoadedData, name: str, count: int, row: int, value: str, what: str
) -> str:
    more = "" if count == 1 else f" ({count} such values)"
    return f"{loaded.place(row, name)}: {value!r} {what}{more}"


def _remedies(kinds: Mapping[str, str], bad: Sequence[str], is_new: bool) -> str:
    """Say what to do about values that are not numbers, of these kinds."""
    decimal = kinds.get("decimal", "").replace(",", ".", 1)
    advice = {
        "decimal": f"Write numbers with a decimal point, {decimal}",
        "date": "Turn dates into numbers, such as days since a fixed day",
        "text": "Turn text columns into features with --categories one-hot",
        "infinite": "Fill in other values",
        "missing": "Fill in missing values with --missing median, or leave their rows "
        "out with --missing drop",
    }
    drop = " ".join(f"--drop {name!r}" for name in bad[:MOST_NAMED])
    end = f"leave columns out with {drop}"
    if not is_new:
        advice["text"] = "The model knows these columns as numbers: correct the values"
        advice["missing"] = "Fill in the missing values"
        end = "leave the rows out"
    return ". ".join(advice[kind] for kind in advice if kind in kinds) + f", or {end}"


def finished(
    loaded: LoadedData,
    X: NDArray,
    schema: Schema,
    target: tuple[str, list[str] | NDArray] | None,
    kept: dict[str, list[Any]] | None = None,
) -> LoadedData:
    """Put the parts together; rows with missing values go if the model says so.

    The target is a name and texts, of which empty ones are missing, or numbers.
    """
    name, values = target or ("", None)
    complete = np.ones(len(X), dtype=bool)
    if schema.missing == "drop":
        complete = ~(np.isnan(X).any(axis=1) | _gaps(values, len(X)))
    if not complete.all():
        n_left = len(X) - int(complete.sum())
        told = f"{loaded.source}: {n_left} of {len(X)} rows have missing values"
        if n_left == len(X):
            raise DataFailure(f"{told}, and no row is left. Use --missing median.")
        warn_user(f"{told} and are left out.")
        X = X[complete]
        if isinstance(values, list):
            values = list(compress(values, complete))
        elif values is not None:
            values = values[complete]
        loaded = replace(loaded, complete=complete)
    loaded = replace(loaded, X=X, schema=schema, kept=kept or {})
    if values is None:
        return loaded
    gaps = _gaps(values, len(X))
    if gaps.any():
        raise DataFailure(
            f"{loaded.where(int(gaps.argmax()), name)}, the target, is empty "
            f"({gaps.sum()} missing). Fill it in, or leave such rows out."
        )
    if isinstance(values, list):
        return replace(loaded, target=Target(name, typed(values), values))
    return replace(loaded, target=Target(name, as_whole(values)))


def _gaps(values: list[str] | NDArray | None, n: int) -> NDArray:
    """Return which values of a target are missing."""
    if isinstance(values, list):
        return np.array([not value for value in values], dtype=bool)
    if values is None or values.dtype.kind != "f":
        return np.zeros(n, dtype=bool)
    return np.isnan(values)
