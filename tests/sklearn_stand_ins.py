"""A plugin of pytest that runs scikit-learn's tests on classes of Mercer.

It is loaded before the tests are imported, with ``-p sklearn_stand_ins``. Every class
that both libraries offer under one name is then Mercer's. As a program, it runs pytest
for libraries that take such classes when they are imported themselves:
``python tests/sklearn_stand_ins.py --pyargs imblearn``.
"""

import sys

import pytest
import sklearn.decomposition
import sklearn.model_selection
import sklearn.svm
import sklearn.svm._bounds

import mercer
import mercer.selection

STAND_INS = {
    sklearn.svm: (
        mercer,
        [
            "SVC",
            "NuSVC",
            "SVR",
            "NuSVR",
            "OneClassSVM",
            "LinearSVC",
            "LinearSVR",
            "l1_min_c",
        ],
    ),
    # The tests of bounds import the function from where it is defined.
    sklearn.svm._bounds: (mercer, ["l1_min_c"]),
    sklearn.decomposition: (mercer, ["KernelPCA"]),
    sklearn.model_selection: (
        mercer.selection,
        ["GridSearchCV", "RandomizedSearchCV"],
    ),
}
#: Tests that are left out, each with its reason.
LEFT_OUT = {
    "test_probability_raises_futurewarning": (
        "scikit-learn removes the parameter probability, and Mercer keeps it"
    ),
    "test_svc_nusvc_probA_probB_deprecated": (
        "scikit-learn removes probA_ and probB_, and Mercer keeps them"
    ),
}


def pytest_configure():
    """Put Mercer's classes in, before any test is imported.

    Nothing may happen when this file is imported: the tests of Mercer import it too.
    """
    for theirs, (ours, names) in STAND_INS.items():
        for name in names:
            setattr(theirs, name, getattr(ours, name))


def pytest_collection_modifyitems(config, items):
    left_out = [item for item in items if item.originalname in LEFT_OUT]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.originalname not in LEFT_OUT]
    for module in {item.module for item in items}:
        _check_names(module)


def _check_names(module):
    """Refuse to run tests that have taken a class before it was replaced."""
    for theirs, (ours, names) in STAND_INS.items():
        for name in names:
            for place in (module, getattr(module, "svm", theirs)):
                found = getattr(place, name, getattr(ours, name))
                if found is not getattr(ours, name):
                    sys.exit(f"{module.__name__}: {name} is {found}, not Mercer's.")


if __name__ == "__main__":
    # The package in which pytest looks for tests is imported before plugins are asked.
    pytest_configure()
    sys.exit(pytest.main(sys.argv[1:]))
