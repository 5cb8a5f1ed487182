import hashlib

import numpy as np
import pytest
from cifar_files import binary_batch, write_archive, write_folder

from mercer.datasets import batches, cifar, load_cifar10
from mercer.datasets.places import cache_folder

N = 40
NAMES = [*batches.BATCHES["train"], "test_batch"]


@pytest.fixture
def small(bare, monkeypatch, rng):
    """Let 200 and 40 random images be all of CIFAR-10; return images and labels."""
    monkeypatch.setattr(batches, "IMAGES_PER_BATCH", N)
    monkeypatch.setattr(cifar, "N_IMAGES", {"train": 5 * N, "test": N})
    monkeypatch.setattr(cifar, "N_PER_CLASS", {"train": 3, "test": 2})
    images = rng.integers(256, size=(6 * N, 32, 32, 3), dtype=np.uint8)
    return images, np.concatenate([rng.permutation(np.arange(N) % 10) for _ in NAMES])


def files(images, labels):
    return {
        f"{name}.bin": binary_batch(images[i : i + N], labels[i : i + N])
        for name, i in zip(NAMES, range(0, 6 * N, N), strict=True)
    }


def first(labels, n):
    """Return the rows of the first n samples of each class, found by a loop."""
    seen = dict.fromkeys(range(10), 0)
    rows = []
    for row, label in enumerate(labels):
        seen[label] += 1
        if seen[label] <= n:
            rows.append(row)
    return rows


def test_all_batches(bare, small):
    images, labels = small
    write_folder(bare, files(images, labels))
    X, y = load_cifar10(subset="all", full=True, as_images=True)
    np.testing.assert_array_equal(X, images)
    np.testing.assert_array_equal(y, labels)
    assert y.dtype == np.int64


@pytest.mark.parametrize("part", ["train", "test"])
def test_the_first_of_each_class(bare, small, part):
    images, labels = small
    write_folder(bare, files(images, labels))
    which = slice(0, 5 * N) if part == "train" else slice(5 * N, None)
    rows = first(labels[which], cifar.N_PER_CLASS[part])
    X, y = load_cifar10(subset=part)
    np.testing.assert_array_equal(X, images[which][rows].reshape(len(rows), -1))
    np.testing.assert_array_equal(y, labels[which][rows])


def write_subset(folder, images, labels):
    np.savez(
        folder / "cifar10_subset.npz",
        x_train=images[:30],
        y_train=labels[:30],
        x_test=images[30:50],
        y_test=labels[30:50],
    )


def test_the_subset_file_comes_first(bare, small):
    images, labels = small
    write_folder(bare, files(images, labels))
    write_subset(bare, images[100:], labels[100:])
    X, _ = load_cifar10(as_images=True)
    np.testing.assert_array_equal(X, images[100:130])
    X, _ = load_cifar10(as_images=True, full=True)
    np.testing.assert_array_equal(X, images[:200])


def test_subset_files_are_checked(bare, small):
    images, labels = small
    write_subset(bare, images[:, :28], labels)
    with pytest.raises(ValueError, match=r"subset\.npz: .* \(30, 32, 32, 3\), got"):
        load_cifar10()


def test_labels_are_checked(bare, small):
    images, labels = small
    write_folder(bare, files(images, labels + 1))
    with pytest.raises(ValueError, match="labels must be 0 to 9, got 1 to 10"):
        load_cifar10()


def test_scaled_and_as_a_bunch(bare, small):
    images, labels = small
    write_subset(bare, images, labels)
    bunch = load_cifar10(subset="test", scale=True, as_bunch=True)
    assert bunch.data.shape == (20, 3072)
    np.testing.assert_allclose(bunch.images, images[30:50] / 255, rtol=1e-6)
    assert bunch.target_names[[0, 9]].tolist() == ["airplane", "truck"]
    assert bunch.DESCR.startswith("CIFAR-10")


def test_downloads(bare, small, server, monkeypatch):
    images, labels = small
    folder, address = server
    archive = folder / "cifar-10-binary.tar.gz"
    write_archive(archive, "cifar-10-batches-bin", files(images, labels))
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    remote = cifar.REMOTE._replace(mirrors=(address,), sha256=digest)
    monkeypatch.setattr(cifar, "REMOTE", remote)
    X, _ = load_cifar10(full=True, as_images=True)
    np.testing.assert_array_equal(X, images[:200])
    assert [path.name for path in cache_folder().iterdir()] == [archive.name]
    archive.unlink()
    X, _ = load_cifar10(subset="test", full=True, as_images=True, download=False)
    np.testing.assert_array_equal(X, images[200:])


def test_a_wrong_download_leaves_nothing(bare, server, monkeypatch):
    folder, address = server
    (folder / "cifar-10-binary.tar.gz").write_bytes(b"an error page")
    monkeypatch.setattr(cifar, "REMOTE", cifar.REMOTE._replace(mirrors=(address,)))
    with pytest.raises(OSError, match=r"CIFAR-10 could not be downloaded.*checksum"):
        load_cifar10()
    assert list(cache_folder().iterdir()) == []


def test_without_a_download_the_message_helps(bare, small):
    match = r"CIFAR-10 \(train\) is not in .*cifar-10-binary\.tar\.gz \(or cifar10_subs"
    with pytest.raises(FileNotFoundError, match=match):
        load_cifar10(download=False)
    write_subset(bare, *small)
    with pytest.raises(FileNotFoundError, match="full=False for the images of cifar10"):
        load_cifar10(full=True, download=False)


def test_unknown_subsets():
    with pytest.raises(ValueError, match=r"subset must be one of 'train', .* 'val'"):
        load_cifar10(subset="val")


def test_the_real_subset(given):
    given("cifar10_subset.npz")
    for part, n in (("train", 500), ("test", 100)):
        X, y = load_cifar10(subset=part, as_images=True, download=False)
        assert X.shape == (10 * n, 32, 32, 3)
        assert np.bincount(y).tolist() == [n] * 10
