"""Estimators with several kernels: schemes, input, files, progress."""

import logging
from itertools import combinations

import numpy as np
import pytest
from multi_data import KERNELS, blend, matrices
from scipy import sparse
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

import mercer
from mercer import SVC, MKLClassifier, MKLRegressor
from mercer.kernels import RBF, Linear, Polynomial, Precomputed, Sigmoid, name_columns
from mercer.machines.mkl import inmemory, joint_problem, methods, multi_kernel
from mercer.machines.mkl.methods import compute_products

METHODS = ["auto", "uniform", "alignment", "group-lasso", "smo", "simple"]


@pytest.fixture(scope="module")
def data():
    return blend()


@pytest.mark.parametrize("weights", ["shared", "per-task"])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr", "ecoc"])
@pytest.mark.parametrize("method", METHODS)
def test_schemes(data, method, multiclass, weights):
    X, _, y, _ = data
    names = np.array(["low", "middle", "high"])[y]
    options = dict(method=method, multiclass=multiclass, weights=weights, C=5.0)
    model = MKLClassifier(KERNELS, **options, tol=1e-6).fit(X, names)
    assert model.converged_
    assert model.score(X, names) > 0.95
    n_tasks = model.code_.shape[1]
    assert model.kkt_gap_.shape == model.intercept_.shape == (n_tasks,)
    shape = (5,) if weights == "shared" else (n_tasks, 5)
    assert model.weights_.shape == shape
    # The sum itself is the kernel of a plain machine with the same decisions.
    if weights == "shared":
        plain = SVC(
            C=5.0, kernel=model.kernel_, multiclass=multiclass, tol=1e-6,
            decision_function_shape="ovo",
        ).fit(X, names)  # fmt: skip
        model.set_params(decision_function_shape="ovo")
        np.testing.assert_allclose(
            model.decision_function(X), plain.decision_function(X), atol=3e-6
        )


@pytest.mark.parametrize("weights", ["shared", "per-task"])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_given_matrices_are_the_same(data, multiclass, weights):
    X, _, y, _ = data
    new = blend(30, seed=3)[0]
    options = dict(multiclass=multiclass, weights=weights, tol=1e-8)
    model = MKLClassifier(KERNELS, **options).fit(X, y)
    bound = [kernel.bind(X) for kernel in KERNELS]
    K = np.stack([kernel.block(X) for kernel in bound])
    K_new = np.stack([kernel.block(new, X) for kernel in bound])
    given = MKLClassifier("precomputed", **options)
    for form in (list, np.asarray, np.asfortranarray):
        given.fit(form(K), y)
        np.testing.assert_allclose(given.weights_, model.weights_, atol=1e-5)
        np.testing.assert_allclose(
            given.decision_function(form(K_new)),
            model.decision_function(new),
            atol=1e-4,
        )
    assert isinstance(given.kernel_, Precomputed)


