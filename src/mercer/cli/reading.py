"""One way to read data: the format is found from the name or the first line."""

from __future__ import annotations

from pathlib import Path

from mercer.cli.csv_files import read_csv
from mercer.cli.failures import DataFailure, UsageFailure
from mercer.cli.image_folders import read_images
from mercer.cli.libsvm_files import looks_like_libsvm, read_libsvm
from mercer.cli.npz_files import read_npz
from mercer.cli.parquet_files import read_parquet
from mercer.cli.tables import Reading, Schema, Table

__all__ = ["FORMATS", "read_table"]

FORMATS = {
    "csv": read_csv,
    "parquet": read_parquet,
    "npz": read_npz,
    "libsvm": read_libsvm,
    "images": read_images,
}
ENDINGS = {
    ".csv": "csv",
    ".tsv": "csv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".npz": "npz",
    ".libsvm": "libsvm",
    ".svm": "libsvm",
    ".svmlight": "libsvm",
}


def read_table(path: Path, how: Reading) -> Table:
    """Read data, for a new model or, with ``how.schema``, for a given one."""
    try:
        if not path.exists():
            raise DataFailure(f"{path} does not exist.")
        kind = _format(path) if how.format == "auto" else how.format
        if path.is_dir() != (kind == "images"):
            what = "a folder" if path.is_dir() else "a file"
            raise DataFailure(f"{path} is {what}: not what --format {kind} reads.")
        if path.is_file() and not path.stat().st_size:
            raise DataFailure(f"{path} is empty.")
        _check_kind(path, kind, how.schema)
        _check_options(path, kind, how)
        return FORMATS[kind](path, how)
    except OSError as error:
        why = error.strerror or error
        raise DataFailure(f"{error.filename or path} cannot be read: {why}.") from error


def _format(path: Path) -> str:
    if path.is_dir():
        return "images"
    stem = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    if found := ENDINGS.get(stem.suffix.lower()):
        return found
    if path.suffix == ".bz2":
        return "libsvm"
    try:
        return "libsvm" if looks_like_libsvm(path) else "csv"
    except UnicodeDecodeError as error:
        raise DataFailure(
            f"{path} is not text, and its name says no format. Say it: --format with "
            f"one of {', '.join(FORMATS)}."
        ) from error


def _check_kind(path: Path, kind: str, schema: Schema | None) -> None:
    """Refuse data of another kind than the model's: pixels have another scale."""
    if schema is None:
        return
    kinds = {"libsvm": "a LIBSVM file", "images": "a folder of images"}
    now, then = (kinds.get(k, "a table or arrays") for k in (kind, schema.kind))
    if now != then:
        raise DataFailure(
            f"{path} is {now}, and the model was fitted to {then}. Give data of the "
            "same kind."
        )


def _check_options(path: Path, kind: str, how: Reading) -> None:
    """Refuse options that the format has no use for."""
    given = {
        "--target": (how.target is not None, ("csv", "parquet", "npz")),
        "--drop": (bool(how.drop), ("csv", "parquet")),
        "--header": (how.header != "auto", ("csv",)),
        "--categories": (how.one_hot, ("csv", "parquet")),
        "--samples": (how.samples != "X", ("npz",)),
        "--size": (how.size is not None, ("images",)),
        "--colour": (how.colour != "auto", ("images",)),
    }
    for option, (is_given, kinds) in given.items():
        if is_given and kind not in kinds:
            raise UsageFailure(
                f"{option} is for {' and '.join(kinds)}, and {path} is {kind}. Leave "
                "it out, or say what the data are: --format."
            )
