"""Docstrings that share entries: each parameter is explained in one place.

A class that takes the parameters of another one says so in a line of its docstring::

    degree, gamma, coef0 : as in :class:`~mercer.SVC`

Such a line is enough for a reader of the source. For ``help`` and the reference it is
replaced by the entries themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

__all__ = ["fill_entries"]

# A line that stands for entries of another class: indent, names, and the class.
SHARED = re.compile(r"^( *)(\w+(?:, \w+)*) : as in :class:`~?(?:\w+\.)*(\w+)`$", re.M)


def fill_entries(kind: type, models: Iterable[type] = ()) -> None:
    """Complete a docstring by entries of base classes and of other classes.

    Lines that name another class than these are left as they are.
    """
    if kind.__doc__ is None:  # with -OO there are no docstrings
        return
    known = {other.__name__: other for other in (*kind.__mro__[1:], *models)}

    def entries(found: re.Match[str]) -> str:
        indent, names, model = found.groups()
        if model not in known:
            return found[0]
        return "\n".join(
            _entry(known[model].__doc__ or "", name, indent)
            for name in names.split(", ")
        )

    kind.__doc__ = SHARED.sub(entries, kind.__doc__)


def _entry(text: str, name: str, indent: str) -> str:
    """Return the lines that explain one name."""
    lines = rf"^{indent}(?:\w+, )*{name}(?:, \w+)* :.*(?:\n+{indent} +.*)*"
    found = re.search(lines, text, re.M)
    if found is None:
        raise LookupError(f"No entry explains {name}.")
    return found[0]
