"""Checks of the content of a model file, before any of it is unpacked.

A file of a few megabytes must not fill gigabytes of memory, whatever it claims.
:func:`mercer.save` does not compress, so that the members together cannot be larger
than the file. The schema must name each member, for one object only, and an array must
have as many bytes as its shape and type require.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Iterator
from typing import Any, NamedTuple
from zipfile import ZIP_DEFLATED, ZIP_STORED, ZipFile

from numpy.lib import format as npy

__all__ = ["HEADER", "SCHEMA", "check_archive"]

HEADER, SCHEMA = "mercer.json", "schema.json"
# SciPy compresses the arrays of a sparse matrix, in a zip archive inside the file.
SPARSE = {f"{name}.npy" for name in ("data", "indices", "indptr", "shape", "format")}
SPARSE_OPTIONAL = {"_is_array.npy"}
# The sparse matrices of a file may have so many bytes together in any case, and so many
# for each byte that they take in the file: real data stay far below that.
SMALL, MOST_PER_BYTE = 2**24, 100


class _Named(NamedTuple):
    """A member that a node of the schema names."""

    file: Any
    loader: Any
    key: Any  #: what tells nodes apart when the file is loaded


def check_archive(archive: ZipFile, size: int) -> None:
    """Raise ValueError if a file of ``size`` bytes holds anything that it must not."""
    members = {member.filename: member for member in archive.infolist()}
    if len(members) < len(archive.infolist()):
        raise ValueError("two members have the same name")
    for name, member in members.items():
        if member.compress_type != ZIP_STORED:
            raise ValueError(f"{name} is compressed, and mercer.save does not compress")
    if sum(member.file_size for member in members.values()) > size:
        raise ValueError("the members claim to be larger than the file")
    if SCHEMA not in members:
        raise ValueError(f"there is no {SCHEMA}")
    named = list(_walk(json.loads(archive.read(SCHEMA))))
    keys: dict[Any, Any] = {}
    for found in named:
        if found.file not in members:
            raise ValueError(f"{found.file} is missing")
        if found.key is None or keys.setdefault(found.file, found.key) != found.key:
            raise ValueError(f"{found.file} is used for several objects")
    if unlisted := sorted(set(members) - {HEADER, SCHEMA, *keys}):
        raise ValueError(f"{SCHEMA} does not name {unlisted[0]}")
    sparse = {f.file for f in named if f.loader == "SparseMatrixNode"}
    most = max(SMALL, MOST_PER_BYTE * sum(members[n].file_size for n in sparse))
    for found in named:
        if found.loader == "NdArrayNode":
            with archive.open(found.file) as file:
                _check_array(file, found.file, members[found.file].file_size)
    for name in sorted(sparse):
        most -= _check_sparse(archive.read(name), name, most)


def _walk(state: Any) -> Iterator[_Named]:
    """Yield the nodes of the schema that name a member."""
    waiting = [state]
    while waiting:
        state = waiting.pop()
        if isinstance(state, list):
            waiting += state
        if not isinstance(state, dict):
            continue
        waiting += state.values()
        loader = state.get("__loader__")
        if isinstance(loader, str) and isinstance(state.get("file"), str):
            yield _Named(state["file"], loader, state.get("__id__"))
        if loader == "NdArrayNode" and state.get("type") == "json":
            # Nested lists that share their parts could become arbitrarily large.
            shape = state.get("shape", {})
            if len(shape.get("content", ())) != 1:
                raise ValueError("an array of objects has more than one dimension")


def _check_array(file: Any, name: str, size: int) -> None:
    """Compare the shape and type of an array with the number of its bytes."""
    version = npy.read_magic(file)
    if version not in ((1, 0), (2, 0)):
        raise ValueError(f"{name} has the unknown version {version}")
    first = version[0] == 1
    read = npy.read_array_header_1_0 if first else npy.read_array_header_2_0
    shape, _, dtype = read(file)
    if dtype.hasobject or not dtype.itemsize or min(shape, default=0) < 0:
        raise ValueError(f"{name} is an array of {dtype} of shape {shape}")
    if math.prod(shape) * dtype.itemsize != size - file.tell():
        raise ValueError(
            f"{name} should be an array of {dtype} of shape {shape}, which does not "
            f"fit into {size} bytes"
        )


def _check_sparse(content: bytes, name: str, most: int) -> int:
    """Check a sparse matrix of at most so many bytes; return how many it has."""
    with ZipFile(io.BytesIO(content)) as archive:
        for member in archive.infolist():
            # Other ways to compress reach factors of many thousands.
            if member.compress_type not in (ZIP_STORED, ZIP_DEFLATED):
                raise ValueError(
                    f"{name}, {member.filename} is compressed in a way that "
                    "mercer.save does not use"
                )
        members = {member.filename: member.file_size for member in archive.infolist()}
        if len(members) < len(archive.infolist()) or not (
            members.keys() >= SPARSE and members.keys() <= SPARSE | SPARSE_OPTIONAL
        ):
            raise ValueError(f"{name} is not a sparse matrix of rows or columns")
        size = sum(members.values())
        if size > most:
            raise ValueError(
                f"{name} claims {size} bytes, packed into {len(content)}, and the "
                f"sparse matrices of this file may have {most} more"
            )
        for part, n_bytes in members.items():
            with archive.open(part) as file:
                _check_array(file, f"{name}, {part}", n_bytes)
    return size
