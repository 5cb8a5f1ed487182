// Runs CUDA C++ on the processor, one block after the other, for tests.
//
// Each thread of a block is a fibre with a stack of its own. A fibre runs until it
// comes to a barrier or ends; then another one runs, in an order that a seed decides, so
// that a missing barrier shows as a result that depends on the seed. This is stricter
// than a card: all threads of a block must come to the same barrier in the same line,
// and none may have ended. Arguments are checked against the types of parameters.
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>

#include <random>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#define __global__
#define __device__
#define __shared__ static
#define __launch_bounds__(...)

namespace emulation {

struct Three {
    unsigned x, y, z;
};

enum Wait { RUNS, AT_BLOCK, AT_WARP, ENDED };

struct Fibre {
    ucontext_t context;
    std::vector<char> stack;
    Three index;
    Wait wait;
    int line;
    double exchanged;  // enough bytes for any value that lanes exchange
};

static std::vector<Fibre> fibres;
static Fibre *current;
static ucontext_t scheduler;
static int warp_size;
static std::string fault;

static void wait_for(Wait what, int line) {
    current->wait = what;
    current->line = line;
    swapcontext(&current->context, &scheduler);
}

template <typename T>
T exchange(T value, int mask, int line) {
    static_assert(sizeof(T) <= sizeof(double), "lanes exchange eight bytes at most");
    const long own = current - fibres.data();
    memcpy(&current->exchanged, &value, sizeof(T));
    wait_for(AT_WARP, line);
    const long lane = own % warp_size;
    T found;
    memcpy(&found, &fibres[own - lane + (lane ^ mask)].exchanged, sizeof(T));
    wait_for(AT_WARP, line);
    return found;
}

// Let those fibres go on of whom all that belong together wait in the same line.
static bool release(size_t first, size_t last, Wait what) {
    for (size_t k = first; k < last; k++) {
        if (fibres[k].wait != what || fibres[k].line != fibres[first].line) return false;
    }
    for (size_t k = first; k < last; k++) fibres[k].wait = RUNS;
    return true;
}

struct Work {
    void (*body)(void *);
    void *data;
};
static Work work;

static void begin_fibre() {
    work.body(work.data);
    current->wait = ENDED;
    swapcontext(&current->context, &scheduler);
}

}  // namespace emulation

static emulation::Three blockIdx, blockDim, gridDim;
#define threadIdx (emulation::current->index)
#define __syncthreads() emulation::wait_for(emulation::AT_BLOCK, __LINE__)
#define __shfl_xor_sync(MASK, VALUE, DISTANCE) \
    emulation::exchange(VALUE, DISTANCE, __LINE__)

static unsigned atomicAdd(unsigned *place, unsigned more) {
    const unsigned before = *place;  // no other thread runs in between
    *place += more;
    return before;
}

template <typename To, typename From>
static To same_bits(From from) {
    To to;
    static_assert(sizeof to == sizeof from, "the same number of bits");
    memcpy(&to, &from, sizeof to);
    return to;
}
#define __longlong_as_double(BITS) same_bits<double>((long long)(BITS))
#define __double_as_longlong(VALUE) same_bits<long long>((double)(VALUE))
#define __float_as_uint(VALUE) same_bits<unsigned>((float)(VALUE))

namespace emulation {

static bool run_block(std::mt19937 &random, bool shuffles) {
    std::vector<size_t> order(fibres.size());
    for (size_t k = 0; k < order.size(); k++) order[k] = k;
    for (Fibre &fibre : fibres) {
        getcontext(&fibre.context);
        fibre.stack.resize(1 << 16);
        fibre.context.uc_stack.ss_sp = fibre.stack.data();
        fibre.context.uc_stack.ss_size = fibre.stack.size();
        fibre.context.uc_link = nullptr;
        fibre.wait = RUNS;
        makecontext(&fibre.context, begin_fibre, 0);
    }
    for (;;) {
        if (shuffles) {
            for (size_t k = order.size() - 1; k > 0; k--) {
                std::swap(order[k], order[random() % (k + 1)]);
            }
        }
        for (size_t k : order) {
            if (fibres[k].wait != RUNS) continue;
            current = &fibres[k];
            swapcontext(&scheduler, &fibres[k].context);
        }
        size_t n_ended = 0, n = fibres.size();
        for (Fibre &fibre : fibres) n_ended += fibre.wait == ENDED;
        if (n_ended == n) return true;
        bool goes_on = release(0, n, AT_BLOCK);
        for (size_t first = 0; first < n; first += warp_size) {
            const size_t last = first + warp_size < n ? first + warp_size : n;
            if (release(first, last, AT_WARP)) goes_on = true;
        }
        if (!goes_on) {
            fault = "threads wait at different barriers, or some have ended:";
            for (Fibre &fibre : fibres) {
                fault += " " + std::to_string(fibre.wait) + "@" +
                         std::to_string(fibre.line);
            }
            return false;
        }
    }
}

template <typename T>
std::string code_of() {
    using Plain = std::remove_cv_t<std::remove_pointer_t<T>>;
    std::string kind = std::is_floating_point<Plain>::value ? "f"
                       : std::is_signed<Plain>::value       ? "i"
                                                            : "u";
    kind += std::to_string(sizeof(Plain));
    return std::is_pointer<T>::value ? kind + "*" : kind;
}

template <typename... Types>
struct Call {
    void (*function)(Types...);
    void **arguments;

    template <size_t... I>
    void go(std::index_sequence<I...>) {
        function(*static_cast<std::remove_cv_t<Types> *>(arguments[I])...);
    }
    static void body(void *self) {
        static_cast<Call *>(self)->go(std::index_sequence_for<Types...>{});
    }
};

// Run a function on a grid of blocks. Return what is wrong, or an empty text.
template <typename... Types>
const char *launch(
    void (*function)(Types...), const char *given, const unsigned *grid,
    const unsigned *block, int seed, int lanes, void **arguments) {
    std::string wanted;
    ((wanted += code_of<Types>() + " "), ...);
    fault.clear();
    if (wanted != given) {
        fault = "the parameters are " + wanted + "and the arguments are " + given;
        return fault.c_str();
    }
    Call<Types...> call{function, arguments};
    work = {Call<Types...>::body, &call};
    std::mt19937 random(seed);
    warp_size = lanes;
    gridDim = {grid[0], grid[1], grid[2]};
    blockDim = {block[0], block[1], block[2]};
    fibres.resize(block[0] * block[1] * block[2]);
    for (unsigned k = 0; k < fibres.size(); k++) {
        fibres[k].index = {
            k % block[0], k / block[0] % block[1], k / block[0] / block[1]};
    }
    for (unsigned z = 0; z < grid[2]; z++) {
        for (unsigned y = 0; y < grid[1]; y++) {
            for (unsigned x = 0; x < grid[0]; x++) {
                blockIdx = {x, y, z};
                if (!run_block(random, seed > 0)) return fault.c_str();
            }
        }
    }
    return "";
}

}  // namespace emulation

#define LAUNCHER(NAME)                                                              \
    extern "C" const char *launch_##NAME(                                           \
        const char *given, const unsigned *grid, const unsigned *block, int seed,   \
        int lanes, void **arguments) {                                              \
        return emulation::launch(NAME, given, grid, block, seed, lanes, arguments); \
    }
