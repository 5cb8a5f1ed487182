"""Callbacks of scikit-learn, and what verbose logs."""

import logging
import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.callback import ProgressBar, ScoringMonitor
from sklearn.datasets import make_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from mercer import (
    SVC,
    SVDD,
    SVR,
    KernelKMeans,
    KernelPCA,
    KMeans,
    NuSVC,
    NuSVR,
    OneClassSVM,
    OnlineSVC,
    PassiveAggressiveClassifier,
)
from mercer.runtime import progress

SOLVERS = ["smo", "decompose", "wss2"]


@pytest.fixture(scope="module")
def problem():
    X, y = make_classification(
        240, 6, n_informative=4, n_classes=3, class_sep=0.5, random_state=0
    )
    return X, np.array(["north", "east", "south"])[y]


class Recorder:
    """Keeps what it is told, and asks for an end after so many reports."""

    def __init__(self, stop_after=None):
        self.stop_after = stop_after
        self.events = []
        self.gaps = []
        self.targets = None

    def setup(self, estimator, context):
        self.events.append("setup")

    def teardown(self, estimator, context):
        self.events.append("teardown")

    def on_fit_task_begin(self, estimator, context, *, X=None, y=None):
        self.events.append(("begin", context.task_name, context.task_id))
        self.targets = y

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("end", context.task_name, context.task_id))
        if context.task_name == "solve":
            self.gaps.append(metadata["gap"])
            assert 0 <= metadata["solved"] <= metadata["problems"]
            self.solved = metadata["solved"], metadata["problems"]
            return self.stop_after is not None and len(self.gaps) >= self.stop_after
        return False


class Travelling(Recorder):
    """Goes from a search to what it fits."""

    max_propagation_depth = None


@pytest.mark.parametrize("solver", SOLVERS)
def test_calls_are_balanced(problem, solver):
    X, y = problem
    recorder = Recorder()
    model = SVC(solver=solver).set_callbacks(recorder).fit(X, y)
    inner = recorder.events[2:-2]
    assert recorder.events[:2] == ["setup", ("begin", "fit", 0)]
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]
    assert len(inner) >= 6
    for k, (begin, end) in enumerate(zip(inner[::2], inner[1::2], strict=True)):
        assert begin == ("begin", "solve", k)
        assert end == ("end", "solve", k)
    assert recorder.gaps[-1] <= model.tol
    assert recorder.solved == (3, 3)
    np.testing.assert_array_equal(recorder.targets, y)
    plain = SVC(solver=solver).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)


def test_a_failed_fit_tears_down(problem):
    recorder = Recorder()
    model = SVC(solver="smo", cache_size=0.001).set_callbacks(recorder)
    with pytest.raises(MemoryError):
        model.fit(*problem)
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1


@pytest.mark.parametrize("stop_after", [1, 3])
@pytest.mark.parametrize("kind", ["two classes", "three classes"])
def test_early_end(problem, stop_after, kind):
    X, y = problem
    if kind == "two classes":
        X, y = X[y != "east"], y[y != "east"]
    # A tiny cache, so that one round is not enough.
    settings = dict(solver="decompose", cache_size=0.01, C=100.0)
    recorder = Recorder(stop_after)
    model = SVC(**settings).set_callbacks(recorder)
    with pytest.warns(ConvergenceWarning, match=r"A callback asked for an early end\."):
        model.fit(X, y)
    assert len(recorder.gaps) == stop_after
    assert recorder.events[-1] == "teardown"
    assert not model.converged_
    assert model.fit_status_ == 1
    assert model.kkt_gap_.max() > model.tol
    assert np.isfinite(model.decision_function(X)).all()
    model.set_callbacks().set_params(solver="auto", cache_size="auto").fit(X, y)
    assert model.converged_


@pytest.mark.parametrize("solver", ["wss1", "wss2"])
def test_early_end_between_problems(problem, solver):
    X, y = problem
    # Row by row, one problem after the other: there is no room for the whole matrix.
    model = SVC(solver=solver, cache_size=0.01).set_callbacks(Recorder(stop_after=1))
    with pytest.warns(ConvergenceWarning, match="in 2 of 3 problems"):
        model.fit(X, y)
    assert model.n_iter_[0] > 0
    assert model.n_iter_[1:].tolist() == [0, 0]


def test_an_end_after_the_last_round_is_no_early_end(problem, recwarn):
    X, y = problem
    model = SVC(solver="smo").set_callbacks(Recorder(stop_after=3)).fit(X, y)
    assert model.converged_
    assert not recwarn.list


def test_an_error_in_a_callback_reaches_the_caller(problem):
    class Broken(Recorder):
        def on_fit_task_end(self, estimator, context):
            raise RuntimeError("no luck")

    recorder = Broken()
    with pytest.raises(RuntimeError, match="no luck"):
        SVC().set_callbacks(recorder).fit(*problem)
    assert recorder.events.count("teardown") == 1


