"""``mercer fit``: from data to a model file, and the options of this command."""

from __future__ import annotations

import math
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mercer.cli.choices import Choices, check_alone, option_of
from mercer.cli.commands import options
from mercer.cli.commands.options import READ, option
from mercer.cli.data.sources import check_apart
from mercer.cli.failures import UsageFailure, reporting, tell
from mercer.cli.grids import parse_grid, written
from mercer.cli.printing import (
    check_free,
    print_json,
    print_pairs,
    quoted_commas,
    short_numbers,
)
from mercer.runtime.writing import write_file

__all__ = ["fit"]

#: Endings by which people know pickles.
PICKLES = (".pkl", ".pickle", ".joblib")
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
    mkl = "mkl"
    mkl_svr = "mkl-svr"
    online = "online"
    passive = "passive"


Out = Annotated[
    Path,
    typer.Option(
        "--out",
        "-o",
        metavar="MODEL",
        help="The model file to write, such as iris.skops.",
    ),
]
Earlier = Annotated[
    Path | None,
    typer.Option(
        "--from",
        metavar="MODEL",
        help="Go on learning from this model of --machine online or passive, with its "
        "options. Without it, the fit starts anew.",
    ),
]
Categories = Annotated[
    Literal["refuse", "one-hot"],
    option(READ, "Refuse text columns, or make a 0/1 column for each value."),
]
Missing = Annotated[
    Literal["refuse", "mean", "median", "most-frequent", "drop"],
    option(
        READ,
        "Refuse missing values, fill them in from the rows of the fit, or leave their "
        "rows out. The model keeps what it fills in.",
    ),
]
Features = Annotated[
    Literal["pixels", "hog"],
    option(READ, "The features that describe images."),
]
CellSize = Annotated[
    int | None,
    option(READ, "Pixels along a side of a HOG cell. Default: 8."),
]
Scale = Annotated[
    Literal["none", "standard", "minmax"],
    option(
        READ,
        "How columns are scaled: standard to mean 0 and deviation 1, minmax to 0..1. "
        "The model keeps the scaling.",
    ),
]
Machine = Annotated[
    MachineChoice,
    option(
        MODEL,
        "auto: svc for classes, svr for other numbers. linear-svc and linear-svr are "
        "for many rows; they take no kernel. mkl and mkl-svr learn weights of several "
        "kernels. online and passive can go on learning (--from).",
    ),
]
KernelTexts = Annotated[
    list[str] | None,
    option(
        MODEL,
        "Name or text of the kernel, such as 'rbf + 0.5 * linear@age'. For mkl it may "
        "be repeated. Default: rbf; linear, poly and rbf for mkl; none for passive.",
        "--kernel",
        metavar="TEXT",
    ),
]
C = Annotated[
    float | None,
    option(MODEL, "Cost of a margin violation. Default: 1; for svdd none.", "--C"),
]
Gamma = Annotated[
    str | None,
    option(
        MODEL,
        "scale, auto or a number, for kernels given by name. Default: scale.",
        metavar="NUMBER",
    ),
]
Degree = Annotated[int | None, option(MODEL, "Degree of the kernel poly. Default: 3.")]
Coef0 = Annotated[
    float | None,
    option(MODEL, "Constant of the kernels poly and sigmoid. Default: 0."),
]
Nu = Annotated[
    float | None,
    option(
        MODEL,
        "For nusvc, nusvr and oneclass: at least the share of errors or outliers. "
        "Default: 0.5.",
    ),
]
Epsilon = Annotated[
    float | None,
    option(
        MODEL,
        "Half the width of the tube of svr, linear-svr and mkl-svr. Default: 0.1; "
        "0 for linear-svr.",
    ),
]
ScaleTarget = Annotated[
    bool,
    option(
        MODEL,
        "For regression: take --C and --epsilon in units of the target's standard "
        "deviation.",
        "--scale-target",
        metavar="",
    ),
]
Multiclass = Annotated[
    Literal["ovo", "ovr", "ecoc"] | None,
    option(
        MODEL,
        "For several classes: pairs, one against the rest, or codes. Default: ovo; "
        "ovr for mkl, online and passive.",
    ),
]
Probability = Annotated[
    bool, option(MODEL, "Fit probabilities, too.", "--probability", metavar="")
]
ClassWeight = Annotated[
    Literal["balanced"] | None,
    option(MODEL, "Give rare classes more weight. Default: equal weights."),
]
Normal = Annotated[
    str | None,
    option(
        MODEL,
        "For oneclass and svdd: fit only the rows of this class. Default: all rows.",
        metavar="CLASS",
    ),
]
Norm = Annotated[
    float | None,
    option(
        MODEL,
        "For mkl and mkl-svr: the norm p of the weights; 1 leaves few kernels. "
        "Default: 2.",
        metavar="P",
    ),
]
Budget = Annotated[
    int | None,
    option(
        MODEL,
        "For online and passive: the most rows to hold. Default: no limit for passive, "
        "and what --cache-size allows for online.",
        metavar="N",
    ),
]
Tol = Annotated[
    float | None,
    option(
        SOLVE,
        "How exact a solution must be: the largest KKT gap or, for mkl and linear "
        "machines, gap relative to the objective. Default: 0.001; 0.0001 for linear "
        "machines.",
    ),
]
MaxIter = Annotated[
    int | None,
    option(
        SOLVE,
        "Largest number of steps. Default: 10 million or more; 1000 rounds for mkl, "
        "linear machines and passive.",
    ),
]
CacheSize = Annotated[
    float | None,
    option(
        SOLVE,
        "Megabytes of memory for kernel values. Default: up to a quarter of the free "
        "memory.",
    ),
]
NJobs = Annotated[
    int | None,
    option(SOLVE, "Number of threads; -1 for all cores. Default: what BLAS may use."),
]
Seed = Annotated[
    int,
    typer.Option(
        "--seed",
        min=0,
        rich_help_panel=SOLVE,
        help="Seed of folds, splits and all other random choices.",
    ),
]
Search = Annotated[
    str | None,
    option(
        CHECK,
        "Cross-validate all combinations and fit the best: names, or names with "
        "ranges, as in C,gamma or C=0.1:100,gamma=2^-9:2^3:4. LOW:HIGH goes in powers "
        "of ten, LOW:HIGH:STEP by that factor. Usual ranges: C=0.01:10000, "
        "gamma=0.0001:10, epsilon=0.001:1, nu=0.1:0.9:0.2, degree=2:5, coef0=0:2.",
        metavar="GRID",
    ),
]
Figure = Annotated[
    Path | None,
    option(
        CHECK,
        "Draw the scores of --search into this file, such as grid.png or grid.svg.",
        metavar="FILE",
    ),
]
Folds = Annotated[
    int | None,
    option(
        CHECK,
        "Cross-validate with N folds. Default: no folds; 5 with --search.",
        metavar="N",
    ),
]
TestSize = Annotated[
    float | None,
    option(
        CHECK,
        "Hold out this share, or number, of samples and score them. Default: none.",
    ),
]
Strict = Annotated[
    bool,
    option(
        CHECK,
        "Write nothing, and exit with code 1, if the fit does not converge.",
        "--strict",
        metavar="",
    ),
]


