import re

import numpy as np
import pytest
from idx_files import idx_bytes, write_idx

from mercer.datasets.idx import read_idx


@pytest.mark.parametrize("name", ["set", "set.gz"])
@pytest.mark.parametrize("shape", [(5,), (4, 3, 2), (0, 3)])
def test_what_is_written_is_read(tmp_path, rng, name, shape):
    values = rng.integers(256, size=shape)
    read = read_idx(write_idx(tmp_path / name, values), n_axes=len(shape))
    assert read.dtype == np.uint8
    assert read.flags.writeable
    np.testing.assert_array_equal(read, values)


def test_the_magic_number_must_be_right(tmp_path):
    path = write_idx(tmp_path / "labels", [1, 2])
    with pytest.raises(
        ValueError, match=r"begins with '00 00 08 01' and not with '00 "
    ):
        read_idx(path, n_axes=3)
    path.write_bytes(b"\x00\x00\x0d\x01" + idx_bytes([1])[4:])
    with pytest.raises(ValueError, match="labels is not an idx file of unsigned bytes"):
        read_idx(path, n_axes=1)


@pytest.mark.parametrize(("cut", "n_bytes"), [(-1, 5), (0, 7)])
def test_sizes_must_be_right(tmp_path, cut, n_bytes):
    content = idx_bytes(np.zeros((2, 3)))
    path = tmp_path / "images"
    path.write_bytes(content[:cut] if cut else content + b"\x00")
    match = rf"announces 6 bytes, shape \(2, 3\), and has {n_bytes}\. Replace the"
    with pytest.raises(ValueError, match=match):
        read_idx(path, n_axes=2)


def test_a_header_must_be_whole(tmp_path):
    path = tmp_path / "images"
    path.write_bytes(idx_bytes(np.zeros((2, 3)))[:9])
    with pytest.raises(ValueError, match="ends inside its header"):
        read_idx(path, n_axes=2)
    path.write_bytes(b"")
    with pytest.raises(ValueError, match="begins with ''"):
        read_idx(path, n_axes=2)


@pytest.mark.parametrize("spoil", [lambda c: c[:-9], lambda c: c[10:], lambda c: b""])
def test_broken_compression(tmp_path, rng, spoil):
    path = write_idx(tmp_path / "images.gz", rng.integers(256, size=1000))
    path.write_bytes(spoil(path.read_bytes()))
    with pytest.raises(ValueError, match=re.escape(str(path))):
        read_idx(path, n_axes=1)


def test_a_flipped_bit_is_noticed(tmp_path, rng):
    path = write_idx(tmp_path / "images.gz", rng.integers(256, size=1000))
    content = bytearray(path.read_bytes())
    content[600] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match="is damaged, or is not a gzip file"):
        read_idx(path, n_axes=1)
