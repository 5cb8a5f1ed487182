"""The batches of CIFAR-10, in the two formats in which its authors distribute them.

The *binary* format has one byte with the label of each image, then 1,024 bytes each of
red, green and blue. The *Python* format is a pickle of a dictionary with the same bytes
and the labels. A pickle can name any function to be called. These pickles are therefore
read with stand-ins for the NumPy names that they need, and any other name is an error.
"""

from __future__ import annotations

import io
import pickle
import tarfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.datasets.places import REPLACE, find_file
from mercer.datasets.result import Arrays

__all__ = ["ARCHIVE", "BATCHES", "BatchFiles", "find_batches", "read_batches"]

SIDE = 32
PIXELS = 3 * SIDE * SIDE
IMAGES_PER_BATCH = 10_000
BATCHES = {
    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
    "test": ("test_batch",),
}
ARCHIVE = "cifar-10-binary.tar.gz"


class Format(NamedTuple):
    """The names of the folder, files and archive of one of the two formats."""

    folder: str
    ending: str
    archive: str


BINARY = Format("cifar-10-batches-bin", ".bin", ARCHIVE)
PYTHON = Format("cifar-10-batches-py", "", "cifar-10-python.tar.gz")


class BatchFiles(NamedTuple):
    """A folder of batches, or an archive of them, and the format of the batches."""

    path: Path
    format: Format


def find_batches(place: Path, part: str) -> BatchFiles | None:
    """Return the batches of a part, if a folder has all of them, or None."""
    for kind in (BINARY, PYTHON):
        for folder in (place, place / kind.folder):
            names = [name + kind.ending for name in BATCHES[part]]
            if all((folder / name).is_file() for name in names):
                return BatchFiles(folder, kind)
        archive = find_file([kind.archive], [place])
        if archive:
            return BatchFiles(archive, kind)
    return None


def read_batches(files: BatchFiles, part: str) -> Arrays:
    """Read all batches of a part: images (n, 32, 32, 3) and labels."""
    names = [name + files.format.ending for name in BATCHES[part]]
    decode = _decode_binary if files.format is BINARY else _decode_python
    if files.path.is_dir():
        contents = [(files.path / name).read_bytes() for name in names]
    else:
        contents = _members(files.path, [f"{files.format.folder}/{n}" for n in names])
    batches = [
        decode(content, f"{name} of {files.path}")
        for content, name in zip(contents, names, strict=True)
    ]
    planes = np.concatenate([pixels for pixels, _ in batches])
    images = planes.reshape(-1, 3, SIDE, SIDE).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.concatenate([y for _, y in batches])


def _members(path: Path, names: Sequence[str]) -> list[bytes]:
    """Return the contents of some files in an archive, without unpacking it to disk."""
    try:
        with tarfile.open(path) as archive:
            files = [archive.extractfile(name) for name in names]
            return [file.read() if file else b"" for file in files]
    except (OSError, EOFError, KeyError, tarfile.TarError, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged, or is not the archive of that name ({error}). "
            f"{REPLACE}"
        ) from error


def _decode_binary(content: bytes, source: str) -> Arrays:
    """Return the pixels (n, 3072), colour by colour, and labels of a binary batch."""
    expected = IMAGES_PER_BATCH * (1 + PIXELS)
    if len(content) != expected:
        raise ValueError(
            f"{source} must have {expected} bytes for {IMAGES_PER_BATCH} images; it "
            f"has {len(content)}. {REPLACE}"
        )
    records = np.frombuffer(content, dtype=np.uint8).reshape(IMAGES_PER_BATCH, -1)
    return records[:, 1:], records[:, 0]


def _decode_python(content: bytes, source: str) -> Arrays:
    """Return the pixels (n, 3072), colour by colour, and labels of a pickled batch."""
    try:
        batch = _BatchUnpickler(io.BytesIO(content), encoding="bytes").load()
        pixels = batch[b"data"].values()
        labels = np.array(batch[b"labels"], dtype=np.uint8)
    except Exception as error:  # a broken pickle can fail in any way
        raise ValueError(
            f"{source} is not a batch of CIFAR-10 ({type(error).__name__}: {error}). "
            f"{REPLACE}"
        ) from error
    if pixels.shape != (IMAGES_PER_BATCH, PIXELS):
        raise ValueError(
            f"{source} must have pixels of shape {(IMAGES_PER_BATCH, PIXELS)}, got "
            f"{pixels.shape}. {REPLACE}"
        )
    return pixels, labels


class _Type:
    """A stand-in for ``numpy.dtype`` that keeps the code of the type."""

    def __init__(self, code: bytes | str, *rest: object) -> None:
        del rest
        self.code = code.decode() if isinstance(code, bytes) else code

    def __setstate__(self, state: object) -> None:
        """Ignore the byte order: single bytes do not have one."""


class _Array:
    """A stand-in for ``numpy.ndarray`` that keeps its shape and bytes."""

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _, self.shape, self.type, self.is_fortran, self.content = state

    def values(self) -> NDArray[np.uint8]:
        """Return the array; raise an error if it does not hold unsigned bytes."""
        if self.type.code != "u1" or not isinstance(self.content, bytes):
            raise ValueError(f"pixels must be bytes (u1), got {self.type.code!r}")
        flat = np.frombuffer(self.content, np.uint8)
        return flat.reshape(self.shape, order="F" if self.is_fortran else "C")


def _blank_array(*arguments: object) -> _Array:
    """Stand in for NumPy's function that makes an array to be filled later."""
    del arguments
    return _Array()


class _BatchUnpickler(pickle.Unpickler):
    """An unpickler of dictionaries, lists, numbers, bytes and stand-ins for arrays."""

    STAND_INS = {  # noqa: RUF012
        ("numpy", "ndarray"): _Array,
        ("numpy", "dtype"): _Type,
        ("numpy.core.multiarray", "_reconstruct"): _blank_array,
        ("numpy._core.multiarray", "_reconstruct"): _blank_array,
    }

    def find_class(self, module: str, name: str) -> Any:
        """Return the stand-in for a name; raise an error if it has none."""
        try:
            return self.STAND_INS[module, name]
        except KeyError:
            raise pickle.UnpicklingError(
                f"the pickle asks for {module}.{name}, which a batch does not need"
            ) from None
