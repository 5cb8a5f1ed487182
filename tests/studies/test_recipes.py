from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits

from mercer.datasets import stratified_folds
from mercer.images import HOG, Distort, PatchFeatures
from studies import features, recipes
from studies.features import Compressed, MeanDistance, Notebook, Remembered
from studies.recipes import (
    DRAWING_CHANGES,
    DRAWINGS,
    PHOTOGRAPH_CHANGES,
    PHOTOGRAPHS,
    Recipe,
    choose_recipe,
    mirrored,
)

SMALL = Recipe(
    {"hog": HOG(2, 2, interpolation=True)}, {"hog": 2.0}, words=("gradients",)
)
PATCHES = PatchFeatures(3, 10, 2, n_patches=500, max_iter=2, random_state=0)


def made_small(view):
    """Return a view that learns few directions from few patches."""
    own = clone(view)
    for part in own.get_params().values():
        if isinstance(part, PatchFeatures):
            part.set_params(n_directions=5, n_patches=100)
    return own


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return X[:300].reshape(-1, 8, 8).astype(np.float32), y[:300]


def test_mean_distance(rng):
    X = rng.standard_normal((40, 5)).astype(np.float32)
    found = MeanDistance(3.0).fit_transform(X)
    assert found.dtype == np.float32
    pairs = ((found[:, None] - found[None]) ** 2).sum(axis=-1)
    assert pairs.mean() == pytest.approx(3, rel=1e-5)
    assert_allclose(MeanDistance().fit_transform(np.ones((3, 2))), 1)


def test_compressed_views_keep_distances(digits):
    X, _ = digits
    view = HOG(2, 2, interpolation=True)
    full = view.fit_transform(X).reshape(len(X), -1).astype(float)
    found = Compressed(view, 300).fit_transform(X)
    assert found.shape == (300, min(300, full.shape[1]))
    apart = np.linalg.norm(full[:20, None] - full[None], axis=-1)
    assert_allclose(
        np.linalg.norm(found[:20, None] - found[None], axis=-1), apart, atol=5e-3
    )
    # Few components keep no less variance than an exact decomposition, but for a bit.
    few = Compressed(view, 10, n_images=100).fit(X)
    some = full[::3] - full[::3].mean(axis=0)
    most = (np.linalg.svd(some, compute_uv=False)[:10] ** 2).sum()
    assert (few.transform(X[::3]) ** 2).sum() > 0.98 * most
    # A batch gives what single images give.
    assert_allclose(few.transform(X[:1]), few.transform(X)[:1], atol=1e-5)


def test_compressing_in_blocks(digits, monkeypatch):
    X, _ = digits
    fitted = Compressed(HOG(2, 2), 5).fit(X)
    whole = fitted.transform(X)
    monkeypatch.setattr(features, "AT_ONCE", 7)
    assert_allclose(fitted.transform(X), whole, atol=1e-5)


class Counting(HOG):
    """A view that counts how often it is made."""

    made = 0

    def transform(self, X):
        type(self).made += 1
        return super().transform(X)


def test_views_of_the_same_images_are_made_once(digits):
    X, _ = digits
    book = Notebook()
    Counting.made = 0
    first = Remembered(Counting(2, 2), book).fit(X)
    expected = HOG(2, 2).fit_transform(X)
    assert_allclose(first.transform(X), expected)
    second = clone(first).fit(X.copy())
    assert second.notebook is book
    assert_allclose(second.transform(X.copy()), expected)
    assert Counting.made == 1
    # Other images and other settings are others.
    assert_allclose(second.transform(X[:5]), expected[:5])
    other = Remembered(Counting(2, 2, bins=4), book).fit(X)
    assert other.transform(X).shape != expected.shape
    assert Counting.made == 3


def test_a_notebook_drops_what_is_old():
    book = Notebook(room=1.5)
    made = []

    def result(name):
        made.append(name)
        return np.zeros(2**17)  # a megabyte

    for name in ("a", "a", "b", "b", "a"):
        book.look_up(name, lambda name=name: result(name))
    assert made == ["a", "b", "a"]


