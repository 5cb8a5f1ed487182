"""A stream of noisy samples of two classes, for online learning."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from mercer.datasets.checks import Seed, as_generator, check_count, check_number
from mercer.datasets.result import Arrays, pack
from mercer.datasets.toys import cloud_centres
from mercer.runtime.public import public

__all__ = ["noisy_stream"]


@public("mercer.datasets")
def noisy_stream(
    n_samples: int | None = 300,
    *,
    chunk_size: int = 1,
    n_features: int = 2,
    separation: float = 4.0,
    spread: float = 1.0,
    flip: float = 0.1,
    random_state: Seed = None,
    as_bunch: bool = False,
) -> Iterator[Arrays | Bunch]:
    """Generate chunks of samples from two Gaussian clouds, some with a wrong label.

    With the same seed the samples are the same for any ``chunk_size``, so that learning
    from single samples can be compared with learning from groups.

    Parameters
    ----------
    n_samples : int or None, default=300
        Number of samples in all chunks together; the last chunk may be smaller than
        the others. With None the stream does not end.
    chunk_size : int, default=1
        Number of samples in a chunk.
    n_features : int, default=2
        Number of columns. The two centres differ in the first.
    separation : float, default=4.0
        Distance between the two centres.
    spread : float, default=1.0
        Standard deviation of a cloud, the same in all directions.
    flip : float, default=0.1
        Probability that a label is wrong.
    random_state : int, Generator, RandomState or None, default=None
        Seed; None makes the stream different each time.
    as_bunch : bool, default=False
        Whether a chunk is a Bunch with ``data``, ``target`` and ``is_flipped``. False
        makes it a pair (X, y).

    Returns
    -------
    chunks : iterator of (X, y)
        X has shape (chunk_size, n_features); y has the labels, 0 or 1.

    Examples
    --------
    >>> from mercer.datasets import noisy_stream
    >>> [len(y) for X, y in noisy_stream(10, chunk_size=4, random_state=0)]
    [4, 4, 2]
    """
    if n_samples is not None:
        n_samples = check_count("n_samples", n_samples)
    chunk_size = check_count("chunk_size", chunk_size)
    centres = cloud_centres(2, n_features, separation)
    spread = check_number("spread", spread)
    flip = check_number("flip", flip, most=1.0)
    rng = as_generator(random_state)
    chunks = _draw(_sizes(n_samples, chunk_size), centres, spread, flip, rng)
    return (pack(X, y, as_bunch, is_flipped=wrong) for X, y, wrong in chunks)


def _sizes(n_samples: int | None, chunk_size: int) -> Iterator[int]:
    starts = (
        count(0, chunk_size) if n_samples is None else range(0, n_samples, chunk_size)
    )
    for start in starts:
        yield chunk_size if n_samples is None else min(chunk_size, n_samples - start)


def _draw(
    sizes: Iterator[int],
    centres: NDArray,
    spread: float,
    flip: float,
    rng: np.random.Generator,
) -> Iterator[tuple[NDArray, NDArray, NDArray]]:
    # Each quantity has its own generator and draws the same amount for every sample, so
    # that the numbers do not depend on where chunks end.
    for_class, for_point, for_flip = rng.spawn(3)
    for size in sizes:
        cloud = (for_class.random(size) < 0.5).astype(np.int64)
        X = spread * for_point.standard_normal((size, centres.shape[1]))
        X += centres[cloud]
        is_flipped = for_flip.random(size) < flip
        yield X, cloud ^ is_flipped, is_flipped
