// Sequential minimal optimisation of many problems at once, one thread block for each.
//
// The arithmetic is that of mercer/core/smo.py: a step moves delta from the variable
// that shrinks to the variable that grows, both in one group. The one that grows has
// the least gradient G = K beta + p; the one that shrinks gains most with it. Values of
// the kernel may be in single precision; coefficients and gradients are in double
// precision.
//
// A thread looks after every blockDim.x-th variable of a group: no other thread writes
// the gradient of these variables, their coefficients, or which way they may move.

#define MAY_GROW 1
#define MAY_SHRINK 2
// The least curvature: rounding or an indefinite kernel can make the true one 0 or
// negative.
#define LEAST_CURVATURE 1e-12
// Gradients of problems with at most this many variables are kept in shared memory.
// Larger ones stay in the memory of the card, behind its caches. The size follows from
// the 48 KB that a block has on every card; other sizes have not been measured.
#ifndef MOST_NEAR
#define MOST_NEAR 4096
#endif

// Variables of a thread whose kernel values are fetched at once, so that it waits for
// the memory of the card once and not for each of them.
#define AT_ONCE 4

// How a problem stands after some steps.
#define GOES_ON 0
#define SOLVED 1
#define STALLED 2

__device__ unsigned char ways_to_move(double beta, double lo, double hi) {
    return (beta < hi ? MAY_GROW : 0) | (beta > lo ? MAY_SHRINK : 0);
}

// Consider variable v as the partner of i, by the gain of the pair. Violations are
// between 0 and 1. Single precision is enough to rank gains.
__device__ void consider_gain(
    Own<float> &best, float violation, float K_ii, float K_jj, float K_ij, int v) {
    const float square = violation * violation;
    const float curvature =
        fmaxf(K_ii + K_jj - 2.0f * K_ij, (float)LEAST_CURVATURE);
    // A division takes long, and is of no use if the gain is clearly less than the best
    // one. The two bounds keep this comparison from overflow and underflow.
    const float least = 0.999f * best.value * curvature;
    if (square <= least && least > 1e-30f && least < 1e30f) return;
    consider(best, square / curvature, v);
}

// Fetch a row of the kernel at the variables first, first + stride, ... before the end.
template <typename Value>
__device__ void fetch(
    const Value *row, const int *column, int first, int stride, int end, Value *found) {
#pragma unroll
    for (int k = 0; k < AT_ONCE; k++) {
        const int v = first + k * stride;
        found[k] = v < end ? row[column[v]] : (Value)0;
    }
}

