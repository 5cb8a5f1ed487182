"""What takes long: a frozen worker, and the memory of a driver of many samples."""

import os
import signal
import time
from contextlib import suppress
from pathlib import Path

import dask
import dask.array as da
import numpy as np
import pytest
from distributed import Client, LocalCluster
from test_dask_machines import AtRound, chunked, slow_fit

from mercer import SVC
from mercer.dask import DaskSVC


def sleep_soon(dask_worker):
    """Block the thread of a worker that sends messages and signs of life."""
    dask_worker.loop.call_later(0.01, time.sleep, 3600)


@pytest.mark.slow
def test_a_frozen_worker_is_replaced():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1200, 5))
    y = np.where(X[:, 0] * X[:, 1] + 0.3 * rng.normal(size=1200) > 0, 1, -1)
    with (
        dask.config.set({"distributed.scheduler.worker-ttl": "60s"}),
        LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        Client(cluster) as client,
    ):
        address, pid = next(iter(client.run(os.getpid).items()))

        def freeze():
            client.run(sleep_soon, workers=[address])

        try:
            model = slow_fit().set_callbacks(AtRound(5, freeze))
            model.fit(chunked(X), chunked(y))
        finally:
            with suppress(ProcessLookupError):  # the scheduler may have ended it
                os.kill(pid, signal.SIGKILL)
    assert model.n_restores_ >= 1
    assert model.converged_
    plain = SVC(C=3.0, tol=1e-6).fit(X, y)
    assert abs(model.objective_[0] / plain.objective_[0] - 1) <= 1e-10


def make_block(block_info=None):
    """Make samples of two separate clouds on a worker."""
    (first, stop), _ = block_info[None]["array-location"]
    rng = np.random.default_rng(first)
    X = rng.normal(size=(stop - first, 100)).astype(np.float32)
    X[:, 0] += np.where(rng.random(stop - first) < 0.5, -3, 3)
    return X


def memory_mb(what):
    lines = Path("/proc/self/status").read_text().splitlines()
    (found,) = [line for line in lines if line.startswith(f"{what}:")]
    return int(found.split()[1]) / 1024


@pytest.mark.slow
@pytest.mark.skipif(
    not Path("/proc/self/clear_refs").exists(), reason="needs Linux to measure memory"
)
def test_the_memory_of_the_driver_does_not_grow_with_the_samples(client):
    n = 200_000
    chunks = ((20_000,) * 10, (100,))
    X = da.map_blocks(make_block, chunks=chunks, dtype=np.float32)
    y = (X[:, 0] > 0).astype(int)
    # A small fit first, so that compiled code is not counted.
    model = DaskSVC(C=1.0, gamma=0.002).fit(X[:20_000], y[:20_000])
    Path("/proc/self/clear_refs").write_text("5")
    before = memory_mb("VmRSS")
    model = DaskSVC(C=1.0, gamma=0.002).fit(X, y)
    grown = memory_mb("VmHWM") - before
    assert model.converged_
    assert model.shape_fit_ == (n, 100)
    assert len(model.support_) < 5000
    assert grown < 300
