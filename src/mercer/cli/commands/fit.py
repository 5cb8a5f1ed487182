"""``mercer fit``: from data to a model file, and the options of this command."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mercer.cli.commands import options
from mercer.cli.data.loaded import ReadOptions
from mercer.cli.failures import UsageFailure, reporting, tell
from mercer.cli.pipelines import DEFAULT_KERNEL, Choices, check_choices
from mercer.cli.printing import check_free, print_json, print_pairs
from mercer.cli.training import FitRequest, train

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
    linear_svc = "linear-svc"
    linear_svr = "linear-svr"


def _option(panel: str, text: str, *names: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, rich_help_panel=panel, help=text, metavar=metavar)


Out = Annotated[Path, typer.Option("--out", "-o", help="The model file to write.")]
Categories = Annotated[
    Literal["refuse", "one-hot"],
    _option(options.READ, "Refuse text columns, or make a 0/1 column for each value."),
]
Features = Annotated[
    Literal["pixels", "hog"],
    _option(options.READ, "The features that describe images."),
]
CellSize = Annotated[
    int | None,
    _option(options.READ, "Pixels along a side of a HOG cell; 8 by default."),
]
Scale = Annotated[
    Literal["none", "standard", "minmax"],
    _option(options.READ, "How columns are scaled; the model keeps the scaling."),
]
Machine = Annotated[
    MachineChoice,
    _option(
        MODEL,
        "auto: svc for classes, svr for other numbers. linear-svc and linear-svr are "
        "for many rows; they take no kernel.",
    ),
]
KernelText = Annotated[
    str, _option(MODEL, "Name or text of the kernel, such as 'rbf + 0.5 * linear@age'.")
]
C = Annotated[float | None, _option(MODEL, "Cost of a margin violation.", "--C")]
Gamma = Annotated[
    str | None, _option(MODEL, "scale, auto or a number, for a kernel given by name.")
]
Degree = Annotated[int | None, _option(MODEL, "Degree of the kernel poly.")]
Coef0 = Annotated[
    float | None, _option(MODEL, "Constant of the kernels poly and sigmoid.")
]
Nu = Annotated[float | None, _option(MODEL, "Parameter of nusvc, nusvr and oneclass.")]
Epsilon = Annotated[float | None, _option(MODEL, "Half the width of the tube of svr.")]
Multiclass = Annotated[
    Literal["ovo", "ovr", "ecoc"] | None,
    _option(MODEL, "For several classes: pairs, one against the rest, or codes."),
]
Probability = Annotated[
    bool, _option(MODEL, "Fit probabilities, too.", "--probability")
]
ClassWeight = Annotated[
    Literal["balanced"] | None, _option(MODEL, "Give rare classes more weight.")
]
Normal = Annotated[
    str | None,
    _option(MODEL, "For oneclass and svdd: fit only the rows of this class."),
]
Tol = Annotated[float | None, _option(SOLVE, "Largest KKT gap of a solution.")]
MaxIter = Annotated[int | None, _option(SOLVE, "Largest number of steps.")]
CacheSize = Annotated[
    float | None, _option(SOLVE, "Megabytes of memory for kernel values.")
]
NJobs = Annotated[int | None, _option(SOLVE, "Number of threads.")]
Seed = Annotated[
    int,
    typer.Option(
        "--seed", min=0, rich_help_panel=SOLVE, help="Seed of folds and splits."
    ),
]
Folds = Annotated[
    int | None, _option(CHECK, "Cross-validate with N folds.", metavar="N")
]
TestSize = Annotated[
    float | None,
    _option(CHECK, "Hold out this share, or number, of samples and score them."),
]
Strict = Annotated[
    bool,
    _option(
        CHECK, "Write nothing, and exit with code 1, if not converged.", "--strict"
    ),
]


@reporting
def fit(
    data: options.DataFile,
    out: Out,
    target: options.TargetName = None,
    drop: options.Drop = None,
    format: options.Format = options.FormatChoice.auto,
    header: options.Header = options.HeaderChoice.auto,
    categories: Categories = "refuse",
    samples: options.Samples = "X",
    size: options.Size = None,
    colour: options.Colour = options.ColourChoice.auto,
    features: Features = "pixels",
    cell_size: CellSize = None,
    scale: Scale = "none",
    machine: Machine = MachineChoice.auto,
    kernel: KernelText = DEFAULT_KERNEL,
    c: C = None,
    gamma: Gamma = None,
    degree: Degree = None,
    coef0: Coef0 = None,
    nu: Nu = None,
    epsilon: Epsilon = None,
    multiclass: Multiclass = None,
    probability: Probability = False,
    class_weight: ClassWeight = None,
    normal: Normal = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    cache_size: CacheSize = None,
    n_jobs: NJobs = None,
    device: options.Device = None,
    seed: Seed = 0,
    cv: Folds = None,
    test_size: TestSize = None,
    strict: Strict = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a machine to a table or a folder of images, and write a model file."""
    if out == Path("-"):
        raise UsageFailure(
            "--out -: the model cannot go to standard output, where the results of the "
            "fit are printed. Give the name of a file."
        )
    check_free([out], force, [data])
    parameters = {
        **{"C": c, "gamma": gamma, "degree": degree, "coef0": coef0, "nu": nu},
        **{"epsilon": epsilon, "multiclass": multiclass, "class_weight": class_weight},
        **{"tol": tol, "max_iter": max_iter, "cache_size": cache_size},
        **{"probability": probability or None, "device": device},
    }
    choices = Choices(
        machine.value, kernel, parameters, scale, features, cell_size, n_jobs, seed
    )
    check_choices(choices)
    how = ReadOptions(
        format.value,
        target,
        drop=tuple(drop or ()),
        header=header.value,
        one_hot=categories == "one-hot",
        samples=samples,
        size=options.parse_size(size),
        colour=colour.value,
    )
    request = FitRequest(data, how, choices, out, cv, test_size, normal, strict)
    result = train(request, quiet, _silent if quiet else tell)
    print_json(result) if as_json else print_pairs(_lines(result))


def _silent(_: object) -> None:
    """Say nothing."""


def _gap(dual_gap: float) -> str:
    if math.isfinite(dual_gap):
        return f"{dual_gap:.2g}"
    return "unknown: the kernel is not positive semi-definite"


def _certificate(result: dict[str, Any]) -> str:
    """Say whether a fit has converged, and how it is known."""
    answer = "yes" if result["converged"] else "NO"
    if result["kkt_gap"] is not None:  # linear machines have the dual gap only
        answer += f", KKT gap {result['kkt_gap']:.1e}"
    return f"{answer}, dual gap {_gap(result['dual_gap'])}"


def _lines(result: dict[str, Any]) -> dict[str, Any]:
    """Return the lines of a result that people want to read."""
    lines = {
        "machine": f"{result['machine']} ({result['task']}: {result['why']})",
        "kernel": result["kernel"],
        "data": f"{result['samples']} samples, {result['features']} features",
        "classes": result["classes"],
        "support vectors": result["support_vectors"],
        "converged": _certificate(result),
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
