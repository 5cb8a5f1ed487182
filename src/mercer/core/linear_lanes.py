r"""Passes over samples that serve several problems at a time.

The problems of one-vs-rest have the same samples.  Their weights for one feature lie
side by side, in *lanes*, and one visit of a sample serves all of them: to compute
decision values (:func:`score`), to add up samples (:func:`combine`), or to descend.

Dual coordinate descent (:func:`descend`) solves the dual problem of
:mod:`mercer.core.linear_pieces` one variable after the other: with the gradient
:math:`G = w \cdot x + p + r\beta`, a variable becomes
:math:`\beta - G / (\|x\|^2 + r)`, clipped to its bounds, and the weights
:math:`w = X^T \beta` follow.  Variables at a bound whose gradient is far on the right
side are set aside until the others are solved.

References
----------
Hsieh, Chang, Lin, Keerthi & Sundararajan, "A dual coordinate descent method for
large-scale linear SVM", ICML 2008.
"""

from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir

from mercer.core.jit import cgutils, intrinsic, jit, types

__all__ = [
    "FEW_LANES",
    "LANES",
    "Rows",
    "ask_for",
    "combine",
    "compress",
    "count_values",
    "descend",
    "next_number",
    "score",
    "square",
]

# Problems that are solved together: as many numbers as a cache line holds, or half of
# that.
LANES = 8
FEW_LANES = 4
# A cache line, in bytes.
LINE = 64
# Samples are asked for so many visits before they are needed.
AHEAD = 2


class Rows(NamedTuple):
    """Samples, one after the other, each with the numbers of its columns."""

    data: Any  #: values, in single or double precision
    indices: Any  #: columns of the values, int32
    indptr: Any  #: where each sample begins and ends, int64
    is_full: bool  #: whether samples have all columns; ``indices`` names them once


@jit
def _sample(rows, i):
    """Return the values and the columns of a sample."""
    first, end = rows.indptr[i], rows.indptr[i + 1]
    start = 0 if rows.is_full else first
    return rows.data[first:end], rows.indices[start : start + end - first]


@jit
def next_number(state):
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


@intrinsic
def ask_for(typing_context, array, first, end):
    """Ask the memory for the numbers from ``first`` to ``end`` of an array."""

    def write(context, builder, signature, args):
        kind = signature.args[0]
        numbers = context.make_array(kind)(context, builder, args[0])
        size = context.get_abi_sizeof(context.get_data_type(kind.dtype))
        byte, word, long = (ir.IntType(bits) for bits in (8, 32, 64))
        place = builder.bitcast(numbers.data, byte.as_pointer())
        function = cgutils.get_or_insert_function(
            builder.module,
            ir.FunctionType(ir.VoidType(), [byte.as_pointer(), word, word, word]),
            "llvm.prefetch.p0i8",
        )
        # For reading, to be kept in the nearest cache, and not code but data.
        flags = [ir.Constant(word, flag) for flag in (0, 3, 1)]
        start, stop = (builder.mul(arg, ir.Constant(long, size)) for arg in args[1:])
        step = ir.Constant(long, LINE)
        with cgutils.for_range_slice(builder, start, stop, step, long) as (byte_, _):
            builder.call(function, [builder.gep(place, [byte_]), *flags])
        return context.get_dummy_value()

    return types.none(array, types.int64, types.int64), write


_dot_eight, _dot_four = _make_dot(LANES), _make_dot(FEW_LANES)
_add_eight, _add_four = _make_add(LANES), _make_add(FEW_LANES)


@jit
def _dot(x, columns, w, line, is_full, G):
    """Add the products of a sample with the columns of weights to ``G``.

    ``line`` has the same weights as ``w``, one after the other, for a single problem.
    """
    if len(G) == LANES:
        _dot_eight(x, columns, w, G)
    elif len(G) == FEW_LANES:
        _dot_four(x, columns, w, G)
    else:
        total = 0.0
        if is_full:
            for k in range(len(x)):
                total += x[k] * line[k]
        else:
            for k in range(len(x)):
                total += x[k] * line[columns[k]]
        G[0] += total


@jit
def _add(x, columns, w, line, is_full, change):
    """Add a multiple of a sample to each of the columns of weights."""
    if len(change) == LANES:
        _add_eight(x, columns, w, change)
    elif len(change) == FEW_LANES:
        _add_four(x, columns, w, change)
    elif is_full:
        for k in range(len(x)):
            line[k] += x[k] * change[0]
    else:
        for k in range(len(x)):
            line[columns[k]] += x[k] * change[0]


