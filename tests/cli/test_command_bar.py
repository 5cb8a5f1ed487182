"""The progress bar: where it shows, and that it shows the way to the tolerance."""

import numpy as np
import pytest
from rich.console import Console

from mercer import SVC
from mercer.cli.command_bar import CommandBar
from mercer.runtime import bar as module


@pytest.fixture
def problem(rng):
    X = rng.normal(size=(300, 4))
    return X, (X[:, 0] + rng.normal(size=300) > 0).astype(int)


@pytest.mark.parametrize(
    ("n_classes", "state"), [(2, "KKT gap "), (3, "3 of 3 problems")]
)
def test_it_goes_to_the_end(problem, monkeypatch, n_classes, state):
    X, y = problem
    y = y + (X[:, 1] > 1) if n_classes == 3 else y
    console = Console(stderr=True, force_terminal=True, record=True)
    monkeypatch.setattr(module, "console", lambda: console)
    model = SVC(C=100)
    with CommandBar() as bar:
        bar.watch(model, "fitting").fit(X, y)
        (task,) = bar._drawing.tasks
        assert task.completed == 1.0
        assert task.fields["note"].startswith(state)
    assert "fitting" in console.export_text()


def test_it_changes_nothing_and_is_silent_elsewhere(problem, capsys):
    with CommandBar() as bar:
        model = bar.watch(SVC(C=100), "fitting").fit(*problem)
    plain = SVC(C=100).fit(*problem)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    captured = capsys.readouterr()
    assert captured.out + captured.err == ""
