"""CIFAR-10: 60,000 small photographs in ten classes."""

from __future__ import annotations

import numpy as np
from sklearn.utils import Bunch

from mercer.datasets.batches import (
    ARCHIVE,
    BINARY,
    BatchFiles,
    find_batches,
    read_batches,
)
from mercer.datasets.checks import check_choice
from mercer.datasets.download import Remote, fetch
from mercer.datasets.parts import SUBSETS, check_part, read_npz, read_parts
from mercer.datasets.places import find_file, folders, how_to_get
from mercer.datasets.result import Arrays, pack_images
from mercer.datasets.splits import per_class_split
from mercer.runtime.public import public

__all__ = ["load_cifar10"]

IMAGE = (32, 32, 3)
N_IMAGES = {"train": 50_000, "test": 10_000}
N_PER_CLASS = {"train": 500, "test": 100}
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


@public("mercer.datasets")
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

    The data are read from the folder that the environment variable ``MERCER_DATA``
    names, or else from the user's cache. In each folder the loader looks for
    ``cifar10_subset.npz`` with ``x_train``, ``y_train``, ``x_test`` and ``y_test``
    (unless ``full``), then for the original batches, binary or Python, in the folder
    itself, in a subfolder with the name that the authors gave it, or in the authors'
    archive. If neither folder has the data, the binary archive (170 MB) is downloaded
    into the cache.

    Parameters
    ----------
    subset : {"train", "test", "all"}, default="train"
        Whether to load the training images, the test images, or all: the training
        images followed by the test images.
    full : bool, default=False
        Whether to load all 50,000 and 10,000 images. False loads the first 500
        training and the first 100 test images of each class, in the original order.
    as_images : bool, default=False
        Whether X is a stack of images, (n, 32, 32, 3). False makes one row of 3,072
        values of each image: red, green and blue of the first pixel, then of the
        second, and so on.
    scale : bool, default=False
        Whether values are scaled to float32 in [0, 1]. False leaves them as bytes.
    download : bool, default=True
        Whether to download the data if they are not on this machine.
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
    check_choice("subset", subset, tuple(SUBSETS))
    images, labels = read_parts(subset, lambda part: _part(part, full, download))
    return pack_images(
        images,
        labels,
        white=255,
        scale=scale,
        as_images=as_images,
        as_bunch=as_bunch,
        target_names=np.array(CLASSES),
        DESCR=DESCRIPTION,
    )


def _part(part: str, full: bool, download: bool) -> Arrays:
    """Read one part from the first folder that has it, or download it."""
    for folder in folders():
        packed = None if full else find_file([SUBSET_FILE], [folder])
        if packed:
            images, labels = read_npz(packed, part)
            n_images = N_PER_CLASS[part] * len(CLASSES)
            return check_part(images, labels, (n_images, *IMAGE), packed)
        files = find_batches(folder, part)
        if files:
            return _from_batches(files, part, full)
    if not download:
        raise FileNotFoundError(_absent(part, full))
    (archive,) = fetch([REMOTE], "CIFAR-10")
    return _from_batches(BatchFiles(archive, BINARY), part, full)


def _from_batches(files: BatchFiles, part: str, full: bool) -> Arrays:
    """Read a part from its batches; all of it, or the first images of each class."""
    images, labels = read_batches(files, part)
    check_part(images, labels, (N_IMAGES[part], *IMAGE), files.path)
    if full:
        return images, labels
    (rows,) = per_class_split(labels, (N_PER_CLASS[part],), shuffle=False)
    return images[rows], labels[rows]


def _absent(part: str, full: bool) -> str:
    """Return the message that the data are not on this machine, and what to do."""
    places = folders()
    files = ARCHIVE if full else f"{ARCHIVE} (or {SUBSET_FILE})"
    hint = ""
    if full and find_file([SUBSET_FILE], places):
        hint = f", or full=False for the images of {SUBSET_FILE}, which you have"
    return (
        f"CIFAR-10 ({part}) is not in {', '.join(map(str, places))}. Use "
        f"download=True{hint}. {how_to_get(files)}"
    )
