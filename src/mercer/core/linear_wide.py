r"""Dual coordinate descent for one problem on wide sparse samples.

With tens of thousands of features, the weights of eight problems side by side (see
:mod:`mercer.core.linear_lanes`) do not fit into the nearer caches of a processor, and
the samples that matter differ from problem to problem.  So each problem has its own
weights and its own *active* samples, and visits nothing else.

A round has two parts.  :func:`descend_on` makes epochs on the active samples, and sets
those aside that stay at their bounds.  :func:`look_at_all` then computes the decision
values of all samples in one pass: they give the primal objective, and which samples are
to be active in the next round, so that nothing that was set aside by mistake is lost.

A sample has one variable, or two with an epsilon-insensitive loss.  Both need the same
decision value, and are moved in one visit.

A visit waits for the memory rather than for the arithmetic.  So epochs may run on
samples with fewer bytes, in single precision; the other functions measure what has come
of it.

Steps are over-relaxed: each goes beyond the minimum along its variable, as successive
over-relaxation does for systems of equations.  With a factor below 2, every step still
decreases the objective, also where it is cut off at a bound.
"""

import numpy as np

from mercer.core.jit import jit
from mercer.core.linear_lanes import ask_for, next_number

__all__ = ["descend_on", "look_at_all", "sum_up"]

# Samples are asked for so many visits before they are needed.
AHEAD = 3
# A sample is set aside if the gradient is this far on the right side, in units of the
# largest violation of the epoch before.  What was set aside too early becomes active
# again after the round.
ASIDE = 0.2
# Steps are longer than those to the minimum along a variable by this factor.
OVER_RELAXATION = 1.2

# Places of the numbers that belong to a variable; the last is the squared length of its
# sample, with the constant feature.
P, LO, HI, RIDGE, BETA, NORM = range(6)


@jit
def _decision(x, columns, w):
    total = 0.0
    for k in range(len(x)):
        total += x[k] * w[columns[k]]
    return total


@jit
def descend_on(rows, w, u, value, terms, active, count, eps, most_epochs, state, stop):
    """Make epochs until the projected gradient of active samples is within ``eps``.

    ``terms`` has shape (n_copies, n, 8): the numbers of each variable lie side by side
    because a visit needs all of them, and eight of them fill a cache line.  ``u`` holds
    the weight of a feature with the constant value ``value``.  The first ``count``
    numbers of ``active`` are those of the active samples.

    Return the number of epochs, and the range of the projected gradient in the last.
    """
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    copies = len(terms)
    worst, old_high, old_low = np.inf, np.inf, -np.inf
    for epoch in range(most_epochs):
        high, low = 0.0, 0.0
        for s in range(count):
            # A random number below 2**31, scaled to the numbers that are left.
            scaled = next_number(state) * np.uint64(count - s) >> np.uint64(31)
            other = s + np.int64(scaled)
            active[s], active[other] = active[other], active[s]
        s = 0
        while s < count:
            i = active[s]
            if s + AHEAD < count:
                # Visits in random order would wait for the memory.
                later = active[s + AHEAD]
                ask_for(data, indptr[later], indptr[later + 1])
                ask_for(indices, indptr[later], indptr[later + 1])
                for copy in range(copies):
                    own = terms[copy, later]
                    ask_for(own, 0, len(own))
            x = data[indptr[i] : indptr[i + 1]]
            columns = indices[indptr[i] : indptr[i + 1]]
            decision = _decision(x, columns, w) + value * u[0]
            aside, change = True, 0.0
            for copy in range(copies):
                own = terms[copy, i]
                least, most, b = own[LO], own[HI], own[BETA]
                g = decision + own[P] + own[RIDGE] * b
                if b == least and g >= 0.0:
                    aside = aside and (g > old_high or least == most)
                elif b == most and g <= 0.0:
                    aside = aside and (g < old_low or least == most)
                else:
                    aside = False
                    high, low = max(high, g), min(low, g)
                    curvature = own[NORM] + own[RIDGE]
                    # Without curvature, go to the bound that the gradient points at.
                    step = g / curvature if curvature > 0.0 else np.sign(g) * np.inf
                    new = min(max(b - OVER_RELAXATION * step, least), most)
                    own[BETA] = new
                    change += new - b
                    decision += (new - b) * own[NORM]
            if aside:
                count -= 1
                active[s], active[count] = active[count], active[s]
                continue
            if change != 0.0:
                for k in range(len(x)):
                    w[columns[k]] += x[k] * change
                u[0] += value * change
            s += 1
        worst = high - low
        if stop[0] or worst <= eps:
            return epoch + 1, worst
        old_high = ASIDE * high if high > 0.0 else np.inf
        old_low = ASIDE * low if low < 0.0 else -np.inf
    return most_epochs, worst


@jit
def look_at_all(rows, w, u, value, terms, margin, active):
    """Return primal and dual objective and the number of samples to be active.

    Samples are active unless all their variables are at bounds, with gradients farther
    than ``margin`` on the right side.  Their numbers are written into ``active``.
    """
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    norm = u[0] * u[0]
    for j in range(len(w)):
        norm += w[j] * w[j]
    loss, rest, count = 0.0, 0.0, 0
    for i in range(len(indptr) - 1):
        x = data[indptr[i] : indptr[i + 1]]
        columns = indices[indptr[i] : indptr[i + 1]]
        decision = value * u[0]
        if norm > 0.0:
            decision += _decision(x, columns, w)
        is_active = False
        for copy in range(len(terms)):
            own = terms[copy, i]
            least, most, ridge, b = own[LO], own[HI], own[RIDGE], own[BETA]
            g = decision + own[P]
            if ridge > 0.0:
                best = min(max(-g / ridge, least), most)
            else:
                best = most if g < 0.0 else least
            loss -= best * (g + 0.5 * ridge * best)
            rest += b * (own[P] + 0.5 * ridge * b)
            g += ridge * b
            rests = (b == least and g > margin) or (b == most and g < -margin)
            is_active = is_active or not (rests or least == most)
        if is_active:
            active[count] = i
            count += 1
    return 0.5 * norm + loss, -0.5 * norm - rest, count


@jit
def sum_up(rows, value, terms, w, u):
    """Set the weights to the sum of all samples times their coefficients."""
    data, indices, indptr = rows.data, rows.indices, rows.indptr
    w[:] = 0.0
    u[0] = 0.0
    for i in range(len(indptr) - 1):
        b = 0.0
        for copy in range(len(terms)):
            b += terms[copy, i, BETA]
        if b != 0.0:
            x = data[indptr[i] : indptr[i + 1]]
            columns = indices[indptr[i] : indptr[i + 1]]
            for k in range(len(x)):
                w[columns[k]] += x[k] * b
            u[0] += value * b
