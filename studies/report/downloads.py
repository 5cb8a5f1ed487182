"""Tables as links that contain a CSV file, so that a page without a server has them."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from urllib.parse import quote

__all__ = ["csv_link"]


def csv_link(rows: Sequence[Sequence[str]]) -> str:
    """Return the address of a CSV file that is the address itself.

    The file begins with a byte-order mark, by which spreadsheets recognise UTF-8.

    >>> csv_link([["", "β"], ["a, b", "1"]])
    'data:text/csv;charset=utf-8,%EF%BB%BF%2C%CE%B2%0D%0A%22a%2C%20b%22%2C1%0D%0A'
    """
    out = io.StringIO()
    csv.writer(out).writerows(rows)
    return "data:text/csv;charset=utf-8," + quote("\ufeff" + out.getvalue(), safe="")
