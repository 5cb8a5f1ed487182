"""Pair steps of multiple kernel learning against a generic minimiser."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from mercer.core.mkl import add_scaled, kernel_weights, minimise_shared_pairs, pair_step


def value(t, c, s, b, a, q, penalty):
    moved = np.maximum(s + 2 * t * b + t * t * a, 0.0)
    size = moved.max() * np.linalg.norm(moved / moved.max(), q)
    return c * t + (size * size / (8 * penalty) if penalty else 0.5 * size)


def parabolas(rng, n_kernels):
    """Draw parabolas that come from kernels, and so are never negative."""
    s, b, a = np.empty((3, n_kernels))
    for k in range(n_kernels):
        w, step = rng.normal(size=(2, 3))
        s[k], b[k], a[k] = w @ w, w @ step, step @ step
    return s, b, a


@pytest.mark.parametrize("penalty", [0.0, 0.3, 20.0])
@pytest.mark.parametrize("q", [1.2, 4 / 3, 2.0, 3.0, 11.0, 101.0])
@pytest.mark.parametrize("room", [0.01, 5.0, 1e200])
def test_a_step_is_the_best_there_is(rng, q, penalty, room):
    for _ in range(10):
        s, b, a = parabolas(rng, 4)
        at_zero = np.empty(4)
        kernel_weights(s, q, penalty, at_zero)
        c = -float(at_zero @ b) - rng.uniform(0.01, 3.0)
        t = pair_step(c, s, b, a, q, penalty, room, np.empty(4))
        assert 0 < t <= room
        arguments = (c, s, b, a, q, penalty)
        best = minimize_scalar(
            value, bounds=(0, min(room, 200.0)), args=arguments, method="bounded",
            options={"xatol": 1e-12},
        ).fun  # fmt: skip
        if penalty:
            assert value(t, *arguments) <= best + 1e-9 * abs(best) + 1e-12
        elif value(200.0, *arguments) > best:
            # Without a penalty the function may fall for ever.
            assert value(t, *arguments) <= best + 1e-9 * abs(best) + 1e-12


@pytest.mark.parametrize("penalty", [0.0, 0.7])
@pytest.mark.parametrize("q", [1.5, 2.0, 6.0])
def test_the_first_step_leaves_zero(rng, q, penalty):
    _, _, a = parabolas(rng, 3)
    zero = np.zeros(3)
    t = pair_step(-2.0, zero, zero, a, q, penalty, 1e200, np.empty(3))
    size = np.linalg.norm(a, q)
    best = 2.0 / size if not penalty else np.cbrt(4.0 * penalty) / size ** (2 / 3)
    assert t == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("q", [1.5, 2.0, 11.0, 1001.0])
def test_weights_are_the_gradient_of_the_norm(rng, q):
    s, d = rng.uniform(0.1, 3.0, 5), np.empty(5)
    size = kernel_weights(s, q, 0.0, d)
    p = q / (q - 1)
    assert size == pytest.approx(s.max() * ((s / s.max()) ** q).sum() ** (1 / q))
    assert d @ s == pytest.approx(size)
    assert np.linalg.norm(d, p) == pytest.approx(1.0)
    kernel_weights(s, q, 2.0, d)
    assert np.linalg.norm(d, p) == pytest.approx(size / 4.0)


def test_kernels_without_a_say():
    d = np.empty(4)
    assert kernel_weights(np.zeros(4), 2.0, 0.0, d) == 0
    np.testing.assert_allclose(d, 0.5)
    kernel_weights(np.array([1.0, -1e-9, 0.0, 0.0]), 2.0, 0.0, d)
    np.testing.assert_array_equal(d, [1.0, 0.0, 0.0, 0.0])


def test_sums(rng):
    target, values = rng.normal(size=(2, 3, 5)).astype(np.float32)
    expected = target + np.float32(0.5) * values
    add_scaled(target, values, 0.5, False)
    np.testing.assert_allclose(target, expected, rtol=1e-6)
    add_scaled(target, values, 2.0, True)
    np.testing.assert_array_equal(target, 2 * values)


def test_a_stop_is_noticed(rng):
    X = rng.normal(size=(20, 3))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    K = np.stack([X @ X.T, np.exp(-((X[:, None] - X) ** 2).sum(-1))])
    beta, F, s = np.zeros(20), np.zeros((2, 20)), np.zeros(2)
    lo, hi = np.minimum(0, y), np.maximum(0, y)
    group = np.zeros(20, dtype=np.intp)
    arguments = (K, -y, lo, hi, np.arange(20), group, beta, F, s, 2.0, 0.0, 1e-9, 9999)
    steps, gap, _ = minimise_shared_pairs(*arguments, np.ones(1, dtype=np.uint8))
    assert steps == 0
    assert gap == 2.0
    steps, gap, _ = minimise_shared_pairs(*arguments, np.zeros(1, dtype=np.uint8))
    assert 0 < steps < 9999
    assert gap <= 1e-9
    np.testing.assert_allclose(s, [beta @ k @ beta for k in K], rtol=1e-9)
    np.testing.assert_allclose(F, K @ beta, atol=1e-9)
    assert abs(beta.sum()) < 1e-12
