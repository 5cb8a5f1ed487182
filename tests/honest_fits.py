"""What a fit may claim, checked from definitions in double precision.

A fit gives finite results; if it says that it has converged, its solution is as good as
it says; if it has not, it warns. Nothing of Mercer is used to check that.
"""

import warnings

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

import linear_objective
from mercer import SVC, SVDD, SVR, LinearSVC, NuSVC, NuSVR, OneClassSVM

EPS = np.finfo(float).eps


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


def check(gap, beta, K, off, tol):
    """Compare a gap with the tolerance, rounding apart."""
    mass = np.abs(beta).sum()
    rounding = mass * (off + 16 * EPS * np.abs(K).max())
    assert gap <= tol * (1 + 1e-6) + 2 * rounding, f"gap {gap} with tol={tol}"


def check_svc(model, X, y):
    K, off = kernel_matrix(X, model)
    labels = np.searchsorted(model.classes_, y)
    for beta, code in zip(coefficients(model, len(X)).T, model.code_.T, strict=True):
        s = code[labels].astype(float)
        lo, hi = np.minimum(0, model.C * s), np.maximum(0, model.C * s)
        assert ((beta >= lo) & (beta <= hi)).all()
        part = s != 0
        gap = violation((K @ beta - s)[part], beta[part], lo[part], hi[part])
        check(gap, beta, K, off, model.tol)


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
            check(
                violation((K @ beta)[part], beta[part], lo, hi), beta, K, off, model.tol
            )


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
        return check(gap, beta, K, off, model.tol)
    mass = 0.5 * model.nu * C.sum()
    if above.sum() >= (1 - 1e-9) * mass:  # else samples are above and below at once
        check(violation(G, above, zero, C), beta, K, off, model.tol)
        check(violation(G, below, -C, zero), beta, K, off, model.tol)


def check_novelty(model, X, y):
    K, off = kernel_matrix(X, model)
    beta = coefficients(model, len(X)).ravel()
    if isinstance(model, SVDD):
        p, hi, mass = -0.5 * K.diagonal(), 1.0 if model.C is None else model.C, 1.0
    else:
        p, hi, mass = 0.0, 1.0, model.nu * len(X)
    np.testing.assert_allclose(beta.sum(), mass, rtol=1e-7)
    zero = np.zeros(len(X))
    check(violation(K @ beta + p, beta, zero, zero + hi), beta, K, 2 * off, model.tol)


CHECKS = {
    SVC: check_svc,
    NuSVC: check_nusvc,
    SVR: check_svr,
    NuSVR: check_svr,
    OneClassSVM: check_novelty,
    SVDD: check_novelty,
}


def fitted(model, X, y):
    """Fit quietly; return all that the model computes, and the warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
        results = []
        for method in (
            *("predict", "decision_function", "predict_proba", "score_samples"),
            "transform",
        ):
            if hasattr(model, method):
                results.append(getattr(model, method)(X))
    if isinstance(model, NuSVC):  # what it says of its scale has nothing to do with it
        caught = [w for w in caught if "The margin of" not in str(w.message)]
    for w in caught:
        assert w.category is ConvergenceWarning, str(w.message)
    return results, caught


def assert_finite(results):
    for values in results:
        assert np.asarray(values).dtype.kind not in "f" or np.isfinite(values).all()


def check_fit(model, X, y):
    """Check the fit of a machine of :data:`CHECKS`."""
    try:
        results, caught = fitted(model, X, y)
    except ValueError as error:
        # Coefficients are finite, and kernel values with some samples are not.
        assert "decision values are not finite" in str(error), error
        return
    assert model.converged_ == (not caught), f"converged_ is {model.converged_}"
    results += [model.dual_coef_, model.intercept_, model.objective_, model.kkt_gap_]
    assert_finite(results)
    # Steps in single precision, and then in double precision.
    if model.max_iter >= 0:
        assert np.max(model.n_iter_) <= 2 * model.max_iter
    if model.converged_:
        CHECKS[type(model)](model, X, y)


def check_linear(model, X, y):
    """Check a linear machine: no weights may beat its own by more than its gap."""
    results, _ = fitted(model, X, y)
    assert_finite([*results, model.coef_, model.intercept_, model.dual_gap_])
    assert (np.asarray(model.dual_gap_) >= 0).all()

    def objective(coef, intercept):
        scaling = model.intercept_scaling if model.penalize_intercept else None
        own = dict(C=model.C, loss=model.loss, scaling=scaling)
        A = np.asarray(X, dtype=np.float64)
        if isinstance(model, LinearSVC):
            own |= dict(norm=model.penalty)
            return linear_objective.one_vs_rest(A, y, coef, intercept, **own)
        own |= dict(epsilon=model.epsilon)
        return linear_objective.regression(A, y, coef, intercept, **own)

    value = objective(model.coef_, model.intercept_)
    bound = np.asarray(model.objective_) - np.asarray(model.dual_gap_)
    # How far rounding may put off each loss, and so the objective.
    sizes = np.abs(model.coef_).max() * np.abs(np.asarray(X, dtype=float)).sum(axis=1)
    rounding = 16 * EPS * (sizes.max() + np.abs(model.intercept_).max() + 1.0)
    off = 1e-9 * np.abs(value) + 4 * model.C * len(X) * rounding
    assert (np.abs(value - model.objective_) <= 1e-6 * np.abs(value) + off).all()
    other = clone(model).set_params(tol=1e-8, random_state=1)
    fitted(other, X, y)
    for coef, intercept in (
        (other.coef_, other.intercept_),
        (0.0 * model.coef_, 0.0 * np.asarray(model.intercept_)),
        (0.999 * model.coef_, 0.999 * np.asarray(model.intercept_)),
    ):
        assert (objective(coef, intercept) >= bound - off).all(), "the gap is too small"


def check_others(model, X, y):
    """Check that a fit gives finite results, or says which values are too large."""
    try:
        results, _ = fitted(model, X, y)
    except ValueError as error:
        known = ("not finite", "too large", "All eigenvalues are negative")
        assert any(text in str(error) for text in known), error
        return
    assert_finite(results)
