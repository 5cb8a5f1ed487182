"""Matrices of small problems, put together from blocks."""

import numpy as np
import pytest

from mercer import SVC, gram_matrix, kernels
from mercer.core.smo import Rows, fill_rows
from mercer.engines.cpu import solve as solvers
from mercer.engines.cpu.gram import BlockGram
from mercer.engines.cpu.pair import Operand
from mercer.runtime.threads import Threads

pytestmark = pytest.mark.usefixtures("the_long_way")

KERNEL = kernels.RBF(0.3)
STARTS = [0, 20, 25, 25, 60, 61]


@pytest.fixture(params=[np.float32, np.float64])
def X(request, rng):
    return rng.standard_normal((61, 4)).astype(request.param)


@pytest.mark.parametrize("wide", [1, 30, 1000])
def test_squares(X, wide, monkeypatch):
    monkeypatch.setattr("mercer.engines.cpu.gram.RUN_COLUMNS", wide)
    K = gram_matrix(KERNEL, X)
    choices = [(0, 1), (0, 2), (0, 3), (0, 4), (1, 3), (3, 4), (0, 1, 4), (3,)]
    with Threads(2) as threads:
        gram = BlockGram(KERNEL, Operand(X), STARTS, threads)
        runs = gram.runs(choices)
        assert [choice for run in runs for choice in run] == choices
        for run in runs:
            for choice, square in gram.squares(run):
                rows = np.concatenate(
                    [np.arange(STARTS[b], STARTS[b + 1]) for b in choice]
                )
                if isinstance(square, Rows):
                    few = np.arange(0, len(rows), 3)
                    fill_rows(square, few)
                    np.testing.assert_array_equal(np.flatnonzero(square.ready), few)
                    np.testing.assert_array_equal(square.diag, 1.0)
                    fill_rows(square, np.arange(len(rows)))
                    square = square.square
                expected = K[np.ix_(rows, rows)]
                np.testing.assert_allclose(square, expected, atol=1e-6)
                np.testing.assert_array_equal(square, square.T)
                assert square.dtype == X.dtype


def test_neighbours_are_computed_in_one_go(X):
    with Threads(1) as threads:
        gram = BlockGram(KERNEL, Operand(X), STARTS, threads)
        assert gram.runs([(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)]) == [
            [(0, 1), (0, 2), (0, 3)], [(1, 2), (1, 3)], [(2, 3)],
        ]  # fmt: skip


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("probability", [False, True])
def test_the_way_does_not_matter(rng, monkeypatch, n_jobs, probability):
    X = rng.standard_normal((240, 3))
    y = (X @ rng.standard_normal((3, 6))).argmax(axis=1)
    settings = dict(tol=1e-7, n_jobs=n_jobs, probability=probability, random_state=0)
    with monkeypatch.context() as patch:
        patch.setattr(solvers, "WHOLE_LIMIT", 0)
        patch.setattr(solvers, "WHOLE_LIMIT_MORE", 0)
        by_blocks = SVC(**settings).fit(X, y)
    monkeypatch.setattr(solvers, "SMALL_TASK", 0)
    whole = SVC(**settings).fit(X, y)
    np.testing.assert_allclose(by_blocks.objective_, whole.objective_, rtol=1e-9)
    np.testing.assert_allclose(
        by_blocks.decision_function(X), whole.decision_function(X), atol=1e-5
    )


def test_a_small_budget_is_kept(rng, monkeypatch):
    """Blocks that do not fit are not computed."""

    def refuse(*args):
        raise AssertionError("should not be used")

    monkeypatch.setattr(solvers, "BlockGram", refuse)
    monkeypatch.setattr(solvers, "WHOLE_LIMIT", 0)
    monkeypatch.setattr(solvers, "WHOLE_LIMIT_MORE", 0)
    X = rng.standard_normal((900, 3))
    y = np.arange(900) % 6
    model = SVC(cache_size=0.5, tol=0.5).fit(X, y)
    assert model.converged_
    with pytest.raises(AssertionError, match="should not be used"):
        SVC(cache_size=100, tol=0.5).fit(X, y)
