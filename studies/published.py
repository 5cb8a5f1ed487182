"""What reports print: their numbers, their titles, and on how many samples.

The numbers of a study are in its own ``published.py``. They are no part of its results:
the page joins them to the rows, so that a corrected number needs no new run.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

__all__ = ["Late", "Published", "Source", "printed", "smallest_size"]


class Source(NamedTuple):
    """The report behind a study: title, authors, and what kind of text it is."""

    title: str
    authors: str
    kind: str
    computer: str = ""  #: the machine and the language of its times, as far as it says


class Published(NamedTuple):
    """A number that a report prints.

    ``n_test`` is the number of test samples behind a percentage. If the report does
    not say it, ``is_known`` is False and ``n_test`` is the smallest number that fits
    all its percentages, so that the interval of a comparison is as wide as it can be.
    """

    value: float
    n_test: int | None = None
    is_known: bool = True


class Late(NamedTuple):
    """A choice that a person made before the run, and what was known then."""

    what: str
    when: str
    data: str


def printed(
    n_test: int | None, is_known: bool = True, **columns: float | None
) -> dict[str, Published]:
    """Return the published values of a row; columns that are None are left out.

    >>> printed(1000, train=None, test=94.8)
    {'test': Published(value=94.8, n_test=1000, is_known=True)}
    """
    return {
        name: Published(value, n_test, is_known)
        for name, value in columns.items()
        if value is not None
    }


def smallest_size(
    percentages: Sequence[float], digits: int, most: int = 100_000
) -> int:
    """Return the smallest number of samples that gives all these percentages.

    Each must be a whole number of hits in per cent, rounded to ``digits``. A report
    that does not say how many samples it tested on had at least so many.

    >>> smallest_size([33.3, 66.7], 1)
    3
    """
    half = 0.5 * 10.0**-digits + 1e-12
    for n in range(1, most + 1):
        if all(abs(100 * round(v * n / 100) / n - v) <= half for v in percentages):
            return n
    raise ValueError(f"No number of samples up to {most:,} gives these percentages.")
