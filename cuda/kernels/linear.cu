/*
 * Linear layers as three products: out = in w^T + bias;  din = dout w;  dw += dout^T in. The bias
 * lies in out before the product is added to it, so there is one rounding to T; dbias is a sum of
 * columns. Rows [n_rows][n_out] for the bias: up to 256 threads a row, single numbers.
 */
#include "blas.h"
#include "columns.h"
#include "entry.h"

namespace
{
using namespace sk;

/* Every row becomes the bias, or zeros. */
template <class T> __global__ void fill_rows_kernel(struct skrull_linear p)
{
    const T *bias = static_cast<const T *>(p.bias);

    for (size_t row = first_row(); row < p.n_rows; row += row_step()) {
        T *out = static_cast<T *>(p.out) + row * p.out_stride;

        each_of_row<1>(p.n_out, [=](auto, size_t i) { out[i] = bias ? bias[i] : to<T>(0.0F); });
    }
}

template <class T> __global__ void dbias_kernel(struct skrull_linear_backward p)
{
    const T *dout = static_cast<const T *>(p.dout);
    const size_t stride = p.dout_stride;

    add_columns(p.n_rows, p.n_out, p.dbias,
                [=](size_t row, size_t column) { return f32(dout[row * stride + column]); });
}

int fill_rows(const struct skrull_linear &p, void *stream, struct skrull_error *err)
{
    const row_shape shape = row_shape_of(p.n_out == 0 ? 0 : p.n_rows, p.n_out);

    return with_dtype("linear", p.dtype, err, [&](auto type) {
        return launch(fill_rows_kernel<decltype(type)>, shape.grid, shape.block, 0, stream, err, p);
    });
}

int add_bias_gradient(const struct skrull_linear_backward &p, void *stream,
                      struct skrull_error *err)
{
    return with_dtype("linear", p.dtype, err, [&](auto type) {
        return launch(dbias_kernel<decltype(type)>, columns_grid(p.n_rows, p.n_out),
                      dim3(COLUMNS, COLUMNS), sizeof(column_sums), stream, err, p);
    });
}

int differentiate_in(const struct skrull_linear_backward &p, void *stream, struct skrull_error *err)
{
    struct blas_gemm product = {};

    if (p.n_out == 0) { /* a sum of nothing */
        struct skrull_linear zeros = {};

        zeros.dtype = p.dtype;
        zeros.n_rows = p.add_din ? 0 : p.n_rows;
        zeros.n_out = p.n_in;
        zeros.out = p.din;
        zeros.out_stride = p.din_stride;
        return fill_rows(zeros, stream, err);
    }
    product.dtype = product.c_dtype = p.dtype;
    product.m = p.n_rows;
    product.n = p.n_in;
    product.k = p.n_out;
    product.a = p.dout;
    product.b = p.weight;
    product.c = p.din;
    product.a_stride = p.dout_stride;
    product.b_stride = p.n_in;
    product.c_stride = p.din_stride;
    product.add = p.add_din;
    return SK_ENTRY(blas_gemm)(&product, stream, err);
}

int differentiate_weight(const struct skrull_linear_backward &p, void *stream,
                         struct skrull_error *err)
{
    struct blas_gemm product = {};

    product.dtype = p.dtype;
    product.c_dtype = SKRULL_DTYPE_F32;
    product.m = p.n_out;
    product.n = p.n_in;
    product.k = p.n_rows;
    product.a = p.dout;
    product.b = p.in;
    product.c = p.dweight;
    product.a_stride = p.dout_stride;
    product.b_stride = p.in_stride;
    product.c_stride = p.n_in;
    product.a_transposed = true;
    product.add = true;
    return SK_ENTRY(blas_gemm)(&product, stream, err);
}
} // namespace

extern "C" int SK_ENTRY(linear_forward)(const struct skrull_linear *linear, void *stream,
                                        struct skrull_error *err)
{
    struct skrull_linear p = *linear;
    struct blas_gemm product = {};
    int rc = 0;

    p.in_stride = stride_or(p.in_stride, p.n_in);
    p.out_stride = stride_or(p.out_stride, p.n_out);
    if (p.bias || p.n_in == 0) {
        rc = fill_rows(p, stream, err);
    }
    if (rc < 0 || p.n_rows == 0 || p.n_in == 0 || p.n_out == 0) {
        return rc;
    }
    product.dtype = product.c_dtype = p.dtype;
    product.m = p.n_rows;
    product.n = p.n_out;
    product.k = p.n_in;
    product.a = p.in;
    product.b = p.weight;
    product.c = p.out;
    product.a_stride = p.in_stride;
    product.b_stride = p.n_in;
    product.c_stride = p.out_stride;
    product.b_transposed = true;
    product.add = p.bias != NULL;
    return SK_ENTRY(blas_gemm)(&product, stream, err);
}

extern "C" int SK_ENTRY(linear_backward)(const struct skrull_linear_backward *linear, void *stream,
                                         struct skrull_error *err)
{
    struct skrull_linear_backward p = *linear;
    int rc = 0;

    p.in_stride = stride_or(p.in_stride, p.n_in);
    p.dout_stride = stride_or(p.dout_stride, p.n_out);
    p.din_stride = stride_or(p.din_stride, p.n_in);
    if (p.n_rows == 0) {
        return 0;
    }
    if (p.din && p.n_in > 0) {
        rc = differentiate_in(p, stream, err);
    }
    if (rc == 0 && p.dweight && p.n_in > 0 && p.n_out > 0) {
        rc = differentiate_weight(p, stream, err);
    }
    if (rc == 0 && p.dbias) {
        rc = add_bias_gradient(p, stream, err);
    }
    return rc;
}
