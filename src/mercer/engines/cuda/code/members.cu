// What choosing a working set takes: the variables of a problem that violate most, and
// copies of those that are chosen.
//
// A problem has m variables: variable v has the gradient f[row[v]] + p[v], a coefficient
// beta[v] and bounds. Those of group g are group_start[g] up to group_start[g + 1].

// Write, for block (x, g) of the grid, the extremes of every gridDim.x * blockDim.x-th
// variable of group g to found: the least gradient of those that may grow and its
// variable, then the largest gradient of those that may shrink and its variable. Without
// any, the variable is NOBODY. Variables are numbers below 2^31, which are exact.
extern "C" __global__ void find_extremes_double(
    const double *f, const int *row, const double *p, const double *beta,
    const double *lo, const double *hi, const int *group_start, double *found) {
    __shared__ Candidate<Rank> scratch[2][MOST_WARPS];
    const int end = group_start[blockIdx.y + 1];
    Candidate<Rank> extreme[2] = {nobody<Rank>(), nobody<Rank>()};
    for (int v = group_start[blockIdx.y] + blockIdx.x * blockDim.x + threadIdx.x; v < end;
         v += gridDim.x * blockDim.x) {
        const double G = f[row[v]] + p[v];
        if (!(G == G)) continue;
        if (beta[v] < hi[v]) consider(extreme[0], rank_of(-G), v);
        if (beta[v] > lo[v]) consider(extreme[1], rank_of(G), v);
    }
    best_of_block<2>(extreme, scratch);
    if (threadIdx.x > 0) return;
    double *out = found + 4 * (blockIdx.y * gridDim.x + blockIdx.x);
    for (int side = 0; side < 2; side++) {
        const bool is_any = extreme[side].index != NOBODY;
        const double value = is_any ? value_of(extreme[side].rank) : -INFINITE;
        out[2 * side] = side == 0 ? -value : value;
        out[2 * side + 1] = (double)extreme[side].index;
    }
}

// Write how much each variable violates, times -1, to out: for growing, then for
// shrinking. The other side of the pair is the extreme of its group: extremes has the
// least and the largest gradient of each group. Infinite for variables that may not
// move that way, for those whose gradient is not a number, and for members, whose
// member_in is the present round. Block (x, g) looks at variables of group g.
extern "C" __global__ void rank_violators_double(
    const double *f, const int *row, const double *p, const double *beta,
    const double *lo, const double *hi, const int *group_start, const double *extremes,
    const int *member_in, int round, double *out, int m) {
    const double least = extremes[2 * blockIdx.y], most = extremes[2 * blockIdx.y + 1];
    const int end = group_start[blockIdx.y + 1];
    for (int v = group_start[blockIdx.y] + blockIdx.x * blockDim.x + threadIdx.x; v < end;
         v += gridDim.x * blockDim.x) {
        const double G = f[row[v]] + p[v];
        const bool counts = G == G && member_in[v] != round;
        out[v] = counts && beta[v] < hi[v] ? G - most : INFINITE;
        out[m + v] = counts && beta[v] > lo[v] ? least - G : INFINITE;
    }
}

// Copy what pair steps need of the variables members[0], ..., members[count - 1], in
// this order, and note that they are members in this round.
template <typename Value>
__device__ void load_members(
    const int *members, int count, const double *f, const int *row, const double *p,
    const double *beta, const double *lo, const double *hi, const Value *diagonal,
    int *member_in, int round, double *own_lo, double *own_hi, double *own_beta,
    double *own_gradient, Value *own_diagonal) {
    for (int k = blockIdx.x * blockDim.x + threadIdx.x; k < count;
         k += gridDim.x * blockDim.x) {
        const int v = members[k], r = row[v];
        member_in[v] = round;
        own_lo[k] = lo[v];
        own_hi[k] = hi[v];
        own_beta[k] = beta[v];
        own_gradient[k] = f[r] + p[v];
        own_diagonal[k] = diagonal[r];
    }
}

#define LOAD_MEMBERS(NAME, Value)                                                     \
    extern "C" __global__ void NAME(                                                  \
        const int *members, int count, const double *f, const int *row,               \
        const double *p, const double *beta, const double *lo, const double *hi,      \
        const Value *diagonal, int *member_in, int round, double *own_lo,             \
        double *own_hi, double *own_beta, double *own_gradient,                       \
        Value *own_diagonal) {                                                        \
        load_members<Value>(                                                          \
            members, count, f, row, p, beta, lo, hi, diagonal, member_in, round,      \
            own_lo, own_hi, own_beta, own_gradient, own_diagonal);                    \
    }

LOAD_MEMBERS(load_members_float, float)
LOAD_MEMBERS(load_members_double, double)

// Give the members the coefficients that steps have found.
extern "C" __global__ void store_members_double(
    const int *members, int count, const double *own_beta, double *beta) {
    const int k = blockIdx.x * blockDim.x + threadIdx.x;
    if (k < count) beta[members[k]] = own_beta[k];
}
