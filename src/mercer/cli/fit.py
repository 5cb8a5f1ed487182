"""``mercer fit``: from data to a model file."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mercer.cli import options
from mercer.cli.failures import reporting, tell
from mercer.cli.machines import Choices, check_choices
from mercer.cli.options import parse_size
from mercer.cli.printing import check_free, print_json, print_pairs
from mercer.cli.tables import Reading
from mercer.cli.training import Plan, train

__all__ = ["fit"]

MODEL, SOLVE, CHECK = "The machine", "How it is solved", "How good it is"


class MachineChoice(StrEnum):
    """The machines, and auto."""

    auto = "auto"
    svc = "svc"
    nusvc = "nusvc"
    svr = "svr"
    nusvr = "nusvr"
    oneclass = "oneclass"
    svdd = "svdd"


def _option(panel: str, text: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=text, metavar=metavar)


@reporting
def fit(
    data: options.DataFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")],
    target: options.TargetName = None,
    drop: options.Drop = None,
    format: options.Format = options.FormatChoice.auto,
    header: options.Header = options.HeaderChoice.auto,
    categories: Annotated[
        Literal["refuse", "one-hot"],
        _option(options.READ, "Text columns: an error, or a 0/1 column per value."),
    ] = "refuse",
    samples: options.Samples = "X",
    size: options.Size = None,
    colour: options.Colour = options.ColourChoice.auto,
    features: Annotated[
        Literal["pixels", "hog"], _option(options.READ, "What images are described by.")
    ] = "pixels",
    cell_size: Annotated[
        int | None, _option(options.READ, "Pixels along a cell of HOG [default: 8].")
    ] = None,
    scale: Annotated[
        Literal["none", "standard", "minmax"],
        _option(options.READ, "How columns are scaled; the model remembers it."),
    ] = "none",
    machine: Annotated[
        MachineChoice, _option(MODEL, "auto: svc for classes, svr for other numbers.")
    ] = MachineChoice.auto,
    kernel: Annotated[
        str, _option(MODEL, "Name or text of the kernel: 'rbf + 0.5 * linear@age'.")
    ] = "rbf",
    c: Annotated[float | None, _option(MODEL, "Price of a violation.", "--C")] = None,
    gamma: Annotated[
        str | None, _option(MODEL, "scale, auto or a number, for a kernel by name.")
    ] = None,
    degree: Annotated[int | None, _option(MODEL, "Of the kernel poly.")] = None,
    coef0: Annotated[float | None, _option(MODEL, "Of poly and sigmoid.")] = None,
    nu: Annotated[float | None, _option(MODEL, "Of nusvc, nusvr, oneclass.")] = None,
    epsilon: Annotated[float | None, _option(MODEL, "Of svr.")] = None,
    multiclass: Annotated[
        Literal["ovo", "ovr", "ecoc"] | None, _option(MODEL, "Several classes.")
    ] = None,
    probability: Annotated[
        bool, _option(MODEL, "Fit probabilities, too.", "--probability")
    ] = False,
    class_weight: Annotated[
        Literal["balanced"] | None, _option(MODEL, "Weigh rare classes more.")
    ] = None,
    normal: Annotated[
        str | None, _option(MODEL, "oneclass, svdd: fit the rows of this class only.")
    ] = None,
    tol: Annotated[float | None, _option(SOLVE, "Largest KKT gap left.")] = None,
    max_iter: Annotated[int | None, _option(SOLVE, "Limit on steps.")] = None,
    cache_size: Annotated[float | None, _option(SOLVE, "MB for kernel values.")] = None,
    n_jobs: Annotated[int | None, _option(SOLVE, "Threads.")] = None,
    seed: Annotated[int, _option(SOLVE, "Of folds and splits.", "--seed")] = 0,
    cv: Annotated[
        int | None, _option(CHECK, "Cross-validate with N folds.", metavar="N")
    ] = None,
    test_size: Annotated[
        float | None, _option(CHECK, "Hold out this share, or number, and score it.")
    ] = None,
    strict: Annotated[
        bool, _option(CHECK, "Write nothing and exit 1 if not converged.", "--strict")
    ] = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a machine to a table or a folder of images, and write a model file."""
    check_free([out], force)
    parameters = {
        **{"C": c, "gamma": gamma, "degree": degree, "coef0": coef0, "nu": nu},
        **{"epsilon": epsilon, "multiclass": multiclass, "tol": tol},
        **{"class_weight": class_weight, "max_iter": max_iter},
        **{"cache_size": cache_size, "probability": probability or None},
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
        size=parse_size(size),
        colour=colour.value,
    )
    plan = Plan(data, how, choices, out, cv, test_size, normal, strict)
    remark = (lambda _: None) if quiet else tell
    result = train(plan, quiet, remark)
    if as_json:
        print_json(result)
    else:
        print_pairs(_lines(result))


def _lines(result: dict) -> dict:
    """Return what people want to read of a result."""
    lines = {
        "machine": f"{result['machine']} ({result['task']}: {result['why']})",
        "kernel": result["kernel"],
        "data": f"{result['samples']} samples, {result['features']} features",
        "classes": result["classes"],
        "support vectors": result["support_vectors"],
        "converged": f"{'yes' if result['converged'] else 'NO'}, KKT gap "
        f"{result['kkt_gap']:.1e}, dual gap {result['dual_gap']:.2g}",
        "time": f"{result['seconds']:.2f} s",
    }
    if cv := result["cv"]:
        lines[f"{cv['folds']}-fold {cv['metric']}"] = (
            f"{cv['mean']:.4f} ± {cv['std']:.4f}"
        )
    if test := result["test"]:
        lines["held-out " + test["metric"]] = (
            f"{test['score']:.4f} on {test['samples']} samples, not used for the fit"
        )
    lines["model"] = result["model"]
    return lines
