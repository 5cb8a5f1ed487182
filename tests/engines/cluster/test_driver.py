"""The driver and its shards in one process: the same solutions as plain machines."""

import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from mercer import SVC, SVR, OneClassSVM, kernels
from mercer.engines.cluster.driver import plan_working_sets
from mercer.engines.cluster.messages import Round
from mercer.engines.cluster.shard import Missed

sys.path.insert(0, str(Path(__file__).parent))
from in_process import InProcess, cut, drive

N = 600


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 5))
    noise = 0.4 * rng.normal(size=N)
    score = np.sin(2 * X[:, 0]) + X[:, 1] * X[:, 2] + noise
    X.flags.writeable = False
    return {
        "X": X,
        "two": np.where(score > 0, 1, -1),
        "four": np.digitize(score, [-1.0, 0.0, 1.0]),
        "value": score,
        "weight": rng.choice([0.0, 0.5, 2.0], size=N, p=[0.1, 0.5, 0.4]),
    }


def assert_same(found, plain, tolerance):
    """Compare objectives, relative to their size, and look at the certificates."""
    expected = np.atleast_1d(plain.objective_)
    got = np.array([one.objective for one in found])
    assert all(one.converged for one in found)
    assert np.abs(got / expected - 1).max() <= tolerance
    assert max(one.kkt_gap for one in found) <= plain.tol


