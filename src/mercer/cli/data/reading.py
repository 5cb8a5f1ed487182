"""Reading data of any format; the name or the content of a file tells the format."""

from __future__ import annotations

import zlib
from pathlib import Path

from mercer.cli.data.csv_files import read_csv
from mercer.cli.data.image_folders import read_images
from mercer.cli.data.libsvm_files import looks_like_libsvm, read_libsvm
from mercer.cli.data.loaded import LoadedData, ReadOptions, Schema
from mercer.cli.data.npz_files import read_npz
from mercer.cli.data.parquet_files import read_parquet
from mercer.cli.data.sources import Source, name_of, opened
from mercer.cli.failures import DataFailure, UsageFailure

__all__ = ["FORMATS", "read_data"]

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
# What messages call data of each format.
CALLED = {
    "csv": "a CSV file",
    "parquet": "a Parquet file",
    "npz": "an npz file",
    "libsvm": "a LIBSVM file",
    "images": "a folder of images",
}
# The first bytes of files that are not text.
BEGINNINGS = {b"PAR1": "parquet", b"PK\x03\x04": "npz"}


def read_data(path: Path, how: ReadOptions) -> LoadedData:
    """Read data, for a new model or, with ``how.schema``, for a given one."""
    try:
        with opened(path) as source:
            return _read(source, how)
    except OSError as error:
        why = error.strerror or error
        name = error.filename if path.is_dir() else None
        raise DataFailure(f"{name or name_of(path)} cannot be read: {why}.") from error


def _read(source: Source, how: ReadOptions) -> LoadedData:
    if not source.path.exists():
        raise DataFailure(f"{source} does not exist.")
    is_folder = source.path.is_dir()
    if not is_folder and not source.path.stat().st_size:
        raise DataFailure(f"{source} is empty.")
    kind = _format(source, how) if how.format == "auto" else how.format
    if is_folder and kind != "images":
        raise DataFailure(
            f"{source} is a folder, and --format {kind} reads a file. Give a file."
        )
    if kind == "images" and not is_folder:
        raise DataFailure(
            f"{source} is not a folder, and --format images reads a folder of images. "
            "Give the folder."
        )
    _check_kind(source, kind, how.schema)
    _check_options(source, kind, how)
    return FORMATS[kind](source, how)


def _format(source: Source, how: ReadOptions) -> str:
    path = source.path
    if path.is_dir():
        return "images"
    stem = path.with_suffix("") if path.suffix in (".gz", ".bz2") else path
    if found := ENDINGS.get(stem.suffix.lower()):
        return found
    with open(path, "rb") as file:
        start = file.read(4)
    if found := BEGINNINGS.get(start):
        return found
    try:
        is_plain = how.encoding == "utf-8"
        return "libsvm" if is_plain and looks_like_libsvm(source) else "csv"
    except UnicodeDecodeError as error:
        raise DataFailure(
            f"{source} is not text in UTF-8, and its name does not tell the format. "
            f"Name it with --format, as one of {', '.join(FORMATS)}. If it is a CSV in "
            "another encoding, name this, as in --encoding cp1252."
        ) from error
    except (EOFError, zlib.error) as error:
        raise DataFailure(f"{source} cannot be read: {error}.") from error


def _check_kind(source: Source, kind: str, schema: Schema | None) -> None:
    """Refuse data of another kind than the model's: pixels, say, have another scale."""
    if schema is None:
        return
    now, then = (
        CALLED[k] if k in ("libsvm", "images") else "a table or arrays"
        for k in (kind, schema.kind)
    )
    if now != then:
        raise DataFailure(
            f"{source} is {now}, and the model was fitted to {then}. Give data of the "
            "same kind."
        )


def _check_options(source: Source, kind: str, how: ReadOptions) -> None:
    """Refuse options that the format does not use."""
    given = {
        "--target": (how.target is not None, ("csv", "parquet", "npz")),
        "--drop": (bool(how.drop), ("csv", "parquet")),
        "--keep": (bool(how.keep), ("csv", "parquet")),
        "--missing": (how.missing != "refuse", ("csv", "parquet", "npz")),
        "--header": (how.header != "auto", ("csv",)),
        "--encoding": (how.encoding != "utf-8", ("csv",)),
        "--categories": (how.one_hot, ("csv", "parquet")),
        "--samples": (how.samples != "X", ("npz",)),
        "--size": (how.size is not None, ("images",)),
        "--colour": (how.colour != "auto", ("images",)),
    }
    for option, (is_given, kinds) in given.items():
        if is_given and kind not in kinds:
            wanted = " or ".join(CALLED[k] for k in kinds)
            raise UsageFailure(
                f"{option} is for {wanted}, but {source} is taken for "
                f"{CALLED[kind]}. Leave it out, or name another format with --format."
            )
