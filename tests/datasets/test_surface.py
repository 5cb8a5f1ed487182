"""Checks of all public functions of mercer.datasets."""

import ast
import doctest
import inspect
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from mercer import datasets

FUNCTIONS = [getattr(datasets, name) for name in datasets.__all__]
every_function = pytest.mark.parametrize(
    "function", FUNCTIONS, ids=lambda function: function.__name__
)


def parameters(function):
    """Return the documented parameters as {name: type and default}."""
    text = inspect.getdoc(function).split("Parameters\n----------\n")[1]
    body = text.split("\nReturns\n-------\n")[0]
    return dict(re.findall(r"^\*?(\w+) : (.+)$", body, flags=re.MULTILINE))


@every_function
def test_parameters_and_defaults_are_documented(function):
    documented = parameters(function)
    signature = inspect.signature(function).parameters
    assert list(documented) == list(signature)
    for name, parameter in signature.items():
        default = re.search(r"default=(.+)$", documented[name])
        if parameter.default is inspect.Parameter.empty:
            assert default is None, name
        elif default[1].startswith("numpy."):
            assert getattr(np, default[1][6:]) is parameter.default
        else:
            assert ast.literal_eval(default[1]) == parameter.default, name


@every_function
def test_there_is_an_example(function):
    (found,) = doctest.DocTestFinder(recurse=False).find(function)
    assert any(f"{function.__name__}(" in example.source for example in found.examples)


@every_function
def test_there_are_type_hints(function):
    signature = inspect.signature(function)
    assert signature.return_annotation is not inspect.Signature.empty
    for parameter in signature.parameters.values():
        assert parameter.annotation is not inspect.Parameter.empty


def test_importing_brings_in_no_downloader():
    code = (
        "import sys, mercer.datasets;"
        "sys.exit(bool({'pooch', 'requests', 'mlxtend'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_the_examples_of_the_page_run():
    page = Path(__file__).parents[2] / "docs" / "datasets.md"
    text = page.read_text(encoding="utf-8")
    blocks = re.findall(r"```python\n(.*?)```", text, re.S)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, page.name, "exec"), {})
    for name in datasets.__all__:
        assert f"`{name}" in text
