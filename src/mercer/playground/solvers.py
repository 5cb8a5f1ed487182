r"""Solvers step by step: which pair is moved, why, and how far.

The steps are those of :mod:`mercer.core.textbook`, written here in plain NumPy so that
every one of them can be looked at; tests check that both end at the same coefficients
after the same number of steps. All of them minimise
:math:`\tfrac12 \beta^T K \beta + p^T \beta` with :math:`lo \le \beta \le hi` and a
fixed sum, for two classes. With the gradient :math:`G = K\beta + p`, a pair violates if
:math:`\beta_i` may grow, :math:`\beta_j` may shrink, and :math:`G_j > G_i`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.choice import choose_set, room_for
from mercer.core.problem import DualProblem, c_svc, certify, layout
from mercer.core.smo import minimise_pairs
from mercer.kernels.base import Kernel
from mercer.playground import messages
from mercer.playground.messages import Answer, Points, Refusal
from mercer.playground.plane import grid
from mercer.playground.settings import MachineSettings
from mercer.runtime.progress import StopButton

__all__ = [
    "RULES",
    "SolverRace",
    "Step",
    "Trace",
    "in_words",
    "run_rule",
    "snapshot",
    "start_race",
]

MOST_TRACED_POINTS = 200
MOST_TRACED_STEPS = 3000
# Draws of random pairs, most of which do not violate.
MOST_DRAWS = 200_000
# Curvatures below this count as this: rounding can make them 0 or negative.
TINY = 1e-12
# Members of a working set, and how many of them are new in each round.
SET_SIZE, FRESH = 16, 8
# The small problems of working sets are solved to this share of the present gap.
INNER_TOLERANCE = 0.03


class Step(NamedTuple):
    """One step: an amount moves from variable ``j`` to variable ``i``."""

    i: int
    j: int
    violation: float  #: G[j] - G[i] before the step
    curvature: float  #: K[i, i] + K[j, j] - 2 K[i, j]
    delta: float  #: how far
    wanted: float  #: how far without the box
    looked: int  #: pairs, variables or draws that were looked at since the last step
    members: tuple[int, ...] = ()  #: the working set, if not a pair
    n_inner: int = 1  #: pair steps inside the working set


@dataclass
class State:
    """Where a solver stands: the coefficients, and ``f = K beta``."""

    K: NDArray[np.float64]
    problem: DualProblem
    tol: float
    beta: NDArray[np.float64] = field(init=False)
    f: NDArray[np.float64] = field(init=False)

    def __post_init__(self) -> None:
        self.beta = self.problem.start.copy()
        self.f = np.zeros(len(self.beta))

    @property
    def gradient(self) -> NDArray[np.float64]:
        """The gradient of the objective."""
        return self.f + self.problem.p

    @property
    def may_grow(self) -> NDArray[np.bool_]:
        """Whether each variable is below its upper bound."""
        return self.beta < self.problem.hi

    @property
    def may_shrink(self) -> NDArray[np.bool_]:
        """Whether each variable is above its lower bound."""
        return self.beta > self.problem.lo

    def widest(self) -> tuple[float, int, int]:
        """Return the gap, and the pair that violates most."""
        G = self.gradient
        i = int(np.argmin(np.where(self.may_grow, G, np.inf)))
        j = int(np.argmax(np.where(self.may_shrink, G, -np.inf)))
        return float(G[j] - G[i]), i, j

    def best_partner(self, i: int) -> int:
        """Return the variable whose step with ``i`` decreases the objective most."""
        G, K = self.gradient, self.K
        violation = G - G[i]
        curvature = np.maximum(K[i, i] + np.diagonal(K) - 2 * K[i], TINY)
        gain = np.where(self.may_shrink & (violation > 0), violation**2 / curvature, 0)
        gain[i] = 0.0
        return int(np.argmax(gain))

    def move(self, i: int, j: int, looked: int) -> Step | None:
        """Move as much as is best, or as the box allows, from ``j`` to ``i``.

        Return None if that changes nothing.
        """
        K, beta, problem = self.K, self.beta, self.problem
        G = self.gradient
        violation = float(G[j] - G[i])
        curvature = float(max(K[i, i] + K[j, j] - 2 * K[i, j], TINY))
        room_i = problem.hi[i] - beta[i]
        room_j = beta[j] - problem.lo[j]
        wanted = violation / curvature
        delta = float(min(wanted, room_i, room_j))
        # A variable that reaches a bound is set to it exactly.
        new_i = problem.hi[i] if delta >= room_i else beta[i] + delta
        new_j = problem.lo[j] if delta >= room_j else beta[j] - delta
        if new_i == beta[i] and new_j == beta[j]:
            return None
        beta[i], beta[j] = new_i, new_j
        self.f += delta * (K[i] - K[j])
        return Step(i, j, violation, curvature, delta, wanted, looked)

    def move_if_violating(self, i: int, j: int, looked: int) -> Step | None:
        """Move a pair, in the direction in which it violates by more than ``tol``."""
        G = self.gradient
        if G[j] < G[i]:
            i, j = j, i
        violates = i != j and G[j] - G[i] > self.tol
        if violates and self.may_grow[i] and self.may_shrink[j]:
            return self.move(i, j, looked)
        return None


def first_order(state: State) -> Iterator[Step]:
    """WSS 1: the pair that violates most."""
    while True:
        gap, i, j = state.widest()
        step = state.move(i, j, len(state.beta)) if gap > state.tol else None
        if step is None:
            return
        yield step


def second_order(state: State) -> Iterator[Step]:
    """WSS 2: the variable that violates most, and the partner of largest gain."""
    while True:
        gap, i, _ = state.widest()
        if not gap > state.tol:
            return
        step = state.move(i, state.best_partner(i), 2 * len(state.beta))
        if step is None:
            return
        yield step


def random_pairs(state: State, seed: int = 0) -> Iterator[Step]:
    """Draw pairs at random, and move those that violate."""
    m, looked = len(state.beta), 0
    word = seed
    for start in range(0, MOST_DRAWS, m):
        if state.widest()[0] <= state.tol:
            return
        del start  # a round of draws between two looks at the gap
        for _ in range(m):
            i, word = _draw(word, m)
            j, word = _draw(word, m)
            looked += 1
            step = state.move_if_violating(i, j, looked)
            if step is not None:
                looked = 0
                yield step


def _draw(word: int, n: int) -> tuple[int, int]:
    """Return an index below ``n`` and the next state of Marsaglia's xorshift."""
    x = word or 0x9E3779B97F4A7C15
    x ^= (x << 13) & 0xFFFFFFFFFFFFFFFF
    x ^= x >> 7
    x ^= (x << 17) & 0xFFFFFFFFFFFFFFFF
    return ((x >> 32) * n) >> 32, x


