"""One graphics card, as the rest of this package sees it.

All other modules are written against :class:`Card`: an array namespace ``xp``, copies
to the card and back, and compiled functions by their name. CuPy is imported here and
nowhere else, and only when a card is asked for. The tests put NumPy in the place of
CuPy, so that the same code runs on machines without a card.
"""

from __future__ import annotations

import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.engines.cuda import sources
from mercer.runtime.devices import card_number

__all__ = [
    "Card",
    "CudaCard",
    "Launch",
    "card_of",
    "check_arguments",
    "open_card",
    "to_card_together",
]

#: runs a compiled function: ``launch(grid, block, arguments)``, where the arguments are
#: arrays on the card and NumPy scalars
Launch = Callable[[tuple[int, ...], tuple[int, ...], tuple[Any, ...]], None]

# A model that was saved with device="cuda" asks for a card wherever it is loaded.
FOR_A_MODEL = "mercer.load(path, device='cpu') does so for a saved model"
# This part of the free memory of a card is left to others, such as a display.
MARGIN = 0.1
# Bytes that are left to others at least.
LEAST_MARGIN = 256 * 2**20


class Card:
    """What Mercer asks of a card.

    Attributes
    ----------
    xp : module
        The array functions: CuPy.
    sparse : module
        Sparse matrices on the card, as ``scipy.sparse`` names them.
    name : str
        What messages call the card.
    """

    xp: Any
    sparse: Any
    name: str
    #: the error that ``xp`` raises when no memory is left
    out_of_memory: type[BaseException] = MemoryError

    def to_card(self, array: Any) -> Any:
        """Return a dense or CSR matrix on the card; one that is there is not copied."""
        raise NotImplementedError

    def to_host(self, array: Any) -> Any:
        """Return a NumPy array or a CSR matrix of SciPy."""
        raise NotImplementedError

    def is_here(self, array: Any) -> bool:
        """Tell whether an array, dense or CSR, is on the card."""
        raise NotImplementedError

    def function(self, name: str) -> Launch:
        """Return a function of ``engines/cuda/sources.py``, compiled for the card."""
        raise NotImplementedError

    def free_memory(self) -> int:
        """Return the bytes that arrays on the card may still take."""
        raise NotImplementedError

    def held_memory(self) -> int:
        """Return the bytes that the process holds, for arrays that are gone too.

        Memory of arrays that are gone is given to new ones, so this is the most that
        arrays have taken since :meth:`release_memory`.
        """
        raise NotImplementedError

    def release_memory(self) -> None:
        """Give memory of arrays that are gone back to the card."""

    def synchronize(self) -> None:
        """Wait until the card has done all that it was asked for."""

    def _current(self) -> AbstractContextManager:
        """Return the context in which this card is the current one."""
        return nullcontext()

    def memory(self, cache_size: float | str = "auto") -> int:
        """Return the bytes that kernel values and scratch memory may take.

        Parameters
        ----------
        cache_size : float or "auto", default="auto"
            Megabytes; "auto" means what is free on the card, less a margin.
        """
        if cache_size != "auto":
            return int(float(cache_size) * 2**20)
        free = self.free_memory()
        margin = min(free // 2, max(LEAST_MARGIN, int(MARGIN * free)))
        return max(0, free - margin)

    @contextmanager
    def at_work(self, cache_size: float | str = "auto") -> Iterator[None]:
        """Make the card the current one; say what to do if its memory is used up."""
        try:
            with self._current():
                yield
        except self.out_of_memory as error:
            raise MemoryError(
                f"{self.name} has no memory left: {error} Kernel values had "
                f"cache_size={cache_size!r}. Set cache_size to fewer megabytes than "
                f"are free on the card, {self.free_memory() / 2**20:.0f} now, end "
                "other programs that use the card, or use device='cpu'."
            ) from error


class CudaCard(Card):
    """A card of NVIDIA, through CuPy.

    Parameters
    ----------
    index : int
        The number of the card, from 0.
    """

    def __init__(self, index: int):
        self.xp = cupy = _import_cupy()
        self.sparse = importlib.import_module("cupyx.scipy.sparse")
        _check_index(cupy, index)
        self._device = cupy.cuda.Device(index)
        self.name = f"The graphics card cuda:{index}"
        self.out_of_memory = cupy.cuda.memory.OutOfMemoryError
        self._module: Any = None
        self._functions: dict[str, Launch] = {}
        self._lock = threading.Lock()

    def _current(self) -> AbstractContextManager:
        return self._device

    def to_card(self, array: Any) -> Any:
        if self.is_here(array):
            return array
        with self._device:
            if sparse.issparse(array):
                return self.sparse.csr_matrix(sparse.csr_matrix(array))
            return self.xp.asarray(array, order="C")

    def to_host(self, array: Any) -> Any:
        if not self.is_here(array):
            return array
        with self._device:
            return array.get()

    def is_here(self, array: Any) -> bool:
        return isinstance(array, self.xp.ndarray) or self.sparse.issparse(array)

    def function(self, name: str) -> Launch:
        with self._lock:
            if name not in self._functions:
                self._functions[name] = self._compiled(name)
            return self._functions[name]

    def _compiled(self, name: str) -> Launch:
        with self._device:
            if self._module is None:
                self._module = self.xp.RawModule(
                    code=sources.SOURCE, options=sources.OPTIONS
                )
            kernel = self._module.get_function(name)

        def launch(grid: tuple, block: tuple, arguments: tuple) -> None:
            check_arguments(self, name, arguments)
            kernel(grid, block, arguments)

        return launch

    def free_memory(self) -> int:
        with self._device:
            pool = self.xp.get_default_memory_pool()
            free, _ = self.xp.cuda.runtime.memGetInfo()
            # The pool keeps memory of arrays that are gone, and gives it out again.
            free += pool.free_bytes()
            limit = pool.get_limit()
            return min(free, limit - pool.used_bytes()) if limit else free

    def held_memory(self) -> int:
        with self._device:
            return self.xp.get_default_memory_pool().total_bytes()

    def release_memory(self) -> None:
        with self._device:
            self.xp.get_default_memory_pool().free_all_blocks()

    def synchronize(self) -> None:
        self._device.synchronize()


# Arrays that are copied to the card together begin at multiples of so many bytes.
ALIGNMENT = 16


def to_card_together(card: Card, *arrays: NDArray) -> list[Any]:
    """Copy small arrays of one dimension to the card; many take as long as one."""
    sizes = [-(-array.nbytes // ALIGNMENT) * ALIGNMENT for array in arrays]
    ends = np.cumsum(sizes)
    together = np.zeros(int(ends[-1]), dtype=np.uint8)
    begins = [int(end - size) for end, size in zip(ends, sizes, strict=True)]
    for begin, array in zip(begins, arrays, strict=True):
        together[begin : begin + array.nbytes] = array.view(np.uint8)
    there = card.to_card(together)
    return [
        there[begin : begin + array.nbytes].view(array.dtype)
        for begin, array in zip(begins, arrays, strict=True)
    ]


def check_arguments(card: Card, name: str, arguments: tuple[Any, ...]) -> None:
    """Refuse what a compiled function cannot take, or would read with a wrong type."""
    for k, value in enumerate(arguments):
        if not (isinstance(value, np.generic) or card.is_here(value)):
            raise TypeError(
                f"Argument {k} of {name} is {type(value).__name__}; a compiled "
                "function takes arrays on the card and NumPy scalars."
            )
        if not (isinstance(value, np.generic) or value.flags.c_contiguous):
            raise ValueError(
                f"Argument {k} of {name} is not in C order, in which a compiled "
                "function reads arrays."
            )


_opened: dict[int, CudaCard] = {}
_opening = threading.Lock()


def open_card(index: int) -> Card:
    """Return a card by its number; it is opened once, and its functions stay compiled.

    Without CuPy or a card, an error says what is missing.
    """
    with _opening:
        if index not in _opened:
            _opened[index] = CudaCard(index)
        return _opened[index]


def card_of(device: str) -> Card:
    """Return the card that "cuda" or "cuda:N" names."""
    return open_card(card_number(device))


def _import_cupy() -> Any:
    try:
        return importlib.import_module("cupy")
    except ImportError as error:
        raise ImportError(
            "device='cuda' needs the package CuPy, which is not installed: run "
            "pip install cupy-cuda13x, or cupy-cuda12x if the driver supports CUDA 12 "
            f"only, or use device='cpu'; {FOR_A_MODEL}. ({error})"
        ) from error


def _check_index(cupy: Any, index: int) -> None:
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise OSError(
            "device='cuda' needs an NVIDIA graphics card and its driver, and CuPy "
            f"finds none: {error}. Run nvidia-smi to see whether the driver sees the "
            f"card, or use device='cpu'; {FOR_A_MODEL}."
        ) from error
    if index >= count:
        numbers = "'cuda:0'" if count == 1 else f"'cuda:0' to 'cuda:{count - 1}'"
        raise ValueError(
            f"device='cuda:{index}' was asked for; this machine has {numbers}."
        )