def test_search(problem):
    X, y = problem
    recorder = Travelling()
    search = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2).set_callbacks(recorder)
    search.fit(X, y)
    begins = [e[1:] for e in recorder.events if e[0] == "begin"]
    ends = [e[1:] for e in recorder.events if e[0] == "end"]
    assert sorted(begins) == sorted(ends)
    assert recorder.events.count("setup") == recorder.events.count("teardown") == 1
    assert sum(name == "solve" for name, _ in begins) >= 5 * 3


@pytest.mark.parametrize("nested", [False, True])
def test_progress_bar_and_monitor(problem, nested, capsys):
    pytest.importorskip("rich")
    X, y = problem
    model = GridSearchCV(SVC(), {"C": [0.1, 1.0]}, cv=2) if nested else SVC()
    model.set_callbacks(ProgressBar(), ScoringMonitor(scoring="accuracy")).fit(X, y)
    assert model.score(X, y) > 0.5
    assert "SVC" in capsys.readouterr().out


def test_copies_of_a_fitted_model(problem):
    model = SVC().set_callbacks(Recorder()).fit(*problem)
    again = pickle.loads(pickle.dumps(model))
    X = problem[0]
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert not hasattr(clone(model), "support_")


@pytest.fixture
def log(monkeypatch):
    """The logger, whose settings are put back afterwards."""
    log = logging.getLogger("mercer")
    monkeypatch.setattr(progress, "EVERY", 0.0)
    level, handlers, propagate = log.level, log.handlers, log.propagate
    yield log
    log.setLevel(level)
    log.handlers, log.propagate = handlers, propagate


@pytest.mark.parametrize("solver", SOLVERS)
def test_verbose(problem, solver, log, caplog):
    log.setLevel(logging.WARNING)
    SVC(solver=solver).fit(*problem)
    assert not caplog.records
    model = SVC(solver=solver, verbose=True).fit(*problem)
    assert {record.name for record in caplog.records} == {"mercer"}
    *rounds, last = [record.getMessage() for record in caplog.records]
    assert all("of 3 problems solved" in line for line in rounds)
    assert "3 of 3 problems solved" in rounds[-1]
    assert f"{model.n_iter_.sum()} steps" in rounds[-1]
    assert last.startswith("[SVC] fitted in ")
    assert f"KKT gap {model.kkt_gap_.max():.2g}" in last


@pytest.mark.parametrize("arranged", [False, True])
def test_verbose_is_seen_without_arrangement(problem, log, capsys, arranged):
    mine = [logging.NullHandler()] if arranged else []
    log.handlers, log.propagate = list(mine), False
    for _ in range(2):
        SVC(verbose=1).fit(*problem)
    out, err = capsys.readouterr()
    assert not out
    assert err.count("[SVC] fitted in ") == (0 if arranged else 2)
    assert log.handlers[: len(mine)] == mine
    assert len(log.handlers) == 1


@pytest.mark.parametrize("kind", [NuSVC, SVR, NuSVR, OneClassSVM, SVDD])
@pytest.mark.parametrize("solver", ["smo", "decompose"])
def test_every_machine_reports(problem, kind, solver, caplog):
    X, y = problem
    y = np.unique(y, return_inverse=True)[1]
    recorder = Recorder()
    model = kind(solver=solver, verbose=True).set_callbacks(recorder)
    with caplog.at_level(logging.INFO, logger="mercer"):
        model.fit(X, y)
    assert recorder.gaps
    begun = sum(event[0] == "begin" for event in recorder.events)
    assert begun == sum(event[0] == "end" for event in recorder.events)
    assert f"[{kind.__name__}] fitted in" in caplog.text


@pytest.mark.parametrize("kind", [SVR, OneClassSVM])
def test_every_machine_can_be_ended(problem, kind):
    X, y = problem
    y = np.unique(y, return_inverse=True)[1]
    model = kind(solver="decompose", cache_size=0.05, tol=1e-9)
    model.set_callbacks(Recorder(stop_after=1))
    with pytest.warns(ConvergenceWarning, match="callback asked for an early end"):
        model.fit(X, y)
    assert not model.converged_
    assert np.isfinite(model.dual_coef_).all()


class Rounds(Recorder):
    """Keeps what rounds measure, and asks for an end after so many."""

    def on_fit_task_end(self, estimator, context, *, X=None, y=None, metadata=None):
        self.events.append(("end", context.task_name, context.task_id))
        if context.task_name == "round":
            self.gaps.append(next(iter(metadata.values())))
        return self.stop_after is not None and len(self.gaps) >= self.stop_after


