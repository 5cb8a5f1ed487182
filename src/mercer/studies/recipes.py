"""Recipes for small images: what helps is chosen on training images, change by change.

A recipe begins with histograms of gradients and a Gaussian kernel.  Each change, such
as deskewing, learnt patches or distorted copies, is tried on images that are left out
of training, and stays if it helps.  The recipe knows nothing about what the images
show: that digits lean and must not be mirrored, and that photographs may be, is for the
validation to find out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
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
    Deskew,
    Distort,
    PatchFeatures,
    Views,
    VirtualSVC,
)
from mercer.studies.features import MeanDistance
from mercer.studies.measures import percent

__all__ = [
    "DRAWINGS",
    "DRAWING_CHANGES",
    "PHOTOGRAPHS",
    "PHOTOGRAPH_CHANGES",
    "Chosen",
    "Recipe",
    "choose_recipe",
]


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
    deskew : Deskew or None
        What is done to the images before they are described.
    distortion : Distort or None
        What makes copies of the support vectors; None trains without copies.
    n_copies, copied
        Number of copies, and which images are copied, as in :class:`VirtualSVC`.
    C : float
        Penalty of margin violations.
    words : tuple of str
        What a reader is told about the recipe.
    """

    views: Mapping[str, Any]
    weights: Mapping[str, float]
    deskew: Deskew | None = None
    distortion: Distort | None = None
    n_copies: int = 8
    copied: str = "support"
    C: float = 5.0
    words: tuple[str, ...] = field(default=(), compare=False)

    def machine(self, seed: int) -> Any:
        """Return the classifier of images that the recipe describes."""
        views = {
            name: make_pipeline(clone(view), MeanDistance(self.weights[name]))
            for name, view in self.views.items()
        }
        first = [] if self.deskew is None else [clone(self.deskew)]
        pipeline = make_pipeline(*first, Views(**views), SVC(C=self.C, gamma=1.0))
        if self.distortion is None:
            return pipeline
        return VirtualSVC(
            pipeline, self.distortion, self.n_copies, self.copied, random_state=seed
        )

    def changed(self, words: str, **changes: Any) -> Recipe:
        """Return the recipe with a change, which ``words`` describe to a reader."""
        return replace(self, words=(*self.words, words), **changes)

    @property
    def described(self) -> str:
        """What the machine is given, in words."""
        return ", ".join(self.words)

    def __str__(self) -> str:
        weights = ", ".join(f"{v:g} ({k})" for k, v in self.weights.items())
        return f"C = {self.C:g}, γ = {weights} over mean squared distances"


class Chosen(NamedTuple):
    """The best recipe, its accuracy in per cent, and all that were tried."""

    recipe: Recipe
    score: float
    table: list[tuple[str, float]]
    n_scored: int  #: number of images that were scored

    @property
    def told(self) -> str:
        """What was tried, in words."""
        tried = "; ".join(f"{words} {score:.2f} %" for words, score in self.table)
        return f"Tried on images left out of training: {tried}."


def choose_recipe(
    start: Recipe,
    changes: Mapping[str, Mapping[str, Any]],
    X: NDArray,
    y: NDArray,
    splits: Iterable[tuple[NDArray, NDArray]],
    seed: int,
) -> Chosen:
    """Try changes one after another, and keep those that help.

    ``changes`` are fields of a recipe, by a description for the reader.  ``splits`` are
    pairs of images to train on and images to score, all of them training images.
    """
    splits = list(splits)

    def score(recipe: Recipe) -> float:
        scores = [
            percent(recipe.machine(seed).fit(X[a], y[a]).predict(X[b]), y[b])
            for a, b in splits
        ]
        return float(np.mean(scores))

    best, most = start, score(start)
    table = [(start.described, most)]
    for words, change in changes.items():
        trial = best.changed(words, **change)
        found = score(trial)
        table.append((trial.described, found))
        if found > most:
            best, most = trial, found
    return Chosen(best, most, table, sum(len(b) for _, b in splits))


# Drawings, grey and 28 x 28 pixels or so: digits, letters, clothes.
GRADIENTS = HOG(4, 3, 12, "L1-sqrt", True, True)
STROKES = PatchFeatures(8, 200, 3, square_root=True, random_state=0)
BENT = Distort(elastic=1.4, smoothness=6)
DRAWINGS = Recipe({"hog": GRADIENTS}, {"hog": 2.0}, words=("gradients",))
DRAWING_CHANGES: dict[str, dict[str, Any]] = {
    "deskewed": {"deskew": Deskew("moments")},
    "distorted copies": {"distortion": BENT},
    "mirrored copies": {"distortion": clone(BENT).set_params(mirror=0.5)},
    "learnt patches": {
        "views": {"hog": GRADIENTS, "patches": STROKES},
        "weights": {"hog": 1.5, "patches": 0.5},
    },
}
# Photographs in colour, 32 x 32 pixels or so.
COLOUR_GRADIENTS = HOG(8, 2, 18, "L1-sqrt", True, True)
PIECES = PatchFeatures(6, 1600, 3, random_state=0)
PHOTOGRAPHS = Recipe({"hog": COLOUR_GRADIENTS}, {"hog": 2.0}, words=("gradients",))
PHOTOGRAPH_CHANGES: dict[str, dict[str, Any]] = {
    "learnt patches": {
        "views": {
            "hog": COLOUR_GRADIENTS,
            "patches": make_pipeline(PIECES, StandardScaler()),
        },
        "weights": {"hog": 0.5, "patches": 1.0},
    },
    "mirrored copies": {
        "distortion": Distort(0, 0, 0, 0, 0, mirror=1),
        "n_copies": 1,
        "copied": "all",
    },
}
