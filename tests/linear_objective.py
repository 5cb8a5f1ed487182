"""Objectives of linear machines from their definitions, in double precision.

Nothing is shared with the package: parity tests measure all libraries with this code.
"""

import numpy as np


def scores(X, coef, intercept):
    return np.asarray(X @ np.atleast_2d(coef).T) + np.atleast_1d(intercept)


def penalties(coef, intercept, norm, scaling):
    """Return the penalty of each machine; ``scaling=None`` leaves out the intercept."""
    coef, bias = np.atleast_2d(coef), np.atleast_1d(intercept)
    power = {"l1": 1, "l2": 2}[norm]
    found = (np.abs(coef) ** power).sum(axis=1) / power
    if scaling is not None:
        found = found + np.abs(bias / scaling) ** power / power
    return found


def one_vs_rest(
    X, y, coef, intercept, C=1.0, loss="squared_hinge", norm="l2", scaling=1.0
):
    """Return the objective of each machine; ``C`` may be a value for each sample."""
    classes = np.unique(y)
    positive = classes[1:] if len(classes) == 2 else classes
    sides = np.where(y[:, None] == positive, 1.0, -1.0)
    slack = np.maximum(1.0 - sides * scores(X, coef, intercept), 0.0)
    losses = slack if loss == "hinge" else slack**2
    total = (np.broadcast_to(C, len(y))[:, None] * losses).sum(axis=0)
    return penalties(coef, intercept, norm, scaling) + total


def joint(X, y, coef, intercept, C=1.0, scaling=1.0):
    """Return the objective of the machine of Crammer and Singer.

    Two classes are given by the difference of their weights, which the penalty divides
    into equal halves.
    """
    coef, intercept = np.atleast_2d(coef), np.atleast_1d(intercept)
    if len(coef) == 1:
        coef = np.vstack([-coef, coef]) / 2
        intercept = np.concatenate([-intercept, intercept]) / 2
    numbers = np.unique(y, return_inverse=True)[1]
    values = scores(X, coef, intercept)
    own = values[np.arange(len(y)), numbers]
    margins = values + 1.0 - own[:, None]
    margins[np.arange(len(y)), numbers] = 0.0
    bias = np.broadcast_to(intercept, len(np.atleast_2d(coef)))
    total = penalties(coef, bias, "l2", scaling).sum()
    return float(total + C * margins.max(axis=1).sum())


def regression(
    X, z, coef, intercept, C=1.0, epsilon=0.0, loss="epsilon_insensitive", scaling=1.0
):
    outside = np.maximum(np.abs(scores(X, coef, intercept).ravel() - z) - epsilon, 0.0)
    losses = outside if loss == "epsilon_insensitive" else outside**2
    penalty = penalties(coef, intercept, "l2", scaling)[0]
    return float(penalty + (C * losses).sum())
