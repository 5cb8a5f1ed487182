"""The command line on a card, with NumPy in its place."""

import sys

import pytest
from cli_files import call, call_json, refused, write_flowers

from mercer.engines.cuda import card as card_module


@pytest.fixture
def table(tmp_path):
    return write_flowers(tmp_path / "flowers.csv")


def test_fit_on_a_card_and_predict_anywhere(table, tmp_path, cuda):
    out = tmp_path / "model.skops"
    result = call_json(
        "fit", table, "--target", "kind", "--device", "cuda", "--out", out
    )
    assert result["converged"] and cuda.launches
    n_launches = len(cuda.launches)
    here = call("predict", out, table, "--drop", "kind").stdout
    assert len(cuda.launches) == n_launches  # files do not ask for the card again
    options = ("--drop", "kind", "--device", "cuda:0")
    assert call("predict", out, table, *options).stdout == here
    assert len(cuda.launches) > n_launches
    report = call_json("evaluate", out, table, "--device", "cuda")
    assert report["samples"] == 60


def test_a_missing_card_is_one_line(table, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(card_module, "_opened", {})
    out = tmp_path / "model.skops"
    arguments = ("fit", table, "--target", "kind", "--device", "cuda", "--out", out)
    assert "needs the package CuPy" in refused(2, *arguments, "--quiet")
    assert not out.exists()


def test_a_device_that_does_not_exist(table, tmp_path):
    out = tmp_path / "model.skops"
    call("fit", table, "--target", "kind", "--out", out)
    assert "Unknown device 'tpu'" in refused(
        2, "predict", out, table, "--device", "tpu"
    )
