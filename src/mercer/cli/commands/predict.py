"""``mercer predict``: labels, values, probabilities and decision values as CSV."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mercer.cli.commands import options
from mercer.cli.commands.options import parse_encoding, parse_size
from mercer.cli.data.sources import check_apart, name_of
from mercer.cli.failures import UsageFailure, reporting
from mercer.cli.printing import check_free, print_json, to_csv
from mercer.runtime.writing import write_file

if TYPE_CHECKING:
    from mercer.cli.data.loaded import LoadedData
    from mercer.cli.models import Model

__all__ = ["predict"]


@reporting
def predict(
    model: options.ModelFile,
    data: options.DataFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="The CSV file to write. Default: standard output (-)."
        ),
    ] = None,
    proba: Annotated[
        bool,
        typer.Option(
            "--proba", metavar="", help="Add a column of probabilities for each class."
        ),
    ] = False,
    decision: Annotated[
        bool,
        typer.Option("--decision", metavar="", help="Add columns of decision values."),
    ] = False,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep",
            metavar="COL",
            help="Column to copy to the output, such as an id; may be repeated. "
            "Default: none.",
        ),
    ] = None,
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
    """Predict with a model file; columns are matched by their names, in any order.

    Columns that the model does not know are ignored.

    For example:

    mercer predict iris.skops new.csv --proba --keep id --out answers.csv

    zcat new.csv.gz | mercer predict iris.skops -
    """
    out = None if out == Path("-") else out
    if out is not None:
        check_free([out], force, [model, data])
    check_apart(model, data)
    encoding, wanted_size = parse_encoding(encoding), parse_size(size)
    from mercer.cli.command_bar import CommandBar
    from mercer.cli.data.loaded import ReadOptions
    from mercer.cli.data.reading import read_data
    from mercer.cli.models import load_model

    found = load_model(model, device)
    if proba and not found.has("predict_proba"):
        raise UsageFailure(
            f"{found.source} has no probabilities. Fit it with --probability, or leave "
            "--proba out."
        )
    if decision and not found.has("decision_function"):
        name = type(found.machine).__name__
        raise UsageFailure(
            f"--decision: {name} has no decision values. Leave --decision out."
        )
    how = ReadOptions(
        format,
        drop=tuple(drop or ()),
        header=header,
        encoding=encoding,
        samples=samples,
        size=wanted_size,
        schema=found.schema,
        keep=tuple(keep or ()),
    )
    with CommandBar(quiet) as bar:
        bar.begin(f"reading {name_of(data)}")
        loaded = read_data(data, how)
        bar.begin(f"predicting {loaded.X.shape[0]} samples")
        columns = _columns(found, loaded, proba, decision)
    text = to_csv(list(columns), zip(*columns.values(), strict=True))
    if out is not None:
        write_file(out, text)
    if as_json:
        summary: dict[str, Any]
        summary = {"model": model, "samples": loaded.X.shape[0], "out": out}
        print_json(summary if out else {**summary, **columns})
    elif out is None:
        typer.echo(text, nl=False)


def _columns(
    model: Model, loaded: LoadedData, proba: bool, decision: bool
) -> dict[str, list[Any]]:
    columns: dict[str, list[Any]] = {}
    if loaded.files is not None:
        columns["file"] = list(loaded.files)
    columns["prediction"] = model.ask("predict", loaded).tolist()
    classes = getattr(model.machine, "classes_", ())
    if proba:
        values = model.ask("predict_proba", loaded)
        for k, name in enumerate(classes):
            columns[f"probability {name}"] = values[:, k].tolist()
    if decision:
        values = model.ask("decision_function", loaded)
        if values.ndim == 1:
            columns["decision"] = values.tolist()
        else:
            names = classes if values.shape[1] == len(classes) else None
            for k in range(values.shape[1]):
                name = k + 1 if names is None else names[k]
                columns[f"decision {name}"] = values[:, k].tolist()
    if loaded.complete is not None:
        columns = {n: _spread(v, loaded.complete) for n, v in columns.items()}
    if both := sorted(loaded.kept.keys() & columns.keys()):
        raise UsageFailure(
            f"--keep {both[0]!r}: the output has a column of this name already. Give "
            "the column of the data another name."
        )
    return {**loaded.kept, **columns}


def _spread(values: list[Any], complete: Any) -> list[Any]:
    """Return values by row of the file, with None for rows that are left out."""
    rest = iter(values)
    return [next(rest) if there else None for there in complete.tolist()]
