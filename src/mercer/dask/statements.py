"""What the problems of a machine are, for any of its samples.

Workers ask about the samples that they have, and the driver about those that it has
received.  The formulas are the machine's own.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.engines.cluster.messages import Facts, Part
from mercer.multiclass.calibration import N_FOLDS

__all__ = ["ClassStatement", "SingleStatement"]


class ClassStatement:
    """The problems of a classifier: one for each column of its code, and for folds.

    Parameters
    ----------
    machine : KernelClassifier
        It states the problem of two sides.
    classes, class_weight : ndarray of shape (n_classes,)
    code : ndarray of shape (n_classes, n_machines)
    factors : ndarray of shape (n_machines,)
        Factors of C on the positive sides.
    folds_seed : int, default=None
        If given, each machine also has problems of folds, for its calibration.
    """

    per_sample = 1

    def __init__(
        self,
        machine: Any,
        classes: NDArray,
        class_weight: NDArray,
        code: NDArray,
        factors: NDArray,
        folds_seed: int | None = None,
    ):
        self._machine = machine
        self.classes = classes
        self.class_weight = class_weight
        self.code = code
        self._factors = factors
        self.folds_seed = folds_seed
        self.per_machine = 1 if folds_seed is None else 1 + N_FOLDS
        self.n_tasks = code.shape[1] * self.per_machine
        self.by_class = bool((code == 0).any())

    def encode(self, targets: Any, n_samples: int) -> NDArray[np.float64]:
        """Return the number of each sample's class."""
        return np.searchsorted(self.classes, targets).astype(np.float64)

    def part(self, task: int, facts: Facts) -> Part:
        """Return the problem of one machine, or of one of its folds."""
        t, fold = divmod(task, self.per_machine)
        y = facts.target.astype(np.intp)
        column = self.code[:, t]
        rows = np.flatnonzero(column[y])
        y = y[rows]
        sides = column[y]
        weight = self.class_weight[y] * facts.weight[rows]
        weight = weight * np.where(sides > 0, self._factors[t], 1.0)
        if fold:
            weight = weight * (facts.fold[rows] != fold - 1)
        return Part(rows, self._machine._problem(sides, weight))


class SingleStatement:
    """The one problem of a regressor or of a one-class machine.

    Parameters
    ----------
    machine : SingleMachine
        It states the problem.
    per_sample : int
        The number of variables of a sample.
    """

    n_tasks = per_machine = 1
    by_class = False
    folds_seed = None

    def __init__(self, machine: Any, per_sample: int):
        self._machine = machine
        self.per_sample = per_sample

    def encode(self, targets: Any, n_samples: int) -> NDArray[np.float64]:
        """Return the values of the samples; 0 if they have none."""
        if targets is None:
            return np.zeros(n_samples)
        return np.asarray(targets, dtype=np.float64)

    def part(self, task: int, facts: Facts) -> Part:
        """Return the problem."""
        problem = self._machine._problem(facts.target, facts.weight)
        return Part(np.arange(len(facts.target)), problem)
