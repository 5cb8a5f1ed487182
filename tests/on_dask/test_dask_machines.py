"""Fits on a local cluster of two processes, beside plain fits."""

import os
import pickle
import re
import signal
import subprocess
import sys
import threading
from contextlib import nullcontext
from pathlib import Path

import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
from dask_workers import assert_clean
from scipy import sparse
from sklearn.base import clone

from mercer import SVC, SVR, KernelPCA, LinearSVC, OneClassSVM, selection
from mercer.dask import (
    DaskOneClassSVM,
    DaskSVC,
    DaskSVR,
    GridSearchCV,
    RandomizedSearchCV,
    predict,
)
from mercer.engines.cluster import actors
from mercer.engines.cluster.actors import ActorCarrier
from mercer.runtime.progress import FitCallback

N, CHUNK = 1200, 200


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.4 * rng.normal(size=N)
    return {
        "X": X,
        "two": np.where(score > 0, "yes", "no"),
        "four": np.digitize(score, [-1.0, 0.0, 1.0]),
        "value": score,
        "weight": rng.choice([0.0, 0.5, 2.0], size=N, p=[0.1, 0.5, 0.4]),
    }


def chunked(values):
    return da.from_array(values, chunks=(CHUNK, *values.shape[1:]))


def assert_same(model, plain, tolerance):
    assert model.converged_
    assert np.all(np.abs(model.objective_ / plain.objective_ - 1) <= tolerance)


