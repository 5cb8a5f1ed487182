"""Classes or values: which of the two a target is."""

import numpy as np
import pytest

from mercer.cli.data.loaded import LoadedData, Schema, Target
from mercer.cli.data.targets import as_classes, as_values, guess_task, sides, spelt_like
from mercer.cli.failures import DataFailure


def loaded(values, texts=None):
    target = Target("t", np.asarray(values), texts)
    return LoadedData("t.csv", None, Schema("table", ("a",), 1), target)


@pytest.mark.parametrize(
    ("values", "task"),
    [
        (["a", "b", "a"], "classification"),
        ([0, 1, 0, 1, 1], "classification"),
        ([-1, 1], "classification"),
        (np.arange(300) % 100, "classification"),
        (np.arange(300) % 101, "regression"),
        (np.arange(12), "regression"),
        ([0.5, 1.0, 2.0], "regression"),
    ],
)
def test_the_task_is_guessed_and_said(values, task):
    found, why = guess_task(loaded(values))
    assert found == task
    assert why.startswith("the target 't'")


@pytest.mark.parametrize("value", [0.5, np.nan, np.inf, 2.0**60])
def test_what_is_no_class(value):
    with pytest.raises(DataFailure, match=r"row 2, column 't': .* is not a class"):
        as_classes(loaded([1.0, value]))


def test_what_is_no_value():
    with pytest.raises(DataFailure, match=r"row 2.*'b' is not a number"):
        as_values(loaded(["1", "b"]))
    with pytest.raises(DataFailure, match=r"row 3.*nan is not finite"):
        as_values(loaded([1.0, 2.0, np.nan]))


def test_classes_are_spelt_as_the_model_does():
    spelt = spelt_like(loaded([1, 2], ["1", "2"]), np.array(["1", "2", "b"]))
    assert spelt.tolist() == ["1", "2"]
    with pytest.raises(DataFailure, match=r"row 2.*'b' is not one of"):
        spelt_like(loaded(["1", "b"]), np.array([1, 2]))


def test_sides():
    assert sides(loaded(["a", "b"]), "a").tolist() == [1, -1]
    assert sides(loaded([3, 4]), "4").tolist() == [-1, 1]
    assert sides(loaded([1, -1]), None).tolist() == [1, -1]
    assert sides(loaded([1, 2]), None) is None
