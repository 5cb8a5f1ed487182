import matplotlib
import pytest
from matplotlib import pyplot

matplotlib.use("Agg")


@pytest.fixture(autouse=True)
def closed_figures():
    """Leave no figure behind."""
    yield
    pyplot.close("all")


@pytest.fixture
def ax():
    """Axes of the caller, in a figure of two."""
    _, axes = pyplot.subplots(1, 2)
    return axes[1]
