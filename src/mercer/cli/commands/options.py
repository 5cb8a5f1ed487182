"""Arguments and options that several commands take."""

from __future__ import annotations

import re
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from mercer.cli.failures import UsageFailure

__all__ = [
    "AsJson",
    "Colour",
    "ColourChoice",
    "DataFile",
    "Drop",
    "Force",
    "Format",
    "FormatChoice",
    "Header",
    "HeaderChoice",
    "ModelFile",
    "Quiet",
    "Samples",
    "Size",
    "TargetName",
    "parse_size",
]


class FormatChoice(StrEnum):
    """Formats of data."""

    auto = "auto"
    csv = "csv"
    parquet = "parquet"
    npz = "npz"
    libsvm = "libsvm"
    images = "images"


class HeaderChoice(StrEnum):
    """Whether a table begins with names."""

    auto = "auto"
    yes = "yes"
    no = "no"


class ColourChoice(StrEnum):
    """Whether images are read in colour."""

    auto = "auto"
    grey = "grey"
    rgb = "rgb"


READ = "How the data are read"

DataFile = Annotated[
    Path,
    typer.Argument(
        metavar="DATA",
        help="A CSV, Parquet, npz or LIBSVM file, a folder of images, or - for "
        "standard input.",
    ),
]
ModelFile = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A file of mercer fit or mercer.save, or - for standard input.",
    ),
]
TargetName = Annotated[
    str | None,
    typer.Option(
        "--target",
        metavar="COL",
        rich_help_panel=READ,
        help="Column to learn, by name or by number from 1; in npz files an array. "
        "Default: labels of LIBSVM files, y of npz files, names of folders.",
    ),
]
Drop = Annotated[
    list[str] | None,
    typer.Option(
        "--drop",
        metavar="COL",
        rich_help_panel=READ,
        help="Column to leave out; may be repeated. Default: none.",
    ),
]
Format = Annotated[
    FormatChoice,
    typer.Option(
        "--format", rich_help_panel=READ, help="Format of the data; auto finds it out."
    ),
]
Header = Annotated[
    HeaderChoice,
    typer.Option(
        "--header",
        rich_help_panel=READ,
        help="Whether a CSV begins with names; auto: if its first line has no number.",
    ),
]
Samples = Annotated[
    str,
    typer.Option(
        "--samples",
        metavar="NAME",
        rich_help_panel=READ,
        help="Array of an npz file that has the samples.",
    ),
]
Size = Annotated[
    str | None,
    typer.Option(
        "--size",
        metavar="WxH",
        rich_help_panel=READ,
        help="Resize images to this size. Default: all sizes must agree.",
    ),
]
Colour = Annotated[
    ColourChoice,
    typer.Option(
        "--colour",
        rich_help_panel=READ,
        help="Read images in grey or colour; auto: in grey if all are grey.",
    ),
]
Device = Annotated[
    str | None,
    typer.Option(
        "--device",
        help="Where to compute: cpu, or a graphics card, cuda or cuda:N. Default: cpu.",
    ),
]
Force = Annotated[
    bool, typer.Option("--force", metavar="", help="Overwrite existing files.")
]
AsJson = Annotated[
    bool,
    typer.Option("--json", metavar="", help="Print JSON, and nothing else, on stdout."),
]
Quiet = Annotated[
    bool,
    typer.Option(
        "--quiet", "-q", metavar="", help="Show no progress bar and no remarks."
    ),
]


def parse_size(text: str | None) -> tuple[int, int] | None:
    """Return width and height."""
    if text is None:
        return None
    found = re.fullmatch(r"\s*(\d{1,5})\s*[xX×]\s*(\d{1,5})\s*", text)
    if not found or "0" in (found[1].strip("0") or "0", found[2].strip("0") or "0"):
        raise UsageFailure(
            f"--size must have the form WxH, such as 28x28; got {text!r}."
        )
    return int(found[1]), int(found[2])
