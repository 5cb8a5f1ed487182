"""Choose the store of base Gram matrices that fits into the memory budget.

If all matrices fit, they are computed once, in single precision unless they are small.
One triangle is computed, with all kernels of a tile together, so that values that
kernels share (products, distances) are computed once.  If the matrices do not fit, only
the samples are kept.  The weighted sum is then a kernel like any other, of which the
solvers compute the rows that they need, and products are computed tile by tile.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

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
    matrix: Callable[[Kernel, Any], NDArray] | None = None,
) -> BaseGrams:
    """Return a store that keeps the matrices if they fit into ``budget`` bytes.

    Beside them must fit their weighted sum, what a solver copies of it, and tiles.
    Another device gives its own function of a kernel and samples for ``matrix``.
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
    is_large = values * dtype.itemsize + tiles > budget
    if matrix is not None:
        if is_large:
            raise MemoryError(
                f"With device='cuda', the matrices of {len(kernels)} kernels, their "
                "sum and what the solver needs stay in the main memory, "
                f"{(values * dtype.itemsize + tiles) / 2**20:.0f} MB for {n} samples; "
                f"cache_size allows {budget / 2**20:.0f} MB. Raise cache_size, or use "
                "device='cpu', which computes values again when they are needed."
            )
        return GramsInMemory([matrix(k, operand.X) for k in kernels], starts, threads)
    if is_large:
        return GramsOnDemand(kernels, operand, starts, threads, budget)
    tiling = plan_tiles(kernels, operand, budget, shared=True)
    store = GramsInMemory.compute(kernels, operand, starts, threads, tiling)
    store.spare = budget - tiles - (len(kernels) + 1) * n * n * dtype.itemsize
    return store
