"""``mercer fit``: from data to a model file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from mercer.cli import fit_options as its
from mercer.cli import options
from mercer.cli.failures import UsageFailure, reporting, tell
from mercer.cli.machines import Choices, check_choices
from mercer.cli.printing import check_free, print_json, print_pairs
from mercer.cli.tables import Reading
from mercer.cli.training import Plan, train

__all__ = ["fit"]


@reporting
def fit(
    data: options.DataFile,
    out: its.Out,
    target: options.TargetName = None,
    drop: options.Drop = None,
    format: options.Format = options.FormatChoice.auto,
    header: options.Header = options.HeaderChoice.auto,
    categories: its.Categories = "refuse",
    samples: options.Samples = "X",
    size: options.Size = None,
    colour: options.Colour = options.ColourChoice.auto,
    features: its.Features = "pixels",
    cell_size: its.CellSize = None,
    scale: its.Scale = "none",
    machine: its.Machine = its.MachineChoice.auto,
    kernel: its.KernelText = "rbf",
    c: its.C = None,
    gamma: its.Gamma = None,
    degree: its.Degree = None,
    coef0: its.Coef0 = None,
    nu: its.Nu = None,
    epsilon: its.Epsilon = None,
    multiclass: its.Multiclass = None,
    probability: its.Probability = False,
    class_weight: its.ClassWeight = None,
    normal: its.Normal = None,
    tol: its.Tol = None,
    max_iter: its.MaxIter = None,
    cache_size: its.CacheSize = None,
    n_jobs: its.NJobs = None,
    seed: its.Seed = 0,
    cv: its.Folds = None,
    test_size: its.TestSize = None,
    strict: its.Strict = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a machine to a table or a folder of images, and write a model file."""
    if out == Path("-"):
        raise UsageFailure(
            "--out -: what the fit has to say goes to standard output, and the model "
            "does not. Give the name of a file."
        )
    check_free([out], force, [data])
    parameters = {
        **{"C": c, "gamma": gamma, "degree": degree, "coef0": coef0, "nu": nu},
        **{"epsilon": epsilon, "multiclass": multiclass, "class_weight": class_weight},
        **{"tol": tol, "max_iter": max_iter, "cache_size": cache_size},
        **{"probability": probability or None},
    }
    choices = Choices(
        machine.value, kernel, parameters, scale, features, cell_size, n_jobs, seed
    )
    check_choices(choices)
    how = Reading(
        format.value,
        target,
        drop=tuple(drop or ()),
        header=header.value,
        one_hot=categories == "one-hot",
        samples=samples,
        size=options.parse_size(size),
        colour=colour.value,
    )
    plan = Plan(data, how, choices, out, cv, test_size, normal, strict)
    result = train(plan, quiet, _silent if quiet else tell)
    print_json(result) if as_json else print_pairs(_lines(result))


def _silent(_: object) -> None:
    """Say nothing."""


def _gap(dual_gap: float) -> str:
    if math.isfinite(dual_gap):
        return f"{dual_gap:.2g}"
    return "unknown: the kernel is not positive semi-definite"


def _lines(result: dict[str, Any]) -> dict[str, Any]:
    """Return what people want to read of a result."""
    lines = {
        "machine": f"{result['machine']} ({result['task']}: {result['why']})",
        "kernel": result["kernel"],
        "data": f"{result['samples']} samples, {result['features']} features",
        "classes": result["classes"],
        "support vectors": result["support_vectors"],
        "converged": f"{'yes' if result['converged'] else 'NO'}, KKT gap "
        f"{result['kkt_gap']:.1e}, dual gap {_gap(result['dual_gap'])}",
        "time": f"{result['seconds']:.2f} s",
    }
    if cv := result["cv"]:
        title = f"{cv['folds']}-fold {cv['metric']}"
        lines[title] = f"{cv['mean']:.4f} ± {cv['std']:.4f}"
    if test := result["test"]:
        lines["held-out " + test["metric"]] = (
            f"{test['score']:.4f} on {test['samples']} samples, not used for the fit"
        )
    lines["model"] = result["model"]
    return lines
