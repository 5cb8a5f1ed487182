"""Model files: the same model comes back, and nothing else comes in."""

import json
import pickle
import subprocess
import sys
from zipfile import ZipFile

import joblib
import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from sklearn.cluster import FeatureAgglomeration
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import BaggingClassifier, VotingClassifier
from sklearn.experimental import enable_iterative_imputer  # noqa: F401
from sklearn.feature_selection import SelectKBest
from sklearn.impute import IterativeImputer, KNNImputer, SimpleImputer
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    OneHotEncoder,
    StandardScaler,
)
from sklearn.utils import Bunch

import mercer
from mercer import SVC, kernels
from mercer.files import model_files as persistence
from mercer.files.model_files import read_header
from mercer.kernels import (
    RBF,
    Chi2,
    Custom,
    Intersection,
    Laplacian,
    Linear,
    Pairwise,
)
from mercer.machines.base.machine import as_kernel
from model_files import assert_same, toy_data

skops_io = pytest.importorskip("skops.io")

KERNELS = [
    "rbf",
    "poly(degree=2, coef0=1) + 0.5 * linear",
    RBF(sigma=2.0) * Intersection().normalized(),
    2.0 * Linear().on([0, 2]) ** 2 + Laplacian().on(slice(1, 3)),
    Chi2().on(range(1, 3)) + RBF().on(np.array([True, False, True, False])),
    kernels.Cosine() + kernels.AdditiveChi2() + kernels.Sigmoid(gamma=0.01),
    kernels.Polynomial(degree=np.int64(2), gamma=np.float64(0.5)),
]
SCHEMES = [
    {},
    {"multiclass": "ovr", "positive_weight": [1.0, 2.0, 1.0]},
    {"multiclass": "ecoc", "code": "exhaustive", "decode": "barycentre"},
    {"probability": True, "random_state": 3, "class_weight": {0: 2.0, 1: 1, 2: 1.5}},
]


class Cauchy(kernels.Kernel):
    """A kernel of one's own."""

    def evaluate(self, pair):
        return 1.0 / (1.0 + pair.squared_distances(1.0))

    def diagonal(self, operand):
        return np.ones(len(operand))


@pytest.fixture(scope="module")
def data():
    return toy_data()


def through_file(model, path, **more):
    mercer.save(model, path, **more)
    return mercer.load(path, **more)


def through_joblib(model, path):
    joblib.dump(model, path)
    return joblib.load(path)


def through_pickle(model, path):
    return pickle.loads(pickle.dumps(model))


