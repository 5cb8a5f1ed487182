"""Recipes for small images: what helps is chosen on training images, change by change.

A recipe begins with histograms of gradients and a Gaussian kernel.  Each change, such
as deskewing, learnt patches or distorted copies, is tried on images that are left out
of training, and stays if it helps.  The recipe knows nothing about what the images
show: that digits lean and must not be mirrored, and that photographs may be, is for the
validation to find out.  Each change is tried without those that did not help, so that
validation can leave out any of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from mercer import SVC
from mercer.images import (
    HOG,
    ColourHistogram,
    Deskew,
    Distort,
    PatchFeatures,
    Views,
    VirtualSVC,
)
from mercer.multiclass.decoding import score_classes
from studies.features import Compressed, MeanDistance, Notebook, Remembered
from studies.measures import Fitted, percent
from studies.results import Row

__all__ = [
    "DRAWINGS",
    "DRAWING_CHANGES",
    "PHOTOGRAPHS",
    "PHOTOGRAPH_CHANGES",
    "Chosen",
    "Recipe",
    "choose_recipe",
    "mirrored",
]


# Number of samples, copies included, on which a machine is trained at most.
MOST_SAMPLES = 100_000
# Which machines of two sides decide among several classes, if not one for each pair.
MACHINES = {
    "each class against the rest": {"multiclass": "ovr"},
    "error-correcting code": {"multiclass": "ecoc"},
}
# How the values of these machines, or of those for pairs, become a class.
DECODING = {"ovo": "votes", "ovr": "margin", "ecoc": "loss"}
# Gradients of drawings as they are, and of drawings that no longer lean.
GRADIENTS = HOG(4, 3, 12, "L1-sqrt", True, True)
LEANING = Compressed(GRADIENTS, 500)
UPRIGHT = Compressed(make_pipeline(Deskew("moments"), GRADIENTS), 500)
# Whether drawings are deskewed; one machine may see them both ways.
STANCES = {
    "deskewed": {"views": {"hog": UPRIGHT}, "weights": {"hog": 2.0}},
    "deskewed and as they are": {
        "views": {"hog": UPRIGHT, "leaning": LEANING},
        "weights": {"hog": 1.0, "leaning": 1.0},
    },
}


@dataclass(frozen=True)
class Recipe:
    """How images are described, which copies are made, and the machine's settings.

    Attributes
    ----------
    views : dict of transformers
        The descriptions of the images, by name.
    weights : dict of float
        The weight of each view in the one Gaussian kernel exp(−|x − z|²): the mean
        squared distance of two images in this view, after scaling.
    distortion : Distort or None
        What makes copies of the support vectors; None trains without copies.
    n_copies, copied
        Number of copies, and which images are copied, as in :class:`VirtualSVC`. Fewer
        copies are made of images that are hard to classify, of which most are support
        vectors: training is limited to 100,000 samples.
    C : float
        Penalty of margin violations.
    multiclass : {"ovo", "ovr", "ecoc"}
        Which machines of two sides there are, as in :class:`mercer.SVC`.
    words : tuple of str
        What a reader is told about the recipe.
    """

    views: Mapping[str, Any]
    weights: Mapping[str, float]
    distortion: Distort | None = None
    n_copies: int = 8
    copied: str = "support"
    C: float = 5.0
    multiclass: str = "ovo"
    words: tuple[str, ...] = field(default=(), compare=False)

    def machine(self, seed: int, notebook: Notebook | None = None) -> Any:
        """Return the classifier of images that the recipe describes.

        With a notebook the views of images that come again are not made again.
        """
        views = {
            name: make_pipeline(
                clone(view) if notebook is None else Remembered(view, notebook),
                MeanDistance(self.weights[name]),
            )
            for name, view in self.views.items()
        }
        svc = SVC(
            C=self.C,
            gamma=1.0,
            multiclass=self.multiclass,
            decode=DECODING[self.multiclass],
            decision_function_shape="ovo",
        )
        pipeline = make_pipeline(Views(**views), svc)
        if self.distortion is None:
            return pipeline
        return VirtualSVC(
            pipeline,
            self.distortion,
            self.n_copies,
            self.copied,
            max_samples=MOST_SAMPLES,
            random_state=seed,
        )

    def changed(self, words: str, **changes: Any) -> Recipe:
        """Return the recipe with a change, which ``words`` describe to a reader."""
        # A change takes the place of an earlier one to the same part.
        before = [
            word
            for word in self.words
            if not any({word, words} <= group.keys() for group in (MACHINES, STANCES))
        ]
        return replace(self, words=(*before, words), **changes)

    @property
    def described(self) -> str:
        """What the machine is given, in words."""
        return ", ".join(self.words)

    def __str__(self) -> str:
        weights = ", ".join(f"{v:g} ({k})" for k, v in self.weights.items())
        return f"C = {self.C:g}, γ = {weights} over mean squared distances"


Change = Mapping[str, Any] | Callable[[Recipe], Mapping[str, Any]]


class Chosen(NamedTuple):
    """The best recipe, its accuracy in per cent, and all that were tried."""

    recipe: Recipe
    score: float
    table: list[tuple[str, float]]
    n_scored: int  #: number of images that were scored

    def row(
        self,
        label: str,
        scores: Mapping[str, Any],
        n_test: int,
        fitted: Fitted,
        key: str,
    ) -> Row:
        """Return the row of the best model; ``scores`` are on ``n_test`` images."""
        sizes = dict.fromkeys(scores, n_test)
        return Row(
            "best",
            f"{label}: RBF on {self.recipe.described}",
            {"validation": self.score, **scores, "setting": str(self.recipe)},
            {"validation": self.n_scored, **sizes},
            **fitted.facts,
            note=self.told,
            key=key,
        )

    @property
    def told(self) -> str:
        """What was tried, in words."""
        tried = "; ".join(f"{words} {score:.2f} %" for words, score in self.table)
        return f"Tried on images left out of training: {tried}."


def choose_recipe(
    start: Recipe,
    changes: Mapping[str, Change],
    X: NDArray,
    y: NDArray,
    splits: Iterable[tuple[NDArray, NDArray]],
    seed: int,
) -> Chosen:
    """Try changes one after another, and keep those that help.

    ``changes`` are fields of a recipe, or a function that returns them, by a
    description for the reader.  ``splits`` are pairs of images to train on and images
    to score, all of them training images.  If two recipes are right equally often, the
    one with the larger mean margin is better.
    """
    splits, notebook = list(splits), Notebook()

    def score(recipe: Recipe) -> tuple[float, float]:
        scores = []
        for a, b in splits:
            model = recipe.machine(seed, notebook).fit(X[a], y[a])
            found, margins = _judge(model, X[b], y[b])
            scores.append((percent(found, y[b]), margins.mean()))
        accuracy, margin = np.mean(scores, axis=0)
        return float(accuracy), float(margin)

    best, most = start, score(start)
    table = [(start.described, most[0])]
    for words, change in changes.items():
        if words in MACHINES and len(np.unique(y)) == 2:
            continue  # two classes have one machine
        fields = change(best) if callable(change) else change
        trial = best.changed(words, **fields)
        found = score(trial)
        table.append((trial.described, found[0]))
        if found > most:
            best, most = trial, found
    return Chosen(best, most[0], table, sum(len(b) for _, b in splits))


def _judge(model: Any, X: NDArray, y: NDArray) -> tuple[NDArray, NDArray]:
    """Return the classes that are predicted, and the margins of the images.

    A margin says by how much an image is on the right side of every boundary, up to 1.
    The code of the machine has the side of each class, or 0 where a class is left out.
    Both come from the same decision values, which take longest.
    """
    svc = _svc(model)
    values = model.decision_function(X).reshape(len(X), -1)
    found = svc.classes_[score_classes(values, svc.code_, svc.decode).argmax(axis=1)]
    sides = svc.code_[np.searchsorted(svc.classes_, y)]
    margins = np.where(sides == 0, 1.0, np.minimum(sides * values, 1.0)).min(axis=1)
    return found, margins


def _svc(model: Any) -> SVC:
    """Return the machine of a pipeline, or of one that was trained on copies."""
    pipeline = getattr(model, "estimator_", model)
    return pipeline[-1]


def mirrored(recipe: Recipe) -> dict[str, Any]:
    """Return the change that mirrors copies, or adds mirror images if there are none.

    Half of the copies are mirrored if the recipe has copies.
    """
    if recipe.distortion is None:
        return {"distortion": Distort(0, 0, 0, 0, 0, mirror=1), "n_copies": 1}
    return {"distortion": clone(recipe.distortion).set_params(mirror=0.5)}


def with_strokes(recipe: Recipe) -> dict[str, Any]:
    """Return the change that adds patches of strokes, deskewed as the gradients are."""
    strokes = PatchFeatures(11, 200, 3, square_root=True, random_state=0)
    first = [Deskew("moments")] if UPRIGHT in recipe.views.values() else []
    weights = {name: 0.75 * weight for name, weight in recipe.weights.items()}
    return {
        "views": {
            **recipe.views,
            "patches": Compressed(make_pipeline(*first, strokes), 500),
        },
        "weights": {**weights, "patches": 0.5},
    }


# Drawings, grey and 28 x 28 pixels or so: digits, letters, clothes.
DRAWINGS = Recipe({"hog": LEANING}, {"hog": 2.0}, words=("gradients",))
DRAWING_CHANGES: dict[str, Change] = {
    **STANCES,
    **MACHINES,
    "distorted copies": {"distortion": Distort(elastic=1.4, smoothness=6)},
    "mirrored copies": mirrored,
    "learnt patches": with_strokes,
}
# Photographs in colour, 32 x 32 pixels or so.
COLOUR_GRADIENTS = HOG(8, 2, 18, "L1-sqrt", True, True)
SMALL_PIECES, PIECES = (
    make_pipeline(
        PatchFeatures(side, 800, 3, square_root=side == 6, random_state=0),
        StandardScaler(),
    )
    for side in (6, 8)
)
PHOTOGRAPHS = Recipe(
    {"hog": COLOUR_GRADIENTS},
    {"hog": 2.0},
    copied="all",
    C=10.0,
    words=("gradients",),
)
PHOTOGRAPH_CHANGES: dict[str, Change] = {
    "learnt patches": {
        "views": {
            "hog": COLOUR_GRADIENTS,
            "patches6": SMALL_PIECES,
            "patches8": PIECES,
        },
        "weights": {"hog": 0.8, "patches6": 0.5, "patches8": 0.5},
    },
    **MACHINES,
    "colours": lambda recipe: {
        "views": {**recipe.views, "colours": ColourHistogram()},
        "weights": {**recipe.weights, "colours": 0.2},
    },
    "mirrored copies": mirrored,
}
