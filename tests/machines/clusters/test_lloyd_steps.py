import numpy as np
import pytest

from mercer.machines.clusters.lloyd_steps import (
    assign,
    centre,
    decide,
    gather,
    give_way,
    move_between,
    settle,
    squared_distances,
    sum_columns,
)


@pytest.fixture
def samples(rng):
    return rng.standard_normal((50, 4)), rng.standard_normal((6, 4))


def squared(X, C):
    return ((X[:, None] - C) ** 2).sum(axis=2)


def empty(n):
    return np.full(n, -1, dtype=np.int32), np.zeros(n), np.zeros(n)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_bounds_hold_and_doubts_are_told(samples, dtype):
    X, C = samples
    C = np.vstack([C, C[0]])  # twins are always in doubt
    labels, upper, lower = empty(len(X))
    doubtful = np.empty(len(X), dtype=np.intp)
    dots = X.astype(dtype) @ C.astype(dtype).T
    error = 16.0 * float(np.finfo(dtype).eps)
    rows = np.arange(len(X))
    count = assign(
        dots, rows, (X**2).sum(axis=1), (C**2).sum(axis=1), error,
        labels, upper, lower, doubtful,
    )  # fmt: skip
    D = np.sqrt(squared(X, C))
    order = np.sort(D, axis=1)
    assert (upper >= order[:, 0]).all()
    assert (lower <= order[:, 1]).all()
    nearest = D.argmin(axis=1)
    assert set(np.flatnonzero(nearest == 0)) <= set(doubtful[:count])
    sure = np.setdiff1d(rows, doubtful[:count])
    assert (labels[sure] == nearest[sure]).all()


def test_what_products_get_wrong_is_in_doubt(rng):
    # Far from the origin, products in single precision do not tell near centres apart.
    X = 30.0 + rng.standard_normal((200, 4)).astype(np.float32)
    C = 30.0 + 1e-4 * rng.standard_normal((6, 4)).astype(np.float32)
    labels, upper, lower = empty(len(X))
    doubtful = np.empty(len(X), dtype=np.intp)
    wide, wide_C = X.astype(np.float64), C.astype(np.float64)
    count = assign(
        X @ C.T, np.arange(len(X)), (wide**2).sum(axis=1), (wide_C**2).sum(axis=1),
        16.0 * float(np.finfo(np.float32).eps), labels, upper, lower, doubtful,
    )  # fmt: skip
    wrong = np.flatnonzero(labels != squared(wide, wide_C).argmin(axis=1))
    assert len(wrong) > 0
    assert set(wrong) <= set(doubtful[:count])


def test_differences_decide(samples):
    X, C = samples
    labels, upper, lower = empty(len(X))
    rows = np.array([7, 3, 9])
    part = np.empty((3, 4))
    gather(X, rows, part)
    assert (part == X[rows]).all()
    decide(part, rows, C, labels, upper, lower)
    D = np.sort(np.sqrt(squared(X[rows], C)), axis=1)
    assert (labels[rows] == squared(X[rows], C).argmin(axis=1)).all()
    assert upper[rows] == pytest.approx(D[:, 0])
    assert lower[rows] == pytest.approx(D[:, 1])
    assert (np.delete(labels, rows) == -1).all()


def test_who_is_not_doubtful_stays(samples, rng):
    X, C = samples
    labels = squared(X, C).argmin(axis=1).astype(np.int32)
    order = np.sort(np.sqrt(squared(X, C)), axis=1)
    upper, lower = order[:, 0].copy(), order[:, 1].copy()
    moved_to = C + 0.05 * rng.standard_normal(C.shape)
    moved = np.linalg.norm(moved_to - C, axis=1)
    out = np.empty(len(X), dtype=np.intp)
    count = give_way(labels, upper, lower, moved, np.zeros(len(C)), out)
    nearest = squared(X, moved_to).argmin(axis=1)
    settled = np.setdiff1d(np.arange(len(X)), out[:count])
    assert 0 < len(settled) < len(X)
    assert (labels[settled] == nearest[settled]).all()


def test_sums_follow(samples, rng):
    X, _ = samples
    weight = rng.random(len(X))
    before = rng.integers(-1, 3, size=len(X)).astype(np.int32)
    after = rng.integers(0, 3, size=len(X)).astype(np.int32)

    def totals(labels):
        masks = [np.where(labels == c, weight, 0) for c in range(3)]
        return np.array([m @ X for m in masks]), np.array([m.sum() for m in masks])

    sums, counts = totals(before)
    move_between(X, np.arange(len(X)), before, after, weight, sums, counts)
    assert sums == pytest.approx(totals(after)[0])
    assert counts == pytest.approx(totals(after)[1])


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_settled_rows_have_the_nearest_centre_and_true_bounds(samples, dtype, rng):
    X, C = samples
    X = X.astype(dtype)
    wide = X.astype(np.float64)
    labels, upper, lower = empty(len(X))
    doubtful = np.empty(len(X), dtype=np.intp)
    error = 16.0 * float(np.finfo(dtype).eps)
    rows = np.arange(len(X))
    for _ in range(4):
        count = settle(
            X, rows, (wide**2).sum(axis=1), C.astype(dtype), (C**2).sum(axis=1),
            np.zeros(len(C)), error, labels, upper, lower, doubtful,
        )  # fmt: skip
        decide(X[doubtful[:count]], doubtful[:count], C, labels, upper, lower)
        D = np.sqrt(squared(wide, C))
        assert (labels == D.argmin(axis=1)).all()
        order = np.sort(D, axis=1)
        assert (upper >= order[:, 0] * (1 - 1e-12)).all()
        assert (lower <= order[:, 1] * (1 + 1e-12)).all()
        # Centres move; only rows in doubt are looked at again.
        step = 0.2 * rng.standard_normal(C.shape)
        C = C + step
        room = np.empty(len(X), dtype=np.intp)
        moved = np.linalg.norm(step, axis=1)
        n_rows = give_way(labels, upper, lower, moved, np.zeros(len(C)), room)
        rows = room[:n_rows].copy()
        assert 0 < n_rows < len(X)


def test_sums_norms_and_distances(samples):
    X, C = samples
    assert sum_columns(X) == pytest.approx(X.sum(axis=0), abs=1e-13)
    moved, norms = X.copy(), np.empty(len(X))
    centre(moved, X.mean(axis=0), norms)
    assert moved == pytest.approx(X - X.mean(axis=0), abs=1e-14)
    assert norms == pytest.approx((moved**2).sum(axis=1), rel=1e-13)
    found = np.empty((len(C), len(X)))
    squared_distances(X, (X**2).sum(axis=1), C, (C**2).sum(axis=1), found)
    assert found == pytest.approx(squared(X, C).T, abs=1e-12)
