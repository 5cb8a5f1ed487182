"""The engine that computes on processor threads."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cpu.certificates import refine
from mercer.engines.cpu.class_pairs import are_small_pairs, solve_small_pairs
from mercer.engines.cpu.linear.coordinates import solve_joint, solve_l1
from mercer.engines.cpu.linear.features import Features
from mercer.engines.cpu.linear.problems import LinearProblems
from mercer.engines.cpu.linear.solve import LinearFound, Start, solve_linear
from mercer.engines.cpu.linear.through_weights import (
    solve_through_weights,
    takes_weights,
)
from mercer.engines.cpu.pair import Operand, as_operand
from mercer.engines.cpu.products import GramProduct
from mercer.engines.cpu.small import Expansion, is_small, solve_small
from mercer.engines.cpu.solve import Progress, solve_plan
from mercer.engines.cpu.tiles import Weights, apply, budget_bytes, kernel_matrix
from mercer.engines.engine import Certified, Engine, Plan, Settings
from mercer.kernels.base import Kernel, bind_to_both
from mercer.kernels.pair import as_matrix
from mercer.runtime.threads import Threads, count_threads, one_blas_thread

__all__ = ["CpuEngine"]

# Up to this many samples, and multiplications for all their kernel values, products
# with the Gram matrix take less time than waking threads for each of them.
BRIEF_ROWS = 1024
BRIEF_WORK = 2**25
# Up to this many entries of samples, their products with weights do.
BRIEF_ENTRIES = 2**16


class CpuEngine(Engine):
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
        if n_jobs == 0:
            count_threads(n_jobs)  # raises an error
        self._n_jobs = n_jobs
        self._threads: Threads | None = None
        self._is_brief = False  #: whether what is asked first takes milliseconds only
        #: an array of one number that becomes 1 when the work is to end early
        self.stop = np.zeros(1, dtype=np.uint8)

    def __enter__(self) -> CpuEngine:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._threads is not None:
            self._threads.__exit__(*exc)
            self._threads = None

    @property
    def threads(self) -> Threads:
        """The threads; they start when they are first asked for."""
        if self._threads is None:
            self._threads = Threads(self._n_jobs, self._is_brief).__enter__()
            self._threads.stop = self.stop
        return self._threads

    @property
    def count(self) -> int:
        """The number of threads."""
        return self.threads.count

    def map(
        self,
        function: Callable[[Any], Any],
        items: Iterable[Any],
        after_each: Callable[[], None] | None = None,
        at_once: int | None = None,
    ) -> list:
        """Apply a function to every item in threads; see :meth:`Threads.map`."""
        return self.threads.map(function, items, after_each, at_once)

    def team(
        self, function: Callable[[], None], n_jobs: int, at_once: int | None = None
    ) -> None:
        """Call a function in several threads; see :meth:`Threads.team`."""
        self.threads.team(function, n_jobs, at_once)

    def operand(self, X: Any, order: NDArray[np.intp] | None = None) -> Operand:
        """Wrap samples, in another order if given, as one side of kernel blocks.

        What kernels derive from the samples is computed once, in threads.
        """
        if isinstance(X, Operand):
            return X
        return Operand(as_matrix(X), order=order, run=self._run)

    def _run(self, function: Callable[[Any], Any], parts: Iterable[Any]) -> list:
        """Apply a function to parts of samples; a single part needs no thread."""
        parts = list(parts)
        if len(parts) > 1:
            return self.map(function, parts)
        with np.errstate(over="ignore", invalid="ignore"):
            return [function(part) for part in parts]

    def matrix(self, kernel: Kernel, X: Any, Z: Any = None) -> NDArray:
        """Return all values ``k(x_i, z_j)``; with ``Z=None``, those of X with itself.

        Parameters that the kernel leaves to the data are taken from Z, or from X.
        """
        bound, left, right = bind_to_both(kernel, X, Z)
        other = None if Z is None else self.operand(right)
        return kernel_matrix(bound, self.operand(left), other, self)

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
        return apply(kernel, left, right, V, self, budget)

    def expand(
        self, expansion: Expansion, X: Any, budget: int | None = None
    ) -> NDArray[np.float64]:
        """Return the values of an expansion in support vectors, shape (m, n_tasks)."""
        vectors = expansion.warmed_up(self._run)
        return self.apply(expansion.kernel, X, vectors, expansion.weights, budget)

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
        if is_small(plan, settings):
            found = solve_small(plan, settings, self.stop, progress)
            if found is not None:
                return found
        if are_small_pairs(plan, settings):
            found = solve_small_pairs(plan, settings, self.threads, progress)
            if found is not None:
                return found
        if takes_weights(plan, settings):
            with one_blas_thread():
                found = solve_through_weights(
                    plan, settings, self.map, self.stop, progress
                )
            if found is not None:
                return found
        return solve_plan(plan, settings, self.threads, progress)

    def features(self, X: Any, is_reused: bool = False) -> Features:
        """Return samples whose products with weights are computed in threads.

        ``is_reused`` says that there will be many of them.
        """
        self._is_brief = X.shape[0] * X.shape[1] <= BRIEF_ENTRIES
        return Features(X, self.map, is_reused)

    def solve_linear(
        self,
        X: Any,
        problems: LinearProblems,
        tol: float,
        max_iter: int,
        seed: int = 0,
        start: Start | None = None,
        progress: Progress | None = None,
    ) -> LinearFound:
        """Return certified solutions of linear problems through their weights.

        Parameters
        ----------
        X : array or CSR matrix
        problems : LinearProblems
        tol : float
            Largest gap, relative to the primal objective.
        max_iter : int
            Largest number of rounds or epochs.
        seed : int, default=0
            Seed of the order in which coordinate descent visits samples.
        start : Start, default=None
            Weights, shifts and coefficients to begin with.
        progress : callable, default=None
            It is called with the tasks after each round.
        """
        features = self.features(X, is_reused=True)
        # Small problems need no threads of ours, and gain nothing from those of BLAS.
        with one_blas_thread():
            return solve_linear(
                features, problems, tol, max_iter, seed, self.stop, start, progress
            )

    def solve_l1(self, X: Any, **problem: Any) -> LinearFound:
        """Return certified solutions of problems with an l1 penalty.

        See :func:`mercer.engines.cpu.linear.coordinates.solve_l1`.
        """
        return solve_l1(self.features(X), stop=self.stop, **problem)

    def solve_joint(self, X: Any, **problem: Any) -> LinearFound:
        """Return the certified machine of all classes jointly.

        See :func:`mercer.engines.cpu.linear.coordinates.solve_joint`.
        """
        return solve_joint(self.features(X), stop=self.stop, **problem)

    def refine(
        self,
        parts: Sequence[dict[str, NDArray]],
        kernel: Kernel,
        vectors: Any,
        support: NDArray,
        budget: int | None = None,
    ) -> list[tuple[float, float]]:
        """Return objectives, and changes of dual gaps, in double precision.

        See :func:`mercer.engines.cpu.certificates.refine`.
        """
        return refine(parts, kernel, vectors, support, self, budget)

    def good_order(self, X: Any) -> NDArray[np.intp] | None:
        """Return an order of the rows in which products take less time, if any."""
        return self.operand(X).good_order()

    def product(
        self,
        kernel: Kernel,
        X: Any,
        order: NDArray[np.intp] | None,
        cache_size: float | str,
        work: int = 0,
    ) -> Any:
        """Return the Gram matrix of samples, to be multiplied with vectors.

        Parameters
        ----------
        kernel : Kernel
            Bound to data.
        X : array or CSR matrix
        order : array of int or None
            The order in which the samples are meant.
        cache_size : float or "auto"
            See :meth:`memory`.
        work : int, default=0
            Bytes of this memory that are left to the caller.
        """
        n, d = X.shape
        self._is_brief = n <= BRIEF_ROWS and n * n * d <= BRIEF_WORK
        operand = self.operand(X, order)
        budget = self.memory(cache_size)
        return GramProduct(kernel, operand, budget, self.threads, work)

    def memory(self, cache_size: float | str = "auto") -> int:
        """Return the bytes that kernel values and scratch memory may take.

        Parameters
        ----------
        cache_size : float or "auto", default="auto"
            Megabytes; "auto" means a quarter of the memory that is free.
        """
        return budget_bytes(cache_size)
