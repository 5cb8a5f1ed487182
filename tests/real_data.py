"""Data sets that are not part of the project."""

import os
from pathlib import Path

import numpy as np
import pytest


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
