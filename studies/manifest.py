"""What a report prints, item by item, and where each item stands on the page.

Each study has a ``manifest.toml``, in the report's order: a list of places, and for
each place its items, an item in a line::

    [[place]]
    name = "Table 1"            # a number of a section, table, figure or algorithm
    kind = "number"             # number, figure, algorithm, formula, parameter or claim
    needs = "CIFAR-10"          # only if the items need data that may be missing
    items = [
      ["Raw(linear), Acc(1) 87.30", "cell: kernels / Raw linear / acc1"],
    ]

An item is its words, and one or several links:

* ``cell: TABLE / ROW / COLUMN`` is a published number beside ours; each number in
  ``published.py`` must have exactly one item;
* ``row: TABLE / ROW`` and ``table: TABLE`` are results without a published number;
* ``figure: NAME`` is a figure of ours;
* ``verdict: KEY`` is a :class:`~studies.results.Finding`; each must have an item;
* ``option: EXPRESSION`` is a public function or class of Mercer, with the options that
  do it, such as ``mercer.SVC(solver="simplified")``;
* ``erratum: WORDS`` and ``protocol: WORDS`` begin or name a line of these lists;
* ``not: REASON`` stands alone, and says why the item is not on the page.

A row is named by its key, or else by its label, which may be cut off with ``*``.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

__all__ = ["KINDS", "LINKS", "Call", "Entry", "Link", "read_manifest"]

KINDS = ("number", "figure", "algorithm", "formula", "parameter", "claim")
#: Kinds of links.
LINKS = (
    *("cell", "row", "table", "figure", "verdict"),
    *("option", "erratum", "protocol", "not"),
)


class Link(NamedTuple):
    """Where an item leads: a kind of target, and its name in parts."""

    kind: str
    parts: tuple[str, ...]

    @property
    def text(self) -> str:
        """The name of the target."""
        return " / ".join(self.parts)


class Entry(NamedTuple):
    """A printed item of a report."""

    place: str
    kind: str
    text: str
    links: tuple[Link, ...]
    needs: str = ""  #: the data without which the item cannot be computed

    @property
    def reason(self) -> str:
        """Why the item is not on the page; "" if it is."""
        return next((link.text for link in self.links if link.kind == "not"), "")


class Call(NamedTuple):
    """An option of the library: a dotted name, and the arguments that matter."""

    name: str
    arguments: dict[str, object]

    @classmethod
    def of(cls, expression: str) -> Call:
        """Read a name, or a call with constant arguments.

        >>> Call.of("mercer.SVC(solver='simplified')")
        Call(name='mercer.SVC', arguments={'solver': 'simplified'})
        """
        tree = ast.parse(expression, mode="eval").body
        if not isinstance(tree, ast.Call):
            return cls(ast.unparse(tree), {})
        given = {str(k.arg): ast.literal_eval(k.value) for k in tree.keywords}
        return cls(ast.unparse(tree.func), given)


@cache
def read_manifest(path: Path) -> tuple[Entry, ...]:
    """Return the items of a report, in its order; raise an error on a wrong line."""
    read = tomllib.loads(path.read_text(encoding="utf-8"))
    return tuple(_entries(read["place"]))


def _entries(places: Sequence[dict]) -> Iterator[Entry]:
    for place in places:
        kind = place["kind"]
        if kind not in KINDS:
            raise ValueError(f"{kind!r} is none of {', '.join(KINDS)}.")
        for text, *links in place["items"]:
            found = tuple(map(_link, links))
            kinds = {link.kind for link in found}
            if not kinds or ("not" in kinds and len(found) > 1):
                raise ValueError(f"{text!r} needs links, or one reason why not.")
            yield Entry(place["name"], kind, text, found, place.get("needs", ""))


def _link(text: str) -> Link:
    """Read a link.

    >>> _link("cell: kernels / HOG linear / acc1").parts
    ('kernels', 'HOG linear', 'acc1')
    """
    kind, colon, name = text.partition(":")
    if kind not in LINKS or not colon or not name.strip():
        raise ValueError(f"{text!r} does not begin with one of {', '.join(LINKS)}.")
    parts = name.split(" / ") if kind in ("cell", "row") else [name]
    return Link(kind, tuple(part.strip() for part in parts))
