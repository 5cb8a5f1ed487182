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

// A variable and what speaks for it.
struct Candidate {
    double value;
    int index;
};

__device__ Candidate nobody() {
    Candidate none;
    none.value = -INFINITE;
    none.index = NOBODY;
    return none;
}

// Of equal candidates the first one wins, so that the order of comparisons does not
// matter. A value that is not a number never wins.
__device__ void consider(Candidate &best, double value, int index) {
    if (value > best.value || (value == best.value && index < best.index)) {
        best.value = value;
        best.index = index;
    }
}

__device__ Candidate best_of_warp(Candidate own) {
    for (int distance = WARP / 2; distance > 0; distance /= 2) {
        const double value = __shfl_xor_sync(EVERY_LANE, own.value, distance);
        const int index = __shfl_xor_sync(EVERY_LANE, own.index, distance);
        consider(own, value, index);
    }
    return own;
}

// Replace each of the candidates of a thread by the best that any thread of the block
// has. All threads must take part. The block has whole warps. There is one barrier
// only, so two calls in turn need different scratch memory: when a thread writes to it
// again, the barrier of the call in between says that all others have read it.
template <int COUNT>
__device__ void best_of_block(Candidate *own, Candidate (*scratch)[MOST_WARPS]) {
    const int lane = threadIdx.x % WARP, warp = threadIdx.x / WARP;
    const int n_warps = blockDim.x / WARP;
    for (int k = 0; k < COUNT; k++) {
        own[k] = best_of_warp(own[k]);
        if (lane == 0) scratch[k][warp] = own[k];
    }
    __syncthreads();
    for (int k = 0; k < COUNT; k++) {
        Candidate found = nobody();
        for (int w = lane; w < n_warps; w += WARP) {
            consider(found, scratch[k][w].value, scratch[k][w].index);
        }
        own[k] = best_of_warp(found);
    }
}
