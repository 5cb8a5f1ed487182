r"""Dual coordinate descent for sparse samples, several problems at a time.

The dual problem of :mod:`mercer.core.linear_pieces` is solved one variable after the
other: with the gradient :math:`G = w \cdot x + p + r\beta`, a variable becomes
:math:`\beta - G / (\|x\|^2 + r)`, clipped to its bounds, and the weights
:math:`w = X^T \beta` follow.  The problems of one-vs-rest have the same samples.  Their
weights for one feature lie side by side, and one visit of a sample changes all of them.

Variables at a bound whose gradient is far on the right side are set aside until the
others are solved.

References
----------
Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for
large-scale linear SVM", ICML 2008.
"""

import numpy as np
from llvmlite import ir

from mercer.core.jit import cgutils, intrinsic, jit, types

__all__ = ["FEW_LANES", "LANES", "descend"]

# Problems that are solved together: as many numbers as a cache line holds, or half of
# that.
LANES = 8
FEW_LANES = 4


@jit
def _next(state):
    """Return the next number of a linear congruential generator (Knuth's MMIX)."""
    state[0] = state[0] * np.uint64(6364136223846793005) + np.uint64(
        1442695040888963407
    )
    return state[0] >> np.uint64(33)


def _walk(context, builder, signature, args, lanes, visit):
    """Write a loop over the values of a sample: data, columns, and weights of lanes.

    ``visit`` gets each value, in all lanes of a vector, and the place of its weights.
    Numba alone would turn loops over a few lanes into instructions on single numbers.
    """
    data, columns, w, _ = (
        context.make_array(kind)(context, builder, arg)
        for kind, arg in zip(signature.args, args, strict=True)
    )
    i64, number = ir.IntType(64), ir.DoubleType()
    vector = ir.VectorType(number, lanes)
    with cgutils.for_range(builder, builder.extract_value(data.shape, 0)) as loop:
        column = builder.load(builder.gep(columns.data, [loop.index]))
        if column.type != i64:
            column = builder.sext(column, i64)
        value = builder.load(builder.gep(data.data, [loop.index]))
        if value.type != number:
            value = builder.fpext(value, number)
        empty = ir.Constant(vector, ir.Undefined)
        first = builder.insert_element(empty, value, ir.Constant(ir.IntType(32), 0))
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        place = builder.gep(w.data, [builder.mul(column, ir.Constant(i64, lanes))])
        visit(
            builder.shuffle_vector(first, empty, zeros),
            builder.bitcast(place, vector.as_pointer()),
        )
    return context.get_dummy_value()


def _lanes_of(context, builder, signature, args, lanes):
    """Return the place of the last argument's numbers as a vector."""
    array = context.make_array(signature.args[-1])(context, builder, args[-1])
    vector = ir.VectorType(ir.DoubleType(), lanes)
    return builder.bitcast(array.data, vector.as_pointer())


def _multiply_add(builder, factor, other, total):
    product = builder.fmul(factor, other, flags=("contract",))
    return builder.fadd(product, total, flags=("contract",))


def _make_dot(lanes):
    @intrinsic
    def dot(typing_context, data, columns, w, G):
        """Add the products of a sample with the columns of weights to ``G``."""

        def write(context, builder, signature, args):
            sums = _lanes_of(context, builder, signature, args, lanes)
            # LLVM keeps these two in registers; using them in turn hides the latency of
            # an addition.
            vector = sums.type.pointee
            one, other = (cgutils.alloca_once(builder, vector) for _ in range(2))
            builder.store(builder.load(sums, align=8), one)
            builder.store(ir.Constant(vector, [0.0] * lanes), other)

            def visit(factor, weights):
                after = _multiply_add(
                    builder, factor, builder.load(weights, align=8), builder.load(one)
                )
                builder.store(builder.load(other), one)
                builder.store(after, other)

            result = _walk(context, builder, signature, args, lanes, visit)
            total = builder.fadd(builder.load(one), builder.load(other))
            builder.store(total, sums, align=8)
            return result

        return types.none(data, columns, w, G), write

    return dot


def _make_add(lanes):
    @intrinsic
    def add(typing_context, data, columns, w, change):
        """Add a multiple of a sample to each of the columns of weights."""

        def write(context, builder, signature, args):
            step = _lanes_of(context, builder, signature, args, lanes)
            step = builder.load(step, align=8)

            def visit(factor, weights):
                before = builder.load(weights, align=8)
                after = _multiply_add(builder, factor, step, before)
                builder.store(after, weights, align=8)

            return _walk(context, builder, signature, args, lanes, visit)

        return types.none(data, columns, w, change), write

    return add