@jit
def score(rows, first, end, w, out):
    """Set ``out[c, i]`` to the products of samples ``first`` to ``end`` with weights.

    ``w`` has shape (n_features, lanes) with one lane, four or eight; ``out`` has a row
    for each problem, and at most as many rows as there are lanes.
    """
    G = np.empty(w.shape[1])
    line = w.reshape(w.size)
    if len(G) == 1 and not rows.is_full:
        data, indices, indptr = rows.data, rows.indices, rows.indptr
        for i in range(first, end):
            total = 0.0
            for k in range(indptr[i], indptr[i + 1]):
                total += data[k] * line[indices[k]]
            out[0, i] = total
        return
    for i in range(first, end):
        x, columns = _sample(rows, i)
        G[:] = 0.0
        _dot(x, columns, w, line, rows.is_full, G)
        for c in range(len(out)):
            out[c, i] = G[c]


@jit
def combine(rows, first, end, beta, w):
    """Add ``beta[c, i]`` times each sample i of a range to column c of ``w``.

    The shapes are those of :func:`score`.
    """
    own = np.zeros(w.shape[1])
    line = w.reshape(w.size)
    if len(own) == 1 and not rows.is_full:
        data, indices, indptr = rows.data, rows.indices, rows.indptr
        for i in range(first, end):
            factor = beta[0, i]
            if factor != 0.0:
                for k in range(indptr[i], indptr[i + 1]):
                    line[indices[k]] += data[k] * factor
        return
    for i in range(first, end):
        is_used = False
        for c in range(len(beta)):
            own[c] = beta[c, i]
            is_used |= own[c] != 0.0
        if is_used:
            x, columns = _sample(rows, i)
            _add(x, columns, w, line, rows.is_full, own)


@jit
def square(rows, first, end, out):
    """Set the squared lengths of samples ``first`` to ``end``."""
    data, indptr = rows.data, rows.indptr
    for i in range(first, end):
        total = 0.0
        for k in range(indptr[i], indptr[i + 1]):
            value = np.float64(data[k])
            total += value * value
        out[i] = total


@jit
def count_values(X, first, end, counts):
    """Set the number of values other than 0 of some rows of a dense array."""
    for i in range(first, end):
        x, count = X[i], 0
        for j in range(len(x)):
            count += x[j] != 0.0
        counts[i] = count


@jit
def compress(X, first, end, indptr, data, indices):
    """Copy the values other than 0 of some rows, and their columns."""
    for i in range(first, end):
        x, place = X[i], indptr[i]
        for j in range(len(x)):
            if x[j] != 0.0:
                data[place] = x[j]
                indices[place] = j
                place += 1


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
def descend(rows, norms, w, u, value, terms, row, eps, most_epochs, state, stop):
    """Make epochs until the projected gradient of all problems is within ``eps``.

    ``w`` has shape (n_features, lanes) with one lane, four or eight.  ``terms`` has
    shape (m, 5, lanes): p, lo, hi, ridge and beta, which lie side by side because a
    visit needs all of them.
    Return the number of epochs and the range of the projected gradient.
    """
    m, _, lanes = terms.shape
    order = np.arange(m)
    count = m
    line = w.reshape(w.size)
    G = np.empty(lanes)
    change = np.empty(lanes)
    # Bounds of the projected gradient in the epoch before, and in this one.
    old_high, old_low = np.full(lanes, np.inf), np.full(lanes, -np.inf)
    high, low = np.empty(lanes), np.empty(lanes)
    worst = np.inf
    for epoch in range(most_epochs):
        high[:] = -np.inf
        low[:] = np.inf
        first_count = count
        for i in range(count):
            j = i + np.int64(next_number(state) % np.uint64(count - i))
            order[i], order[j] = order[j], order[i]
        s = 0
        while s < count:
            v = order[s]
            i = row[v]
            if s + AHEAD < count:
                # Visits in random order would wait for the memory.
                later = order[s + AHEAD]
                begin, end = rows.indptr[row[later]], rows.indptr[row[later] + 1]
                ask_for(rows.data, begin, end)
                if not rows.is_full:
                    ask_for(rows.indices, begin, end)
                ask_for(terms, later * 5 * lanes, (later + 1) * 5 * lanes)
            x, columns = _sample(rows, i)
            p, lo, hi = terms[v, 0], terms[v, 1], terms[v, 2]
            ridge, beta = terms[v, 3], terms[v, 4]
            for c in range(lanes):
                G[c] = p[c] + ridge[c] * beta[c] + value * u[c]
            _dot(x, columns, w, line, rows.is_full, G)
            moves, aside = _move(
                G, norms[i], lo, hi, ridge, beta, old_high, old_low, high, low, change
            )
            if aside:
                count -= 1
                order[s], order[count] = order[count], order[s]
                continue
            if moves:
                _add(x, columns, w, line, rows.is_full, change)
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
            # Samples that this epoch has set aside violate nothing.
            if first_count == m:
                return epoch + 1, worst
            count = m
            old_high[:] = np.inf
            old_low[:] = -np.inf
            continue
        for c in range(lanes):
            old_high[c] = high[c] if high[c] > 0.0 else np.inf
            old_low[c] = low[c] if low[c] < 0.0 else -np.inf
    return most_epochs, worst
