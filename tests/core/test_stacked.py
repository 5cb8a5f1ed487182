"""Problems that are solved in one call, against each problem by loops."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import naive
from mercer.core import problem as builders
from mercer.core.problem import DualProblem, Solution
from mercer.core.stacked import (
    OwnBlocks,
    Solutions,
    Specs,
    Stacked,
    TaskSpec,
    betas,
    column,
    room_for,
    solve_class_pairs,
    solve_stacked,
    taken,
)

MOST = 10**6


def classes(seed, sizes, d=3):
    """Return samples of some classes, and their kernel matrix."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(sum(sizes), d)) + np.repeat(
        rng.normal(size=(len(sizes), d)), sizes, axis=0
    )
    return X, naive.block(naive.rbf, X, X, gamma=0.4)


def stack(problems, n_rows):
    """Return problems as compiled code takes them."""
    return Specs.of([TaskSpec(problem, (0,)) for problem in problems]).stacked(n_rows)


def pair_problem(rng, a, b, kind):
    sides = np.repeat([1.0, -1.0], [a, b])
    if kind == "nu":
        return builders.nu_svc(sides, np.ones(a + b), 0.5 * min(a, b) / (a + b))
    return builders.c_svc(sides, rng.uniform(0.2, 5.0, size=a + b))


def check(problem, K, solution, tol):
    """Compare what was found with the loops of the oracle."""
    assert solution.converged
    assert max(naive.faults(problem, K, solution.beta, solution.f)) <= 1e-12
    assert naive.kkt_gap(problem, K, solution.beta) <= tol * (1 + 1e-9)
    best = naive.objective(problem, K, solution.beta)
    assert solution.objective == pytest.approx(best, rel=1e-9, abs=1e-12)
    assert solution.dual_gap >= -1e-12


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(2, 12), min_size=3, max_size=5),
    st.sampled_from(["C", "nu"]),
    st.booleans(),
)
def test_one_call_solves_all_pairs(seed, sizes, kind, polish):
    _, K = classes(seed, sizes)
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    pairs = [(a, b) for a in range(len(sizes)) for b in range(a + 1, len(sizes))]
    problems = [pair_problem(rng, sizes[a], sizes[b], kind) for a, b in pairs]
    rows = [
        np.r_[starts[a] : starts[a + 1], starts[b] : starts[b + 1]] for a, b in pairs
    ]
    spans = np.array(
        [
            span
            for a, b in pairs
            for span in [(0, sizes[a], starts[a]), (sizes[a], sizes[b], starts[b])]
        ]
    )
    stacked = stack(problems, np.array([len(own) for own in rows]))
    results = room_for(stacked)
    begin = 2 * np.arange(len(pairs) + 1)
    stop = np.zeros(1, np.uint8)
    for first, last in [(0, 2), (2, len(pairs))]:  # in two calls
        solve_stacked(
            K, stacked, spans, begin, first, last, 1e-6, MOST, polish, stop, results
        )
    found = Solutions(stacked, results, 1e-6)
    for problem, own, solution in zip(problems, rows, found, strict=True):
        check(problem, K[np.ix_(own, own)], solution, 1e-6)


@settings(max_examples=20, deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(st.integers(2, 12), min_size=3, max_size=5),
    st.sampled_from(["C", "nu"]),
)
def test_one_class_with_a_run_of_others(seed, sizes, kind):
    _, K = classes(seed, sizes)
    rng = np.random.default_rng(seed)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    blocks = [K[first:stop, first:stop] for first, stop in pairwise(starts)]
    area = np.square(sizes)
    own = OwnBlocks(
        np.concatenate([block.ravel() for block in blocks]),
        np.cumsum(area) - area,
        np.array(sizes),
    )
    # The second problem is on the same two classes as the first.
    second = np.array([1, *range(1, len(sizes))])
    problems = [pair_problem(rng, sizes[0], sizes[b], kind) for b in second]
    stacked = stack(problems, sizes[0] + np.array(sizes)[second])
    results = room_for(stacked)
    across = np.ascontiguousarray(K[: sizes[0], starts[1] :])
    solve_class_pairs(
        own, 0, np.arange(len(second)), second, across, starts[second] - starts[1],
        stacked, 1e-6, MOST, np.zeros(1, np.uint8), results,
    )  # fmt: skip
    found = Solutions(stacked, results, 1e-6)
    for b, problem, solution in zip(second, problems, found, strict=True):
        rows = np.r_[: sizes[0], starts[b] : starts[b + 1]]
        check(problem, K[np.ix_(rows, rows)], solution, 1e-6)


