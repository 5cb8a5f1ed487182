"""The Numba flags of all compiled functions; no other module imports Numba.

``fastmath=True`` would let LLVM assume that infinities do not occur, and so break the
``-inf`` sentinels of the pair search.  The subset below keeps infinities exact.
Compiled code must not be given a NaN (every caller checks its input), so that a running
maximum can become vector instructions.
"""

from numba import njit, types
from numba.core import cgutils, event
from numba.extending import intrinsic

__all__ = ["cgutils", "event", "intrinsic", "jit", "types"]

jit = njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"nsz", "arcp", "contract", "reassoc"},
)
