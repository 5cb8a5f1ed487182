"""LinearSVC: optimal, certified, and the machine that it claims to be."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import svm
from sklearn.datasets import load_digits, make_classification
from sklearn.exceptions import ConvergenceWarning

import linear_objective
from mercer import SVC, LinearSVC
from mercer.runtime.progress import FitCallback

MACHINES = {
    "hinge": {"loss": "hinge"},
    "squared": {"loss": "squared_hinge"},
    "l1": {"penalty": "l1"},
}


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        200, 8, n_informative=5, n_classes=3, class_sep=0.6, random_state=3
    )
    return X, y


def objectives(model, X, y, C=None, scaling=1.0):
    C = model.C if C is None else C
    return linear_objective.one_vs_rest(
        X, y, model.coef_, model.intercept_, C, model.loss, model.penalty, scaling
    )


@pytest.mark.parametrize("C", [1e-3, 1.0, 30.0])
@pytest.mark.parametrize("name", MACHINES)
def test_as_good_as_liblinear(problem, name, C):
    X, y = problem
    ours = LinearSVC(**MACHINES[name], C=C, tol=1e-9).fit(X, y)
    theirs = svm.LinearSVC(
        **MACHINES[name], C=C, tol=1e-10, max_iter=200_000, random_state=0
    ).fit(X, y)
    mine = objectives(ours, X, y)
    assert ours.converged_
    assert mine == pytest.approx(ours.objective_, rel=1e-10)
    assert (mine <= objectives(theirs, X, y) * (1 + 1e-8)).all()
    # The gap bounds the distance from any other solution.
    assert (mine - ours.dual_gap_ <= objectives(theirs, X, y) * (1 + 1e-12)).all()
    assert (ours.dual_gap_ <= 1e-9 * ours.objective_).all()


@pytest.mark.parametrize("name", MACHINES)
def test_loose_gap_is_a_bound(problem, name):
    X, y = problem
    best = LinearSVC(**MACHINES[name], tol=1e-10).fit(X, y)
    rough = LinearSVC(**MACHINES[name], tol=0.3).fit(X, y)
    assert (rough.dual_gap_ <= 0.3 * rough.objective_).all()
    above = rough.objective_ - best.objective_
    assert (above <= rough.dual_gap_ + 1e-9).all()
    assert (above >= -1e-8 * best.objective_).all()


@pytest.mark.parametrize("name", MACHINES)
def test_free_intercept(problem, name):
    X, y = problem
    model = LinearSVC(**MACHINES[name], penalize_intercept=False, tol=1e-8)
    model.fit(X + 3.0, y)
    assert model.converged_
    value = objectives(model, X + 3.0, y, scaling=None)
    assert value == pytest.approx(model.objective_, rel=1e-9)
    # A shift of the samples changes nothing but the intercept.
    there = LinearSVC(**MACHINES[name], penalize_intercept=False, tol=1e-8).fit(X, y)
    assert there.objective_ == pytest.approx(model.objective_, rel=1e-7)
    # A huge scaling of the penalised intercept comes close to it.
    near = LinearSVC(**MACHINES[name], intercept_scaling=1e3, tol=1e-8).fit(X, y)
    assert near.objective_ == pytest.approx(model.objective_, rel=1e-4)


def test_hinge_with_free_intercept_is_svc(problem):
    X, y = problem
    y = (y > 0).astype(int)
    ours = LinearSVC(loss="hinge", penalize_intercept=False, tol=1e-10).fit(X, y)
    kernel = SVC(kernel="linear", tol=1e-8).fit(X, y)
    assert ours.coef_ == pytest.approx(kernel.coef_, abs=1e-5)
    assert ours.intercept_ == pytest.approx(kernel.intercept_, abs=1e-5)
    assert ours.objective_ == pytest.approx(-kernel.objective_, rel=1e-7)


def test_crammer_singer(problem):
    X, y = problem
    X = X / np.abs(X).max()
    ours = LinearSVC(multi_class="crammer_singer", tol=1e-7, max_iter=20_000)
    ours.fit(X, y)
    theirs = svm.LinearSVC(
        multi_class="crammer_singer", tol=1e-9, max_iter=200_000, random_state=0
    ).fit(X, y)
    mine = linear_objective.joint(X, y, ours.coef_, ours.intercept_)
    other = linear_objective.joint(X, y, theirs.coef_, theirs.intercept_)
    assert ours.converged_
    assert mine == pytest.approx(ours.objective_[0], rel=1e-9)
    assert mine <= other * (1 + 1e-6)
    assert mine - ours.dual_gap_[0] <= other


@pytest.mark.parametrize("name", MACHINES)
def test_sparse_and_single_precision(problem, name):
    X, y = problem
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    model = LinearSVC(**MACHINES[name], tol=1e-9)
    dense = model.fit(X, y).coef_
    assert model.fit(sparse.csr_array(X), y).coef_ == pytest.approx(dense, abs=1e-5)
    X32 = X.astype(np.float32)
    single = model.fit(X32, y).coef_
    assert single == pytest.approx(dense, abs=1e-4)
    assert model.converged_
    value = objectives(model, X32.astype(np.float64), y)
    assert value == pytest.approx(model.objective_, rel=1e-9)


def test_wide_sparse_data_by_coordinate_descent(rng):
    X = sparse.random(300, 5000, 0.01, format="csr", random_state=0)
    y = (X @ rng.standard_normal((5000, 11))).argmax(axis=1)
    for loss in ("hinge", "squared_hinge"):
        ours = LinearSVC(loss=loss, tol=1e-8).fit(X, y)
        theirs = svm.LinearSVC(loss=loss, dual=True, tol=1e-9, max_iter=100_000)
        theirs.fit(X, y)
        assert ours.converged_
        mine = objectives(ours, X, y)
        assert mine == pytest.approx(ours.objective_, rel=1e-9)
        assert (mine <= objectives(theirs, X, y) * (1 + 1e-7)).all()


@pytest.mark.parametrize("free", [False, True])
def test_directions_by_conjugate_gradients(problem, free, monkeypatch):
    from mercer.engines.cpu.linear import curvature

    X, y = problem
    exact = LinearSVC(penalize_intercept=not free, tol=1e-7).fit(X, y)
    monkeypatch.setattr(curvature, "MOST_DIRECT", 0)
    model = LinearSVC(penalize_intercept=not free, tol=1e-7).fit(X, y)
    assert model.converged_
    assert model.objective_ == pytest.approx(exact.objective_, rel=1e-6)


@pytest.mark.parametrize("name", MACHINES)
def test_weights_are_repetitions(problem, name, rng):
    X, y = problem
    weight = rng.integers(0, 4, len(y))
    model = LinearSVC(**MACHINES[name], tol=1e-10)
    weighted = model.fit(X, y, sample_weight=weight).coef_
    repeated = model.fit(np.repeat(X, weight, axis=0), np.repeat(y, weight)).coef_
    assert weighted == pytest.approx(repeated, abs=1e-4)


def test_class_weight(problem):
    X, y = problem
    factors = {0: 0.5, 1: 2.0, 2: 1.0}
    model = LinearSVC(class_weight=factors, tol=1e-9).fit(X, y)
    C = np.array([factors[c] for c in y])
    assert objectives(model, X, y, C) == pytest.approx(model.objective_, rel=1e-9)
    assert model.class_weight_.tolist() == [0.5, 2.0, 1.0]


def test_class_weight_is_a_weight_of_samples_in_all_machines(problem):
    X, y = problem
    factors = {0: 0.5, 1: 2.0, 2: 1.0}
    ours = LinearSVC(class_weight=factors, tol=1e-10).fit(X, y)
    theirs = svm.LinearSVC(tol=1e-10, dual=False, max_iter=100_000)
    theirs.fit(X, y, sample_weight=[factors[c] for c in y])
    assert ours.coef_ == pytest.approx(theirs.coef_, abs=1e-5)


def test_many_samples_start_from_some(rng):
    # Enough samples for each feature for a first fit on one of eight.
    X = rng.standard_normal((4000, 5))
    y = (X @ rng.standard_normal(5) + rng.standard_normal(4000) > 0).astype(int)
    for loss in ("hinge", "squared_hinge"):
        model = LinearSVC(loss=loss, tol=1e-8).fit(X, y)
        assert model.converged_
        assert objectives(model, X, y) == pytest.approx(model.objective_, rel=1e-10)


@settings(deadline=None, max_examples=40)
@given(st.integers(0, 10_000), st.sampled_from(["hinge", "squared_hinge"]),
       st.booleans(), st.floats(-3, 3))  # fmt: skip
def test_any_small_problem_is_certified(seed, loss, penalize, log_C):
    rng = np.random.default_rng(seed)
    n, d = rng.integers(2, 30), rng.integers(1, 6)
    X = rng.standard_normal((n, d)).round(1)
    y = np.arange(n) % 2
    C = 10.0**log_C
    model = LinearSVC(loss=loss, C=C, penalize_intercept=penalize, tol=1e-6).fit(X, y)
    assert model.converged_
    scaling = 1.0 if penalize else None
    value = objectives(model, X, y, scaling=scaling)
    assert value == pytest.approx(model.objective_, rel=1e-8)
    # No small move in any direction improves it by more than the gap.
    for _ in range(5):
        step = 1e-3 * rng.standard_normal(d + 1)
        other = linear_objective.one_vs_rest(
            X, y, model.coef_ + step[:d], model.intercept_ + step[d], C, loss,
            scaling=scaling,
        )  # fmt: skip
        assert other >= value - model.dual_gap_ - 1e-9 * value


def test_warm_start_saves_rounds(problem):
    X, y = problem
    model = LinearSVC(loss="hinge", warm_start=True, tol=1e-8).fit(X, y)
    first = model.n_iter_
    model.fit(X, y)
    assert model.converged_
    assert model.n_iter_ < first
    assert model.fit(X[:, :5], y).coef_.shape == (3, 5)


def test_probabilities():
    X, y = load_digits(return_X_y=True)
    X = X / 16.0
    model = LinearSVC(probability=True, random_state=0).fit(X[:900], y[:900])
    proba = model.predict_proba(X[900:])
    assert proba.sum(axis=1) == pytest.approx(1.0)
    assert (model.predict(X[900:]) == proba.argmax(axis=1)).all()
    assert (proba.argmax(axis=1) == y[900:]).mean() > 0.9
    assert np.log(proba) == pytest.approx(model.predict_log_proba(X[900:]))
    assert len(model.probA_) == 10
    # The machines are those without calibration.
    plain = LinearSVC(random_state=0).fit(X[:900], y[:900])
    np.testing.assert_array_equal(plain.coef_, model.coef_)
    np.testing.assert_array_equal(plain.intercept_, model.intercept_)
    assert not hasattr(plain, "predict_proba")


class EndsAt(FitCallback):
    def __init__(self, round_number, error=None):
        self.left, self.error, self.seen = round_number, error, []

    def receive(self, estimator, task, metadata):
        self.seen.append(metadata)
        self.left -= 1
        if self.left == 0 and self.error is not None:
            raise self.error
        return self.left <= 0


@pytest.mark.parametrize("options", [*MACHINES.values(),
                                     {"multi_class": "crammer_singer"}])  # fmt: skip
def test_a_callback_can_end_a_fit(problem, options):
    X, y = problem
    callback = EndsAt(1)
    model = LinearSVC(**options, tol=1e-9).set_callbacks(callback)
    with pytest.warns(ConvergenceWarning, match="duality gap is"):
        model.fit(X, y)
    assert not model.converged_
    assert callback.seen[0]["problems"] == len(model.objective_)


@pytest.mark.parametrize("options", MACHINES.values())
def test_an_interrupt_leaves_the_old_model(problem, options):
    X, y = problem
    model = LinearSVC(**options).fit(X, y)
    before = dict(vars(model))
    model.set_callbacks(EndsAt(2, KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        model.set_params(tol=1e-10).fit(X + 1.0, y)
    for name in ("coef_", "intercept_", "dual_gap_"):
        assert getattr(model, name) is before[name]


def test_too_few_rounds_are_told(problem):
    X, y = problem
    with pytest.warns(ConvergenceWarning, match="Liblinear failed to converge"):
        model = LinearSVC(loss="hinge", max_iter=3, tol=1e-8).fit(X, y)
    assert model.n_iter_ == 3
    assert not model.converged_
    assert (model.dual_gap_ > 1e-8 * model.objective_).any()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"penalty": "l1", "loss": "hinge"}, "penalty='l1' and loss='hinge'"),
        ({"loss": "hinge", "dual": False}, "when dual=False"),
        ({"multi_class": "crammer_singer", "probability": True}, "probability=True"),
        (
            {"multi_class": "crammer_singer", "penalize_intercept": False},
            "penalize_intercept=False",
        ),
        ({"class_weight": {0: -1.0}}, "class_weight must be finite"),
    ],
)
def test_refusals(problem, options, message):
    with pytest.raises(ValueError, match=message):
        LinearSVC(**options).fit(*problem)


def test_weights_must_not_all_vanish(problem):
    X, y = problem
    with pytest.raises(ValueError, match="all samples have zero or negative weights"):
        LinearSVC().fit(X, y, sample_weight=np.zeros(len(y)))


def test_too_large_values_are_refused():
    X = 1e200 * np.array([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])
    with pytest.raises(ValueError, match="not finite"):
        LinearSVC().fit(X, [0, 1, 1])


def test_sparse_weights(problem):
    X, y = problem
    model = LinearSVC("l1", C=0.02).fit(X, y)
    values = model.decision_function(X)
    assert sparse.issparse(model.sparsify().coef_)
    assert model.decision_function(X) == pytest.approx(values)
    assert isinstance(model.densify().coef_, np.ndarray)
