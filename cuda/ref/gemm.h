/*
 * Matrix products of floats: c [m][n] = a [m][k] b [k][n], or += . `b` is packed once into panels
 * of GEMM_COLUMNS columns and then used for any number of rows. An element of c is summed over k in
 * ascending order by the same instructions wherever it lies, so a row of c depends on its row of a
 * alone.
 */
#pragma once

#include "ref.h"

/* Of the vectors that the build's processors have. */
#ifndef REF_VECTOR_BYTES
#define REF_VECTOR_BYTES 16
#endif
#define GEMM_COLUMNS (2u * REF_VECTOR_BYTES / 4)

/* Element (i, j) is at[i * row + j * column]: either of row and column is 1, or neither. */
struct gemm_matrix {
    const float *at;
    size_t row, column;
};

/* Floats that a packed [k][n] takes. */
static inline size_t gemm_packed_size(size_t k, size_t n)
{
    return (n + GEMM_COLUMNS - 1) / GEMM_COLUMNS * GEMM_COLUMNS * k;
}

/* Packs b [k][n]; columns behind the last are zero. */
void REF(gemm_pack)(const struct gemm_matrix *b, size_t k, size_t n, float *ret_packed);

/* The product with a packed b. */
struct gemm_product {
    size_t m, n, k;
    struct gemm_matrix a;
    const float *packed;
    float *c;
    size_t c_row;
    bool add;
};
void REF(gemm_multiply)(const struct gemm_product *product);

/* The product with a b of any size: packs it block by block. RESOURCE_EXHAUSTED: no memory. */
int REF(gemm)(const struct gemm_product *product, const struct gemm_matrix *b,
              struct skrull_error *err);
