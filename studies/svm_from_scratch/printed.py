"""The program of ``svm-from-scratch`` as the report prints it.

It takes a violator with a random partner, for at most a hundred sweeps, which the
report calls iterations.  The kernel matrix is computed beforehand.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer import SVC, gram_matrix
from studies.handout import Ended, Pairs
from studies.measures import percent, timed
from studies.study import Run, shared
from studies.svm_from_scratch.models import MAKERS, combined_fit, images, settings
from studies.svm_from_scratch.protocol import SWEEPS

__all__ = ["Answers", "answers", "kernel_values", "train_printed"]


class Answers(NamedTuple):
    """What the printed program found with tuned parameters."""

    train: float
    test: float
    found: NDArray  #: what it answers for the test images
    ended: list[Ended]
    seconds: float


def train_printed(
    model: SVC, X: NDArray, y: NDArray, seed: int, sweeps: int = SWEEPS
) -> tuple[Pairs, NDArray]:
    """Return the printed program with the kernel, C and tol of an SVC, and its matrix.

    ``model`` has been fitted on X, so that its kernel is bound.
    """
    K = gram_matrix(model.kernel_, X)
    program = Pairs(K, y, model.C, model.tol, seed=seed)
    program.run(sweeps)
    return program, K


@shared
def kernel_values(run: Run, name: str, kernel: str) -> tuple[NDArray, NDArray]:
    """Return the values of a tuned kernel among training images, and of test images."""
    data, made = images(run, name), MAKERS[kernel](settings(run, kernel, name))
    return gram_matrix(made, data.X), gram_matrix(made, data.X_test, data.X)


@shared
def answers(run: Run, name: str, kernels: tuple[str, ...]) -> Answers:
    """Train the printed program with one kernel, or with several and their weights."""
    data = images(run, name)
    values = [kernel_values(run, name, kernel) for kernel in kernels]
    K, K_test = ([pair[k] for pair in values] for k in (0, 1))
    weights = None
    C = settings(run, kernels[0] if len(kernels) == 1 else "Gaussian", name)["C"]
    if len(kernels) > 1:
        weights = np.atleast_2d(combined_fit(run, name, kernels).model.weights_)

    def work() -> Pairs:
        program = Pairs(
            K if weights is not None else K[0],
            data.y,
            C,
            weights=weights,
            seed=run.seed,
        )
        program.run(SWEEPS)
        return program

    seconds, program = timed(work)
    trained = program.predict(K if weights is not None else K[0])
    found = program.predict(K_test if weights is not None else K_test[0])
    return Answers(
        percent(trained, data.y),
        percent(found, data.y_test),
        found,
        [own.ended for _, _, _, own in program.runs],
        seconds,
    )
