"""Public things name the package that shows them."""

import inspect
import pickle
import subprocess
import sys

import pytest

import mercer
from mercer import datasets, images, kernels, plots, selection

PACKAGES = (mercer, kernels, images, selection, plots, datasets)


@pytest.mark.parametrize("package", PACKAGES, ids=lambda p: p.__name__)
def test_public_classes_name_their_package(package):
    for name in package.__all__:
        thing = getattr(package, name)
        if inspect.isclass(thing) or inspect.isfunction(thing):
            home = thing.__module__
            # What a package shows of another says where it is at home.
            assert home.split(".")[0] != "mercer" or home in {
                p.__name__ for p in PACKAGES
            }, name


def test_parts_of_kernels_name_their_package():
    composed = (2 * kernels.RBF() + kernels.Linear().on([0]) ** 2).normalized()
    text = pickle.dumps(composed).decode("latin-1")
    assert "mercer.kernels" in text
    assert "mercer.kernels.base" not in text
    assert str(pickle.loads(text.encode("latin-1"))) == str(composed)


def test_a_new_process_reads_what_this_one_pickles():
    model = mercer.SVC().fit([[0.0], [1.0]], [0, 1])
    code = (
        "import pickle, sys; model = pickle.loads(bytes.fromhex(sys.argv[1]));"
        "print(type(model).__module__, model.predict([[0.9]]))"
    )
    out = subprocess.run(
        [sys.executable, "-c", code, pickle.dumps(model).hex()],
        capture_output=True,
        text=True,
        check=True,
    )
    assert out.stdout.split() == ["mercer", "[1]"]
