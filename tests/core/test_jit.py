"""Compiled functions work where nothing can be written."""

import os
import subprocess
import sys

PROGRAM = """
import warnings
from numba.core.caching import CacheImpl

def none(*_):
    return None

# As for an installation that cannot be written, and a user without a home.
for kind in CacheImpl._locator_classes:
    kind.from_function = classmethod(none)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    from mercer import SVC, images
    import numpy as np
    X = np.random.default_rng(0).normal(size=(30, 3))
    y = X[:, 0] > 0
    assert SVC().fit(X, y).score(X, y) > 0.9
    images.Trim(3).fit_transform(np.ones((2, 4, 4)))
told = [str(w.message) for w in caught if "NUMBA_CACHE_DIR" in str(w.message)]
assert len(told) == 1, told
"""


def test_without_a_place_to_write(tmp_path):
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={k: v for k, v in os.environ.items() if k != "NUMBA_CACHE_DIR"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
