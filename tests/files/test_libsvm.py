"""LIBSVM reads what `export_libsvm` has written, and answers alike."""

import os
import shutil
import subprocess

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.datasets import dump_svmlight_file

import mercer
from mercer import SVC
from mercer.kernels import RBF, Custom, Laplacian, Linear, Polynomial, Sigmoid
from model_files import (
    MACHINES,
    PLAIN_KERNELS,
    libsvm_values,
    real_fits,
    values_of,
)

KERNELS = [Linear(), Polynomial(3, 0.2, 1.0), RBF(0.3), Sigmoid(0.05, -0.1)]


def samples(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(60) % n_classes)
    X = rng.normal(size=(60, 4)) * (rng.random((60, 4)) > 0.3)
    X[:, 0] += y
    return X, y


@pytest.fixture(scope="module")
def svmutil():
    return pytest.importorskip(
        "libsvm.svmutil", reason="the package libsvm-official is not installed"
    )


@pytest.fixture(scope="module")
def program():
    found = shutil.which("svm-predict")
    if not found:
        pytest.skip("svm-predict is not installed (libsvm-tools of Debian has it)")
    return found


def by_package(svmutil, path, X, options="-q"):
    """Return labels and decision values, or probabilities, by LIBSVM's package."""
    model = svmutil.svm_load_model(str(path))
    labels, _, values = svmutil.svm_predict([], X, model, options)
    return np.array(labels), np.array(values), model


def by_program(program, path, X, *options, matrix=False):
    """Return the table that svm-predict prints."""
    test, out = path.with_suffix(".test"), path.with_suffix(".out")
    if matrix:
        rows = [
            f"0 0:{i + 1} " + " ".join(f"{j + 1}:{v!r}" for j, v in enumerate(row))
            for i, row in enumerate(X.tolist())
        ]
        test.write_text("\n".join(rows) + "\n")
    else:
        dump_svmlight_file(X, np.zeros(X.shape[0]), str(test), zero_based=False)
    command = [program, *options, str(test), str(path), str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return [line.split() for line in out.read_text().splitlines()]


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.csr_array])
def test_the_package_answers_alike(svmutil, tmp_path, kernel, n_classes, kind):
    X, y = samples(n_classes)
    new = samples(n_classes, seed=1)[0]
    model = SVC(kernel=kernel, decision_function_shape="ovo").fit(kind(X), y)
    mercer.export_libsvm(model, tmp_path / "m.model")
    labels, values, _ = by_package(svmutil, tmp_path / "m.model", new)
    expected = model.decision_function(kind(new))
    if n_classes == 2:
        values = -values.ravel()  # LIBSVM's positive side is the first class
    assert values == pytest.approx(expected, abs=1e-10)
    assert np.array_equal(labels, model.predict(kind(new)))


@pytest.mark.parametrize("kernel", KERNELS, ids=str)
@pytest.mark.parametrize("n_classes", [2, 4])
def test_the_program_answers_alike(program, tmp_path, kernel, n_classes):
    X, y = samples(n_classes)
    y = np.array([-7, 3, 5, 40])[y]
    new = samples(n_classes, seed=1)[0]
    for kind in (np.asarray, sparse.csr_matrix):
        model = SVC(kernel=kernel).fit(kind(X), y)
        mercer.export_libsvm(model, tmp_path / "m.model")
        table = by_program(program, tmp_path / "m.model", new)
        assert [int(row[0]) for row in table] == model.predict(kind(new)).tolist()


def test_a_precomputed_kernel(program, tmp_path):
    X, y = samples(3)
    K = X @ X.T
    model = SVC(kernel="precomputed").fit(K, y)
    mercer.export_libsvm(model, tmp_path / "m.model")
    table = by_program(program, tmp_path / "m.model", K, matrix=True)
    assert [int(row[0]) for row in table] == model.predict(K).tolist()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_by_the_package(svmutil, tmp_path, n_classes):
    X, y = samples(n_classes)
    model = SVC(probability=True, random_state=0).fit(X, y)
    mercer.export_libsvm(model, tmp_path / "m.model")
    _, values, found = by_package(svmutil, tmp_path / "m.model", X, "-q -b 1")
    assert found.get_labels() == list(model.classes_)
    assert values == pytest.approx(model.predict_proba(X), abs=0.005)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_probabilities_by_the_program(program, tmp_path, n_classes):
    X, y = samples(n_classes)
    model = SVC(probability=True, random_state=0).fit(X, y)
    mercer.export_libsvm(model, tmp_path / "m.model")
    first, *table = by_program(program, tmp_path / "m.model", X, "-b", "1")
    assert first == ["labels", *map(str, model.classes_)]
    values, expected = np.array(table, dtype=float), model.predict_proba(X)
    assert values[:, 1:] == pytest.approx(expected, abs=0.005)
    clear = np.diff(np.sort(expected)[:, -2:]).ravel() > 0.01
    assert np.array_equal(values[clear, 0], model.predict(X)[clear])


LIBSVM_HAS = [name for name in MACHINES if "one-vs-rest" not in name]


