"""``mercer evaluate``: how good a model is on data with known answers."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Literal

import typer

from mercer.cli.commands import options
from mercer.cli.commands.options import parse_encoding, parse_size
from mercer.cli.data.sources import check_apart, name_of
from mercer.cli.failures import PoorAnswer, UsageFailure, reporting, tell
from mercer.cli.printing import check_free, print_json
from mercer.runtime.writing import write_file

__all__ = ["evaluate"]

#: The file of a report that is always written.
REPORT = "report.json"


@reporting
def evaluate(
    model: options.ModelFile,
    data: options.DataFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help="A folder for the report, the confusion matrix and the ROC curves. "
            "Default: the report is printed only.",
        ),
    ] = None,
    plots: Annotated[
        Literal["png", "svg", "none"],
        typer.Option("--plots", help="Format of the figures in --out."),
    ] = "png",
    at_least: Annotated[
        float | None,
        typer.Option(
            "--at-least",
            help="Exit with code 1 if accuracy, or R2, is lower. Default: never.",
        ),
    ] = None,
    target: options.TargetName = None,
    drop: options.Drop = None,
    format: options.Format = "auto",
    header: options.Header = "auto",
    encoding: options.Encoding = "utf-8",
    samples: options.Samples = "X",
    size: options.Size = None,
    device: options.Device = None,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Compare the predictions of a model with the known answers.

    For example:

    mercer evaluate iris.skops test.csv --out report --at-least 0.9
    """
    if at_least is not None:
        _check_least(at_least)
    if out is not None:
        _check_folder(out, [REPORT], force)
    check_apart(model, data)
    encoding, wanted_size = parse_encoding(encoding), parse_size(size)
    from mercer.cli.command_bar import CommandBar
    from mercer.cli.data.loaded import ReadOptions
    from mercer.cli.data.reading import read_data
    from mercer.cli.models import load_model
    from mercer.cli.report_files import report_files
    from mercer.cli.scores import judge, to_text

    found = load_model(model, device)
    how = ReadOptions(
        format,
        target,
        needs_target=True,
        drop=tuple(drop or ()),
        header=header,
        encoding=encoding,
        samples=samples,
        size=wanted_size,
        schema=found.schema,
    )
    with CommandBar(quiet) as bar:
        bar.begin(f"reading {name_of(data)}")
        loaded = read_data(data, how)
        bar.begin(f"predicting {loaded.X.shape[0]} samples")
        verdict = judge(found, loaded)
        if out is not None:
            bar.begin("drawing")
            files = report_files(verdict, plots)
            _check_folder(out, files, force)
            for name, content in files.items():
                write_file(out / name, content, makes_folder=True)
    if verdict.unknown and not quiet:
        names = ", ".join(map(repr, verdict.unknown))
        what = "has classes that the model does not know"
        tell(f"warning: {loaded.source} {what}: {names}.")
    if as_json:
        print_json(verdict.report)
    else:
        typer.echo(to_text(verdict.report))
    name, value = verdict.headline
    if at_least is not None and not value >= at_least:
        raise PoorAnswer(f"{name} {value:.4f} is below --at-least {at_least:g}.")


def _check_least(at_least: float) -> None:
    if math.isnan(at_least):
        raise UsageFailure("--at-least must be a number; got nan.")
    if at_least > 1:
        raise UsageFailure(
            f"--at-least {at_least:g} cannot be reached: accuracy and R2 are at most "
            "1. Give a number such as 0.9."
        )


def _check_folder(folder: Path, names: Iterable[str], force: bool) -> None:
    if folder.exists() and not folder.is_dir():
        raise UsageFailure(f"--out {folder} is a file. Give a folder.")
    if folder.is_dir():
        check_free([folder / name for name in names], force)
    else:
        check_free([folder], force)
