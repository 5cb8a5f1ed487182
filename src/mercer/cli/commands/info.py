"""``mercer info``: what a model file holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mercer.cli.commands import options
from mercer.cli.failures import reporting
from mercer.cli.printing import (
    print_json,
    print_pairs,
    quoted_commas,
    short_numbers,
)

if TYPE_CHECKING:
    from mercer.cli.models import Model

__all__ = ["info"]


@reporting
def info(model: options.ModelFile, as_json: options.AsJson = False) -> None:
    """Show what a model file holds: machine, parameters, kernel, columns, versions.

    For example:

    mercer info iris.skops
    """
    from mercer.cli.models import load_model

    found = load_model(model)
    facts = _facts(found)
    if as_json:
        print_json(facts)
    else:
        print_pairs(_lines(facts))


def _facts(model: Model) -> dict[str, Any]:
    from mercer.cli.models import describe_machine

    machine = model.machine
    parameters = {
        name: value if isinstance(value, int | float | str | None) else repr(value)
        for name, value in machine.get_params(deep=False).items()
    }
    default = type(machine)().get_params(deep=False)
    schema, image = model.schema, model.schema.image
    versions = {k: v for k, v in model.header.items() if k not in ("notes", "format")}
    return {
        "file": model.source,
        "format": model.header["format"],
        "created": model.notes.get("created"),
        "versions": versions,
        "task": model.task,
        **describe_machine(model.estimator),
        "parameters": parameters,
        "changed": {k: v for k, v in parameters.items() if v != default[k]},
        "steps": [type(step).__name__ for _, step in _steps(model.estimator)],
        "samples": model.notes.get("samples"),
        "features": list(schema.features) or schema.n_columns,
        "named": schema.named,
        "target": schema.target,
        "categories": schema.categories,
        "normal": model.normal,
        "image": vars(image) if image else None,
        "scale": model.notes.get("scale"),
        "missing": schema.missing,
        "cv": model.notes.get("cv"),
        "test": model.notes.get("test"),
    }


def _steps(estimator: Any) -> list[tuple[str, Any]]:
    return getattr(estimator, "steps", None) or [("machine", estimator)]


def _lines(facts: dict[str, Any]) -> dict[str, Any]:
    """Return the lines that people want to read."""
    features, image = facts["features"], facts["image"]
    if isinstance(features, int) or not facts["named"]:
        count = features if isinstance(features, int) else len(features)
        features = f"{count}, without names"
    weights = facts["kernels"]
    lines = {
        "machine": f"{facts['machine']} ({facts['task']})",
        "kernel": short_numbers(facts["kernel"] or "") or None,
        "weights": weights and [short_numbers(f"{w:.3f} {k}") for k, w in weights],
        "parameters": [f"{k}={v}" for k, v in facts["changed"].items()] or "defaults",
        "steps": facts["steps"],
        "features": features,
        "missing values": None if facts["missing"] == "refuse" else facts["missing"],
        "target": facts["target"],
        "classes": quoted_commas(facts["classes"]),
        "support vectors": facts["support_vectors"],
        "rows so far": facts["seen"],
        "converged": facts["converged"],
        "KKT gap": facts["kkt_gap"],
        "dual gap": facts["dual_gap"],
        "samples": facts["samples"],
        "created": facts["created"],
        "written by": [f"{k} {v}" for k, v in facts["versions"].items()],
    }
    for column, values in facts["categories"].items():
        lines[f"values of {column}"] = values
    if image:
        lines["images"] = f"{image['width']}x{image['height']}, {image['colour']}"
    for check in ("cv", "test"):
        if found := facts[check]:
            value = found.get("mean", found.get("score"))
            lines[f"{check} {found['metric']}"] = value
    return lines