def test_few_steps_are_no_convergence():
    _, K = classes(0, [20, 20])
    problem = builders.c_svc(np.repeat([1.0, -1.0], 20), np.full(40, 10.0))
    stacked = stack([problem], np.array([40]))
    results = room_for(stacked)
    spans, begin = np.array([[0, 40, 0]]), np.array([0, 1])
    stop = np.zeros(1, np.uint8)
    solve_stacked(K, stacked, spans, begin, 0, 1, 1e-6, 3, False, stop, results)
    (solution,) = Solutions(stacked, results, 1e-6)
    assert not solution.converged
    assert solution.n_iter == 3
    gap = naive.kkt_gap(problem, K, solution.beta)
    assert solution.kkt_gap == pytest.approx(gap, rel=1e-9)
    assert gap > 1e-6


def some_specs(seed=0, sizes=(3, 4, 5, 2)):
    rng = np.random.default_rng(seed)
    return [
        TaskSpec(pair_problem(rng, 2, n, "C"), (0, k)) for k, n in enumerate(sizes, 1)
    ]


def same(spec, other):
    assert spec.blocks == other.blocks
    for values, wanted in zip(spec.problem, other.problem, strict=True):
        np.testing.assert_array_equal(values, wanted)


def test_problems_in_arrays_are_what_they_were():
    given_ones = some_specs()
    specs = Specs.of(given_ones)
    assert Specs.of(specs) is specs
    assert len(specs) == 4
    for spec, wanted in zip(specs, given_ones, strict=True):
        same(spec, wanted)
    same(specs[-1], given_ones[-1])
    with pytest.raises(IndexError):
        specs[4]


@pytest.mark.parametrize(
    "which", [slice(1, 3), slice(None, None, 2), slice(3, None, -2), slice(2, 2)]
)
def test_a_part_of_the_problems(which):
    given_ones = some_specs()
    part = Specs.of(given_ones)[which]
    assert len(part) == len(given_ones[which])
    for spec, wanted in zip(part, given_ones[which], strict=True):
        same(spec, wanted)
    blocks = [b for spec in given_ones[which] for b in spec.blocks]
    assert part.all_blocks().tolist() == blocks


@pytest.mark.parametrize(
    "which", [slice(None), slice(1, 3), slice(None, None, 2), slice(None, None, -1)]
)
def test_a_part_of_the_solutions(which):
    problems = [spec.problem for spec in some_specs()]
    n_rows = np.array([len(problem.p) for problem in problems])
    stacked = stack(problems, n_rows)
    results = room_for(stacked)
    rng = np.random.default_rng(1)
    for values in (results.beta, results.f, results.multipliers):
        values[:] = rng.normal(size=values.shape)
    results.certificate[:] = rng.uniform(size=results.certificate.shape)
    results.n_iter[:] = [3, 1, 4, 2]
    whole = Solutions(stacked, results, 0.5)
    objects = list(whole)
    part = whole[which]
    assert [s.n_iter for s in part] == [s.n_iter for s in objects[which]]
    assert len(part[::2]) == len(objects[which][::2])
    np.testing.assert_array_equal(part[::2].betas(), betas(objects[which][::2]))
    np.testing.assert_array_equal(betas(part), betas(objects[which]))
    for name in set(Solution._fields) - {"beta", "f", "error", "is_single"}:
        np.testing.assert_array_equal(
            column(part, name), column(objects[which], name), err_msg=name
        )


def test_stretches_one_after_the_other():
    values = np.arange(10)
    first, stop = np.array([2, 4, 7]), np.array([4, 7, 8])
    together = taken(values, first, stop)
    assert together.tolist() == [2, 3, 4, 5, 6, 7]
    assert together.base is values
    apart = taken(values, np.array([6, 0, 3]), np.array([9, 1, 3]))
    assert apart.tolist() == [6, 7, 8, 0]
    assert not len(taken(values, first[:0], stop[:0]))


@pytest.mark.parametrize(
    ("kkt_gap", "holds", "error", "converged"),
    [
        (1e-4, 1.0, 0.0, True),
        (1e-4, 0.0, 0.0, False),  # bounds or sums do not hold
        (1e-4, -1.0, 0.0, False),  # the precision was not enough
        (1e-2, 1.0, 0.0, False),
        (9e-4, 1.0, 2e-4, False),  # rounding errors count
    ],
)
def test_what_counts_as_converged(kkt_gap, holds, error, converged):
    problems = Stacked(
        DualProblem(*np.zeros((4, 2)), *np.zeros((2, 2), dtype=np.int64)),
        np.array([0]), np.array([2]), np.array([0, 2]),
    )  # fmt: skip
    results = room_for(problems)
    results.certificate[0] = 0.0, kkt_gap, 0.0, holds, error
    assert Solutions(problems, results, 1e-3)[0].converged is converged