def platt(state: State) -> Iterator[Step]:
    """Platt's SMO with the two thresholds of Keerthi et al.

    Sweeps over all variables alternate with sweeps over those inside the box. The
    partner of a violator is the variable at the farther threshold.
    """
    lo, hi = state.problem.lo, state.problem.hi
    _, up, low = state.widest()
    everything, looked = True, 0
    while state.widest()[0] > state.tol:
        moved = settled = False
        for t in range(len(state.beta)):
            if not everything and not lo[t] < state.beta[t] < hi[t]:
                continue
            looked += 1
            up, low, other = _examine(state, t, up, low)
            step = state.move_if_violating(t, other, looked)
            if step is not None:
                moved, looked = True, 0
                up, low = _thresholds(state, t, other)
                yield step
            if not everything:
                G = state.gradient
                settled = bool(G[low] - G[up] <= state.tol)
                if settled:
                    break
        if everything and not moved and state.widest()[0] > state.tol:
            return
        everything = not everything and (not moved or settled)


def _examine(state: State, t: int, up: int, low: int) -> tuple[int, int, int]:
    """Return the thresholds with ``t``, and its partner: itself if there is none."""
    G, grows, shrinks = state.gradient, state.may_grow[t], state.may_shrink[t]
    if grows and not shrinks and G[t] < G[up]:
        up = t
    if shrinks and not grows and G[t] > G[low]:
        low = t
    below = G[low] - G[t] if grows else -np.inf
    above = G[t] - G[up] if shrinks else -np.inf
    if max(below, above) <= state.tol:
        return up, low, t
    return up, low, low if below > above else up


def _thresholds(state: State, i: int, j: int) -> tuple[int, int]:
    """Return the thresholds over the variables inside the box and the last pair."""
    G, grows, shrinks = state.gradient, state.may_grow, state.may_shrink
    considered = grows & shrinks
    considered[[i, j]] = True
    up = int(np.argmin(np.where(considered & grows, G, np.inf)))
    low = int(np.argmax(np.where(considered & shrinks, G, -np.inf)))
    return up, low