WAYS = [through_file, through_joblib, through_pickle]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", KERNELS, ids=str)
def test_kernels_come_back(data, tmp_path, way, kernel):
    model = SVC(kernel=kernel, C=5).fit(*data)
    assert_same(model, way(model, tmp_path / "m"), data[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("scheme", SCHEMES, ids=str)
def test_schemes_come_back(data, tmp_path, way, scheme):
    model = SVC(**scheme).fit(*data)
    assert_same(model, way(model, tmp_path / "m"), data[0])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kind", [sparse.csr_matrix, sparse.csr_array, np.float32])
def test_kinds_of_data_come_back(data, tmp_path, way, kind):
    X = kind(data[0])
    model = SVC().fit(X, data[1])
    assert_same(model, way(model, tmp_path / "m"), X)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    "names", [["a", "b", "c"], [True, False, True], [-1.0, 0.0, 2.0], [10, 20, 2**40]]
)
def test_labels_come_back(data, tmp_path, way, names):
    y = np.array(names)[data[1]]
    if isinstance(names[0], str):
        y = y.astype(object)
    model = SVC().fit(data[0], y)
    assert_same(model, way(model, tmp_path / "m"), data[0])


@pytest.mark.parametrize("way", WAYS)
def test_precomputed_and_unfitted_come_back(data, tmp_path, way):
    X, y = data
    K = X @ X.T
    model = SVC(kernel="precomputed").fit(K, y)
    assert_same(model, way(model, tmp_path / "m"), K)
    random = SVC(random_state=np.random.RandomState(1), C=np.inf)
    again = way(random, tmp_path / "m")
    assert again.C == np.inf
    assert again.random_state.randint(99) == random.random_state.randint(99)
    assert np.array_equal(again.fit(X, y).predict(X), random.fit(X, y).predict(X))


@pytest.mark.parametrize("way", WAYS)
def test_estimators_of_scikit_learn_with_one_inside(data, tmp_path, way):
    X, y = data
    models = [
        make_pipeline(FunctionTransformer(np.sqrt), StandardScaler(), SVC()),
        OneVsRestClassifier(SVC(kernel=RBF(0.5) + Linear())),
        BaggingClassifier(SVC(), n_estimators=2, random_state=0),
    ]
    for model in models:
        again = way(model.fit(X, y), tmp_path / "m")
        assert np.array_equal(again.predict(X), model.predict(X))


def test_converted_models_can_be_saved(data, tmp_path):
    X, y = data
    for kernel in ("rbf", Laplacian()):
        model = SVC(kernel=kernel).fit(X, y).to_sklearn()
        again = through_file(model, tmp_path / "m")
        assert np.array_equal(again.decision_function(X), model.decision_function(X))


def test_callbacks_are_left_out(data, tmp_path):
    from sklearn.callback import ProgressBar

    model = SVC().set_callbacks(ProgressBar())
    assert not hasattr(through_file(model, tmp_path / "m"), "_skl_callbacks")
    assert hasattr(model, "_skl_callbacks")
    with pytest.raises(TypeError, match=r"Remove the callbacks with set_callbacks\(\)"):
        mercer.save(make_pipeline(model), tmp_path / "m")


def test_parts_of_scikit_learn_may_be_trusted(data, tmp_path):
    X, y = data
    model = VotingClassifier([("a", SVC()), ("b", SVC(kernel="linear"))]).fit(X, y)
    with pytest.raises(TypeError, match=r"safely: \S*Bunch\. If you know these types"):
        mercer.save(model, tmp_path / "m")
    again = through_file(model, tmp_path / "m", trusted=[Bunch])
    assert np.array_equal(again.predict(X), model.predict(X))


def test_own_kernels_need_trust(data, tmp_path):
    X, y = data
    model = SVC(kernel=Cauchy() + RBF(1.0)).fit(X, y)
    path = tmp_path / "m"
    with pytest.raises(TypeError, match=r"cannot be stored safely: \S*Cauchy\. If you"):
        mercer.save(model, path)
    assert_same(model, through_file(model, path, trusted=[Cauchy]), X)
    with pytest.raises(ValueError, match=r"does not trust: \S*Cauchy\. If you know"):
        mercer.load(path)


@pytest.mark.parametrize(
    "model",
    [
        SVC(kernel=np.dot),
        SVC(kernel=Custom(np.inner) + Linear()),
        SVC(kernel=Pairwise(np.inner)),
        SVC(kernel=lambda X, Z: X @ Z.T),
    ],
)
def test_functions_are_refused(data, tmp_path, model):
    path = tmp_path / "m"
    path.write_bytes(b"old")
    # np.dot needs Z transposed, so these stay unfitted but for what fit would store.
    model.kernel_ = as_kernel(model.kernel, degree=3, gamma=1.0, coef0=0.0)
    with pytest.raises(TypeError, match="kernel function, which cannot be stored"):
        mercer.save(model, path)
    assert path.read_bytes() == b"old"


def test_what_cannot_be_saved(tmp_path):
    path = tmp_path / "m"
    with pytest.raises(TypeError, match="save takes an estimator; got dict"):
        mercer.save({}, path)
    with pytest.raises(TypeError, match="save takes an estimator; got type"):
        mercer.save(SVC, path)
    with pytest.raises(TypeError, match=r"cannot be stored: .*JSON serializable"):
        mercer.save(SVC(kernel=Linear().on(slice(np.int64(1), 2))), path)
    for weight in ({False: 1, True: 2}, {1: 1, "1": 2}):
        with pytest.raises(TypeError, match="perhaps class_weight, with keys that can"):
            mercer.save(SVC(class_weight=weight), path)
    for trusted, words in [
        (np.dot, "trusted takes types"),
        ("dtype", "or names such as 'package.module.Type'; got 'dtype'"),
        ("mercer.kernels.Custom", "Custom cannot be trusted"),
        ("mercer.kernels.given.Pairwise", "Pairwise cannot be trusted"),
        (Custom, "Custom cannot be trusted"),
        (Pairwise, "Pairwise cannot be trusted"),
        (type("Inner", (), {"__qualname__": "f.Inner"}), "top level of a module"),
    ]:
        with pytest.raises(TypeError, match=words):
            mercer.save(SVC(), path, trusted=[trusted])
    with pytest.raises(TypeError, match=r"Pass trusted=\['numpy.dtype'\]"):
        mercer.save(SVC(), path, trusted="numpy.dtype")
    assert not path.exists()


STEPS = {
    "mean": SimpleImputer(),
    "most frequent": SimpleImputer(strategy="most_frequent", add_indicator=True),
    "iterative": IterativeImputer(),
    "neighbours": KNNImputer(),
    "bins": make_pipeline(SimpleImputer(), KBinsDiscretizer()),
    "best": make_pipeline(SimpleImputer(), SelectKBest(k=2)),
    "columns": make_column_transformer(
        (
            OneHotEncoder(handle_unknown="ignore"),
            make_column_selector(dtype_include=object),
        ),
        (SimpleImputer(), make_column_selector(dtype_include=float)),
    ),
}


@pytest.mark.parametrize("name", STEPS)
def test_steps_that_fill_in_and_encode_can_be_stored(name, tmp_path):
    X, y = toy_data()
    X = pd.DataFrame(X, columns=list("abcd"))
    X.loc[3, "b"] = np.nan
    if name == "columns":
        X["d"] = np.array(["x", "y"], dtype=object)[np.arange(len(X)) % 2]
    model = make_pipeline(STEPS[name], SVC()).fit(X, y)
    mercer.save(model, tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_types_may_be_trusted_by_name(tmp_path):
    X, y = toy_data()
    model = make_pipeline(FeatureAgglomeration(), SVC()).fit(X, y)
    with pytest.raises(TypeError, match=r"cannot be stored safely: numpy\.mean"):
        mercer.save(model, tmp_path / "m")
    mercer.save(model, tmp_path / "m", trusted=["numpy.mean"])
    with pytest.raises(ValueError, match=r"does not trust: numpy\.mean"):
        mercer.load(tmp_path / "m")
    again = mercer.load(tmp_path / "m", trusted=["numpy.mean"])
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


def test_every_public_type_may_be_in_a_file():
    allowed = persistence._allowed(())
    assert {"mercer.SVC", "mercer.kernels.OnColumns"} <= allowed
    assert not {n for n in allowed if n.endswith((".Custom", ".Pairwise", ".Kernel"))}
    assert all(not n.startswith("mercer.datasets") for n in allowed)


def test_files_name_public_packages_only():
    # So that code may move without a change to the files.
    own = {n for n in persistence._allowed(()) if n.startswith("mercer.")}
    packages = {name.rpartition(".")[0] for name in own}
    assert packages == {"mercer", "mercer.images", "mercer.kernels"}


def test_skops_is_an_extra(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "skops.io", None)
    for action in (lambda: mercer.save(SVC(), tmp_path / "m"), lambda: mercer.load("")):
        with pytest.raises(ImportError, match="pip install skops"):
            action()


def test_import_leaves_skops_alone():
    program = "import sys, mercer; sys.exit('skops' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


def test_notes_come_back(tmp_path):
    X, y = toy_data()
    path, notes = tmp_path / "m.skops", {"columns": ["α", "b"], "n": 3, "more": {}}
    mercer.save(mercer.SVC().fit(X, y), path, notes=notes)
    header = read_header(path)
    assert header["notes"] == notes
    assert header["mercer"] == mercer.__version__
    assert mercer.load(path).predict(X).shape == y.shape
    mercer.save(mercer.SVC().fit(X, y), path)
    assert read_header(path)["notes"] == {}


@pytest.mark.parametrize("notes", [{"a": object()}, {"a": float("nan")}])
def test_notes_must_be_json(tmp_path, notes):
    with pytest.raises(TypeError, match="notes must be text, numbers"):
        mercer.save(mercer.SVC(), tmp_path / "m.skops", notes=notes)
    assert not list(tmp_path.iterdir())


def test_notes_that_are_no_table_are_damage(tmp_path):
    path = tmp_path / "m.skops"
    mercer.save(mercer.SVC(), path)
    with ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    header = {**json.loads(parts["mercer.json"]), "notes": [1]}
    with ZipFile(path, "w") as archive:
        for name, content in (parts | {"mercer.json": json.dumps(header)}).items():
            archive.writestr(name, content)
    for read in (read_header, mercer.load):
        with pytest.raises(
            ValueError, match=r"the notes in mercer\.json are not a dict"
        ):
            read(path)


def test_load_chooses_the_device(tmp_path, monkeypatch):
    X, y = toy_data()
    path = tmp_path / "model.skops"
    scaled = make_pipeline(StandardScaler(), SVC()).fit(X, y)
    expected = scaled.predict(X)
    scaled.set_params(svc__device="cuda")
    mercer.save(scaled, path)
    monkeypatch.setitem(sys.modules, "cupy", None)
    monkeypatch.setattr("mercer.engines.cuda.card._opened", {})
    kept = mercer.load(path)
    assert kept[-1].device == "cuda"
    with pytest.raises(ImportError, match=r"mercer\.load\(path, device='cpu'\)"):
        kept.predict(X)
    moved = mercer.load(path, device="cpu")
    assert moved[-1].device == "cpu"
    np.testing.assert_array_equal(moved.predict(X), expected)
    assert mercer.load(path, device="cuda:1")[-1].device == "cuda:1"


def test_load_refuses_a_device_that_nothing_could_use(tmp_path):
    X, y = toy_data()
    path = tmp_path / "model.skops"
    mercer.save(mercer.LinearSVC().fit(X, y), path)
    assert mercer.load(path, device="cpu").predict(X).shape == y.shape
    with pytest.raises(ValueError, match="LinearSVC computes on the processor only"):
        mercer.load(path, device="cuda")
    with pytest.raises(ValueError, match="Unknown device 'gpu'"):
        mercer.load(path, device="gpu")
