"""Every kernel machine on a card, with NumPy in its place, beside the processor."""

import inspect
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone, is_regressor
from sklearn.callback import ProgressBar
from sklearn.exceptions import NotFittedError

import mercer
from host_card import HostCard
from mercer import (
    SVC,
    SVDD,
    SVR,
    KernelKMeans,
    KernelPCA,
    MKLClassifier,
    MKLRegressor,
    NuSVC,
    NuSVR,
    OneClassSVM,
    kernels,
)
from mercer.engines.cuda import card as card_module

BASE = [kernels.RBF(gamma=0.1), kernels.RBF(gamma=1.0), kernels.Linear()]
MACHINES = {
    "SVC": SVC(C=3.0),
    "SVC ovr": SVC(C=3.0, multiclass="ovr"),
    "SVC ecoc": SVC(multiclass="ecoc", random_state=0),
    "SVC probability": SVC(probability=True, random_state=0),
    "SVC laplacian": SVC(kernel="laplacian", gamma=0.1),
    "SVC poly": SVC(kernel="poly", coef0=1.0),
    "SVC linear": SVC(kernel="linear"),
    "SVC sum": SVC(kernel=kernels.RBF(0.2) + 0.1 * kernels.Linear().on([0, 2])),
    "SVC function": SVC(kernel=lambda X, Z: (X @ Z.T + 1.0) ** 2),
    "NuSVC": NuSVC(nu=0.2),
    "SVR": SVR(epsilon=0.05),
    "NuSVR": NuSVR(nu=0.4),
    "OneClassSVM": OneClassSVM(nu=0.2),
    "SVDD": SVDD(),
    "MKLClassifier": MKLClassifier(BASE),
    "MKLRegressor": MKLRegressor(BASE),
    "KernelPCA": KernelPCA(3, kernel="rbf", gamma=0.2),
    "KernelKMeans": KernelKMeans(3, gamma=0.2, random_state=0),
}
every_machine = pytest.mark.parametrize("name", MACHINES)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 4))
    y = (X[:, 0] * X[:, 1] > 0).astype(int) + (X[:, 2] > 0.2)
    return X, np.array(["one", "two", "three"])[y], X[:, 0] + np.sin(X[:, 1])


def targets(model, data):
    _, labels, values = data
    return values if is_regressor(model) else labels


def answers(model, X):
    if hasattr(model, "predict_proba"):
        return model.predict_proba(X)
    for method in ("decision_function", "transform", "predict"):
        if hasattr(model, method):
            return getattr(model, method)(X)
    raise AssertionError


def fitted(model, data, X=None):
    X = data[0] if X is None else X
    if isinstance(model, KernelPCA | KernelKMeans | OneClassSVM | SVDD):
        return model.fit(X)
    return model.fit(X, targets(model, data))


@pytest.fixture
def any_cuda(any_card, monkeypatch):
    """Machines with device="cuda" find NumPy in its place, or the card itself."""
    if isinstance(any_card, HostCard):
        monkeypatch.setattr(card_module, "open_card", lambda index: any_card)
    return any_card


@every_machine
@pytest.mark.parametrize("kind", [np.float32, np.float64, sparse.csr_matrix])
def test_a_card_finds_what_the_processor_finds(name, kind, data, any_cuda):
    if name == "SVC function" and kind is sparse.csr_matrix:
        pytest.skip("this function takes dense samples")
    X = kind(data[0]) if kind is sparse.csr_matrix else data[0].astype(kind)
    model = MACHINES[name]
    if "Kernel" not in name:
        model = clone(model).set_params(tol=1e-5)
    here = fitted(clone(model), data, X)
    there = fitted(clone(model).set_params(device="cuda"), data, X)
    assert getattr(there, "converged_", True)
    ours, theirs = answers(there, X), answers(here, X)
    if name == "KernelPCA":  # signs of components are free
        ours, theirs = abs(ours), abs(theirs)
    if name == "KernelKMeans":  # and so are the numbers of clusters
        ours, theirs = np.sort(ours, axis=1), np.sort(theirs, axis=1)
    scale = np.abs(theirs).max()
    np.testing.assert_allclose(ours, theirs, atol=2e-3 * scale)
    if hasattr(here, "objective_"):
        np.testing.assert_allclose(there.objective_, here.objective_, rtol=1e-4)


@every_machine
def test_fitted_attributes_are_in_the_main_memory(name, data, cuda):
    model = fitted(clone(MACHINES[name]).set_params(device="cuda"), data)
    for attribute, value in vars(model).items():
        assert not cuda.is_here(value), attribute
    if name != "SVC function":  # a function without a name cannot be pickled
        again = pickle.loads(pickle.dumps(model))
        np.testing.assert_array_equal(answers(again, data[0]), answers(model, data[0]))


@every_machine
def test_a_model_moves_between_devices(name, data, any_cuda, monkeypatch):
    model = fitted(clone(MACHINES[name]).set_params(device="cuda"), data)
    there = answers(model, data[0])
    monkeypatch.setattr(card_module, "open_card", None)  # the card is gone
    here = answers(model.set_params(device="cpu"), data[0])
    np.testing.assert_allclose(here, there, rtol=1e-6, atol=1e-8)