@pytest.mark.parametrize("kernel", PLAIN_KERNELS)
@pytest.mark.parametrize("machine", LIBSVM_HAS)
def test_every_machine_answers_alike_on_new_samples(program, tmp_path, machine, kernel):
    path = tmp_path / "m.model"
    for fit in real_fits(machine, kernel):
        model = fit.model
        mercer.export_libsvm(model, path)
        values = libsvm_values(path, fit.points, fit.seen)
        if hasattr(model, "classes_"):
            model.set_params(decision_function_shape="ovo")
        expected = values_of(model, fit.new).reshape(len(values), -1)
        if MACHINES[machine][1] == "side":
            values = -values  # LIBSVM's positive side is the first class
        assert values == pytest.approx(expected, abs=fit.tolerance), fit.case
        options = ("-b", "1") if "probabilities" in machine else ()
        new = fit.new if kernel == "precomputed" else fit.points
        table = by_program(program, path, new, *options, matrix=kernel == "precomputed")
        if options:
            table, expected = table[1:], model.predict_proba(fit.new)
            found = np.array(table, dtype=float)[:, 1:]
            tolerance = 1e-5 if found.shape[1] == 2 else 0.005
            assert found == pytest.approx(expected, abs=tolerance), fit.case
        answers = np.array([row[0] for row in table], dtype=float)
        assert answers == pytest.approx(model.predict(fit.new), abs=2e-5), fit.case


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@settings(max_examples=25, deadline=None)
@given(
    n_classes=st.integers(2, 5),
    C=st.floats(1e-3, 1e3),
    gamma=st.floats(1e-6, 10.0),
    size=st.sampled_from([1e-150, 1e-5, 1.0, 1e6]),
    seed=st.integers(0, 99),
)
def test_numbers_are_read_back_exactly(
    tmp_path_factory, n_classes, C, gamma, size, seed
):
    X, y = samples(n_classes, seed)
    path = tmp_path_factory.mktemp("libsvm") / "m.model"
    model = SVC(C=C, gamma=gamma).fit(size * X, y)
    mercer.export_libsvm(model, path)
    head, body = path.read_text().split("SV\n")
    lines = dict(line.split(" ", 1) for line in head.splitlines())
    assert float(lines["gamma"]) == gamma
    assert int(lines["total_sv"]) == len(model.support_)
    sign = -1 if n_classes == 2 else 1
    rho = np.array(lines["rho"].split(), dtype=float)
    assert np.array_equal(-sign * rho, model.intercept_)
    rows = [line.split() for line in body.splitlines()]
    coefficients = np.array([row[: n_classes - 1] for row in rows], dtype=float)
    assert np.array_equal(sign * coefficients.T, model.dual_coef_)
    found = np.zeros_like(model.support_vectors_)
    for i, row in enumerate(rows):
        for column, value in (entry.split(":") for entry in row[n_classes - 1 :]):
            found[i, int(column) - 1] = float(value)
    assert np.array_equal(found, model.support_vectors_)


def test_whole_numbers_may_be_floats(tmp_path):
    X, y = samples(2)
    mercer.export_libsvm(SVC().fit(X, 2.0 * y - 1.0), tmp_path / "m")
    assert "label -1 1\n" in (tmp_path / "m").read_text()


@pytest.mark.parametrize(
    "names, shown",
    [
        (["a", "b", "c"], "'a', 'b', 'c'"),
        ([False, True, True], "False, True"),
        ([0, 1, 2**31], "0, 1, 2147483648"),
    ],
)
def test_labels_that_libsvm_does_not_have(tmp_path, names, shown):
    X, y = samples(3)
    model = SVC().fit(X, np.array(names)[y])
    with pytest.raises(
        ValueError, match=rf"whole numbers up to 2147483647; got {shown}"
    ):
        mercer.export_libsvm(model, tmp_path / "m")
    assert os.listdir(tmp_path) == []


def test_models_that_libsvm_does_not_have(tmp_path):
    X, y = samples(3)
    path = tmp_path / "m"
    for kernel in (Laplacian(), 2.0 * RBF(1.0), Custom(lambda X, Z: X @ Z.T)):
        with pytest.raises(ValueError, match=r"does not have the kernel .*gram_matrix"):
            mercer.export_libsvm(SVC(kernel=kernel).fit(X, y), path)
    with pytest.raises(ValueError, match=r"multiclass='ovr' has no .*multiclass='ovo'"):
        mercer.export_libsvm(SVC(multiclass="ovr").fit(X, y), path)
    with pytest.raises(ValueError, match="decode='loss' with multiclass='ovo' has no"):
        mercer.export_libsvm(SVC(decode="loss").fit(X, y), path)
    with pytest.raises(ValueError, match="dict has no counterpart"):
        mercer.export_libsvm({}, path)
    assert os.listdir(tmp_path) == []


def test_a_failing_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "m"
    path.write_text("old")

    def fail(*_):
        raise OSError("No space left on device")

    monkeypatch.setattr("mercer.runtime.writing.os.fsync", fail)
    with pytest.raises(OSError, match="No space left"):
        mercer.export_libsvm(SVC().fit(*samples(2)), path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["m"]
