"""The engine that computes on processor threads."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cpu.coefficients import Weights
from mercer.engines.cpu.gram import apply, kernel_matrix
from mercer.engines.cpu.solve import Progress, solve_plan
from mercer.engines.plan import Certified, Plan, Settings
from mercer.kernels.base import Kernel, as_operand, bind_to_both
from mercer.kernels.operand import Operand
from mercer.runtime.memory import budget_bytes
from mercer.runtime.threads import Threads

__all__ = ["CpuEngine"]


class CpuEngine:
    """Computes kernel values and solutions with threads.

    It is entered for the time of one fit or prediction::

        with CpuEngine(n_jobs) as engine:
            K = engine.matrix(kernel, X)

    Results do not depend on the number of threads.

    Parameters
    ----------
    n_jobs : int, default=None
        Number of threads; None means as many as BLAS may use, -1 all cores.
    """

    def __init__(self, n_jobs: int | None = None):
        self.threads = Threads(n_jobs)

    def __enter__(self) -> CpuEngine:
        self.threads.__enter__()
        return self

    def __exit__(self, *exc: object) -> None:
        self.threads.__exit__(*exc)

    @property
    def stop(self) -> NDArray[np.uint8]:
        """An array of one number that becomes 1 when the work is to end early."""
        return self.threads.stop

    def operand(self, X: Any, order: NDArray[np.intp] | None = None) -> Operand:
        """Wrap samples, in another order if given, as one side of kernel blocks.

        What kernels derive from the samples is computed once, in threads.
        """
        if isinstance(X, Operand):
            return X
        return Operand(as_operand(X).X, order=order, run=self.threads.map)

    def matrix(self, kernel: Kernel, X: Any, Z: Any = None) -> NDArray:
        """Return all values ``k(x_i, z_j)``; with ``Z=None``, those of X with itself.

        Parameters that the kernel leaves to the data are taken from Z, or from X.
        """
        bound, left, right = bind_to_both(kernel, X, Z)
        return kernel_matrix(bound, left, None if Z is None else right, self.threads)

    def apply(
        self,
        kernel: Kernel,
        X: Any,
        Z: Any,
        V: Weights | NDArray,
        budget: int | None = None,
    ) -> NDArray:
        """Return ``K(X, Z) @ V`` in double precision, without the whole matrix K.

        Parameters
        ----------
        kernel : Kernel
            Bound to data: all its parameters are numbers.
        X, Z : array, CSR matrix or Operand
        V : Weights or array of shape (n, p)
        budget : int, default=None
            Bytes of memory that tiles of kernel values keep to a part of; None does not
            limit them.
        """
        if not isinstance(V, Weights):
            V = Weights(sparse.csr_array(V), [0, len(V)])
        left, right = as_operand(X), self.operand(Z)
        return apply(kernel, left, right, V, self.threads, budget)

    def solve(
        self, plan: Plan, settings: Settings, progress: Progress | None = None
    ) -> Certified:
        """Return certified solutions of all problems of a plan.

        Parameters
        ----------
        plan : Plan
        settings : Settings
        progress : callable, default=None
            It is called with the tasks after each has been solved, or each round.
        """
        return solve_plan(plan, settings, self.threads, progress)

    def memory(self, cache_size: float | str = "auto") -> int:
        """Return the bytes that kernel values and scratch memory may take.

        Parameters
        ----------
        cache_size : float or "auto", default="auto"
            Megabytes; "auto" means a quarter of the memory that is free.
        """
        return budget_bytes(cache_size)
