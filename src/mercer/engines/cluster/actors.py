"""Shards on Dask workers: an actor for each worker, with all chunks of that worker.

Chunks are futures of Dask, which knows how to compute them again if a worker is lost.
Calls of actors do not go through the scheduler, so that a round costs a few
milliseconds.  A worker counts as lost if a call fails, if the scheduler no longer knows
it, or if the scheduler has not heard from it for a long time.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from concurrent.futures import CancelledError
from contextlib import suppress
from typing import Any
from uuid import uuid4

import dask
from dask.utils import parse_timedelta
from distributed import Client, Future, get_worker, wait

from mercer.engines.cluster.messages import Message, Reply, Restore, Setup
from mercer.engines.cluster.shard import Failure, Missed, ShardGroup
from mercer.engines.cpu.tiles import budget_bytes

__all__ = ["ActorCarrier", "WorkerShards", "assign"]

# Seconds between two looks at the list of workers: while an answer is awaited, and for
# workers that have joined.
LOOK_EVERY = 5.0
JOIN_EVERY = 2.0
# Share of a worker's memory for kernel values, if the user gives no number.
MEMORY_PART = 4
# A worker with at most this many times its fair share of samples is not overloaded.
TOLERATED = 1.05


class WorkerShards(ShardGroup):
    """The shards of one Dask worker; an actor."""

    def __init__(self, setup: Setup, numbers: Sequence[int], chunks: Sequence[tuple]):
        worker = get_worker()
        budget = budget_bytes(setup.cache_size)
        limit = worker.memory_manager.memory_limit
        if setup.cache_size == "auto" and limit:
            budget = min(budget, limit // MEMORY_PART)
        n_jobs = worker.state.nthreads if setup.n_jobs is None else setup.n_jobs
        super().__init__(setup._replace(n_jobs=n_jobs), numbers, chunks, budget)


def assign(
    sizes: Mapping[int, int],
    owners: Mapping[int, Collection[str]],
    workers: Sequence[str],
    load: Mapping[str, int],
) -> dict[int, str]:
    """Choose a worker for each chunk: one that has it, unless that has too much.

    Parameters
    ----------
    sizes : dict
        The number of samples of each chunk that needs a worker.
    owners : dict
        The workers that have a chunk in memory.
    workers : sequence of str
        The addresses of all workers.
    load : dict
        The number of samples that workers have besides.
    """
    total = {worker: load.get(worker, 0) for worker in workers}
    fair = (sum(total.values()) + sum(sizes.values())) / len(workers)
    found = {}
    for chunk in sorted(sizes, key=lambda k: (-sizes[k], k)):
        own = [worker for worker in workers if worker in owners.get(chunk, ())]
        place = min(own or workers, key=lambda worker: total[worker])
        if total[place] + sizes[chunk] > max(TOLERATED * fair, sizes[chunk]):
            place = min(workers, key=lambda worker: total[worker])
        found[chunk] = place
        total[place] += sizes[chunk]
    return found


class _Group:
    """An actor, and the chunks that it has."""

    def __init__(self, numbers: list[int], future: Future):
        self.numbers = numbers
        self.future = future
        self.actor: Any = None
        self.address = ""


class ActorCarrier:
    """Keeps shards in actors of a Dask cluster.

    Parameters
    ----------
    client : Client
    chunks : sequence of Future
        Validated samples, targets and weights.
    sizes : sequence of int
        The number of samples of each chunk.
    name : str
        What the tasks are called on the dashboard.
    """

    def __init__(
        self, client: Client, chunks: Sequence[Future], sizes: Sequence[int], name: str
    ):
        self._client = client
        self._chunks = list(chunks)
        self._sizes = list(sizes)
        self._name = name
        self.n_chunks = len(self._chunks)
        self._groups: list[_Group] = []
        self._setup: Setup | None = None
        self.error: Exception | None = None
        self._looked = time.monotonic()
        ttl = dask.config.get("distributed.scheduler.worker-ttl") or "5 minutes"
        self._patience = parse_timedelta(ttl)
        self._direct = client.direct_to_workers
        client.direct_to_workers = True

    @property
    def copies(self) -> int:
        """To how many workers a message goes."""
        return len(self._groups)

    def begin(self, setup: Setup, chunks: Sequence[int]) -> dict[int, Reply]:
        """Make shards; chunks whose worker is lost meanwhile have no answer."""
        self._setup = setup
        return self._deliver(None, self._make(chunks))

    def exchange(
        self, message: Message, chunks: Sequence[int] | None = None
    ) -> dict[int, Reply]:
        """Deliver a message; chunks whose worker is lost have no answer."""
        groups = self._groups
        if chunks is not None:
            groups = [g for g in groups if set(g.numbers) & set(chunks)]
        return self._deliver(message, groups)

    def restore(self, chunks: Sequence[int], message: Restore) -> dict[int, Reply]:
        """Make shards anew, from chunks that Dask computes again if necessary."""
        return self._deliver(message, self._make(chunks))

    def misplaced(self) -> list[int]:
        """Return chunks that a worker without any should take over."""
        now = time.monotonic()
        if now - self._looked < JOIN_EVERY:
            return []
        self._looked = now
        load = self._load()
        workers = self._workers()
        if not any(load.get(worker, 0) == 0 for worker in workers):
            return []
        # As many chunks leave each worker as it has too many.
        fair = sum(self._sizes) / len(workers)
        found = []
        for group in self._groups:
            excess = load[group.address] - fair
            for number in group.numbers[1:]:
                if self._sizes[number] <= excess * TOLERATED:
                    found.append(number)
                    excess -= self._sizes[number]
                    load[group.address] -= self._sizes[number]
        return found

    def release(self, chunks: Sequence[int]) -> None:
        """Give up the shards of some chunks."""
        for group in list(self._groups):
            given_up = [k for k in group.numbers if k in chunks]
            group.numbers = [k for k in group.numbers if k not in chunks]
            if not group.numbers:
                self._drop(group)
            elif given_up:
                # A worker that is lost meanwhile is noticed in the next round.
                with suppress(Exception):
                    group.actor.release(given_up).result(timeout=self._patience)

    def close(self) -> None:
        """Remove the actors from the workers."""
        self._client.direct_to_workers = self._direct
        groups, self._groups = self._groups, []
        futures = [group.future for group in groups]
        if futures and self._client.status == "running":
            self._client.cancel(futures, force=True)

    def _workers(self) -> list[str]:
        return sorted(self._client.scheduler_info(n_workers=-1)["workers"])

    def _load(self) -> dict[str, int]:
        """Return how many samples each worker has."""
        load: dict[str, int] = {}
        for group in self._groups:
            own = sum(self._sizes[k] for k in group.numbers)
            load[group.address] = load.get(group.address, 0) + own
        return load

    def _make(self, chunks: Iterable[int]) -> list[_Group]:
        """Start actors for some chunks, on workers that have them if possible."""
        numbers = list(chunks)
        owners = self._owners(numbers)
        workers = self._workers()
        if not workers:
            raise RuntimeError(
                "The cluster has no workers. Start some, for example with "
                "cluster.scale, and fit again."
            )
        places = assign(
            {k: self._sizes[k] for k in numbers}, owners, workers, self._load()
        )
        made = []
        for worker in sorted(set(places.values())):
            own = [k for k in numbers if places[k] == worker]
            # The worker may be gone by now: another one may take its place.
            future = self._client.submit(
                WorkerShards,
                self._setup,
                own,
                [self._chunks[k] for k in own],
                actor=True,
                key=f"{self._name}-{uuid4().hex}",
                workers=[worker],
                allow_other_workers=True,
            )
            made.append(_Group(own, future))
        self._groups += made
        alive = []
        for group in made:
            try:
                actor = group.future.result()
            except Exception as error:
                self._drop(group, error)
                continue
            # Dask would use the current client, which may be another one.
            actor._client, actor._future = self._client, group.future
            group.actor, group.address = actor, actor._address
            alive.append(group)
        return alive

    def _owners(self, numbers: Sequence[int]) -> dict[int, Collection[str]]:
        """Wait until chunks are in memory, and return the workers that have them."""
        futures = [self._chunks[k] for k in numbers]
        while True:
            self._await_chunks(numbers)
            with suppress(CancelledError):  # the loss of a chunk has just been noticed
                has = self._client.who_has(futures)
                return {k: has.get(self._chunks[k].key, ()) for k in numbers}

    def _await_chunks(self, numbers: Sequence[int]) -> None:
        """Wait until chunks are in memory; Dask computes lost ones again."""
        for k in numbers:
            future = self._chunks[k]
            status: str | None = "pending"
            # A chunk may be lost just after it was found: Dask then computes it again,
            # or cancels it if there is nothing to compute it from.
            while status not in ("finished", "cancelled", "error"):
                with suppress(CancelledError):  # the status says so
                    wait([future])
                status = future.status
            if status == "error":
                future.result()
            if status == "cancelled":
                raise RuntimeError(
                    f"Chunk {k} of the samples is lost with the worker that had it, "
                    "and Dask cannot compute it again: it was sent to the cluster "
                    "with scatter. Build the collection from a source that Dask can "
                    "read again, such as files or da.from_array."
                )

    def _deliver(
        self, message: Message | None, groups: Iterable[_Group]
    ) -> dict[int, Reply]:
        """Call actors at the same time, and collect the answers of those alive."""
        calls = []
        for group in list(groups):
            try:
                calls.append((group, group.actor.handle(message)))
            except Exception as error:
                self._drop(group, error)
        replies: dict[int, Reply] = {}
        for group, call in calls:
            answer = self._await_answer(group, call)
            if isinstance(answer, Failure):
                raise answer.error
            if isinstance(answer, Missed):
                self._drop(group)
                continue
            replies.update({reply.chunk: reply for reply in answer})
        return replies

    def _await_answer(self, group: _Group, call: Any) -> Any:
        """Wait for an answer for as long as the worker shows signs of life."""
        while True:
            try:
                return call.result(timeout=LOOK_EVERY)
            except Exception as error:
                if call.done() or not self._is_alive(group.address):
                    self._drop(group, error)
                    return []

    def _is_alive(self, address: str) -> bool:
        """Tell whether the scheduler has heard from a worker lately."""
        workers = self._client.scheduler_info(n_workers=-1)["workers"]
        if address not in workers:
            return False
        if time.time() - workers[address]["last_seen"] <= self._patience:
            return True
        # The scheduler would go on asking a frozen worker for its data.
        try:
            self._client.run_on_scheduler(_remove_worker, address=address)
        except Exception as error:
            raise RuntimeError(
                f"The worker {address} has been silent for {self._patience:g} s, and "
                "the scheduler does not give it up. End the worker, and fit again."
            ) from error
        return False

    def _drop(self, group: _Group, error: Exception | None = None) -> None:
        """Forget an actor that an error has lost, or that is not needed any more."""
        self.error = error or self.error
        self._groups = [other for other in self._groups if other is not group]
        group.actor = None
        with suppress(Exception):
            self._client.cancel([group.future], force=True)


async def _remove_worker(address: str, dask_scheduler: Any = None) -> None:
    stimulus = f"mercer-frozen-worker-{time.time()}"
    await dask_scheduler.remove_worker(address, stimulus_id=stimulus)
