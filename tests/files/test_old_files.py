"""Stored model files and pickles still give the same answers when code has moved."""

import pickle
from pathlib import Path

import numpy as np
import pytest

import mercer
from data.make_model_files import answers

HERE = Path(__file__).parents[1] / "data"
VERSIONS = sorted(
    path.name.removesuffix("-expected.npz") for path in HERE.glob("*-expected.npz")
)


def read_pickle(path):
    return pickle.loads(path.read_bytes())


@pytest.mark.parametrize("ending, read", [("skops", "load"), ("pickle", read_pickle)])
@pytest.mark.parametrize("kind", ["svc", "kernel_pca", "online"])
@pytest.mark.parametrize("version", VERSIONS)
def test_old_models_give_the_same_answers(version, kind, ending, read):
    if read == "load":
        pytest.importorskip("skops.io")
        read = mercer.load
    model = read(HERE / f"{version}-{kind}.{ending}")
    with np.load(HERE / f"{version}-expected.npz") as expected:
        found = answers(kind, model, expected["Z"])
        assert {name for name in expected.files if name.startswith(kind)} == set(found)
        for name, values in found.items():
            np.testing.assert_allclose(values, expected[name], rtol=1e-9, atol=1e-12)


def test_there_are_old_files():
    assert "mercer-0.1.0" in VERSIONS
