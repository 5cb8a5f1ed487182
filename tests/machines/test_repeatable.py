"""A fit that is repeated gives the same numbers, to the last bit."""

import json
import os
import subprocess
import sys

import pytest

import repeated_fits


@pytest.mark.parametrize("kind", ["float64", "float32", "sparse"])
@pytest.mark.parametrize("name", repeated_fits.MODELS)
def test_same_again_and_with_any_number_of_threads(name, kind):
    found = [repeated_fits.digest(name, kind, n_jobs) for n_jobs in (1, 2, 2)]
    assert found == found[:1] * 3


def test_another_fit_has_another_digest():
    found = {
        repeated_fits.digest(name, kind, 1)
        for name in ("PCA", "SVC", "KMeans")
        for kind in ("float64", "float32", "sparse")
    }
    assert len(found) == 9


@pytest.mark.slow
def test_same_in_another_process():
    # Compiled code may add numbers in another order in a process that has compiled it,
    # or has used other functions before. So new processes are compared; the first one
    # is left out, because it may have to compile.
    found = []
    for n_jobs in (1, 1, 2):
        done = subprocess.run(
            [sys.executable, repeated_fits.__file__, str(n_jobs)],
            env={**os.environ, "PYTHONHASHSEED": str(n_jobs)},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        found.append(json.loads(done.stdout))
    assert found[1] == found[2]
