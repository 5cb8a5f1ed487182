"""The printed programs solve the problems of the library, as far as they go."""

import numpy as np
import pytest

from mercer import SVC, MKLClassifier, gram_matrix
from mercer.datasets import make_clouds, make_moons
from mercer.kernels import parse
from studies.handout import Handout, ManyKernels, Pairs, Rest, kkt_gap, objective

C = 5.0


@pytest.fixture(scope="module")
def moons():
    X, y = make_moons(200, noise=0.2, random_state=0)
    model = SVC(C=C, gamma=2.0, tol=1e-6).fit(X, y)
    return X, y, model, gram_matrix(model.kernel_, X)


def sides(y):
    return np.where(y == 1, 1.0, -1.0)


def test_the_program_approaches_the_optimum(moons):
    X, y, model, K = moons
    program = Handout(K, sides(y), C)
    short = program.run(3)
    early = objective(program)
    assert short.sweeps == 3 and 0 < early
    ended = program.run(100_000, 200)
    assert ended.sweeps > 3 and ended.idle == 200
    best = -float(model.objective_[0])
    assert early < objective(program) <= best * (1 + 1e-9)
    assert objective(program) == pytest.approx(best, rel=1e-5)
    assert kkt_gap(program) < 0.01
    assert program.alpha.min() >= 0 and program.alpha.max() <= C
    assert program.alpha @ sides(y) == pytest.approx(0, abs=1e-9)
    # b₁ and b₂ agree where both variables are inside the box.
    assert ended.apart < 1e-10
    found = program.decide(K)
    assert np.allclose(found, program.f + program.b[0])
    assert np.mean((found > 0) == (model.decision_function(X) > 0)) > 0.98


def test_a_run_that_is_continued_is_the_same_run(moons):
    _, y, _, K = moons
    whole, parts = Handout(K, sides(y), C, seed=3), Handout(K, sides(y), C, seed=3)
    whole.run(20, 100)
    for n in (1, 7, 20):
        parts.run(n, 100)
    assert parts.ended == whole.ended
    assert np.array_equal(parts.alpha, whole.alpha)


def test_each_sample_may_have_its_own_bound(moons):
    _, y, _, K = moons
    bounds = np.where(y == 1, 3.0, 1.0)
    program = Handout(K, sides(y), bounds)
    program.run(10_000, 100)
    assert (program.alpha <= bounds).all()
    weighted = SVC(1.0, "precomputed", class_weight={0: 1, 1: 3}, tol=1e-6)
    best = -float(weighted.fit(K, y).objective_[0])
    assert objective(program) == pytest.approx(best, rel=1e-4)


def test_several_classes():
    X, y = make_clouds(150, n_classes=3, separation=3.0, random_state=0)
    model = SVC(C=1.0, gamma=0.5).fit(X, y)
    K = gram_matrix(model.kernel_, X)
    for program in (Pairs(K, y, 1.0), Rest(K, y, 1.0, beta=2.0)):
        program.run(200)
        assert np.mean(program.predict(K) == model.predict(X)) > 0.97
    # Weights of the pairs: half and half of the same matrix is that matrix.
    halves = Pairs([K, K], y, 1.0, weights=np.full((3, 2), 0.5))
    halves.run(200)
    plain = Pairs(K, y, 1.0)
    plain.run(200)
    assert np.array_equal(halves.predict([K, K]), plain.predict(K))


@pytest.mark.parametrize("penalty", [10.0, 1000.0])
def test_the_program_for_several_kernels(moons, penalty):
    X, y, _, _ = moons
    kernels = [parse(k) for k in ("rbf(gamma=2)", "rbf(gamma=0.3)", "linear")]
    K = np.stack([gram_matrix(kernel, X) for kernel in kernels])
    program = ManyKernels(K, sides(y), C, penalty)
    program.run(100_000, 100)
    model = MKLClassifier(
        kernels, method="smo", p=2, penalty=penalty, normalize=None, C=C, tol=1e-6
    ).fit(X, y)
    best = -float(np.sum(model.objective_))
    assert program.objective <= best * (1 + 1e-9)
    assert program.objective == pytest.approx(best, rel=1e-3)
    assert program.weights == pytest.approx(np.ravel(model.weights_), rel=0.05)
    # s and F follow the steps exactly.
    beta = program.alpha * program.y
    assert program.F == pytest.approx(K @ beta, abs=1e-6)
    assert program.s == pytest.approx([beta @ own @ beta for own in K], rel=1e-9)
    assert np.mean((program.decide(K) > 0) == (model.predict(X) == 1)) > 0.97
