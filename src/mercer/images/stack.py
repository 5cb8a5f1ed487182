"""Stacks of images in all the forms in which they are passed around."""

from __future__ import annotations

import math
from collections.abc import Sequence
from numbers import Integral
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Stack", "as_stack", "check_finite", "float_dtype", "pair"]

FORMS = "Pass images as (n, h, w), in colour as (n, h, w, 3), or flattened"
CHANNELS = 3


class Stack(NamedTuple):
    """Images (n, h, w, c), a view of what was passed, and the form they had."""

    pixels: NDArray
    shape: tuple[int, ...]  #: of one image: (h, w) or (h, w, 3)
    is_flat: bool  #: whether every image was a row
    dtype: np.dtype  #: of results: float32 or float64

    def __len__(self) -> int:
        return len(self.pixels)


def float_dtype(dtype: np.dtype) -> np.dtype:
    """Return the type of results: single precision where it holds all values."""
    is_single = np.can_cast(dtype, np.float32)
    return np.dtype(np.float32 if is_single else np.float64)


def as_stack(X: NDArray, shape: Sequence[int] | None, name: str) -> Stack:
    """Read an array as images; ``name`` is who asks."""
    given = None if shape is None else _check_shape(shape, name)
    if X.ndim == 2:
        image = _shape_of_row(X.shape[1], given, name)
    elif X.ndim == 3 or (X.ndim == 4 and X.shape[3] == CHANNELS):
        image = X.shape[1:]
        if given is not None and image != _complete(given, math.prod(image)):
            raise ValueError(
                f"{name}: shape={given} was asked for, but the images have shape "
                f"{image}. Leave shape=None: it is for flattened images."
            )
    else:
        hint = " Colour images have 3 channels, last." if X.ndim == 4 else ""
        raise ValueError(
            f"{name}: an array of shape {X.shape} is no stack of images.{hint} {FORMS} "
            "as (n, h * w)."
        )
    if 0 in image:
        raise ValueError(f"{name}: the images have no pixels, their shape is {image}.")
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
            f"{name}: shape must be (height, width) or (height, width, 3), at most one "
            f"of them -1 (whatever fits), got {shape!r}."
        )
    return tuple(int(s) for s in sizes)


def _complete(shape: tuple[int, ...], n_pixels: int) -> tuple[int, ...] | None:
    """Put in what -1 stands for; None if the pixels do not fit the shape."""
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
                f"{name}: {n_pixels} pixels do not fill images of shape={given}. Give "
                "the shape of one image, before it was flattened."
            )
        return shape
    side = math.isqrt(n_pixels)
    if side * side == n_pixels:
        return (side, side)
    # No number is both a square and three times a square, so this is no guess.
    side = math.isqrt(n_pixels // CHANNELS)
    if CHANNELS * side * side == n_pixels:
        return (side, side, CHANNELS)
    raise ValueError(
        f"{name}: {n_pixels} pixels make no square image, grey or colour. {FORMS} with "
        "shape=(h, w)."
    )


def check_finite(X: NDArray, name: str) -> None:
    """Raise an error that names the first entry that is not a finite number."""
    if X.dtype.kind != "f":
        return
    with np.errstate(over="ignore", invalid="ignore"):
        # Quick; a sum that overflows is looked at more closely.
        if np.isfinite(np.add.reduce(X, axis=None)):
            return
    for i, image in enumerate(X):
        is_bad = ~np.isfinite(image)
        if is_bad.any():
            place = tuple(int(k) for k in np.argwhere(is_bad)[0])
            what = "NaN" if np.isnan(image[place]) else "infinity (inf)"
            where = place[0] if len(place) == 1 else place
            raise ValueError(
                f"{name}: sample {i} has {what} at {where}. All values must be finite "
                "numbers: replace them, e.g. by numpy.nan_to_num, or drop the sample."
            )


def pair(value: int | Sequence[int], owner: str, name: str) -> tuple[int, int]:
    """Return rows and columns of a size that is one number or two."""
    sizes = tuple(value) if isinstance(value, Sequence) else (value, value)
    if len(sizes) != 2 or not all(isinstance(s, Integral) and s >= 1 for s in sizes):
        raise ValueError(
            f"{owner}: {name} must be a whole number >= 1 or two of them, rows first, "
            f"got {value!r}."
        )
    return int(sizes[0]), int(sizes[1])
