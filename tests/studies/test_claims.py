"""What verdicts rest on: updates in groups, ambiguous images, curves."""

import numpy as np
import pytest

from mercer import PassiveAggressiveClassifier
from mercer.datasets import make_clouds
from studies.ecoc_digits.claims import _naive
from studies.kernel_methods.online import in_groups, learnt, steps_of
from studies.mnist_kernels.claims import judge_easiest
from studies.results import Row
from studies.svm_from_scratch.ablations import Curve
from studies.svm_from_scratch.claims import _agreed, _is_best


@pytest.mark.parametrize("variant", ["pa", "pa1", "pa2"])
def test_a_group_of_one_is_the_machine_without_an_intercept(variant):
    X, y = make_clouds(60, separation=3.0, random_state=0)
    machine = PassiveAggressiveClassifier(0.1, variant, fit_intercept=False)
    alone = np.ravel(learnt(machine, X, y).coef_)
    assert in_groups(X, y, variant, 0.1, group=1) == pytest.approx(alone, rel=1e-9)
    # A group makes one update, and not those of its samples one after another.
    together = in_groups(X, y, variant, 0.1, group=20)
    assert np.abs(together - alone).max() > 1e-3 * np.abs(alone).max()


def test_a_classic_step_without_an_intercept_reaches_the_margin():
    X, sides = np.array([[0.6, 0.8], [2.0, 0.0]]), np.array([1.0, -1.0])
    tau = steps_of(X, sides, np.zeros(2), "pa", 1.0)
    for x, side, t in zip(X, sides, tau, strict=True):
        assert side * (t * side * x) @ x == pytest.approx(1.0)


def test_answers_for_ambiguous_images(quick_run):
    (report,) = [r for r in quick_run.studies if r.study.name == "ecoc-digits"]
    items = [item for outcome in report.outcomes for item in outcome.items]
    rows = [i for i in items if isinstance(i, Row) and i.table.startswith("accuracy")]
    assert rows
    for row in rows:
        found = row.values
        # Means of positive labels answer where several machines say yes, all means
        # also where none does; neither changes an answer that is unique.
        assert found["unique"] <= found["barycentre"] <= found["nearest"]
    assert any(row.values["barycentre"] < row.values["nearest"] for row in rows)


def test_a_solver_without_exact_bounds():
    # Two samples, one step to the optimum.
    stuck, steps = _naive(np.eye(2), np.array([1.0, -1.0]), 10.0)
    assert (stuck, steps) == (False, 1)


def test_digits_are_easier_if_they_have_fewer_errors():
    truth = np.repeat(np.arange(10), 200)
    found = truth.copy()
    hard = np.isin(truth, (2, 5, 8))
    found[np.flatnonzero(hard)[::4]] = 0
    assert judge_easiest((0, 1, 3), found, truth).holds is True
    assert judge_easiest((0, 2, 3), found, truth).holds is False
    assert judge_easiest((0, 1, 3), truth, truth).holds is None


def test_the_best_value_of_a_curve():
    truth = np.zeros(100, dtype=int)
    good, bad = truth.copy(), np.ones(100, dtype=int)
    own = Curve([1, 2, 3], [0.0] * 3, [0.0, 100.0, 0.0], [bad, good, bad])
    assert _is_best(own, 2, truth).holds is True
    assert _is_best(own, 3, truth).holds is False
    same = Curve([1, 2], [0.0] * 2, [100.0] * 2, [good, good])
    assert _is_best(same, 2, truth).holds is None
    assert [_agreed(v) for v in ([True, True], [True, False], [None, None])] == [
        True, None, None
    ]  # fmt: skip
