"""The card: its names, what is missing without one, and the stand-in's strictness."""

import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from host_card import ARRAY_NAMES, CUPY, HostCard
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
    columns = card.to_card(np.ones((2, 3))).T
    with pytest.raises(ValueError, match=r"Argument 0 of double is not in C order"):
        card.function("double")((1,), (1,), (columns, np.float64(3)))


@pytest.mark.skipif(CUPY is None, reason="CuPy is not installed")
def test_the_stand_in_refuses_what_cupy_refuses():
    card = HostCard()
    there = card.to_card(np.arange(6.0).reshape(2, 3))
    with pytest.raises(AttributeError, match=r"CuPy has no 'nested_iters'"):
        card.xp.nested_iters(there)
    with pytest.raises(TypeError, match=r"CuPy.*triu"):
        card.xp.triu(there, n=1)
    with pytest.raises(TypeError, match=r"CuPy.*mean"):
        there.mean(axis=0, where=True)
    for name in ARRAY_NAMES:
        assert hasattr(CUPY.ndarray, name), name


def test_a_card_of_cupy_is_asked_as_cupy_wants_it(monkeypatch):
    """The few lines that call CuPy itself, with a stand-in for CuPy."""
    calls = []

    class Device:
        def __init__(self, number):
            self.id = number

        def __enter__(self):
            calls.append(("enter", self.id))

        def __exit__(self, *exc):
            calls.append(("exit", self.id))

        def synchronize(self):
            calls.append("synchronize")

    class Array(np.ndarray):
        def get(self):
            return np.asarray(self)

    class OutOfMemoryError(MemoryError):
        pass

    class Pool:
        limit = 0

        def free_bytes(self):
            return 10

        def used_bytes(self):
            return 30

        def total_bytes(self):
            return 40

        def get_limit(self):
            return self.limit

        def free_all_blocks(self):
            calls.append("freed")

    class Module:
        def __init__(self, code, options):
            assert "__global__" in code and "--std=c++17" in options
            calls.append("compiled")

        def get_function(self, name):
            return lambda grid, block, arguments: calls.append((name, grid, block))

    pool = Pool()
    runtime = _FakeRuntime(2)
    runtime.memGetInfo = lambda: (100, 1000)
    memory = SimpleNamespace(OutOfMemoryError=OutOfMemoryError)
    cupy = ModuleType("cupy")
    cupy.ndarray, cupy.RawModule = Array, Module
    cupy.cuda = SimpleNamespace(runtime=runtime, Device=Device, memory=memory)
    cupy.asarray = lambda a, order: np.array(a, order=order).view(Array)
    cupy.get_default_memory_pool = lambda: pool
    matrices = ModuleType("cupyx.scipy.sparse")
    matrices.issparse = lambda X: False
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    monkeypatch.setitem(sys.modules, "cupyx.scipy.sparse", matrices)
    monkeypatch.setattr(card_module, "_opened", {})

    card = card_of("cuda:1")
    assert card_of("cuda:1") is card and card.name.endswith("cuda:1")
    there = card.to_card(np.ones((2, 3), order="F"))
    assert card.is_here(there) and there.flags.c_contiguous
    assert card.to_card(there) is there
    assert type(card.to_host(there)) is np.ndarray
    assert card.free_memory() == 110 and card.held_memory() == 40
    pool.limit = 50
    assert card.free_memory() == 20
    calls.clear()
    for _ in range(2):
        card.function("minima_float")((1,), (2,), (there, np.int32(1)))
    launched = ("minima_float", (1,), (2,))
    assert calls == [("enter", 1), "compiled", ("exit", 1), launched, launched]
    calls.clear()
    with pytest.raises(MemoryError, match=r"cuda:1 has no memory left: 7 bytes"):
        with card.at_work(100):
            assert calls == [("enter", 1)]
            raise OutOfMemoryError("7 bytes")
    card.synchronize()
    card.release_memory()
    assert {"synchronize", "freed"} <= set(calls)
    with pytest.raises(ValueError, match="'cuda:0' to 'cuda:1'"):
        card_of("cuda:2")
