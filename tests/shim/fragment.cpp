/*
 * ldmatrix and mma.sync m16n8k16 by the layouts of the PTX ISA (9.7.14.5.8 and .15). With lane =
 * 4 g + t: a = {A[g][2t..], A[g+8][2t..], A[g][2t+8..], A[g+8][2t+8..]}, b = {B[2t..][g],
 * B[2t+8..][g]}, c = {C[g][2t], C[g][2t+1], C[g+8][2t], C[g+8][2t+1]}. test_fragment.c holds this
 * against the ISA's own formulas, element by element.
 */
#include "shim/floats.h"
#include "shim/warp.h"

#include <algorithm>
#include <cstring>

#include "shim/sanitizer.h"

namespace shim
{
namespace
{
constexpr int rows = 16, depth = 16, columns = 8; /* of one mma */

struct matrices {
    uint32_t *r;
    const void *row;
};

struct fragments {
    float (*c)[4];
    const uint32_t *a, *b;
};

void check_full(uint32_t mask)
{
    if (mask != ~0u) {
        fault("ldmatrix and mma need all 32 lanes");
    }
}

/* Eight rows are read at once: free of conflicts if they lie in different 16 bytes of 128. */
void count_conflicts(void *const *data)
{
    uint32_t banks = 0;

    for (int row = 0; row < 8; row++) {
        const auto *m = static_cast<const matrices *>(data[row]);

        banks |= 1u << (reinterpret_cast<uintptr_t>(m->row) / 16 % 8);
    }
    stats.ldmatrix_rows_of_8++;
    stats.ldmatrix_conflicts += (uint64_t)(8 - __builtin_popcount(banks));
}

template <bool IsTransposed> void run_load(void *const data[n_lanes], uint32_t mask)
{
    check_full(mask);
    for (int i = 0; i < 4; i++) {
        uint16_t tile[8][8];

        count_conflicts(data + 8 * i);
        for (int row = 0; row < 8; row++) {
            memcpy(tile[row], static_cast<const matrices *>(data[8 * i + row])->row, 16);
        }
        for (int lane = 0; lane < n_lanes; lane++) {
            const int g = lane / 4, t = lane % 4 * 2;
            const uint32_t lo = IsTransposed ? tile[t][g] : tile[g][t];
            const uint32_t hi = IsTransposed ? tile[t + 1][g] : tile[g][t + 1];

            static_cast<const matrices *>(data[lane])->r[i] = lo | hi << 16;
        }
    }
}

template <fragment_type Type> float to_float(uint16_t bits)
{
    return Type == FRAGMENT_BF16 ? float_of_bf16(bits) : float_of_fp16(bits);
}

template <fragment_type Type> void unpack(uint32_t pair, float *lo, float *hi)
{
    *lo = to_float<Type>((uint16_t)pair);
    *hi = to_float<Type>((uint16_t)(pair >> 16));
}

/* The matrices of N products beside each other. */
template <int N> struct tiles {
    alignas(64) float a[rows][depth];
    alignas(64) float b[depth][N * columns];
    alignas(64) float c[rows][N * columns];
};

template <fragment_type Type, int N> void gather(tiles<N> *m, const fragments *f, int g, int t)
{
    unpack<Type>(f->a[0], &m->a[g][t], &m->a[g][t + 1]);
    unpack<Type>(f->a[1], &m->a[g + 8][t], &m->a[g + 8][t + 1]);
    unpack<Type>(f->a[2], &m->a[g][t + 8], &m->a[g][t + 9]);
    unpack<Type>(f->a[3], &m->a[g + 8][t + 8], &m->a[g + 8][t + 9]);
    for (int n = 0; n < N; n++) {
        const int column = n * columns;

        unpack<Type>(f->b[2 * n], &m->b[t][column + g], &m->b[t + 1][column + g]);
        unpack<Type>(f->b[2 * n + 1], &m->b[t + 8][column + g], &m->b[t + 9][column + g]);
        memcpy(&m->c[g][column + t], &f->c[n][0], 8);
        memcpy(&m->c[g + 8][column + t], &f->c[n][2], 8);
    }
}

template <int N> void multiply(tiles<N> *m)
{
    for (int i = 0; i < rows; i++) {
        for (int k = 0; k < depth; k++) {
            for (int j = 0; j < N * columns; j++) {
                m->c[i][j] += m->a[i][k] * m->b[k][j];
            }
        }
    }
}

template <fragment_type Type, int N> void run_multiply(void *const data[n_lanes], uint32_t mask)
{
    tiles<N> m;

    check_full(mask);
    for (int lane = 0; lane < n_lanes; lane++) {
        gather<Type, N>(&m, static_cast<const fragments *>(data[lane]), lane / 4, lane % 4 * 2);
    }
    multiply<N>(&m);
    for (int lane = 0; lane < n_lanes; lane++) {
        const auto *f = static_cast<const fragments *>(data[lane]);
        const int g = lane / 4, t = lane % 4 * 2;

        for (int n = 0; n < N; n++) {
            memcpy(&f->c[n][0], &m.c[g][n * columns + t], 8);
            memcpy(&f->c[n][2], &m.c[g + 8][n * columns + t], 8);
        }
    }
}

/* Of 2^i products. */
constexpr int n_widths = 5;
constexpr warp_operation products[2][n_widths] = {
    {{"mma of bf16", run_multiply<FRAGMENT_BF16, 1>},
     {"mma of bf16 x 2", run_multiply<FRAGMENT_BF16, 2>},
     {"mma of bf16 x 4", run_multiply<FRAGMENT_BF16, 4>},
     {"mma of bf16 x 8", run_multiply<FRAGMENT_BF16, 8>},
     {"mma of bf16 x 16", run_multiply<FRAGMENT_BF16, 16>}},
    {{"mma of fp16", run_multiply<FRAGMENT_FP16, 1>},
     {"mma of fp16 x 2", run_multiply<FRAGMENT_FP16, 2>},
     {"mma of fp16 x 4", run_multiply<FRAGMENT_FP16, 4>},
     {"mma of fp16 x 8", run_multiply<FRAGMENT_FP16, 8>},
     {"mma of fp16 x 16", run_multiply<FRAGMENT_FP16, 16>}},
};
} // namespace

void load_matrices(uint32_t *r, const void *row, bool is_transposed, where at)
{
    static const warp_operation plain = {"ldmatrix", run_load<false>};
    static const warp_operation transposed = {"ldmatrix.trans", run_load<true>};
    matrices m = {r, row};

    if (reinterpret_cast<uintptr_t>(row) % 16) {
        fault("ldmatrix at %s:%d of a row that is not aligned to 16 bytes", at.file, at.line);
    }
    if (!is_shared(row, 16)) {
        fault("ldmatrix at %s:%d of a row that is not in shared memory", at.file, at.line);
    }
    sanitizer_read(row, 16, __builtin_return_address(0));
    warp_meet(is_transposed ? &transposed : &plain, ~0u, &m, at);
}

void multiply_fragments(fragment_type type, int n, float (*c)[4], const uint32_t *a,
                        const uint32_t *b, where at)
{
    while (n > 0) {
        const int width = std::min(31 - __builtin_clz((unsigned)n), n_widths - 1);
        fragments f = {c, a, b};

        warp_meet(&products[type][width], ~0u, &f, at);
        n -= 1 << width;
        c += 1 << width;
        b += 2 << width;
    }
}
} // namespace shim
