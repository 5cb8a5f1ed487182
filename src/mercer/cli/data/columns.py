"""Which columns of a table are features, and how text columns become features."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.cli.data.loaded import LoadedData, ReadOptions, Schema, as_numbers
from mercer.cli.failures import DataFailure, UsageFailure
from mercer.runtime.user_warnings import warn_user

__all__ = ["ChosenColumns", "assemble", "choose", "warn_of_order"]

# A column with more different texts than this, if they differ in most rows, has names
# of samples and not categories.
MOST_CATEGORIES = 100


class ChosenColumns(NamedTuple):
    """Positions of columns in a file, in the order of the model's features."""

    features: list[int]
    texts: set[int]  #: the features among them that are, or may be, categories
    target: int | None
    schema: Schema


def choose(
    names: Sequence[str], named: bool, source: str, how: ReadOptions
) -> ChosenColumns:
    """Choose among the columns of a file, for a new model or for a given one."""
    _check_names(names, source)
    dropped = {_find(name, names, source, "--drop", named) for name in how.drop}
    if how.schema is None:
        return _for_new_model(names, named, source, how, dropped)
    target = _target_for(how.schema, names, named, source, how, len(dropped))
    rest = [j for j in range(len(names)) if j not in dropped and j != target]
    if how.schema.named and named:
        _check_match(how.schema, [names[j] for j in rest], source)
        features = [names.index(name) for name in how.schema.features]
    else:
        features = rest
        if how.schema.named:
            warn_of_order(source)
        if len(rest) != how.schema.n_columns:
            raise DataFailure(
                f"{source} has {len(rest)} feature columns; the model has "
                f"{how.schema.n_columns}. Name columns that are not features "
                "with --drop."
            )
    pairs = zip(how.schema.features, features, strict=False)
    texts = {j for name, j in pairs if name in how.schema.categories}
    # A prediction does not need the target, which may be blank.
    return ChosenColumns(
        features, texts, target if how.needs_target else None, how.schema
    )


def _for_new_model(
    names: Sequence[str], named: bool, source: str, how: ReadOptions, dropped: set[int]
) -> ChosenColumns:
    target = None
    if how.target is not None:
        target = _find(how.target, names, source, "--target", named)
    elif how.needs_target:
        raise UsageFailure(
            f"say with --target which column of {source} is to be learnt. The columns "
            f"are {_some(names)}."
        )
    features = [j for j in range(len(names)) if j not in dropped and j != target]
    if not features:
        raise DataFailure(
            f"{source} has no feature columns: --target and --drop name all columns."
        )
    schema = Schema(
        kind="table",
        features=tuple(names[j] for j in features),
        n_columns=len(features),
        named=named,
        target=None if target is None else names[target],
        target_at=target,
    )
    return ChosenColumns(
        features, set(features) if how.one_hot else set(), target, schema
    )


def _target_for(
    schema: Schema,
    names: Sequence[str],
    named: bool,
    source: str,
    how: ReadOptions,
    n_dropped: int,
) -> int | None:
    """Find the target in data for a model, where it may be missing."""
    if how.target is not None:
        return _find(how.target, names, source, "--target", named)
    if named and schema.named:
        found = names.index(schema.target) if schema.target in names else None
    else:
        more = len(names) - n_dropped == schema.n_columns + 1
        found = schema.target_at if more else None
    if found is None and how.needs_target:
        known = f"column {schema.target!r}" if schema.target else "target column"
        raise DataFailure(
            f"{source} has no {known} to compare predictions with. Name the column "
            f"with --target. The columns are {_some(names)}."
        )
    return found


def warn_of_order(source: str) -> None:
    """Warn that columns cannot be matched by name."""
    warn_user(
        f"{source} has no column names. Its columns are taken to be in the order of "
        "the model's features."
    )


def _check_match(schema: Schema, names: Sequence[str], source: str) -> None:
    """Name the columns that are missing, and those that a model does not know."""
    missing = [name for name in schema.features if name not in names]
    wrong = [name for name in names if name not in schema.features]
    if missing or wrong:
        lacks = f" lacks {_some(missing)}" if missing else ""
        has = f" has {_some(wrong)}, which the model does not know" if wrong else ""
        hint = " Leave columns out with --drop." if wrong else ""
        if missing:
            hint = " The model needs all columns that it was fitted to."
        both = " and" if lacks and has else ""
        raise DataFailure(f"{source}: the header{lacks}{both}{has}.{hint}")


def _check_names(names: Sequence[str], source: str) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DataFailure(
                f"{source} has two columns named {name!r}. Give them different names."
            )
        seen.add(name)


def _find(
    wanted: str, names: Sequence[str], source: str, option: str, named: bool = True
) -> int:
    """Return the position of a column, given by its name or its number from 1."""
    if wanted in names:
        return names.index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= len(names):
        return int(wanted) - 1
    close = get_close_matches(wanted, names, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    columns = f"The columns are {_some(names)}."
    if not named:
        columns = (
            f"It has no line of names, so its {len(names)} columns have numbers from "
            "1. If its first line has the names, say --header yes."
        )
    raise UsageFailure(
        f"{option} {wanted!r} is not a column of {source}.{hint} {columns}"
    )


def _some(names: Sequence[str]) -> str:
    shown = ", ".join(map(repr, names[:10]))
    return shown + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def assemble(
    loaded: LoadedData,
    choice: ChosenColumns,
    numbers: NDArray,
    texts: dict[int, list[str]],
) -> tuple[NDArray, Schema]:
    """Put the features together: columns of numbers, and 0 and 1 for categories.

    ``numbers`` has the features that are not among ``texts``, in their order.
    """
    if not texts:
        return numbers, choice.schema
    names = dict(zip(choice.features, choice.schema.features, strict=True))
    known, is_new = dict(choice.schema.categories), not choice.schema.categories
    parts, next_number = [], 0
    for j in choice.features:
        if j not in texts:
            parts.append(numbers[:, next_number : next_number + 1])
            next_number += 1
            continue
        values = as_numbers(texts[j]) if is_new else None
        if values is not None and np.isfinite(values).all():
            parts.append(values[:, None].astype(np.float64))
            continue
        if is_new:
            known[names[j]] = _categories(loaded, names[j], texts[j])
        parts.append(_one_hot(loaded, names[j], texts[j], known[names[j]]))
    return np.hstack(parts), choice.schema.with_categories(known)


def _categories(loaded: LoadedData, name: str, texts: list[str]) -> list[str]:
    for i, text in enumerate(texts):
        if not text:
            raise DataFailure(f"{loaded.where(i, name)} is empty. Fill in a value.")
    found = sorted(set(texts))
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
        if text not in codes:
            raise DataFailure(
                f"{loaded.where(i, name)}: the training data did not have the value "
                f"{text!r}, only {_some(categories)}."
            )
        columns[i, codes[text]] = 1
    return columns
