/* Small kernels for tests in C: one primitive of dev.h each, on one warp. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#include <skrull/cuda.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { PROBE_LANES = 32, PROBE_MOST_TILES = 32 };

/* c[n] += a b[n] for n_tiles of m16n8k16; registers by lane. n_tiles: 1, 3, 8, 16 or 31. */
struct probe_mma {
    enum skrull_dtype dtype;
    int n_tiles;
    uint32_t a[PROBE_LANES][4];
    uint32_t b[PROBE_LANES][2 * PROBE_MOST_TILES];
    float c[PROBE_LANES][PROBE_MOST_TILES][4];
};
int probe_mma(struct probe_mma *mma);

/* ldmatrix .x4 of rows [32][8], row i at byte i * stride of shared memory. */
struct probe_ldmatrix {
    bool is_transposed;
    uint32_t stride; /* at most 256 */
    uint16_t rows[PROBE_LANES][8];
    uint32_t r[PROBE_LANES][4];
};
int probe_ldmatrix(struct probe_ldmatrix *ldmatrix);

/* Conversions in a kernel. */
uint16_t probe_encode(enum skrull_dtype dtype, float value);
float probe_decode(enum skrull_dtype dtype, uint16_t bits);

/* For each thread of one block of `block`, what it sees: block and thread in out[i][6], in the
 * order of (block, thread), x fastest. */
int probe_indices(const uint32_t grid[3], const uint32_t block[3], uint32_t (*out)[6]);

/* Nothing, launched so. */
int probe_launch(const uint32_t grid[3], const uint32_t block[3], size_t smem_bytes,
                 struct skrull_error *err);

/* What a warp's operations give, by lane. */
struct probe_warp {
    uint32_t in[PROBE_LANES];
    uint32_t up[PROBE_LANES], down[PROBE_LANES], from_3[PROBE_LANES], ballot[PROBE_LANES];
    double sum[PROBE_LANES];
    float most[PROBE_LANES];
    int any[PROBE_LANES], all[PROBE_LANES];
};
int probe_warp(struct probe_warp *warp);

/* load and store of 8, 4, 2, 1 elements of `dtype`: copies 15 of them. */
int probe_copy(enum skrull_dtype dtype, const void *from, void *to);

#ifdef __cplusplus
}
#endif
