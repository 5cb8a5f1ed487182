"""Rules of the house that a program can check."""

import ast
import doctest
import importlib
import inspect
import pkgutil
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import mercer

ROOT = Path(mercer.__file__).parent
#: Text and syntax tree of every module, by its path below the package.
FILES = {
    path.relative_to(ROOT).as_posix(): (path.read_text(), ast.parse(path.read_text()))
    for path in sorted(ROOT.rglob("*.py"))
}
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
    found = [name for name, (_, tree) in FILES.items() if "print" in called(tree)]
    assert found == []


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


def section(thing, name):
    """Return the entries of one section of a numpydoc text: {name: type}."""
    parts = re.split(r"\n(\w[\w ]*)\n-{3,}\n", inspect.getdoc(thing) or "")
    body = dict(zip(parts[1::2], parts[2::2], strict=True)).get(name, "")
    return dict(re.findall(r"^(\w+) : (.+)$", body, flags=re.MULTILINE))


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_documented_defaults_are_the_real_ones(estimator):
    documented = section(estimator, "Parameters")
    parameters = inspect.signature(estimator).parameters
    assert list(documented) == list(parameters)
    for name, text in documented.items():
        default = re.search(r"default=(.+)$", text)
        assert default, f"{name} has no documented default"
        assert ast.literal_eval(default[1]) == parameters[name].default, name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_methods_document_their_parameters(estimator):
    for name in ("fit", "predict", "decision_function", "predict_proba"):
        if method := getattr(estimator, name, None):
            taken = [p for p in inspect.signature(method).parameters if p != "self"]
            assert list(section(method, "Parameters")) == taken, name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_documented_attributes_are_the_real_ones(estimator, rng):
    model = estimator()
    if "kernel" in model.get_params():
        model.set_params(kernel="linear")
    if "kernels" in model.get_params():
        model.set_params(kernels=["linear"])
    model.fit(rng.normal(size=(20, 3)), np.arange(20) % 2)
    public = {n for n in dir(model) if n.endswith("_") and not n.startswith("_")}
    documented = set(section(estimator, "Attributes"))
    assert public <= documented
    assert documented - public <= {"feature_names_in_"}


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
