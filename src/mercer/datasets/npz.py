"""Data sets in ``.npz`` files, with the arrays x_train, y_train, x_test and y_test."""

from __future__ import annotations

import zipfile
import zlib
from pathlib import Path

import numpy as np

from mercer.datasets.result import Arrays

__all__ = ["check_part", "read_npz"]

N_CLASSES = 10
# What NumPy raises for a file that is not, or no longer, an archive of arrays.
BROKEN = (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


def read_npz(path: Path, part: str) -> Arrays:
    """Read the images and labels of one part, "train" or "test"."""
    names = f"x_{part}", f"y_{part}"
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = sorted(set(names) - set(file.files))
            if not missing:
                return file[names[0]], file[names[1]]
    except BROKEN as error:
        raise ValueError(
            f"{path} cannot be read as an npz file ({error}). Replace it by a fresh "
            "copy, or remove it."
        ) from error
    raise ValueError(
        f"{path} lacks {' and '.join(missing)}. It must have x_train, y_train, x_test "
        "and y_test."
    )


def check_part(
    images: np.ndarray,
    labels: np.ndarray,
    shape: tuple[int, ...],
    source: Path,
) -> None:
    """Raise an error unless the images have that shape and as many labels from 0 to 9.

    The first entry of ``shape`` is the number of images.
    """
    if images.shape != shape or images.dtype != np.uint8:
        raise ValueError(
            f"{source}: the images must be uint8 of shape {shape}, got {images.dtype} "
            f"of shape {images.shape}. Replace it by a complete copy, or remove it."
        )
    if labels.shape != shape[:1] or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{source}: the labels must be {shape[0]} whole numbers, got "
            f"{labels.dtype} of shape {labels.shape}. Replace it by a complete copy, "
            "or remove it."
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < N_CLASSES:
        raise ValueError(
            f"{source}: labels must be 0 to {N_CLASSES - 1}, got {labels.min()} to "
            f"{labels.max()}. Replace it by a fresh copy, or remove it."
        )
