"""Codes and votes, against loops and against scikit-learn's functions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from sklearn.utils.multiclass import _ovr_decision_function

from mercer.multiclass import count_votes, one_vs_one, votes_and_margins

# Few values, so that undecided pairs and equal votes are the rule.
few = st.sampled_from([-2.0, -0.5, -0.0, 0.0, 0.5, 1.0])


@st.composite
def decisions(draw, elements=few):
    n_classes = draw(st.integers(3, 6))
    n_pairs = n_classes * (n_classes - 1) // 2
    shape = (draw(st.integers(1, 5)), n_pairs)
    return n_classes, draw(arrays(np.float64, shape, elements=elements))


@pytest.mark.parametrize("n_classes", range(3, 8))
def test_code(n_classes):
    code = one_vs_one(n_classes)
    assert code.dtype == np.int8
    pairs = list(combinations(range(n_classes), 2))
    assert code.shape == (n_classes, len(pairs))
    for column, (first, second) in zip(code.T, pairs, strict=True):
        assert column[first] == 1
        assert column[second] == -1
        assert np.abs(column).sum() == 2


def test_of_two_classes_the_second_is_positive():
    code = one_vs_one(2)
    assert code.tolist() == [[-1], [1]]
    values = np.array([[-3.0], [0.0], [2.0]])
    assert count_votes(values, code).argmax(axis=1).tolist() == [0, 0, 1]


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
    np.testing.assert_array_equal(count_votes(values, one_vs_one(n_classes)), expected)


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
    found = votes_and_margins(values, one_vs_one(n_classes))
    expected = _ovr_decision_function(values < 0, -values, n_classes)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@given(problem=decisions(st.floats(-1e6, 1e6).filter(lambda v: v != 0)))
@settings(deadline=None)
def test_margins_only_settle_equal_votes(problem):
    n_classes, values = problem
    code = one_vs_one(n_classes)
    votes, both = count_votes(values, code), votes_and_margins(values, code)
    assert (np.abs(both - votes) < 0.5).all()
    rows = np.arange(len(values))
    assert (votes[rows, both.argmax(axis=1)] == votes.max(axis=1)).all()