_dot_eight, _dot_four = _make_dot(LANES), _make_dot(FEW_LANES)
_add_eight, _add_four = _make_add(LANES), _make_add(FEW_LANES)


@jit
def _dot_one(data, indices, w, G):
    """Add the product of a sample with one column of weights to ``G``."""
    total = 0.0
    for k in range(len(data)):
        total += data[k] * w[indices[k], 0]
    G[0] += total


@jit
def _add_one(data, indices, w, change):
    """Add a multiple of a sample to one column of weights."""
    step = change[0]
    for k in range(len(data)):
        w[indices[k], 0] += data[k] * step


@jit
def _move(G, norm, lo, hi, ridge, beta, old_high, old_low, high, low, change):
    """Move the variables of one row of terms, and widen the ranges of their gradients.

    Return whether one of them has moved, and whether all can be set aside.  There are
    no branches: which bound a variable is at cannot be predicted.
    """
    aside, moves = True, False
    for c in range(len(G)):
        b, g, least, most = beta[c], G[c], lo[c], hi[c]
        is_low, is_high = b == least, b == most
        rests = (is_low & (g >= 0.0)) | (is_high & (g <= 0.0))
        projected = 0.0 if rests else g
        high[c] = max(high[c], projected)
        low[c] = min(low[c], projected)
        far = (is_low & (g > old_high[c])) | (is_high & (g < old_low[c]))
        aside &= far | (least == most)
        curvature = norm + ridge[c]
        # Without curvature, a variable goes to the bound that its gradient points at.
        step = g / curvature if curvature > 0.0 else np.sign(g) * np.inf
        new = b if rests else min(max(b - step, least), most)
        moves |= new != b
        change[c] = new - b
        beta[c] = new
    return moves, aside


@jit
def descend(
    data, indices, indptr, norms, w, u, value, terms, row, eps, most_epochs, state, stop
):
    """Make epochs until the projected gradient of all problems is within ``eps``.

    ``w`` has shape (n_features, lanes) with one lane, four or eight.  ``terms`` has
    shape (m, 5, lanes): p, lo, hi, ridge and beta, which lie side by side because a
    visit needs all of them.
    Return the number of epochs and the range of the projected gradient.
    """
    m, _, lanes = terms.shape
    order = np.arange(m)
    count = m
    G = np.empty(lanes)
    change = np.empty(lanes)
    # Bounds of the projected gradient in the epoch before, and in this one.
    old_high, old_low = np.full(lanes, np.inf), np.full(lanes, -np.inf)
    high, low = np.empty(lanes), np.empty(lanes)
    worst = np.inf
    for epoch in range(most_epochs):
        high[:] = -np.inf
        low[:] = np.inf
        for i in range(count):
            j = i + np.int64(_next(state) % np.uint64(count - i))
            order[i], order[j] = order[j], order[i]
        s = 0
        while s < count:
            v = order[s]
            i = row[v]
            x = data[indptr[i] : indptr[i + 1]]
            columns = indices[indptr[i] : indptr[i + 1]]
            p, lo, hi = terms[v, 0], terms[v, 1], terms[v, 2]
            ridge, beta = terms[v, 3], terms[v, 4]
            for c in range(lanes):
                G[c] = p[c] + ridge[c] * beta[c] + value * u[c]
            if lanes == LANES:
                _dot_eight(x, columns, w, G)
            elif lanes == FEW_LANES:
                _dot_four(x, columns, w, G)
            else:
                _dot_one(x, columns, w, G)
            moves, aside = _move(
                G, norms[i], lo, hi, ridge, beta, old_high, old_low, high, low, change
            )
            if aside:
                count -= 1
                order[s], order[count] = order[count], order[s]
                continue
            if moves:
                if lanes == LANES:
                    _add_eight(x, columns, w, change)
                elif lanes == FEW_LANES:
                    _add_four(x, columns, w, change)
                else:
                    _add_one(x, columns, w, change)
                for c in range(lanes):
                    u[c] += value * change[c]
            s += 1
        worst = 0.0
        for c in range(lanes):
            if high[c] >= low[c]:
                worst = max(worst, high[c] - low[c])
        if stop[0]:
            return epoch + 1, worst
        if worst <= eps:
            if count == m:
                return epoch + 1, worst
            count = m
            old_high[:] = np.inf
            old_low[:] = -np.inf
            continue
        for c in range(lanes):
            old_high[c] = high[c] if high[c] > 0.0 else np.inf
            old_low[c] = low[c] if low[c] < 0.0 else -np.inf
    return most_epochs, worst
