"""Coordinate descent on wide sparse samples: certificates, and lanes as oracle."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from mercer.engines.cpu.linear import wide
from mercer.engines.cpu.linear.descent import coordinate_descent
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.problems import with_intercept
from mercer.engines.cpu.linear.wide import wide_descent

TOL = 1e-7
LOSSES = ("hinge", "squared", "insensitive", "squared insensitive")


def case(loss, k=3, scaling=1.0, seed=0):
    """Return samples, a few of which are empty or without weight, and problems."""
    rng = np.random.default_rng(seed)
    n, d = 60, 90
    X = sparse.random_array((n, d), density=0.08, rng=rng).tocsr()
    X = sparse.csr_array(X.multiply(np.arange(n)[:, None] % 17 > 0))
    C = 2.0 * rng.random((k, n)) * (rng.random((k, n)) < 0.9)
    most = np.where(C > 0, np.inf, 0.0)
    ridge = 0.5 / np.where(C > 0, C, 1.0)
    if "insensitive" in loss:
        z = X @ rng.standard_normal((d, k)) + 0.1 * rng.standard_normal((n, k))
        p = np.hstack([0.1 - z.T, -0.1 - z.T])
        top = most if "squared" in loss else C
        lo, hi = np.hstack([0 * C, -top]), np.hstack([top, 0 * C])
        ridge = np.tile(ridge, 2)
    else:
        y = np.where(rng.random((k, n)) < 0.4, 1.0, -1.0)
        top = most if loss == "squared" else C
        p, lo, hi = -y, np.where(y > 0, 0.0, -top), np.where(y > 0, top, 0.0)
    if "squared" not in loss:
        ridge = np.zeros_like(p)
    return Features(X), with_intercept(p, lo, hi, ridge, n, scaling, True)


def solved(features, problems, max_iter=5000, stop=False, tol=TOL, **options):
    return wide_descent(
        features, problems, tol, max_iter, 0, np.array([stop]), **options
    )


def objectives(features, problems, task):
    """Return primal and dual objective, computed from weights and coefficients."""
    c = task.number
    p, lo, hi, ridge = (numbers[c] for numbers in problems[:4])
    z = np.tile(features.X @ task.w, len(p) // features.n)
    if problems.n_shifts:
        z = z + problems.value * task.u[0]
    g = z + p
    with np.errstate(divide="ignore", invalid="ignore"):
        best = np.where(ridge > 0, -g / ridge, np.where(g < 0, hi, lo))
    best = np.clip(best, lo, hi)
    loss = -(best * (g + 0.5 * ridge * best)).sum()
    by_row = task.beta.reshape(-1, features.n).sum(axis=0)
    w, u = features.X.T @ by_row, problems.value * by_row.sum()
    norm = 0.5 * (w @ w + (u * u if problems.n_shifts else 0.0))
    rest = task.beta @ p + 0.5 * (ridge * task.beta) @ task.beta
    own = 0.5 * (task.w @ task.w + task.u @ task.u)
    return own + loss, -norm - rest


@pytest.mark.parametrize("scaling", [None, 0.5, 2.0])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_gap_is_that_of_weights_and_coefficients(loss, scaling):
    features, problems = case(loss, scaling=scaling)
    for task in solved(features, problems):
        c = task.number
        assert task.done
        assert (problems.lo[c] <= task.beta).all()
        assert (task.beta <= problems.hi[c]).all()
        primal, dual = objectives(features, problems, task)
        assert task.primal == pytest.approx(primal, rel=1e-12)
        assert task.dual == pytest.approx(dual, rel=1e-10)
        assert primal - dual <= TOL * primal * (1 + 1e-6)


@pytest.mark.parametrize("loss", LOSSES)
def test_lanes_find_the_same(loss):
    features, problems = case(loss)
    ours = solved(features, problems)
    theirs = coordinate_descent(
        features,
        problems,
        lambda task: task.gap <= TOL * task.primal,
        5000,
        0,
        np.zeros(1, dtype=np.bool_),
    )
    for one, other in zip(ours, theirs, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=2 * TOL)
        # Half the squared distance of the weights is at most the sum of the gaps.
        assert np.abs(one.w - other.w).max() <= np.sqrt(4 * TOL * one.primal)


@given(st.sampled_from(LOSSES), st.integers(0, 1000), st.sampled_from([1, 2, 3, 7, 30]))
def test_any_number_of_epochs_leaves_a_true_gap(loss, seed, max_iter):
    features, problems = case(loss, k=1, seed=seed)
    (task,) = solved(features, problems, max_iter)
    primal, dual = objectives(features, problems, task)
    assert task.n_iter <= max_iter
    assert task.primal == pytest.approx(primal, rel=1e-12)
    assert task.dual == pytest.approx(dual, rel=1e-10, abs=1e-10)
    assert task.done == (task.gap <= TOL * task.primal)


@pytest.mark.parametrize("loss", LOSSES)
def test_reports_change_nothing(loss):
    features, problems = case(loss)
    quiet = solved(features, problems)
    seen = []
    told = solved(
        features, problems, report=lambda tasks: seen.append([t.gap for t in tasks])
    )
    assert len(seen) > 2
    assert seen[-1] == [task.gap for task in quiet]
    for one, other in zip(quiet, told, strict=True):
        np.testing.assert_array_equal(one.w, other.w)
        np.testing.assert_array_equal(one.beta, other.beta)


def test_coefficients_of_a_solution_need_no_epoch():
    features, problems = case("hinge")
    beta = np.array([task.beta for task in solved(features, problems)])
    again = solved(features, problems, beta=beta)
    assert [task.n_iter for task in again] == [0, 0, 0]
    assert all(task.done for task in again)


def test_an_interrupt_leaves_coefficients_and_a_gap():
    features, problems = case("hinge")
    for task in solved(features, problems, stop=True):
        primal, dual = objectives(features, problems, task)
        assert task.gap == pytest.approx(primal - dual)
        assert not task.done


def test_what_was_set_aside_comes_back(monkeypatch):
    # Samples are set aside as soon as they rest at a bound, however little.
    monkeypatch.setattr(wide, "FIRST_EPS", 1e-12)
    for loss in LOSSES:
        features, problems = case(loss)
        assert all(task.done for task in solved(features, problems))


@pytest.mark.parametrize("loss", LOSSES)
def test_gaps_become_smaller_than_errors_of_single_precision(loss):
    features, problems = case(loss)
    for task in solved(features, problems, tol=1e-11):
        primal, dual = objectives(features, problems, task)
        assert task.done
        assert primal - dual <= 2e-11 * primal


@pytest.mark.parametrize("scale", [1e-42, 1e40])
def test_values_that_single_precision_cannot_hold(scale):
    features, problems = case("squared", scaling=None)
    X = sparse.csr_array(features.X * scale)
    # The smaller the values, the smaller the ridge of the same problem.
    given = problems._replace(ridge=problems.ridge * scale**2)
    expected = solved(features, problems)
    for one, other in zip(solved(Features(X), given), expected, strict=True):
        assert one.done
        assert one.primal * scale**2 == pytest.approx(other.primal, rel=2 * TOL)


@pytest.mark.parametrize("d", [2**16, 2**16 + 1])
def test_the_last_column_counts_in_two_and_in_four_bytes(d):
    features, problems = case("squared")
    X = features.X.tocoo()
    columns = X.coords[1] + (d - features.d)
    wide_X = sparse.csr_array((X.data, (X.coords[0], columns)), shape=(features.n, d))
    for one, other in zip(
        solved(Features(wide_X), problems), solved(features, problems), strict=True
    ):
        np.testing.assert_array_equal(one.w[-features.d :], other.w)
        assert not one.w[: -features.d].any()