def test_given_matrices_in_single_precision(data):
    X, z = data[0], data[3]
    K = [k.astype(np.float32) for k in matrices(X)]
    single = MKLRegressor("precomputed", tol=1e-7).fit(K, z)
    double = MKLRegressor("precomputed", tol=1e-7).fit([k.astype(float) for k in K], z)
    assert single.converged_
    assert single.objective_ == pytest.approx(double.objective_, rel=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_coefficients_stay_in_their_box_whatever_the_matrices(data):
    X, z = data[0], data[3]
    # Rounded values are those of no kernel.
    K = [np.round(10 * k) for k in matrices(X)]
    K[1:] = [k - 8 * np.eye(len(k)) for k in K[1:]]
    model = MKLRegressor("precomputed", normalize=None, max_iter=100).fit(K, z)
    assert np.abs(model.dual_coef_).max() <= model.C * (1 + 1e-12)


def test_kernels_without_weight_are_not_evaluated(data):
    X, y = data[:2]
    calls = []

    rng = np.random.default_rng(0)
    table = {x.tobytes(): i for i, x in enumerate(X)}
    random = rng.normal(size=(len(X), len(X)))
    random = random @ random.T / 100

    def arbitrary(A, B):
        calls.append(len(A))
        rows, columns = ([table.get(z.tobytes(), 0) for z in Z] for Z in (A, B))
        return random[np.ix_(rows, columns)]

    kernels = [Linear().on([0]) + RBF(gamma=0.5).on([1]), arbitrary]
    model = MKLClassifier(kernels, method="simple", C=0.05).fit(X, y)
    assert calls
    assert model.weights_[1] == 0
    calls.clear()
    model.predict(X)
    assert not calls


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_combinations_of_the_report(size):
    X, y = load_digits(return_X_y=True)
    X, y = X[:300] / 16.0, y[:300]
    four = [Linear(), Polynomial(3, 0.05, 1.0), RBF(gamma=0.05), Sigmoid(0.005, 0.0)]
    for chosen in combinations(four, size):
        for method in ("alignment", "group-lasso"):
            model = MKLClassifier(
                list(chosen), method=method, multiclass="ovo", C=10.0
            ).fit(X[:200], y[:200])
            assert model.converged_
            assert model.score(X[200:], y[200:]) > 0.8


@pytest.mark.parametrize("method", METHODS)
def test_without_room_nothing_changes(data, method):
    X, _, y, _ = data
    whole = MKLClassifier(KERNELS, method=method, tol=1e-5).fit(X, y)
    little = MKLClassifier(KERNELS, method=method, tol=1e-5, cache_size=0.02).fit(X, y)
    assert little.converged_
    assert little.objective_ == pytest.approx(whole.objective_, rel=3e-5)
    np.testing.assert_allclose(little.weights_, whole.weights_, atol=0.01)


@pytest.mark.parametrize("normalize", ["trace", "variance", None])
def test_normalization(data, normalize):
    X, y = data[:2]
    scaled = [17.0 * KERNELS[0], 0.2 * KERNELS[2]]
    options = dict(method="group-lasso", normalize=normalize, tol=1e-7)
    model = MKLClassifier([KERNELS[0], KERNELS[2]], **options).fit(X, y)
    other = MKLClassifier(scaled, **options).fit(X, y)
    is_same = np.allclose(model.weights_, other.weights_, atol=1e-4)
    assert is_same == (normalize is not None)
    total = 0.0
    for d, kernel in zip(model.weights_, (KERNELS[0], KERNELS[2]), strict=True):
        K = kernel.bind(X).block(X)
        mean = np.diag(K).mean()
        size = {"trace": mean, "variance": mean - K.mean(), None: 1.0}[normalize]
        total = total + d * K / size
    np.testing.assert_allclose(model.kernel_.block(X), total, rtol=1e-6, atol=1e-9)


def test_named_views_and_text(data):
    X, y = data[:2]
    named = name_columns(X, {"left": range(3), "right": range(3, 6)})
    model = MKLClassifier(["rbf@left", "linear@right"], method="simple").fit(named, y)
    other = MKLClassifier(
        [RBF().on(range(3)), Linear().on(range(3, 6))], method="simple"
    ).fit(X, y)
    np.testing.assert_allclose(model.weights_, other.weights_)
    one = MKLClassifier("rbf(gamma=0.1) + linear").fit(X, y)
    assert one.weights_.shape == (1,)


@pytest.mark.parametrize("kind", ["csr", "float32", "fortran", "read-only", "int"])
def test_forms_of_samples(data, kind):
    X, y = np.round(2 * data[0]), data[1]
    made = {
        "csr": sparse.csr_array,
        "float32": np.float32,
        "fortran": np.asfortranarray,
        "read-only": np.array,
        "int": lambda X: X.astype(int),
    }[kind](X)
    if kind == "read-only":
        made.flags.writeable = False
    options = dict(method="group-lasso", tol=1e-6)
    model = MKLClassifier(KERNELS[:3], **options).fit(made, y)
    plain = MKLClassifier(KERNELS[:3], **options).fit(X, y)
    np.testing.assert_allclose(model.weights_, plain.weights_, atol=1e-3)
    assert (model.predict(made) == plain.predict(X)).mean() > 0.97


def test_coef(data):
    X, y = data[:2]
    model = MKLClassifier([Linear()], tol=1e-6).fit(X, y)
    np.testing.assert_allclose(
        X @ model.coef_[0] + model.intercept_[0], model.decision_function(X)
    )
    assert not hasattr(MKLClassifier(KERNELS).fit(X, y), "coef_")


def test_probabilities(data):
    X, _, y, _ = data
    for weights in ("shared", "per-task"):
        model = MKLClassifier(
            KERNELS, probability=True, weights=weights, random_state=0
        ).fit(X, y)
        proba = model.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1.0)
        assert (model.classes_[proba.argmax(axis=1)] == model.predict(X)).all()
        assert model.score(X, y) > 0.8


