"""CIFAR-10: 60,000 small photographs of ten kinds of things."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mercer.datasets.batches import ARCHIVE, BINARY, Store, find_store, read_store
from mercer.datasets.checks import check_choice
from mercer.datasets.download import Remote, fetch
from mercer.datasets.npz import check_part, read_npz
from mercer.datasets.places import find_file, folders, how_to_get
from mercer.datasets.result import Arrays, pack_images
from mercer.datasets.splits import per_class_split

__all__ = ["load_cifar10"]

IMAGE = (32, 32, 3)
N_IMAGES = {"train": 50_000, "test": 10_000}
N_PER_CLASS = {"train": 500, "test": 100}
PARTS = {"train": ("train",), "test": ("test",), "all": ("train", "test")}
SUBSET_FILE = "cifar10_subset.npz"
REMOTE = Remote(
    ARCHIVE,
    ("https://www.cs.toronto.edu/~kriz/", "https://cave.cs.toronto.edu/kriz/"),
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    170_052_171,
)
CLASSES = (
    "airplane",
    "automobile",
    "bird",
    "cat",
    "deer",
    "dog",
    "frog",
    "horse",
    "ship",
    "truck",
)
DESCRIPTION = (
    "CIFAR-10: colour photographs of 32 x 32 pixels in ten classes, by A. Krizhevsky, "
    "V. Nair and G. Hinton; 50,000 for training and 10,000 for testing."
)


def load_cifar10(
    *,
    subset: str = "train",
    full: bool = False,
    as_images: bool = False,
    scale: bool = False,
    download: bool = True,
    as_bunch: bool = False,
) -> Arrays | Bunch:
    """Load CIFAR-10, photographs of 32 by 32 pixels in ten classes.

    The files are looked for in the folder that the environment variable ``MERCER_DATA``
    names, then in the user's cache: ``cifar10_subset.npz`` (unless ``full``), with
    ``x_train``, ``y_train``, ``x_test`` and ``y_test``; the original batches, binary or
    Python, in that folder or in one named as their authors do; or the archives of
    either. What is nowhere is downloaded into the cache: the binary archive, 170 MB.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        The images for training, those for testing, or first the ones and then the
        others.
    full : bool, default=False
        Whether to take all 50,000 and 10,000 images, or the first 500 and 100 of each
        class, in the original order.
    as_images : bool, default=False
        Whether X is a stack of images, (n, 32, 32, 3), or has one row of 3,072 values
        for each: red, green and blue of the first pixel, of the second, and so on.
    scale : bool, default=False
        Whether values are float32 in [0, 1], or bytes as in the files.
    download : bool, default=True
        Whether to download what is not on this machine.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data``, ``target``, ``images``,
        ``target_names`` and ``DESCR``.

    Returns
    -------
    X : ndarray of shape (n, 3072) or (n, 32, 32, 3)
        The pixels.
    y : ndarray of shape (n,)
        The classes, 0 to 9, int64.

    Examples
    --------
    >>> from mercer.datasets import load_cifar10
    >>> X, y = load_cifar10(as_images=True)  # doctest: +SKIP
    >>> X.shape  # doctest: +SKIP
    (5000, 32, 32, 3)
    """
    check_choice("subset", subset, tuple(PARTS))
    parts = [_part(part, full, download) for part in PARTS[subset]]
    return pack_images(
        np.concatenate([images for images, _ in parts]),
        np.concatenate([labels for _, labels in parts]),
        white=255,
        scale=scale,
        as_images=as_images,
        as_bunch=as_bunch,
        target_names=np.array(CLASSES),
        DESCR=DESCRIPTION,
    )


def _part(part: str, full: bool, download: bool) -> Arrays:
    """Read one part from where it is found first."""
    for folder in folders():
        packed = None if full else find_file([SUBSET_FILE], [folder])
        if packed:
            images, labels = read_npz(packed, part)
            n_images = N_PER_CLASS[part] * len(CLASSES)
            check_part(images, labels, (n_images, *IMAGE), packed)
            return images, labels
        store = find_store(folder, part)
        if store:
            return _from_batches(store, part, full)
    if not download:
        raise FileNotFoundError(_absent(part, full))
    (archive,) = fetch([REMOTE], "CIFAR-10")
    return _from_batches(Store(archive, BINARY), part, full)


def _from_batches(store: Store, part: str, full: bool) -> Arrays:
    """Read the batches, and keep what is wanted of them."""
    images, labels = read_store(store, part)
    check_part(images, labels, (N_IMAGES[part], *IMAGE), store.path)
    if full:
        return images, labels
    (rows,) = per_class_split(labels, (N_PER_CLASS[part],), shuffle=False)
    return images[rows], labels[rows]


def _absent(part: str, full: bool) -> str:
    """Say that the data are not there, and what to do."""
    places = folders()
    files = ARCHIVE if full else f"{ARCHIVE} (or {SUBSET_FILE})"
    hint = ""
    if full and find_file([SUBSET_FILE], places):
        hint = f", or full=False for the images of {SUBSET_FILE}, which is there"
    return (
        f"CIFAR-10 ({part}) is not in {', '.join(map(str, places))}. Use "
        f"download=True{hint}. {how_to_get(files)}"
    )
