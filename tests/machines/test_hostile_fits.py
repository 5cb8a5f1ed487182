"""Fits of every machine on whatever data: they end, and claim nothing that is false."""

import warnings

import numpy as np
import pytest

from honest_fits import CHECKS, check_fit
from mercer import SVDD, NuSVC, OneClassSVM
from random_problems import OTHERS, run_many, try_one


@pytest.mark.parametrize("machine", [*CHECKS, *OTHERS])
def test_whatever_the_data(machine):
    for seed in range(40):
        try_one(seed, machine)


@pytest.mark.slow
@pytest.mark.ci
def test_whatever_the_data_for_long():
    assert not run_many(first=10**6, count=2000)


def badly_scaled():
    """Yield problems whose steps end in rounding far above the tolerance."""
    settings = dict(solver="decompose", tol=1e-7, max_iter=10_000)
    for seed in range(133):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(8, 60)) * 1e4, rng.integers(0, 2, 8)
        if 2 <= y.sum() <= 6:
            yield NuSVC(nu=0.1, kernel="linear", **settings), X, y
        far = (rng.normal(size=(20, 2)) + 1000).astype(np.float32)
        yield SVDD(kernel="poly", degree=2, coef0=1.0, **settings), far, None


def test_a_round_without_a_step_ends_the_solver(monkeypatch):
    from mercer.engines.cpu import decompose

    play, rounds = decompose._play, []

    def counted(*args):
        rounds.append(1)
        assert len(rounds) <= 20_000, "rounds without an end"
        return play(*args)

    monkeypatch.setattr(decompose, "_play", counted)
    converged = []
    for model, X, y in badly_scaled():
        rounds.clear()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y)
        assert np.isfinite(model.dual_gap_).all()
        converged.append(model.converged_)
    assert not all(converged)  # else nothing was badly scaled


@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_samples_on_a_line_of_huge_steps(solver):
    # The kernel is the identity; products of such samples would say otherwise.
    X = np.outer(np.arange(36), [1e4, 9997127.0, 10007228.0, 10010587.0])
    check_fit(OneClassSVM(gamma=1e-3, nu=0.17, solver=solver), X, None)
