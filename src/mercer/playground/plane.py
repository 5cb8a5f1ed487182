"""The plane: a machine fitted to the points of the page, and what is drawn of it.

The picture is a square grid of values. The first row of the grid is at the top, as on a
screen. What the values are depends on the machine: a decision value or a probability,
the lead of the best class over the second best, the distance from the edge of
normality, or a coordinate of kernel PCA.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Kernel
from mercer.multiclass.decoding import score_classes
from mercer.playground import messages
from mercer.playground.messages import PLANE, Answer, Points, Refusal
from mercer.playground.settings import CLASSIFIERS, MachineSettings
from mercer.runtime.progress import StopButton

__all__ = ["PlaneRequest", "draw_plane", "grid", "kernel_picture"]

COARSEST, FINEST = 16, 200
# Side of the pictures of single components.
THUMBNAIL = 48
# Number of points whose kernel values are shown.
MOST_IN_MATRIX = 160
# A coefficient this close to its bound is at the bound.
AT_BOUND = 1 - 1e-6


@dataclass(frozen=True)
class PlaneRequest:
    """A machine, its points, and how fine the picture is to be."""

    settings: MachineSettings
    points: Points
    resolution: int
    component: int

    @classmethod
    def of(cls, message: Mapping[str, Any]) -> PlaneRequest:
        """Read and check a request."""
        return cls(
            MachineSettings.of(message),
            messages.points(message),
            messages.whole(message, "resolution", COARSEST, FINEST, 96),
            messages.whole(message, "component", 0, 5, 0),
        )


def grid(resolution: int) -> NDArray[np.float64]:
    """Return the nodes of a square grid over the plane, row by row from the top."""
    ticks = np.linspace(-PLANE, PLANE, resolution)
    across, up = np.meshgrid(ticks, ticks[::-1])
    return np.column_stack([across.ravel(), up.ravel()])


def draw_plane(request: PlaneRequest, stop: StopButton) -> Answer:
    """Fit the machine, and return the picture with the numbers beside it."""
    settings, points = request.settings, request.points
    _check_enough(settings, points)
    model = settings.estimator(len(points.X)).set_callbacks(stop)
    started = perf_counter()
    try:
        if settings.machine == "SVR":
            model.fit(points.X[:, :1], points.X[:, 1])
        elif settings.machine in CLASSIFIERS:
            model.fit(points.X, points.label)
        else:
            model.fit(points.X)
    except ValueError as error:
        raise Refusal(str(error), _field_at_fault(error)) from error
    fitted = perf_counter()
    picture = _PICTURES[settings.machine](model, request)
    drawn = perf_counter()
    picture.values.update(
        type="plane",
        machine=settings.machine,
        resolution=request.resolution,
        n_points=len(points.X),
        fit_ms=1e3 * (fitted - started),
        picture_ms=1e3 * (drawn - fitted),
    )
    columns = points.X[:, :1] if settings.machine == "SVR" else points.X
    matrix = kernel_picture(model.kernel_, columns, points.label)
    return Answer(picture.values | matrix.values, {**picture.arrays, **matrix.arrays})


def _check_enough(settings: MachineSettings, points: Points) -> None:
    """Refuse points of which the machine can learn nothing."""
    n_classes = len(np.unique(points.label))
    if settings.machine in CLASSIFIERS and n_classes < 2:
        raise Refusal("Place points of at least two classes.", "points")
    least = settings.n_clusters if settings.machine == "KernelKMeans" else 2
    if len(points.X) < least:
        raise Refusal(f"Place at least {least} points.", "points")


def _field_at_fault(error: ValueError) -> str:
    """Return the field of the page that an error of a fit is about."""
    if "nu is infeasible" in str(error):
        return "nu"
    # Points and other fields were checked before: the kernel cannot take the points.
    return "kernel"


def _certificates(model: Any) -> dict[str, Any]:
    """Return the numbers that say how exact a machine is."""
    return {
        "kkt_gap": float(np.max(model.kkt_gap_)),
        "dual_gap": float(np.sum(model.dual_gap_)),
        "objective": float(np.sum(model.objective_)),
        "n_iter": int(np.sum(model.n_iter_)),
        "n_machines": int(np.size(model.n_iter_)),
        "converged": bool(model.converged_),
        "convex": model.is_convex_,
        "tol": model.tol,
    }


def _support(model: Any, n: int, bound: float | None) -> tuple[dict, dict]:
    """Return how many support vectors there are, and the size of each coefficient.

    Sizes are relative to the bound of the coefficients, or to the largest of them.
    """
    size = np.zeros(n, dtype=np.float32)
    largest = np.abs(model.dual_coef_).max(axis=0)
    top = bound if bound is not None else largest.max(initial=0.0)
    size[model.support_] = largest / (top or 1.0)
    n_bound = int((size >= AT_BOUND).sum()) if bound is not None else None
    return {"n_support": len(model.support_), "n_bound": n_bound}, {"alpha": size}


def _of_classifier(model: Any, request: PlaneRequest) -> Answer:
    settings, (X, label) = request.settings, request.points
    nodes = grid(request.resolution)
    bound = settings.C if settings.machine == "SVC" else None
    counts, arrays = _support(model, len(X), bound)
    found = model.predict(X)
    values = {
        **_certificates(model),
        **counts,
        "accuracy": float(np.mean(found == label)),
        "classes": model.classes_.tolist(),
        "shows": "probability" if settings.probability else "decision",
    }
    arrays["wrong"] = (found != label).astype(np.uint8)
    if len(model.classes_) == 2:
        values["kind"] = "two"
        if settings.probability:
            field = model.predict_proba(nodes)[:, 1]
        else:
            field = model.decision_function(nodes)
        values["levels"] = [0.5] if settings.probability else [0.0]
        values["margins"] = [0.1, 0.9] if settings.probability else [-1.0, 1.0]
        arrays["field"] = _square(field)
        return Answer(values, arrays)
    values["kind"] = "many"
    winner, lead = _lead(model, nodes)
    arrays["label"] = _square(model.classes_[winner], np.uint8)
    arrays["field"] = _square(lead)
    return Answer(values, arrays)


def _lead(model: Any, nodes: NDArray) -> tuple[NDArray, NDArray]:
    """Return the best class of each node, and by how much it is the best.

    The lead falls to 0 where another class takes over, so that the boundary can be
    drawn between the nodes.
    """
    if model.probability or model.multiclass != "ovo":
        if model.probability:
            scores = model.predict_proba(nodes)
        else:
            scores = model.decision_function(nodes)
        ordered = np.sort(scores, axis=1)
        return scores.argmax(axis=1), ordered[:, -1] - ordered[:, -2]
    # Votes jump where a machine changes its mind: there its decision value is 0.
    model.set_params(decision_function_shape="ovo")
    decisions = model.decision_function(nodes)
    winner = score_classes(decisions, model.code_, "votes").argmax(axis=1)
    is_asked = model.code_[winner] != 0
    return winner, np.where(is_asked, np.abs(decisions), np.inf).min(axis=1)


def _of_regressor(model: Any, request: PlaneRequest) -> Answer:
    settings, points = request.settings, request.points
    counts, arrays = _support(model, len(points.X), settings.C)
    across = np.linspace(-PLANE, PLANE, 2 * request.resolution)
    arrays["curve"] = model.predict(across[:, None]).astype(np.float32)
    residual = points.X[:, 1] - model.predict(points.X[:, :1])
    values = {
        **_certificates(model),
        **counts,
        "kind": "curve",
        "epsilon": settings.epsilon,
        "error": float(np.sqrt(np.mean(residual**2))),
        "n_outside": int((np.abs(residual) > settings.epsilon * (1 + 1e-9)).sum()),
    }
    return Answer(values, arrays)


def _of_novelty(model: Any, request: PlaneRequest) -> Answer:
    X = request.points.X
    bound = 1.0 if request.settings.machine == "OneClassSVM" else model.C
    counts, arrays = _support(model, len(X), bound)
    inside = model.decision_function(X)
    arrays["wrong"] = (inside < -model.tol).astype(np.uint8)
    arrays["field"] = _square(model.decision_function(grid(request.resolution)))
    values = {
        **_certificates(model),
        **counts,
        "kind": "novelty",
        "levels": [0.0],
        "margins": [],
        "n_outside": int(arrays["wrong"].sum()),
    }
    return Answer(values, arrays)


def _of_clusters(model: Any, request: PlaneRequest) -> Answer:
    distances = model.transform(grid(request.resolution))
    ordered = np.sort(distances, axis=1)
    lead = ordered[:, 1] - ordered[:, 0] if distances.shape[1] > 1 else ordered[:, 0]
    arrays = {
        "label": _square(distances.argmin(axis=1), np.uint8),
        "field": _square(lead),
        "cluster": model.labels_.astype(np.uint8),
    }
    values = {
        "kind": "clusters",
        "inertia": float(model.inertia_),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "sizes": np.bincount(model.labels_, minlength=model.n_clusters).tolist(),
    }
    return Answer(values, arrays)


def _of_components(model: Any, request: PlaneRequest) -> Answer:
    n = len(model.eigenvalues_)
    shown = min(request.component, n - 1)
    small = model.transform(grid(THUMBNAIL)).T.reshape(n, THUMBNAIL, THUMBNAIL)
    field = _square(model.transform(grid(request.resolution))[:, shown])
    values = {
        "kind": "components",
        "component": shown,
        "levels": np.linspace(field.min(), field.max(), 13)[1:-1].tolist(),
        "margins": [],
        "eigenvalues": model.eigenvalues_.tolist(),
        "shares": model.explained_variance_ratio_.tolist(),
        "residual": float(model.residuals_.max()),
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
    }
    return Answer(values, {"field": field, "thumbnails": small.astype(np.float32)})


_PICTURES = {
    "SVC": _of_classifier,
    "NuSVC": _of_classifier,
    "SVR": _of_regressor,
    "OneClassSVM": _of_novelty,
    "SVDD": _of_novelty,
    "KernelKMeans": _of_clusters,
    "KernelPCA": _of_components,
}


def _square(values: NDArray, dtype: Any = np.float32) -> NDArray:
    side = round(len(values) ** 0.5)
    return values.reshape(side, side).astype(dtype)


def kernel_picture(kernel: Kernel, X: NDArray, label: NDArray) -> Answer:
    """Return the matrix of kernel values, ordered by class, as bytes from 0 to 255.

    If there are many points, some of them are shown, evenly taken from each class.
    """
    # Inside a class, points from left to right: neighbours are then close in the plane.
    order = np.lexsort((X[:, 0], label))
    n_shown = min(len(order), MOST_IN_MATRIX)
    shown = order[np.linspace(0, len(order) - 1, n_shown).astype(np.intp)]
    K = np.asarray(kernel.block(X[shown]), dtype=np.float64)
    low, high = float(K.min()), float(K.max())
    scale = 255.0 / (high - low) if high > low else 0.0
    values = {
        "matrix_low": low,
        "matrix_high": high,
        "matrix_counts": np.unique(label[shown], return_counts=True)[1].tolist(),
    }
    return Answer(values, {"matrix": ((K - low) * scale).astype(np.uint8)})