def test_weights_of_samples(data):
    X, y = data[:2]
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    repeated = np.repeat(np.arange(len(y)), weight)
    # Scaling goes by all samples, whatever their weight.
    kernels = [RBF(gamma=0.3), RBF(gamma=1.0).on([0])]
    options = dict(method="group-lasso", tol=1e-8)
    one = MKLClassifier(kernels, **options).fit(X, y, sample_weight=weight)
    other = MKLClassifier(kernels, **options).fit(X[repeated], y[repeated])
    np.testing.assert_allclose(one.weights_, other.weights_, atol=1e-3)
    assert one.objective_ == pytest.approx(other.objective_, rel=1e-6)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(method="smo", p=1), "method='smo' needs p > 1, got p=1"),
        (dict(method="simple", p=2), "method='simple' needs p = 1, got p=2"),
        (dict(method="uniform", penalty=1.0), "penalty=1.0 needs method='auto'"),
        (dict(kernels=[]), "kernels is empty"),
        (dict(kernels=["rbf", "precomputed"]), "cannot be one of several"),
        (dict(kernels=["rfb"]), "Unknown kernel 'rfb'"),
        (dict(p=0.5), "'p' parameter"),
        (dict(C=np.inf), "'C' parameter"),
        (dict(normalize="size"), "'normalize' parameter"),
    ],
)
def test_contradictions(data, options, message):
    X, y = data[:2]
    with pytest.raises(ValueError, match=message):
        MKLClassifier(**{"kernels": KERNELS, **options}).fit(X, y)


def test_wrong_matrices(data):
    X, y = data[:2]
    K = np.stack(matrices(X))
    model = MKLClassifier("precomputed")
    for wrong, message in (
        (K[0], "list of matrices or an array of shape"),
        (K[:, :, :-1], "must be square and have the same shape"),
        ([K[0], K[1][:-1, :-1]], r"matrix 1 has shape \(89, 89\)"),
        (K[:, :-1, :-1], "inconsistent numbers of samples"),
        ([K[0], np.full_like(K[0], np.nan)], "Kernel 1 contains NaN"),
        ([], "list of matrices"),
    ):
        with pytest.raises(ValueError, match=message):
            model.fit(wrong, y)
    with pytest.raises(TypeError, match="Sparse precomputed"):
        model.fit([sparse.csr_array(k) for k in K], y)
    model.fit(K, y)
    with pytest.raises(ValueError, match="fitted with 5 kernels on 90 samples"):
        model.predict(K[:4])
    with pytest.raises(ValueError, match="fitted with 5 kernels on 90 samples"):
        model.predict(K[:, :, :-1])


@pytest.mark.parametrize("method", METHODS)
def test_hostile_data(data, method):
    X, y = data[:2]
    constant = np.hstack([X, np.ones((len(X), 1))])
    kernels = [RBF(gamma=0.3), Linear().on([6]), RBF(gamma=1.0).on([6]), Linear()]
    for normalize in ("trace", "variance", None):
        model = MKLClassifier(kernels, method=method, normalize=normalize)
        assert np.isfinite(model.fit(constant, y).weights_).all()
        assert model.converged_
    doubled = MKLClassifier(KERNELS, method=method).fit(
        np.vstack([X, X]), np.tile(y, 2)
    )
    assert doubled.converged_
    same = MKLClassifier([KERNELS[0]] * 3, method=method).fit(X, y)
    assert same.converged_
    with pytest.raises(ValueError, match="NaN"):
        MKLClassifier(KERNELS, method=method).fit(np.where(X > 2, np.nan, X), y)
    with pytest.raises(ValueError, match="greater than one"):
        MKLClassifier(KERNELS, method=method).fit(X, np.ones(len(X)))
    with pytest.raises(ValueError, match="not finite"):
        MKLClassifier(["linear", "poly"], method=method, gamma=1.0).fit(1e150 * X, y)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("C", [1e-8, 1e4])
def test_extreme_prices(data, method, C):
    X, y = data[:2]
    model = MKLClassifier(KERNELS, method=method, C=C).fit(X, y)
    assert model.converged_
    assert model.dual_gap_ <= 1.001e-3 * (abs(model.objective_) + model.dual_gap_)


def test_constant_values(data):
    X = data[0]
    for method in METHODS:
        model = MKLRegressor(KERNELS, method=method).fit(X, np.full(len(X), 7.0))
        assert model.converged_
        # No kernel is needed, and the constant lies in the middle of the tube.
        assert len(model.support_) == 0
        np.testing.assert_allclose(model.predict(X), 7.0, rtol=1e-12)


@pytest.mark.parametrize("max_iter", [1, 2, 5])
@pytest.mark.parametrize("method", ["group-lasso", "smo", "simple"])
def test_an_unconverged_fit_says_so(data, method, max_iter):
    p = 1.05 if method == "smo" else 1
    model = MKLClassifier(KERNELS, method=method, p=p, max_iter=max_iter, tol=1e-9)
    with pytest.warns(ConvergenceWarning, match=r"dual gap is .* raise max_iter"):
        model.fit(*data[:2])
    assert not model.converged_
    assert model.fit_status_ == 1
    assert model.n_iter_ == max_iter
    assert len(model.history_["objective"]) == max_iter
    assert model.dual_gap_ > 1e-9 * abs(model.objective_)


