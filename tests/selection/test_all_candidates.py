"""Every candidate on every fold: certified, and as good as a fit on its own."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone, is_classifier
from sklearn.metrics import accuracy_score
from sklearn.model_selection import KFold, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.engines.cpu.engine import CpuEngine
from mercer.selection.candidates import Request, last_of, weight_name
from mercer.selection.evaluation import Evaluation
from searches import check_same

GRIDS = {
    SVC: {"C": (0.05, 3.0, 40.0), "gamma": (0.1, 1.0)},
    NuSVC: {"nu": (0.1, 0.3), "gamma": (0.1, 1.0)},
    SVR: {"C": (0.05, 10.0), "epsilon": (0.01, 0.3)},
    NuSVR: {"C": (0.5, 10.0), "nu": (0.2, 0.7)},
    OneClassSVM: {"nu": (0.05, 0.4), "gamma": (0.1, 1.0)},
}


def candidates_of(kind, prefix):
    (first, some), (second, others) = GRIDS[kind].items()
    return [{prefix + first: a, prefix + second: b} for a in some for b in others]


@st.composite
def searches(draw):
    """Draw a machine, samples, weights and folds."""
    kind = draw(st.sampled_from(list(GRIDS)))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    # Problems of few variables are solved more exactly than asked for, others not.
    n = draw(st.sampled_from([60, 200, 700]))
    X = rng.normal(size=(n, 3)) * draw(st.sampled_from([0.1, 1.0, 20.0]))
    machine = kind(tol=draw(st.sampled_from([1e-3, 1e-5])))
    n_classes = draw(st.integers(2, 4))
    # Classes of the same size, which overlap: any nu below 0.5 is feasible.
    noisy = X[:, 0] / X[:, 0].std() + rng.normal(size=n)
    y = noisy.argsort().argsort() * n_classes // n
    if kind is SVC:
        options = [{"multiclass": "ovr"}, {"class_weight": "balanced"}, {}]
        machine.set_params(**draw(st.sampled_from(options)))
    if not is_classifier(machine):
        y = np.sin(X[:, 1]) + 0.1 * rng.normal(size=n)
    is_scaled = draw(st.booleans())
    estimator = make_pipeline(StandardScaler(), machine) if is_scaled else machine
    weight = rng.uniform(0.7, 1.4, n) if draw(st.booleans()) else None
    folds = StratifiedKFold if is_classifier(machine) else KFold
    seed = draw(st.sampled_from([None, 0]))
    splits = folds(draw(st.integers(2, 4)), shuffle=seed is not None, random_state=seed)
    return estimator, X, y, weight, list(splits.split(X, y))


@pytest.mark.filterwarnings("ignore:The margin of")
@settings(max_examples=25, deadline=None)
@given(searches())
def test_candidates_are_certified_and_as_good_as_fits_on_their_own(search):
    estimator, X, y, weight, splits = search
    machine = last_of(estimator)
    prefix = "" if machine is estimator else f"{estimator.steps[-1][0]}__"
    candidates = candidates_of(type(machine), prefix)
    name = weight_name(estimator)
    fit_params = {} if weight is None else {name: weight}
    request = Request(
        estimator, X, y, splits, None, fit_params, {}, False, "raise",
        keeps_models=True,
    )  # fmt: skip
    with CpuEngine(2) as engine:
        evaluation = Evaluation(request, engine)
        evaluation.run(candidates)
    assert not evaluation.plain
    for (c, k), (model, _) in evaluation.models.items():
        train = splits[k][0]
        alone = clone(estimator).set_params(**candidates[c])
        own = {} if weight is None else {name: weight[train]}
        alone.fit(X[train], y[train], **own)
        plain = last_of(alone)
        assert model.converged_ and np.max(model.kkt_gap_) <= model.tol
        # Both objectives are within their dual gap of the least one.
        gaps = np.maximum(model.dual_gap_, plain.dual_gap_)
        allowed = gaps + 1e-9 * np.abs(plain.objective_) + 1e-12
        assert (np.abs(model.objective_ - plain.objective_) <= allowed).all()


@pytest.mark.parametrize("scoring", [None, "f1_macro", "roc_auc_ovr"])
@pytest.mark.parametrize("shuffles", [False, True])
def test_scores_are_those_of_plain_fits(scoring, shuffles):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(150, 4))
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] + 0.5 * rng.normal(size=150) > 0.5)
    cv = StratifiedKFold(4, shuffle=shuffles, random_state=0 if shuffles else None)
    machine = SVC(probability=scoring == "roc_auc_ovr", random_state=0)
    grid = {"C": [0.1, 1.0, 30.0], "gamma": [0.1, 1.0]}
    check_same(machine, grid, X, y, scoring=scoring, cv=cv, atol=1e-6)


def test_results_do_not_depend_on_the_number_of_threads():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(900, 5))
    y = np.argmax(X[:, :3] + 0.7 * rng.normal(size=(900, 3)), axis=1)
    splits = list(StratifiedKFold(3).split(X, y))
    request = Request(
        SVC(), X, y, splits, None, {}, {}, False, "raise", keeps_models=True
    )
    found = []
    for n_jobs in (1, 3):
        with CpuEngine(n_jobs) as engine:
            evaluation = Evaluation(request, engine)
            evaluation.run([{"C": C, "gamma": 0.2} for C in (0.1, 1.0, 10.0)])
        found.append(evaluation.models)
    for key, (model, _) in found[0].items():
        other = found[1][key][0]
        np.testing.assert_array_equal(model.dual_coef_, other.dual_coef_)
        np.testing.assert_array_equal(model.intercept_, other.intercept_)
        np.testing.assert_array_equal(model.n_iter_, other.n_iter_)


@pytest.mark.parametrize(
    "named", [np.array(["a", "b", "c"]), np.array([3, 5, 9]), np.array([0.0, 1.0, 2.0])]
)
def test_accuracy_is_that_of_scikit_learn(named):
    rng = np.random.default_rng(7)
    X = rng.normal(size=(60, 3))
    number = np.digitize(X[:, 0], [-0.5, 0.5])
    model = SVC().fit(X, named[number])
    truth = named[np.roll(number, 1)]
    for y in (truth, truth.tolist()):
        assert model.score(X, y) == accuracy_score(truth, model.predict(X))
    weight = rng.random(60)
    expected = accuracy_score(truth, model.predict(X), sample_weight=weight)
    assert model.score(X, truth, weight) == expected
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):
        model.score(X, truth[:5])
