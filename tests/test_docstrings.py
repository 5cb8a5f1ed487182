"""Docstrings of everything public name the real parameters and the real defaults."""

import ast
import importlib.util
import inspect
import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import BaseEstimator

PACKAGES = [
    *("mercer", "mercer.datasets", "mercer.files", "mercer.images", "mercer.kernels"),
    *("mercer.multiclass", "mercer.plots", "mercer.selection"),
]
# Methods that scikit-learn calls, as its protocol of callbacks says.
OF_CALLBACKS = {"setup", "teardown", "on_fit_task_begin", "on_fit_task_end", "receive"}


def public_names(package):
    module = importlib.import_module(package)
    for name in module.__all__:
        value = getattr(module, name)
        if inspect.isclass(value) or inspect.isfunction(value):
            yield f"{package}.{name}", value


def methods_of(kind):
    """Yield the public methods of a class, but those of other packages."""
    for name, method in inspect.getmembers(kind, inspect.isroutine):
        module = getattr(inspect.unwrap(method), "__module__", None) or ""
        if not name.startswith("_") and module.startswith("mercer"):
            yield name, method


def documented_things():
    things = [thing for package in PACKAGES for thing in public_names(package)]
    if importlib.util.find_spec("distributed"):
        things += public_names("mercer.dask")
    for name, thing in things:
        # Displays of scikit-learn are public here as well.
        if not thing.__module__.startswith("mercer"):
            continue
        yield name, thing
        if inspect.isclass(thing):
            for own, method in methods_of(thing):
                if own not in OF_CALLBACKS:
                    yield f"{name}.{own}", method


THINGS = dict(documented_things())
ESTIMATORS = [
    name
    for name, thing in THINGS.items()
    if re.fullmatch(r"mercer\.\w+", name)
    and inspect.isclass(thing)
    and issubclass(thing, BaseEstimator)
]


def section(thing, title):
    """Return the entries of one section of a numpydoc text: {name: type}."""
    parts = re.split(r"\n(\w[\w ]*)\n-{3,}\n", inspect.getdoc(thing) or "")
    body = dict(zip(parts[1::2], parts[2::2], strict=True)).get(title, "")
    entries = {}
    for names, kind in re.findall(
        r"^((?:\*{0,2}\w+, )*\*{0,2}\w+)(?: : (.+))?$", body, re.M
    ):
        entries |= dict.fromkeys(re.findall(r"\w+", names), kind)
    return entries


def taken(thing):
    """Return the parameters of a function, or of a class, without the first one."""
    parameters = inspect.signature(thing).parameters
    return {n: p for n, p in parameters.items() if n not in ("self", "cls")}


def is_tuple(thing):
    return inspect.isclass(thing) and issubclass(thing, tuple)


def test_everything_public_is_explained():
    assert [name for name, thing in THINGS.items() if not inspect.getdoc(thing)] == []


@pytest.mark.parametrize("package", [*PACKAGES, "mercer.dask"])
def test_everything_public_is_in_the_reference(package):
    page = (Path(__file__).parents[1] / "docs" / "api.md").read_text()
    listed = set(re.findall(r"\w+", page))
    module = ast.parse(Path(importlib.util.find_spec(package).origin).read_text())
    (names,) = (
        ast.literal_eval(line.value)
        for line in module.body
        if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "__all__"
    )
    assert set(names) - listed == set()


@pytest.mark.parametrize("package", [*PACKAGES, "mercer.dask"])
def test_documented_parameters_are_the_real_ones(package):
    for name, thing in THINGS.items():
        if name.startswith(package):
            title = "Attributes" if is_tuple(thing) else "Parameters"
            assert list(section(thing, title)) == list(taken(thing)), name


@pytest.mark.parametrize("package", [*PACKAGES, "mercer.dask"])
def test_documented_defaults_are_the_real_ones(package):
    for name, thing in THINGS.items():
        if not name.startswith(package) or is_tuple(thing):
            continue
        parameters = taken(thing)
        for parameter, text in section(thing, "Parameters").items():
            real = parameters[parameter]
            found = re.search(r"default=(.+)$", text)
            where = f"{name}: {parameter}"
            if real.default is real.empty:
                assert not found, where
            elif not text.startswith(("as in ", "as for ")):
                assert found, f"{where} has no documented default"
                assert is_written(found[1], real.default), where


def is_written(text, default):
    """Tell whether a text stands for a value: a literal, or a name such as nan."""
    try:
        return ast.literal_eval(text) == default
    except ValueError:
        name = getattr(default, "__name__", str(default))
        return text.split(".")[-1] == name


@pytest.mark.parametrize("name", ESTIMATORS)
def test_documented_attributes_are_the_real_ones(name, rng):
    estimator = THINGS[name]
    model = estimator()
    if "kernel" in model.get_params():
        model.set_params(kernel="linear")
    if "kernels" in model.get_params():
        model.set_params(kernels=["linear"])
    model.fit(rng.normal(size=(20, 3)), np.arange(20) % 2)
    public = {n for n in dir(model) if n.endswith("_") and not n.startswith("_")}
    documented = set(section(estimator, "Attributes"))
    assert public <= documented
    assert documented - public <= {"feature_names_in_", "probA_", "probB_"}


def test_estimators_are_among_them():
    estimators = [t for t in THINGS.values() if inspect.isclass(t)]
    assert sum(issubclass(kind, BaseEstimator) for kind in estimators) > 40
    assert {"mercer.SVC.predict_proba", "mercer.SVC.fit"} <= set(THINGS)
    assert "mercer.LinearSVC" in ESTIMATORS


def test_what_is_wrong_is_found():
    def function(a, b=2):
        """Do nothing.

        Parameters
        ----------
        a : int, default=1
        c, b : int, default=3
        """

    assert list(section(function, "Parameters")) == ["a", "c", "b"]
    assert section(function, "Parameters")["b"] == "int, default=3"
    assert not is_written("3", 2)
    assert is_written("nan", float("nan"))
