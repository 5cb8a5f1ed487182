"""Arrays on a card come in, and the same kind goes out; libraries have stand-ins."""

import sys
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from mercer import SVC, SVR, KernelPCA, LinearSVC, gram_matrix
from mercer.kernels import RBF
from mercer.runtime.validation import is_on_card, like, to_host

HERE = ModuleType("cupy")
OTHER = ModuleType("torch")


class OnCard:
    """An array on the card with the number 1."""

    def __init__(self, values):
        self.values = np.asarray(values)

    shape = property(lambda self: self.values.shape)

    def __dlpack_device__(self):
        return 2, 1

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed.")


class CupyArray(OnCard):
    def get(self):
        return self.values.copy()


class Tensor(OnCard):
    is_detached = False

    def detach(self):
        found = Tensor(self.values)
        found.is_detached = True
        return found


class OnHost:
    def __dlpack_device__(self):
        return 1, 0


CupyArray.__module__, Tensor.__module__ = "cupy._core", "torch"


@pytest.fixture(autouse=True)
def libraries(monkeypatch, card):
    del card  # it has looked at the CuPy that is installed, if any
    current = []

    @contextmanager
    def device(number):
        current.append(number)
        yield
        current.pop()

    def asarray(values):
        assert current == [1], "the result belongs on the card of the data"
        return CupyArray(values)

    def from_dlpack(values):
        assert values.is_detached
        return CupyArray(values.values)

    HERE.cuda = SimpleNamespace(Device=device)
    HERE.asarray, HERE.from_dlpack = asarray, from_dlpack
    OTHER.from_dlpack = lambda values: Tensor(values.values)
    monkeypatch.setitem(sys.modules, "cupy", HERE)
    monkeypatch.setitem(sys.modules, "torch", OTHER)


def test_arrays_on_a_card_are_recognised():
    assert is_on_card(CupyArray([1.0])) and is_on_card(Tensor([1.0]))
    for other in (np.ones(2), [1.0], "text", None, 3.0, OnHost()):
        assert not is_on_card(other)
        assert to_host(other) is other
        assert like(other, other) is other


@pytest.mark.parametrize("kind", [CupyArray, Tensor])
def test_values_go_back_where_they_came_from(kind):
    X = kind(np.arange(6.0).reshape(3, 2))
    np.testing.assert_array_equal(to_host(X), X.values)
    found = like(X, np.array([1.0, 2.0]))
    assert type(found) is kind
    np.testing.assert_array_equal(found.values, [1.0, 2.0])
    names = np.array(["a", "b"])
    assert like(X, names) is names
    assert like(X, 0.5) == 0.5


@pytest.mark.parametrize("kind", [CupyArray, Tensor])
def test_machines_return_the_kind_of_array_that_they_were_given(kind, cuda):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = (X[:, 0] > 0).astype(int)
    names = np.array(["no", "yes"])[y]
    model = SVC(device="cuda", probability=True, random_state=0).fit(kind(X), kind(y))
    assert isinstance(model.support_vectors_, np.ndarray)
    plain = SVC(probability=True, random_state=0).fit(X, y)
    for method in ("predict", "decision_function", "predict_proba"):
        found = getattr(model, method)(kind(X))
        assert type(found) is kind
        expected = getattr(plain, method)(X)
        np.testing.assert_allclose(found.values, expected, atol=2e-3)
        assert isinstance(getattr(model, method)(X), np.ndarray)
    assert model.score(kind(X), kind(y)) == plain.score(X, y)
    text = SVC(device="cuda").fit(kind(X), names)
    assert text.predict(kind(X)).dtype.kind == "U"  # a NumPy array
    weighted = SVR(device="cuda").fit(kind(X), y, sample_weight=kind(np.ones(40)))
    assert type(weighted.predict(kind(X))) is kind
    assert 0 < weighted.score(kind(X), y) <= 1
    pca = KernelPCA(2, kernel="rbf", device="cuda")
    assert type(pca.fit_transform(kind(X))) is kind
    assert type(gram_matrix(RBF(1.0), kind(X), device="cuda")) is kind


def test_arrays_choose_their_card(monkeypatch, card):
    asked = []

    def open_card(index):
        asked.append(index)
        return card

    monkeypatch.setattr("mercer.engines.cuda.card.open_card", open_card)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(30, 3))
    y = (X[:, 0] > 0).astype(int)
    model = SVC().fit(CupyArray(X), y)
    assert set(asked) == {1} and model.device == "cpu"
    asked.clear()
    found = model.predict(CupyArray(X))
    assert set(asked) == {1}
    np.testing.assert_array_equal(model.predict(X), found.values)
    assert type(gram_matrix(RBF(1.0), CupyArray(X))) is CupyArray
    asked.clear()
    model.set_params(device="cuda:3").predict(CupyArray(X))
    assert set(asked) == {3}
    asked.clear()
    assert model.set_params(device="cpu").predict(X[:3]).shape == (3,) and not asked


def test_a_fit_that_fails_leaves_the_estimator_as_it_was(cuda):
    X = CupyArray(np.eye(4))
    model = SVC().fit(X, [0, 0, 1, 1])
    before = vars(model).copy()
    with pytest.raises(ValueError):
        model.fit(X, [0, 0, 0, 0])
    assert vars(model) == before


def test_machines_without_a_device_refuse_arrays_on_a_card():
    with pytest.raises(ValueError, match=r"LinearSVC computes on the processor.*get"):
        LinearSVC().fit(CupyArray(np.eye(4)), [0, 0, 1, 1])
