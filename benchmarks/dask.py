"""Measure fits on a local Dask cluster: ``python -m benchmarks.dask --help``.

``fits`` compares ``DaskSVC`` on two worker processes with the plain ``SVC``: rounds,
bytes, and the seconds that messages take beside the workers' own.  On one machine the
plain fit wins: workers share its cores.  ``model`` fits a cost per message, per byte
and per kernel value to such fits, and prints what a round would take on larger
clusters.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any

import dask.array as da
import numpy as np
from distributed import Client, LocalCluster
from numpy.typing import NDArray

from benchmarks.cases import Case
from benchmarks.data import load
from benchmarks.parts import run_parts
from benchmarks.timing import timed
from mercer import SVC
from mercer.dask import DaskSVC

SETTINGS = {
    "mnist": {"C": 10.0, "gamma": 0.02},
    "ijcnn1": {"C": 10.0, "gamma": 1.0},
    "a9a": {"C": 1.0, "gamma": 0.05},
}
N_CHUNKS = (2, 8)
# Clusters for which a round is predicted: workers, samples, features.
CLUSTERS = [
    (n_workers, n_samples, 100)
    for n_samples in (10**6, 10**7)
    for n_workers in (16, 128)
]
# New samples of a usual round.
FRESH = 512


def cluster() -> LocalCluster:
    return LocalCluster(
        n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0"
    )


def made(n: int, d: int) -> tuple[NDArray, NDArray]:
    """Make samples of two classes that overlap."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)).astype(np.float32)
    y = np.where(X[:, 0] * X[:, 1] + 0.5 * rng.normal(size=n) > 0, 1, -1)
    return X, y


def samples(name: str, options: argparse.Namespace) -> tuple[NDArray, NDArray]:
    """Return samples of two classes."""
    if options.fast:
        return made(600, 5)
    data = load(Case("", "", "fit", name, options.samples, 1))
    return data.X, np.where(data.y % 2 == 1, 1, -1)


def fits(options: argparse.Namespace) -> dict[str, Any]:
    """Compare fits on the cluster with plain fits, from warm processes."""
    answer: dict[str, Any] = {}
    with cluster() as local, Client(local):
        for name in options.data.split(","):
            X, y = samples(name, options)
            plain = SVC(**SETTINGS[name]).fit(X, y)
            plain, times = timed(lambda: SVC(**SETTINGS[name]).fit(X, y))  # noqa: B023
            answer[f"{name} n={len(y)} SVC seconds"] = times.seconds
            for n_chunks in N_CHUNKS:
                rows = -(-len(y) // n_chunks)
                Z = da.from_array(X, chunks=(rows, -1))
                model = DaskSVC(**SETTINGS[name]).fit(Z, y)
                model, times = timed(
                    lambda: DaskSVC(**SETTINGS[name]).fit(Z, y)  # noqa: B023
                )
                per_round = 1000 * model.seconds_["messages"] / (model.n_rounds_ + 3)
                off = abs(model.objective_[0] / plain.objective_[0] - 1)
                key = f"{name}, {n_chunks} chunks"
                answer[f"{key}: seconds"] = times.seconds
                answer[f"{key}: rounds"] = model.n_rounds_
                answer[f"{key}: megabytes"] = model.bytes_sent_ / 1e6
                answer[f"{key}: seconds of workers"] = model.seconds_["workers"]
                answer[f"{key}: milliseconds of messages a round"] = per_round
                answer[f"{key}: relative difference of objectives"] = off
    return answer


def model(options: argparse.Namespace) -> dict[str, Any]:
    """Fit costs to measurements, and predict rounds on larger clusters."""
    n = 600 if options.fast else 6000
    rows, seconds = [], []
    rates = []
    with cluster() as local, Client(local):
        for d in (5, 20, 40) if options.fast else (10, 100, 400, 1000):
            X, y = made(n, d)
            Z = da.from_array(X, chunks=(n // 2, -1))
            for _ in range(2):  # the first fit starts things
                fitted = DaskSVC(gamma=1.0 / d, working_set=512).fit(Z, y)
            n_exchanges = fitted.n_rounds_ + 3
            rows.append([2 * n_exchanges, fitted.bytes_sent_])
            seconds.append(fitted.seconds_["messages"])
            # All support vectors were new once, and so were some other samples.
            values = max(len(fitted.support_), 128 * fitted.n_rounds_) * n / 2
            rates.append(values * d / fitted.seconds_["workers"])
    weight = 1.0 / np.array(seconds)
    costs, *_ = np.linalg.lstsq(
        np.array(rows) * weight[:, None], np.ones(len(seconds)), rcond=None
    )
    per_message, per_byte = np.maximum(costs, 0.0)
    rate = max(rates)
    answer: dict[str, Any] = {
        "milliseconds a message": 1000 * per_message,
        "megabytes a second": 1e-6 / max(per_byte, 1e-12),
        "multiplications a second of a worker (1e9)": rate / 1e9,
    }
    for n_workers, n_samples, d in CLUSTERS:
        sent = FRESH * d * 4 * (n_workers + 1) + 16 * 2048 * n_workers
        messages = per_message * n_workers + per_byte * sent
        work = FRESH * n_samples / n_workers * d / rate
        key = f"{n_workers} workers, n={n_samples}, d={d}: seconds a round"
        answer[f"{key}, messages"] = messages
        answer[f"{key}, workers"] = work
    return answer


def _add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--samples", type=int, default=20_000, metavar="N")
    parser.add_argument(
        "--data", default=",".join(SETTINGS), metavar="A,B", help="data sets of fits"
    )


def main() -> int:
    parts = {"fits": fits, "model": model}
    files = ["mnist.npz", "ijcnn1.npz", "a9a.npz"]
    return run_parts("dask", __doc__, parts, files, _add_options)


if __name__ == "__main__":
    sys.exit(main())
