"""What engines are asked, what they answer, and the choice of one.

An estimator states a plan: what is to be solved. An engine solves it, on the threads of
the processor or on another device, and returns certified solutions. A plan is a value:
nothing of it is computed later, nothing changes, and it can be solved by any engine,
alone or together with other plans on the same kernel values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem, Solution
from mercer.kernels.base import Kernel
from mercer.runtime.public import public
from mercer.runtime.validation import device_for, like, to_host

if TYPE_CHECKING:
    from mercer.engines.cpu.engine import CpuEngine

__all__ = [
    "Certified",
    "Engine",
    "Plan",
    "Settings",
    "TaskSpec",
    "all_of",
    "certified",
    "engine_of",
    "gram_matrix",
    "samples_of",
]

OnePlan = TypeVar("OnePlan", bound="Plan")


class Settings(NamedTuple):
    """How to solve."""

    solver: str = "auto"
    tol: float = 1e-3
    max_iter: int = -1
    cache_size: float | str = "auto"
    shrinking: bool = True
    seed: int = 0
    precise: bool = False  #: whether single precision must not be tried


class TaskSpec(NamedTuple):
    """A problem, and the blocks of samples that its rows are, in order."""

    problem: DualProblem
    blocks: tuple[int, ...]


@dataclass(frozen=True, eq=False, kw_only=True)
class Plan:
    """The problems of one fit, on samples that are sorted into blocks."""

    X: Any  #: the validated samples, or the given kernel matrix
    samples: Any  #: the samples as the kernel sees them, small sparse ones dense
    y: Any  #: the validated targets, for callbacks
    kernels: tuple[Kernel, ...]  #: bound to the samples; one, or those to be weighted
    specs: Sequence[TaskSpec]  #: the problems
    order: NDArray[np.intp]  #: the samples, block by block
    starts: list[int]  #: where each block begins, then the end
    learnt: dict[str, Any]  #: attributes that validation has found, by name
    #: each machine has so many problems: its own, then those of its folds
    per_machine: int = 1
    is_matrix: bool = False  #: whether the samples are the kernel matrix
    #: if given, it makes the whole kernel matrix from all samples
    function: Callable[[Any, Any], Any] | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel, where there is one."""
        return self.kernels[0]

    @property
    def machines(self) -> Sequence[TaskSpec]:
        """The problems of the machines, without those of folds."""
        return self.specs[:: self.per_machine]

    def gram_rows(self, spec: TaskSpec) -> NDArray[np.intp]:
        """Return the Gram rows of the samples that take part in a problem."""
        starts = self.starts
        return np.concatenate(
            [np.arange(starts[b], starts[b + 1]) for b in spec.blocks]
        )

    def rows(self, spec: TaskSpec) -> NDArray[np.intp]:
        """Return the samples that take part in a problem, in its order."""
        return self.order[self.gram_rows(spec)]

    def with_costs(self: OnePlan, factor: float) -> OnePlan:
        """Return the plan with all bounds multiplied by a factor, as by another C."""
        problems = [spec.problem for spec in self.specs]
        # One product for all problems: there may be thousands of small ones.
        lo = factor * np.concatenate([problem.lo for problem in problems])
        hi = factor * np.concatenate([problem.hi for problem in problems])
        specs, first = [], 0
        for spec, (p, _, _, start, row, group) in zip(
            self.specs, problems, strict=True
        ):
            own = slice(first, first := first + len(p))
            problem = DualProblem(p, lo[own], hi[own], start, row, group)
            specs.append(TaskSpec(problem, spec.blocks))
        return replace(self, specs=specs)


