"""The interface of what carries messages to shards and their answers back."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

from mercer.engines.cluster.messages import Message, Reply, Restore, Setup

__all__ = ["Carrier"]


class Carrier(Protocol):
    """Keeps shards on workers, and knows where they are."""

    n_chunks: int
    error: Exception | None  #: what the latest loss of a shard was noticed by

    @property
    def copies(self) -> int:
        """To how many workers a message goes."""
        ...

    def begin(self, setup: Setup, chunks: Sequence[int]) -> Mapping[int, Reply]:
        """Make the shards of some chunks, and return their first answers by number.

        Chunks whose shards are lost have no answer.
        """
        ...

    def exchange(
        self, message: Message, chunks: Sequence[int] | None = None
    ) -> dict[int, Reply]:
        """Deliver a message to the shards of some chunks, or to all.

        Chunks whose shards are lost have no answer.  An error inside a shard is raised.
        """
        ...

    def restore(self, chunks: Sequence[int], message: Restore) -> dict[int, Reply]:
        """Make the shards of some chunks anew, and deliver them a message."""
        ...

    def misplaced(self) -> list[int]:
        """Return chunks that should move because workers have joined."""
        ...

    def release(self, chunks: Sequence[int]) -> None:
        """Give up the shards of some chunks, which are to be made anew elsewhere."""
        ...

    def close(self) -> None:
        """Leave nothing on the workers."""
        ...
