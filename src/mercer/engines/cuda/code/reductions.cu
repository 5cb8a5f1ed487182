// What threads of a block find together: the best of many candidates.

// Threads that exchange values without a barrier. The tests make it smaller.
#ifndef WARP
#define WARP 32
#endif
// A block has at most this many warps, so that one warp can look at all of them.
#define MOST_WARPS 32
#define EVERY_LANE 0xffffffffu
#define INFINITE __longlong_as_double(0x7ff0000000000000LL)
#define NOBODY 0x7fffffff

// Numbers are compared as ranks: integers in the same order, which a warp compares with
// few instructions. 0 is the rank of nobody, and lower than that of any number.
typedef unsigned int ShortRank;
typedef unsigned long long Rank;

#define SIGN 0x8000000000000000ull

// The rank of a number; both zeros have the same.
__device__ Rank rank_of(double value) {
    const Rank bits = (Rank)__double_as_longlong(value + 0.0);
    return bits & SIGN ? ~bits : bits | SIGN;
}

__device__ double value_of(Rank rank) {
    return __longlong_as_double((long long)(rank & SIGN ? rank ^ SIGN : ~rank));
}

// The rank of a positive number in single precision.
__device__ ShortRank short_rank_of(float value) { return __float_as_uint(value); }

// A variable and what speaks for it.
template <typename R>
struct Candidate {
    R rank;
    int index;
};

template <typename R>
__device__ Candidate<R> nobody() {
    Candidate<R> none;
    none.rank = 0;
    none.index = NOBODY;
    return none;
}

// The best variable that one thread has seen. Variables come in their order, so of equal
// ones the first stays. Something that is not a number is never best.
template <typename Number>
struct Own {
    Number value;
    int index;
};

template <typename Number>
__device__ void consider(Own<Number> &best, Number value, int index) {
    if (value > best.value) {
        best.value = value;
        best.index = index;
    }
}

__device__ Candidate<Rank> candidate(Own<double> own) {
    Candidate<Rank> found = {rank_of(own.value), own.index};
    return own.index == NOBODY ? nobody<Rank>() : found;
}

__device__ Candidate<ShortRank> candidate(Own<float> own) {
    Candidate<ShortRank> found = {short_rank_of(own.value), own.index};
    return own.index == NOBODY ? nobody<ShortRank>() : found;
}

// The largest number that any lane of a warp has. Cards of compute capability 8.0 and
// above have an instruction for it.
__device__ unsigned int largest_of_warp(unsigned int own) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
    return __reduce_max_sync(EVERY_LANE, own);
#else
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const unsigned int other = __shfl_xor_sync(EVERY_LANE, own, distance);
        if (other > own) own = other;
    }
    return own;
#endif
}

__device__ ShortRank best_rank_of_warp(ShortRank own) { return largest_of_warp(own); }

__device__ Rank best_rank_of_warp(Rank own) {
    const unsigned int upper = (unsigned int)(own >> 32);
    const unsigned int high = largest_of_warp(upper);
    const unsigned int low = largest_of_warp(upper == high ? (unsigned int)own : 0u);
    return ((Rank)high << 32) | low;
}

// Of equal candidates the first variable wins, so that the order of comparisons does
// not matter.
template <typename R>
__device__ Candidate<R> best_of_warp(Candidate<R> own) {
    Candidate<R> best;
    best.rank = best_rank_of_warp(own.rank);
    const bool is_best = own.rank == best.rank;
    best.index = (int)~largest_of_warp(is_best ? ~(unsigned int)own.index : 0u);
    return best;
}

// Replace each of the candidates of a thread by the best that any thread of the block
// has. All threads must take part. The block has whole warps. There is one barrier
// only, so two calls in turn need different scratch memory: when a thread writes to it
// again, the barrier of the call in between says that all others have read it.
template <int COUNT, typename R>
__device__ void best_of_block(Candidate<R> *own, Candidate<R> (*scratch)[MOST_WARPS]) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int n_warps = blockDim.x / WARP;
    for (int k = 0; k < COUNT; k++) {
        own[k] = best_of_warp(own[k]);
        if (lane == 0) scratch[k][warp] = own[k];
    }
    __syncthreads();
    for (int k = 0; k < COUNT; k++) {
        Candidate<R> found = nobody<R>();
        for (int w = lane; w < n_warps; w += WARP) {
            const Candidate<R> other = scratch[k][w];
            if (other.rank > found.rank ||
                (other.rank == found.rank && other.index < found.index)) {
                found = other;
            }
        }
        own[k] = best_of_warp(found);
    }
}
