"""Splits are disjoint, exact in size and decided by the seed, for any labels."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier

from mercer.datasets import (
    per_class_split,
    stratified_folds,
    train_validation_test_split,
)

counts = st.lists(st.integers(5, 60), min_size=1, max_size=8)
seeds = st.integers(0, 2**32 - 1)


def labels(sizes, seed):
    """Draw labels in random order; ``sizes`` are the numbers of each class."""
    return np.random.default_rng(seed).permutation(np.repeat(range(len(sizes)), sizes))


def is_partition(parts, n):
    return np.array_equal(np.sort(np.concatenate(parts)), np.arange(n))


@given(sizes=counts, seed=seeds, first=st.integers(1, 3), second=st.integers(1, 2))
@settings(max_examples=50, deadline=None)
def test_per_class_sizes_are_exact(sizes, seed, first, second):
    y = labels(sizes, seed)
    a, b = per_class_split(y, (first, second), random_state=seed)
    assert np.bincount(y[a]).tolist() == [first] * len(sizes)
    assert np.bincount(y[b]).tolist() == [second] * len(sizes)
    assert not set(a) & set(b)
    assert (np.diff(a) > 0).all()


def test_the_first_of_each_class():
    y = np.array([1, 0, 0, 1, 1, 0, 0, 1])
    a, b = per_class_split(y, (2, 1), shuffle=False)
    assert a.tolist() == [0, 1, 2, 3]
    assert b.tolist() == [4, 5]
    (only,) = per_class_split(y, [1], shuffle=False)
    assert only.tolist() == [0, 1]


@given(
    sizes=counts,
    seed=seeds,
    ratios=st.tuples(*[st.integers(25, 100)] * 3),
)
@settings(max_examples=150, deadline=None)
def test_three_parts_are_exact(sizes, seed, ratios):
    y = labels([size + 5 for size in sizes], seed)
    n = len(y)
    *_, a, b, c = train_validation_test_split(
        y, y, np.arange(n), ratios=ratios, random_state=seed
    )
    assert is_partition([a, b, c], n)
    shares = np.array(ratios) / sum(ratios)
    size = np.array([len(a), len(b), len(c)])
    assert (np.abs(size - n * shares) < 1 - 1e-9).all()
    table = np.array([np.bincount(y[part], minlength=len(sizes)) for part in (a, b, c)])
    exact = np.bincount(y) * shares[:, None]
    assert (np.abs(table - exact) < 1 - 1e-9).all()


def test_a_share_that_is_whole_stays_whole():
    # Without bounds, the largest sum of fractions gives the last class 7, 2 and 1.
    y = np.repeat(range(6), [27, 27, 20, 12, 25, 10])
    parts = train_validation_test_split(y, y, ratios=(12, 5, 3), random_state=0)
    assert [int((part == 5).sum()) for part in parts[3:]] in ([6, 3, 1], [6, 2, 2])


def test_sixty_twenty_twenty():
    y = np.repeat([3, 8], [5000, 4990])
    parts = train_validation_test_split(y, y, random_state=0)
    assert [len(part) for part in parts[3:]] == [5994, 1998, 1998]
    assert [int((part == 3).sum()) for part in parts[3:]] == [3000, 1000, 1000]


def test_all_kinds_of_arrays_are_split_alike():
    n = 30
    frame = pytest.importorskip("pandas").DataFrame(
        {"row": range(n)}, index=range(5, 35)
    )
    y = np.repeat(["a", "b"], 15)
    kinds = (np.arange(n), sparse.coo_matrix(np.arange(n)[:, None]), frame)
    parts = train_validation_test_split(
        kinds[0], y, *kinds[1:], list(range(n)), y.tolist(), random_state=0
    )
    for i in range(3):
        rows, classes, matrix, table, items, names = parts[i::3]
        np.testing.assert_array_equal(matrix.toarray().ravel(), rows)
        np.testing.assert_array_equal(table["row"], rows)
        assert items == rows.tolist()
        assert names == classes.tolist()
        np.testing.assert_array_equal(y[rows], classes)


@given(sizes=counts, seed=seeds, n_folds=st.integers(2, 5))
@settings(max_examples=50, deadline=None)
def test_folds_are_even(sizes, seed, n_folds):
    y = labels(sizes, seed)
    folds = stratified_folds(y, n_folds, random_state=seed)
    assert is_partition([test for _, test in folds], len(y))
    for train, test in folds:
        assert is_partition([train, test], len(y))
    table = [np.bincount(y[test], minlength=len(sizes)) for _, test in folds]
    assert np.ptp(table, axis=0).max() <= 1
    assert np.ptp(np.sum(table, axis=1)) <= 1


def test_folds_serve_as_cv(rng):
    X, y = rng.normal(size=(40, 2)), np.arange(40) % 2
    scores = cross_val_score(KNeighborsClassifier(), X, y, cv=stratified_folds(y))
    assert len(scores) == 5


@pytest.mark.parametrize(
    "split",
    [
        lambda y, seed: np.concatenate(per_class_split(y, (5, 2), random_state=seed)),
        lambda y, seed: np.concatenate(
            train_validation_test_split(np.arange(100), y, random_state=seed)[:3]
        ),
        lambda y, seed: stratified_folds(y, random_state=seed)[0][1],
    ],
)
def test_the_seed_decides(split):
    y = np.arange(100) % 4
    np.testing.assert_array_equal(split(y, 7), split(y, 7))
    np.testing.assert_array_equal(split(y, 7), split(y, np.random.default_rng(7)))
    assert not np.array_equal(split(y, 7), split(y, 8))
    assert not np.array_equal(split(y, None), split(y, None))


def test_too_few_of_a_class():
    y = np.array(["a"] * 20 + ["b"] * 4)
    match = r"Class 'b' has 4 samples, too few for 3 \+ 2 = 5 per class\. Lower sizes"
    with pytest.raises(ValueError, match=match):
        per_class_split(y, (3, 2))
    match = (
        r"Class 'b' has 4 samples, too few .* \(0\.6, 0\.2, 0\.2\) a class needs .* 5\."
    )
    with pytest.raises(ValueError, match=match):
        train_validation_test_split(y, y)
    match = r"Class 'b' has 4 samples, too few for 5 folds\. Lower n_folds"
    with pytest.raises(ValueError, match=match):
        stratified_folds(y)
    assert len(stratified_folds(y, 4)) == 4


@pytest.mark.parametrize("y", [[], [[0, 1], [1, 0]], 3])
@pytest.mark.parametrize("split", [per_class_split, stratified_folds])
def test_labels_must_be_a_row(y, split):
    with pytest.raises(ValueError, match="y must have one class for each sample"):
        split(y)


def test_labels_must_be_finite():
    with pytest.raises(ValueError, match="y has NaN or infinity"):
        stratified_folds([0.0, 1.0, np.nan])


@pytest.mark.parametrize(
    ("call", "error", "match"),
    [
        (lambda y: per_class_split(y, ()), ValueError, "sizes must have at least one"),
        (
            lambda y: per_class_split(y, (0, 1)),
            ValueError,
            "an entry of sizes .* got 0",
        ),
        (lambda y: per_class_split(y, (0.5,)), TypeError, "whole number, got 0.5"),
        (lambda y: stratified_folds(y, 1), ValueError, "n_folds must be >= 2, got 1"),
        (
            lambda y: train_validation_test_split(y, y, ratios=(0.8, 0.2)),
            ValueError,
            r"three entries, train, validation, test; got \(0\.8, 0\.2\)",
        ),
        (
            lambda y: train_validation_test_split(y, y, ratios=(1, 1, 0)),
            ValueError,
            r"must be > 0, got \(1, 1, 0\)",
        ),
        (
            lambda y: train_validation_test_split(y, y, ratios=(1, 1, -1)),
            ValueError,
            "an entry of ratios must be .* got -1",
        ),
        (
            lambda y: train_validation_test_split(y[:-1], y),
            ValueError,
            "inconsistent numbers of samples",
        ),
    ],
)
def test_bad_options(call, error, match):
    with pytest.raises(error, match=match):
        call(np.arange(40) % 2)


def test_many_classes():
    y = np.repeat(np.arange(300), 7)
    parts = train_validation_test_split(y, y, random_state=0)
    assert [len(part) for part in parts[3:]] == [1260, 420, 420]


def test_the_default_is_what_the_studies_take():
    y = np.arange(6050) % 10
    train, test = per_class_split(y, random_state=0)
    assert np.bincount(y[train]).tolist() == [500] * 10
    assert np.bincount(y[test]).tolist() == [100] * 10
