import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, settings

from real_data import read_data

# `make test` tries the same examples in every run, so that it fails only for what was
# changed. `make test-all` draws new ones, with --hypothesis-profile=varied; an example
# that fails is printed with the line that tries it again. How long an example takes
# says nothing about Mercer: the computer may be busy, or code may have to be compiled.
at_leisure = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("steady", at_leisure, derandomize=True)
settings.register_profile(
    "varied", at_leisure, derandomize=False, database=None, print_blob=True
)
settings.load_profile("steady")


@pytest.fixture
def rng():
    return np.random.default_rng(0)


@pytest.fixture
def array_api(monkeypatch):
    """Let scikit-learn check dispatch by arrays; it skips that without this variable.

    The variable is not set for all tests: most users of SciPy do not set it either.
    """
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")


@pytest.fixture
def the_long_way(monkeypatch):
    """Let small problems be solved as large ones are."""
    monkeypatch.setattr("mercer.engines.cpu.small.MOST_SAMPLES", 0)
    monkeypatch.setattr("mercer.engines.cpu.class_pairs.MOST_SAMPLES", 0)


@pytest.fixture
def card():
    """NumPy in the place of a graphics card, as strict as CuPy."""
    from card_twins import TWINS
    from host_card import HostCard

    return HostCard(twins=TWINS)


@pytest.fixture(params=["numpy", pytest.param("card", marks=pytest.mark.gpu)])
def any_card(request):
    """NumPy in the place of a card, and the card of this machine if it has one."""
    return _a_card(request.param)


@pytest.fixture(
    params=["numpy", "emulated", pytest.param("card", marks=pytest.mark.gpu)]
)
def every_card(request):
    """All of them: functions of a card may also be compiled for the processor."""
    return _a_card(request.param)


def _a_card(kind):
    import emulated_card
    from card_twins import TWINS
    from host_card import HostCard
    from real_card import real_card

    if kind == "card":
        return real_card()
    if kind == "numpy":
        return HostCard(twins=TWINS)
    if emulated_card.MISSING:
        pytest.skip(emulated_card.MISSING)
    return HostCard(twins=emulated_card.functions())


@pytest.fixture
def cuda(card, monkeypatch):
    """Let device="cuda" find NumPy in the place of a graphics card."""
    monkeypatch.setattr("mercer.engines.cuda.card.open_card", lambda index: card)
    return card


@pytest.fixture
def run_benchmark(monkeypatch):
    """Return what runs a program of benchmarks, without data, in this process.

    A new process would spend seconds on imports.
    """
    monkeypatch.delenv("MERCER_DATA", raising=False)

    def run(program, *arguments):
        monkeypatch.setattr(sys, "argv", [program.__name__, *arguments])
        return program.main()

    return run


@pytest.fixture(scope="session")
def mnist():
    """Pixels in [0, 1] and digits, read-only."""
    data = read_data("mnist")
    X = (data["x_train"].reshape(-1, 784) / np.float32(255)).astype(np.float32)
    y = data["y_train"].astype(int)
    X.flags.writeable = y.flags.writeable = False
    return X, y
