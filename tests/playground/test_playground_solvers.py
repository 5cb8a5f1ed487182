"""Traces of solvers end where the compiled solvers end, after as many steps."""

import numpy as np
import pytest
from playground_client import as_fields

from mercer import SVC
from mercer.core import textbook
from mercer.core.problem import c_svc, certify, is_feasible
from mercer.datasets import make_moons
from mercer.kernels import RBF
from mercer.playground.messages import Refusal
from mercer.playground.plane import grid
from mercer.playground.solvers import RULES, State, run_rule, snapshot, start_race
from mercer.runtime.progress import StopButton

TOL = 1e-3


@pytest.fixture(scope="module")
def moons():
    return make_moons(60, noise=0.25, random_state=3)


@pytest.fixture(scope="module", params=[0.5, 20.0], ids=["C=0.5", "C=20"])
def task(moons, request):
    X, y = moons
    K = np.ascontiguousarray(RBF(1.5).block(X))
    return K, c_svc(np.where(y == 1, 1.0, -1.0), np.full(len(y), request.param))


def compiled(rule, K, problem, beta, f, most):
    """Let the compiled solver make some steps; return how many it made."""
    stop = np.zeros(1, dtype=np.uint8)
    if rule in textbook.BY_ROWS:
        diag = np.diagonal(K).copy()
        given = (lambda r: K[r], diag, problem, beta, f, TOL, most, stop)
        return textbook.by_rows(rule, *given)[0]
    seed = np.zeros(1, dtype=np.uint64)
    rows = textbook.held_rows(K)
    return textbook.IN_MEMORY[rule](rows, problem, beta, f, TOL, most, seed, stop)[0]


def value(K, problem, beta):
    return 0.5 * beta @ K @ beta + problem.p @ beta


def promise(rule, K, G, i, j):
    """Return what a rule looks for in a pair."""
    violation = G[j] - G[i]
    if rule == "wss1":
        return violation
    return violation**2 / (K[i, i] + K[j, j] - 2 * K[i, j])


@pytest.mark.parametrize("rule", ["wss1", "wss2"])
def test_each_pair_promises_what_that_of_the_compiled_solver_does(rule, task):
    # Paths may part: a step makes two gradients equal, and rounding then decides.
    K, problem = task
    state = State(K, problem, TOL)
    while certify(problem, state.beta, state.f).kkt_gap > TOL:
        G, beta, f = state.gradient, state.beta.copy(), state.f.copy()
        compiled(rule, K, problem, beta, f, 1)
        change = beta - state.beta
        expected = promise(rule, K, G, change.argmax(), change.argmin())
        step = next(RULES[rule](state))
        assert promise(rule, K, G, step.i, step.j) == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("rule", ["wss1", "wss2", "platt"])
def test_a_trace_begins_as_the_compiled_solver_does(rule, task):
    K, problem = task
    trace = run_rule(rule, K, problem, TOL)
    for n_steps in range(3):
        beta, f = problem.start.copy(), np.zeros(len(K))
        assert compiled(rule, K, problem, beta, f, n_steps) == n_steps
        np.testing.assert_allclose(trace.betas[n_steps], beta, rtol=1e-6, atol=1e-9)


def test_random_pairs_are_those_of_the_compiled_solver(task):
    K, problem = task
    trace = run_rule("random", K, problem, TOL)
    draws = np.cumsum([step.looked for step in trace.steps])
    for n_steps in (1, 5, 40):
        beta, f = problem.start.copy(), np.zeros(len(K))
        compiled("random", K, problem, beta, f, int(draws[n_steps - 1]))
        np.testing.assert_allclose(trace.betas[n_steps], beta, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("rule", ["wss1", "wss2", "platt", "random"])
def test_a_trace_ends_where_the_compiled_solver_ends(rule, task):
    K, problem = task
    trace = run_rule(rule, K, problem, TOL)
    beta, f = problem.start.copy(), np.zeros(len(K))
    compiled(rule, K, problem, beta, f, 500_000)
    assert trace.finished
    expected = value(K, problem, beta)
    assert trace.objective[-1] == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("rule", RULES)
def test_a_trace_is_certified(rule, task, moons):
    K, problem = task
    state = State(K, problem, TOL)
    for _ in RULES[rule](state):
        assert is_feasible(problem, state.beta)
    found = certify(problem, state.beta, K @ state.beta)
    assert found.kkt_gap <= TOL
    trace = run_rule(rule, K, problem, TOL)
    assert trace.finished
    assert trace.objective[-1] == pytest.approx(found.objective)
    assert (np.diff(trace.objective) < 1e-12).all()
    exact = SVC(C=problem.hi.max(), kernel=RBF(1.5), tol=1e-6).fit(*moons)
    assert trace.objective[-1] == pytest.approx(exact.objective_[0], rel=1e-3)


@pytest.mark.parametrize("rule", ["wss1", "wss2", "platt", "random"])
def test_steps_say_how_far_they_went(rule, task):
    K, problem = task
    trace = run_rule(rule, K, problem, TOL)
    for before, after, step in zip(
        trace.betas, trace.betas[1:], trace.steps, strict=False
    ):
        change = np.zeros(len(before))
        change[step.i] += step.delta
        change[step.j] -= step.delta
        np.testing.assert_allclose(after - before, change, atol=2e-6)
        assert step.violation > 0
        assert 0 < step.delta <= step.wanted * (1 + 1e-12)


def test_working_sets_take_few_rounds(task):
    K, problem = task
    rounds = run_rule("decompose", K, problem, TOL).steps
    assert len(rounds) < len(run_rule("wss2", K, problem, TOL).steps)
    assert all(2 <= len(step.members) <= 16 for step in rounds)


def test_a_race_can_be_looked_at_step_by_step(moons):
    race = start_race({**as_fields(*moons), "C": 10, "gamma": 1.5}, StopButton())
    summary = race.summary()
    assert [row["rule"] for row in summary.values["solvers"]] == list(RULES)
    start = snapshot(race, {"rule": "wss1", "step": 0})
    assert start.values["words"].startswith("The start")
    assert not start.arrays["alpha"].any()
    n = len(race.traces["wss1"].steps)
    end = snapshot(race, {"rule": "wss1", "step": n, "resolution": 20})
    assert end.values["gap"] <= TOL
    assert end.values["words"].startswith(f"Step {n}. The pair violates most: point ")
    model = SVC(C=10, gamma=1.5).fit(race.points.X, race.points.label)
    expected = model.decision_function(grid(20)).reshape(20, 20)
    np.testing.assert_allclose(end.arrays["field"], expected, atol=0.02)


def test_words_say_when_the_box_stopped_a_step(moons):
    race = start_race({**as_fields(*moons), "C": 0.1}, StopButton())
    first = snapshot(race, {"rule": "wss2", "step": 1}).values["words"]
    assert "to the edge of the box, short of" in first
    assert "promises the largest gain" in first


def test_refusals(moons):
    fields = as_fields(*moons)
    with pytest.raises(Refusal, match="two classes"):
        start_race({**fields, "label": [0] * 60}, StopButton())
    with pytest.raises(Refusal, match="too large"):
        start_race({**fields, "kernel": "poly(degree=900, gamma=99)"}, StopButton())
    race = start_race(fields, StopButton())
    with pytest.raises(Refusal, match="step must be between"):
        snapshot(race, {"rule": "wss2", "step": 10**6})


def test_a_race_is_stopped(moons):
    stop = StopButton()
    stop.press()
    race = start_race(as_fields(*moons), stop)
    assert len(race.traces) == 1 and len(race.traces["wss2"].steps) <= 1
