"""Models of scikit-learn with the same decision values."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn import svm
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.multiclass import OneVsRestClassifier

import model_files
from mercer import SVC, export_libsvm
from mercer.kernels import RBF, Custom, Laplacian, Linear, Polynomial
from mercer.machines.base.export import KernelFunction, to_sklearn
from mercer.runtime.validation import as_dense
from model_files import MACHINES, real_fits, values_of

KERNELS = [
    "linear",
    "rbf",
    "poly",
    "sigmoid",
    "rbf(gamma=0.7)",
    RBF(sigma=1.5),
    Polynomial(degree=2, gamma=0.5, coef0=1.0),
    Laplacian(),
    RBF(0.5) * Linear() + Laplacian().on([0, 2]),
    Custom(lambda X, Z: X @ Z.T),
]
KINDS = [np.asarray, sparse.csr_matrix, sparse.csr_array]


def samples(n_classes, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(80) % n_classes)
    X = rng.normal(size=(80, 4)) * (rng.random((80, 4)) > 0.3)
    X[:, 0] += y
    return X, y


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda v: str(v).split(" at ")[0])
@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("kind", KINDS)
def test_decisions_are_the_same(kernel, n_classes, kind):
    X, y = samples(n_classes)
    new = kind(samples(n_classes, seed=1)[0])
    model = SVC(kernel=kernel, C=3).fit(kind(X), y)
    other = model.to_sklearn()
    assert type(other) is svm.SVC
    assert other.decision_function(new) == pytest.approx(model.decision_function(new))
    assert np.array_equal(other.predict(new), model.predict(new))
    assert np.array_equal(other.n_support_, model.n_support_)
    if kind is not np.asarray:  # fitted with sparse data, it takes both
        assert np.array_equal(other.predict(new.toarray()), model.predict(new))


@pytest.mark.parametrize(
    "kernel", ["rbf", Laplacian()], ids=lambda v: str(v).split(" at ")[0]
)
@pytest.mark.parametrize("kind", KINDS)
def test_one_vs_rest(kernel, kind):
    X, y = samples(4)
    names = np.array(["north", "east", "south", "west"])[y]
    model = SVC(kernel=kernel, multiclass="ovr", class_weight={"east": 3.0})
    model.fit(kind(X), names)
    other = model.to_sklearn()
    assert type(other) is OneVsRestClassifier
    new = kind(samples(4, seed=1)[0])
    assert other.decision_function(new) == pytest.approx(model.decision_function(new))
    assert np.array_equal(other.predict(new), model.predict(new))
    for machine, row, name in zip(
        other.estimators_, as_dense(model.dual_coef_), model.classes_, strict=True
    ):
        assert machine.n_support_.sum() == np.count_nonzero(row)
        is_own = names[model.support_] == name
        assert machine.n_support_[1] == np.count_nonzero(row[is_own])
    clone(other).fit(X, names)


@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_precomputed(multiclass, n_classes):
    X, y = samples(n_classes)
    new = samples(n_classes, seed=1)[0]
    model = SVC(kernel="precomputed", multiclass=multiclass).fit(X @ X.T, y)
    other, K = model.to_sklearn(), new @ X.T
    assert other.decision_function(K) == pytest.approx(model.decision_function(K))
    assert np.array_equal(other.predict(K), model.predict(K))


@pytest.mark.parametrize(
    "kernel", ["rbf", "linear", Laplacian()], ids=lambda v: str(v).split(" at ")[0]
)
def test_attributes_are_those_of_a_fit(kernel):
    """All that scikit-learn's own fit leaves is there, of the same kind."""
    for n_classes in (2, 3):
        X, y = samples(n_classes)
        for kind in KINDS:
            model = SVC(kernel=kernel, gamma=0.5, tol=1e-8).fit(kind(X), y)
            other = model.to_sklearn()
            own = clone(other).fit(kind(X), y)
            assert vars(own).keys() <= vars(other).keys() | {"n_features_in_"}
            for name, value in vars(own).items():
                found = getattr(other, name)
                if isinstance(value, np.ndarray):
                    assert found.dtype == value.dtype, name
                    assert found.ndim == value.ndim, name
            assert own.intercept_ == pytest.approx(other.intercept_, abs=1e-5)
            if kernel == "linear":
                assert as_dense(other.coef_) == pytest.approx(as_dense(model.coef_))


def test_parameters_are_kept():
    X, y = samples(3)
    model = SVC(
        C=7.0,
        tol=1e-4,
        class_weight={1: 2.0},
        break_ties=True,
        n_jobs=1,
        max_iter=10**6,
    ).fit(X, y)
    other = model.to_sklearn()
    assert (other.C, other.tol, other.gamma) == (7.0, 1e-4, "scale")
    assert (other.class_weight, other.break_ties) == ({1: 2.0}, True)
    assert np.array_equal(other.class_weight_, [1.0, 2.0, 1.0])
    assert other.cache_size == svm.SVC().cache_size
    assert np.array_equal(other.predict(X), model.predict(X))
    again = clone(other).fit(X, y)
    assert again.decision_function(X) == pytest.approx(
        model.decision_function(X), abs=0.01
    )
    text = SVC(kernel="rbf(gamma=0.3)").fit(X, y).to_sklearn()
    assert (text.kernel, text.gamma) == ("rbf", 0.3)


@pytest.mark.parametrize(
    "kernel", ["rbf", Laplacian()], ids=lambda v: str(v).split(" at ")[0]
)
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
def test_copies_work(kernel, multiclass):
    X, y = samples(3)
    other = SVC(kernel=kernel, multiclass=multiclass).fit(X, y).to_sklearn()
    expected = other.decision_function(X)
    for again in (pickle.loads(pickle.dumps(other)), copy.deepcopy(other)):
        assert np.array_equal(again.decision_function(X), expected)
    assert not hasattr(clone(other), "classes_")


