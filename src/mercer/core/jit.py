"""The Numba flags of all compiled functions; no other module imports Numba.

``fastmath=True`` would let LLVM assume that infinities do not occur, and so break the
``-inf`` sentinels of the pair search.  The subset below keeps infinities exact.
Compiled code must not be given a NaN (every caller checks its input), so that a running
maximum can become vector instructions.

Compiled functions are kept in files. Where none can be written, each process compiles
them for itself.
"""

import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

from numba import njit, types
from numba.core import cgutils, event
from numba.extending import intrinsic

__all__ = ["cgutils", "event", "intrinsic", "jit", "types"]

FLAGS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"nsz", "arcp", "contract", "reassoc"},
}


def jit(function: Callable) -> Any:
    """Compile a function when it is called first."""
    try:
        return njit(cache=True, **FLAGS)(function)
    except RuntimeError as error:
        if "cannot cache function" not in str(error):
            raise
        _say_once()
        return njit(**FLAGS)(function)


@cache
def _say_once() -> None:
    warnings.warn(
        "Mercer's compiled functions cannot be kept: neither the folder of the "
        "installation nor a home directory can be written. Each process compiles "
        "them anew, which takes some seconds at their first use. To keep them, set "
        "the environment variable NUMBA_CACHE_DIR to a folder that can be written.",
        RuntimeWarning,
        stacklevel=2,
    )
