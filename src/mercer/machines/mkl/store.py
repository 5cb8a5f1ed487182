"""Choose the store of base Gram matrices that fits into the memory budget.

If all matrices fit, they are computed once, in single precision unless they are small.
One triangle is computed, with all kernels of a tile together, so that values that
kernels share (products, distances) are computed once.  If the matrices do not fit, only
the samples are kept.  The weighted sum is then a kernel like any other, of which the
solvers compute the rows that they need, and products are computed tile by tile.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import TILES_PART, plan_tiles
from mercer.kernels.base import Kernel
from mercer.machines.mkl.base import BaseGrams
from mercer.machines.mkl.inmemory import GramsInMemory
from mercer.machines.mkl.ondemand import GramsOnDemand
from mercer.runtime.threads import Threads

__all__ = ["LEAST_FOR_SINGLE", "make_store"]

# Up to this many samples, or below this tolerance, values are in double precision.
DOUBLE_UP_TO = 1000
LEAST_FOR_SINGLE = 3e-5


def make_store(
    kernels: Sequence[Kernel],
    operand: Operand,
    starts: list[int],
    budget: int,
    threads: Threads,
    tol: float = 1e-3,
) -> BaseGrams:
    """Return a store that keeps the matrices if they fit into ``budget`` bytes.

    Beside them must fit their weighted sum, what a solver copies of it, and tiles.
    """
    n = len(operand)
    values = (len(kernels) + 1.5) * n * n
    tiles = budget // TILES_PART
    is_double = n <= DOUBLE_UP_TO or tol < LEAST_FOR_SINGLE
    dtype = np.dtype(np.float64 if is_double else np.float32)
    if values * dtype.itemsize + tiles > budget:
        dtype = np.dtype(np.float64 if tol < LEAST_FOR_SINGLE else np.float32)
    if operand.dtype != dtype:
        operand = operand.astype(dtype)
    if values * dtype.itemsize + tiles > budget:
        return GramsOnDemand(kernels, operand, starts, threads, budget)
    tiling = plan_tiles(kernels, operand, budget, shared=True)
    store = GramsInMemory.compute(kernels, operand, starts, threads, tiling)
    store.spare = budget - tiles - (len(kernels) + 1) * n * n * dtype.itemsize
    return store