def test_single_precision_and_names():
    pandas = pytest.importorskip("pandas")
    X, y = samples(3)
    frame = pandas.DataFrame(X.astype(np.float32), columns=list("abcd"))
    model = SVC().fit(frame, y)
    other = model.to_sklearn()
    assert list(other.feature_names_in_) == list("abcd")
    assert other.support_vectors_.dtype == np.float64
    assert other.decision_function(frame) == pytest.approx(
        model.decision_function(frame), abs=1e-4
    )


@pytest.mark.parametrize("n_classes", [2, 4])
@pytest.mark.parametrize("multiclass", ["ovo", "ovr"])
@pytest.mark.parametrize(
    "kernel", ["rbf", Laplacian()], ids=lambda v: str(v).split(" at ")[0]
)
def test_probabilities(n_classes, multiclass, kernel):
    X, y = samples(n_classes)
    model = SVC(kernel=kernel, multiclass=multiclass, probability=True, random_state=0)
    model.fit(X, y)
    with pytest.warns(UserWarning, match="predict follows the decision values"):
        other = model.to_sklearn()
    assert other.decision_function(X) == pytest.approx(model.decision_function(X))
    assert other.predict_proba(X) == pytest.approx(model.predict_proba(X), abs=0.01)


@settings(max_examples=25, deadline=None)
@given(
    n_classes=st.integers(2, 5),
    C=st.floats(1e-3, 1e3),
    gamma=st.floats(1e-3, 10.0),
    seed=st.integers(0, 99),
    multiclass=st.sampled_from(["ovo", "ovr"]),
)
def test_any_model_is_converted(n_classes, C, gamma, seed, multiclass):
    X, y = samples(n_classes, seed)
    model = SVC(C=C, gamma=gamma, multiclass=multiclass).fit(X, y)
    scale = np.abs(model.dual_coef_).sum() + 1.0
    assert model.to_sklearn().decision_function(X) == pytest.approx(
        model.decision_function(X), abs=1e-12 * scale
    )


def test_what_has_no_counterpart():
    X, y = samples(3)
    with pytest.raises(ValueError, match="multiclass='ecoc' has no counterpart"):
        SVC(multiclass="ecoc").fit(X, y).to_sklearn()
    with pytest.raises(
        ValueError, match=r"decode='margin' with .*counterpart, so .*; decode='votes'"
    ):
        SVC(decode="margin").fit(X, y).to_sklearn()
    with pytest.raises(
        ValueError, match=r"decode='hamming' .*counterpart, so .*; decode='margin'"
    ):
        SVC(multiclass="ovr", decode="hamming").fit(X, y).to_sklearn()
    with pytest.raises(NotFittedError):
        SVC().to_sklearn()
    with pytest.raises(ValueError, match=r"Pipeline has no counterpart.*SVC, NuSVC"):
        to_sklearn(type("Pipeline", (), {})())
    other = SVC(kernel=Laplacian()).fit(X, y).to_sklearn()
    with pytest.raises(ValueError, match="was fitted with 4 features"):
        other.predict(X[:, :2])
    assert repr(other.kernel).startswith("KernelFunction(Laplacian(gamma=")


def test_subclasses_and_two_classes_of_any_scheme():
    X, y = samples(2)
    kind = type("Mine", (SVC,), {"__init__": SVC.__init__})
    for model in (kind(), SVC(multiclass="ecoc"), SVC(multiclass="ovr", decode="loss")):
        other = model.fit(X, y).to_sklearn()
        assert np.array_equal(other.predict(X), model.predict(X))


@pytest.mark.filterwarnings("ignore:In the scikit-learn model predict follows")
@pytest.mark.parametrize("kernel", model_files.KERNELS)
@pytest.mark.parametrize("machine", MACHINES)
def test_every_machine_answers_alike_on_new_samples(machine, kernel):
    for fit in real_fits(machine, kernel):
        model, other = fit.model, fit.model.to_sklearn()
        expected = values_of(model, fit.new)
        assert np.ptp(expected) > 100 * fit.tolerance, fit.case
        found = values_of(other, fit.new)
        assert found == pytest.approx(expected, abs=fit.tolerance), fit.case
        if MACHINES[machine][1] == "number":
            continue
        if hasattr(model, "predict_proba"):
            found, expected = (m.predict_proba(fit.new) for m in (other, model))
            # scikit-learn's copy of LIBSVM iterates, for two classes too, and stops
            # early.
            assert found == pytest.approx(expected, abs=0.005), fit.case
        else:
            assert np.array_equal(other.predict(fit.new), model.predict(fit.new))
        if machine == "OneClassSVM":
            found, expected = (m.score_samples(fit.new) for m in (other, model))
            assert found == pytest.approx(expected, abs=fit.tolerance), fit.case


def test_kernel_function_takes_matrices_of_either_kind():
    X, _ = samples(2)
    function = KernelFunction(RBF(0.5))
    expected = RBF(0.5).block(X[:7], X)
    for left in KINDS:
        for right in KINDS:
            assert function(left(X[:7]), right(X)) == pytest.approx(expected)


def test_machines_of_scikit_learn_are_told_apart(tmp_path):
    X, y = np.eye(4), [0, 1, 0, 1]
    model = svm.SVC().fit(X, y)
    with pytest.raises(
        ValueError, match=r"SVC is an estimator of scikit-learn.*mercer\.SVC"
    ):
        to_sklearn(model)
    with pytest.raises(
        ValueError, match=r"SVC is an estimator of scikit-learn.*mercer\.SVC"
    ):
        export_libsvm(model, tmp_path / "m")
