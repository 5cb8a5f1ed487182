"""Every solver, whatever memory and threads it has, is certified from scratch."""

import time
import warnings

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import cdist
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning

from certificate import certify, kernel_matrix
from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM
from mercer.core import smo
from mercer.engines.cpu import class_pairs, decompose, small
from mercer.engines.cpu import solve as solving
from mercer.engines.cpu.solve import SOLVERS

ROUGH = ("simplified", "random")
EXACT = tuple(s for s in SOLVERS if s not in ROUGH)


@pytest.fixture(autouse=True, scope="module")
def not_at_once():
    """Let small problems go the way of large ones; test_small.py has their own way."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(small, "MOST_SAMPLES", 0)
        patch.setattr(class_pairs, "MOST_SAMPLES", 0)
        yield


def certificate(model, X, y, K=None):
    """Return objective and gap in double precision, and check what the fit reports."""
    if K is None:
        # Differences first: exact for data far from the origin too.
        X = np.asarray(X, dtype=np.float64)
        K = np.exp(-model.kernel_.gamma * cdist(X, X, "sqeuclidean"))
    bound = model.C * model.class_weight_[np.searchsorted(model.classes_, y)]
    objective, gap = certify(model, lambda a, b: K[np.ix_(a, b)], y, bound)
    assert model.fit_status_ == (not model.converged_)
    if model.converged_:
        assert gap <= model.tol * (1 + 1e-6)
        assert model.kkt_gap_.max() <= model.tol
    return objective, gap


def problem(n=120, n_classes=2, d=6, seed=0, sep=0.6):
    return make_classification(
        n, d, n_informative=4, n_classes=n_classes, class_sep=sep, random_state=seed
    )


@pytest.mark.parametrize("solver", EXACT)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_exact_solvers_reach_the_optimum(solver, n_classes, C):
    X, y = problem(n_classes=n_classes)
    best = SVC(C=C, tol=1e-9, solver="smo").fit(X, y).objective_
    model = SVC(C=C, tol=1e-6, solver=solver).fit(X, y)
    assert model.converged_
    certificate(model, X, y)
    np.testing.assert_allclose(model.objective_, best, rtol=1e-6)
    assert model.n_iter_.shape == model.dual_gap_.shape == model.kkt_gap_.shape
    assert (model.objective_ - best <= model.dual_gap_ + 1e-9).all()


@pytest.mark.parametrize("solver", ROUGH)
@pytest.mark.parametrize("n_classes", [2, 3])
@pytest.mark.parametrize("tol", [1e-2, 1e-6])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_rough_solvers_come_close_and_know_how_close(solver, n_classes, tol):
    X, y = problem(n_classes=n_classes)
    best = SVC(tol=1e-9).fit(X, y).objective_
    settings = dict(solver=solver, tol=tol, max_iter=300_000, random_state=0)
    model = SVC(**settings).fit(X, y)
    np.testing.assert_allclose(model.objective_, best, rtol=1e-2)
    _, gap = certificate(model, X, y)
    assert gap == pytest.approx(model.kkt_gap_.max(), rel=1e-6, abs=1e-9)
    assert model.converged_ == (gap <= tol)
    assert (model.objective_ - best <= model.dual_gap_ + 1e-9).all()
    again = SVC(**settings).fit(X, y)
    np.testing.assert_array_equal(again.dual_coef_, model.dual_coef_)


MACHINES = {
    "SVC": SVC(C=2.0),
    "NuSVC": NuSVC(nu=0.311),
    "SVR": SVR(C=2.0),
    "NuSVR": NuSVR(C=2.0, nu=0.311),
    "OneClassSVM": OneClassSVM(nu=0.311),
    "SVDD": SVDD(C=0.05),
}


def fitted(name, **settings):
    """Fit a machine on data of its kind; return it with its values on them."""
    X, y = problem(n_classes=2)
    if name.endswith("SVR"):
        y = np.sin(X[:, 0]) + 0.3 * X[:, 1]
    model = clone(MACHINES[name]).set_params(gamma=0.1, random_state=0, **settings)
    model.fit(X, y)
    values = getattr(model, "decision_function", model.predict)(X)
    return model, values


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("name", MACHINES)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_every_solver_takes_every_machine(solver, name):
    best, expected = fitted(name, tol=1e-8)
    model, values = fitted(name, solver=solver, tol=1e-5, max_iter=1_000_000)
    is_rough = solver in ROUGH
    assert model.converged_ or is_rough
    size = np.abs(best.objective_)
    # No feasible point is better than the optimum, nor worse than its gap says.
    excess = np.asarray(model.objective_ - best.objective_)
    assert (excess >= -1e-7 * size).all()
    assert (excess <= model.dual_gap_ + 1e-7 * size).all()
    assert (excess <= (0.02 if is_rough else 1e-4) * size).all()
    spread = np.abs(expected).max()
    np.testing.assert_allclose(
        values, expected, atol=(0.2 if is_rough else 1e-3) * spread
    )
    if name == "NuSVR":
        mass = 0.311 * 2.0 * model.shape_fit_[0]
        assert np.abs(model.dual_coef_).sum() <= mass * (1 + 1e-9)


@pytest.mark.parametrize("name", ["NuSVC", "NuSVR"])
def test_a_solver_that_mixes_groups_is_found_out(name, monkeypatch):
    whole = solving.COMPILED["platt"]

    def mixes(K, problem, *others):
        return whole(K, problem._replace(group=np.zeros_like(problem.group)), *others)

    monkeypatch.setitem(solving.COMPILED, "platt", mixes)
    message = (
        "1 of 1 problems: the coefficients violate their bounds or the sum of a group "
        "after .* solver='platt' has failed; use solver='auto'"
    )
    with pytest.warns(ConvergenceWarning, match=message):
        model, _ = fitted(name, solver="platt")
    assert not model.converged_


def test_single_precision_that_broke_the_sums_is_not_a_start(monkeypatch):
    def breaks(K, where, problem, beta, f, *others):
        outcome = whole(K, where, problem, beta, f, *others)
        if K.dtype == np.float32:
            beta[:] *= 0.5
            f[:] *= 0.5
        return outcome

    whole = solving.solve_and_polish
    monkeypatch.setattr(solving, "SINGLE_FROM", 50)
    good = fitted("NuSVR")[0]
    monkeypatch.setattr(solving, "solve_and_polish", breaks)
    model = fitted("NuSVR")[0]
    assert model.converged_
    assert model.objective_ == pytest.approx(good.objective_, rel=1e-3)


def test_rough_solvers_name_the_remedy():
    X, y = problem()
    with pytest.warns(ConvergenceWarning, match="approximate; use 'auto'"):
        SVC(solver="simplified", tol=1e-9, C=100.0, random_state=0).fit(X, y)


@pytest.mark.parametrize(("solver", "cache_size"), [("smo", "auto"), ("decompose", 4)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_threads_do_not_change_a_bit(solver, cache_size, dtype):
    X, y = problem(1500, n_classes=3)
    X = X.astype(dtype)
    models = [
        SVC(solver=solver, cache_size=cache_size, C=5.0, n_jobs=n_jobs).fit(X, y)
        for n_jobs in (1, 2, 3)
    ]
    for name in ("support_", "dual_coef_", "intercept_", "n_iter_", "kkt_gap_"):
        first, *others = (getattr(model, name) for model in models)
        for other in others:
            np.testing.assert_array_equal(first, other, name)
    first, *others = (model.decision_function(X) for model in models)
    for other in others:
        np.testing.assert_array_equal(first, other)


@pytest.mark.parametrize("solver", ["decompose", "wss1", "wss2"])
@pytest.mark.parametrize("cache_size", [1e-6, 0.1, 1.0, 200])
def test_memory_does_not_change_the_solution(solver, cache_size):
    X, y = problem(400, n_classes=3)
    best = SVC(solver="smo", tol=1e-6).fit(X, y)
    model = SVC(solver=solver, cache_size=cache_size).fit(X, y)
    assert model.converged_
    certificate(model, X, y)
    np.testing.assert_allclose(model.objective_, best.objective_, rtol=1e-4)
    difference = model.decision_function(X) - best.decision_function(X)
    assert np.abs(difference).max() <= 0.01


@pytest.mark.parametrize("kernel", ["rbf", "linear"])
@pytest.mark.parametrize("solver", ["platt", "random", "simplified"])
def test_textbook_solvers_without_room_for_the_matrix(solver, kernel):
    X, y = problem(400, n_classes=3)
    given = dict(kernel=kernel, solver=solver, tol=1e-2, random_state=0, gamma=0.1)
    held = SVC(**given).fit(X, y)
    forgetful = SVC(**given, cache_size=0.5).fit(X, y)
    if kernel == "rbf":
        certificate(forgetful, X, y)
    # The same choices; kernel values are computed in another way.
    assert forgetful.converged_ == held.converged_
    np.testing.assert_allclose(forgetful.objective_, held.objective_, rtol=0.02)
    with pytest.raises(MemoryError, match="needs the whole Gram matrix"):
        SVC(kernel="poly", solver=solver, cache_size=0.5).fit(X, y)


@pytest.mark.parametrize("solver", ["smo", "platt", "random", "simplified"])
def test_too_little_memory(solver):
    X, y = problem(400)
    size = r"1\.53" if solver == "smo" else r"1\.22"  # with room for shrinking
    message = (
        rf"solver='{solver}' needs the whole Gram matrix, {size} MB for 400 samples; "
        r"cache_size=0\.5 leaves 0\.38\d MB for it\. Raise cache_size, or use "
        r"solver='decompose'"
    )
    with pytest.raises(MemoryError, match=message):
        SVC(kernel="poly", solver=solver, cache_size=0.5).fit(X, y)
    assert SVC(cache_size=0.5).fit(X, y).converged_


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("max_iter", [0, 1, 20])
def test_max_iter(solver, max_iter):
    X, y = problem(n_classes=3)
    model = SVC(solver=solver, C=10.0, max_iter=max_iter)
    message = (
        rf"SVC did not converge in 3 of 3 problems: KKT gap [0-9.]+"
        rf"( and rounding errors of [1-9][0-9.e-]* are| is) more than tol=0\.001 after "
        rf"{3 * max_iter} iterations\. Solver terminated early "
        rf"\(max_iter={max_iter}\).*, or raise max_iter\."
    )
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        model.fit(X, y)
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert not model.converged_
    assert model.fit_status_ == 1
    assert model.n_iter_.tolist() == 3 * [max_iter]
    _, gap = certificate(model, X, y)
    assert model.kkt_gap_.max() == pytest.approx(gap, rel=1e-9)


@pytest.mark.parametrize("weighted", [False, True])
def test_shrinking(weighted, monkeypatch):
    X, y = problem(2400)
    weight = np.linspace(0.5, 2.0, len(y)) if weighted else None
    most = []
    solve = smo.minimise_whole
    monkeypatch.setattr(
        smo, "minimise_whole", lambda *a: most.append(a[-1]) or solve(*a)
    )
    models = [
        SVC(C=10.0, tol=1e-5, solver="smo", shrinking=shrinking).fit(X, y, weight)
        for shrinking in (True, False)
    ]
    assert most == [len(y) // 2, 0]
    np.testing.assert_allclose(models[0].objective_, models[1].objective_, rtol=1e-6)
    if not weighted:
        for model in models:
            assert model.converged_
            certificate(model, X, y)


@pytest.mark.parametrize("C", [1.0, 1e5])
@pytest.mark.parametrize("gamma", [0.01, 0.1])
@pytest.mark.parametrize("offset", [0.0, 300.0, 1e5])
@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_single_precision_is_not_trusted(C, gamma, offset, solver):
    X, y = problem(150)
    X = (X + offset).astype(np.float32)
    model = SVC(C=C, gamma=gamma, solver=solver, max_iter=200_000).fit(X, y)
    _, gap = certificate(model, X, y)
    assert model.support_vectors_.dtype == np.float32
    assert model.converged_ or model.n_iter_[0] >= 200_000 or gap > 0.5 * model.tol
    if gamma == 0.1:
        assert model.converged_


def test_single_precision_goes_on_in_double(monkeypatch):
    X, y = problem(400)
    X = X.astype(np.float32)
    seen = []
    solve = smo.minimise_whole
    monkeypatch.setattr(
        smo, "minimise_whole", lambda K, *a: seen.append(K.dtype.name) or solve(K, *a)
    )
    monkeypatch.setattr("mercer.engines.cpu.certificates.MOST_RENEWALS", 0)
    for C, dtypes in ((1.0, {"float32"}), (1e5, {"float32", "float64"})):
        seen.clear()
        model = SVC(C=C, gamma=0.1, solver="smo").fit(X, y)
        assert model.converged_
        assert set(seen) == dtypes


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("C", [0.1, 100.0])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_indefinite_kernel_ends(solver, C):
    X, y = problem()
    params = {"gamma": 0.5, "coef0": -1.0}
    K = kernel_matrix(X, X, "sigmoid", **params)
    assert np.linalg.eigvalsh(K).min() < -1.0
    model = SVC(
        kernel="sigmoid", C=C, solver=solver, max_iter=200_000, random_state=0, **params
    ).fit(X, y)
    _, gap = certificate(model, X, y, K)
    assert model.kkt_gap_.max() == pytest.approx(gap, rel=1e-6, abs=1e-9)
    assert model.converged_ or solver in ROUGH


@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 24),
    n_classes=st.sampled_from([2, 3]),
    log_C=st.floats(-6.0, 8.0),
    gamma=st.one_of(st.just(0.0), st.floats(-6.0, 4.0).map(lambda e: 10.0**e)),
    kind=st.sampled_from(["plain", "duplicates", "constant", "far", "grid", "huge"]),
    dtype=st.sampled_from([np.float32, np.float64]),
    log_tol=st.integers(-8, 0),
    solver=st.sampled_from(SOLVERS),
)
@example(0, 9, 3, 8.0, 0.0, "duplicates", np.float32, -3, "smo")
@settings(max_examples=300, deadline=None)
def test_never_called_converged_without_proof(
    seed, n, n_classes, log_C, gamma, kind, dtype, log_tol, solver
):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    if kind == "duplicates":
        X = X[rng.integers(0, max(1, n // 3), n)]
    elif kind == "constant":
        X[:, :2] = 3.0
    elif kind == "far":
        X += 1e4
    elif kind == "grid":
        X = np.round(X)
    elif kind == "huge":
        X *= 1e30
    X = X.astype(dtype)
    y = rng.integers(0, n_classes, n)
    y[:n_classes] = range(n_classes)
    model = SVC(
        C=10.0**log_C,
        gamma=gamma,
        tol=10.0**log_tol,
        solver=solver,
        # The textbook's solvers by rows are Python loops.
        max_iter=500 if solver in ("wss1", "wss2") else 20_000,
        random_state=0,
    )
    begun = time.process_time()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConvergenceWarning)
        model.fit(X, y)
    assert time.process_time() - begun < 10.0
    for name in ("dual_coef_", "intercept_", "objective_", "kkt_gap_", "dual_gap_"):
        assert np.isfinite(getattr(model, name)).all(), name
    assert np.isfinite(model.decision_function(X)).all()
    warned = any(w.category is ConvergenceWarning for w in caught)
    assert warned == (not model.converged_)
    certificate(model, X, y)


@given(
    seed=st.integers(0, 2**32 - 1),
    kernel=st.sampled_from(["linear", "poly"]),
    way=st.sampled_from(["own", "precomputed", "function"]),
    log_C=st.floats(-3.0, 6.0),
    log_scale=st.floats(-3.0, 3.0),
    solver=st.sampled_from(EXACT[:4]),
)
@example(26, "poly", "own", -1.4, 2.66, "smo")
@settings(max_examples=100, deadline=None)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_values_of_any_size(seed, kernel, way, log_C, log_scale, solver):
    rng = np.random.default_rng(seed)
    X = 10.0**log_scale * rng.normal(size=(30, 3))
    y = rng.integers(0, 2, 30)
    y[:2] = 0, 1
    params = {} if kernel == "linear" else {"gamma": 0.5, "coef0": 1.0}
    K = kernel_matrix(X, X, kernel, **params)
    common = dict(C=10.0**log_C, tol=1e-4, solver=solver, max_iter=20_000)
    if way == "own":
        model = SVC(kernel=kernel, **params, **common)
    elif way == "precomputed":
        model = SVC(kernel="precomputed", **common)
    else:
        model = SVC(kernel=lambda A, B: kernel_matrix(A, B, kernel, **params), **common)
    model.fit(K if way == "precomputed" else X, y)
    certificate(model, X, y, K)


@pytest.mark.parametrize("solver", ["smo", "decompose"])
@pytest.mark.parametrize(
    ("offset", "tol", "dtypes"),
    [
        (0.0, 1e-3, {"float32"}),
        (1e4, 1e-3, {"float32"}),  # renewed gradients make up for digits that are lost
        (1e6, 1e-3, {"float32", "float64"}),  # too many digits for single precision
        (0.0, 1e-6, {"float64"}),
    ],
)
def test_double_data_is_tried_in_single_precision(
    monkeypatch, solver, offset, tol, dtypes
):
    X, y = problem(2100)
    X = X + offset
    seen = set()

    def watch(module, name, at):
        work = getattr(module, name)
        monkeypatch.setattr(
            module, name, lambda *a: seen.add(a[at].dtype.name) or work(*a)
        )

    if solver == "smo":
        watch(smo, "minimise_whole", 0)
    else:  # where threads share the work of a problem, and where they do not
        watch(decompose, "improve_set", 3)
        watch(decompose, "play_round", 6)
    model = SVC(gamma=0.1, solver=solver, tol=tol).fit(X, y)
    assert seen == dtypes
    assert model.converged_
    _, gap = certificate(model, X, y)
    assert gap <= tol
    assert model.support_vectors_.dtype == np.float64


def test_the_limit_without_max_iter_is_named(monkeypatch):
    monkeypatch.setattr("mercer.engines.cpu.solve.MOST_STEPS", 1)
    monkeypatch.setattr("mercer.machines.base.machine.MOST_STEPS", 1)
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 2)) * [1, 1000], np.arange(40) % 2
    message = r"With max_iter=-1 the solver stops after \d+ steps\. Scale the"
    with pytest.warns(ConvergenceWarning, match=message) as caught:
        SVC(kernel="poly", C=1e9, tol=1e-9).fit(X, y)
    assert "raise max_iter" not in str(caught[0].message)
