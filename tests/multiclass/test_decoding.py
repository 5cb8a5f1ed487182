"""Votes and scores, against loops and against scikit-learn's functions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.utils.multiclass import _ovr_decision_function

from mercer.multiclass import decoding
from mercer.multiclass.codes import (
    exhaustive,
    one_vs_one,
    one_vs_rest,
)
from mercer.multiclass.decoding import (
    class_means,
    count_pair_votes,
    count_votes,
    most_voted,
    nearest_of_best,
    score_classes,
    votes_and_margins,
)

# Few values, so that undecided pairs and equal votes are the rule.

few = st.sampled_from([-2.0, -0.5, -0.0, 0.0, 0.5, 1.0])


@st.composite
def decisions(draw, elements=few):
    n_classes = draw(st.integers(3, 6))
    n_pairs = n_classes * (n_classes - 1) // 2
    shape = (draw(st.integers(1, 5)), n_pairs)
    return n_classes, draw(arrays(np.float64, shape, elements=elements))


@given(problem=decisions())
@settings(deadline=None)
def test_votes_are_those_of_libsvm(problem):
    n_classes, values = problem
    expected = np.zeros((len(values), n_classes))
    for row, counts in zip(values, expected, strict=True):
        for value, (first, second) in zip(
            row, combinations(range(n_classes), 2), strict=True
        ):
            counts[first if value > 0 else second] += 1
    code = one_vs_one(n_classes)
    np.testing.assert_array_equal(count_votes(values, code), expected)
    np.testing.assert_array_equal(count_pair_votes(values > 0, n_classes), expected)
    np.testing.assert_array_equal(most_voted(values, code), expected.argmax(axis=1))


@given(problem=decisions())
@settings(deadline=None)
def test_many_classes_are_counted_alike(problem):
    """One by one and in parts, or by products with the code matrix."""
    n_classes, values = problem
    code = one_vs_one(n_classes)
    expected = votes_and_margins(values, code, is_by_pair=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "MANY", 3)
        patch.setattr(decoding, "PART", 2 * code.shape[1])
        found = votes_and_margins(values, code, is_by_pair=True)
        winner = most_voted(values, code)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(winner, most_voted(values, code))


@pytest.mark.parametrize(
    ("values", "winner"),
    [
        ([1.0, -1.0, 1.0], 0),  # a beats b, c beats a, b beats c
        ([-1.0, 1.0, -1.0], 0),
        ([1.0, 1.0, 0.0], 0),
        ([0.0, 0.0, 0.0], 2),
    ],
)
def test_of_equal_votes_the_first_class_wins(values, winner):
    assert count_votes(np.array([values]), one_vs_one(3)).argmax() == winner


@given(problem=decisions(st.one_of(few, st.floats(-1e3, 1e3))))
@settings(deadline=None)
def test_votes_and_margins_are_those_of_scikit_learn(problem):
    n_classes, values = problem
    found = votes_and_margins(values, one_vs_one(n_classes), is_by_pair=True)
    expected = _ovr_decision_function(values < 0, -values, n_classes)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(problem=decisions(st.floats(-1e6, 1e6).filter(lambda v: v != 0)))
@settings(deadline=None)
def test_margins_only_settle_equal_votes(problem):
    n_classes, values = problem
    code = one_vs_one(n_classes)
    votes = count_votes(values, code)
    both = votes_and_margins(values, code, is_by_pair=True)
    assert (np.abs(both - votes) < 0.5).all()
    rows = np.arange(len(values))
    assert (votes[rows, both.argmax(axis=1)] == votes.max(axis=1)).all()


CODES_TO_DECODE = {
    "ovo": one_vs_one(4),
    "ovr": one_vs_rest(4),
    "dense": exhaustive(4),
    "sparse": np.array([[1, 0, -1], [-1, 1, 0], [0, -1, 1], [1, 1, 1]], dtype=np.int8),
    "two": one_vs_rest(2),
}


def score_by_loops(f, row, how):
    """Score one class for one sample."""
    total = 0.0
    for value, c in zip(f, row, strict=True):
        sign = 1 if value > 0 else -1
        total += {
            "votes": float(c == sign),
            "margin": c * value,
            "hamming": -(1 - c * sign) / 2,
            "loss": -max(0.0, 1.0 - c * value),
        }[how]
    return total


@pytest.mark.parametrize("how", ["votes", "margin", "hamming", "loss"])
@pytest.mark.parametrize("name", CODES_TO_DECODE)
def test_scores_are_those_of_loops(how, name, rng):
    code = CODES_TO_DECODE[name]
    decisions = rng.standard_normal((50, code.shape[1]))
    decisions[0] = 0.0
    found = score_classes(decisions, code, how)
    expected = np.array([[score_by_loops(f, r, how) for r in code] for f in decisions])
    if how == "margin" and name == "ovr":
        assert (found == decisions).all()
        assert (found.argmax(axis=1) == expected.argmax(axis=1)).all()
    else:
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_barycentres_settle_what_signs_leave_open():
    means = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
    X = np.array([[0.9, 0.8], [0.9, 0.8], [0.1, 0.2], [0.1, 0.9]])
    decisions = np.array(
        [[-1.0, 1.0, -1.0],  # one answer
         [1.0, -1.0, 1.0],   # two: the nearer of 0 and 2
         [-1.0, -1.0, -1.0],  # none: the nearest of all
         [1.0, 1.0, -1.0]]
    )  # fmt: skip
    found = nearest_of_best(X, means, decisions, one_vs_rest(3))
    assert found.tolist() == [1, 2, 0, 0]


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_means_of_classes_that_differ_in_number(kind, rng):
    X, y = rng.standard_normal((12, 3)), np.repeat([2, 0, 1], [1, 4, 7])
    expected = [X[y == label].mean(axis=0) for label in range(3)]
    assert class_means(kind(X), y, 3) == pytest.approx(np.array(expected))


@given(seed=st.integers(0, 999))
@settings(deadline=None, max_examples=30)
def test_barycentres_as_in_the_report(seed):
    """Among positive answers, or all classes without any, the nearest mean wins."""
    rng = np.random.default_rng(seed)
    means, X = rng.standard_normal((4, 3)), rng.standard_normal((20, 3))
    decisions = rng.standard_normal((20, 4))
    found = nearest_of_best(X, means, decisions, one_vs_rest(4))
    for x, f, winner in zip(X, decisions, found, strict=True):
        candidates = np.flatnonzero(f > 0) if (f > 0).any() else np.arange(4)
        distance = ((means[candidates] - x) ** 2).sum(axis=1)
        assert winner == candidates[distance.argmin()]
