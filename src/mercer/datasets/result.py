"""The two forms in which a data set is returned: arrays, or a Bunch."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

__all__ = ["Arrays", "pack", "pack_images"]

Arrays: TypeAlias = tuple[NDArray, NDArray]


def pack(X: Any, y: NDArray, as_bunch: bool, **more: Any) -> Arrays | Bunch:
    """Return ``(X, y)``, or a Bunch with ``data``, ``target`` and what is added."""
    if as_bunch:
        return Bunch(data=X, target=y, **more)
    return X, y


def pack_images(
    images: NDArray,
    y: NDArray,
    *,
    white: float,
    scale: bool,
    as_images: bool,
    as_bunch: bool,
    **more: Any,
) -> Arrays | Bunch:
    """Return a stack of images, flattened or not, in [0, 1] or not, with its labels.

    ``white`` is the largest value that a pixel can have.
    """
    if scale:
        # In place: 60,000 images in double precision would be a third of a gigabyte.
        images = images.astype(np.float32)
        images /= np.float32(white)
    rows = images.reshape(len(images), -1)
    if as_bunch:
        more["images"] = images
    # Unsigned bytes would wrap around in arithmetic on labels.
    return pack(images if as_images else rows, y.astype(np.int64), as_bunch, **more)
