"""Machines that enclose one class, in the study ``kernel-methods``."""

from __future__ import annotations

from collections.abc import Iterator

from numpy.typing import NDArray

from mercer import SVC, SVDD, OneClassSVM
from mercer.datasets import make_moons
from mercer.plots import DecisionRegionsDisplay, OneClassDisplay
from studies.measures import timed_fit
from studies.panels import plane_panel
from studies.results import Figure, Item, Row
from studies.study import Run

__all__ = ["SOFT", "WIDTH", "balls"]

# γ of all machines, and the share of samples that may be outside with slack.
WIDTH, SOFT = 1.5, 0.1


def balls(run: Run) -> Iterator[Item]:
    """Compare hard and soft SVDD, one-class SVM and a two-class machine."""
    X, y = make_moons(run.pick(200, 200, 80), noise=0.12, random_state=run.seed)
    X_new, y_new = make_moons(2000, noise=0.12, random_state=run.seed + 1)
    own, n = X[y == 0], int((y == 0).sum())
    gamma, C = WIDTH, 1 / (SOFT * n)
    ways = {
        "SVDD, hard": SVDD(gamma=gamma),
        "SVDD, soft": SVDD(gamma=gamma, C=C),
        "SVDD, soft, wider": SVDD(gamma=gamma, C=C, offset=0.02),
        "SVDD, soft, narrower": SVDD(gamma=gamma, C=C, offset=-0.02),
        "one-class SVM": OneClassSVM(gamma=gamma, nu=0.1),
    }
    panels = []
    for name, model in ways.items():
        fitted = timed_fit(model, own)
        # Samples on the boundary count as inside, within the tolerance.
        inside, new = (model.decision_function(Z) >= -model.tol for Z in (X, X_new))
        values = _caught(inside, y == 0) | _caught(new, y_new == 0, "new_")
        if isinstance(model, SVDD):
            values["R"] = model.radius_
        yield Row("balls", name, values, **fitted.facts)
        panels.append(
            plane_panel(
                OneClassDisplay.from_estimator,
                model,
                own,
                others=X[y == 1],
                levels=False,
                title=name,
            )
        )
    machine = SVC(kernel="rbf", gamma=gamma)
    fitted = timed_fit(machine, X, y)
    values = _caught(machine.predict(X) == 0, y == 0)
    values |= _caught(machine.predict(X_new) == 0, y_new == 0, "new_")
    yield Row("balls", "two-class SVM", values, **fitted.facts)
    panels.append(
        plane_panel(
            DecisionRegionsDisplay.from_estimator,
            machine,
            X,
            y,
            title="two-class SVM",
        )
    )
    yield Figure(
        "balls",
        "Machines that enclose one class: circles are inside, squares on the boundary, "
        "crosses are outliers, and grey triangles are the other class. The machine of "
        "the last panel is trained on both classes.",
        tuple(panels),
        "balls",
    )


def _caught(inside: NDArray, own: NDArray, prefix: str = "") -> dict[str, float]:
    """Return precision and recall of the enclosed class in per cent."""
    right = float((inside & own).sum())
    return {
        f"{prefix}precision": 100 * right / max(inside.sum(), 1),
        f"{prefix}recall": 100 * right / own.sum(),
    }
