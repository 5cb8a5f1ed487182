"""One small cluster for all tests of a process: starting it takes seconds."""

import logging
import sys
from pathlib import Path

import dask
import pytest
from distributed import Client, LocalCluster

# The modules of this folder import each other by name.
sys.path.insert(0, str(Path(__file__).parent))

from dask_workers import assert_clean


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
