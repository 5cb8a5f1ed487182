"""Stacks of images, and the forms of arrays in which users pass them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stack", "as_stack", "check_finite", "float_dtype", "pair", "regions_of"]

FORMS = "Pass images as (n, h, w), in colour as (n, h, w, 3), or flattened"
CHANNELS = 3


class Stack(NamedTuple):
    """Images, and the form in which they were passed."""

    pixels: NDArray  #: a view (n, h, w, c) of the array that was passed
    shape: tuple[int, ...]  #: shape of one image: (h, w) or (h, w, 3)
    is_flat: bool  #: whether every image was a row
    dtype: np.dtype  #: dtype of the results: float32 or float64

    def __len__(self) -> int:
        return len(self.pixels)


def float_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of results: float32 if it holds all values, float64 if not."""
    is_single = np.can_cast(dtype, np.float32)
    return np.dtype(np.float32 if is_single else np.float64)


def as_stack(X: NDArray, shape: Sequence[int] | None, name: str) -> Stack:
    """Read an array as images; ``name`` is the transformer that errors name."""
    given = None if shape is None else _check_shape(shape, name)
    if X.ndim == 2:
        image = _shape_of_row(X.shape[1], given, name)
    elif X.ndim == 3 or (X.ndim == 4 and X.shape[3] == CHANNELS):
        image = X.shape[1:]
        if given is not None and image != _complete(given, math.prod(image)):
            raise ValueError(
                f"{name}: shape={given} does not match the images, whose shape is "
                f"{image}. Leave shape=None: shape is for flattened images."
            )
    else:
        hint = " The last axis of colour images has length 3." if X.ndim == 4 else ""
        raise ValueError(
            f"{name}: an array of shape {X.shape} is not a stack of images.{hint} "
            f"{FORMS} as (n, h * w)."
        )
    if 0 in image:
        raise ValueError(f"{name}: the images have no pixels: their shape is {image}.")
    pixels = X.reshape(len(X), *image[:2], -1)
    return Stack(pixels, image, X.ndim == 2, float_dtype(X.dtype))


def _check_shape(shape: Sequence[int], name: str) -> tuple[int, ...]:
    sizes = tuple(shape)
    if (
        len(sizes) not in (2, 3)
        or sizes[2:] not in ((), (CHANNELS,))
        or not all(isinstance(s, Integral) and (s >= 1 or s == -1) for s in sizes)
        or sizes.count(-1) > 1
    ):
        raise ValueError(
            f"{name}: shape must be (height, width) or (height, width, 3), where one "
            f"number may be -1 to be computed from the others, got {shape!r}."
        )
    return tuple(int(s) for s in sizes)


def _complete(shape: tuple[int, ...], n_pixels: int) -> tuple[int, ...] | None:
    """Replace -1 by its value; return None if the pixels do not fit the shape."""
    known = math.prod(s for s in shape if s != -1)
    full = tuple(n_pixels // known if s == -1 else s for s in shape)
    return full if math.prod(full) == n_pixels else None


def _shape_of_row(
    n_pixels: int, given: tuple[int, ...] | None, name: str
) -> tuple[int, ...]:
    if given is not None:
        shape = _complete(given, n_pixels)
        if shape is None:
            raise ValueError(
                f"{name}: {n_pixels} pixels do not fill an image of shape={given}. "
                "Give the shape that one image had before it was flattened."
            )
        return shape
    side = math.isqrt(n_pixels)
    if side * side == n_pixels:
        return (side, side)
    # No number is both a square and three times a square, so the shape is certain.
    side = math.isqrt(n_pixels // CHANNELS)
    if CHANNELS * side * side == n_pixels:
        return (side, side, CHANNELS)
    raise ValueError(
        f"{name}: {n_pixels} pixels are not a square image, neither grey nor colour. "
        f"{FORMS} with shape=(h, w)."
    )


def check_finite(X: NDArray, name: str) -> None:
    """Raise an error that names the first entry that is not finite, if there is one."""
    if X.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # The sum is quick to compute. It can overflow for finite entries, so an
        # infinite sum only means that the entries must be checked one by one.
        if np.isfinite(np.add.reduce(X, axis=None)):
            return
    for i, image in enumerate(X):
        is_bad = ~np.isfinite(image)
        if is_bad.any():
            place = tuple(int(k) for k in np.argwhere(is_bad)[0])
            what = "NaN" if np.isnan(image[place]) else "infinity (inf)"
            where = place[0] if len(place) == 1 else place
            raise ValueError(
                f"{name}: sample {i} has {what} at {where}. All values must be finite: "
                "replace the others, e.g. by numpy.nan_to_num, or drop the sample."
            )


def pair(value: int | Sequence[int], owner: str, name: str) -> tuple[int, int]:
    """Return (rows, columns) of a size that is given as one number or as two."""
    sizes = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(sizes) != 2 or not all(isinstance(s, Integral) and s >= 1 for s in sizes):
        raise ValueError(
            f"{owner}: {name} must be a whole number >= 1 or a pair of them, (rows, "
            f"columns), got {value!r}."
        )
    return int(sizes[0]), int(sizes[1])


def regions_of(shape: tuple[int, int], regions: tuple[int, int]) -> NDArray[np.intp]:
    """Return the region of each position, (rows, columns), numbered row by row.

    The regions have nearly equal sizes.

    >>> regions_of((2, 4), (1, 2)).tolist()
    [[0, 0, 1, 1], [0, 0, 1, 1]]
    """
    rows, columns = (np.arange(n) * k // n for n, k in zip(shape, regions, strict=True))
    return rows[:, None] * regions[1] + columns
