"""Which columns of a table are features, targets, or neither."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from difflib import get_close_matches
from typing import NamedTuple

from mercer.cli.data.loaded import ReadOptions, Schema
from mercer.cli.failures import DataFailure, UsageFailure
from mercer.runtime.user_warnings import warn_user

__all__ = ["ChosenColumns", "choose", "listed", "match", "warn_of_order"]


# Columns, or values of a column, that a message names.
MOST_NAMED = 10


class ChosenColumns(NamedTuple):
    """Positions of columns in a file, in the order of the model's features."""

    features: list[int]
    texts: set[int]  #: the features among them that are, or may be, categories
    target: int | None
    schema: Schema
    is_new: bool  #: whether it is the schema of a new model
    kept: Sequence[int] = ()  #: columns that go to the output


def choose(
    names: Sequence[str], named: bool, source: str, how: ReadOptions
) -> ChosenColumns:
    """Choose among the columns of a file, for a new model or for a given one."""
    _check_names(names, source, how)
    dropped = {_find(name, names, source, "--drop", named) for name in how.drop}
    if how.schema is None:
        return _for_new_model(names, named, source, how, dropped)
    kept = [_find(name, names, source, "--keep", named) for name in how.keep]
    target = _target_for(how.schema, names, named, source, how, len(dropped))
    rest = [j for j in range(len(names)) if j not in dropped and j != target]
    if how.schema.named and named:
        found = match(how.schema, [names[j] for j in rest], source, kept=how.keep)
        features = [rest[k] for k in found]
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
    to_steps = how.schema.missing == "steps"
    texts = {j for name, j in pairs if to_steps or name in how.schema.categories}
    # A prediction does not need the target, which may be blank.
    return ChosenColumns(
        features, texts, target if how.needs_target else None, how.schema, False, kept
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
        missing=how.missing,
    )
    return ChosenColumns(
        features, set(features) if how.one_hot else set(), target, schema, True
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


def match(
    schema: Schema, names: Sequence[str], source: str, kept: Sequence[str] = ()
) -> list[int]:
    """Return where the features of a model are; say which columns it does not use."""
    places = {name: k for k, name in enumerate(names)}
    missing = [name for name in schema.features if name not in places]
    others = [name for name in names if name not in set(schema.features)]
    if missing:
        has = f" and has {_some(others)}, which the model does not know"
        raise DataFailure(
            f"{source} lacks the columns {_some(missing)}{has if others else ''}. The "
            "model needs all columns that it was fitted to."
        )
    if ignored := [name for name in others if name not in kept]:
        warn_user(f"{source} has columns that the model ignores: {_some(ignored)}.")
    return [places[name] for name in schema.features]


def _check_names(names: Sequence[str], source: str, how: ReadOptions) -> None:
    """Refuse two columns of one name, unless a model ignores them."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if how.schema is not None and how.schema.named:
        used = {*how.schema.features, how.schema.target, *how.keep}
        repeated = [name for name in repeated if name in used]
    if repeated:
        raise DataFailure(
            f"{source} has two columns named {repeated[0]!r}. Give them different "
            "names."
        )


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
    return listed([repr(name) for name in names])


def listed(texts: Sequence[str], separator: str = ", ") -> str:
    """Return the first of some texts, and how many more there are."""
    more = len(texts) - MOST_NAMED
    end = f" and {more} more" if more > 0 else ""
    return separator.join(texts[:MOST_NAMED]) + end
