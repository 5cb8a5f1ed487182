"""A carrier whose workers are plain objects, some of which can be lost."""

from __future__ import annotations

import pickle

import numpy as np
from sklearn.base import is_classifier

from mercer.dask.base import statement_of
from mercer.engines.cluster.chunks import ColumnSummary, summarise
from mercer.engines.cluster.driver import Driver, plan_working_sets
from mercer.engines.cluster.messages import Setup
from mercer.engines.cluster.shard import Failure, Missed, ShardGroup
from mercer.engines.cpu.engine import CpuEngine
from mercer.machines.base.machine import Validated

BUDGET = 2**26


class InProcess:
    """Deals chunks out to ``n_groups`` groups; messages are pickled on their way."""

    def __init__(self, chunks, n_groups=2, budget=BUDGET):
        self.chunks = chunks
        self.n_chunks = len(chunks)
        self.budget = budget
        self.places = {k: k % n_groups for k in range(len(chunks))}
        self.groups = {}
        self.setup = None
        self.on_exchange = None
        self.move_next: list[int] = []
        self.n_messages = 0
        self.error = None

    @property
    def copies(self):
        return len(self.groups)

    def _make(self, place, numbers):
        setup = pickle.loads(pickle.dumps(self.setup))
        chunks = [self.chunks[k] for k in numbers]
        self.groups[place] = ShardGroup(setup, numbers, chunks, self.budget)

    def begin(self, setup, chunks):
        self.setup = setup
        places = sorted({self.places[k] for k in chunks})
        for place in places:
            self._make(place, [k for k in chunks if self.places[k] == place])
        return self._collect(None, places)

    def _collect(self, message, places):
        replies = {}
        for place in places:
            if place not in self.groups:
                continue
            answer = self.groups[place].handle(pickle.loads(pickle.dumps(message)))
            if isinstance(answer, Failure):
                raise answer.error
            if not isinstance(answer, Missed):
                replies.update({reply.chunk: reply for reply in answer})
        return replies

    def exchange(self, message, chunks=None):
        self.n_messages += 1
        if self.on_exchange is not None:
            self.on_exchange(self, message)
        some = self.places if chunks is None else chunks
        return self._collect(message, sorted({self.places[k] for k in some}))

    def lose(self, place):
        self.groups.pop(place)

    def restore(self, chunks, message):
        place = max([*self.groups, *self.places.values()]) + 1
        self._make(place, list(chunks))
        self.places.update(dict.fromkeys(chunks, place))
        return self._collect(message, [place])

    def misplaced(self):
        found, self.move_next = self.move_next, []
        return found

    def release(self, chunks):
        for group in self.groups.values():
            group.release(chunks)

    def close(self):
        self.groups.clear()


def cut(n_chunks, X, y=None, weight=None):
    """Return chunks of rows, with weights of 1 unless others are given."""
    weight = np.ones(X.shape[0]) if weight is None else weight
    rows = np.array_split(np.arange(X.shape[0]), n_chunks)
    return [(X[r], None if y is None else y[r], weight[r]) for r in rows]


def drive(machine, carrier, working_set=200, max_restores=3, progress=None):
    """Solve the problems of a machine on a carrier; return the driver and solutions."""
    summaries = [summarise(c, is_classifier(machine)) for c in carrier.chunks]
    columns = ColumnSummary.of(summaries)
    statement = statement_of(machine, summaries)
    sets = plan_working_sets(working_set, columns.shape[1], statement.n_tasks)
    setup = Setup(
        machine._make_kernel(Validated(None, None, {}, None)).bind(columns),
        statement,
        np.cumsum([0] + [one.n_samples for one in summaries]).tolist(),
        machine.tol,
        sets.size * sets.n_active,
        machine.cache_size,
        1,
    )
    with CpuEngine(2) as engine:
        most = 10**7 if machine.max_iter < 0 else machine.max_iter
        driver = Driver(carrier, setup, sets, engine, most, max_restores, progress)
        return driver, driver.solve()
