"""What a driver and its shards tell each other.

A shard has some of the samples.  All shards get the same messages; each message has a
number, so that a shard can recognise one that is delivered twice, and notice that it
has missed one.

Samples have numbers, their rows in the whole matrix.  A problem has one or two
variables for each sample: variable ``k`` of sample ``i`` is ``i * per_sample + k``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from mercer.core.problem import DualProblem
from mercer.kernels.base import Kernel

__all__ = [
    "Ask",
    "Certify",
    "Facts",
    "Look",
    "Message",
    "Move",
    "Part",
    "Reply",
    "Restore",
    "Round",
    "Rows",
    "Setup",
    "Statement",
    "SumGaps",
    "Sums",
    "TellLeftOut",
    "n_bytes",
]


class Facts(NamedTuple):
    """What is known about samples beside their features."""

    target: NDArray[np.float64]  #: the number of the class, or the value
    weight: NDArray[np.float64]
    fold: NDArray[np.intp]  #: the fold of a calibration

    def take(self, index: Any) -> Facts:
        """Return the facts about some of the samples."""
        return Facts(*(values[index] for values in self))


class Part(NamedTuple):
    """What a problem is for some samples."""

    rows: NDArray[np.intp]  #: which of the samples take part, in ascending order
    problem: DualProblem


class Statement(Protocol):
    """Says what the problems are; shards and the driver ask it about their samples."""

    n_tasks: int
    per_machine: int  #: problems of each machine: its own, then those of its folds
    per_sample: int  #: variables of each sample that takes part
    by_class: bool  #: whether a problem leaves out some classes
    folds_seed: int | None  #: seed of the folds, if there are folds

    def encode(self, targets: Any, n_samples: int) -> NDArray[np.float64]:
        """Return a number for each target: that of its class, or its value."""
        ...

    def part(self, task: int, facts: Facts) -> Part:
        """Return what problem ``task`` is for some samples."""
        ...


class Setup(NamedTuple):
    """What a shard has to know before the first message."""

    kernel: Kernel
    statement: Statement
    offsets: Sequence[int]  #: the number of the first sample of each chunk
    tol: float
    capacity: int  #: samples that all working sets have together at most
    cache_size: float | str  #: for the kernel values of one worker
    n_jobs: int | None  #: threads of one worker


class Rows(NamedTuple):
    """Samples with their numbers."""

    ids: NDArray[np.int64]
    X: Any


@dataclass
class Ask:
    """Asks for the state of a problem."""

    task: int
    members: NDArray[np.int64]  #: variables of the working set
    count: int  #: how many variables each shard may propose for either side
    least: float  #: the extremes of the gradient when they were last known
    most: float


@dataclass
class Move:
    """The changes that a problem's working set has made."""

    task: int
    members: NDArray[np.int64]
    change: NDArray[np.float64]
    beta: NDArray[np.float64]  #: the new values


@dataclass
class Message:
    """The base of all messages."""

    number: int


@dataclass
class Round(Message):
    """Brings a shard up to date, and asks what to do next."""

    coming: Rows | None  #: samples that enter working sets
    leaving: NDArray[np.int64]  #: samples that have left all working sets
    forgotten: NDArray[np.int64]  #: samples that the driver no longer has
    moves: list[Move]
    asks: list[Ask]
    tol: float


@dataclass
class Restore(Message):
    """Everything that a shard without memory needs to go on."""

    vectors: Rows  #: all samples with coefficients
    beta: list[tuple[NDArray, NDArray]]  #: for each problem, variables and values
    members: Rows  #: samples of the working sets
    asks: list[Ask]
    tol: float
    precise: bool  #: whether kernel values must have double precision


@dataclass
class Certify(Message):
    """Asks how exact the solutions are."""

    vectors: Rows
    beta: list[tuple[NDArray, NDArray]]


@dataclass
class SumGaps(Message):
    """Asks for a shard's part of the dual gaps."""

    multipliers: NDArray[np.float64]


@dataclass
class TellLeftOut(Message):
    """Asks for decision values of samples in the folds that left them out."""

    machine: int  #: its problems are this one and one for each fold
    biases: NDArray[np.float64]  #: one for each fold


@dataclass
class Look:
    """What a shard knows of a problem."""

    task: int
    least: float  #: least gradient of variables that may grow
    most: float  #: largest gradient of variables that may shrink
    candidates: NDArray[np.int64]  #: variables that violate strongly
    f: NDArray[np.float64]
    positions: NDArray[np.intp]  #: members of the working set that are here
    member_f: NDArray[np.float64]


class Sums(NamedTuple):
    """A shard's part of the certificates, with an entry for each problem."""

    error: NDArray  #: largest rounding error that was found
    objective: NDArray
    least: NDArray
    most: NDArray
    n_free: NDArray
    total_free: NDArray  #: sum of the gradient over free variables
    start: NDArray  #: sum of the start


@dataclass
class Reply:
    """What a shard answers."""

    chunk: int
    looks: list[Look] = field(default_factory=list)
    rows: Rows | None = None  #: samples that the driver does not have yet
    facts: Facts | None = None
    sums: Any = None
    start: list[tuple[NDArray, NDArray]] | None = None  #: non-zero starts of problems
    seconds: float = 0.0  #: what the whole answer of a worker took, in its first reply


def n_bytes(thing: Any) -> int:
    """Return the size of the arrays in a message or reply."""
    if isinstance(thing, np.ndarray):
        return thing.nbytes
    if sparse.issparse(thing):
        return thing.data.nbytes + thing.indices.nbytes + thing.indptr.nbytes
    if is_dataclass(thing):
        return sum(n_bytes(getattr(thing, part.name)) for part in fields(thing))
    if isinstance(thing, list | tuple):
        return sum(map(n_bytes, thing))
    return 8 if isinstance(thing, int | float) else 0
