"""``mercer export``: a model file for LIBSVM's or LIBLINEAR's own programs."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from mercer.cli.commands import options
from mercer.cli.failures import ModelFailure, UsageFailure, first_line, reporting, tell
from mercer.cli.printing import check_free, print_json, print_pairs
from mercer.runtime.writing import write_file

if TYPE_CHECKING:
    from mercer.cli.models import Model

__all__ = ["export"]

PICKLE = (
    "Mercer writes no pickle: whoever reads one runs the code that it contains. In "
    "Python, mercer.load({name!r}) returns the model without running code, and "
    "mercer.load({name!r}){part}.to_sklearn() is scikit-learn's own machine, which "
    "skops can save."
)


@reporting
def export(
    model: options.ModelFile,
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="FILE", help="The file to write, such as iris.model."
        ),
    ],
    to: Annotated[
        Literal["auto", "libsvm", "liblinear", "sklearn"],
        typer.Option(
            "--to",
            help="The program that reads the file; auto: liblinear for linear-svc and "
            "linear-svr, else libsvm. sklearn is refused, and the message says what "
            "to do.",
        ),
    ] = "auto",
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write a model for svm-predict of LIBSVM, or predict of LIBLINEAR.

    Classes that are text become numbers. If the model scales its columns,
    FILE.range is written too, with which svm-scale -r scales other data.

    For example:

    mercer export iris.skops --out iris.model

    svm-scale -r iris.model.range new.libsvm > new.scaled

    svm-predict new.scaled iris.model answers.txt
    """
    if out == Path("-"):
        raise UsageFailure("--out -: give the name of a file.")
    check_free([out], force, [model])
    from mercer import export_liblinear, export_libsvm
    from mercer.cli.models import load_model
    from mercer.machines.linear.base import LinearMachine

    found = load_model(model)
    if to == "sklearn":
        part = "[-1]" if found.machine is not found.estimator else ""
        raise UsageFailure("--to sklearn: " + PICKLE.format(name=str(model), part=part))
    is_linear = isinstance(found.machine, LinearMachine)
    if to == "auto":
        to = "liblinear" if is_linear else "libsvm"
    scaling = _scaling(found, to)
    ranges = None if scaling is None else out.with_name(out.name + ".range")
    if ranges is not None:
        check_free([ranges], force, [model])
    machine, labels = _numbered(found.machine)
    try:
        (export_liblinear if to == "liblinear" else export_libsvm)(machine, out)
    except ValueError as error:
        raise ModelFailure(f"{found.source}: {first_line(error)}") from error
    if scaling is not None and ranges is not None:
        write_file(ranges, _range_file(*scaling))
    _tell_columns(found, quiet)
    result = {"format": to, "out": out, "range": ranges, "labels": labels}
    if as_json:
        print_json(result)
        return
    lines: dict[str, Any] = {"written": f"{out}, for {to.upper()}"}
    if ranges is not None:
        lines["scaling"] = f"{ranges}, for svm-scale -r"
    if labels is not None:
        lines["classes"] = [f"{number} is {name}" for number, name in labels.items()]
    print_pairs(lines)


def _numbered(machine: Any) -> tuple[Any, dict[int, str] | None]:
    """Return a machine whose classes are whole numbers, and what they stand for."""
    classes = getattr(machine, "classes_", None)
    if classes is None or classes.dtype.kind in "iu":
        return machine, None
    import numpy as np

    machine = copy.copy(machine)
    machine.classes_ = np.arange(len(classes))
    return machine, dict(enumerate(map(str, classes.tolist())))


def _scaling(found: Model, to: str) -> tuple[Any, Any] | None:
    """Return what is subtracted from columns and by what they are divided, or None."""
    steps = [] if found.machine is found.estimator else found.estimator.steps[:-1]
    if not steps:
        return None
    import numpy as np
    from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

    if len(steps) > 1 or not isinstance(
        steps[0][1], StandardScaler | MinMaxScaler | MaxAbsScaler
    ):
        names = ", ".join(type(step).__name__ for _, step in steps)
        raise ModelFailure(
            f"{found.source} computes features ({names}), which {to.upper()} cannot "
            "do. Fit without --features and --missing, or predict with mercer predict."
        )
    scaler = steps[0][1]
    n = int(found.estimator.n_features_in_)
    if isinstance(scaler, MinMaxScaler):
        return -scaler.min_ / scaler.scale_, 1.0 / scaler.scale_
    shift = scaler.mean_ if getattr(scaler, "with_mean", False) else np.zeros(n)
    return shift, scaler.scale_


def _range_file(shift: Any, width: Any) -> str:
    """Return scaling as a file of svm-scale, which maps each range to 0..1."""
    lines = ["x", "0 1"]
    for k, (low, size) in enumerate(zip(shift.tolist(), width.tolist(), strict=True)):
        lines.append(f"{k + 1} {low!r} {low + size!r}")
    return "\n".join(lines) + "\n"


def _tell_columns(found: Model, quiet: bool) -> None:
    if found.schema.named and not quiet:
        names = ", ".join(found.schema.features[:10])
        more = len(found.schema.features) - 10
        end = f" and {more} more" if more > 0 else ""
        tell(f"the file counts columns from 1, in the order {names}{end}.")
