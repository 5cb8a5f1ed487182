"""Epochs of the machine of Crammer and Singer."""

import numpy as np

from mercer.core.linear_joint import joint_epochs


def test_epochs_end_when_no_sample_violates_its_conditions(rng):
    # Most samples are far from the margin and are set aside in every epoch.
    n, d, k = 200, 3, 2
    y = np.arange(n) % k
    X = rng.standard_normal((n, d)) + 4.0 * y[:, None]
    alpha, W, b = np.zeros((n, k)), np.zeros((d, k)), np.zeros(k)
    n_epochs, worst = joint_epochs(
        X.ravel(), np.tile(np.arange(d), n), np.arange(0, n * d + 1, d),
        (X * X).sum(axis=1), 1.0, y, np.full(n, 0.1), W, b, alpha, np.arange(n), 1e-3,
        10_000, np.array([1], dtype=np.uint64), np.zeros(1, dtype=np.bool_),
    )  # fmt: skip
    assert n_epochs < 10_000
    assert worst <= 1e-3
    assert np.count_nonzero(alpha[:, 0]) < n / 2
    np.testing.assert_allclose(W, X.T @ alpha, atol=1e-12)
