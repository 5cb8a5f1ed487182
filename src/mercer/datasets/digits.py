"""The handwritten digits that come with scikit-learn."""

from __future__ import annotations

from sklearn.utils import Bunch

from mercer.datasets.result import Arrays, pack_images
from mercer.runtime.public import public

__all__ = ["load_digits"]

WHITE = 16


@public("mercer.datasets")
def load_digits(
    *, as_images: bool = False, scale: bool = False, as_bunch: bool = False
) -> Arrays | Bunch:
    """Load scikit-learn's 1,797 handwritten digits of 8 by 8 pixels.

    Parameters
    ----------
    as_images : bool, default=False
        Whether X is a stack of images, (1797, 8, 8). False makes one row of 64 pixels
        of each image.
    scale : bool, default=False
        Whether pixels are scaled to float32 in [0, 1]. False leaves them as float64
        from 0 to 16, as in scikit-learn.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data``, ``target``, ``images``,
        ``target_names`` and ``DESCR``.

    Returns
    -------
    X : ndarray of shape (1797, 64) or (1797, 8, 8)
        The pixels; 0 is the background.
    y : ndarray of shape (1797,)
        The digits, int64.

    Examples
    --------
    >>> from mercer.datasets import load_digits
    >>> X, y = load_digits(scale=True)
    >>> X.shape, float(X.max()), y[:5]
    ((1797, 64), 1.0, array([0, 1, 2, 3, 4]))
    """
    from sklearn.datasets import load_digits as read

    digits = read()
    return pack_images(
        digits.images,
        digits.target,
        white=WHITE,
        scale=scale,
        as_images=as_images,
        as_bunch=as_bunch,
        target_names=digits.target_names,
        DESCR=digits.DESCR,
    )
