"""The two forms in which a data set is returned: a pair of arrays, or a Bunch."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

__all__ = ["Arrays", "pack", "pack_images"]

Arrays: TypeAlias = tuple[NDArray, NDArray]


def pack(X: Any, y: NDArray, as_bunch: bool, **more: Any) -> Arrays | Bunch:
    """Return ``(X, y)``, or a Bunch with ``data``, ``target`` and more entries."""
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
    """Return a stack of images with its labels, scaled and flattened as asked.

    ``white`` is the largest value that a pixel can have.
    """
    if scale:
        # The division in place avoids a second float32 copy of the images.
        images = images.astype(np.float32)
        images /= np.float32(white)
    rows = images.reshape(len(images), -1)
    if as_bunch:
        more["images"] = images
    # Labels become int64: arithmetic on unsigned bytes would wrap around.
    return pack(images if as_images else rows, y.astype(np.int64), as_bunch, **more)
