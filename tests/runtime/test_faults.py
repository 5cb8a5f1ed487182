"""Errors about samples and targets say where the value is, and what to do."""

import numpy as np
import pytest
from scipy import sparse

import mercer

X = np.random.default_rng(0).normal(size=(30, 3))
y = np.arange(30) % 3
WORDS = np.array(["a", "b", "c"], dtype=object)[y]

ESTIMATORS = [
    mercer.SVC,
    mercer.NuSVC,
    mercer.SVR,
    mercer.OneClassSVM,
    mercer.SVDD,
    mercer.MKLClassifier,
    mercer.OnlineSVC,
    mercer.PassiveAggressiveClassifier,
    mercer.KernelPCA,
    mercer.KernelKMeans,
    mercer.KMeans,
    mercer.PCA,
]
CLASSIFIERS = [
    mercer.SVC,
    mercer.NuSVC,
    mercer.MKLClassifier,
    mercer.OnlineSVC,
    mercer.PassiveAggressiveClassifier,
]


def changed(values, at, new, dtype=object):
    values = np.array(values, dtype=dtype)
    values[at] = new
    return values


@pytest.mark.parametrize("kind", ESTIMATORS)
@pytest.mark.parametrize(
    "samples, words",
    [
        (
            changed(X, (4, 1), "abc"),
            r"^Row 4 \(counted from 0\), column 1 of X is 'abc', .* Encode text, .*"
            r"OneHotEncoder, or leave the column out\.\ncould not convert",
        ),
        (
            changed(X, (5, 2), np.nan, float),
            r"^Row 5 .*, column 2 of X is missing: it is nan\. Fill in .*\nInput X",
        ),
        (changed(X, (5, 2), None), "^Row 5 .*, column 2 of X is missing"),
        (changed(X, (6, 0), -np.inf, float), "^Row 6 .*, column 0 of X is -inf"),
        ([*X[:7].tolist(), [1.0, 2.0]], "^Row 7 .* of X has 2 values, and row 0 has 3"),
    ],
)
def test_samples_that_are_not_numbers(kind, samples, words):
    with pytest.raises(ValueError, match=words):
        kind().fit(samples, y[: len(samples)])


def test_predictions_of_samples_that_are_not_numbers():
    model = mercer.SVC().fit(X, y)
    with pytest.raises(ValueError, match=r"^Row 2 .*, column 1 of X is 'x'"):
        model.predict(changed(X, (2, 1), "x"))
    wrong = sparse.csr_array(changed(X, (8, 2), np.nan, float))
    with pytest.raises(ValueError, match=r"^Row 8 .*, column 2 of X is missing"):
        model.predict(wrong)


def test_columns_of_a_frame_are_named():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(X, columns=["age", "income", "town"])
    frame["town"] = "Ulm"
    with pytest.raises(ValueError, match=r"^Row 0 .*, column 'town' of X is 'Ulm'"):
        mercer.SVC().fit(frame, y)
    frame["town"] = pandas.date_range("2026-01-01", periods=30)
    with pytest.raises(TypeError, match=r"column 'town' of X is a time.*days since"):
        mercer.SVC().fit(frame, y)
    frame["town"] = pandas.array([1] * 29 + [None], dtype="Int64")
    with pytest.raises(ValueError, match=r"^Row 29 .*, column 'town' of X is missing"):
        mercer.SVC().fit(frame, y)
    labels = pandas.Series(WORDS, dtype="string").where(np.arange(30) != 2)
    with pytest.raises((TypeError, ValueError), match=r"^y is missing at position 2"):
        mercer.SVC().fit(X, labels)


class Frame:
    """What data frames of polars offer: names of columns, and columns by name."""

    def __init__(self, **columns):
        self._columns = {name: np.array(values) for name, values in columns.items()}
        self.columns = list(columns)
        self.shape = (len(next(iter(self._columns.values()))), len(columns))

    def get_column(self, name):
        return self._columns[name]

    def __array__(self, dtype=None, copy=None):
        return np.stack(list(self._columns.values()), axis=1)


def frames_of_polars():
    yield Frame
    try:
        import polars
    except ImportError:
        return
    yield lambda **columns: polars.DataFrame(columns)


@pytest.mark.parametrize("frame", list(frames_of_polars()))
def test_columns_of_a_frame_of_polars_are_named(frame):
    with pytest.raises(ValueError, match=r"^Row 0 .*, column 'town' of X is 'Ulm'"):
        mercer.SVC().fit(frame(age=X[:, 0], town=["Ulm"] * 30), y)
    gap = changed(X[:, 0], 4, np.nan, float)
    with pytest.raises(ValueError, match=r"^Row 4 .*, column 'age' of X is missing"):
        mercer.SVC().fit(frame(age=gap, town=X[:, 1]), y)


@pytest.mark.parametrize("kind", CLASSIFIERS)
@pytest.mark.parametrize(
    "labels, words",
    [
        (
            changed(y, 5, None),
            r"^y is missing at position 5 \(.*\): it is None\. Leave",
        ),
        (changed(WORDS, 2, None), "^y is missing at position 2 .*: it is None"),
        (changed(WORDS, 2, np.nan), "^y is missing at position 2 .*: it is nan"),
        (changed(y, 7, np.nan, float), "^y is missing at position 7 .*: it is nan"),
        (changed(y, 7, np.inf, float), r"^y is inf at position 7 \(counted from 0\)"),
        (
            changed(WORDS, 3, 1),
            "^y mixes text and other labels: 'a' at position 0 and 1 at position 3",
        ),
    ],
)
def test_labels_that_are_missing_or_mixed(kind, labels, words):
    with pytest.raises(ValueError, match=words):
        kind().fit(X, labels)


@pytest.mark.parametrize("kind", [mercer.SVR, mercer.NuSVR, mercer.MKLRegressor])
def test_targets_that_are_not_numbers(kind):
    with pytest.raises(ValueError, match=r"^y is missing at position 5 .*: it is None"):
        kind().fit(X, changed(X[:, 0], 5, None))
    with pytest.raises(ValueError, match=r"^y is 'a' at position 0 .*a classifier"):
        kind().fit(X, WORDS)
    # Text that reads as numbers is taken as before.
    kind().fit(X, changed(X[:, 0], 0, "1.5"))


def test_labels_of_all_kinds_are_still_fine():
    pandas = pytest.importorskip("pandas")
    for labels in (WORDS, WORDS.astype(str), y, y > 0, y * 1.0):
        assert mercer.SVC().fit(X, labels).score(X, labels) > 0.3
    mercer.SVC().fit(X, pandas.Series(pandas.Categorical(WORDS)))
    with pytest.raises(ValueError, match=r"such as 0\. Convert y .*y\.astype\(int\)"):
        mercer.SVC().fit(X, y.astype(object))