def working_sets(state: State) -> Iterator[Step]:
    """Choose a set of violators, solve the small problem, and choose again."""
    previous = np.empty(0, dtype=np.int64)
    moved_in = np.zeros(len(state.beta), dtype=np.int64)  #: the round of the last move
    stop = np.zeros(1, dtype=np.uint8)
    size = min(SET_SIZE, len(state.beta))
    room = room_for(len(state.beta))
    while True:
        # Members that moved last stay.
        standing = moved_in[previous]
        chosen, gap = choose_set(
            state.problem, state.beta, state.f, previous, standing, size, FRESH,
            state.tol, room,
        )  # fmt: skip
        members = np.flatnonzero(chosen)
        if len(members) < 2:
            return
        before = state.beta[members]
        part = _restricted(state, members)
        beta, f = before.copy(), state.f[members].copy()
        square = np.ascontiguousarray(state.K[np.ix_(members, members)])
        inner = max(INNER_TOLERANCE * gap, 0.5 * state.tol)
        n_inner, _, _ = minimise_pairs(
            square, layout(part), part, beta, f, inner, MOST_TRACED_STEPS, stop
        )
        change = beta - before
        if not change.any():
            return
        moved_in[members[change != 0]] = moved_in.max() + 1
        state.beta[members] = beta
        state.f += change @ state.K[members]
        i, j = members[change.argmax()], members[change.argmin()]
        yield Step(
            int(i), int(j), float(gap), np.nan, float(np.abs(change).sum() / 2), np.nan,
            len(state.beta), tuple(members.tolist()), int(n_inner),
        )  # fmt: skip
        previous = members


def _restricted(state: State, members: NDArray) -> DualProblem:
    """Return the problem of some variables; the others stay where they are."""
    p, lo, hi, start, _, group = state.problem
    m = len(members)
    # ``f`` of the members includes what the others add, so that p stays what it is.
    return DualProblem(
        p[members], lo[members], hi[members], start[members], np.arange(m),
        group[members],
    )  # fmt: skip


RULES: dict[str, Callable[[State], Iterator[Step]]] = {
    "wss2": second_order,
    "wss1": first_order,
    "platt": platt,
    "random": random_pairs,
    "decompose": working_sets,
}
#: What the solvers are called, and what kind of choice they make.
NAMES = {
    "wss2": ("WSS 2", "second order"),
    "wss1": ("WSS 1", "first order"),
    "platt": ("Platt's SMO", "sweeps"),
    "random": ("Random", "any pair"),
    "decompose": ("Working sets", f"of {SET_SIZE}"),
}


@dataclass
class Trace:
    """What a solver did: its steps, and where it stood after each of them."""

    steps: list[Step]
    betas: list[NDArray[np.float32]]
    objective: list[float]
    gap: list[float]
    finished: bool  #: whether the gap came within the tolerance


def run_rule(
    rule: str,
    K: NDArray,
    problem: DualProblem,
    tol: float,
    stop: StopButton | None = None,
    most: int = MOST_TRACED_STEPS,
) -> Trace:
    """Run a solver from the start, and keep every step."""
    state = State(K, problem, tol)
    trace = Trace([], [], [], [], False)

    def note() -> None:
        found = certify(problem, state.beta, state.f)
        trace.betas.append(state.beta.astype(np.float32))
        trace.objective.append(found.objective)
        trace.gap.append(found.kkt_gap)

    note()
    for step in RULES[rule](state):
        trace.steps.append(step)
        note()
        if len(trace.steps) >= most or (stop is not None and stop.is_pressed):
            break
    trace.finished = trace.gap[-1] <= tol
    return trace


@dataclass
class SolverRace:
    """All solvers on the same points, ready to be looked at step by step."""

    kernel: Kernel
    points: Points
    sides: NDArray[np.float64]
    problem: DualProblem
    traces: dict[str, Trace]

    def summary(self) -> Answer:
        """Return how the objective and the gap fell, for every solver."""
        X, label = self.points
        arrays: dict[str, NDArray] = {
            "x": X[:, 0].astype(np.float32),
            "y": X[:, 1].astype(np.float32),
            "label": label.astype(np.uint8),
        }
        rows = []
        for rule, trace in self.traces.items():
            arrays[f"{rule}_objective"] = np.array(trace.objective, dtype=np.float32)
            arrays[f"{rule}_gap"] = np.array(trace.gap, dtype=np.float32)
            rows.append(
                {
                    "rule": rule,
                    "name": NAMES[rule][0],
                    "kind": NAMES[rule][1],
                    "steps": len(trace.steps),
                    "pair_steps": sum(step.n_inner for step in trace.steps),
                    "looked": sum(step.looked for step in trace.steps),
                    "objective": trace.objective[-1],
                    "gap": trace.gap[-1],
                    "finished": trace.finished,
                }
            )
        return Answer({"type": "race", "solvers": rows}, arrays)


