"""Arguments and options that several commands take."""

from __future__ import annotations

import codecs
import re
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from mercer.cli.failures import UsageFailure

__all__ = [
    "AsJson",
    "Colour",
    "DataFile",
    "Drop",
    "Encoding",
    "Force",
    "Format",
    "Header",
    "ModelFile",
    "Quiet",
    "Samples",
    "Size",
    "TargetName",
    "option",
    "parse_encoding",
    "parse_size",
]


READ = "How the data are read"


def option(panel: str, text: str, *names: str, metavar: str | None = None) -> Any:
    """Return an option of a panel of the help; the parameter names it by default."""
    return typer.Option(*names, rich_help_panel=panel, help=text, metavar=metavar)


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
    option(
        READ,
        "Column to learn, by name or by number from 1; in npz files an array. "
        "Default: labels of LIBSVM files, y of npz files, names of folders.",
        metavar="COL",
    ),
]
Drop = Annotated[
    list[str] | None,
    option(READ, "Column to leave out; may be repeated. Default: none.", metavar="COL"),
]
Format = Annotated[
    Literal["auto", "csv", "parquet", "npz", "libsvm", "images"],
    option(READ, "Format of the data; auto finds it out."),
]
Header = Annotated[
    Literal["auto", "yes", "no"],
    option(
        READ, "Whether a CSV begins with names; auto: if its first line has no number."
    ),
]
Encoding = Annotated[
    str,
    option(READ, "Encoding of a CSV, such as cp1252 or utf-16.", metavar="NAME"),
]
Samples = Annotated[
    str,
    option(READ, "Array of an npz file that has the samples.", metavar="NAME"),
]
Size = Annotated[
    str | None,
    option(
        READ,
        "Resize images to this size. Default: all sizes must agree.",
        metavar="WxH",
    ),
]
Colour = Annotated[
    Literal["auto", "grey", "rgb"],
    option(READ, "Read images in grey or colour; auto: in grey if all are grey."),
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


def parse_encoding(name: str) -> str:
    """Return the usual name of an encoding of text."""
    try:
        return codecs.lookup(name).name
    except LookupError:
        raise UsageFailure(
            f"--encoding {name!r} is not an encoding that Python knows. Give one such "
            "as utf-8, cp1252, latin-1 or utf-16."
        ) from None


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
