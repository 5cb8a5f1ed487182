"""Codes, against loops and against their definitions."""

from itertools import combinations

import numpy as np
import pytest

from mercer.multiclass.codes import (
    CODES,
    check_code,
    dietterich15,
    exhaustive,
    hadamard,
    make_code,
    one_vs_one,
    random_code,
    row_distances,
)
from mercer.multiclass.decoding import (
    count_votes,
)

# Few values, so that undecided pairs and equal votes are the rule.


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
