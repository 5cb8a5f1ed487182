import numpy as np
import pytest
from hypothesis import settings

from real_data import read_data

# The same examples in every run: a new one is found on purpose, not by chance.
settings.register_profile("steady", derandomize=True)
settings.load_profile("steady")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture(scope="session")
def mnist():
    """Pixels in [0, 1] and digits, read-only."""
    data = read_data("mnist")
    X = (data["x_train"].reshape(-1, 784) / np.float32(255)).astype(np.float32)
    y = data["y_train"].astype(int)
    X.flags.writeable = y.flags.writeable = False
    return X, y