@pytest.mark.parametrize("multiclass", ["ovr", "ecoc"])
def test_other_machines_for_several_classes(multiclass, digits):
    X, y = digits
    recipe = replace(SMALL, multiclass=multiclass)
    model = recipe.machine(0).fit(X[:200], y[:200])
    assert model[-1].multiclass == multiclass
    predicted, margins = recipes._judge(model, X[200:], y[200:])
    assert_array_equal(predicted, model.predict(X[200:]))
    values = model.decision_function(X[200:])
    code = model[-1].code_
    for k, label in enumerate(y[200:]):
        sides = [code[label, c] * values[k, c] for c in range(code.shape[1])]
        assert margins[k] == pytest.approx(min(1.0, *sides))
    assert (model.predict(X[200:]) == y[200:]).mean() > 0.9


def test_patches_are_deskewed_as_the_gradients_are():
    plain = recipes.with_strokes(DRAWINGS)
    assert plain["weights"] == {"hog": 1.5, "patches": 0.5}
    assert list(plain["views"]["patches"].view.named_steps) == ["patchfeatures"]
    both = DRAWINGS.changed("both", **recipes.STANCES["deskewed and as they are"])
    found = recipes.with_strokes(both)
    assert found["weights"] == {"hog": 0.75, "leaning": 0.75, "patches": 0.5}
    steps = list(found["views"]["patches"].view.named_steps)
    assert steps == ["deskew", "patchfeatures"]


def test_words_tell_what_the_recipe_is():
    recipe = SMALL
    for words, fields in recipes.MACHINES.items():
        recipe = recipe.changed(words, **fields)
    assert recipe.multiclass == "ecoc"
    assert recipe.described == "gradients, error-correcting code"


def test_a_machine_follows_its_recipe(digits):
    X, y = digits
    plain = SMALL.machine(0).fit(X, y)
    assert list(plain.named_steps) == ["views", "svc"]
    both = SMALL.changed(
        "patches",
        views={**SMALL.views, "patches": PATCHES},
        weights={"hog": 1.5, "patches": 0.5},
        distortion=Distort(elastic=0.3, smoothness=2),
        n_copies=2,
    )
    model = both.machine(0).fit(X, y)
    assert model.n_virtual_ == 2 * len(model.copied_)
    F = model.estimator_[:-1].transform(X)
    for name, columns in model.estimator_["views"].views_.items():
        distance = 2 * F[:, columns].var(axis=0, dtype=float).sum()
        assert distance == pytest.approx(both.weights[name], rel=0.01)
    assert both.described == "gradients, patches"
    assert str(both) == (
        "C = 5, γ = 1.5 (hog), 0.5 (patches) over mean squared distances"
    )


def test_changes_stay_if_they_help(digits):
    X, y = digits
    splits = list(stratified_folds(y, 2, random_state=0))
    changes = {
        "a wide kernel": {"weights": {"hog": 1e-6}},
        "a larger penalty": {"C": 5.0},
        "turned at random": {"distortion": Distort(180)},
    }
    start = replace(SMALL, C=1e-6)
    chosen = choose_recipe(start, changes, X, y, splits, seed=0)
    tried = dict(chosen.table)
    assert list(tried) == [
        "gradients",
        "gradients, a wide kernel",
        "gradients, a larger penalty",
        "gradients, a larger penalty, turned at random",
    ]
    assert chosen.recipe.described == "gradients, a larger penalty"
    assert chosen.score == max(tried.values()) > tried["gradients"]
    assert chosen.n_scored == len(y)
    assert f"gradients {tried['gradients']:.2f} %" in chosen.told


