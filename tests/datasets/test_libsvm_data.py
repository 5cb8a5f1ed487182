import bz2
import gzip

import numpy as np
import pytest
from scipy import sparse

from mercer.datasets import load_libsvm
from mercer.datasets.places import cache_folder

TEXT = "+1 1:0.5 3:2 # a remark\n-1 2:1e-3\n+1 \n"
X_TRUE = [[0.5, 0, 2], [0, 1e-3, 0], [0, 0, 0]]
Y_TRUE = [1, -1, 1]


@pytest.fixture
def path(bare):
    path = bare / "tiny.txt"
    path.write_text(TEXT)
    return path


def test_what_is_written_is_read(path):
    X, y = load_libsvm(path)
    assert sparse.issparse(X)
    assert X.format == "csr"
    np.testing.assert_array_equal(X.toarray(), X_TRUE)
    np.testing.assert_array_equal(y, Y_TRUE)


@pytest.mark.parametrize(("ending", "module"), [("gz", gzip), ("bz2", bz2)])
def test_compressed_files(bare, ending, module):
    path = bare / f"tiny.{ending}"
    path.write_bytes(module.compress(TEXT.encode()))
    X, _ = load_libsvm(str(path), dense=True)
    np.testing.assert_array_equal(X, X_TRUE)


def test_precision_and_width(path):
    X, y = load_libsvm(path, dtype=np.float32, n_features=5, dense=True)
    assert X.dtype == np.float32
    assert y.dtype == np.float64
    np.testing.assert_array_equal(X, np.pad(np.float32(X_TRUE), ((0, 0), (0, 2))))
    X, _ = load_libsvm(path, n_features=5)
    assert X.shape == (3, 5)
    np.testing.assert_array_equal(X.toarray()[:, :3], X_TRUE)


def test_indices_from_zero(bare):
    path = bare / "zero"
    path.write_text("1 1:5\n")
    assert load_libsvm(path)[0].shape == (1, 1)
    assert load_libsvm(path, zero_based=True)[0].shape == (1, 2)
    path.write_text("1 0:5\n")
    assert load_libsvm(path)[0].shape == (1, 1)


def test_names_are_looked_for_in_the_data_folders(path):
    X, _ = load_libsvm("tiny.txt", dense=True)
    np.testing.assert_array_equal(X, X_TRUE)
    cache_folder().mkdir(parents=True)
    path.rename(cache_folder() / "other")
    assert load_libsvm("other")[0].shape == (3, 3)


def test_a_bunch(path):
    bunch = load_libsvm(path, as_bunch=True, dense=True)
    np.testing.assert_array_equal(bunch.data, X_TRUE)
    np.testing.assert_array_equal(bunch.target, Y_TRUE)
    assert bunch.filename == str(path)


def test_missing_files(bare):
    with pytest.raises(FileNotFoundError, match=rf"tiny is not a file, nor in {bare}"):
        load_libsvm("tiny")
    with pytest.raises(FileNotFoundError, match=r"tiny is not a file\. Give the path"):
        load_libsvm(bare / "tiny")
    with pytest.raises(FileNotFoundError, match="is not a file"):
        load_libsvm(bare)


@pytest.mark.parametrize(
    "text",
    [
        "label 1:2\n",
        "1 1:x\n",
        "1 3:1 2:1\n",
        "1,2 1:1\n",
        "1 2\n",
        "1 -1:2\n",
        "\x00\x01\x02\n",
    ],
)
def test_other_formats(bare, text):
    path = bare / "odd"
    path.write_text(text)
    with pytest.raises(
        ValueError, match=r"odd is not in LIBSVM format .*Each line must"
    ):
        load_libsvm(path)


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing\n"])
def test_empty_files(bare, text):
    path = bare / "odd"
    path.write_text(text)
    with pytest.raises(ValueError, match="odd has no samples"):
        load_libsvm(path)


@pytest.mark.parametrize("ending", ["gz", "bz2"])
@pytest.mark.parametrize("spoil", ["plain", "truncated"])
def test_broken_compression(bare, ending, spoil):
    path = bare / f"odd.{ending}"
    module = gzip if ending == "gz" else bz2
    whole = module.compress(TEXT.encode() * 1000)
    path.write_bytes(TEXT.encode() if spoil == "plain" else whole[: len(whole) // 2])
    with pytest.raises(ValueError, match=rf"odd\.{ending} cannot be read"):
        load_libsvm(path)


def test_too_few_features(path):
    with pytest.raises(ValueError, match=r"has 3 features; n_features=2 is too few"):
        load_libsvm(path, n_features=2)


@pytest.mark.parametrize(
    ("options", "error", "match"),
    [
        ({"n_features": 0}, ValueError, "n_features must be >= 1, got 0"),
        ({"n_features": 2.5}, TypeError, "n_features must be a whole number"),
        ({"dtype": int}, ValueError, "dtype must be float32 or float64"),
        ({"zero_based": "yes"}, ValueError, "zero_based must be True, False or 'auto'"),
    ],
)
def test_bad_options(path, options, error, match):
    with pytest.raises(error, match=match):
        load_libsvm(path, **options)
