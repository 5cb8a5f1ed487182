r"""Where to begin a problem, given the solution of one with other bounds.

Multiples :math:`s\beta` of a solution keep a sum of 0.  With :math:`f = K\beta` at hand
the objective on that ray is :math:`\tfrac12 s^2 \beta^T f + s\, p^T \beta`, least at
:math:`s = -p^T \beta / \beta^T f`; the bounds limit :math:`s` from above.
"""

import numpy as np
from numpy.typing import NDArray

from mercer.core.jit import jit

__all__ = ["best_multiple"]


@jit
def best_multiple(
    p: NDArray,
    lo: NDArray,
    hi: NDArray,
    row: NDArray,
    beta: NDArray,
    f: NDArray,
    new_beta: NDArray,
    new_f: NDArray,
):
    """Write the best feasible multiple of ``beta``, and its ``f``; 0 if none is good.

    ``p``, ``lo``, ``hi``, ``row``, ``beta`` have shape (m,), ``f`` (n_rows,).
    """
    quadratic, slope, most = 0.0, 0.0, np.inf
    for v in range(len(beta)):
        b = beta[v]
        if b != 0.0:
            quadratic += b * f[row[v]]
            slope += p[v] * b
            most = min(most, (hi[v] if b > 0.0 else lo[v]) / b)
    s = 0.0
    if quadratic > 0.0 and slope < 0.0:
        s = min(-slope / quadratic, most)
    if not (s > 0.0 and s < np.inf):
        s = 0.0
    for v in range(len(beta)):
        new_beta[v] = min(max(s * beta[v], lo[v]), hi[v])
    for r in range(len(f)):
        new_f[r] = s * f[r]
