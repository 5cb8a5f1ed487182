"""Times without compilation, and what the page says about a fit."""

import time

import numba
import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from mercer import SVC, SVDD, KMeans
from studies.measures import (
    REPEATS,
    SHORT,
    relative_gap,
    seconds_of,
    timed_fit,
    times_in_turn,
)


class Work:
    """Takes some seconds, and compiles a function in its first run."""

    def __init__(self, seconds, compiles=False):
        self.seconds, self.compiles, self.n_runs = seconds, compiles, 0

    def __call__(self):
        self.n_runs += 1
        if self.compiles and self.n_runs == 1:
            numba.njit(lambda x: x + 1)(1)
        time.sleep(self.seconds)


def test_short_work_is_timed_several_times():
    work = Work(0.01)
    assert 0.01 <= seconds_of(work) < SHORT
    assert work.n_runs == REPEATS


def test_a_run_that_compiled_does_not_count():
    work = Work(0.0, compiles=True)
    assert seconds_of(work) < 0.01  # compilation takes longer
    assert work.n_runs == REPEATS + 1


def test_long_work_is_timed_once_but_not_while_it_compiles():
    once, twice = Work(SHORT + 0.02), Work(SHORT + 0.02, compiles=True)
    assert seconds_of(once) > SHORT and seconds_of(twice) > SHORT
    assert (once.n_runs, twice.n_runs) == (1, 2)


def test_work_takes_turns_after_a_first_turn():
    order = []
    works = {name: lambda name=name: order.append(name) for name in "ab"}
    times = times_in_turn(works, repeats=2)
    assert order == list("ababab")
    assert {name: len(taken) for name, taken in times.items()} == {"a": 2, "b": 2}


@pytest.fixture(scope="module")
def clouds():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    return X, (X[:, 0] + 0.5 * rng.normal(size=60) > 0).astype(int)


def test_gaps_are_relative_to_the_objective(clouds):
    fitted = timed_fit(SVC(tol=1e-3), *clouds)
    model = fitted.model
    assert fitted.gap == pytest.approx(
        float(np.max(model.dual_gap_ / np.abs(model.objective_)))
    )
    assert 0 <= fitted.gap < 1e-2
    assert fitted.converged is True
    assert set(fitted.facts) == {"seconds", "gap", "converged"}


def test_a_fit_that_did_not_converge_says_so(clouds):
    with pytest.warns(ConvergenceWarning):
        fitted = timed_fit(SVC(max_iter=1), *clouds)
    assert fitted.converged is False


def test_models_without_labels_or_without_gaps(clouds):
    X, _ = clouds
    assert timed_fit(SVDD(), X).converged is True
    assert relative_gap(KMeans(2, random_state=0).fit(X)) is None
