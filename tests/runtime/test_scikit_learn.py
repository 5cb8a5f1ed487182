"""What Mercer needs of scikit-learn's private parts, name by name."""

import ast
import importlib
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackSupportMixin
from sklearn.model_selection import GridSearchCV

import mercer

ROOT = Path(mercer.__file__).parent
DOOR = ROOT / "runtime" / "scikit_learn.py"


def imports_of(path):
    """Yield (module, name, alias) for everything that a file imports by name."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                yield node.module, alias.name, alias.asname or alias.name


def is_private(module, name):
    return name.startswith("_") or any(p.startswith("_") for p in module.split("."))


def users_of(alias):
    """Return the files of Mercer that take a name through the door."""
    return sorted(
        str(path.relative_to(ROOT))
        for path in ROOT.rglob("*.py")
        if any(
            module == "mercer.runtime.scikit_learn" and name == alias
            for module, name, _ in imports_of(path)
        )
    )


def test_private_names_come_through_the_door_only():
    found = [
        f"{path.relative_to(ROOT)}: {module}.{name}"
        for path in ROOT.rglob("*.py")
        if path != DOOR
        for module, name, _ in imports_of(path)
        if module.split(".")[0] == "sklearn" and is_private(module, name)
    ]
    assert found == []


@pytest.mark.parametrize(
    "module, name, alias",
    sorted(i for i in imports_of(DOOR) if i[0].startswith("sklearn")),
)
def test_scikit_learn_still_has(module, name, alias):
    users = users_of(alias)
    assert users, f"nobody needs {alias} any more: take it out of {DOOR.name}"
    assert hasattr(importlib.import_module(module), name), (
        f"scikit-learn has moved {module}.{name}, which {', '.join(users)} need: find "
        f"its new place, and mend {DOOR.name}"
    )


@pytest.mark.parametrize(
    "owner, name",
    [
        (CallbackSupportMixin, "_init_callback_context"),
        (GridSearchCV, "_format_results"),
        (GridSearchCV, "_check_refit_for_multimetric"),
        (GridSearchCV, "_select_best_index"),
        (GridSearchCV, "_run_search"),
        (GridSearchCV, "_get_scorers"),
        (BaseEstimator, "_validate_params"),
    ],
)
def test_private_methods_that_searches_and_progress_call(owner, name):
    assert callable(getattr(owner, name))
