"""Products of rows that are mostly zeros, with most of the zeros left out.

The right-hand side is stored in *strips*.  A strip has as many rows as fill a few
vector registers, and is stored column by column.  The left-hand side is taken in
*groups* of four rows, with a list of the columns in which any of the four is not zero.
The products of a group and a strip are summed in registers, over the listed columns
only.  Zeros do not change a sum, so a product does not depend on the rows with which it
is computed, and ``x·z`` equals ``z·x`` to the last bit.
"""

import numpy as np
from llvmlite import ir
from numpy.typing import NDArray

from mercer.core.jit import intrinsic, jit, types

__all__ = [
    "GROUP",
    "count_columns",
    "fill_groups",
    "fill_strips",
    "join_rows",
    "multiply",
    "width",
]

# With four rows and four registers there are sixteen sums at once, which hides the
# latency of an addition and leaves registers for the factors.
GROUP = 4
REGISTERS = 4
REGISTER_BYTES = 64


def width(dtype) -> int:
    """Return the number of rows of a strip."""
    return REGISTERS * REGISTER_BYTES // np.dtype(dtype).itemsize


@intrinsic
def _sums(typing_context, values, columns, first, stop, strip, out):
    """Fill ``out`` (GROUP, width) with the sums of ``values[k] ⊗ strip[columns[k]]``.

    A loop compiled by Numba keeps one sum in a register; this code keeps all of them.
    """
    signature = types.none(values, columns, types.int64, types.int64, strip, out)
    return signature, _write_sums


def _write_sums(context, builder, signature, args):
    array = [
        context.make_array(kind)(context, builder, arg)
        if isinstance(kind, types.Array)
        else arg
        for kind, arg in zip(signature.args, args, strict=True)
    ]
    values, columns, first, stop, strip, out = array
    item_bytes = signature.args[0].dtype.bitwidth // 8
    lanes = REGISTER_BYTES // item_bytes
    number = context.get_data_type(signature.args[0].dtype)
    vector = ir.VectorType(number, lanes)
    i64 = ir.IntType(64)

    def offset(pointer, count):
        return builder.gep(pointer, [count])

    def vector_at(pointer, position):
        start = offset(pointer, ir.Constant(i64, position))
        return builder.bitcast(start, vector.as_pointer())

    def spread(value):
        lane = ir.Constant(ir.IntType(32), 0)
        empty = ir.Constant(vector, ir.Undefined)
        zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
        return builder.shuffle_vector(
            builder.insert_element(empty, value, lane), empty, zeros
        )

    entry = builder.block
    head = builder.append_basic_block("sums.head")
    body = builder.append_basic_block("sums.body")
    end = builder.append_basic_block("sums.end")
    builder.branch(head)

    builder.position_at_end(head)
    k = builder.phi(i64)
    k.add_incoming(first, entry)
    sums = [[builder.phi(vector) for _ in range(REGISTERS)] for _ in range(GROUP)]
    for each in (s for row in sums for s in row):
        each.add_incoming(ir.Constant(vector, [0.0] * lanes), entry)
    builder.cbranch(builder.icmp_signed("<", k, stop), body, end)

    builder.position_at_end(body)
    column = builder.zext(builder.load(offset(columns.data, k)), i64)
    at = builder.mul(column, ir.Constant(i64, REGISTERS * lanes))
    here = offset(strip.data, at)
    right = [builder.load(vector_at(here, r * lanes)) for r in range(REGISTERS)]
    for load in right:
        load.align = item_bytes
    left = offset(values.data, builder.mul(k, ir.Constant(i64, GROUP)))
    for g, row in enumerate(sums):
        factor = spread(builder.load(offset(left, ir.Constant(i64, g))))
        for total, z in zip(row, right, strict=True):
            product = builder.fmul(factor, z, flags=("contract",))
            total.add_incoming(builder.fadd(product, total, flags=("contract",)), body)
    k.add_incoming(builder.add(k, ir.Constant(i64, 1)), body)
    builder.branch(head)

    builder.position_at_end(end)
    stride = builder.sdiv(
        builder.extract_value(out.strides, 0), ir.Constant(i64, item_bytes)
    )
    for g, row in enumerate(sums):
        target = offset(out.data, builder.mul(stride, ir.Constant(i64, g)))
        for r, total in enumerate(row):
            builder.store(total, vector_at(target, r * lanes)).align = item_bytes
    return context.get_dummy_value()