// Block k of the grid takes steps on problem active[k].
//
// gram         kernel values; the values of variables v and w of one problem are at
//              gram[problem * apart + column[v] * leading + column[w]]
// leading      values between two rows of the matrix
// apart        values between the matrices of two problems; 0 if all share one
// first_group  problem b has the groups first_group[b] up to first_group[b + 1]
// group_start  group g has the variables group_start[g] up to group_start[g + 1]
// diagonal     K_vv of each variable
// ways         scratch memory, a byte for each variable
// tolerance    of each problem: steps end when no pair violates by more
// most_steps   of each problem: steps to take in this launch
// steps        steps that were taken are added to these
// gap          receives the largest violation
// state        receives one of GOES_ON, SOLVED and STALLED; a step that is too small to
//              change a coefficient in floating point stalls
template <typename Value>
__device__ void take_pair_steps(
    const Value *gram, long long leading, long long apart, const int *active,
    const int *first_group, const int *group_start, const int *column,
    const Value *diagonal, const double *lo, const double *hi, double *beta,
    double *gradient, unsigned char *ways, const double *tolerance,
    const int *most_steps, long long *steps, double *gap, int *state) {
    __shared__ Candidate<Rank> scratch[2][2][MOST_WARPS];
    __shared__ Candidate<ShortRank> partner_scratch[1][MOST_WARPS];
    __shared__ double near_gradient[MOST_NEAR];
    __shared__ unsigned char near_ways[MOST_NEAR];

    // From here on, variables are numbered from the first one of this problem.
    const int problem = active[blockIdx.x];
    const int groups = first_group[problem], last_group = first_group[problem + 1];
    const int start = group_start[groups];
    const int count = group_start[last_group] - start;
    const int stride = blockDim.x;
    const Value *K = gram + problem * apart;
    column += start;
    diagonal += start;
    lo += start;
    hi += start;
    beta += start;
    gradient += start;
    ways += start;
    const bool is_near = count <= MOST_NEAR;
    double *G = is_near ? near_gradient : gradient;
    unsigned char *way = is_near ? near_ways : ways;
    for (int v = threadIdx.x; v < count; v += stride) {
        if (is_near) G[v] = gradient[v];
        way[v] = ways_to_move(beta[v], lo[v], hi[v]);
    }
    __syncthreads();

    int turn = 0, taken = 0, outcome = GOES_ON;
    double violation, delta = 0.0;
    const Value *K_i = K, *K_j = K;
    // The values of the latest pair with the first variables that the thread looks at,
    // and the first one of these. They come while the step is computed.
    Value near_i[AT_ONCE], near_j[AT_ONCE];
    int near_first = -1;
    for (;; taken++) {
        // Let the latest step change all gradients, and find the pair that violates
        // most inside one group.
        violation = -INFINITE;
        int i = 0, j = 0, begin = 0, end = 0;
        for (int g = groups; g < last_group; g++) {
            const int from = group_start[g] - start, to = group_start[g + 1] - start;
            Own<double> grows = {-INFINITE, NOBODY}, shrinks = {-INFINITE, NOBODY};
            for (int first = from + threadIdx.x; first < to; first += AT_ONCE * stride) {
                Value at_i[AT_ONCE], at_j[AT_ONCE];
                const bool is_near_first = first == near_first;
                if (taken > 0 && !is_near_first) {
                    fetch(K_i, column, first, stride, to, at_i);
                    fetch(K_j, column, first, stride, to, at_j);
                }
#pragma unroll
                for (int k = 0; k < AT_ONCE; k++) {
                    const int v = first + k * stride;
                    if (v >= to) break;
                    double own = G[v];
                    if (taken > 0) {
                        const Value K_iv = is_near_first ? near_i[k] : at_i[k];
                        const Value K_jv = is_near_first ? near_j[k] : at_j[k];
                        own += delta * ((double)K_iv - (double)K_jv);
                        G[v] = own;
                    }
                    const unsigned char ways_of_v = way[v];
                    if (ways_of_v & MAY_GROW) consider(grows, -own, v);
                    if (ways_of_v & MAY_SHRINK) consider(shrinks, own, v);
                }
            }
            Candidate<Rank> extreme[2] = {candidate(grows), candidate(shrinks)};
            best_of_block<2>(extreme, scratch[turn]);
            turn = 1 - turn;
            if (extreme[0].index == NOBODY || extreme[1].index == NOBODY) continue;
            const double both = value_of(extreme[0].rank) + value_of(extreme[1].rank);
            if (both > violation) {
                violation = both;
                i = extreme[0].index;
                j = extreme[1].index;
                begin = from;
                end = to;
            }
        }
        if (!(violation > tolerance[problem])) {
            outcome = SOLVED;
            break;
        }
        if (taken >= most_steps[problem]) break;

        // Find the partner that gains most with i; violations are scaled to [0, 1], so
        // that gains do not overflow. Without any gain, j stays the variable that
        // violates most.
        K_i = K + column[i] * leading;
        const double G_i = G[i];
        const float K_ii = (float)diagonal[i];
        const double scale = 1.0 / violation;
        Own<float> best = {0.0f, NOBODY};
        near_first = begin + threadIdx.x;
        fetch(K_i, column, near_first, stride, end, near_i);
        for (int first = near_first; first < end; first += AT_ONCE * stride) {
            Value at_i[AT_ONCE];
            if (first != near_first) fetch(K_i, column, first, stride, end, at_i);
#pragma unroll
            for (int k = 0; k < AT_ONCE; k++) {
                const int v = first + k * stride;
                if (v >= end) break;
                if (v == i || !(way[v] & MAY_SHRINK)) continue;
                const float rise = (float)((G[v] - G_i) * scale);
                if (!(rise > 0.0f)) continue;
                const float K_iv = (float)(first == near_first ? near_i[k] : at_i[k]);
                consider_gain(best, rise, K_ii, (float)diagonal[v], K_iv, v);
            }
        }
        Candidate<ShortRank> partner[1] = {candidate(best)};
        best_of_block<1>(partner, partner_scratch);
        if (partner[0].index != NOBODY) j = partner[0].index;

        // All threads compute the same step. A variable that reaches a bound is set to
        // it exactly, so that it counts as being at the bound.
        K_j = K + column[j] * leading;
        fetch(K_j, column, near_first, stride, end, near_j);
        const double curvature =
            (double)diagonal[i] + (double)diagonal[j] - 2.0 * (double)K_i[column[j]];
        const double room_i = hi[i] - beta[i], room_j = beta[j] - lo[j];
        delta = (G[j] - G_i) / fmax(curvature, LEAST_CURVATURE);
        delta = fmin(delta, fmin(room_i, room_j));
        const double beta_i = delta >= room_i ? hi[i] : beta[i] + delta;
        const double beta_j = delta >= room_j ? lo[j] : beta[j] - delta;
        if (beta_i == beta[i] && beta_j == beta[j]) {
            outcome = STALLED;
            break;
        }
        __syncthreads();  // All threads have read the coefficients and gradients.
        if ((i - begin) % stride == threadIdx.x) {
            beta[i] = beta_i;
            way[i] = ways_to_move(beta_i, lo[i], hi[i]);
        }
        if ((j - begin) % stride == threadIdx.x) {
            beta[j] = beta_j;
            way[j] = ways_to_move(beta_j, lo[j], hi[j]);
        }
    }
    __syncthreads();
    if (is_near) {
        for (int v = threadIdx.x; v < count; v += stride) gradient[v] = G[v];
    }
    if (threadIdx.x == 0) {
        gap[problem] = violation;
        steps[problem] += taken;
        state[problem] = outcome;
    }
}

#define TAKE_PAIR_STEPS(NAME, Value)                                                  \
    extern "C" __global__ void __launch_bounds__(1024) NAME(                          \
        const Value *gram, long long leading, long long apart, const int *active,     \
        const int *first_group, const int *group_start, const int *column,            \
        const Value *diagonal, const double *lo, const double *hi, double *beta,      \
        double *gradient, unsigned char *ways, const double *tolerance,               \
        const int *most_steps, long long *steps, double *gap, int *state) {           \
        take_pair_steps<Value>(                                                       \
            gram, leading, apart, active, first_group, group_start, column, diagonal, \
            lo, hi, beta, gradient, ways, tolerance, most_steps, steps, gap, state);  \
    }

TAKE_PAIR_STEPS(take_pair_steps_float, float)
TAKE_PAIR_STEPS(take_pair_steps_double, double)
