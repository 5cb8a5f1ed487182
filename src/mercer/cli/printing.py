"""What commands print: lines, JSON and CSV; and whether a file may be written."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import typer

from mercer.cli.failures import UsageFailure
from mercer.runtime.plain import as_plain

__all__ = [
    "check_folder",
    "check_free",
    "print_json",
    "print_pairs",
    "quoted_commas",
    "rounded",
    "short_numbers",
    "to_csv",
    "to_json",
]


def check_free(paths: Iterable[Path], force: bool, inputs: Sequence[Path] = ()) -> None:
    """Refuse, before any work, to write over a file or where no file can be written."""
    for path in paths:
        if path.resolve() in [source.resolve() for source in inputs]:
            raise UsageFailure(
                f"--out {path} would overwrite what is read. Give another name."
            )
        if path.is_dir():
            raise UsageFailure(f"{path} is a folder. Give the name of a file.")
        if path.exists() and not path.is_file():
            continue  # a pipe or a device has no content to lose
        if path.exists() and not force:
            raise UsageFailure(f"{path} exists. Overwrite it with --force.")
        if not path.parent.exists():
            raise UsageFailure(f"the folder {path.parent} does not exist. Create it.")
        check_folder(path.parent)


def check_folder(folder: Path) -> None:
    """Refuse a folder in which no file can be made."""
    if not folder.is_dir():
        raise UsageFailure(f"{folder} is a file. Give a folder.")
    if not os.access(folder, os.W_OK | os.X_OK):
        raise UsageFailure(
            f"the folder {folder} may not be written to. Give another folder."
        )


def to_json(value: Any) -> str:
    """Return a value as JSON."""
    return json.dumps(as_plain(value), indent=2, ensure_ascii=False, allow_nan=False)


def print_json(value: Any) -> None:
    """Print JSON, and nothing else."""
    typer.echo(to_json(value))


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table as text, with commas between the values."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return out.getvalue()


def short_numbers(text: str) -> str:
    """Return a text, such as that of a kernel, whose fractions have six digits.

    A width that is computed from data, such as 0.10000000000000053, is then 0.1.
    """
    return re.sub(r"\d+\.\d+(e[-+]?\d+)?", lambda m: f"{float(m[0]):.6g}", text)


def rounded(value: float) -> str:
    """Return a number with three digits, as people write it: 17,300 or 0.0125."""
    short = float(f"{value:.3g}")
    return f"{short:,.0f}" if 1000 <= abs(short) < 1e7 else f"{short:g}"


def quoted_commas(names: Sequence[Any] | None) -> list[str] | None:
    """Return names as texts for a list: those with commas in quotes."""
    if names is None:
        return None
    return [repr(n) if isinstance(n, str) and "," in n else str(n) for n in names]


def print_pairs(pairs: Mapping[str, Any]) -> None:
    """Print names and values in two columns."""
    width = max(map(len, pairs))
    for name, value in pairs.items():
        if value is not None:
            typer.echo(f"{typer.style(f'{name:<{width}}', bold=True)}  {_shown(value)}")


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(_shown, value[:20])) + (
            f" and {len(value) - 20} more" if len(value) > 20 else ""
        )
    return str(value)
