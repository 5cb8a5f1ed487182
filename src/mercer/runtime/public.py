"""Public names say which public package they belong to.

Pickles and model files name the module of every class in them.  A public class gives
its package as its module, ``mercer.SVC`` rather than the file that defines it, so that
files stay readable when code moves.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from mercer.runtime.docstrings import fill_entries

__all__ = ["defined_in", "public"]

Thing = TypeVar("Thing", bound=Any)

# The modules in which public things are defined, by thing.
_DEFINED_IN: dict[Any, str] = {}


def public(package: str, *models: type) -> Callable[[Thing], Thing]:
    """Decorate a class or function so that it names a package as its module.

    Entries that the docstring of a class shares with its base classes, or with other
    classes, the ``models``, are filled in.
    """

    def named(thing: Thing) -> Thing:
        _DEFINED_IN[thing] = thing.__module__
        thing.__module__ = package
        if isinstance(thing, type):
            fill_entries(thing, models)
        return thing

    return named


def defined_in(thing: Any) -> str | None:
    """Return the module that defines a public thing; None for anything else."""
    try:
        return _DEFINED_IN.get(thing)
    except TypeError:  # a class or a function can be hashed
        return None
