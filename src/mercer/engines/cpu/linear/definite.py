"""Solutions with definite matrices, found without the interpreter's lock.

The functions of LAPACK in ``scipy.linalg`` keep the interpreter's lock, so that threads
would factorise their matrices one after the other.  SciPy offers the same functions to
compiled code, and a foreign function that is called through ctypes gives the lock back.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cython_lapack

__all__ = ["solve_in_place"]


@cache
def _posv(dtype: Any) -> Any:
    """Return LAPACK's ``dposv`` or ``sposv``."""
    capsule = cython_lapack.__pyx_capi__["dposv" if dtype == np.float64 else "sposv"]
    name = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, [ctypes.py_object]
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype = ctypes.c_void_p
    pointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
    kind = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 8)
    return kind(pointer(capsule, name(capsule)))


def solve_in_place(matrix: NDArray, right: NDArray) -> bool:
    """Replace ``right`` by the solution; return whether the matrix is definite.

    The upper triangle of a C-contiguous matrix is read and overwritten; both arrays
    have the same precision.
    """
    n, one, info = (ctypes.c_int(value) for value in (len(right), 1, 0))
    # Rows of C are columns of Fortran, so that the upper triangle is the lower one.
    side = ctypes.c_char(b"L")
    _posv(matrix.dtype)(
        ctypes.addressof(side),
        ctypes.addressof(n),
        ctypes.addressof(one),
        matrix.ctypes.data,
        ctypes.addressof(n),
        right.ctypes.data,
        ctypes.addressof(n),
        ctypes.addressof(info),
    )
    return info.value == 0
