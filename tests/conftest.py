import os
from pathlib import Path

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


def read_data(name):
    """Load a data set of MERCER_DATA, or skip the test."""
    folder = os.environ.get("MERCER_DATA")
    if not folder:
        pytest.skip("MERCER_DATA is not set: it names the folder with the data sets")
    path = Path(folder) / f"{name}.npz"
    if not path.exists():
        pytest.skip(f"{name}.npz is not in MERCER_DATA")
    with np.load(path) as arrays:
        return {key: arrays[key] for key in arrays.files}


@pytest.fixture(scope="session")
def mnist():
    """Pixels in [0, 1] and digits, read-only."""
    data = read_data("mnist")
    X = (data["x_train"].reshape(-1, 784) / np.float32(255)).astype(np.float32)
    y = data["y_train"].astype(int)
    X.flags.writeable = y.flags.writeable = False
    return X, y
