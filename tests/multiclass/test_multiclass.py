"""Codes and votes, against loops and against scikit-learn's functions."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse
from sklearn.utils.multiclass import _ovr_decision_function

from mercer.multiclass.codes import (
    CODES,
    check_code,
    dietterich15,
    exhaustive,
    hadamard,
    make_code,
    one_vs_one,
    one_vs_rest,
    random_code,
    row_distances,
)
from mercer.multiclass.decoding import (
    class_means,
    count_votes,
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


def least_distance(code):
    return row_distances(code)[np.triu_indices(len(code), 1)].min()


def test_dietterich15_is_the_printed_table():
    code = dietterich15()
    assert code.shape == (10, 15)
    # The first machine tells even from odd digits, the last one the digit 1.
    assert (code[:, 0] == np.where(np.arange(10) % 2, -1, 1)).all()
    assert (code[:, 14] == np.where(np.arange(10) == 1, -1, 1)).all()
    assert (code[0] == -code[1]).all()
    distances = row_distances(code)
    close = np.argwhere(np.triu(distances == 6, 1)).tolist()
    assert close == [[0, 4], [4, 6], [5, 7], [5, 8]]
    assert least_distance(code) == 6
    with pytest.raises(ValueError, match="ten classes, but there are 4"):
        dietterich15(4)


@pytest.mark.parametrize("n_classes", [2, 3, 4, 5, 8, 9, 10, 16, 17])
def test_hadamard_rows_are_half_a_code_apart(n_classes):
    code = check_code(hadamard(n_classes), n_classes)
    distances = row_distances(code)[np.triu_indices(n_classes, 1)]
    assert (distances == (code.shape[1] + 1) / 2).all()


@pytest.mark.parametrize("n_classes", range(2, 8))
def test_exhaustive_codes_have_every_column(n_classes):
    code = check_code(exhaustive(n_classes), n_classes)
    assert code.shape == (n_classes, 2 ** (n_classes - 1) - 1)


def test_exhaustive_codes_are_for_few_classes():
    with pytest.raises(ValueError, match="1023 columns; it is for at most 10"):
        exhaustive(11)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_classes", [3, 4, 5, 10, 26])
def test_random_codes(n_classes, sparse):
    code = random_code(n_classes, sparse=sparse, random_state=0)
    check_code(code, n_classes)
    assert (code == 0).any() == sparse
    assert (random_code(n_classes, sparse=sparse, random_state=0) == code).all()
    one_draw = random_code(n_classes, code.shape[1], sparse=sparse, random_state=1)
    assert least_distance(code) > 0
    assert one_draw.shape == code.shape


def test_the_best_of_many_draws_is_better_than_the_first(monkeypatch):
    best = least_distance(random_code(10, 15, random_state=0))
    monkeypatch.setattr("mercer.multiclass.codes.DRAWS", 1)
    assert best > least_distance(random_code(10, 15, random_state=0))


def test_too_few_random_columns():
    with pytest.raises(ValueError, match="No random code of 2 columns tells 9 classes"):
        random_code(9, 2, random_state=0)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ([1, -1, 1], "a row for each of the 3 classes"),
        (np.ones((2, 3)), r"got an array of shape \(2, 3\)"),
        (np.zeros((3, 0)), "a column for each task"),
        ([[1, 2], [-1, 1], [1, -1]], r"-1, 0 and 1; got \[2\]"),
        ([[0.5, 1], [-1, 1], [1, -1]], r"got \[0.5\]"),
        ([["a", "b"], ["c", "d"], ["e", "f"]], "consists of -1, 0 and 1"),
        (
            [[1, 1], [1, -1], [1, 1]],
            "Column 0 of the code has classes on one side only",
        ),
        (
            [[1, 1], [0, -1], [0, 1]],
            "Column 0 of the code has classes on one side only",
        ),
        ([[1, 1, 1], [-1, -1, 1], [1, 1, -1]], "Columns 0 and 1 of the code are equal"),
        ([[1, -1], [-1, 1], [1, -1]], "Columns 0 and 1 of the code are complementary"),
        ([[1], [-1], [1]], "Rows 0 and 2 of the code are equal"),
    ],
)
def test_what_is_no_code(code, message):
    with pytest.raises(ValueError, match=message):
        check_code(code, 3)


def test_codes_by_name():
    for name in CODES:
        code = make_code("ecoc", name, 10, 0)
        assert len(code) == 10
    assert (make_code("ecoc", None, 4) == exhaustive(4)).all()
    assert (make_code("ecoc", None, 10) == hadamard(10)).all()
    assert make_code("ecoc", None, 2).tolist() == [[-1], [1]]
    own = [[1, 0], [-1, 1], [0, -1]]
    assert make_code("ecoc", own, 3).tolist() == own
    with pytest.raises(ValueError, match="Unknown code 'bch'"):
        make_code("ecoc", "bch", 10)
    with pytest.raises(ValueError, match="code is for multiclass='ecoc'"):
        make_code("ovr", "hadamard", 10)


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
