"""Claims about solvers are judged by steps, kernel values and time."""

from functools import partial

import numpy as np
import pytest

import naive
from mercer import SVC
from mercer.core.problem import c_svc
from mercer.core.textbook import COMPILED, by_rows
from studies.ecoc_digits import solvers
from studies.ecoc_digits.solvers import Cost, judge_costs, solve_alike

NAMES = [f"{s}, {c}" for s in solvers.SOLVERS for c in ("cached", "no cache")]


def costs(**seconds):
    """Return costs of all solvers at two sizes; keywords are seconds by name."""
    found = {}
    for name in [*NAMES, "scikit-learn"]:
        key = name.replace(", ", "_").replace(" ", "_").replace("-", "_")
        own = seconds.get(key, 1.0)
        found[name] = [
            Cost(n, own * n / 200, 100, 10**6, 1e-4, True) for n in (100, 200)
        ]
    return found


def verdicts(found):
    judged = {finding.key: finding.holds for finding in judge_costs(found)}
    return tuple(judged[k] for k in ("Platt", "WSS2", "caching", "order of solvers"))


def test_equal_costs_refute_claims_of_more():
    assert verdicts(costs())[:3] == (False, False, False)


def test_a_claim_holds_if_every_quantity_says_so():
    found = costs(Platt_no_cache=9.0)
    assert verdicts(found)[0] is None  # only the time is longer
    last = found["Platt, no cache"]
    found["Platt, no cache"] = [c._replace(steps=500, values=10**7) for c in last]
    platt = next(iter(judge_costs(found)))
    assert platt.holds is True
    assert (
        "At 200 images" in platt.evidence and "500 against 100 steps" in platt.evidence
    )
    assert "Intel i5" in platt.evidence and "Python" in platt.evidence


def test_the_ranking_is_that_of_the_report():
    order = {
        "WSS1_cached": 2.0,
        "WSS2_cached": 3.0,
        "WSS1_no_cache": 4.0,
        "Platt_no_cache": 5.0,
    }
    assert verdicts(costs(scikit_learn=1.0, **order))[3] is True
    assert verdicts(costs(scikit_learn=9.0, **order))[3] is None
    assert verdicts(costs(**{**order, "WSS2_cached": 1.5}))[3] is False


@pytest.mark.parametrize("solver", ["wss1", "wss2"])
@pytest.mark.parametrize("gamma", [0.0, 0.5])
def test_solvers_solve_the_problem_of_svc(gamma, solver, monkeypatch):
    rng = np.random.default_rng(0)
    # Products of eighths are exact, in any order of summation.
    X = (rng.normal(size=(80, 4)) * 8).round().astype(np.float32) / 8
    y = X[:, 0] + 0.3 * rng.normal(size=80) > 0
    model = SVC(kernel="rbf" if gamma else "linear", C=2.0, gamma=gamma or "scale")
    solutions = []

    def noted(rows, problem, beta, *more):
        outcome = COMPILED[solver](rows, problem, beta, *more)
        solutions.append(beta)
        return outcome

    monkeypatch.setattr(solvers, "COMPILED", {solver: noted})
    found = solve_alike(solver, X, y, 2.0, gamma, True, 0)
    assert found.converged and found.gap <= 1e-3
    model.fit(X, y)
    signs, (beta,) = np.where(y, 1.0, -1.0), solutions
    K = naive.block(partial(naive.rbf, gamma=gamma) if gamma else naive.linear, X, X)
    assert (0 <= beta * signs).all() and (beta * signs <= 2.0).all()
    assert abs(beta.sum()) < 1e-6
    objective = 0.5 * beta @ K @ beta - beta @ signs
    assert objective == pytest.approx(model.objective_[0], rel=1e-5)
    # The same steps as on rows of the whole matrix.
    problem = c_svc(signs, np.full(80, 2.0))
    K, start = K.astype(np.float32), problem.start.copy()
    steps, _, _ = by_rows(
        solver, lambda r: K[r], K.diagonal().astype(float), problem, start,
        np.zeros(80), 1e-3, 10**6, np.zeros(1, dtype=np.uint8),
    )  # fmt: skip
    assert found.steps == pytest.approx(steps, rel=0.02)
    asked = solve_alike(solver, X, y, 2.0, gamma, False, 0)
    assert asked.steps == found.steps
    assert asked.values == 2 * found.steps * len(X) >= found.values


def test_a_slow_solver_is_not_run_at_larger_sizes(monkeypatch):
    monkeypatch.setattr(solvers, "ENOUGH", 3.0)
    asked = []

    def run(n):
        asked.append(n)
        return Cost(n, n / 100, 10)

    found = solvers._over_sizes(run, (100, 200, 400, 800))
    assert [c.n for c in found] == [100, 200, 400]
    # Once to compile; short runs are timed three times.
    assert asked[0] == 100 and asked.count(800) == 0
    fast = solvers._over_sizes(lambda n: Cost(n, 0.1, 10), (100, 200))
    assert len(fast) == 2
