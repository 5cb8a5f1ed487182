"""The card: its names, what is missing without one, and the stand-in's strictness."""

import subprocess
import sys

import numpy as np
import pytest

from host_card import HostCard
from mercer.engines.cuda import card as card_module
from mercer.engines.cuda.card import card_of
from mercer.runtime.devices import check_device


@pytest.mark.parametrize("device", ["cpu", "cuda", "cuda:0", "cuda:12"])
def test_names_of_devices(device):
    check_device(device)


@pytest.mark.parametrize(
    "device", ["gpu", "cuda:", "cuda:-1", "CUDA", 0, None, "cuda:a"]
)
def test_other_names_are_refused(device):
    with pytest.raises(ValueError, match=r"Unknown device .*'cuda:N'"):
        check_device(device)


def test_without_cupy_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr(card_module, "_opened", {})
    with pytest.raises(ImportError, match=r"pip install cupy-cuda13x.*device='cpu'"):
        card_of("cuda")


class _NoDriver(Exception):
    pass


class _FakeRuntime:
    CUDARuntimeError = _NoDriver

    def __init__(self, count):
        self._count = count

    def getDeviceCount(self):
        if self._count is None:
            raise _NoDriver("cudaErrorNoDevice: no CUDA-capable device is detected")
        return self._count


@pytest.mark.parametrize(
    ("count", "index", "kind", "text"),
    [
        (None, 0, OSError, "needs an NVIDIA graphics card and its driver"),
        (1, 1, ValueError, "device='cuda:1' was asked for; this machine has 'cuda:0'"),
        (3, 5, ValueError, "'cuda:0' to 'cuda:2'"),
    ],
)
def test_without_a_card_the_message_says_so(count, index, kind, text):
    from types import SimpleNamespace

    cupy = SimpleNamespace(cuda=SimpleNamespace(runtime=_FakeRuntime(count)))
    with pytest.raises(kind, match=text):
        card_module._check_index(cupy, index)


def test_cupy_is_not_imported_unless_asked_for():
    code = (
        "import sys, numpy as np, mercer, mercer.kernels\n"
        "from mercer import SVC\n"
        "SVC().fit(np.eye(4), [0, 0, 1, 1]).predict(np.eye(4))\n"
        "assert not any(m.split('.')[0] in ('cupy', 'cupyx') for m in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_no_memory_left_says_what_to_set():
    card = HostCard(limit=1000)
    with pytest.raises(MemoryError, match=r"no memory left.*Set cache_size.*'cpu'"):
        with card.at_work(500):
            card.to_card(np.zeros(200))


def test_memory_leaves_a_margin():
    card = HostCard(limit=8 * 2**30)
    assert card.memory("auto") == int(8 * 2**30 * 0.9) + 1
    assert card.memory(100) == 100 * 2**20
    assert 0 <= HostCard(limit=100).memory("auto") <= 100


def test_the_stand_in_counts_memory():
    card = HostCard()
    a = card.to_card(np.zeros(100))
    view = a[:10]
    assert card.ledger.used == 800
    b = a + a
    assert card.ledger.used == card.ledger.peak == 1600
    del b, a
    assert card.ledger.used == 800  # the view keeps its memory
    del view
    assert card.ledger.used == 0


def test_the_stand_in_is_strict():
    card = HostCard()
    xp, host = card.xp, np.arange(3.0)
    there = card.to_card(host)
    np.testing.assert_array_equal(card.to_host(xp.exp(there) * 2), np.exp(host) * 2)
    for mix in (
        lambda: there + host,
        lambda: host + there,
        lambda: xp.add(there, host),
        lambda: np.exp(there),
        lambda: np.asarray(there),
        lambda: list(there),
        lambda: there[np.array([0, 1])],
        lambda: card.function("f")((1,), (1,), (there, 1.0)),
    ):
        with pytest.raises((TypeError, KeyError)):
            mix()


def test_functions_take_scalars_with_a_type_only():
    card = HostCard(twins={"double": lambda grid, block, x, n: x.__imul__(n)})
    there = card.to_card(np.ones(2))
    card.function("double")((1,), (1,), (there, np.float64(3)))
    np.testing.assert_array_equal(card.to_host(there), [3, 3])
    with pytest.raises(TypeError, match=r"Argument 1 of double is int"):
        card.function("double")((1,), (1,), (there, 3))