CASES = {
    "binary": (SVC(C=3.0, gamma=0.3), "two"),
    "ovo": (SVC(C=3.0, gamma=0.3), "four"),
    "ovr": (SVC(C=3.0, gamma=0.3, multiclass="ovr", class_weight="balanced"), "four"),
    "svr": (SVR(C=1.0, gamma=0.3, epsilon=0.3), "value"),
    "one-class": (OneClassSVM(nu=0.2, gamma=0.3), None),
    "algebra": (SVC(kernel="0.5*rbf(gamma=0.2) + linear@[0, 1]"), "two"),
    "scale": (SVC(kernel="rbf@[1, 2, 3] * poly(degree=2, coef0=1)"), "two"),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("tol, tolerance", [(1e-3, 1e-5), (1e-6, 1e-10)])
def test_the_solution_is_that_of_a_plain_fit(data, name, tol, tolerance):
    machine, targets = CASES[name]
    machine = machine.__class__(**machine.get_params()).set_params(tol=tol)
    y = None if targets is None else data[targets]
    carrier = InProcess(cut(4, data["X"], y))
    driver, found = drive(machine, carrier)
    assert_same(found, machine.fit(data["X"], y), tolerance)
    assert driver.n_restores == 0


def test_weights_count_as_in_a_plain_fit(data):
    X, y, weight = data["X"], data["two"], data["weight"]
    machine = SVC(gamma=0.3, tol=1e-6, class_weight={1: 2.0, -1: 0.5})
    _, found = drive(machine, InProcess(cut(3, X, y, weight)))
    assert_same(found, machine.fit(X, y, weight), 1e-10)


def test_sparse_chunks(data):
    X = np.where(np.abs(data["X"]) < 0.8, 0.0, data["X"])
    machine = SVC(gamma=0.3, tol=1e-6)
    chunks = cut(3, sparse.csr_array(X), data["two"])
    _, found = drive(machine, InProcess(chunks))
    assert_same(found, machine.fit(X, data["two"]), 1e-10)


def test_single_precision_data_are_certified_in_double_precision(data):
    X = data["X"].astype(np.float32)
    machine = SVC(C=30.0, gamma=0.3, tol=1e-6)
    _, found = drive(machine, InProcess(cut(3, X, data["two"])))
    plain = SVC(C=30.0, gamma=0.3, tol=1e-6).fit(X.astype(float), data["two"])
    assert_same(found, plain, 1e-10)
    assert found[0].error <= 1e-9


def test_kernel_rows_that_do_not_fit_are_computed_again(data):
    machine = SVC(C=3.0, gamma=0.3, tol=1e-6)
    rich = InProcess(cut(2, data["X"], data["two"]))
    poor = InProcess(cut(2, data["X"], data["two"]), budget=2**16)
    _, found = drive(machine, rich)
    _, same = drive(machine, poor)
    shard = poor.groups[0]._shards[0]
    assert len(shard._pool) < len(rich.groups[0]._shards[0]._pool)
    assert same[0].objective == pytest.approx(found[0].objective, rel=1e-12)


@pytest.mark.parametrize("name", ["binary", "ovo", "svr", "one-class"])
def test_a_lost_group_is_rebuilt_from_the_driver(data, name):
    machine, targets = CASES[name]
    machine = machine.__class__(**machine.get_params()).set_params(tol=1e-6)
    y = None if targets is None else data[targets]
    carrier = InProcess(cut(4, data["X"], y), n_groups=2)

    def lose(carrier, message):
        if message.number == 5:
            carrier.lose(1)

    carrier.on_exchange = lose
    driver, found = drive(machine, carrier)
    assert driver.n_restores == 1
    assert_same(found, machine.fit(data["X"], y), 1e-10)


def test_a_group_that_is_lost_while_certificates_are_computed(data):
    machine = SVC(C=3.0, gamma=0.3)
    carrier = InProcess(cut(4, data["X"], data["two"]), n_groups=2)

    def lose(carrier, message):
        if not isinstance(message, Round) and 0 in carrier.groups:
            carrier.lose(0)

    carrier.on_exchange = lose
    driver, found = drive(machine, carrier)
    assert driver.n_restores >= 1
    assert_same(found, machine.fit(data["X"], data["two"]), 1e-5)


def test_too_many_losses_are_an_error(data):
    carrier = InProcess(cut(4, data["X"], data["two"]), n_groups=2)
    carrier.on_exchange = lambda carrier, message: carrier.groups.clear()
    with pytest.raises(RuntimeError, match="max_restores=2 allows 2"):
        drive(SVC(), carrier, max_restores=2)


@pytest.mark.parametrize("max_restores", [0, 2])
def test_shards_that_cannot_be_made_are_an_error(data, max_restores, monkeypatch):
    pauses = []
    monkeypatch.setattr("mercer.engines.cluster.driver.time.sleep", pauses.append)
    carrier = InProcess(cut(4, data["X"], data["two"]), n_groups=2)
    asked = []

    def begin(setup, chunks):
        asked.append(chunks)
        carrier.error = MemoryError("no room")
        return InProcess.begin(carrier, setup, [0]) if len(asked) == 1 else {}

    carrier.begin = begin
    words = rf"max_restores={max_restores} allows .* The last error was MemoryError"
    with pytest.raises(RuntimeError, match=words) as caught:
        drive(SVC(), carrier, max_restores=max_restores)
    assert isinstance(caught.value.__cause__, MemoryError)
    assert asked == [[0, 1, 2, 3]] + [[1, 2, 3]] * max_restores
    assert pauses == sorted(pauses)
    assert len(pauses) == max_restores


def test_shards_that_are_made_later_take_part(data):
    machine = SVC(C=3.0)
    carrier = InProcess(cut(4, data["X"], data["two"]), n_groups=2)
    asked = []

    def begin(setup, chunks):
        asked.append(chunks)
        return InProcess.begin(carrier, setup, chunks[: len(asked) + 1])

    carrier.begin = begin
    driver, found = drive(machine, carrier)
    assert driver.n_restores >= len(asked) - 1 >= 1
    assert_same(found, machine.fit(data["X"], data["two"]), 1e-3)


def test_chunks_move_to_workers_that_join(data):
    machine = SVC(C=3.0, gamma=0.3, tol=1e-6)
    carrier = InProcess(cut(4, data["X"], data["two"]), n_groups=2)

    def join(carrier, message):
        if message.number == 4:
            carrier.move_next = [0, 3]

    carrier.on_exchange = join
    driver, found = drive(machine, carrier)
    assert carrier.places[0] == carrier.places[3] == 2
    assert driver.n_restores == 0
    assert_same(found, machine.fit(data["X"], data["two"]), 1e-10)


def test_messages_are_numbered(data):
    carrier = InProcess(cut(2, data["X"], data["two"]), n_groups=1)
    seen = []
    carrier.on_exchange = lambda carrier, message: seen.append(message)
    drive(SVC(gamma=0.3), carrier)
    group = carrier.groups[0]
    last = seen[-1]
    answer = group.handle(last)
    assert answer is group.handle(last)  # a second delivery changes nothing
    last.number += 2
    assert isinstance(group.handle(last), Missed)


def test_the_driver_forgets_samples_that_it_does_not_need():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    y = np.where(X[:, 0] + 0.02 * rng.normal(size=3000) > 0, 1, -1)
    machine = SVC(gamma=0.5)
    driver, found = drive(machine, InProcess(cut(3, X, y)), working_set=16)
    assert_same(found, machine.fit(X, y), 1e-5)
    assert len(driver.known) <= 2 * (len(found[0].variables) + 16) + 2 * 16 + 64


def broken(X, Z):
    raise ZeroDivisionError("the user's own fault")


def test_an_error_in_a_shard_is_raised(data):
    machine = SVC(kernel=kernels.Custom(broken))
    with pytest.raises(ZeroDivisionError, match="own fault"):
        drive(machine, InProcess(cut(2, data["X"], data["two"])))


def test_most_steps(data):
    machine = SVC(C=3.0, gamma=0.3, tol=1e-6, max_iter=50)
    _, found = drive(machine, InProcess(cut(2, data["X"], data["two"])))
    assert not found[0].converged
    assert found[0].n_iter == 50


def test_working_sets_are_shared_out():
    assert plan_working_sets("auto", 10, 1).size == 2048
    assert plan_working_sets("auto", 784, 1).size == 4096
    many = plan_working_sets(1024, 10, 45)
    assert many.size == 512
    assert many.n_active == 4
    assert plan_working_sets(64, 10, 3) == (64, 16, 2)
