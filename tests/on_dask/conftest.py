"""One small cluster for all tests of a process: starting it takes seconds."""

import logging
import sys
import time
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

sys.path.insert(0, str(Path(__file__).parent))


@pytest.fixture(scope="session")
def cluster():
    # Workers may be paused for a while on a busy machine, and nothing that takes long
    # for this reason may count as lost.
    settings = {
        "distributed.comm.timeouts.connect": "300s",
        "distributed.scheduler.worker-ttl": "900s",
        "distributed.worker.daemon": True,
    }
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    with (
        dask.config.set(settings),
        LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address=":0",
            memory_limit="2GiB",
        ) as made,
    ):
        yield made


@pytest.fixture(scope="session")
def any_client(cluster):
    with Client(cluster) as client:
        yield client


@pytest.fixture
def client(any_client):
    """A client of two workers that hold nothing, before the test and after it."""
    yield any_client
    assert_clean(any_client)


def assert_clean(client):
    """Check that nothing of a fit is left on the workers."""

    def left(dask_worker):
        return len(dask_worker.state.actors), [str(key) for key in dask_worker.data]

    for _ in range(100):  # workers hear of it a moment later
        found = client.run(left)
        if all(one == (0, []) for one in found.values()):
            return
        time.sleep(0.1)
    raise AssertionError(f"left on the workers: {found}")
