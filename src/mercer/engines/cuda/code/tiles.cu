// Kernel values tile by tile: what a matrix product leaves to do, and sums over columns
// that are not products.

__device__ float exponential_of(float x) { return expf(x); }
__device__ double exponential_of(double x) { return exp(x); }

// Turn the products of two sets of vectors into exp(-gamma * squared distance), in
// place. dots is (m, n); the squared norms are (m,) and (n,). Rows are divided among
// blockIdx.y in turn.
template <typename Value>
__device__ void gaussian_in_place(
    Value *dots, const Value *left_norms, const Value *right_norms, double gamma,
    int m, int n) {
    const int c = blockIdx.x * blockDim.x + threadIdx.x;
    if (c >= n) return;
    const Value norm = right_norms[c];
    for (int r = blockIdx.y; r < m; r += gridDim.y) {
        const Value twice = (Value)2 * dots[(long long)r * n + c];
        Value distance = left_norms[r] + norm - twice;
        // Rounding can make a distance negative. Something that is not a number stays.
        if (distance < (Value)0) distance = (Value)0;
        dots[(long long)r * n + c] = exponential_of((Value)(-gamma) * distance);
    }
}

extern "C" __global__ void gaussian_in_place_float(
    float *dots, const float *left_norms, const float *right_norms, double gamma, int m,
    int n) {
    gaussian_in_place<float>(dots, left_norms, right_norms, gamma, m, n);
}

extern "C" __global__ void gaussian_in_place_double(
    double *dots, const double *left_norms, const double *right_norms, double gamma,
    int m, int n) {
    gaussian_in_place<double>(dots, left_norms, right_norms, gamma, m, n);
}

// A block computes a square of so many sums to a side, and reads so many columns of
// both sides at a time.
#define SIDE 16

struct Manhattan {
    template <typename Value>
    __device__ static Value term(Value x, Value z) { return x > z ? x - z : z - x; }
};

struct Minima {
    template <typename Value>
    __device__ static Value term(Value x, Value z) { return x < z ? x : z; }
};

struct SquaredDifferences {
    template <typename Value>
    __device__ static Value term(Value x, Value z) { return (x - z) * (x - z); }
};

struct Chi2 {
    template <typename Value>
    __device__ static Value term(Value x, Value z) {
        const Value total = x + z;
        return total > (Value)0 ? (x - z) * (x - z) / total : (Value)0;
    }
};

// Write the sum of Rule::term(X[r, k], Z[c, k]) over all columns k to out[r, c]. X is
// (m, d), Z is (n, d) and out is (m, n). The columns that are read at a time are summed
// first, which keeps the rounding errors of long sums small.
template <typename Rule, typename Value>
__device__ void sum_terms(
    const Value *X, const Value *Z, Value *out, int m, int n, int d) {
    __shared__ Value left[SIDE][SIDE + 1], right[SIDE][SIDE + 1];
    const int x = threadIdx.x, y = threadIdx.y;
    const int c = blockIdx.x * SIDE + x;
    for (int above = blockIdx.y * SIDE; above < m; above += gridDim.y * SIDE) {
        const int r = above + y;
        Value total = (Value)0;
        for (int first = 0; first < d; first += SIDE) {
            // Threads side by side read columns side by side, of both matrices.
            const int k = first + x;
            const int other = blockIdx.x * SIDE + y;
            left[y][x] = r < m && k < d ? X[(long long)r * d + k] : (Value)0;
            right[y][x] = other < n && k < d ? Z[(long long)other * d + k] : (Value)0;
            __syncthreads();
            // Beyond the last column both sides are 0, and so is every term.
            Value part = (Value)0;
            for (int q = 0; q < SIDE; q++) part += Rule::term(left[y][q], right[x][q]);
            total += part;
            __syncthreads();
        }
        if (r < m && c < n) out[(long long)r * n + c] = total;
    }
}

#define SUM_TERMS(NAME, Rule, Value)                                                  \
    extern "C" __global__ void NAME(                                                  \
        const Value *X, const Value *Z, Value *out, int m, int n, int d) {            \
        sum_terms<Rule, Value>(X, Z, out, m, n, d);                                   \
    }

SUM_TERMS(manhattan_float, Manhattan, float)
SUM_TERMS(manhattan_double, Manhattan, double)
SUM_TERMS(minima_float, Minima, float)
SUM_TERMS(minima_double, Minima, double)
SUM_TERMS(squared_differences_float, SquaredDifferences, float)
SUM_TERMS(squared_differences_double, SquaredDifferences, double)
SUM_TERMS(chi2_float, Chi2, float)
SUM_TERMS(chi2_double, Chi2, double)
