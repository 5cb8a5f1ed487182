// Rows of a kernel matrix: their products with coefficients, and parts of them.

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

// Copy source[rows[r] * leading + columns[c]] to out[r * out_leading + c], for m rows and
// n columns. Places in large matrices do not fit into 32 bits, so they are not computed
// in them. Rows are divided among blockIdx.y in turn.
template <typename Value>
__device__ void gather(
    const Value *source, long long leading, const int *rows, const int *columns,
    Value *out, long long out_leading, int m, int n) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    const int column = columns[c];
    for (int r = blockIdx.y; r < m; r += gridDim.y) {
        out[r * out_leading + c] = source[rows[r] * leading + column];
    }
}

#define GATHER(NAME, Value)                                                           \
    extern "C" __global__ void NAME(                                                  \
        const Value *source, long long leading, const int *rows, const int *columns,  \
        Value *out, long long out_leading, int m, int n) {                            \
        gather<Value>(source, leading, rows, columns, out, out_leading, m, n);        \
    }

GATHER(gather_float, float)
GATHER(gather_double, double)

// Copy row r of a block of m rows and n columns to row slot[r] of a pool. The value of
// column own[r] is that of the diagonal: rounding must not make a sample differ from
// itself. Rows are divided among blockIdx.y in turn.
template <typename Value>
__device__ void store_rows(
    const Value *block, const int *slot, const int *own, const Value *diagonal,
    Value *pool, long long leading, int m, int n) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    for (int r = blockIdx.y; r < m; r += gridDim.y) {
        pool[slot[r] * leading + c] =
            c == own[r] ? diagonal[c] : block[(long long)r * n + c];
    }
}

#define STORE_ROWS(NAME, Value)                                                       \
    extern "C" __global__ void NAME(                                                  \
        const Value *block, const int *slot, const int *own, const Value *diagonal,   \
        Value *pool, long long leading, int m, int n) {                               \
        store_rows<Value>(block, slot, own, diagonal, pool, leading, m, n);           \
    }

STORE_ROWS(store_rows_float, float)
STORE_ROWS(store_rows_double, double)
