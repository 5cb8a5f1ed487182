"""Streams of chunks, their history, and models that are saved and go on."""

import logging
import pickle

import numpy as np
import pytest

import mercer
from mercer import OnlineSVC, PassiveAggressiveClassifier
from mercer.machines.base.streams import LONGEST_HISTORY

MODELS = [
    OnlineSVC(gamma=0.5, selection="active", random_state=0),
    OnlineSVC(gamma=0.5, method="smo", budget=60),
    OnlineSVC(
        gamma=0.5,
        selection="random",
        fraction=0.5,
        multiclass="ovo",
        random_state=0,
    ),
    PassiveAggressiveClassifier(average=True),
    PassiveAggressiveClassifier(kernel="rbf", gamma=0.5, budget=50, removal="oldest"),
]
every_model = pytest.mark.parametrize("model", MODELS, ids=str)


def data(n=400):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, n)
    centers = np.array([[0, 0, 1], [2, 0, 0], [0, 2, 0]])
    return (centers[y] + 0.7 * rng.normal(size=(n, 3))).astype(np.float32), y


def chunks(X, y, size=40):
    for k in range(0, len(y), size):
        yield X[k : k + size], y[k : k + size]


def clone(model):
    return type(model)(**model.get_params())


@every_model
def test_history_is_that_of_predicting_first(model):
    X, y = data()
    model, by_hand = clone(model), clone(model)
    seen = []
    model.learn_stream(chunks(X, y), classes=[0, 1, 2], progress=seen.append)
    wrong = []
    for part, labels in chunks(X, y):
        if hasattr(by_hand, "classes_"):
            wrong.append(int((by_hand.predict(part) != labels).sum()))
        by_hand.partial_fit(part, labels, classes=[0, 1, 2])
    history = model.history_
    assert history["n_seen"] == list(range(40, 401, 40))
    assert history["n_tested"] == list(range(0, 361, 40))
    assert history["n_mistakes"] == [0, *np.cumsum(wrong).tolist()]
    assert history["n_support"][-1] == model._count_support()
    assert [entry["n_seen"] for entry in seen] == history["n_seen"]
    assert history["n_mistakes"][-1] < 0.3 * history["n_tested"][-1]


def test_a_stream_can_be_ended_and_has_weights():
    X, y = data()
    model = OnlineSVC(gamma=0.5)
    stream = ((a, b, np.ones(len(b))) for a, b in chunks(X, y))
    model.learn_stream(stream, [0, 1, 2], progress=lambda e: e["n_seen"] >= 120)
    assert model.n_seen_ == 120
    model.learn_stream([(X[:0], y[:0]), (X[:5], y[:5])])
    assert model.history_["n_seen"][-1] == 125


def test_history_stays_short():
    model = PassiveAggressiveClassifier()
    model.partial_fit([[0.0], [1.0]], [0, 1], classes=[0, 1])
    for _ in range(LONGEST_HISTORY + 10):
        model._note(1, 1, 0)
    history = model.history_
    assert len(history["n_seen"]) <= LONGEST_HISTORY
    assert history["n_seen"][-1] == LONGEST_HISTORY + 10


def test_progress_is_logged(caplog, monkeypatch):
    monkeypatch.setattr("mercer.machines.base.streams.EVERY", 0.0)
    X, y = data(80)
    with caplog.at_level(logging.INFO, logger="mercer"):
        OnlineSVC(gamma=0.5, verbose=True).learn_stream(chunks(X, y), [0, 1, 2])
    assert "80 samples" in caplog.text and "mistakes" in caplog.text


@pytest.mark.parametrize("way", ["file", "pickle"])
@every_model
def test_a_resumed_model_gives_the_same_answers(model, way, tmp_path):
    X, y = data()
    model = clone(model)
    model.learn_stream(chunks(X[:200], y[:200]), [0, 1, 2])
    if way == "file":
        pytest.importorskip("skops")
        mercer.save(model, tmp_path / "model.skops")
        again = mercer.load(tmp_path / "model.skops")
    else:
        again = pickle.loads(pickle.dumps(model))
    assert (again.decision_function(X) == model.decision_function(X)).all()
    for part, labels in chunks(X[200:], y[200:], 25):
        model.learn_stream([(part, labels)])
        again.learn_stream([(part, labels)])
        assert (again.decision_function(X) == model.decision_function(X)).all()
    assert again.history_ == model.history_


def test_a_damaged_model_is_refused():
    X, y = data(100)
    state = OnlineSVC(gamma=0.5).fit(X, y).__getstate__()
    state["_held"]["beta"] = state["_held"]["beta"][:, :-1]
    with pytest.raises(ValueError, match="do not fit together"):
        OnlineSVC().__setstate__(state)


@every_model
def test_a_column_of_labels_is_counted_once(model):
    X, y = data(120)
    flat = clone(model).set_params(random_state=0)
    column = clone(flat)
    flat.learn_stream(chunks(X, y), classes=[0, 1, 2])
    column.learn_stream(chunks(X, y[:, None]), classes=[0, 1, 2])
    assert column.history_ == flat.history_


@every_model
def test_samples_that_the_kernel_is_not_for_are_refused(model):
    X, y = data(120)
    model = clone(model).set_params(kernel="chi2", gamma=1.0)
    model.partial_fit(np.abs(X), y, classes=[0, 1, 2])
    before = model.decision_function(np.abs(X))
    for call in (lambda: model.partial_fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match="Chi2 is for histograms"):
            call()
    np.testing.assert_array_equal(model.decision_function(np.abs(X)), before)
