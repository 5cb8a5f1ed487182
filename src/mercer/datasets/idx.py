"""The idx format of the MNIST files: a header with the shape, then the values.

The header consists of two zero bytes, the code of the type (8 for unsigned bytes), the
number of axes, and the length of each axis as a big-endian 32-bit integer.
"""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mercer.datasets.places import REPLACE

__all__ = ["read_idx"]

UNSIGNED_BYTES = 8


def read_idx(path: Path, n_axes: int) -> NDArray[np.uint8]:
    """Read an idx file of unsigned bytes with ``n_axes`` axes, plain or ``.gz``."""
    raw = _content(path)
    magic, expected = raw[:4], bytes([0, 0, UNSIGNED_BYTES, n_axes])
    if magic != expected:
        raise ValueError(
            f"{path} is not an idx file of unsigned bytes with {n_axes} axes: it "
            f"begins with {magic.hex(' ')!r} and not with {expected.hex(' ')!r}. "
            f"{REPLACE}"
        )
    start = 4 + 4 * n_axes
    if len(raw) < start:
        raise ValueError(f"{path} ends inside its header. {REPLACE}")
    shape = struct.unpack(f">{n_axes}I", raw[4:start])
    n_values = math.prod(shape)
    if len(raw) - start != n_values:
        raise ValueError(
            f"{path} announces {n_values} bytes, shape {shape}, and has "
            f"{len(raw) - start}. {REPLACE}"
        )
    # An array that shares memory with bytes would be read-only.
    return np.frombuffer(raw, dtype=np.uint8, offset=start).reshape(shape).copy()


def _content(path: Path) -> bytes:
    raw = path.read_bytes()
    if path.suffix != ".gz":
        return raw
    try:
        return gzip.decompress(raw)
    except (OSError, EOFError, zlib.error) as error:
        raise ValueError(
            f"{path} is damaged, or is not a gzip file ({error}). {REPLACE}"
        ) from error
