"""The one set of Numba flags, and the one door to Numba.

``fastmath=True`` would let LLVM assume that no infinity exists and so break the
``-inf`` sentinels of the pair search.  The subset below keeps infinities exact; it
only promises that no NaN reaches compiled code (every caller checks its input),
which is what lets a running maximum become vector instructions.
"""

from numba import njit, types
from numba.extending import intrinsic

__all__ = ["intrinsic", "jit", "types"]

jit = njit(
    cache=True,
    nogil=True,
    error_model="numpy",
    fastmath={"nsz", "arcp", "contract", "reassoc"},
)