@reporting
def fit(
    data: options.DataFile,
    out: Out,
    earlier: Earlier = None,
    target: options.TargetName = None,
    drop: options.Drop = None,
    format: options.Format = "auto",
    header: options.Header = "auto",
    encoding: options.Encoding = "utf-8",
    categories: Categories = "refuse",
    missing: Missing = "refuse",
    samples: options.Samples = "X",
    size: options.Size = None,
    colour: options.Colour = "auto",
    features: Features = "pixels",
    cell_size: CellSize = None,
    scale: Scale = "none",
    machine: Machine = MachineChoice.auto,
    kernels: KernelTexts = None,
    c: C = None,
    gamma: Gamma = None,
    degree: Degree = None,
    coef0: Coef0 = None,
    nu: Nu = None,
    epsilon: Epsilon = None,
    scale_target: ScaleTarget = False,
    multiclass: Multiclass = None,
    probability: Probability = False,
    class_weight: ClassWeight = None,
    normal: Normal = None,
    norm: Norm = None,
    budget: Budget = None,
    tol: Tol = None,
    max_iter: MaxIter = None,
    cache_size: CacheSize = None,
    n_jobs: NJobs = None,
    device: options.Device = None,
    seed: Seed = 0,
    search: Search = None,
    figure: Figure = None,
    cv: Folds = None,
    test_size: TestSize = None,
    strict: Strict = False,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Fit a machine to a table or a folder of images, and write a model file.

    For example:

    mercer fit iris.csv --target species --scale standard --out iris.skops

    mercer fit iris.csv --target species --search C,gamma --out iris.skops

    mercer fit photos/ --features hog --size 64x64 --cv 5 --out photos.skops

    mercer fit today.csv --from yesterday.skops --out today.skops
    """
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
        **{"probability": probability or None, "p": norm, "budget": budget},
        "device": device,
    }
    grid = None if search is None else parse_grid(search)
    if figure is not None:
        from mercer.cli.searched import check_figure

        check_figure(figure, grid)
        check_free([figure], force, [data, out])
    choices = Choices(
        machine.value,
        tuple(text.strip() for text in kernels or ()),
        parameters,
        scale,
        features,
        cell_size,
        n_jobs,
        seed,
        tuple(grid or ()),
        missing,
        scale_target,
    )
    check_alone(choices)
    if earlier is not None:
        _check_earlier(choices, cv, test_size, normal)
        check_apart(earlier, data)
    encoding, wanted_size = options.parse_encoding(encoding), options.parse_size(size)
    from mercer.cli.data.loaded import ReadOptions
    from mercer.cli.pipelines import check_choices
    from mercer.cli.training import FitRequest, train

    check_choices(choices)
    how = ReadOptions(
        format,
        target,
        drop=tuple(drop or ()),
        header=header,
        encoding=encoding,
        one_hot=categories == "one-hot",
        samples=samples,
        size=wanted_size,
        colour=colour,
        missing=missing,
    )
    request = FitRequest(
        data, how, choices, out, cv, test_size, normal, strict, grid, earlier
    )
    result = train(request, quiet, _silent if quiet else tell)
    if out.suffix.lower() in PICKLES and not quiet:
        tell(f"{out} is not a pickle, but a file for mercer.load and skops.")
    found = result["search"]
    if figure is not None:
        from mercer.cli.searched import search_figure

        write_file(figure, search_figure(found, figure.suffix[1:]))
    if as_json:
        print_json(result)
        return
    print_pairs(_lines(result))
    if found is not None:
        from mercer.cli.searched import search_table

        typer.echo("\n" + search_table(found))


def _check_earlier(
    choices: Choices, cv: int | None, test_size: float | None, normal: str | None
) -> None:
    """Refuse options that an earlier model has settled."""
    given = {
        "--machine": choices.machine != "auto",
        "--kernel": choices.kernels,
        "--scale": choices.scale != "none",
        "--scale-target": choices.scale_target,
        "--missing": choices.missing != "refuse",
        "--features": choices.features != "pixels",
        "--search": choices.searched,
        "--cv": cv is not None,
        "--test-size": test_size is not None,
        "--normal": normal is not None,
    }
    for name, value in choices.parameters.items():
        given[option_of(name)] = value is not None
    for name, is_given in given.items():
        if is_given:
            raise UsageFailure(
                f"{name} cannot be given with --from: the model keeps the options "
                "of its first fit. Leave it out, or fit anew without --from."
            )


def _silent(_: object) -> None:
    """Say nothing."""


def _gap(dual_gap: float) -> str:
    if math.isfinite(dual_gap):
        return f"{dual_gap:.2g}"
    return "unknown: the kernel is not positive semi-definite"


def _certificate(result: dict[str, Any]) -> str | None:
    """Say whether a fit has converged, and how it is known."""
    if result["converged"] is None:
        return None
    answer = "yes" if result["converged"] else "NO"
    if result["kkt_gap"] is not None:  # linear machines have the dual gap only
        answer += f", KKT gap {result['kkt_gap']:.1e}"
    return f"{answer}, dual gap {_gap(result['dual_gap'])}"


def _lines(result: dict[str, Any]) -> dict[str, Any]:
    """Return the lines of a result that people want to read."""
    kernels = result["kernels"]
    lines = {
        "machine": f"{result['machine']} ({result['task']}: {result['why']})",
        "kernel": None if kernels else short_numbers(result["kernel"] or "") or None,
        "kernels": kernels and [short_numbers(f"{w:.3f} {k}") for k, w in kernels],
        "data": f"{result['samples']} samples, {result['features']} features",
        "classes": quoted_commas(result["classes"]),
        "support vectors": result["support_vectors"],
        "converged": _certificate(result),
        "time": f"{result['seconds']:.2f} s",
    }
    if "mistakes" in result:
        share = result["mistakes"] / max(result["samples"], 1)
        lines["mistakes"] = (
            f"{result['mistakes']} of {result['samples']} new rows ({share:.1%}) "
            "before they were learnt"
        )
        lines["rows so far"] = result["seen"]
    if found := result["search"]:
        best = ", ".join(f"{name}={written(v)}" for name, v in found["best"].items())
        lines["search"] = f"{best} is the best of {len(found['candidates'])}"
    if cv := result["cv"]:
        title = f"{cv['folds']}-fold {cv['metric']}"
        lines[title] = f"{cv['mean']:.4f} ± {cv['std']:.4f}"
    if test := result["test"]:
        lines["held-out " + test["metric"]] = (
            f"{test['score']:.4f} on {test['samples']} samples, not used for the fit"
        )
    lines["model"] = result["model"]
    return lines