@pytest.mark.parametrize("method", ["uniform", "group-lasso", "simple"])
def test_no_further_round_follows_a_machine_without_end(data, method, monkeypatch):
    for module in (joint_problem, inmemory):
        monkeypatch.setattr(module, "MOST_STEPS", 20)
    model = MKLClassifier(KERNELS, method=method, C=1e3, tol=1e-6)
    with pytest.warns(ConvergenceWarning, match="after 1 rounds.* lower C"):
        model.fit(*data[:2])
    assert not model.converged_


def test_the_limit_that_is_not_the_users_is_named(data, monkeypatch):
    monkeypatch.setattr(multi_kernel, "MOST_ROUNDS", 2)
    with pytest.warns(ConvergenceWarning, match=r"after 2 rounds.* above this limit"):
        model = MKLClassifier(KERNELS, method="group-lasso", tol=1e-9).fit(*data[:2])
    assert not model.converged_


class Ender:
    """Asks for an end after some reports."""

    def __init__(self, after):
        self.after = after
        self.count = 0

    def setup(self, estimator, context):
        pass

    def teardown(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        pass

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None):
        self.count += context.task_name == "solve"
        return self.count >= self.after


@pytest.mark.parametrize("method", METHODS)
def test_callbacks_and_an_early_end(data, method, caplog):
    X, _, y, _ = data
    watcher = Ender(10**9)
    model = MKLClassifier(KERNELS, method=method, verbose=True).set_callbacks(watcher)
    with caplog.at_level(logging.INFO, logger="mercer"):
        model.fit(X, y)
    assert watcher.count >= 1
    assert "[MKLClassifier] fitted in" in caplog.text
    if method in ("uniform", "alignment"):
        return  # over too soon to be ended
    model = MKLClassifier(KERNELS, method=method, tol=1e-9).set_callbacks(Ender(1))
    with pytest.warns(ConvergenceWarning, match="callback asked for an early end"):
        model.fit(X, y)
    assert not model.converged_
    assert np.isfinite(model.weights_).all()


@pytest.mark.parametrize("weights", ["shared", "per-task"])
def test_files(data, weights, tmp_path):
    X, _, y, z = data
    given = np.stack(matrices(X))
    for model, samples, targets in (
        (MKLClassifier(KERNELS, weights=weights), X, y),
        (MKLClassifier("precomputed", weights=weights), given, y),
        (MKLRegressor(KERNELS), X, z),
    ):
        model.fit(samples, targets)
        mercer.save(model, tmp_path / "model.skops")
        again = mercer.load(tmp_path / "model.skops")
        np.testing.assert_array_equal(again.predict(samples), model.predict(samples))
        np.testing.assert_array_equal(again.weights_, model.weights_)


def test_search_and_clone(data):
    X, y = data[:2]
    search = GridSearchCV(
        MKLClassifier(KERNELS), {"C": [0.1, 1.0], "method": ["smo", "uniform"]}, cv=3
    ).fit(X, y)
    assert search.best_score_ > 0.7
    assert clone(search.best_estimator_).get_params()["kernels"] is not None


def test_threads_do_not_change_results(data):
    X, _, y, _ = data
    for method in METHODS:
        one, two = (
            MKLClassifier(KERNELS, method=method, n_jobs=n).fit(X, y) for n in (1, 2)
        )
        np.testing.assert_array_equal(one.weights_, two.weights_)
        np.testing.assert_array_equal(one.dual_coef_, two.dual_coef_)


@pytest.mark.parametrize("error", [1e-2, 10.0])
def test_a_gap_that_rounding_may_spoil_is_settled_in_double_precision(
    error, monkeypatch
):
    """An estimate of the errors that leaves no room asks for the gap itself."""
    X, y, _, _ = blend(1200)
    looked_at = []

    def settle(problem, kernel, data, samples):
        looked_at.append(len(samples))
        compute_products(problem, kernel, data, samples)

    monkeypatch.setattr(
        methods,
        "rounding_errors",
        lambda _kernel, _data, tasks, *_: np.full(len(tasks), error),
    )
    monkeypatch.setattr(methods, "compute_products", settle)
    tol = 1e-4
    model = MKLClassifier(KERNELS, method="group-lasso", p=2, tol=tol).fit(X, y)
    assert model.converged_
    assert len(looked_at) == 1  # in single precision, and no second time
    assert len(model.support_) <= looked_at[0] <= len(X)
    assert (looked_at[0] == len(X)) == (error == 10.0)
    beta = np.zeros(len(X))
    beta[model.support_] = model.dual_coef_[0]
    F = np.array([K @ beta for K in matrices(X)])
    loss = np.maximum(0, 1 - y * (model.weights_ @ F + model.intercept_[0])).sum()
    s = F @ beta
    primal = 0.5 * model.weights_ @ s + loss
    dual = y @ beta - 0.5 * np.linalg.norm(s)
    assert primal - dual <= tol * primal
    np.testing.assert_allclose(model.dual_gap_, primal - dual, atol=1e-6 * primal)
