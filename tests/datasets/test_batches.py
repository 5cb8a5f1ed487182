"""Batches of CIFAR-10, good and bad, and harmful pickles, which must not be run."""

import os
import pickle

import numpy as np
import pytest
from cifar_files import binary_batch, python_batch, write_archive, write_folder

from mercer.datasets import batches
from mercer.datasets.batches import BATCHES, find_batches, read_batches

N = 4
FORMATS = {
    "binary": (binary_batch, ".bin", "cifar-10-batches-bin", "cifar-10-binary.tar.gz"),
    "python": (python_batch, "", "cifar-10-batches-py", "cifar-10-python.tar.gz"),
}
every_format = pytest.mark.parametrize("kind", FORMATS)


@pytest.fixture(autouse=True)
def small(monkeypatch):
    monkeypatch.setattr(batches, "IMAGES_PER_BATCH", N)


@pytest.fixture
def images(rng):
    return rng.integers(256, size=(5 * N, 32, 32, 3), dtype=np.uint8)


@pytest.fixture
def labels(rng):
    return rng.integers(10, size=5 * N)


def contents(kind, images, labels):
    """Return {name: bytes} of five training batches and a test batch like the first."""
    encode, ending, *_ = FORMATS[kind]
    names = [*BATCHES["train"], "test_batch"]
    starts = [*range(0, 5 * N, N), 0]
    return {
        name + ending: encode(images[start : start + N], labels[start : start + N])
        for name, start in zip(names, starts, strict=True)
    }


@every_format
@pytest.mark.parametrize("place", ["here", "folder", "archive"])
def test_what_is_written_is_read(tmp_path, images, labels, kind, place):
    _, _, folder, archive = FORMATS[kind]
    files = contents(kind, images, labels)
    if place == "archive":
        write_archive(tmp_path / archive, folder, files)
    else:
        write_folder(tmp_path / (folder if place == "folder" else "."), files)
    for part, n in (("train", 5 * N), ("test", N)):
        X, y = read_batches(find_batches(tmp_path, part), part)
        np.testing.assert_array_equal(X, images[:n])
        np.testing.assert_array_equal(y, labels[:n])
        assert X.flags.c_contiguous
        assert X.flags.writeable


def test_columns_first(tmp_path, images, labels):
    batch = python_batch(images[:N], labels[:N], order="F")
    write_folder(tmp_path, {"test_batch": batch})
    X, _ = read_batches(find_batches(tmp_path, "test"), "test")
    np.testing.assert_array_equal(X, images[:N])


def test_the_pickles_of_python_2(tmp_path, images, labels):
    # The authors' files have protocol 2 of Python 2, where text and bytes are one type.
    raw = np.ascontiguousarray(images[:N].transpose(0, 3, 1, 2)).tobytes()
    batch = b"".join(
        [
            b"\x80\x02}(U\x04datacnumpy.core.multiarray\n_reconstruct\n",
            b"cnumpy\nndarray\nK\x00\x85U\x01b\x87R",
            b"(K\x01K\x04M\x00\x0c\x86cnumpy\ndtype\nU\x02u1K\x00K\x01\x87R",
            b"(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89",
            b"T" + len(raw).to_bytes(4, "little") + raw + b"tb",
            b"U\x06labels](" + b"".join(b"K" + bytes([y]) for y in labels[:N]) + b"eu.",
        ]
    )
    assert pickle.loads(batch, encoding="bytes")[b"data"].shape == (N, 3072)
    write_folder(tmp_path, {"test_batch": batch})
    X, y = read_batches(find_batches(tmp_path, "test"), "test")
    np.testing.assert_array_equal(X, images[:N])
    np.testing.assert_array_equal(y, labels[:N])


def test_binary_is_preferred(tmp_path, images, labels):
    write_folder(tmp_path, contents("python", images, labels))
    assert find_batches(tmp_path, "train").format is batches.PYTHON
    write_folder(tmp_path, contents("binary", images, labels))
    assert find_batches(tmp_path, "train").format is batches.BINARY


def test_batches_must_be_complete(tmp_path, images, labels):
    files = contents("binary", images, labels)
    del files["data_batch_3.bin"]
    write_folder(tmp_path, files)
    assert find_batches(tmp_path, "train") is None
    assert find_batches(tmp_path, "test") is not None


@pytest.mark.parametrize(
    "change", [lambda b: b[:-1], lambda b: b + b"x", lambda b: b""]
)
def test_binary_sizes_must_be_right(tmp_path, images, labels, change):
    batch = change(binary_batch(images[:N], labels[:N]))
    write_folder(tmp_path, {"test_batch.bin": batch})
    match = rf"test_batch\.bin of .* must have 12292 bytes .*; it has {len(batch)}"
    with pytest.raises(ValueError, match=match):
        read_batches(find_batches(tmp_path, "test"), "test")


class Harm:
    """An object that makes a folder when it is unpickled, unless that is prevented."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (str(self.path),)


def test_pickles_cannot_call_anything(tmp_path):
    harm = {b"data": Harm(tmp_path / "harm"), b"labels": []}
    write_folder(tmp_path, {"test_batch": pickle.dumps(harm)})
    with pytest.raises(ValueError, match=r"asks for \w+\.mkdir, which a batch does"):
        read_batches(find_batches(tmp_path, "test"), "test")
    assert not (tmp_path / "harm").exists()


@pytest.mark.parametrize(
    ("batch", "match"),
    [
        (b"", "EOFError"),
        (b"no pickle", "UnpicklingError"),
        (pickle.dumps([1, 2]), "TypeError"),
        (pickle.dumps({b"labels": []}), "KeyError"),
        (pickle.dumps({b"data": b"x", b"labels": []}), "AttributeError"),
        (
            pickle.dumps(
                {b"data": np.zeros((4, 3072)), b"labels": [1] * 4}, protocol=3
            ),
            r"pixels must be bytes \(u1\), got 'f8'",
        ),
        (
            pickle.dumps(
                {b"data": np.zeros((3, 3072), np.uint8), b"labels": [1] * 3}, protocol=3
            ),
            r"must have pixels of shape \(4, 3072\), got \(3, 3072\)",
        ),
        (
            pickle.dumps(
                {b"data": np.zeros((4, 3072), np.uint8), b"labels": [300]}, protocol=3
            ),
            "OverflowError",
        ),
    ],
)
def test_bad_pickles(tmp_path, batch, match):
    write_folder(tmp_path, {"test_batch": batch})
    with pytest.raises(ValueError, match=f"test_batch of .*{match}.*Replace the"):
        read_batches(find_batches(tmp_path, "test"), "test")


@pytest.mark.parametrize("keep", [0, 100, -1000])
def test_truncated_archives(tmp_path, images, labels, keep):
    path = tmp_path / "cifar-10-binary.tar.gz"
    write_archive(path, "cifar-10-batches-bin", contents("binary", images, labels))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"cifar-10-binary\.tar\.gz is damaged, or"):
        read_batches(find_batches(tmp_path, "train"), "train")


def test_archives_of_something_else(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    write_archive(path, "cifar-100", {"train.bin": b"x"})
    with pytest.raises(ValueError, match="not the archive of that name"):
        read_batches(find_batches(tmp_path, "train"), "train")


def test_a_folder_in_the_place_of_a_batch(tmp_path):
    path = tmp_path / "cifar-10-binary.tar.gz"
    write_archive(path, "cifar-10-batches-bin/test_batch.bin", {"x": b"x"})
    with pytest.raises(ValueError, match="it has 0"):
        read_batches(find_batches(tmp_path, "test"), "test")
