"""Figures of a report: readable with many classes."""

import numpy as np
import pytest

from mercer.cli.report_files import MOST_CURVES, report_files
from mercer.cli.scores import Verdict

pytest.importorskip("matplotlib")


def verdict(n_classes):
    """Return a verdict in which the first classes have the lowest curves."""
    labels = np.array([chr(65 + k) for k in range(n_classes)])
    rise = np.linspace(0.1, 0.9, n_classes)
    curves = {
        name: (np.array([0, 0.5, 1]), np.array([0, high, 1]), np.array([2, 1, 0]))
        for name, high in zip(labels, rise, strict=True)
    }
    return Verdict({"task": "x"}, ("accuracy", 1.0), labels, labels, labels, curves)


def texts(files):
    return files["roc.svg"].decode()


def test_few_classes_have_all_their_curves(monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    said = texts(report_files(verdict(10), "svg"))
    assert "J (AUC" in said
    assert "hardest" not in said


def test_of_26_classes_the_hardest_are_drawn_and_all_are_in_the_table(monkeypatch):
    monkeypatch.setitem(__import__("matplotlib").rcParams, "svg.fonttype", "none")
    files = report_files(verdict(26), "svg")
    said = texts(files)
    assert f"The {MOST_CURVES} hardest of 26 classes" in said
    assert "A (AUC" in said
    assert "J (AUC" in said
    assert "K (AUC" not in said
    assert {line[0] for line in files["roc.csv"].decode().splitlines()[1:]} == {
        chr(65 + k) for k in range(26)
    }