def test_values_are_computed_on_the_card(data, cuda):
    model = fitted(SVC(device="cuda"), data)
    assert {name.rsplit("_", 1)[0] for name in cuda.launches} >= {
        "gaussian_in_place",
        "take_pair_steps",
    }
    n_launches = len(cuda.launches)
    model.predict(data[0][:1])  # few samples, too
    assert len(cuda.launches) > n_launches


def test_model_files_do_not_need_a_card(data, cuda, tmp_path, monkeypatch):
    pytest.importorskip("skops.io")
    X = data[0]
    model = fitted(SVC(device="cuda"), data)
    expected = model.decision_function(X)
    mercer.save(model, tmp_path / "model.skops")

    def missing(index):
        raise ImportError("no card")

    monkeypatch.setattr(card_module, "open_card", missing)
    again = mercer.load(tmp_path / "model.skops")
    with pytest.raises(ImportError, match="no card"):
        again.predict(X)
    again.set_params(device="cpu")
    np.testing.assert_allclose(again.decision_function(X), expected, atol=1e-9)


@every_machine
def test_every_machine_has_the_parameter(name):
    model = MACHINES[name]
    assert model.get_params()["device"] == "cpu"
    assert clone(model).set_params(device="cuda:1").get_params()["device"] == "cuda:1"
    assert "device : {" in inspect.getdoc(type(model))


@every_machine
def test_a_wrong_device_is_refused_before_any_work(name, data):
    for device, message in (("gpu", "Unknown device 'gpu'"), (0, "device")):
        with pytest.raises(ValueError, match=message):
            fitted(clone(MACHINES[name]).set_params(device=device), data)


@every_machine
def test_without_cupy_nothing_falls_back(name, data, monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(card_module, "_opened", {})
    model = clone(MACHINES[name]).set_params(device="cuda")
    with pytest.raises(ImportError, match=r"needs the package CuPy.*cupy-cuda13x"):
        fitted(model, data)
    with pytest.raises(NotFittedError):
        answers(model, data[0])


def test_a_small_card_fits_what_its_memory_allows(data, cuda):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(400, 10))
    y = (X[:, 0] * X[:, 1] > 0).astype(int)
    expected = SVC(C=10.0, tol=1e-4).fit(X, y)
    cuda.ledger.limit = 600_000  # the matrix of all samples has 1,280,000 bytes
    model = SVC(C=10.0, tol=1e-4, device="cuda").fit(X, y)
    assert model.converged_
    assert cuda.ledger.peak <= 600_000
    assert model.objective_ == pytest.approx(expected.objective_, rel=1e-5)
    np.testing.assert_allclose(
        model.decision_function(X), expected.decision_function(X), atol=2e-3
    )


def test_a_full_card_leaves_the_old_model(data, cuda):
    model = fitted(SVC(device="cuda"), data)
    before = model.decision_function(data[0])
    cuda.ledger.limit = cuda.ledger.used + 500
    with pytest.raises(MemoryError, match=r"no memory left.*cache_size='auto'"):
        model.fit(np.ones((500, 4)), np.arange(500) % 2)
    cuda.ledger.limit = None
    np.testing.assert_array_equal(model.decision_function(data[0]), before)


def test_callbacks_and_progress_come_from_a_card(data, cuda, capsys):
    fitted(SVC(device="cuda", verbose=2), data)
    assert capsys.readouterr()
    fitted(SVC(device="cuda").set_callbacks(ProgressBar()), data)


def test_matrices_of_many_kernels_must_fit_into_the_main_memory(data, cuda):
    model = MKLClassifier(BASE, device="cuda", cache_size=0.1)
    with pytest.raises(MemoryError, match=r"do not fit the card.*Raise cache_size"):
        fitted(model, data)


def test_an_interrupt_leaves_the_old_model(data, cuda):
    model = fitted(SVC(device="cuda"), data)
    before = model.decision_function(data[0])

    def interrupted(grid, block, *arguments):
        raise KeyboardInterrupt

    for name in list(cuda._twins):
        if name.startswith("take_pair_steps"):
            cuda._twins[name] = interrupted
    with pytest.raises(KeyboardInterrupt):
        model.fit(data[0][:50], data[1][:50])
    np.testing.assert_array_equal(model.decision_function(data[0]), before)


def test_several_threads_share_a_card(data, cuda):
    expected = answers(fitted(SVC(device="cuda"), data), data[0])
    shared = fitted(SVC(device="cuda"), data)

    def work(_):
        own = answers(fitted(SVC(device="cuda"), data), data[0])
        return own, answers(shared, data[0])

    with ThreadPoolExecutor(4) as pool:
        for own, common in pool.map(work, range(8)):
            np.testing.assert_array_equal(own, expected)
            np.testing.assert_array_equal(common, expected)
