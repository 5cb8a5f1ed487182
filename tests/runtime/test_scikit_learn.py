"""The private parts of scikit-learn that Mercer needs, name by name.

A failure says what has moved in scikit-learn, and which part of Mercer needs it.
"""

import ast
import importlib
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator
from sklearn.callback import CallbackContext, CallbackSupportMixin
from sklearn.model_selection import GridSearchCV
from sklearn.utils._param_validation import InvalidParameterError

import mercer
from mercer.runtime import scikit_learn as door
from mercer.runtime.progress import FitCallback

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
    assert users, f"No module needs {alias} any more: remove it from {DOOR.name}."
    assert hasattr(importlib.import_module(module), name), (
        f"scikit-learn has moved {module}.{name}, which {', '.join(users)} need: find "
        f"its new place, and change {DOOR.name}."
    )


def test_everything_behind_the_door_is_listed():
    names = {alias for module, _, alias in imports_of(DOOR) if "sklearn" in module}
    assert names == set(door.__all__)


#: Private methods and attributes, which cannot be imported: the object that must have
#: them, the name, and what breaks without it.
MEMBERS = [
    (BaseEstimator, "_validate_params", "the command line checks options too late"),
    (CallbackSupportMixin, "_init_callback_context", "no fit reports to callbacks"),
    (CallbackContext, "subcontext", "no fit reports its progress to callbacks"),
    (CallbackContext, "call_on_fit_task_begin", "no fit reports its beginning"),
    (CallbackContext, "call_on_fit_task_end", "no fit reports its end"),
    (GridSearchCV, "_format_results", "searches cannot make cv_results_"),
    (GridSearchCV, "_check_refit_for_multimetric", "searches with several scorers"),
    (GridSearchCV, "_select_best_index", "searches cannot choose the best candidate"),
    (GridSearchCV, "_run_search", "searches do not know their candidates"),
    (GridSearchCV, "_get_scorers", "searches cannot score"),
]


@pytest.mark.parametrize(("owner", "name", "loss"), MEMBERS)
def test_private_methods_that_mercer_calls(owner, name, loss):
    assert callable(getattr(owner, name, None)), (
        f"scikit-learn's {owner.__name__} has no method {name} any more. Without it: "
        f"{loss}."
    )


def test_callbacks_are_where_fits_look_for_them():
    """Fits without callbacks skip their reports, and files leave callbacks out."""

    class Silent(FitCallback):
        def receive(self, estimator, task, metadata):
            return False

    callback = Silent()
    model = mercer.SVC().set_callbacks(callback)
    assert model._skl_callbacks == [callback]
    context = model._init_callback_context(max_subtasks=None)
    assert list(context._callbacks) == [callback]
    plain = mercer.SVC()._init_callback_context(max_subtasks=None)
    assert not plain._callbacks


def test_constraints_are_checked_where_they_are_declared():
    with pytest.raises(InvalidParameterError, match="'C' parameter of SVC"):
        mercer.SVC(C=-1).fit([[0.0], [1.0]], [0, 1])
