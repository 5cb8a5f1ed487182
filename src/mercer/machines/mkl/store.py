"""Choose the store of base Gram matrices that fits into the memory budget.

If all matrices fit, they are computed once, in single precision unless they are small.
One triangle is computed, with all kernels of a tile together, so that values that
kernels share (products, distances) are computed once.  If the matrices do not fit, only
the samples are kept.  The weighted sum is then a kernel like any other, of which the
solvers compute the rows that they need, and products are computed tile by tile.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from mercer.engines.cpu.pair import Operand
from mercer.engines.cpu.tiles import TILES_PART, budget_bytes, plan_tiles
from mercer.kernels.base import Kernel
from mercer.machines.mkl.grams import BaseGrams
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
    cache_size: float | str,
    threads: Threads,
    tol: float = 1e-3,
    engine: Any = None,
) -> BaseGrams:
    """Return a store that keeps the matrices if they fit into the memory allowed.

    Beside them must fit their weighted sum, what a solver copies of it, and tiles.
    With the ``engine`` of a card, they stay on the card if they fit there. If not, the
    card computes them, and they are kept and solved with in the main memory.
    """
    n, budget = len(operand), budget_bytes(cache_size)
    values = (len(kernels) + 1.5) * n * n
    tiles = budget // TILES_PART
    is_double = n <= DOUBLE_UP_TO or tol < LEAST_FOR_SINGLE
    dtype = np.dtype(np.float64 if is_double else np.float32)
    if values * dtype.itemsize + tiles > budget:
        dtype = np.dtype(np.float64 if tol < LEAST_FOR_SINGLE else np.float32)
    if operand.dtype != dtype:
        operand = operand.astype(dtype)
    is_large = values * dtype.itemsize + tiles > budget
    if engine is not None:
        # What a card needs is loaded only when one is asked for.
        from mercer.machines.mkl.on_card import GramsOnCard, has_room

        if has_room(n, len(kernels), dtype.itemsize, engine.memory(cache_size)):
            return GramsOnCard.compute(engine.card, kernels, operand.X, starts, threads)
        if is_large:
            needed = values * dtype.itemsize + tiles
            raise MemoryError(
                f"The matrices of {len(kernels)} kernels do not fit the card. With "
                "their sum and what the solver needs they take "
                f"{needed / 2**20:.3g} MB for {n} samples in the main memory, and "
                f"cache_size={cache_size!r} allows {budget / 2**20:.3g} MB. Raise "
                "cache_size, or use device='cpu', which computes values again when "
                "they are needed."
            )
        matrices = [engine.matrix(kernel, operand.X) for kernel in kernels]
        return GramsInMemory(matrices, starts, threads)
    if is_large:
        return GramsOnDemand(kernels, operand, starts, threads, budget)
    tiling = plan_tiles(kernels, operand, budget, shared=True)
    store = GramsInMemory.compute(kernels, operand, starts, threads, tiling)
    store.spare = budget - tiles - (len(kernels) + 1) * n * n * dtype.itemsize
    return store
