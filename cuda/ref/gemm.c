/*
 * Products by register tiles of 4 rows and 2 vectors over packed panels (Goto and van de Geijn,
 * "Anatomy of High-Performance Matrix Multiplication", 2008, without packing a). Rows behind the
 * last are computed as copies of it and dropped: one code path for every row. No state, any thread.
 */
#include "gemm.h"

#include <stdlib.h>

#define TILE_ROWS 4u
#define BLOCK_K 256u /* a tile's rows of a stay in the first cache, */
#define BLOCK_N 256u /* a packed block in the second */

/* Floats of one vector register, at any address. */
typedef float lanes __attribute__((vector_size(REF_VECTOR_BYTES), aligned(4), may_alias));

void REF(gemm_pack)(const struct gemm_matrix *b, size_t k, size_t n, float *ret_packed)
{
    float *to = ret_packed;

    for (size_t first = 0; first < n; first += GEMM_COLUMNS) {
        size_t width = n - first < GEMM_COLUMNS ? n - first : GEMM_COLUMNS;

        for (size_t p = 0; p < k; p++, to += GEMM_COLUMNS) {
            const float *from = b->at + p * b->row + first * b->column;

            for (size_t j = 0; j < width; j++) {
                to[j] = from[j * b->column];
            }
            for (size_t j = width; j < GEMM_COLUMNS; j++) {
                to[j] = 0.0F;
            }
        }
    }
}

/* Where a tile's parts are. */
struct tile {
    const float *a[TILE_ROWS];
    size_t a_column, k;
    const float *panel;
};

/* sums [4][GEMM_COLUMNS] += the tile's product, over ascending k. */
static void multiply_tile(const struct tile *tile, float *sums)
{
    const float *a0 = tile->a[0], *a1 = tile->a[1], *a2 = tile->a[2], *a3 = tile->a[3];
    const lanes *b = (const lanes *)(const void *)tile->panel;
    lanes *c = (lanes *)(void *)sums;
    lanes c00 = c[0], c01 = c[1], c10 = c[2], c11 = c[3];
    lanes c20 = c[4], c21 = c[5], c30 = c[6], c31 = c[7];

    for (size_t p = 0, at = 0; p < tile->k; p++, at += tile->a_column, b += 2) {
        lanes b0 = b[0], b1 = b[1];

        c00 += a0[at] * b0;
        c01 += a0[at] * b1;
        c10 += a1[at] * b0;
        c11 += a1[at] * b1;
        c20 += a2[at] * b0;
        c21 += a2[at] * b1;
        c30 += a3[at] * b0;
        c31 += a3[at] * b1;
    }
    c[0] = c00;
    c[1] = c01;
    c[2] = c10;
    c[3] = c11;
    c[4] = c20;
    c[5] = c21;
    c[6] = c30;
    c[7] = c31;
}

/* One tile of c at (row, column). */
static void multiply_at(const struct gemm_product *product, size_t row, size_t column)
{
    float sums[TILE_ROWS * GEMM_COLUMNS] = {0};
    size_t n_rows = product->m - row < TILE_ROWS ? product->m - row : TILE_ROWS;
    size_t left = product->n - column, width = left < GEMM_COLUMNS ? left : GEMM_COLUMNS;
    float *c = product->c + row * product->c_row + column;
    struct tile tile = {.a_column = product->a.column,
                        .k = product->k,
                        .panel = product->packed + column * product->k};

    for (size_t i = 0; i < TILE_ROWS; i++) {
        size_t held = row + (i < n_rows ? i : n_rows - 1);

        tile.a[i] = product->a.at + held * product->a.row;
    }
    if (product->add) {
        for (size_t i = 0; i < n_rows; i++) {
            memcpy(sums + i * GEMM_COLUMNS, c + i * product->c_row, width * sizeof(float));
        }
    }
    multiply_tile(&tile, sums);
    for (size_t i = 0; i < n_rows; i++) {
        memcpy(c + i * product->c_row, sums + i * GEMM_COLUMNS, width * sizeof(float));
    }
}

void REF(gemm_multiply)(const struct gemm_product *product)
{
    for (size_t row = 0; row < product->m; row += TILE_ROWS) {
        for (size_t column = 0; column < product->n; column += GEMM_COLUMNS) {
            multiply_at(product, row, column);
        }
    }
}

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void clear(const struct gemm_product *product)
{
    for (size_t i = 0; i < product->m && !product->add; i++) {
        memset(product->c + i * product->c_row, 0, product->n * sizeof(float));
    }
}

int REF(gemm)(const struct gemm_product *product, const struct gemm_matrix *b,
              struct skrull_error *err)
{
    size_t block_k = least(product->k, BLOCK_K), block_n = least(product->n, BLOCK_N);
    float *packed;

    if (product->k == 0) {
        clear(product);
        return 0;
    }
    packed = malloc(gemm_packed_size(block_k, block_n) * sizeof(float) + 1);
    if (!packed) {
        return ref_out_of_memory(err);
    }
    for (size_t column = 0; column < product->n; column += BLOCK_N) {
        for (size_t p = 0; p < product->k; p += BLOCK_K) {
            struct gemm_matrix block = {b->at + p * b->row + column * b->column, b->row, b->column};
            struct gemm_product part = *product;

            part.n = least(product->n - column, BLOCK_N);
            part.k = least(product->k - p, BLOCK_K);
            part.a.at = product->a.at + p * product->a.column;
            part.c = product->c + column;
            part.packed = packed;
            part.add = product->add || p > 0;
            REF(gemm_pack)(&block, part.k, part.n, packed);
            REF(gemm_multiply)(&part);
        }
    }
    free(packed);
    return 0;
}