def snapshot(race: SolverRace, message: Mapping[str, Any]) -> Answer:
    """Return what there is to see after a step of a solver; step 0 is the start."""
    rule = messages.choice(message, "rule", tuple(race.traces), "wss2")
    trace = race.traces[rule]
    at = messages.whole(message, "step", 0, len(trace.steps), 0)
    resolution = messages.whole(message, "resolution", 16, 128, 64)
    beta = trace.betas[at].astype(np.float64)
    bias = certify(race.problem, beta, race.kernel.block(race.points.X) @ beta).bias
    values = np.full(resolution**2, bias)
    used = np.flatnonzero(beta)
    if len(used):
        X = race.points.X[used]
        values += race.kernel.block(grid(resolution), X) @ beta[used]
    step = trace.steps[at - 1] if at else None
    room = race.problem.hi - race.problem.lo
    return Answer(
        {
            "type": "snapshot",
            "rule": rule,
            "step": at,
            "i": step.i if step else None,
            "j": step.j if step else None,
            "members": list(step.members) if step else [],
            "words": in_words(rule, step, at),
            "objective": trace.objective[at],
            "gap": trace.gap[at],
        },
        {
            "field": values.reshape(resolution, resolution).astype(np.float32),
            "alpha": np.abs(beta / room).astype(np.float32),
        },
    )


_WHY = {
    "wss1": "The pair violates most: point {i} may grow and has the least gradient, "
    "point {j} may shrink and has the largest.",
    "wss2": "Point {i} may grow and has the least gradient. Among the points that "
    "may shrink, {j} promises the largest gain, (difference of gradients)² / "
    "curvature.",
    "platt": "The sweep came to a point that violates; its partner is at the farther "
    "threshold. Points looked at since the last step: {looked}.",
    "random": "The pair was drawn at random and violates. Pairs drawn since the last "
    "step: {looked}.",
    "decompose": "The strongest violators and points of the last set make a set of "
    "{members}, which is solved on its own in {inner} pair steps.",
}


def in_words(rule: str, step: Step | None, at: int) -> str:
    """Return what a step did, and why."""
    if step is None:
        return "The start: all coefficients are 0. Press Step."
    why = _WHY[rule].format(
        i=step.i + 1,
        j=step.j + 1,
        looked=step.looked,
        members=len(step.members),
        inner=step.n_inner,
    )
    if step.members:
        return f"Round {at}. {why} Moved {step.delta:.3g} in all."
    far = (
        "as far as is best"
        if step.delta >= step.wanted
        else f"to the edge of the box, short of {step.wanted:.3g}"
    )
    return (
        f"Step {at}. {why} Violation {step.violation:.3g}, curvature "
        f"{step.curvature:.3g}: moved {step.delta:.3g} from {step.j + 1} to "
        f"{step.i + 1}, {far}."
    )


def start_race(message: Mapping[str, Any], stop: StopButton) -> SolverRace:
    """Run all solvers on the two most frequent classes of the points."""
    settings = MachineSettings.of({**message, "machine": "SVC"})
    tol = messages.number(message, "tol", 1e-6, 1.0, 1e-3)
    points = messages.points(message)
    labels, counts = np.unique(points.label, return_counts=True)
    if len(labels) < 2:
        raise Refusal("Place points of at least two classes.", "points")
    pair = np.sort(labels[np.argsort(-counts, kind="stable")[:2]])
    rows = np.flatnonzero(np.isin(points.label, pair))
    if len(rows) > MOST_TRACED_POINTS:
        rows = rows[np.linspace(0, len(rows) - 1, MOST_TRACED_POINTS).astype(np.intp)]
    shown = Points(points.X[rows], points.label[rows])
    sides = np.where(shown.label == pair[1], 1.0, -1.0)
    kernel = settings.bound_kernel()
    try:
        kernel = kernel.bind(shown.X)
        with np.errstate(over="ignore"):  # the values are checked below
            K = np.ascontiguousarray(kernel.block(shown.X), dtype=np.float64)
    except ValueError as error:
        raise Refusal(str(error), "kernel") from error
    if not np.isfinite(K).all():
        raise Refusal(
            "The kernel values are too large. Lower degree or gamma.", "kernel"
        )
    problem = c_svc(sides, np.full(len(sides), settings.C))
    traces = {}
    for rule in RULES:
        traces[rule] = run_rule(rule, K, problem, tol, stop)
        if stop.is_pressed:
            break
    return SolverRace(kernel, shown, sides, problem, traces)
