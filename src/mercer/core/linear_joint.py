r"""Dual coordinate descent for all classes jointly, after Crammer and Singer.

.. math::

    \min_W \; \tfrac12 \sum_m \|w_m\|^2 + \sum_i C_i \max_m \{ w_m \cdot x_i
        - w_{y_i} \cdot x_i + 1 - [m = y_i] \}

The dual has a coefficient :math:`\alpha_i^m` for each sample and class, with
:math:`w_m = \sum_i \alpha_i^m x_i`:

.. math::

    \min_\alpha \; \tfrac12 \sum_m \|w_m\|^2 + \sum_i \sum_{m \ne y_i} \alpha_i^m
    \quad\text{with}\quad \alpha_i^m \le C_i [m = y_i], \; \sum_m \alpha_i^m = 0.

The coefficients of one sample are found exactly, by sorting.

References
----------
Keerthi, Sundararajan, Chang, Hsieh & Lin, "A sequential dual method for large scale
multi-class linear SVMs", KDD 2008.
"""

import numpy as np

from mercer.core.jit import jit

__all__ = ["joint_epochs"]


# Up to this many classes, sorting by insertion is faster.
FEW_CLASSES = 16


@jit
def _sort(values):
    """Sort a few numbers in place."""
    if len(values) > FEW_CLASSES:
        values.sort()
        return
    for end in range(1, len(values)):
        value, place = values[end], end
        while place > 0 and values[place - 1] > value:
            values[place] = values[place - 1]
            place -= 1
        values[place] = value


@jit
def joint_epochs(
    data, indices, indptr, norms, scaling, y, C, W, b, alpha, order, eps, most_epochs,
    state, stop,
):  # fmt: skip
    """Make epochs until no sample violates its conditions by more than ``eps``.

    ``W`` has shape (n_features, n_classes), ``alpha`` (n, n_classes).  ``b`` are the
    weights of a feature with the constant value ``scaling``.  Return the number of
    epochs and the largest violation.
    """
    n, k = alpha.shape
    G, B, D = np.empty(k), np.empty(k), np.empty(k)
    count, worst = n, np.inf
    for epoch in range(most_epochs):
        worst, first_count = 0.0, count
        for i in range(count):
            state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(
                1442695040888963407
            )
            j = i + np.int64((state[0] >> np.uint64(33)) % np.uint64(count - i))
            order[i], order[j] = order[j], order[i]
        s = 0
        while s < count:
            i = order[s]
            curvature = norms[i] + scaling * scaling
            own, a, c = y[i], alpha[i], C[i]
            for m in range(k):
                G[m] = 1.0 + scaling * b[m]
            G[own] -= 1.0
            for t in range(indptr[i], indptr[i + 1]):
                x, line = data[t], W[indices[t]]
                for m in range(k):
                    G[m] += x * line[m]
            # Coefficients below their bound can rise, and all can fall.
            low, high = np.inf, -np.inf
            for m in range(k):
                bound = c if m == own else 0.0
                if a[m] < bound:
                    low = min(low, G[m])
                high = max(high, G[m])
            violation = high - low
            if c == 0.0 or curvature == 0.0 or violation <= 0.0:
                # Nothing to gain here now; come back when the others are solved.
                count -= 1
                order[s], order[count] = order[count], order[s]
                continue
            worst = max(worst, violation)
            if violation > 1e-14:
                for m in range(k):
                    B[m] = G[m] - curvature * a[m]
                    D[m] = B[m]
                D[own] += curvature * c
                _sort(D)
                total, r = D[k - 1] - curvature * c, 1
                while r < k and total < r * D[k - 1 - r]:
                    total += D[k - 1 - r]
                    r += 1
                level = total / r
                for m in range(k):
                    bound = c if m == own else 0.0
                    new = min(bound, (level - B[m]) / curvature)
                    G[m] = new - a[m]
                    a[m] = new
                for t in range(indptr[i], indptr[i + 1]):
                    x, line = data[t], W[indices[t]]
                    for m in range(k):
                        line[m] += x * G[m]
                for m in range(k):
                    b[m] += scaling * G[m]
            s += 1
        if stop[0]:
            return epoch + 1, worst
        if worst <= eps:
            # Samples that this epoch has set aside violate nothing.
            if first_count == n:
                return epoch + 1, worst
            count = n
    return most_epochs, worst
