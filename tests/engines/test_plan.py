"""Plans: what a fit is going to solve, as a value."""

from dataclasses import FrozenInstanceError

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVDD, SVR, MKLClassifier, NuSVC, NuSVR, OneClassSVM
from mercer.engines.engine import Settings, engine_of

MACHINES = [SVC, NuSVC, SVR, NuSVR, OneClassSVM, SVDD, MKLClassifier]


@pytest.fixture(scope="module")
def iris():
    return load_iris(return_X_y=True)


@pytest.mark.parametrize("machine", MACHINES)
def test_planning_does_not_change_the_estimator(iris, machine):
    model = machine()
    before = dict(vars(model))
    plan = model._plan(*iris, None)
    assert vars(model) == before
    with pytest.raises(FrozenInstanceError):
        plan.order = None


@pytest.mark.parametrize("machine", [SVC, SVR, OneClassSVM, SVDD])
def test_an_engine_solves_what_a_machine_plans(iris, machine):
    X, y = iris
    plan = machine()._plan(X, y, None)
    with engine_of(X) as engine:
        found = engine.solve(plan, Settings())
    model = machine().fit(X, y)
    objectives = [s.objective for s in found.solutions]
    np.testing.assert_array_equal(objectives, np.ravel(model.objective_))
    assert found.is_convex and not found.stopped_early
    kept = machine()
    kept._keep(plan, found)
    assert set(vars(kept)) == set(vars(model))
    np.testing.assert_array_equal(kept.predict(X), model.predict(X))


def test_costs_scale_the_bounds_only(iris):
    scaled = SVC(C=1.0)._plan(*iris, None).with_costs(7.5)
    direct = SVC(C=7.5)._plan(*iris, None)
    for one, other in zip(scaled.specs, direct.specs, strict=True):
        assert one.blocks == other.blocks
        for left, right in zip(one.problem, other.problem, strict=True):
            np.testing.assert_array_equal(left, right)


def test_the_folds_of_a_calibration_are_problems_of_the_plan(iris):
    X, y = iris
    plan = SVC(probability=True, random_state=0)._plan(X, y, None)
    assert plan.per_machine == 6 and len(plan.specs) == 18
    for t, spec in enumerate(plan.machines):
        rows = plan.rows(spec)
        for k, fold in enumerate(plan.specs[6 * t + 1 : 6 * t + 6]):
            can_move = fold.problem.hi > fold.problem.lo
            np.testing.assert_array_equal(can_move, plan.folds[rows] != k)


def test_a_fit_leaves_what_an_earlier_one_has_set(iris):
    """Only what the last fit has found is kept, and nothing of its way there."""
    X, y = iris
    settings = dict(multiclass="ecoc", random_state=0)
    model = SVC(probability=True, **settings).fit(X, y)
    model.set_params(probability=False, decode="barycentre").fit(X, y)
    model.set_params(decode="auto").fit(X, y)
    assert set(vars(model)) == set(vars(SVC(**settings).fit(X, y)))
    private = [name for name in vars(model) if name.startswith("_")]
    assert private == ["_in_use"]  # what predictions derive from the support vectors


def test_a_note_of_the_user_stays(iris):
    model = SVC()
    model.note = model._own = "from the user"
    model.fit(*iris)
    assert model.note == model._own == "from the user"


@pytest.mark.parametrize("kind", ["fit", "NuSVC", "SVDD"])
def test_warnings_are_about_the_line_of_the_user(iris, kind):
    X, y = iris
    with pytest.warns() as caught:
        if kind == "fit":
            SVC(max_iter=1).fit(X, y)
        elif kind == "NuSVC":
            NuSVC(nu=1e-6, tol=0.1).fit(X, y)
        else:
            SVDD(kernel="precomputed").fit(X @ X.T)
    assert {w.filename for w in caught} == {__file__}
    assert (caught[0].category is ConvergenceWarning) == (kind == "fit")
