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
    Own<double> grows = {-INFINITE, NOBODY}, shrinks = {-INFINITE, NOBODY};
    for (int v = group_start[blockIdx.y] + blockIdx.x * blockDim.x + threadIdx.x; v < end;
         v += gridDim.x * blockDim.x) {
        const double G = f[row[v]] + p[v];
        if (beta[v] < hi[v]) consider(grows, -G, v);
        if (beta[v] > lo[v]) consider(shrinks, G, v);
    }
    Candidate<Rank> extreme[2] = {candidate(grows), candidate(shrinks)};
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

// Digits in which keys are compared, from the highest one on.
#define DIGIT_BITS 8
#define DIGITS (1 << DIGIT_BITS)
// Bits of the number of a variable.
#define INDEX_BITS 31

// How strongly a variable violates, above the tolerance; 0 if it does not.
__device__ Rank strength_of(double ranked, Rank tolerance) {
    const Rank rank = rank_of(-ranked);
    return rank > tolerance ? rank - tolerance : 0;
}

// Find the strongest violators of each side: block b looks at the m values of row b of
// ranked (see rank_violators). Those that violate by no more than the tolerance do not
// count; none violates by more than largest. At least count of them are found, if there
// are so many, and at most `most`: all that are as strong as the weakest one of these.
// Where even so too many are equal, the first variables are found.
//
// Row b of found gets their number, and after it the variable and the violation of each
// of them, in any order.
extern "C" __global__ void select_strongest_double(
    const double *ranked, int m, double tolerance, double largest, int count, int most,
    double *found) {
    __shared__ unsigned int counts[DIGITS];
    __shared__ unsigned int chosen_digit, n_above, n_found;
    ranked += (long long)blockIdx.x * m;
    found += (long long)blockIdx.x * (2 * most + 1);
    const Rank base = rank_of(tolerance);
    const Rank span = strength_of(-largest, base);
    int low = 0;  // digits above this bit of the strength are known
    while (low < 63 && (span >> low) > 0) low++;

    // All variables with more strength than limit are chosen, and of those with as much
    // strength the ones that come before a variable. Both are found digit by digit.
    Rank limit = 0;
    unsigned int place = 0;  // counts from the end, so that the first variable is best
    unsigned int wanted = count, n_more = 0;
    bool is_about_strength = true, is_done = span == 0;
    if (low == 0) low = 1;
    while (!is_done) {
        const int width = low < DIGIT_BITS ? low : DIGIT_BITS;
        const int above = low;
        low -= width;
        for (int d = threadIdx.x; d < DIGITS; d += blockDim.x) counts[d] = 0;
        __syncthreads();
        for (int v = threadIdx.x; v < m; v += blockDim.x) {
            const Rank strength = strength_of(ranked[v], base);
            if (strength == 0) continue;
            const unsigned int own = NOBODY - v;
            const bool is_open =
                is_about_strength
                    ? (strength >> above) == (limit >> above)
                    : strength == limit && (own >> above) == (place >> above);
            if (!is_open) continue;
            const unsigned int digit =
                (is_about_strength ? (unsigned int)(strength >> low) : own >> low) &
                ((1u << width) - 1u);
            atomicAdd(&counts[digit], 1u);
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            unsigned int sum = 0;
            int d = (1 << width) - 1;
            for (; d > 0 && sum + counts[d] < wanted; d--) sum += counts[d];
            chosen_digit = d;
            n_above = sum;
        }
        __syncthreads();
        const unsigned int n_equal = counts[chosen_digit];
        wanted -= n_above < wanted ? n_above : wanted;
        n_more += n_above;
        if (is_about_strength) {
            limit |= (Rank)chosen_digit << low;
        } else {
            place |= chosen_digit << low;
        }
        // All that are open after this digit have room, or no digit is left.
        is_done = n_more + n_equal <= most;
        if (low == 0 && !is_done) {
            is_done = !is_about_strength;
            is_about_strength = false;
            low = INDEX_BITS;
        }
        __syncthreads();  // All threads have read what the next digit changes.
    }
    if (threadIdx.x == 0) n_found = 0;
    __syncthreads();
    for (int v = threadIdx.x; v < m; v += blockDim.x) {
        const Rank strength = strength_of(ranked[v], base);
        const unsigned int own = NOBODY - v;
        const bool is_chosen = strength > limit || (strength == limit && own >= place);
        if (strength == 0 || !is_chosen) continue;
        const unsigned int k = atomicAdd(&n_found, 1u);
        if (k >= most) continue;
        found[1 + 2 * k] = (double)v;
        found[2 + 2 * k] = -ranked[v];
    }
    __syncthreads();
    if (threadIdx.x == 0) found[0] = (double)(n_found < most ? n_found : most);
}
