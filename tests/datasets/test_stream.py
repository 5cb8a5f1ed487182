from itertools import islice

import numpy as np
import pytest

from mercer.datasets import noisy_stream


def joined(chunks):
    X, y = zip(*chunks, strict=True)
    return np.concatenate(X), np.concatenate(y)


@pytest.mark.parametrize("chunk_size", [1, 7, 100, 1000])
def test_chunks_do_not_change_the_samples(chunk_size):
    X, y = joined(noisy_stream(200, chunk_size=200, random_state=0))
    Xs, ys = joined(noisy_stream(200, chunk_size=chunk_size, random_state=0))
    np.testing.assert_array_equal(Xs, X)
    np.testing.assert_array_equal(ys, y)


def test_the_seed_decides():
    X, _ = joined(noisy_stream(20, random_state=1))
    assert not np.array_equal(X, joined(noisy_stream(20, random_state=2))[0])
    assert not np.array_equal(joined(noisy_stream(20))[0], joined(noisy_stream(20))[0])


def test_sizes_and_types():
    chunks = list(noisy_stream(10, chunk_size=4, n_features=3, random_state=0))
    assert [X.shape for X, _ in chunks] == [(4, 3), (4, 3), (2, 3)]
    assert [y.shape for _, y in chunks] == [(4,), (4,), (2,)]
    assert {y.dtype for _, y in chunks} == {np.dtype(np.int64)}


def test_it_can_go_on_for_ever():
    chunks = islice(noisy_stream(None, chunk_size=3, random_state=0), 100)
    X, y = joined(chunks)
    assert X.shape == (300, 2)
    finite = joined(noisy_stream(300, random_state=0))
    np.testing.assert_array_equal(finite[0], X)
    np.testing.assert_array_equal(finite[1], y)


def test_labels_are_wrong_as_often_as_said():
    stream = noisy_stream(
        20_000,
        chunk_size=20_000,
        separation=20,
        flip=0.2,
        random_state=0,
        as_bunch=True,
    )
    (chunk,) = stream
    side = chunk.data[:, 0] > 0
    np.testing.assert_array_equal(side != chunk.target, chunk.is_flipped)
    assert chunk.is_flipped.mean() == pytest.approx(0.2, abs=0.02)
    assert chunk.target.mean() == pytest.approx(0.5, abs=0.02)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_samples": 0}, ValueError, "n_samples must be >= 1, got 0"),
        ({"chunk_size": 0}, ValueError, "chunk_size must be >= 1, got 0"),
        ({"flip": 1.5}, ValueError, "flip must be .* >= 0 and <= 1, got 1.5"),
        ({"flip": None}, TypeError, "flip must be a number, got None"),
        ({"spread": -1}, ValueError, "spread must be"),
        ({"n_features": 1}, ValueError, "n_features must be >= 2, got 1"),
    ],
)
def test_errors_come_at_once(options, error, match):
    with pytest.raises(error, match=match):
        noisy_stream(**options)