def samples_of(
    order: NDArray[np.intp], starts: Sequence[int], blocks: Sequence[Sequence[int]]
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Return the samples of several problems, one problem after the other.

    ``blocks`` has the blocks of each problem.  The second array says where the samples
    of each problem begin, then the end.
    """
    flat = np.fromiter(chain.from_iterable(blocks), np.intp)
    first, stop = np.asarray(starts)[flat], np.asarray(starts)[flat + 1]
    ends = np.cumsum(stop - first)
    places = np.arange(ends[-1]) + np.repeat(stop - ends, stop - first)
    last = np.cumsum(np.fromiter(map(len, blocks), np.intp)) - 1
    return order[places], np.append(0, ends[last])


class Certified(NamedTuple):
    """Certified solutions of all problems of a plan."""

    solutions: list[Solution]
    #: whether the machines' problems are convex; None if that is not known
    is_convex: bool | None
    stopped_early: bool = False  #: whether a callback asked for an early end
    #: of each machine that was solved in single precision, what its objective and dual
    #: gap can be computed from in double precision
    coarse: Sequence[dict[str, NDArray]] = ()


def certified(
    plan: Plan, solutions: Sequence[Solution], verdicts: Sequence[bool | None]
) -> Certified:
    """Note which machines' problems are convex: if one is not, no gap is a bound."""
    judged = list(solutions)
    for k, is_convex in enumerate(verdicts):
        if is_convex is False:
            t = k * plan.per_machine
            judged[t] = judged[t]._replace(dual_gap=np.inf)
    return Certified(judged, all_of(verdicts))


def all_of(verdicts: Sequence[bool | None]) -> bool | None:
    """Return False if a verdict is False, else None if one is None, else True."""
    if False in verdicts:
        return False
    return None if None in verdicts else True


class Engine(Protocol):
    """What all engines do.  Samples and results are arrays in the main memory."""

    def matrix(self, kernel: Kernel, X: Any, Z: Any = None) -> NDArray:
        """Return all kernel values of X and Z; with ``Z=None``, of X with itself."""
        ...

    def apply(
        self, kernel: Kernel, X: Any, Z: Any, V: Any, budget: int | None = None
    ) -> NDArray:
        """Return ``K(X, Z) @ V`` without the whole matrix ``K(X, Z)``."""
        ...

    def solve(self, plan: Plan, settings: Settings, progress: Any = None) -> Certified:
        """Return certified solutions of all problems of a plan."""
        ...

    def memory(self, cache_size: float | str = "auto") -> int:
        """Return the number of bytes that kernel values and scratch memory may take."""
        ...


def engine_of(
    X: Any = None, device: str = "cpu", n_jobs: int | None = None
) -> CpuEngine:
    """Return the engine for some samples; enter it with ``with`` before use.

    Parameters
    ----------
    X : array or CSR matrix, default=None
        The samples, in the main memory.
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        The device that computes: the processor, or a graphics card by its number.
    n_jobs : int, default=None
        Number of threads; None means as many as BLAS may use, -1 all cores.
    """
    del X
    # Engines are built on this module, and are loaded when they are asked for.
    if device == "cpu":
        from mercer.engines.cpu.engine import CpuEngine

        return CpuEngine(n_jobs)
    from mercer.engines.cuda.card import card_of
    from mercer.engines.cuda.engine import CudaEngine

    return CudaEngine(card_of(device), n_jobs)


@public("mercer")
def gram_matrix(
    kernel: Kernel,
    X: Any,
    Z: Any = None,
    *,
    n_jobs: int | None = None,
    device: str = "cpu",
) -> NDArray:
    """Return the matrix of ``k(x_i, z_j)``, computed in tiles and threads.

    Parameters
    ----------
    kernel : Kernel
        The kernel. Parameters that it leaves to the data, such as ``gamma="scale"``,
        are taken from Z, or from X if Z is None.
    X : array or CSR matrix of shape (m, n_features)
        The samples of the rows.
    Z : array or CSR matrix of shape (n, n_features), default=None
        The samples of the columns. None means X; then only one triangle is computed.
    n_jobs : int, default=None
        Number of threads; None means as many as BLAS may use. The result does not
        depend on it.
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        Where to compute: on the processor, or on a graphics card. Arrays that are on a
        card already are computed there, and give a result of their kind.

    Returns
    -------
    array of shape (m, n)

    Raises
    ------
    TypeError
        If ``kernel`` is a text or a function.
    ValueError
        If X and Z do not have the same columns.

    See Also
    --------
    mercer.plots.KernelMatrixDisplay : draws the matrix.
    mercer.kernels.Precomputed : a machine on a matrix that you have.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer import gram_matrix, kernels
    >>> gram_matrix(kernels.Intersection(), np.array([[1.0, 2.0], [3.0, 0.0]]))
    array([[3., 1.],
           [1., 3.]])
    """
    if not isinstance(kernel, Kernel):
        raise TypeError(
            f"gram_matrix takes a kernel of mercer.kernels, got {kernel!r}. Use "
            "kernels.parse for text, kernels.Custom for a function of two matrices."
        )
    device = device_for(device, X, Z)
    X_here, Z_here = to_host(X), to_host(Z)
    with engine_of(X_here, device, n_jobs) as engine:
        return like(X, engine.matrix(kernel, X_here, Z_here))
