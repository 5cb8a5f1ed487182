"""The stream: samples arrive one by one, and machines learn as they come.

Every sample is first predicted and then learnt from. A concept may stand still or move;
the batch machine on all samples so far shows what there was to learn.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer import SVC, OnlineSVC, PassiveAggressiveClassifier
from mercer.playground import messages
from mercer.playground.messages import PLANE, Answer, Refusal
from mercer.playground.plane import grid
from mercer.playground.settings import MOST_STEPS, MachineSettings
from mercer.runtime.progress import StopButton

__all__ = ["CONCEPTS", "LEARNERS", "Stream"]

# Samples of one step, and of a whole stream.
MOST_AT_ONCE = 25
MOST_SAMPLES = 5000
# The batch machine is fitted to this many of the latest samples.
BATCH = 1000

Arrays = tuple[NDArray, NDArray]


def _clouds(t: NDArray, rng: np.random.Generator) -> Arrays:
    label = (rng.random(len(t)) < 0.5).astype(np.intp)
    centre = np.column_stack([np.where(label, 1.1, -1.1), np.zeros(len(t))])
    return centre + 0.7 * rng.standard_normal((len(t), 2)), label


def _moons(t: NDArray, rng: np.random.Generator) -> Arrays:
    label = (rng.random(len(t)) < 0.5).astype(np.intp)
    angle = rng.uniform(0, np.pi, len(t))
    side = np.where(label, -1.0, 1.0)
    X = 1.5 * np.column_stack([np.cos(angle), side * np.sin(angle)])
    X += np.column_stack([-0.75 * side, np.where(label, 0.4, -0.4)])
    return X + 0.2 * rng.standard_normal(X.shape), label


def _turning(t: NDArray, rng: np.random.Generator) -> Arrays:
    X, label = _clouds(t, rng)
    angle = 2 * np.pi * t / 500
    cos, sin = np.cos(angle), np.sin(angle)
    turned = np.column_stack(
        [cos * X[:, 0] - sin * X[:, 1], sin * X[:, 0] + cos * X[:, 1]]
    )
    return turned, label


def _switching(t: NDArray, rng: np.random.Generator) -> Arrays:
    X, label = _clouds(t, rng)
    return X, np.where((t // 150) % 2 == 0, label, 1 - label).astype(np.intp)


def _breathing(t: NDArray, rng: np.random.Generator) -> Arrays:
    X = rng.uniform(-2.6, 2.6, (len(t), 2))
    radius = 1.4 + 0.7 * np.sin(2 * np.pi * t / 300)
    return X, (np.hypot(*X.T) < radius).astype(np.intp)


CONCEPTS: dict[str, Callable[[NDArray, np.random.Generator], Arrays]] = {
    "clouds": _clouds,
    "moons": _moons,
    "turning": _turning,
    "switching": _switching,
    "breathing": _breathing,
}
LEARNERS = {
    "lasvm": "LASVM",
    "smo": "Online SMO",
    "pa1": "PA-I",
    "pa2": "PA-II",
}


class Learner:
    """A machine that learns sample by sample, and what is counted of it."""

    def __init__(self, model: Any):
        self.model = model
        self.tested = self.mistakes = self.removed = 0
        self._held: set[bytes] = set()

    def take(self, x: NDArray, label: NDArray) -> bool:
        """Predict a sample, then learn from it; return whether it was a mistake."""
        wrong = False
        if self._held:
            self.tested += 1
            wrong = bool(self.model.predict(x)[0] != label[0])
            self.mistakes += wrong
        self.model.partial_fit(x, label, classes=[0, 1])
        held = self.held()
        now = {row.tobytes() for row in held}
        self.removed += len(self._held - now)
        self._held = now
        return wrong

    def held(self) -> NDArray:
        """Return the samples that the machine holds."""
        if isinstance(self.model, OnlineSVC):
            return self.model.samples_
        return self.model.support_vectors_

    def counts(self) -> dict[str, int]:
        """Return the numbers that the page draws over time."""
        return {
            "tested": self.tested,
            "mistakes": self.mistakes,
            "held": len(self._held),
            "removed": self.removed,
        }


class Stream:
    """A concept, the machines that learn it, and the samples so far."""

    def __init__(self, message: Mapping[str, Any]):
        settings = MachineSettings.of({**message, "machine": "SVC"})
        self._concept = messages.choice(message, "concept", tuple(CONCEPTS), "clouds")
        self._flip = messages.number(message, "flip", 0.0, 0.5, 0.05)
        budget = messages.whole(message, "budget", 10, 500, 150)
        seed = messages.whole(message, "seed", 0, 2**31 - 1, 0)
        self._rng = np.random.default_rng(seed)
        settings.bound_kernel()
        kernel = settings.kernel_arguments()
        shared = {"C": settings.C, "budget": budget, **kernel}
        self._learners = {
            "lasvm": Learner(OnlineSVC(method="lasvm", **shared)),
            "smo": Learner(OnlineSVC(method="smo", max_iter=MOST_STEPS, **shared)),
            "pa1": Learner(PassiveAggressiveClassifier(variant="pa1", **shared)),
            "pa2": Learner(PassiveAggressiveClassifier(variant="pa2", **shared)),
        }
        self._batch = SVC(C=settings.C, max_iter=MOST_STEPS, **kernel)
        self._X = np.empty((0, 2))
        self._label = np.empty(0, dtype=np.intp)

    def step(self, message: Mapping[str, Any], stop: StopButton) -> Answer:
        """Let samples arrive; return them with what the machines made of them."""
        count = messages.whole(message, "count", 1, MOST_AT_ONCE, 5)
        resolution = messages.whole(message, "resolution", 16, 96, 56)
        n = len(self._label)
        if n + count > MOST_SAMPLES:
            raise Refusal(
                f"The stream ends after {MOST_SAMPLES} samples. Start it again.",
                "stream",
            )
        X, label = CONCEPTS[self._concept](np.arange(n, n + count), self._rng)
        X = np.clip(X, -PLANE, PLANE)
        flipped = self._rng.random(count) < self._flip
        label = np.where(flipped, 1 - label, label)
        wrong = np.zeros((len(self._learners), count), dtype=np.uint8)
        try:
            for k in range(count):
                for row, learner in enumerate(self._learners.values()):
                    wrong[row, k] = learner.take(X[k : k + 1], label[k : k + 1])
        except ValueError as error:
            raise Refusal(str(error), "kernel") from error
        self._X = np.concatenate([self._X, X])
        self._label = np.concatenate([self._label, label])
        return self._picture(X, label, wrong, resolution, stop)

    def _picture(
        self,
        X: NDArray,
        label: NDArray,
        wrong: NDArray,
        resolution: int,
        stop: StopButton,
    ) -> Answer:
        nodes, shape = grid(resolution), (resolution, resolution)
        fields = [
            learner.model.decision_function(nodes).reshape(shape)
            for learner in self._learners.values()
        ]
        arrays: dict[str, NDArray] = {
            "x": X[:, 0].astype(np.float32),
            "y": X[:, 1].astype(np.float32),
            "label": label.astype(np.uint8),
            "wrong": wrong,
            "fields": np.array(fields, dtype=np.float32),
        }
        recent = self._label[-BATCH:]
        if len(np.unique(recent)) == 2:
            self._batch.set_callbacks(stop).fit(self._X[-BATCH:], recent)
            ghost = self._batch.decision_function(nodes).reshape(shape)
            arrays["ghost"] = ghost.astype(np.float32)
        values = {
            "type": "stream",
            "n_seen": len(self._label),
            "learners": [
                {"key": key, "name": LEARNERS[key], **learner.counts()}
                for key, learner in self._learners.items()
            ],
            "n_batch": len(self._batch.support_) if "ghost" in arrays else None,
        }
        return Answer(values, arrays)
