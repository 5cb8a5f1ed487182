"""The examples in the docstrings of public classes.

A public class names its package as its module, so pytest does not find its docstring
where it is written.
"""

import doctest
import inspect

import pytest

import mercer
from mercer import images, kernels, plots, selection

CLASSES = [
    getattr(package, name)
    for package in (mercer, images, kernels, plots, selection)
    for name in package.__all__
    if inspect.isclass(getattr(package, name))
    and getattr(package, name).__module__ == package.__name__
]
FLAGS = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS


@pytest.mark.parametrize("public", CLASSES, ids=lambda c: c.__name__)
def test_examples(public):
    runner = doctest.DocTestRunner(optionflags=FLAGS, verbose=False)
    for example in doctest.DocTestFinder().find(public, module=False, globs={}):
        runner.run(example)
    assert runner.failures == 0


def test_there_are_examples():
    finder = doctest.DocTestFinder()
    found = [c for c in CLASSES for t in finder.find(c, module=False) if t.examples]
    assert len(found) > 30
