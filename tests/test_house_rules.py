"""Rules of the house that a program can check."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import pytest
from sklearn.base import BaseEstimator

import mercer
import studies

ROOT = Path(mercer.__file__).parent
TESTS = Path(__file__).parent
#: Text and syntax tree of every module, by its path below the package, and below the
#: folder of the studies.
FILES = {
    path.relative_to(folder).as_posix(): (path.read_text(), ast.parse(path.read_text()))
    for folder in (ROOT, Path(studies.__file__).parents[1])
    for path in sorted((folder if folder == ROOT else folder / "studies").rglob("*.py"))
}
MODULES = [
    "mercer",
    *(m.name for m in pkgutil.walk_packages(mercer.__path__, "mercer.")),
    "studies",
    *(m.name for m in pkgutil.walk_packages(studies.__path__, "studies.")),
]
ESTIMATORS = [
    value
    for name in mercer.__all__
    if inspect.isclass(value := getattr(mercer, name))
    and issubclass(value, BaseEstimator)
]


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


def test_numba_is_met_in_one_place():
    compilers = {"njit", "vectorize", "guvectorize"}
    found = [
        name
        for name, (_, tree) in FILES.items()
        if "numba" in imported(tree) or compilers & set(called(tree))
    ]
    assert found == ["core/jit.py"]


def test_nothing_is_printed():
    # But for the scores of fits, which users of a search ask for with verbose=3.
    found = [name for name, (_, tree) in FILES.items() if "print" in called(tree)]
    assert found == ["selection/bar.py"]


def test_every_file_says_what_it_is():
    found = [name for name, (_, tree) in FILES.items() if not ast.get_docstring(tree)]
    assert found == []


def test_names_say_what_is_inside():
    vague = {"utils", "helpers", "common", "misc"}
    assert [name for name in FILES if Path(name).stem in vague] == []


def test_public_names_exist():
    for name in MODULES:
        module = importlib.import_module(name)
        public = getattr(module, "__all__", [])
        assert len(set(public)) == len(public), name
        assert [n for n in public if not hasattr(module, n)] == [], name


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
    for name, function in vars(estimator).items():
        if inspect.isfunction(function):
            source = textwrap.dedent(inspect.getsource(function))
            node = ast.parse(source).body[0]
            length = node.end_lineno - node.lineno + 1
            length -= len((ast.get_docstring(node) or "").splitlines())
            assert length <= 60, name


def test_files_of_tests_have_different_names():
    # Tests are not a package, so that two files of one name cannot both be imported.
    names = Counter(path.name for path in TESTS.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []


def test_a_call_runs_through_few_files():
    # In a process of its own: here a debugger, a coverage tool or threads of other
    # tests may be traced already.
    script = ROOT.parents[1] / "tools" / "count_files.py"
    if not script.exists():
        pytest.skip("the tools are not installed with the package")
    told = subprocess.run(
        [sys.executable, script, "--list"], capture_output=True, text=True, check=False
    )
    assert told.returncode == 0, told.stdout + told.stderr
    assert "machines/svc.py" in told.stdout and "selection/search.py" in told.stdout