@pytest.mark.parametrize("method", ["lasvm", "smo"])
def test_the_batch_of_a_stream_reports(problem, method):
    X, y = problem
    recorder = Recorder()
    model = OnlineSVC(method=method).set_callbacks(recorder).fit(X, y)
    assert recorder.events[:2] == ["setup", ("begin", "fit", 0)]
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]
    inner = recorder.events[2:-2]
    for k, (begin, end) in enumerate(zip(inner[::2], inner[1::2], strict=True)):
        assert (begin, end) == (("begin", "solve", k), ("end", "solve", k))
    assert recorder.solved == (3, 3)
    np.testing.assert_array_equal(recorder.targets, y)
    plain = OnlineSVC(method=method).fit(X, y)
    np.testing.assert_array_equal(model.dual_coef_, plain.dual_coef_)
    n_events = len(recorder.events)
    again = pickle.loads(pickle.dumps(model.partial_fit(X[:9], y[:9]).finish()))
    assert len(recorder.events) == n_events
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_the_batch_of_a_stream_can_be_ended(problem):
    X, y = problem
    model = OnlineSVC(C=100.0, method="smo", tol=1e-9, n_jobs=1)
    model.set_callbacks(Recorder(stop_after=1))
    with pytest.warns(ConvergenceWarning, match="callback asked for an early end"):
        model.fit(X, y)
    assert model.kkt_gap_.max() > model.tol
    assert model.finish().kkt_gap_.max() <= model.tol


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_passes_are_reported(problem, kernel, log, caplog):
    X, y = problem
    recorder = Rounds()
    model = PassiveAggressiveClassifier(0.01, kernel=kernel, random_state=0)
    plain = clone(model).fit(X, y)
    assert not caplog.records
    model.set_params(verbose=True).set_callbacks(recorder).fit(X, y)
    assert recorder.events[-2:] == [("end", "fit", 0), "teardown"]
    assert len(recorder.gaps) == model.n_iter_ == plain.n_iter_
    assert 0 < min(recorder.gaps) < recorder.gaps[0]
    np.testing.assert_array_equal(recorder.targets, y)
    np.testing.assert_array_equal(
        model.decision_function(X), plain.decision_function(X)
    )
    *passes, last = [record.getMessage() for record in caplog.records]
    assert len(passes) == model.n_iter_
    assert "fitted, loss" in last


@pytest.mark.parametrize("tol", [1e-3, None])
def test_passes_can_be_ended(problem, tol):
    X, y = problem
    model = PassiveAggressiveClassifier(max_iter=50, tol=tol, random_state=0)
    with pytest.warns(ConvergenceWarning, match="callback asked for an early end"):
        model.set_callbacks(Rounds(stop_after=2)).fit(X, y)
    assert model.n_iter_ == 2
    plain = PassiveAggressiveClassifier(max_iter=2, tol=None, random_state=0)
    np.testing.assert_array_equal(model.coef_, plain.fit(X, y).coef_)


def test_an_end_after_the_last_pass_is_no_early_end(problem, recwarn):
    model = PassiveAggressiveClassifier(max_iter=3, tol=None)
    model.set_callbacks(Rounds(stop_after=3)).fit(*problem)
    assert model.n_iter_ == 3
    assert not recwarn.list


def test_an_early_end_is_that_of_all_starts(problem):
    X = problem[0] + 100.0
    recorder = Rounds(stop_after=1)
    model = KMeans(5, n_init=4, random_state=0).set_callbacks(recorder).fit(X)
    assert len(recorder.gaps) == model.n_iter_ == 1
    assert model.inertia_ == pytest.approx(-model.score(X))


def test_callbacks_of_clusters_see_the_samples(problem):
    class Looker(Rounds):
        def on_fit_task_begin(self, estimator, context, *, X=None):
            self.samples = np.array(X)

    looker = Looker()
    KMeans(3, random_state=0).set_callbacks(looker).fit(problem[0] + 100.0)
    np.testing.assert_array_equal(looker.samples, problem[0] + 100.0)


def test_clusters_of_an_early_end_fit_together(problem):
    X = problem[0]
    model = KernelKMeans(6, gamma=0.2, random_state=0).set_callbacks(Rounds(1))
    with pytest.warns(ConvergenceWarning, match="callback asked for an early end"):
        model.fit(X)
    again = KernelKMeans(6, gamma=0.2, init=model.labels_).fit(X)
    assert model.inertia_ == pytest.approx(again.inertia_history_[0], rel=1e-9)


def test_components_can_be_ended(problem):
    X = problem[0]
    recorder = Rounds(stop_after=2)
    model = KernelPCA(3, kernel="rbf", eigen_solver="lanczos", random_state=0)
    with pytest.warns(ConvergenceWarning, match="callback asked for an early end"):
        model.set_callbacks(recorder).fit(X)
    assert len(recorder.gaps) == model.n_iter_ == 2
    assert model.transform(X).shape == (len(X), 3)
