"""Shifts of linear problems against their definition."""

import numpy as np
import pytest

from mercer.core.linear_pieces import repair_sums, respond, settle_shifts


def problem(seed, is_squared):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(3, 20))
    sides = np.where(np.arange(n) < n // 2 + 1, 1.0, -1.0)
    most = np.full(n, np.inf) if is_squared else rng.random(n) + 0.1
    return {
        "score": rng.standard_normal(n) * 10.0 ** rng.uniform(-2, 2),
        "p": -sides,
        "lo": np.where(sides > 0, 0.0, -most),
        "hi": np.where(sides > 0, most, 0.0),
        "ridge": rng.random(n) + 0.1 if is_squared else np.zeros(n),
        "base": np.zeros(n) if is_squared else sides * rng.random(n) * most,
        "inverse": 0.0 if is_squared else 10.0 ** rng.uniform(-4, 2),
        "row": np.arange(n),
        "group": np.zeros(n, dtype=np.intp),
    }


@pytest.mark.parametrize("is_squared", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_settled_shifts_fix_the_sums(seed, is_squared):
    given = problem(seed, is_squared)
    n = len(given["p"])
    u, totals = np.array([3.0]), np.zeros(1)
    beta, free = np.empty(n), np.empty(n, dtype=np.bool_)
    order = ("p", "lo", "hi", "ridge", "base", "inverse", "row", "group")
    rest = [given[name] for name in order]
    settle_shifts(given["score"], u, -1.0, *rest, totals)
    respond(given["score"], u, -1.0, *rest, beta, free)
    assert abs(beta.sum()) <= 1e-9 * np.abs(beta).sum()
    repair_sums(given["lo"], given["hi"], given["group"], totals, beta, free)
    assert abs(beta.sum()) <= 1e-14 * np.abs(beta).sum()
    assert (beta >= given["lo"]).all()
    assert (beta <= given["hi"]).all()


def test_a_shift_is_the_middle_of_what_is_equally_good():
    # Without any margin violated, all shifts between -1 and 3 are as good.
    score, sides = np.array([4.0, -2.0]), np.array([1.0, -1.0])
    u = np.array([2.9])
    zero = np.zeros(2)
    settle_shifts(
        score,
        u,
        -1.0,
        -sides,
        np.array([0.0, -np.inf]),
        np.array([np.inf, 0.0]),
        np.ones(2),
        zero,
        0.0,
        np.arange(2),
        np.zeros(2, dtype=np.intp),
        np.zeros(1),
    )
    assert u[0] == pytest.approx(1.0)
