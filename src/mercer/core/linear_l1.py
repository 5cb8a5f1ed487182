r"""Coordinate descent for the squared hinge loss with an l1 penalty.

.. math:: \min_w \; \sum_j |w_j| + \sum_i C_i \max\{0, 1 - y_i w \cdot x_i\}^2

One weight after the other makes a Newton step on its quadratic model, with soft
thresholding and a line search, since the model holds only as long as no sample passes
its margin.  Weights that are 0, and whose gradient is well inside of [-1, 1], are set
aside until the others are solved.

The dual problem has a coefficient :math:`\alpha_i \ge 0` for each sample:

.. math::

    \max_\alpha \; \sum_i \alpha_i - \sum_i \frac{\alpha_i^2}{4 C_i}
    \quad\text{with}\quad \Bigl|\sum_i y_i \alpha_i x_{ij}\Bigr| \le 1
    \;\text{for all}\; j.

References
----------
Yuan, Chang, Hsieh & Lin, "A comparison of optimization methods and software for
large-scale L1-regularized linear classification", JMLR 11, 2010.
"""

import numpy as np

from mercer.core.jit import jit

__all__ = ["l1_dual_value", "l1_epochs"]

# A step is short enough if the objective falls by this part of what its model says.
SUFFICIENT = 0.01
MOST_HALVINGS = 30


@jit
def l1_epochs(
    data, indices, indptr, y, C, penalty, w, slack, order, eps, most_epochs, state, stop
):
    """Make epochs until no weight violates its condition by more than ``eps``.

    ``data``, ``indices`` and ``indptr`` are the columns of X; ``slack`` is
    1 - y (X w) and follows the weights.  Return the number of epochs and the largest
    violation.
    """
    d = len(w)
    count = d
    margin = np.inf  # how far inside a gradient must be for its weight to be set aside
    worst = np.inf
    for epoch in range(most_epochs):
        worst = 0.0
        for i in range(count):
            state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(
                1442695040888963407
            )
            j = i + np.int64((state[0] >> np.uint64(33)) % np.uint64(count - i))
            order[i], order[j] = order[j], order[i]
        s = 0
        while s < count:
            j = order[s]
            first, end = indptr[j], indptr[j + 1]
            g, h = 0.0, 0.0
            for k in range(first, end):
                i = indices[k]
                if slack[i] > 0.0:
                    c = C[i] * data[k]
                    g -= c * y[i] * slack[i]
                    h += c * data[k]
            g, h = 2.0 * g, max(2.0 * h, 1e-12)
            pen = penalty[j]
            if w[j] == 0.0 and pen > 0.0:
                violation = max(g - pen, -g - pen, 0.0)
                if violation == 0.0 and abs(g) < pen - margin:
                    count -= 1
                    order[s], order[count] = order[count], order[s]
                    continue
            elif w[j] > 0.0:
                violation = abs(g + pen)
            else:
                violation = abs(g - pen)
            worst = max(worst, violation)
            if g + pen <= h * w[j]:
                step = -(g + pen) / h
            elif g - pen >= h * w[j]:
                step = -(g - pen) / h
            else:
                step = -w[j]
            if step != 0.0:
                _move(data, indices, first, end, y, C, pen, w, slack, j, g, step)
            s += 1
        if stop[0]:
            return epoch + 1, worst
        if worst <= eps:
            if count == d:
                return epoch + 1, worst
            count, margin = d, np.inf
            continue
        margin = worst / len(y)
    return most_epochs, worst


@jit
def _move(data, indices, first, end, y, C, pen, w, slack, j, g, step):
    """Move one weight by ``step``, or by a part of it that lowers the objective."""
    model = g * step + pen * (abs(w[j] + step) - abs(w[j]))
    t = 1.0
    for _ in range(MOST_HALVINGS):
        change = pen * (abs(w[j] + t * step) - abs(w[j]))
        for k in range(first, end):
            i = indices[k]
            before = max(slack[i], 0.0)
            after = max(slack[i] - t * step * y[i] * data[k], 0.0)
            change += C[i] * (after - before) * (after + before)
        if change <= SUFFICIENT * t * model:
            w[j] += t * step
            for k in range(first, end):
                i = indices[k]
                slack[i] -= t * step * y[i] * data[k]
            return
        t *= 0.5


@jit
def l1_dual_value(data, indices, indptr, y, C, penalty, alpha):
    """Return the dual objective of ``alpha`` after scaling it into its constraints."""
    largest = 0.0
    for j in range(len(penalty)):
        if penalty[j] == 0.0:
            continue
        total = 0.0
        for k in range(indptr[j], indptr[j + 1]):
            i = indices[k]
            total += y[i] * alpha[i] * data[k]
        largest = max(largest, abs(total) / penalty[j])
    linear, square = 0.0, 0.0
    for i in range(len(y)):
        if C[i] > 0.0:
            linear += alpha[i]
            square += alpha[i] * alpha[i] / (4.0 * C[i])
    if linear == 0.0:
        return 0.0
    scale = 0.5 * linear / square
    if largest > 0.0:
        scale = min(scale, 1.0 / largest)
    return scale * linear - scale * scale * square
