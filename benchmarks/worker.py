"""What runs in a process of its own: ``python -m benchmarks.worker JOB``.

The job is a JSON object; the answer is one JSON line on standard output.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from typing import Any

import numpy as np

from benchmarks.cases import find
from benchmarks.data import histograms, load, warm_part
from benchmarks.floor import floor_seconds, needed_values, sgemm_rate
from benchmarks.gram import GRAMS, largest_error
from benchmarks.load import Watch
from benchmarks.memory import peak_mb, resident_mb
from benchmarks.objective import Duals, certify
from benchmarks.peers import PEERS

TINY_HISTOGRAMS = 64


def fit(job: dict) -> dict[str, Any]:
    """Fit and predict, warm; ``warm_only`` stops after the small problem."""
    case = find(job["case"], job["is_fast"])
    data = load(case)
    peer = PEERS[job["peer"]](case.setting, job["cache_mb"])
    peer.warm_up(*warm_part(data))
    if job["warm_only"]:
        return {}
    gc.collect()
    resident = resident_mb()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        started = time.perf_counter()
        problem = peer.prepare(data.X, data.y)
        watch = Watch()
        prepared = time.perf_counter()
        peer.fit(problem)
        fitted = time.perf_counter()
        predicted = peer.predict(data.X_test)
        done = time.perf_counter()
        others = watch.others()
    peak = peak_mb()
    duals = peer.duals(data.y)
    np.savez(job["duals"], support=duals.support, coef=duals.coef)
    result = {
        "prepare_seconds": prepared - started,
        "fit_seconds": fitted - prepared,
        "predict_seconds": done - fitted,
        "accuracy": float(np.mean(predicted == data.y_test)),
        "n_support": len(duals.support),
        "others_cores": others,
        "resident_mb": resident,
        "peak_mb": peak,
        "n_features": data.X.shape[1],
        "n_classes": len(np.unique(data.y)),
        "warnings": sorted({str(w.message) for w in caught}),
    }
    if job["peer"] == "mercer":
        d = data.X.shape[1]
        rate = sgemm_rate(d)
        n_values = needed_values(duals, data.y, peer.is_whole)
        result |= {
            "is_whole": peer.is_whole,
            "needed_values": n_values,
            "sgemm_gflops": rate / 1e9,
            "floor_seconds": floor_seconds(n_values, d, rate),
        }
    return result


def gram(job: dict) -> dict[str, Any]:
    """Compute a Gram matrix of histograms."""
    case = find(job["case"], job["is_fast"])
    compute = GRAMS[case.data, job["peer"]]()
    X = histograms(case)
    compute(X[:TINY_HISTOGRAMS])
    watch = Watch()
    started = time.perf_counter()
    K = compute(X)
    seconds = time.perf_counter() - started
    others = watch.others()
    return {
        "gram_seconds": seconds,
        "others_cores": others,
        "peak_mb": peak_mb(),
        "error": largest_error(case.data, X, K),
        "n_features": X.shape[1],
    }


def certificates(job: dict) -> dict[str, Any]:
    """Certify the solutions that ``fit`` has left in files, by peer."""
    case = find(job["case"], job["is_fast"])
    data = load(case)
    found = {}
    for peer, path in job["duals"].items():
        with np.load(path) as file:
            duals = Duals(file["support"], file["coef"])
        answer = certify(data.X, data.y, duals, case.setting, case.gap_pairs)
        found[peer] = answer._asdict()
    return {"certificates": found}


def main() -> None:
    """Do one job."""
    job = json.loads(sys.argv[1])
    work = {"fit": fit, "gram": gram, "certify": certificates}[job["kind"]]
    try:
        answer = {"status": "ok", **work(job)}
    except ModuleNotFoundError as error:
        answer = {"status": "not installed", "message": str(error)}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
