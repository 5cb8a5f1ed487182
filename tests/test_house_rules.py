"""Rules of the house that a program can check."""

import ast
import doctest
import importlib
import inspect
import pkgutil
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import mercer

ROOT = Path(mercer.__file__).parent
FILES = sorted(ROOT.rglob("*.py"))
NAMES = [str(path.relative_to(ROOT)) for path in FILES]
MODULES = [
    "mercer",
    *(m.name for m in pkgutil.walk_packages(mercer.__path__, "mercer.")),
]
ESTIMATORS = [
    value
    for name in mercer.__all__
    if inspect.isclass(value := getattr(mercer, name))
    and issubclass(value, BaseEstimator)
]
every_file = pytest.mark.parametrize("path", FILES, ids=NAMES)


def imported(tree):
    """Yield the top-level packages that a module imports."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module.split(".")[0]


def called(tree):
    """Yield the plain names that a module calls or decorates with."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
            yield node.func.id
        for decorator in getattr(node, "decorator_list", []):
            yield ast.unparse(decorator).split("(")[0].split(".")[-1]


@every_file
def test_numba_is_met_in_one_place(path):
    tree = ast.parse(path.read_text())
    if path == ROOT / "core" / "jit.py":
        assert "numba" in imported(tree)
    else:
        assert "numba" not in imported(tree)
        assert not {"njit", "vectorize", "guvectorize"} & set(called(tree))


@every_file
def test_files_are_short(path):
    assert len(path.read_text().splitlines()) <= 400


@every_file
def test_nothing_is_printed(path):
    assert "print" not in called(ast.parse(path.read_text()))


@every_file
def test_every_file_says_what_it_is(path):
    assert ast.get_docstring(ast.parse(path.read_text()))


@every_file
def test_names_say_what_is_inside(path):
    assert path.stem not in {"utils", "helpers", "common", "misc"}


@pytest.mark.parametrize("name", MODULES)
def test_public_names_exist(name):
    module = importlib.import_module(name)
    public = getattr(module, "__all__", [])
    assert len(set(public)) == len(public)
    assert [n for n in public if not hasattr(module, n)] == []


def test_something_is_public():
    assert ESTIMATORS
    assert mercer.__version__.count(".") == 2


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_have_examples(estimator):
    (found,) = doctest.DocTestFinder(recurse=False).find(estimator)
    assert found.examples
    sources = "".join(example.source for example in found.examples)
    assert f"{estimator.__name__}(" in sources
    assert ".fit(" in sources


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_estimators_are_small(estimator):
    # Docstrings apart: what they explain must not cost them room for it.
    tree = ast.parse(inspect.getsource(estimator))
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            length = node.end_lineno - node.lineno + 1
            length -= len((ast.get_docstring(node) or "").splitlines())
            assert length <= 60, node.name
