"""Units of work: entries that share a Gram matrix, and the problems they want solved.

A job gathers the kernel values of the samples of some problems, and solves on them all
that differ in their bounds only: chains through the candidates.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mercer.kernels.base import Kernel
from mercer.selection.path import Link, Solved, gathered, sampled, solve_chain
from mercer.selection.samples import Samples
from mercer.selection.stored import SharedGram

__all__ = ["Answers", "Entry", "Job", "Unit", "jobs_of", "solve_job"]

# Chains that one job solves on a matrix that it gathers.
CHAINS_PER_JOB = 4

Answers = dict[tuple[int, int], Solved]  #: by entry (its id) and problem


@dataclass(eq=False)
class Entry:
    """One candidate on one split."""

    candidate: int
    split: int
    model: Any  #: the shared machine
    whole: Any  #: the candidate, of which the machine may be the last step only
    seconds: float = 0.0
    failure: Exception | None = None  #: why the shared fit did not come to an end

    @property
    def has_failed(self) -> bool:
        """Tell whether the shared fit did not come to an end."""
        return self.failure is not None


@dataclass(eq=False)
class Unit:
    """Entries with one kernel on the same samples."""

    samples: Samples
    kernel: Kernel
    entries: list[Entry] = field(default_factory=list)
    gram: SharedGram | None = None


class Job(NamedTuple):
    """Chains of problems on the same samples."""

    gram: SharedGram
    rows: NDArray[np.intp]  #: of the Gram matrix
    chains: list[list[tuple[Entry, int]]]

    @property
    def size(self) -> int:
        """A measure of the work."""
        return len(self.rows) * sum(map(len, self.chains))


def jobs_of(unit: Unit) -> list[Job]:
    """Bring together the problems of a unit that are about the same samples."""
    if unit.gram is None:
        return []
    chains: dict[tuple, dict[tuple, list[tuple[Entry, int]]]] = {}
    for entry in unit.entries:
        if entry.has_failed:
            continue
        tasks = entry.model._given.tasks
        for t, spec in enumerate(tasks.specs):
            # The blocks are the classes, or there is one of all samples.
            key = (entry.split, len(tasks.starts), spec.blocks)
            # Of one kind, problems have the same variables.
            kind = (type(entry.model), len(tasks.specs), t)
            chains.setdefault(key, {}).setdefault(kind, []).append((entry, t))
    jobs = []
    for alike in chains.values():
        lists = list(alike.values())
        entry, t = lists[0][0]
        given = entry.model._given
        rows = given.fold.train[given.tasks.samples(given.tasks.specs[t])]
        for first in range(0, len(lists), CHAINS_PER_JOB):
            part = lists[first : first + CHAINS_PER_JOB]
            jobs.append(Job(unit.gram, rows, part))
    return jobs


def solve_job(job: Job, stop: NDArray, room: int | None = None) -> Answers:
    """Solve all problems of a job; shrinking may copy ``room`` bytes."""
    square = gathered(job.gram.matrix, job.rows)
    exact = sampled(job.gram, job.rows)
    answers: Answers = {}
    for chain in job.chains:
        links = [
            Link(
                entry.model._given.tasks.specs[t].problem,
                entry.model.tol,
                entry.model.max_iter,
                entry.model.shrinking,
            )
            for entry, t in chain
        ]
        found = solve_chain(square, exact, links, stop, room)
        for (entry, t), solved in zip(chain, found, strict=True):
            answers[id(entry), t] = solved
    return answers
