"""Fits of every machine on whatever data: no NaN, and no false certificate."""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVDD, SVR, NuSVC, NuSVR, OneClassSVM

TOL = 1e-3
EPS = np.finfo(float).eps
LAYOUTS = [
    np.ascontiguousarray,
    np.asfortranarray,
    lambda X: X.repeat(2, axis=0)[::2],
    lambda X: np.hstack([X, X])[:, ::2][:, : X.shape[1]],
    lambda X: X[::-1].copy()[::-1],
]
DTYPES = [np.float64, np.float32, np.float16, np.int64, np.int8, np.uint8, bool]
LABELS = [
    lambda y: y - 1,
    lambda y: np.array(["b", "a", "Ω"])[y],
    lambda y: np.array(["b", "a", "c"], dtype=object)[y],
    lambda y: y.astype(np.float32) - 1.0,
    lambda y: (y * 2**40).astype(np.uint64),
    lambda y: y > 0,
]


@st.composite
def samples(draw, least=1):
    """Draw samples: scale, type, layout, duplicates, constants, lines."""
    n, d = draw(st.integers(least, 40)), draw(st.integers(1, 5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = rng.normal(size=(n, d)) + draw(st.sampled_from([0.0, 0.0, 3.0, 1e3]))
    if draw(st.booleans()):
        X = X[rng.integers(0, max(1, n // 2), n)]
    if draw(st.booleans()):
        X[:, 0] = draw(st.sampled_from([0.0, 1.0, -7.5]))
    if draw(st.booleans()):
        X = np.outer(np.arange(n), X[0])
    if draw(st.integers(0, 9)) == 0:
        X[:] = X[0]
    dtype = np.dtype(draw(st.sampled_from(DTYPES)))
    if dtype.itemsize >= 4:
        X *= 10.0 ** draw(st.integers(-6, 6))
    if dtype.kind in "iu":
        X = np.clip(X, np.iinfo(dtype).min / 2, np.iinfo(dtype).max / 2)
    X = draw(st.sampled_from(LAYOUTS))(X.astype(dtype))
    X.flags.writeable = False
    return X


@st.composite
def shared_parameters(draw):
    """Draw what all machines take."""
    return dict(
        kernel=draw(st.sampled_from(["rbf", "linear", "poly", "sigmoid"])),
        gamma=draw(
            st.sampled_from(["scale", "auto", 0.0])
            | st.integers(-6, 6).map(lambda e: 10.0**e)
        ),
        coef0=draw(st.sampled_from([0.0, 1.0, -1.0, 100.0])),
        degree=draw(st.integers(0, 4)),
        shrinking=draw(st.booleans()),
        solver=draw(st.sampled_from(["auto", "auto", "smo", "decompose"])),
        tol=TOL,
        max_iter=20_000,
        n_jobs=1,
        random_state=0,
    )


prices = st.integers(-6, 8).map(lambda e: 10.0**e)
shares = st.floats(1e-3, 1.0)


def kernel_matrix(X, model):
    """Return kernel values in float64, and how far rounding may have put them off."""
    X = np.asarray(X, dtype=np.float64)
    gamma = getattr(model.kernel_, "gamma", 1.0)
    if model.kernel == "rbf":
        exponent = gamma * ((X[:, None] - X) ** 2).sum(axis=2)
        # Distances may come from products of centred samples, up to such an error.
        return np.exp(-exponent), 1e-9
    dots, sizes = X @ X.T, np.abs(X) @ np.abs(X).T
    if model.kernel == "linear":
        return dots, 16 * EPS * sizes.max()
    u = gamma * dots + model.coef0
    off = 16 * EPS * (gamma * sizes + abs(model.coef0))
    if model.kernel == "sigmoid":
        return np.tanh(u), np.minimum(2.0, off.max())
    size = gamma * sizes + abs(model.coef0)
    return u**model.degree, 64 * EPS * (size**model.degree).max()


def violation(G, beta, lo, hi):
    """Return the largest violation of a pair; what is next to a bound is at it."""
    slack = 1e-10 * (hi - lo)
    up, down = beta < hi - slack, beta > lo + slack
    if not (up.any() and down.any()):
        return 0.0
    return G[down].max() - G[up].min()


def coefficients(model, n):
    beta = np.zeros((n, len(model.intercept_)))
    beta[model.support_] = model._weights().matrix.toarray()
    return beta


def check(gap, beta, K, off):
    """Compare a gap with the tolerance, rounding apart."""
    mass = np.abs(beta).sum()
    rounding = mass * (off + 16 * EPS * np.abs(K).max())
    assert gap <= TOL * (1 + 1e-6) + 2 * rounding


def check_svc(model, X, y):
    K, off = kernel_matrix(X, model)
    labels = np.searchsorted(model.classes_, y)
    for beta, code in zip(coefficients(model, len(X)).T, model.code_.T, strict=True):
        s = code[labels].astype(float)
        lo, hi = np.minimum(0, model.C * s), np.maximum(0, model.C * s)
        assert ((beta >= lo) & (beta <= hi)).all()
        part = s != 0
        gap = violation((K @ beta - s)[part], beta[part], lo[part], hi[part])
        check(gap, beta, K, off)


def check_nusvc(model, X, y):
    K, off = kernel_matrix(X, model)
    labels = np.searchsorted(model.classes_, y)
    for beta, code in zip(coefficients(model, len(X)).T, model.code_.T, strict=True):
        s = code[labels]
        mass = 0.5 * model.nu * (s != 0).sum()
        beta = beta * (mass / beta[s > 0].sum())
        for side in (1, -1):
            part = s == side
            lo, hi = np.full((2, part.sum()), [[-1.0], [0.0]]) + (side > 0)
            np.testing.assert_allclose(side * beta[part].sum(), mass, rtol=1e-7)
            check(violation((K @ beta)[part], beta[part], lo, hi), beta, K, off)


def check_svr(model, X, y):
    K, off = kernel_matrix(X, model)
    beta = coefficients(model, len(X)).ravel()
    C, zero = np.full(len(X), model.C), np.zeros(len(X))
    G = K @ beta - y
    off += 4 * EPS * np.abs(y).max() / max(np.abs(beta).sum(), 1e-300)
    above, below = np.maximum(beta, 0), np.minimum(beta, 0)
    if isinstance(model, SVR):
        e = model.epsilon
        gap = violation(
            np.r_[G + e, G - e], np.r_[above, below], np.r_[zero, -C], np.r_[C, zero]
        )
        return check(gap, beta, K, off)
    mass = 0.5 * model.nu * C.sum()
    if above.sum() >= (1 - 1e-9) * mass:  # else samples are above and below at once
        check(violation(G, above, zero, C), beta, K, off)
        check(violation(G, below, -C, zero), beta, K, off)


def check_novelty(model, X, y):
    K, off = kernel_matrix(X, model)
    beta = coefficients(model, len(X)).ravel()
    if isinstance(model, SVDD):
        p, hi, mass = -0.5 * K.diagonal(), 1.0 if model.C is None else model.C, 1.0
    else:
        p, hi, mass = 0.0, 1.0, model.nu * len(X)
    np.testing.assert_allclose(beta.sum(), mass, rtol=1e-7)
    zero = np.zeros(len(X))
    check(violation(K @ beta + p, beta, zero, zero + hi), beta, K, 2 * off)


CHECKS = {
    SVC: check_svc,
    NuSVC: check_nusvc,
    SVR: check_svr,
    NuSVR: check_svr,
    OneClassSVM: check_novelty,
    SVDD: check_novelty,
}


@st.composite
def problems(draw, machine):
    """Draw a machine, samples and targets that it has to take."""
    parameters = draw(shared_parameters())
    classifies = machine in (SVC, NuSVC)
    X = draw(samples(2 if classifies else 1))
    n = len(X)
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    if machine in (SVC, SVR, NuSVR):
        parameters["C"] = draw(prices)
    if machine is SVDD:
        parameters["C"] = draw(st.none() | st.floats(1.0 / n + 1e-9, 1e8))
    if machine is SVR:
        parameters["epsilon"] = draw(st.sampled_from([0.0, 0.1, 10.0]))
    if machine in (NuSVR, OneClassSVM):
        parameters["nu"] = draw(shares)
    y = rng.normal(size=n) * 10.0 ** draw(st.integers(-6, 6))
    if classifies:
        n_classes = draw(st.integers(2, min(3, n)))
        y = np.r_[np.arange(n_classes), rng.integers(0, n_classes, n - n_classes)]
        if draw(st.booleans()):
            y = np.minimum(np.arange(n), n_classes - 1)  # one sample of most classes
        y = draw(st.sampled_from(LABELS))(y)
        schemes = ["ovo", "ovr", "ecoc"]
        parameters["multiclass"] = draw(st.sampled_from(schemes))
        parameters["probability"] = draw(st.booleans())
        if machine is NuSVC:
            smallest = np.unique(y, return_counts=True)[1].min() / n
            parameters["nu"] = draw(st.floats(0.01, 1.0)) * 2 * smallest
    return machine(**parameters), X, y


def check_fit(problem):
    model, X, y = problem
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
        results = [model.predict(X)]
        for method in ("decision_function", "predict_proba", "score_samples"):
            if hasattr(model, method):
                results.append(getattr(model, method)(X))
    if isinstance(model, NuSVC):  # what it says of its scale has nothing to do with it
        caught = [w for w in caught if "The margin of" not in str(w.message)]
    assert {w.category for w in caught} <= {ConvergenceWarning}
    assert model.converged_ == (not caught)
    results += [model.dual_coef_, model.intercept_, model.objective_, model.kkt_gap_]
    for values in results:
        assert np.asarray(values).dtype.kind not in "f" or np.isfinite(values).all()
    if model.converged_:
        CHECKS[type(model)](model, X, y)


every_machine = pytest.mark.parametrize("machine", CHECKS)
patient = dict(deadline=None, suppress_health_check=list(HealthCheck))


@every_machine
def test_whatever_the_data(machine):
    run = given(problems(machine))(check_fit)
    settings(max_examples=60, derandomize=True, database=None, **patient)(run)()


@pytest.mark.slow
@every_machine
def test_whatever_the_data_for_long(machine):
    run = given(problems(machine))(check_fit)
    settings(max_examples=400, **patient)(run)()


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_samples_on_a_line_of_huge_steps(solver):
    # The kernel is the identity; products of such samples would say otherwise.
    X = np.outer(np.arange(36), [1e4, 9997127.0, 10007228.0, 10010587.0])
    check_fit((OneClassSVM(gamma=1e-3, nu=0.17, solver=solver), X, None))
