import numpy as np
import pytest

from mercer.datasets.parts import check_part, read_npz


def test_only_the_part_is_read(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, x_train=[1], y_train=[2])
    assert [a.tolist() for a in read_npz(path, "train")] == [[1], [2]]
    with pytest.raises(ValueError, match=r"set\.npz lacks x_test and y_test\. It must"):
        read_npz(path, "test")


def test_pickles_are_not_read(tmp_path):
    path = tmp_path / "set.npz"
    np.savez(path, x_train=np.array([{}], dtype=object), y_train=[1])
    with pytest.raises(ValueError, match="cannot be read as an npz file"):
        read_npz(path, "train")


@pytest.mark.parametrize("keep", [0, 100, -50])
def test_truncated_files(tmp_path, keep):
    path = tmp_path / "set.npz"
    np.savez_compressed(path, x_train=np.arange(1000), y_train=np.arange(1000))
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"set\.npz cannot be read .*fresh copy"):
        read_npz(path, "train")


def test_a_lone_array_is_no_archive(tmp_path):
    path = tmp_path / "set.npz"
    with path.open("wb") as file:
        np.save(file, np.zeros(3))
    with pytest.raises(ValueError, match=r"set\.npz cannot be read as an npz file"):
        read_npz(path, "train")


@pytest.mark.parametrize(
    ("images", "labels", "match"),
    [
        (
            np.zeros((2, 4), np.uint8),
            np.zeros(3, int),
            r"images .* shape \(3, 4\), got",
        ),
        (np.zeros((3, 4)), np.zeros(3, int), "must be uint8 .* got float64"),
        (np.zeros((3, 4), np.uint8), np.zeros(2, int), r"must be 3 whole .* \(2,\)"),
        (np.zeros((3, 4), np.uint8), np.zeros(3), "whole numbers, got float64"),
        (np.zeros((3, 4), np.uint8), np.array([0, 1, 10]), "0 to 9, got 0 to 10"),
        (np.zeros((3, 4), np.uint8), np.array([0, -1, 1]), "0 to 9, got -1 to 1"),
    ],
)
def test_parts_are_checked(images, labels, match):
    with pytest.raises(ValueError, match=f"source: .*{match}"):
        check_part(images, labels, (3, 4), "source")
