"""scikit-learn's estimator checks on flattened images of one row, and our own."""

import ast
import doctest
import inspect
import re

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from mercer import SVC, images
from test_docstrings import section

# With this shape any number of features is the width of an image of one row.
ROW = (1, -1)
TRANSFORMERS = [
    images.Deskew(shape=ROW),
    images.Deskew("moments", shape=ROW),
    images.Trim(shape=ROW),
    images.MedianFilter(shape=ROW),
    images.GaussianBlur(shape=ROW),
    images.Rescale(),
    images.ToGrey(shape=ROW),
    images.HOG(cell_size=1, block_size=1, shape=ROW),
    images.GaussianProjection(),
    images.Distort(shape=ROW, random_state=0),
    images.ColourHistogram(3, 1, shape=ROW),
    images.PatchFeatures(1, 4, 1, n_patches=50, shape=ROW, random_state=0),
    images.Views(raw="passthrough", hog=images.HOG(1, 1, shape=ROW)),
]
CLASSIFIERS = [
    images.VirtualSVC(
        SVC(gamma=0.1, tol=1e-10),
        images.Distort(shape=ROW),
        2,
        "all",
        random_state=0,
    )
]
KINDS = [getattr(images, name) for name in images.__all__]


@pytest.mark.usefixtures("array_api")
@parametrize_with_checks([*TRANSFORMERS, *CLASSIFIERS])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_all_are_checked():
    assert {type(t) for t in (*TRANSFORMERS, *CLASSIFIERS)} == set(KINDS)


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
def test_clones_have_the_same_parameters(transformer):
    copy = clone(transformer)
    assert repr(copy) == repr(transformer)
    assert list(copy.get_params()) == list(transformer.get_params())


@pytest.mark.parametrize("kind", [k for k in KINDS if k is not images.Views])
def test_documented_defaults_are_the_real_ones(kind):
    documented = section(kind, "Parameters")
    parameters = inspect.signature(kind).parameters
    assert list(documented) == list(parameters)
    for name, text in documented.items():
        default = re.search(r"default=(.+)$", text)
        assert ast.literal_eval(default[1]) == parameters[name].default, name


@pytest.mark.parametrize("transformer", TRANSFORMERS, ids=str)
def test_documented_attributes_are_the_real_ones(transformer, rng):
    model = clone(transformer).fit(rng.random((6, 9)))
    public = {n for n in vars(model) if n.endswith("_") and not n.startswith("_")}
    documented = set(section(type(transformer), "Attributes"))
    assert public | {"feature_names_in_"} == documented


@pytest.mark.parametrize("kind", KINDS)
def test_examples_and_methods(kind):
    (found,) = doctest.DocTestFinder(recurse=False).find(kind)
    sources = "".join(example.source for example in found.examples)
    assert f"{kind.__name__}(" in sources
    assert ".fit(" in sources
    for name in ("fit", "transform", "angles"):
        if method := getattr(kind, name, None):
            taken = [p for p in inspect.signature(method).parameters if p != "self"]
            assert list(section(method, "Parameters")) == taken, name
