"""Write files in idx format."""

import gzip
import struct

import numpy as np


def idx_bytes(values):
    values = np.asarray(values, dtype=np.uint8)
    header = bytes([0, 0, 8, values.ndim])
    return header + struct.pack(f">{values.ndim}I", *values.shape) + values.tobytes()


def write_idx(path, values):
    content = idx_bytes(values)
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    return path