@jit
def multiply(groups, strips, first, stop, edge, out):
    """Fill ``out`` with the products of all grouped rows and the rows first to stop.

    ``edge`` is scratch space for one group and strip, used where they reach beyond
    ``out``.
    """
    values, columns, start = groups
    n, wide = out.shape[0], strips.shape[2]
    for s in range(first // wide, (stop + wide - 1) // wide):
        strip = strips[s]
        begin = s * wide - first
        a, b = max(begin, 0), min(begin + wide, stop - first)
        for g in range(len(start) - 1):
            i = g * GROUP
            if b - a == wide and i + GROUP <= n:
                _sums(
                    values, columns, start[g], start[g + 1], strip,
                    out[i : i + GROUP, a:b],
                )  # fmt: skip
                continue
            _sums(values, columns, start[g], start[g + 1], strip, edge)
            for r in range(min(GROUP, n - i)):
                out[i + r, a:b] = edge[r, a - begin : b - begin]


@jit
def fill_strips(X: NDArray, rows: NDArray, active: NDArray, first, strips: NDArray):
    """Store ``X[rows][:, active]`` in strips, beginning with strip number ``first``."""
    wide = strips.shape[2]
    for s in range(strips.shape[0]):
        strip = strips[s]
        for c in range(wide):
            r = (first + s) * wide + c
            if r >= len(rows):
                strip[:, c] = 0.0
                continue
            row = X[rows[r]]
            for k in range(len(active)):
                strip[k, c] = row[active[k]]


@jit
def count_columns(X: NDArray, rows: NDArray, active: NDArray, start: NDArray):
    """Fill ``start`` with where the columns of each group begin, and the last end."""
    total = 0
    start[0] = 0
    last = len(rows) - 1
    for g in range(len(start) - 1):
        i = g * GROUP
        a, b = X[rows[i]], X[rows[min(i + 1, last)]]
        c, d = X[rows[min(i + 2, last)]], X[rows[min(i + 3, last)]]
        for k in active:
            total += (a[k] != 0) | (b[k] != 0) | (c[k] != 0) | (d[k] != 0)
        start[g + 1] = total


@jit
def fill_groups(X: NDArray, rows: NDArray, active: NDArray, groups):
    """Write the columns of each group, and the values of its rows in these columns.

    If the last group is not full, it repeats the last row; these products are not used.
    """
    values, columns, start = groups
    last = len(rows) - 1
    for g in range(len(start) - 1):
        i = g * GROUP
        a, b = X[rows[i]], X[rows[min(i + 1, last)]]
        c, d = X[rows[min(i + 2, last)]], X[rows[min(i + 3, last)]]
        at = start[g]
        for j in range(len(active)):
            k = active[j]
            if (a[k] != 0) | (b[k] != 0) | (c[k] != 0) | (d[k] != 0):
                columns[at] = j
                values[at, 0] = a[k]
                values[at, 1] = b[k]
                values[at, 2] = c[k]
                values[at, 3] = d[k]
                at += 1


@jit
def join_rows(
    X: NDArray,
    rows: NDArray,
    active: NDArray,
    values: NDArray,
    columns: NDArray,
    start: NDArray,
):
    """Do what :func:`count_columns` and :func:`fill_groups` do, in one pass.

    The arrays have room for all columns of all groups, so that nobody has to count.
    """
    last = len(rows) - 1
    at = 0
    for g in range((len(rows) + GROUP - 1) // GROUP):
        start[g] = at
        i = g * GROUP
        a, b = X[rows[i]], X[rows[min(i + 1, last)]]
        c, d = X[rows[min(i + 2, last)]], X[rows[min(i + 3, last)]]
        for j in range(len(active)):
            k = active[j]
            # What is written beyond the columns in use is written over.
            columns[at] = j
            values[at, 0] = a[k]
            values[at, 1] = b[k]
            values[at, 2] = c[k]
            values[at, 3] = d[k]
            at += (a[k] != 0) | (b[k] != 0) | (c[k] != 0) | (d[k] != 0)
    start[(len(rows) + GROUP - 1) // GROUP] = at
