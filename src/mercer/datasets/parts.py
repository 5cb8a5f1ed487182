"""Image sets in two parts, "train" and "test", and ``.npz`` files that hold them."""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np

from mercer.datasets.places import REPLACE
from mercer.datasets.result import Arrays

__all__ = ["SUBSETS", "check_part", "read_npz", "read_parts"]

# The parts that each value of the parameter ``subset`` asks for.
SUBSETS = {"train": ("train",), "test": ("test",), "all": ("train", "test")}
N_CLASSES = 10
# The errors that NumPy raises for a file that is not an npz file, or a damaged one.
BROKEN = (ValueError, TypeError, OSError, EOFError, zipfile.BadZipFile, zlib.error)


def read_parts(subset: str, read: Callable[[str], Arrays]) -> Arrays:
    """Return the images and labels of a subset; ``read(part)`` reads one part."""
    parts = [read(part) for part in SUBSETS[subset]]
    images, labels = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    return images, labels


def read_npz(path: Path, part: str) -> Arrays:
    """Read one part from a file with x_train, y_train, x_test and y_test."""
    names = f"x_{part}", f"y_{part}"
    try:
        with np.load(path, allow_pickle=False) as file:
            missing = sorted(set(names) - set(file.files))
            if not missing:
                return file[names[0]], file[names[1]]
    except BROKEN as error:
        raise ValueError(
            f"{path} cannot be read as an npz file ({error}). {REPLACE}"
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
) -> Arrays:
    """Return the images and labels after a check of shapes, dtypes and label values.

    ``shape`` is the expected shape of the images, (n, ...); the labels must be n whole
    numbers from 0 to 9.
    """
    if images.shape != shape or images.dtype != np.uint8:
        raise ValueError(
            f"{source}: the images must be uint8 of shape {shape}, got {images.dtype} "
            f"of shape {images.shape}. {REPLACE}"
        )
    if labels.shape != shape[:1] or labels.dtype.kind not in "iu":
        raise ValueError(
            f"{source}: the labels must be {shape[0]} whole numbers, got "
            f"{labels.dtype} of shape {labels.shape}. {REPLACE}"
        )
    if labels.size and not 0 <= labels.min() <= labels.max() < N_CLASSES:
        raise ValueError(
            f"{source}: the labels must be 0 to {N_CLASSES - 1}, got {labels.min()} to "
            f"{labels.max()}. {REPLACE}"
        )
    return images, labels
