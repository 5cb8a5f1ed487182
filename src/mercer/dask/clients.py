"""Estimators that have a client of a Dask cluster."""

from __future__ import annotations

from typing import Any

from distributed import Client, default_client
from sklearn.base import clone

__all__ = ["HasClient"]


class HasClient:
    """Base class of estimators with a parameter ``client``."""

    client: Any

    def __sklearn_clone__(self) -> Any:
        # A client cannot be copied: clones share it.
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        return type(self)(
            **{
                name: value if name == "client" else clone(value, safe=False)
                for name, value in given.items()
            }
        )

    def __getstate__(self) -> dict[str, Any]:
        state: Any = super().__getstate__()
        return {**state, "client": None}

    def _find_client(self) -> Client:
        """Return the given client, or the current one."""
        client = self.client
        if client is None:
            try:
                client = default_client()
            except ValueError:
                raise ValueError(
                    f"{type(self).__name__} needs a client of a Dask cluster, and "
                    "there is none. Start one first, for example with "
                    "dask.distributed.Client(), or pass client=."
                ) from None
        if not isinstance(client, Client) or client.asynchronous:
            raise TypeError(
                f"client must be a synchronous dask.distributed.Client, got {client!r}."
            )
        return client
