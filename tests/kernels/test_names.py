"""Kernels on columns that a data frame names."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import mercer
from mercer import gram_matrix
from mercer.kernels import RBF, Linear, parse, with_views
from mercer.kernels.expression import KernelSyntaxError, to_text
from mercer.selection import GridSearchCV

pandas = pytest.importorskip("pandas")
NAMES = ["age", "income", "hours per week", "it's"]
BY_NAME = "rbf(gamma=0.1)@[income, 'hours per week'] + linear@age"
BY_NUMBER = "rbf(gamma=0.1)@[1, 2] + linear@[0]"


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    return pandas.DataFrame(rng.normal(size=(60, 4)) + y[:, None], columns=NAMES), y


MACHINES = [
    mercer.SVC(),
    mercer.NuSVC(nu=0.6),
    mercer.SVR(),
    mercer.OneClassSVM(),
    mercer.SVDD(),
    mercer.OnlineSVC(random_state=0),
    mercer.PassiveAggressiveClassifier(random_state=0),
    mercer.KernelPCA(n_components=2),
    mercer.KernelKMeans(n_clusters=3, random_state=0),
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda m: type(m).__name__)
def test_names_are_the_columns(machine, data, tmp_path):
    pytest.importorskip("skops.io")
    X, y = data
    method = "transform" if isinstance(machine, mercer.KernelPCA) else "predict"
    machine.set_params(kernel=BY_NUMBER)
    expected = getattr(machine.fit(X.to_numpy(), y), method)(X.to_numpy())
    for kernel in (BY_NAME, parse(BY_NAME)):
        machine.set_params(kernel=kernel).fit(X, y)
        np.testing.assert_array_equal(getattr(machine, method)(X), expected)
    mercer.save(machine, tmp_path / "m")
    again = mercer.load(tmp_path / "m")
    np.testing.assert_array_equal(getattr(again, method)(X), expected)
    assert to_text(again.kernel) == BY_NAME
    with pytest.raises(ValueError, match="Feature names must be in the same order"):
        getattr(again, method)(X[NAMES[::-1]])


def test_streams_learn_by_names(data):
    X, y = data
    machine = mercer.OnlineSVC(kernel=RBF(0.1).on(["age", "it's"]), random_state=0)
    machine.partial_fit(X[:30], y[:30], classes=[0, 1, 2])
    machine.partial_fit(X[30:], y[30:])
    other = mercer.OnlineSVC(kernel=RBF(0.1).on([0, 3]), random_state=0)
    values = X.to_numpy()
    other.partial_fit(values[:30], y[:30], classes=[0, 1, 2])
    other.partial_fit(values[30:], y[30:])
    np.testing.assert_array_equal(machine.predict(X), other.predict(values))


def test_several_kernels_on_columns(data):
    X, y = data
    named = [RBF(0.1).on(["age", "income"]), "linear@'it''s'", "rbf(gamma=1)@age"]
    numbered = [RBF(0.1).on([0, 1]), "linear@[3]", "rbf(gamma=1)@[0]"]
    model = mercer.MKLClassifier(kernels=named).fit(X, y)
    other = mercer.MKLClassifier(kernels=numbered).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(model.weights_, other.weights_)


def test_blocks_and_gram_matrices(data):
    X, _ = data
    kernel = Linear().on(["income", "age"])
    expected = X[["income", "age"]].to_numpy() @ X[["income", "age"]].to_numpy().T
    np.testing.assert_allclose(kernel.block(X), expected)
    np.testing.assert_allclose(gram_matrix(kernel, X), expected)
    np.testing.assert_allclose(kernel.diag(X), np.diag(expected))
    index = pandas.Index(["income", "age"])
    np.testing.assert_allclose(Linear().on(index).block(X), expected)


@pytest.mark.filterwarnings("error")  # of kernel values that are not shared
def test_searches_try_kernels_on_columns(data):
    X, y = data
    grid = {"kernel": ["rbf", BY_NAME, Linear().on("age")], "C": [0.1, 1.0]}
    search = GridSearchCV(mercer.SVC(), grid, cv=3).fit(X, y)
    grid["kernel"][1:] = [BY_NUMBER, Linear().on([0])]
    other = GridSearchCV(mercer.SVC(), grid, cv=3).fit(X.to_numpy(), y)
    np.testing.assert_array_equal(
        search.cv_results_["mean_test_score"], other.cv_results_["mean_test_score"]
    )
    np.testing.assert_array_equal(search.predict(X), other.predict(X.to_numpy()))


def test_pipelines_that_keep_the_names(data):
    X, y = data
    model = make_pipeline(StandardScaler(), mercer.SVC(kernel="rbf@[age, income]"))
    with pytest.raises(ValueError, match=r"set_output\(transform='pandas'\)"):
        model.fit(X, y)
    model.set_output(transform="pandas").fit(X, y)
    assert model[-1].kernel_.columns == slice(0, 2)


def test_groups_and_columns():
    X = pandas.DataFrame(np.eye(4), columns=["hog__0", "hog__1", "raw", "hog"])
    assert Linear().on("hog").block(X).trace() == 2
    assert Linear().on("hog__1").block(X).trace() == 1
    assert Linear().on(["hog", "raw", 3]).block(X).trace() == 4
    views = {"raw": slice(0, 2), "mask": [False, False, True], "end": slice(-1, None)}
    named = with_views(Linear().on(["raw", "mask"]), views)
    assert named.columns == [0, 1, 2]
    with pytest.raises(ValueError, match="cannot be counted without the data"):
        with_views(Linear().on(["raw", "end"]), views)


def test_unknown_names(data):
    X, y = data
    words = r"Unknown column or view 'agee'\. Did you mean 'age'\? Known: age, hours"
    for kernel in ("rbf@agee", "rbf@[income, agee]", RBF().on(["agee"])):
        with pytest.raises(ValueError, match=words):
            mercer.SVC(kernel=kernel).fit(X, y)
    wide = pandas.DataFrame(np.zeros((2, 50)), columns=[f"c{k:02}" for k in range(50)])
    with pytest.raises(ValueError, match=r"c09 and 40 more\.$"):
        Linear().on("zzz").block(wide)
    with pytest.raises(ValueError, match=r"columns \['age', 'income'\], but no views"):
        mercer.SVC(kernel="rbf@[age, income]").fit(X.to_numpy(), y)


def test_names_inside_chosen_columns_are_refused(data):
    # As numbers they would be others: column 1 of the chosen ones is not column 1.
    X, _ = data
    for kernel in (
        Linear().on("income").on(["age", "income"]),
        (Linear().on(["age"]) + Linear()).on([2, 3]),
    ):
        with pytest.raises(ValueError, match="have numbers from 0 and no names"):
            kernel.block(X)
    assert Linear().on([1]).on(["it's", "age"]).block(X)[0, 0] == X["age"][0] ** 2


@pytest.mark.parametrize(
    "text, says",
    [
        ("rbf@[age:3]", "A range goes from number to number"),
        ("rbf@[0:age]", "Expected a number, found 'age'"),
        ("rbf@[age income]", "Expected ']', ',' or ':', found 'income'"),
        ("rbf@[age, 'inc]", "This quotation mark is never closed"),
        ("rbf@[", "Expected a number, found the end"),
    ],
)
def test_texts_that_are_wrong(text, says):
    with pytest.raises(KernelSyntaxError, match=says.replace("[", r"\[")):
        parse(text)


names = st.text(min_size=0, max_size=6) | st.sampled_from(["a'b", '"', "'\"", "x\ny"])
columns = names | st.lists(names | st.integers(-9, 9), min_size=1, max_size=4)


@given(columns)
def test_names_survive_as_text(chosen):
    kernel = Linear().on(chosen)
    again = parse(to_text(kernel))
    assert again.columns == chosen
    assert to_text(again) == to_text(kernel)
