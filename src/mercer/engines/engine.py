"""The interface of engines, and the choice of one.

An estimator says what is to be computed; an engine computes it, on the threads of the
processor or on another device.
"""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import NDArray

from mercer.engines.cpu.engine import CpuEngine
from mercer.engines.plan import Certified, Plan, Settings
from mercer.kernels.base import Kernel
from mercer.runtime.public import public
from mercer.runtime.validation import device_for, like, to_host

__all__ = ["Engine", "engine_of", "gram_matrix"]


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
    if device == "cpu":
        return CpuEngine(n_jobs)
    # What a card needs is loaded only when one is asked for.
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
    """Return the matrix of ``k(x_i, z_j)``, in tiles and threads.

    Parameters
    ----------
    kernel : Kernel
    X : array or CSR matrix of shape (m, d)
    Z : array or CSR matrix of shape (n, d), default=None
        None means X; then only one triangle is computed.
    n_jobs : int, default=None
        Threads; None means as many as BLAS may use.
    device : {"cpu", "cuda", "cuda:N"}, default="cpu"
        Where to compute: on the processor, or on a graphics card. Arrays that are on a
        card already are computed there, and give a result of their kind.

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
