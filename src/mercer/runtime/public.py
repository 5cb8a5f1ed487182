"""Public names say which public package they belong to.

Pickles and model files name the module of every class in them.  A public class gives
its package as its module, ``mercer.SVC`` rather than the file that defines it, so that
files stay readable when code moves.  Older files name the modules of their time.  These
former names are kept here, and importing one gives the names of its successor.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any, TypeVar

from mercer.runtime.docstrings import fill_entries

__all__ = [
    "FORMER_MODULES",
    "accept_former_modules",
    "defined_in",
    "former_names",
    "public",
]

Thing = TypeVar("Thing", bound=Any)

#: Modules of version 0.1 that pickles, model files or documents name.
FORMER_MODULES = {
    "mercer.clusters": "mercer.machines.clusters",
    "mercer.components": "mercer.machines.components",
    "mercer.export": "mercer.machines.base.export",
    "mercer.gram": "mercer.engines.engine",
    "mercer.libsvm": "mercer.files.libsvm",
    "mercer.mkl": "mercer.machines.mkl",
    "mercer.novelty": "mercer.machines.one_class",
    "mercer.nusvc": "mercer.machines.nusvc",
    "mercer.online": "mercer.machines.online",
    "mercer.passive": "mercer.machines.passive",
    "mercer.persistence": "mercer.files",
    "mercer.svc": "mercer.machines.svc",
    "mercer.svdd": "mercer.machines.svdd",
    "mercer.svr": "mercer.machines.svr",
}


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


def former_names(thing: Any) -> set[str]:
    """Return the full names that files of earlier versions use for a public thing."""
    module = _DEFINED_IN.get(thing)
    if module is None:
        return set()
    modules = {module} | {
        former + module.removeprefix(present)
        for former, present in FORMER_MODULES.items()
        if module == present or module.startswith(f"{present}.")
    }
    return {f"{module}.{thing.__name__}" for module in modules}


def present_module(name: str) -> str | None:
    """Return the present name of a former module, or None for any other name."""
    for former, present in FORMER_MODULES.items():
        if name == former or name.startswith(f"{former}."):
            return present + name.removeprefix(former)
    return None


class _FormerModules(MetaPathFinder, Loader):
    """Imports a former module as an empty one with the names of its successor."""

    def find_spec(
        self, fullname: str, path: Any = None, target: Any = None
    ) -> ModuleSpec | None:
        if present_module(fullname) is None:
            return None
        return ModuleSpec(fullname, self, is_package=True)

    def exec_module(self, module: ModuleType) -> None:
        successor = import_module(str(present_module(module.__name__)))
        for name, value in vars(successor).items():
            if not name.startswith("__") or name == "__all__":
                setattr(module, name, value)


def accept_former_modules() -> None:
    """Let imports of former modules succeed; a second call changes nothing."""
    if not any(isinstance(finder, _FormerModules) for finder in sys.meta_path):
        sys.meta_path.append(_FormerModules())
