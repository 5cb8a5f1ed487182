"""Gram matrices of a search: what kernels have in common is kept, and nothing else."""

import numpy as np
import pytest

from mercer import SVC, gram_matrix, kernels
from mercer.engines.engine import engine_of
from mercer.selection.stored import GramMaker
from searches import check_same


class Own(kernels.Kernel):
    """A user's kernel that keeps a result of its own, which depends on a parameter."""

    def __init__(self, width=1.0):
        self.width = width

    def evaluate(self, pair):
        make = lambda: np.exp(-self.width * pair.manhattan())  # noqa: E731
        return pair.own(pair.once("name", make))

    def diagonal(self, operand):
        return np.ones(len(operand))


@pytest.mark.parametrize("keeps", [True, False])
def test_matrices_are_those_of_each_kernel(rng, keeps):
    X = np.abs(rng.normal(size=(300, 4)))
    candidates = [
        kernels.RBF(0.1),
        kernels.RBF(1.0),
        kernels.Linear() + kernels.RBF(0.1),
        kernels.Laplacian(0.3).on([0, 1]),
        kernels.Laplacian(0.3).on([1, 2]),
        kernels.Chi2(0.5) * kernels.Intersection(),
        Own(0.1),
        Own(2.0),
    ]
    with engine_of(X) as engine:
        maker = GramMaker(X, X.dtype, candidates, 2**27, engine, keeps=keeps)
        for kernel in candidates:
            found = maker.make(kernel)
            np.testing.assert_allclose(found.matrix, gram_matrix(kernel, X), atol=1e-10)
            exact = kernel.block(X)[found.sampled]
            np.testing.assert_allclose(found.exact, exact, atol=1e-12)


def test_a_search_over_a_users_kernel_with_results_of_its_own(rng):
    X = rng.normal(size=(120, 3))
    y = (np.sin(2 * X[:, 0]) + X[:, 1] > 0).astype(int)
    grid = {"kernel__width": [0.01, 1.0, 30.0], "C": [0.1, 10.0]}
    ours, _ = check_same(SVC(kernel=Own()), grid, X, y, cv=3)
    assert len(set(ours.cv_results_["mean_test_score"])) > 2
