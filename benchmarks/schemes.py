"""All peers by scheme: multi-class schemes of Mercer and scikit-learn, and machines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.machines import PEERS as MACHINES
from benchmarks.peers import PEERS as ONE_VS_ONE
from benchmarks.peers import Intelex, Mercer, ScikitLearn

__all__ = ["PEERS"]


class MercerOneVsRest(Mercer):
    """Mercer, each class against the rest."""

    options: ClassVar[Mapping[str, Any]] = {"multiclass": "ovr"}


class MercerCode(Mercer):
    """Mercer with the code of Dietterich & Bakiri."""

    options: ClassVar[Mapping[str, Any]] = {
        "multiclass": "ecoc",
        "code": "dietterich15",
        "decode": "hamming",
    }


class OneVsRest(ScikitLearn):
    """scikit-learn's OneVsRestClassifier of SVCs."""

    n_jobs: ClassVar[int | None] = None

    def model_with(self, **options: Any) -> Any:
        from sklearn.multiclass import OneVsRestClassifier

        return OneVsRestClassifier(super().model_with(**options), n_jobs=self.n_jobs)

    @property
    def machines(self) -> list[Any]:
        return self.model.estimators_


class ParallelOneVsRest(OneVsRest):
    """scikit-learn's OneVsRestClassifier in as many processes as there are cores."""

    n_jobs = -1


class IntelexOneVsRest(Intelex, OneVsRest):
    """scikit-learn's OneVsRestClassifier of scikit-learn-intelex's SVCs."""


class CodeOfMachines:
    """One SVC of scikit-learn for each column of a code, decoded by the nearest row."""

    def __init__(self, machines: list[Any], code: NDArray[np.int8]):
        self.machines = machines
        self.code = code

    def fit(self, X: NDArray, y: NDArray) -> CodeOfMachines:
        for machine, column in zip(self.machines, self.code.T, strict=True):
            machine.fit(X, column[y])
        return self

    def predict(self, X: NDArray) -> NDArray:
        signs = np.column_stack([machine.predict(X) for machine in self.machines])
        return (signs.astype(np.float64) @ self.code.T).argmax(axis=1)


class Code(ScikitLearn):
    """SVCs of scikit-learn, fitted one after the other, with the code of Mercer."""

    def model_with(self, **options: Any) -> CodeOfMachines:
        from mercer.multiclass.codes import (
            dietterich15,
        )

        code = dietterich15()
        machines = [super(Code, self).model_with(**options) for _ in code.T]
        return CodeOfMachines(machines, code)

    @property
    def machines(self) -> list[Any]:
        return self.model.machines


class IntelexCode(Intelex, Code):
    """SVCs of scikit-learn-intelex, one after the other, with the code of Mercer."""


class WithProbabilities(ScikitLearn):
    """A peer that predicts the class of largest probability."""

    def predict(self, X: NDArray) -> NDArray:
        self.probabilities = self.model.predict_proba(X)
        return self.probabilities.argmax(axis=1)


class MercerProbability(WithProbabilities, Mercer):
    """Mercer, one-vs-one with probabilities."""

    options: ClassVar[Mapping[str, Any]] = {"probability": True, "random_state": 0}


class Calibrated(WithProbabilities):
    """scikit-learn's CalibratedClassifierCV around one SVC."""

    n_jobs: ClassVar[int | None] = None

    def model_with(self, **options: Any) -> Any:
        from sklearn.calibration import CalibratedClassifierCV

        return CalibratedClassifierCV(
            super().model_with(**options), cv=5, ensemble=False, n_jobs=self.n_jobs
        )

    @property
    def machines(self) -> list[Any]:
        return [self.model.calibrated_classifiers_[0].estimator]


class ParallelCalibrated(Calibrated):
    """The same, with its folds in as many processes as there are cores."""

    n_jobs = -1


class IntelexCalibrated(Intelex, Calibrated):
    """scikit-learn's CalibratedClassifierCV around one SVC of scikit-learn-intelex."""


# The classes of peers, by scheme and name.
PEERS: dict[tuple[str, str], type] = {
    **{("ovo", name): peer for name, peer in ONE_VS_ONE.items()},
    **{("machine", name): peer for name, peer in MACHINES.items()},
    ("ovr", "mercer"): MercerOneVsRest,
    ("ovr", "scikit-learn"): OneVsRest,
    ("ovr", "scikit-learn-parallel"): ParallelOneVsRest,
    ("ovr", "scikit-learn-intelex"): IntelexOneVsRest,
    ("ecoc", "mercer"): MercerCode,
    ("ecoc", "scikit-learn"): Code,
    ("ecoc", "scikit-learn-intelex"): IntelexCode,
    ("probability", "mercer"): MercerProbability,
    ("probability", "scikit-learn"): Calibrated,
    ("probability", "scikit-learn-parallel"): ParallelCalibrated,
    ("probability", "scikit-learn-intelex"): IntelexCalibrated,
}
