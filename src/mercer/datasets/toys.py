"""Toy data sets: Gaussian clouds, rings, moons, and a sheet in space."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Bunch

from mercer.datasets.checks import Seed, as_generator, check_count, check_number
from mercer.datasets.result import Arrays, pack
from mercer.runtime.public import public

__all__ = ["cloud_centres", "make_clouds", "make_moons", "make_rings", "make_sheet"]

# With this offset from one moon to the next, neighbours interlock and do not touch.
MOON_STEP = 1.2
MOON_DROP = 0.5


@public("mercer.datasets")
def make_clouds(
    n_samples: int = 200,
    *,
    n_classes: int = 2,
    n_features: int = 2,
    separation: float = 4.0,
    spread: float = 1.0,
    random_state: Seed = None,
    as_bunch: bool = False,
) -> Arrays | Bunch:
    """Make Gaussian clouds, one for each class.

    The centres lie on a circle around the origin, and neighbours are ``separation``
    apart. For two classes the lowest possible error rate of a classifier is
    Φ(−separation / (2 spread)).

    Parameters
    ----------
    n_samples : int, default=200
        Total number of points. The sizes of two classes differ by one at most.
    n_classes : int, default=2
        Number of clouds.
    n_features : int, default=2
        Number of columns. The centres differ in the first two.
    separation : float, default=4.0
        Distance between the centres of neighbouring clouds.
    spread : float, default=1.0
        Standard deviation of a cloud, the same in all directions.
    random_state : int, Generator, RandomState or None, default=None
        Seed; None makes the points different each time.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data``, ``target`` and ``centres``.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The points.
    y : ndarray of shape (n_samples,)
        The classes of the points, 0, 1, ...

    See Also
    --------
    make_moons : half circles.
    make_rings : rings around each other.

    Examples
    --------
    >>> from mercer.datasets import make_clouds
    >>> X, y = make_clouds(100, n_classes=3, random_state=0)
    >>> X.shape, [int((y == c).sum()) for c in range(3)]
    ((100, 2), [34, 33, 33])
    """
    spread = check_number("spread", spread)
    centres = cloud_centres(n_classes, n_features, separation)
    rng = as_generator(random_state)
    y = _even_labels(n_samples, n_classes, rng)
    X = centres[y] + spread * rng.standard_normal((len(y), centres.shape[1]))
    return pack(X, y, as_bunch, centres=centres)


def cloud_centres(n_classes: int, n_features: int, separation: float) -> NDArray:
    """Return centres on a circle in the first two axes, neighbours equally distant."""
    n_classes = check_count("n_classes", n_classes, least=2)
    n_features = check_count("n_features", n_features, least=2)
    separation = check_number("separation", separation)
    angle = np.arange(n_classes) * (2 * np.pi / n_classes)
    centres = np.zeros((n_classes, n_features))
    centres[:, 0] = -np.cos(angle)
    centres[:, 1] = np.sin(angle)
    return centres * (separation / (2 * np.sin(np.pi / n_classes)))


@public("mercer.datasets")
def make_rings(
    n_samples: int = 200,
    *,
    radii: Sequence[float] = (0.3, 1.0),
    noise: float = 0.05,
    random_state: Seed = None,
    as_bunch: bool = False,
) -> Arrays | Bunch:
    """Make rings around the origin, one for each class.

    No straight line separates the classes.

    Parameters
    ----------
    n_samples : int, default=200
        Total number of points. The sizes of two classes differ by one at most.
    radii : sequence of float, default=(0.3, 1.0)
        Radius of each ring.
    noise : float, default=0.05
        Standard deviation of the noise on each coordinate.
    random_state : int, Generator, RandomState or None, default=None
        Seed; None makes the points different each time.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data`` and ``target``.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        The rings of the points, 0, 1, ..., in the order of ``radii``.

    See Also
    --------
    make_clouds : Gaussian clouds.
    make_moons : half circles.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import make_rings
    >>> X, y = make_rings(50, radii=(1, 2), noise=0, random_state=0)
    >>> bool(np.allclose(np.hypot(*X.T), y + 1))
    True
    """
    radius = np.array([check_number("an entry of radii", r) for r in radii])
    if len(radius) == 0:
        raise ValueError("radii must have at least one entry, got none.")
    noise = check_number("noise", noise)
    rng = as_generator(random_state)
    y = _even_labels(n_samples, len(radius), rng)
    angle = rng.uniform(0, 2 * np.pi, len(y))
    X = radius[y, None] * np.column_stack([np.cos(angle), np.sin(angle)])
    return pack(X + noise * rng.standard_normal(X.shape), y, as_bunch)


@public("mercer.datasets")
def make_moons(
    n_samples: int = 200,
    *,
    n_moons: int = 2,
    noise: float = 0.1,
    random_state: Seed = None,
    as_bunch: bool = False,
) -> Arrays | Bunch:
    """Make half circles that interlock, one for each class.

    The half circles have radius 1 and open downwards and upwards alternately. Each is
    1.2 to the right of the one before, so that without noise they do not touch.

    Parameters
    ----------
    n_samples : int, default=200
        Total number of points. The sizes of two classes differ by one at most.
    n_moons : int, default=2
        Number of half circles.
    noise : float, default=0.1
        Standard deviation of the noise on each coordinate.
    random_state : int, Generator, RandomState or None, default=None
        Seed; None makes the points different each time.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data`` and ``target``.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        The points.
    y : ndarray of shape (n_samples,)
        The moons of the points, 0, 1, ..., from left to right.

    See Also
    --------
    make_clouds : Gaussian clouds.
    make_rings : rings around each other.

    Examples
    --------
    >>> from mercer.datasets import make_moons
    >>> X, y = make_moons(90, n_moons=3, random_state=0)
    >>> [int((y == moon).sum()) for moon in range(3)]
    [30, 30, 30]
    """
    n_moons = check_count("n_moons", n_moons, least=2)
    noise = check_number("noise", noise)
    rng = as_generator(random_state)
    y = _even_labels(n_samples, n_moons, rng)
    angle = rng.uniform(0, np.pi, len(y))
    is_lower = y % 2 == 1
    X = np.column_stack([np.cos(angle), np.where(is_lower, -1, 1) * np.sin(angle)])
    X += np.column_stack([MOON_STEP * y, np.where(is_lower, MOON_DROP, 0.0)])
    return pack(X + noise * rng.standard_normal(X.shape), y, as_bunch)


@public("mercer.datasets")
def make_sheet(
    n_samples: int = 500,
    *,
    n_features: int = 3,
    lengths: Sequence[float] = (3.0, 1.0),
    noise: float = 0.1,
    random_state: Seed = None,
    as_bunch: bool = False,
) -> Arrays | Bunch:
    """Make points close to a plane of random orientation, as an example for PCA.

    Parameters
    ----------
    n_samples : int, default=500
        Number of points.
    n_features : int, default=3
        Dimension of the space.
    lengths : sequence of float, default=(3.0, 1.0)
        Standard deviations of the points along the axes of the plane. With another
        number of entries than two, the plane has that dimension.
    noise : float, default=0.1
        Standard deviation of the noise, in all directions of space.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the plane and of the points; None makes them different each time.
    as_bunch : bool, default=False
        Whether to return a Bunch with ``data``, ``target`` and ``axes``, whose rows are
        the axes of the plane.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The points.
    positions : ndarray of shape (n_samples, n_axes)
        Positions of the points on the plane, before noise; ``target`` of the Bunch.

    Examples
    --------
    >>> import numpy as np
    >>> from mercer.datasets import make_sheet
    >>> X, positions = make_sheet(1000, noise=0.01, random_state=1)
    >>> X.shape, positions.shape
    ((1000, 3), (1000, 2))
    >>> np.sqrt(np.linalg.eigvalsh(np.cov(X.T))).round(1)
    array([0., 1., 3.])
    """
    n_samples = check_count("n_samples", n_samples)
    n_features = check_count("n_features", n_features)
    deviations = np.array([check_number("an entry of lengths", v) for v in lengths])
    noise = check_number("noise", noise)
    if not 1 <= len(deviations) <= n_features:
        raise ValueError(
            f"lengths must have 1 to n_features={n_features} entries, got "
            f"{len(deviations)}."
        )
    rng = as_generator(random_state)
    axes = np.linalg.qr(rng.standard_normal((n_features, len(deviations))))[0].T
    positions = deviations * rng.standard_normal((n_samples, len(deviations)))
    X = positions @ axes + noise * rng.standard_normal((n_samples, n_features))
    return pack(X, positions, as_bunch, axes=axes)


def _even_labels(
    n_samples: int, n_classes: int, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Return labels in random order, with classes whose sizes differ by one at most."""
    n_samples = check_count("n_samples", n_samples, least=n_classes)
    return rng.permutation(np.arange(n_samples, dtype=np.int64) % n_classes)
