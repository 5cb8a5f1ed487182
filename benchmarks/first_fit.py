"""Time a first fit in a fresh process: ``python -m benchmarks.first_fit JOB``.

Only the standard library is imported before the clock starts.
"""

import json
import sys
import time


def main() -> None:
    """Import the library, make a small problem of three classes, fit and predict."""
    job = json.loads(sys.argv[1])
    started = time.perf_counter()
    if job["peer"] == "mercer":
        from mercer import SVC
    else:
        from sklearn.svm import SVC
    imported = time.perf_counter()

    import numpy as np

    rng = np.random.default_rng(job["seed"])
    y = np.arange(job["n"]) % 3
    X = rng.standard_normal((job["n"], 10)).astype(np.float32)
    X[np.arange(job["n"]), y] += 2.0

    begun = time.perf_counter()
    model = SVC(C=10.0, gamma=0.1).fit(X, y)
    fitted = time.perf_counter()
    model.predict(X)
    done = time.perf_counter()
    answer = {
        "status": "ok",
        "import_seconds": imported - started,
        "fit_seconds": fitted - begun,
        "predict_seconds": done - fitted,
    }
    print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
