// Products of rows of a kernel matrix with coefficients, added up in double precision.

// Threads of a block: columns, and parts of the rows that are summed side by side.
#define COLUMNS 32
#define PARTS 8

// Add the sum of weight[k] * pool[slot[k] * leading + column[c]] over all k to f[c].
//
// The rows of a column are divided among PARTS threads in turn, and the sums of these
// are added in a fixed order, so that the result is the same each time.
template <typename Value>
__device__ void add_rows(
    const Value *pool, long long leading, const int *slot, const double *weight,
    int count, const int *column, double *f, int length) {
    __shared__ double sums[PARTS][COLUMNS];
    const int c = blockIdx.x * COLUMNS + threadIdx.x;
    double sum = 0.0;
    if (c < length) {
        const Value *values = pool + column[c];
        for (int k = threadIdx.y; k < count; k += PARTS) {
            sum += weight[k] * (double)values[slot[k] * leading];
        }
    }
    sums[threadIdx.y][threadIdx.x] = sum;
    __syncthreads();
    if (threadIdx.y == 0 && c < length) {
        double total = 0.0;
        for (int part = 0; part < PARTS; part++) total += sums[part][threadIdx.x];
        f[c] += total;
    }
}

#define ADD_ROWS(NAME, Value)                                                         \
    extern "C" __global__ void NAME(                                                  \
        const Value *pool, long long leading, const int *slot, const double *weight,  \
        int count, const int *column, double *f, int length) {                        \
        add_rows<Value>(pool, leading, slot, weight, count, column, f, length);       \
    }

ADD_ROWS(add_rows_float, float)
ADD_ROWS(add_rows_double, double)
