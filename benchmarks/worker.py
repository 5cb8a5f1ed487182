"""Do one job in a process of its own: ``python -m benchmarks.worker JOB``.

The job is a JSON object; the answer is one line of JSON on standard output.
"""

from __future__ import annotations

import gc
import json
import sys
import time
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import log_loss

from benchmarks.cases import Case, find
from benchmarks.data import Data, histograms, load, warm_part
from benchmarks.floor import floor_seconds, needed_values, sgemm_rate
from benchmarks.gram import GRAMS, largest_error
from benchmarks.memory import claim_memory, peak_mb, resident_mb
from benchmarks.objective import Duals, certify
from benchmarks.schemes import PEERS
from benchmarks.timing import Watch

TINY_HISTOGRAMS = 64


def fit(job: dict) -> dict[str, Any]:
    """Warm up on a small problem, then fit and predict unless ``warm_only``."""
    case = find(job["case"], job["is_fast"])
    data = load(case)
    peer = PEERS[case.scheme, job["peer"]](case.setting, job["cache_mb"])
    peer.warm_up(*warm_part(data))
    if job["warm_only"]:
        return {}
    gc.collect()
    claim_memory()
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
    result = {
        "prepare_seconds": prepared - started,
        "fit_seconds": fitted - prepared,
        "predict_seconds": done - fitted,
        "others_cores": others,
        "resident_mb": resident,
        "peak_mb": peak,
        "warnings": sorted({str(w.message) for w in caught}),
    }
    return result | _quality(peer, data, predicted) | _solution(job, case, peer, data)


def _quality(peer: Any, data: Data, predicted: NDArray) -> dict[str, Any]:
    """Return the quality of the predictions."""
    found = {"n_features": data.X.shape[1], "n_support": peer.count_support()}
    if hasattr(peer, "score"):
        return found | {"score": peer.score(data.y_test, predicted)}
    n_classes = len(np.unique(data.y))
    found["n_classes"] = n_classes
    found["accuracy"] = float(np.mean(predicted == data.y_test))
    if hasattr(peer, "probabilities"):
        loss = log_loss(data.y_test, peer.probabilities, labels=np.arange(n_classes))
        found["log_loss"] = float(loss)
    return found


def _solution(job: dict, case: Case, peer: Any, data: Data) -> dict[str, Any]:
    """Write the solution to a file, and return what only Mercer reports."""
    is_mercer = job["peer"] == "mercer"
    found: dict[str, Any] = {}
    if is_mercer:
        found["is_whole"] = peer.is_whole
        found["own_kkt_gap"] = float(np.max(peer.model.kkt_gap_))
    if case.has_duals:
        duals = peer.duals(data.y)
        np.savez(job["duals"], support=duals.support, coef=duals.coef)
        if is_mercer:
            found |= _floor(duals, data, peer.is_whole)
    return found


def _floor(duals: Duals, data: Data, is_whole: bool) -> dict[str, Any]:
    d = data.X.shape[1]
    rate = sgemm_rate(d)
    n_values = needed_values(duals, data.y, is_whole)
    return {
        "needed_values": n_values,
        "sgemm_gflops": rate / 1e9,
        "floor_seconds": floor_seconds(n_values, d, rate),
    }


def gram(job: dict) -> dict[str, Any]:
    """Time the computation of a Gram matrix of histograms."""
    case = find(job["case"], job["is_fast"])
    compute = GRAMS[case.data, job["peer"]]()
    X = histograms(case)
    compute(X[:TINY_HISTOGRAMS])
    claim_memory()
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
    """Certify the solutions that ``fit`` wrote to files, for each peer."""
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
    """Do the job given on the command line."""
    job = json.loads(sys.argv[1])
    work = {"fit": fit, "gram": gram, "certify": certificates}[job["kind"]]
    try:
        answer = {"status": "ok", **work(job)}
    except ModuleNotFoundError as error:
        answer = {"status": "not installed", "message": str(error)}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