def test_the_margin_decides_between_equals(digits):
    X, y = digits
    easy = np.isin(y, (0, 1))  # all recipes are right on these
    X, y = X[easy], y[easy]
    splits = [(np.arange(len(y))[::2], np.arange(len(y))[1::2])]
    changes = {
        "a small penalty": {"C": 0.4},
        "as before": {"C": 5.0},
        **recipes.MACHINES,  # there are none for two classes
    }
    chosen = choose_recipe(SMALL, changes, X, y, splits, seed=0)
    assert len(chosen.table) == 3
    assert {score for _, score in chosen.table} == {100.0}
    assert chosen.recipe.described == "gradients"


@pytest.mark.parametrize("n_classes", [2, 4])
def test_margins(n_classes, digits):
    X, y = digits
    own = y < n_classes
    X, y = X[own], y[own] + 3
    model = SMALL.machine(0).fit(X[::2], y[::2])
    predicted, found = recipes._judge(model, X, y)
    assert_array_equal(predicted, model.predict(X))
    values = model.decision_function(X).reshape(len(y), -1)
    pairs = [(i, j) for i in range(n_classes) for j in range(i + 1, n_classes)]
    for k, label in enumerate(y - 3):
        sides = [
            (1 if label == i else -1) * (-1 if n_classes == 2 else 1) * values[k, c]
            for c, (i, j) in enumerate(pairs)
            if label in (i, j)
        ]
        assert found[k] == pytest.approx(min(1.0, *sides, 1.0))
    is_right = model.predict(X) == y
    assert is_right[found > 0].all()
    assert found[is_right].mean() > 0.5


def test_mirror_images_without_and_with_other_copies():
    alone = mirrored(SMALL)
    assert alone["n_copies"] == 1
    assert alone["distortion"].get_params() == (
        Distort(0, 0, 0, 0, 0, mirror=1).get_params()
    )
    bent = replace(SMALL, distortion=Distort(elastic=2.0))
    both = mirrored(bent)
    assert list(both) == ["distortion"]
    assert both["distortion"].elastic == 2.0 and both["distortion"].mirror == 0.5
    assert bent.distortion.mirror == 0


def slanted(n, rng):
    """Return drawings of a line that leans to the left or to the right: two classes."""
    y = np.arange(n) % 2
    rows, columns = np.mgrid[:28, :28] - 13.5
    slope = np.where(y == 1, 0.4, -0.4) + rng.uniform(-0.1, 0.1, n)
    place = rng.uniform(-4, 4, n)
    distance = columns - place[:, None, None] + slope[:, None, None] * rows
    within = np.hypot(rows, columns - place[:, None, None]) < 9  # no line is cut off
    return (200 * np.exp(-0.5 * distance**2) * within).astype(np.uint8), y


def test_validation_leaves_out_what_hurts(rng):
    # Deskewing leaves only traces of the difference, and a mirror image has another
    # class.
    X, y = slanted(120, rng)
    changes = {k: DRAWING_CHANGES[k] for k in ("deskewed", "mirrored copies")}
    splits = list(stratified_folds(y, 2, random_state=0))
    chosen = choose_recipe(DRAWINGS, changes, X, y, splits, seed=0)
    assert chosen.recipe is DRAWINGS
    scores = dict(chosen.table)
    assert scores["gradients"] > 95
    assert scores["gradients, mirrored copies"] < 75


@pytest.mark.parametrize(
    "start, changes, shape",
    [
        (DRAWINGS, DRAWING_CHANGES, (28, 28)),
        (PHOTOGRAPHS, PHOTOGRAPH_CHANGES, (32, 32, 3)),
    ],
)
def test_all_changes_can_be_made(start, changes, shape, rng):
    X = rng.integers(0, 256, (24, *shape), dtype=np.uint8)
    y = np.arange(24) % 2
    recipe = start
    for words, change in changes.items():
        fields = change(recipe) if callable(change) else change
        recipe = recipe.changed(words, **fields)
    small = {name: made_small(view) for name, view in recipe.views.items()}
    model = recipe.changed("", views=small).machine(0).fit(X, y)
    assert model.converged_
    assert model.predict(X).shape == (24,)
