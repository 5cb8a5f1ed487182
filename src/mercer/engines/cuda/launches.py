"""Pair steps on a card: problems side by side, in launches that are short.

A launch cannot be interrupted, and a card that also drives a display ends launches that
take seconds. So each launch takes a limited number of steps, as many as fit a tenth of
a second by the time that the latest launch has taken; between launches, progress is
reported, and the user can end the fit. How steps are divided among launches does not
change what they compute.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.core.problem import DualProblem
from mercer.engines.cuda.card import Card, to_card_together
from mercer.engines.cuda.sources import GOES_ON, MOST_THREADS, STALLED, typed

__all__ = ["Launcher", "Outcomes", "Packed", "pack"]

# Steps of the first launch, and the seconds that a launch may take.
FIRST_STEPS = 1000
SECONDS = 0.1
MOST_STEPS_AT_ONCE = 1_000_000
# Bytes of the results of one problem: steps, gap and state.
RESULTS = (8, 8, 4)
# A block has whole warps, and a thread for so many variables of the largest problem.
# With one or four, steps on 1,024 variables took up to a tenth longer on one H200.
WARP = 32
VARIABLES = 2


class Packed(NamedTuple):
    """Problems side by side, as ``code/pair_steps.cu`` wants them."""

    first_group: Any  #: the groups of each problem
    group_start: Any  #: the variables of each group
    column: Any  #: the place of each variable in its matrix
    diagonal: Any
    lo: Any
    hi: Any
    beta: Any
    gradient: Any
    ways: Any
    n_problems: int
    largest: int  #: variables of the largest problem


class Outcomes(NamedTuple):
    """How a run has ended, for each problem."""

    steps: NDArray[np.int64]
    gap: NDArray[np.float64]
    stalled: NDArray[np.bool_]

    def of(self, problem: int) -> tuple[int, float, bool]:
        """Return how one problem has ended."""
        steps, gap, stalled = (column[problem] for column in self)
        return int(steps), float(gap), bool(stalled)


def pack(
    card: Card,
    dtype: np.dtype,
    groups: Sequence[NDArray],
    arrays: dict[str, Any],
) -> Packed:
    """Lay problems out side by side.

    Parameters
    ----------
    card : Card
    dtype : dtype
        The precision of kernel values.
    groups : list of arrays
        Number of variables in each group of each problem.
    arrays : dict
        The arrays on the card that are named in :class:`Packed`, from ``column`` to
        ``gradient``, of all variables.
    """
    sizes = np.concatenate([*groups]).astype(np.int64)
    first = np.cumsum([0, *(len(own) for own in groups)])
    start = np.append(0, np.cumsum(sizes))
    if start[-1] > np.iinfo(np.int32).max:
        raise MemoryError(
            f"The problems of this fit have {start[-1]} variables together, and a card "
            "takes 2147483647 at once. Use device='cpu'."
        )
    first_there, start_there = to_card_together(
        card, first.astype(np.int32), start.astype(np.int32)
    )
    return Packed(
        first_there,
        start_there,
        arrays["column"].astype(np.int32, copy=False),
        arrays["diagonal"].astype(dtype, copy=False),
        arrays["lo"],
        arrays["hi"],
        arrays["beta"],
        arrays["gradient"],
        card.xp.empty(int(start[-1]), dtype=np.uint8),
        len(groups),
        max(int(own.sum()) for own in groups),
    )


def _as_results(memory: Any, n: int) -> tuple[Any, Any, Any]:
    """Return steps, gaps and states of n problems, which share memory."""
    ends = np.cumsum(np.multiply(RESULTS, n)).tolist()
    return (
        memory[: ends[0]].view(np.int64),
        memory[ends[0] : ends[1]].view(np.float64),
        memory[ends[1] : ends[2]].view(np.int32),
    )


def group_sizes(problem: DualProblem) -> NDArray:
    """Return the number of variables in each group of a problem."""
    return np.bincount(problem.group)


class Launcher:
    """Takes pair steps on problems, launch by launch.

    Parameters
    ----------
    card : Card
    stop : array
        ``stop[0]`` becomes 1 when the work is to end early.
    """

    def __init__(self, card: Card, stop: NDArray):
        self._card = card
        self._stop = stop
        self._most = FIRST_STEPS  #: steps of the next launch

    def run(
        self,
        matrix: Any,
        leading: int,
        apart: int,
        packed: Packed,
        tolerance: NDArray,
        most_steps: NDArray,
        after_launch: Callable[[NDArray, NDArray, NDArray], None] | None = None,
    ) -> Outcomes:
        """Take steps until each problem is solved, has stalled, or has had its steps.

        ``packed.beta`` and ``packed.gradient`` change in place. ``after_launch`` gets
        the number of steps so far, the gap, and whether steps go on, of each problem.
        """
        function = self._card.function(typed("take_pair_steps", matrix.dtype))
        n = packed.n_problems
        # One piece of memory, so that one copy brings all results.
        results = self._card.xp.zeros(n * sum(RESULTS), dtype=np.uint8)
        steps, gap, state = _as_results(results, n)
        taken, gaps = np.zeros(n, dtype=np.int64), np.full(n, np.inf)
        states = np.full(n, GOES_ON, dtype=np.int32)
        threads = -(-packed.largest // (VARIABLES * WARP)) * WARP
        threads = min(max(threads, WARP), MOST_THREADS)
        active = np.arange(n, dtype=np.int32)
        while len(active) and not self._stop[0]:
            allowed = np.clip(most_steps - taken, 0, self._most)
            began = time.perf_counter()
            which, limit, most = to_card_together(
                self._card, active, tolerance.astype(np.float64),
                allowed.astype(np.int32),
            )  # fmt: skip
            function(
                (len(active),),
                (threads,),
                (
                    matrix, np.int64(leading), np.int64(apart), which, *packed[:-2],
                    limit, most, steps, gap, state,
                ),
            )  # fmt: skip
            # This copy waits until the launch has ended.
            taken, gaps, states = _as_results(self._card.to_host(results), n)
            self._adapt(time.perf_counter() - began)
            goes_on = (states == GOES_ON) & (taken < most_steps)
            active = np.flatnonzero(goes_on).astype(np.int32)
            if after_launch is not None:
                after_launch(taken, gaps, goes_on)
        return Outcomes(taken, gaps, states == STALLED)

    def _adapt(self, seconds: float) -> None:
        """Choose the steps of the next launch by the time of the latest."""
        factor = SECONDS / max(seconds, 1e-9)
        most = int(self._most * min(max(factor, 0.25), 4.0))
        self._most = min(max(most, 1), MOST_STEPS_AT_ONCE)
