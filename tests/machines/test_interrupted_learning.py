"""Whatever ends a call of learning, the model is one that learning can go on with."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone

from faults import Fault, moments
from mercer import SVC, OnlineSVC, PassiveAggressiveClassifier
from mercer.engines.cpu.held import HeldRows, sample_keys
from mercer.kernels import RBF, Linear
from mercer.machines.passive.learnt_weights import FeaturePart

PLACES = ("online", "passive", "store.py", "streams.py")
CLASSES = [0, 1, 2]
ONLINE = {
    "lasvm": OnlineSVC(2.0, gamma=0.5),
    "smo": OnlineSVC(2.0, gamma=0.5, method="smo"),
    "budget": OnlineSVC(2.0, gamma=0.5, budget=25, multiclass="ovo"),
    "columns": OnlineSVC(2.0, RBF(0.5).on([0, 1]) + Linear(), duplicates="add"),
    "full": OnlineSVC(2.0, gamma=0.5, method="smo", cache_size=0.03),
}
PASSIVE = {
    "linear": PassiveAggressiveClassifier(average=True),
    "kernel": PassiveAggressiveClassifier(kernel="rbf", gamma=0.5, budget=30),
}


def data(n=130, d=4):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, n)
    centers = np.random.default_rng(5).normal(size=(3, d))
    return centers[y] + 0.8 * rng.normal(size=(n, d)), y


def learnt(model, n=90):
    X, y = data()
    model = clone(model).set_params(random_state=0)
    if getattr(model, "cache_size", None) == "auto":
        model.set_params(cache_size=20)  # what is free may change during the test
    return model.partial_fit(X[:n], y[:n], classes=CLASSES)


def state(model):
    """Return what is learnt, but for kernel values, which can be computed again."""
    found = pickle.loads(pickle.dumps(model.__getstate__()))
    for name in ("_callback_fit_ctx", "_skl_callbacks_to_teardown"):
        found.pop(name, None)  # a fit that goes on
    found |= {name: repr(found.get(name)) for name in ("kernel", "kernel_")}
    held = found.get("_held", {})
    if "gram" in held:
        del held["gram"]["size"], held["gram"]["values"]
    if "rows" in held and sparse.issparse(held["rows"]["X"]):
        held["rows"]["X"] = held["rows"]["X"].toarray()
    return found


def same(one, other):
    try:
        np.testing.assert_equal(one, other)
    except AssertionError:
        return False
    return True


def states_of(model, call, monkeypatch):
    """Return the states before a call and after each of its steps."""
    found = [state(model)]
    accept = type(model)._accept

    def record(self, draft):
        accept(self, draft)
        found.append(state(self))

    with monkeypatch.context() as patch:
        patch.setattr(type(model), "_accept", record)
        call(model)
    return found


def assert_consistent(model):
    """Check that all parts of an OnlineSVC tell the same story."""
    held = model._held
    n = len(held)
    rows, label, cost = held.gram.rows.X, held.label[:n], held.cost[:n]
    K = model.kernel_.block(rows)
    np.testing.assert_allclose(held.gram.matrix[:n, :n], K, atol=1e-12)
    np.testing.assert_allclose(held.gram.diag, np.diag(K), atol=1e-12)
    beta = held.coefficients()
    np.testing.assert_allclose(held.f[:, :n], beta @ K, atol=1e-9)
    np.testing.assert_array_equal(held.side[:, :n], held.code[label].T)
    assert np.abs(beta.sum(axis=1)).max() < 1e-9
    assert (held.side[:, :n] * beta >= 0).all() and (np.abs(beta) <= cost).all()
    assert held.keys() == list(sample_keys(rows, label))
    assert [held._index.get(key) for key in held.keys()] == list(range(n))
    bias = [c.bias for c in held.certificates()]
    np.testing.assert_array_equal(model.intercept_, bias)
    assert model.n_features_in_ == rows.shape[1]


def assert_goes_on(model):
    """Check that finish reaches the optimum of SVC, and that more samples can come."""
    held = model._held
    rows, label = held.gram.rows.X.copy(), held.label[: len(held)].copy()
    cost = held.cost[: len(held)].copy()
    X, y = data()
    model.set_params(tol=1e-7).finish()
    batch = SVC(1.0, model.kernel_, tol=1e-7, multiclass=model.multiclass)
    batch.fit(rows, label, sample_weight=cost)
    np.testing.assert_allclose(model.objective_, batch.objective_, rtol=1e-6)
    assert_consistent(model.set_params(tol=1e-3).partial_fit(X[-9:], y[-9:]))


def calls(model):
    X, y = data()
    few = slice(90, 110)
    found = {
        "partial_fit": lambda m: m.partial_fit(X[few], y[few]),
        "fit": lambda m: m.fit(X, y),
    }
    if isinstance(model, OnlineSVC):
        weight = np.arange(130) % 3.0
        found |= {
            "finish": lambda m: m.finish(),
            "finish over data": lambda m: m.finish(X[:110], y[:110], weight[:110]),
            "forget": lambda m: m.forget(m.samples_[3:6]),
        }
    return found


CASES = [
    pytest.param(model, call, id=f"{name}, {call}")
    for name, model in (ONLINE | PASSIVE).items()
    for call in calls(model)
    if not (name in ("full", "budget") and call == "finish over data")
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, call", CASES)
def test_an_interrupted_call_ends_after_one_of_its_steps(model, call, monkeypatch):
    act = calls(model)[call]
    start = pickle.dumps(learnt(model))
    allowed = states_of(pickle.loads(start), act, monkeypatch)
    counted = pickle.loads(start)
    for at in moments(lambda: act(counted), PLACES, 40):
        model = pickle.loads(start)
        with Fault(KeyboardInterrupt, PLACES, at):
            act(model)
        found = state(model)
        assert any(same(found, one) for one in allowed), f"instruction {at}"
        if isinstance(model, OnlineSVC):
            assert_consistent(model)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("call", ["partial_fit", "finish over data", "forget"])
@pytest.mark.parametrize("name", ["lasvm", "smo"])
def test_learning_goes_on_after_an_interruption(name, call):
    act = calls(ONLINE[name])[call]
    start = pickle.dumps(learnt(ONLINE[name]))
    counted = pickle.loads(start)
    for at in moments(lambda: act(counted), PLACES, 8, first=77):
        model = pickle.loads(start)
        with Fault(MemoryError, PLACES, at):
            act(model)
        assert_consistent(model)
        assert_goes_on(model)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model, call", CASES)
def test_many_moments_of_a_call(model, call, monkeypatch):
    act = calls(model)[call]
    start = pickle.dumps(learnt(model))
    allowed = states_of(pickle.loads(start), act, monkeypatch)
    counted = pickle.loads(start)
    for at in moments(lambda: act(counted), PLACES, 150, first=3):
        model = pickle.loads(start)
        with Fault(KeyboardInterrupt, PLACES, at):
            act(model)
        assert any(same(state(model), one) for one in allowed), f"instruction {at}"


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", [*ONLINE, *PASSIVE])
def test_an_interrupted_stream_can_go_on(name):
    X, y = data()
    model = (ONLINE | PASSIVE)[name]

    def act(model):
        parts = [slice(k, k + 20) for k in range(0, 120, 20)]
        model.learn_stream([(X[p], y[p]) for p in parts], classes=CLASSES)

    for at in moments(lambda: act(clone(model)), PLACES, 25, first=11):
        found = clone(model)
        with Fault(KeyboardInterrupt, PLACES, at):
            act(found)
        history = getattr(found, "history_", None)
        if history is None:
            assert not hasattr(found, "classes_") and not hasattr(found, "_held")
        else:
            assert len({len(values) for values in history.values()}) == 1
            seen = history["n_seen"][-1] if history["n_seen"] else 0
            # The last chunk may have been learnt from and not yet counted.
            assert 0 <= found.n_seen_ - seen <= 20
            found.predict(X)
            if isinstance(found, OnlineSVC):
                assert_consistent(found)
        act(found)
        assert found.n_seen_ in range(120, 241)


@pytest.mark.parametrize("model", [ONLINE["lasvm"], *PASSIVE.values()], ids=str)
def test_a_callback_that_fails_leaves_the_old_model(model):
    class Failing:
        def setup(self, estimator, context): ...
        def teardown(self, estimator, context): ...
        def on_fit_task_begin(self, estimator, context): ...

        def on_fit_task_end(self, estimator, context, *, metadata=None):
            raise RuntimeError("full disk")

    X, y = data()
    model = learnt(model)
    before = state(model)
    model.set_callbacks(Failing())
    with pytest.raises(RuntimeError, match="full disk"):
        model.fit(X[:60, :2], y[:60] > 0)
    model.set_callbacks()
    np.testing.assert_equal(state(model), before)


@pytest.mark.parametrize("X", [np.asarray, sparse.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize("kernel", [None, "linear"])
def test_weights_that_overflow_leave_the_old_model(kernel, X):
    model = PassiveAggressiveClassifier(kernel=kernel, variant="pa")
    # So many features that a few samples touch only a part of the weights.
    few = np.zeros((4, 60))
    few[:, :3] = np.arange(12.0).reshape(4, 3) + 1
    model.partial_fit(X(few), [0, 1, 0, 1], classes=[0, 1])
    before = state(model)
    large = few.copy()
    large[0] *= 1e-170
    large[1:] *= 1e153
    with pytest.raises(ValueError, match="not finite"):
        model.partial_fit(X(large), [0, 1, 0, 1])
    np.testing.assert_equal(state(model), before)


def test_a_matrix_that_cannot_grow_leaves_the_old_model(monkeypatch):
    X, y = data()
    model = learnt(ONLINE["smo"], 60)
    before = state(model)

    def no_memory(*args, **kwargs):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr("mercer.engines.cpu.held.np.empty", no_memory)
        with pytest.raises(MemoryError):
            model.partial_fit(X[60:], y[60:])
    np.testing.assert_equal(state(model), before)
    assert_consistent(model.partial_fit(X[60:], y[60:]))


def test_values_that_were_let_go_are_computed_again(monkeypatch):
    X, y = data()
    model = learnt(ONLINE["full"])
    before = model.decision_function(X)
    model._held.gram.drop()
    np.testing.assert_array_equal(model.decision_function(X), before)
    assert_consistent(model)
    assert_consistent(model.partial_fit(X, y))


@pytest.mark.parametrize("name", ["budget", "columns", "kernel", "linear"])
def test_what_was_taken_over_can_settle_later(name, monkeypatch):
    if name == "linear":  # few of many features, so that their weights come late
        X = sparse.random(130, 4000, 0.001, format="csr", random_state=0)
        y = np.arange(130) % 3
        part = FeaturePart
    else:
        X, y = data()
        part = HeldRows
    model = clone((ONLINE | PASSIVE)[name])
    model.partial_fit(X[:90], y[:90], classes=CLASSES)
    undisturbed = pickle.loads(pickle.dumps(model)).partial_fit(X[90:110], y[90:110])
    waits = "_late" if part is FeaturePart else "_moves"
    settle = part.settle

    def interrupted(self):
        if getattr(self, waits) is not None:
            raise KeyboardInterrupt
        settle(self)

    with monkeypatch.context() as patch:
        patch.setattr(part, "settle", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.partial_fit(X[90:110], y[90:110])
    np.testing.assert_array_equal(
        model.decision_function(X), undisturbed.decision_function(X)
    )
    for one in (model, undisturbed):
        one.partial_fit(X[110:], y[110:])
    np.testing.assert_array_equal(
        model.decision_function(X), undisturbed.decision_function(X)
    )