CASES = {
    "binary": (DaskSVC, SVC, {"C": 3.0}, "two"),
    "ovo": (DaskSVC, SVC, {"C": 3.0}, "four"),
    "ovr": (DaskSVC, SVC, {"C": 3.0, "multiclass": "ovr"}, "four"),
    "svr": (DaskSVR, SVR, {"C": 1.0, "epsilon": 0.3}, "value"),
    "one-class": (DaskOneClassSVM, OneClassSVM, {"nu": 0.2}, None),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tol, tolerance", [(1e-3, 1e-5), (1e-6, 1e-10)])
def test_the_machine_is_that_of_a_plain_fit(client, data, name, tol, tolerance):
    kind, plain_kind, settings, targets = CASES[name]
    y = None if targets is None else data[targets]
    model = kind(tol=tol, working_set=512, **settings)
    X = chunked(data["X"])
    model.fit(X, y if y is None else chunked(y))
    plain = plain_kind(tol=tol, **settings).fit(data["X"], y)
    assert_same(model, plain, tolerance)
    assert model.n_rounds_ > 1
    assert model.bytes_sent_ > 0
    assert model.n_restores_ == 0
    found = model.predict(X)
    assert isinstance(found, da.Array)
    assert found.dtype == plain.predict(data["X"]).dtype
    local = model.to_local()
    assert type(local) is plain_kind
    expected, plainly = local.predict(data["X"]), plain.predict(data["X"])
    if kind is DaskSVR:
        np.testing.assert_allclose(found.compute(), expected, rtol=1e-9)
        np.testing.assert_allclose(expected, plainly, atol=10 * tol)
    else:
        np.testing.assert_array_equal(found.compute(), expected)
        # Free support vectors of a one-class machine lie on its boundary.
        assert np.mean(expected == plainly) > 0.97
    if tol < 1e-3:
        np.testing.assert_allclose(model.intercept_, plain.intercept_, atol=1e-4)
        assert np.mean(np.isin(model.support_, plain.support_)) > 0.99


def test_weights_and_frames(client, data):
    frame = pd.DataFrame(data["X"], columns=list("abcde"))
    frame["class"], frame["weight"] = data["two"], data["weight"]
    parts = dd.from_pandas(frame, npartitions=5)
    parts = parts[parts["a"] < 10]  # lengths are not known any more
    model = DaskSVC(kernel="rbf(gamma=0.3)@[a, b, c] + linear@d", tol=1e-6)
    features = parts[list("abcde")]
    model.fit(features, parts["class"], sample_weight=parts["weight"])
    plain = SVC(kernel="rbf(gamma=0.3)@[a, b, c] + linear@d", tol=1e-6)
    plain.fit(frame[list("abcde")], frame["class"], data["weight"])
    assert_same(model, plain, 1e-10)
    assert list(model.feature_names_in_) == list("abcde")
    np.testing.assert_array_equal(
        model.predict(features).compute(), plain.predict(frame[list("abcde")])
    )


def test_sparse_chunks_and_columns_in_chunks(client, data):
    X = np.where(np.abs(data["X"]) < 0.8, 0.0, data["X"])
    rows = da.from_array(X, chunks=(CHUNK, 2)).rechunk((CHUNK, -1))
    model = DaskSVC(tol=1e-6, working_set=512)
    model.fit(rows.map_blocks(sparse.csr_array), data["two"])
    plain = SVC(tol=1e-6).fit(sparse.csr_array(X), data["two"])
    assert_same(model, plain, 1e-10)
    assert sparse.issparse(model.support_vectors_)
    model.fit(da.from_array(X, chunks=(CHUNK, 2)), data["two"])
    assert_same(model, plain, 1e-10)


def test_probabilities(client, data):
    X, y = chunked(data["X"]), chunked(data["four"])
    model = DaskSVC(probability=True, random_state=0).fit(X, y)
    found = model.predict_proba(X)
    assert found.shape == (N, 4)
    plain = SVC(probability=True, random_state=0).fit(data["X"], data["four"])
    # Folds are others, and so sigmoids differ a little.
    difference = np.abs(found.compute() - plain.predict_proba(data["X"]))
    assert difference.mean() < 0.01
    same = model.predict(X).compute() == plain.predict(data["X"])
    assert same.mean() > 0.97


def test_predict_for_any_estimator(client, data):
    X = chunked(data["X"])
    pca = KernelPCA(3, kernel="rbf").fit(data["X"][:300])
    found = predict(pca, X, method="transform")
    assert found.chunks == (X.chunks[0], (3,))
    np.testing.assert_allclose(found.compute(), pca.transform(data["X"]))
    with pytest.raises(AttributeError, match="no method 'predict'"):
        predict(pca, X)
    with pytest.raises(ValueError, match="expecting 5 features"):
        predict(pca, X[:, :2], method="transform")


class AtRound(FitCallback):
    """Does something once, when a round has ended."""

    def __init__(self, number, action):
        self.number = number
        self.action = action
        self.count = 0

    def receive(self, estimator, task, metadata):
        self.count += 1
        return bool(self.count == self.number and self.action())


def killer(client):
    """Return what kills the process of one worker."""
    pid = next(iter(client.run(os.getpid).values()))
    return lambda: os.kill(pid, signal.SIGKILL)


def slow_fit(**settings):
    """A machine that needs many rounds."""
    return DaskSVC(C=3.0, tol=1e-6, working_set=128, **settings)


def test_a_killed_worker_is_replaced(client, data):
    own = list(client.run(os.getpid).values())
    model = slow_fit().set_callbacks(
        AtRound(5, lambda: os.kill(own[0], signal.SIGKILL))
    )
    model.fit(chunked(data["X"]), chunked(data["two"]))
    assert model.n_restores_ >= 1
    assert_same(model, SVC(C=3.0, tol=1e-6).fit(data["X"], data["two"]), 1e-10)
    client.wait_for_workers(2, timeout=600)  # the nanny starts another one


def test_workers_that_always_fail_are_an_error(client, data, monkeypatch):
    class Failing:  # pickled with its code, since workers cannot import it
        def __init__(self, *_):
            raise MemoryError("no room")

    monkeypatch.setattr(actors, "WorkerShards", Failing)
    X, y = data["X"][:200], data["two"][:200]
    words = r"max_restores=2 allows 2.*The last error was MemoryError\('no room'\)"
    with pytest.raises(RuntimeError, match=words) as caught:
        DaskSVC(max_restores=2).fit(chunked(X), chunked(y))
    assert isinstance(caught.value.__cause__, MemoryError)


def test_a_worker_that_joins_gets_work(client, cluster, data, monkeypatch):
    from mercer.engines.cluster import actors

    monkeypatch.setattr(actors, "JOIN_EVERY", 0.0)
    seen = []
    release = actors.ActorCarrier.release

    def note(self, chunks):
        seen.append(chunks)
        release(self, chunks)

    monkeypatch.setattr(actors.ActorCarrier, "release", note)

    def join():
        cluster.scale(3)
        client.wait_for_workers(3, timeout=600)

    model = slow_fit().set_callbacks(AtRound(5, join))
    model.fit(chunked(data["X"]), chunked(data["two"]))
    cluster.scale(2)
    assert seen and model.n_restores_ == 0
    assert_same(model, SVC(C=3.0, tol=1e-6).fit(data["X"], data["two"]), 1e-10)


@pytest.fixture
def heeds_interrupts():
    """Let SIGINT interrupt, also where tests run in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_an_interrupt_leaves_the_cluster_clean(client, data, heeds_interrupts):
    X, y = chunked(data["X"]), chunked(data["two"])

    def interrupt():
        main = threading.main_thread().ident
        signal.pthread_kill(main, signal.SIGINT)

    model = slow_fit().set_callbacks(AtRound(5, interrupt))
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert not hasattr(model, "support_")
    assert_clean(client)
    again = slow_fit().fit(X, y)
    assert again.converged_


def test_a_callback_may_end_the_fit(client, data):
    model = slow_fit().set_callbacks(AtRound(3, lambda: True))
    with pytest.warns(UserWarning, match="asked for an early end"):
        model.fit(chunked(data["X"]), chunked(data["two"]))
    assert not model.converged_
    assert model.kkt_gap_[0] > 1e-6


def test_errors_name_the_chunk(client, data):
    X = data["X"].copy()
    X[2 * CHUNK + 7, 1] = np.nan
    with pytest.raises(ValueError, match=r"In chunk 2 of X: Row 7 .*column 1"):
        DaskSVC().fit(chunked(X), data["two"])
    with pytest.raises(ValueError, match="number of classes"):
        DaskSVC().fit(chunked(data["X"]), np.zeros(N))
    with pytest.raises(ValueError, match="1200 rows and y has 7"):
        DaskSVC().fit(chunked(data["X"]), np.zeros(7))


def test_what_a_cluster_cannot_do_is_refused(client, data):
    X, y = chunked(data["X"]), data["two"]
    with pytest.raises(TypeError, match="Dask array or data frame, got ndarray"):
        DaskSVC().fit(data["X"], y)
    with pytest.raises(ValueError, match="needs all samples at once"):
        DaskSVC(kernel="precomputed").fit(X, y)
    with pytest.raises(ValueError, match="'auto' or 'decompose', got 'smo'"):
        DaskSVC(solver="smo").fit(X, y)
    with pytest.raises(ValueError, match="working_set"):
        DaskSVC(working_set=1).fit(X, y)
    with pytest.raises(TypeError, match="client must be a synchronous"):
        DaskSVC(client="tcp://elsewhere").fit(X, y)


def test_copies_share_the_client_and_pickles_have_none(client, data):
    model = DaskSVC(client=client, working_set=512)
    assert clone(model).client is client
    model.fit(chunked(data["X"]), data["two"])
    read = pickle.loads(pickle.dumps(model))
    assert read.client is None
    np.testing.assert_array_equal(
        read.predict(data["X"]), model.to_local().predict(data["X"])
    )


def test_chunks_without_a_source_cannot_come_back(client, data):
    parts = client.scatter([data["X"][:600], data["X"][600:]], direct=True)
    X = da.concatenate([da.from_delayed(part, (600, 5), float) for part in parts])
    del parts
    model = slow_fit().set_callbacks(AtRound(5, killer(client)))
    with pytest.raises(RuntimeError, match="cannot compute it again"):
        model.fit(X, data["two"])
    del X
    client.wait_for_workers(2, timeout=600)


class Unsteady:
    """A chunk that is lost just after it was found, and goes through some states."""

    def __init__(self, *states):
        self.states = list(states)

    @property
    def status(self):
        return self.states.pop(0)

    def result(self):
        raise ZeroDivisionError("computing the chunk failed")


@pytest.mark.parametrize(
    ("end", "error", "words"),
    [
        ("finished", None, None),
        ("cancelled", RuntimeError, "Chunk 0 .* cannot compute it again"),
        ("error", ZeroDivisionError, "computing the chunk failed"),
    ],
)
def test_a_chunk_that_is_lost_again_is_awaited_again(monkeypatch, end, error, words):
    carrier = ActorCarrier.__new__(ActorCarrier)
    carrier._chunks = [Unsteady("lost", "pending", end)]
    calls = []
    monkeypatch.setattr(actors, "wait", calls.append)
    with pytest.raises(error, match=words) if error else nullcontext():
        carrier._await_chunks([0])
    assert len(calls) == 3
    assert not carrier._chunks[0].states


def test_a_search_on_a_cluster(client, data):
    grid = {"C": [0.1, 1.0, 10.0], "gamma": [0.1, 0.4], "kernel": ["rbf", "linear"]}
    X, y = data["X"][:300], data["two"][:300]
    mine = GridSearchCV(SVC(), grid, cv=3).fit(X, y)
    plain = selection.GridSearchCV(SVC(), grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        mine.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    assert mine.best_params_ == plain.best_params_
    assert mine.sharing_.n_shared == plain.sharing_.n_shared == 36
    assert mine.sharing_.n_grams <= 4  # one for each setting: the linear one has two
    found = RandomizedSearchCV(SVC(), grid, n_iter=4, cv=2, random_state=0).fit(X, y)
    assert clone(found).client is None
    assert len(found.cv_results_["params"]) == 4


def test_a_search_over_linear_machines(client, data):
    grid = {"C": [0.1, 1.0], "loss": ["hinge", "squared_hinge"]}
    X, y = data["X"][:300], data["two"][:300]
    mine = GridSearchCV(LinearSVC(), grid, cv=3).fit(X, y)
    plain = selection.GridSearchCV(LinearSVC(), grid, cv=3).fit(X, y)
    np.testing.assert_array_equal(
        mine.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"]
    )
    assert mine.sharing_ == plain.sharing_
    assert mine.sharing_.n_shared == 12


def test_the_page_of_the_documentation(client, cluster, monkeypatch):
    # The page starts a cluster and closes it: here it gets that of the tests.
    monkeypatch.setattr("dask.distributed.LocalCluster", lambda **_: cluster)
    monkeypatch.setattr(cluster, "close", lambda: None)
    page = Path(__file__).parents[2] / "docs" / "cluster.md"
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page.read_text(), re.S):
        exec(compile(block, str(page), "exec"), names)
    assert names["accuracy"] > 0.9
    assert names["search"].sharing_.n_shared == 12


def test_dask_is_needed_by_its_own_package_only():
    code = (
        "import sys; sys.modules['distributed'] = sys.modules['dask'] = None\n"
        "import mercer; mercer.SVC\n"
        "try:\n    import mercer.dask\n"
        "except ImportError as error:\n    sys.exit(str(error))\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "pip install dask distributed" in run.stderr
    assert run.stderr.count("\n") == 1
