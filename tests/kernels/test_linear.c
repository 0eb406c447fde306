/* Linear layers against sums in double, at sizes around the tiles of the references. */
#include "kernels/kernel.h"

struct fixture {
    uint32_t rows, n_in, n_out;
    float *in, *weight, *bias, *dout;
};

static void fixture_init(struct fixture *f, uint32_t rows, uint32_t n_in, uint32_t n_out)
{
    uint64_t seed = rows + 100 * n_in + 10000 * n_out;

    *f = (struct fixture){.rows = rows, .n_in = n_in, .n_out = n_out};
    f->in = kernel_random(&seed, (size_t)rows * n_in);
    f->weight = kernel_random(&seed, (size_t)n_out * n_in);
    f->bias = kernel_random(&seed, n_out);
    f->dout = kernel_random(&seed, (size_t)rows * n_out);
}

static void fixture_deinit(struct fixture *f)
{
    free(f->in);
    free(f->weight);
    free(f->bias);
    free(f->dout);
}

/* sums [m][n] += a [m][k] b [k][n], each with the steps of its two dimensions. */
struct view {
    const float *at;
    size_t row, column;
};
static void multiply(double *sums, size_t m, size_t n, size_t k, struct view a, struct view b)
{
    for (size_t i = 0; i < m; i++) {
        for (size_t j = 0; j < n; j++) {
            for (size_t p = 0; p < k; p++) {
                sums[i * n + j] +=
                    (double)a.at[i * a.row + p * a.column] * (double)b.at[p * b.row + j * b.column];
            }
        }
    }
}

static void hold_forward(const struct ops *ops, const struct fixture *f)
{
    size_t n = (size_t)f->rows * f->n_out;
    float *out = kernel_zeros(n);
    double *should = kernel_zeros_double(n);
    struct skrull_linear linear = {.dtype = SKRULL_DTYPE_F32,
                                   .n_rows = f->rows,
                                   .n_in = f->n_in,
                                   .n_out = f->n_out,
                                   .in = f->in,
                                   .weight = f->weight,
                                   .out = out};

    multiply(should, f->rows, f->n_out, f->n_in, (struct view){f->in, f->n_in, 1},
             (struct view){f->weight, 1, f->n_in});
    KERNEL_RUN(ops, linear_forward, &linear);
    kernel_assert_close("out", out, should, n, 1e-5);
    for (size_t i = 0; i < n; i++) {
        should[i] += (double)f->bias[i % f->n_out];
    }
    linear.bias = f->bias;
    KERNEL_RUN(ops, linear_forward, &linear);
    kernel_assert_close("out with bias", out, should, n, 1e-5);
    free(out);
    free(should);
}

static void hold_backward(const struct ops *ops, const struct fixture *f)
{
    size_t n_din = (size_t)f->rows * f->n_in, n_weight = (size_t)f->n_out * f->n_in;
    uint64_t seed = 5;
    float *din = kernel_random(&seed, n_din), *dweight = kernel_random(&seed, n_weight);
    float *dbias = kernel_random(&seed, f->n_out);
    double *is_din = kernel_zeros_double(n_din), *is_dweight = kernel_double(dweight, n_weight);
    double *is_dbias = kernel_double(dbias, f->n_out);
    struct skrull_linear_backward linear = {.dtype = SKRULL_DTYPE_F32,
                                            .n_rows = f->rows,
                                            .n_in = f->n_in,
                                            .n_out = f->n_out,
                                            .in = f->in,
                                            .weight = f->weight,
                                            .dout = f->dout,
                                            .din = din,
                                            .dweight = dweight,
                                            .dbias = dbias};

    multiply(is_din, f->rows, f->n_in, f->n_out, (struct view){f->dout, f->n_out, 1},
             (struct view){f->weight, f->n_in, 1});
    multiply(is_dweight, f->n_out, f->n_in, f->rows, (struct view){f->dout, 1, f->n_out},
             (struct view){f->in, f->n_in, 1});
    for (size_t i = 0; i < (size_t)f->rows * f->n_out; i++) {
        is_dbias[i % f->n_out] += (double)f->dout[i];
    }
    KERNEL_RUN(ops, linear_backward, &linear);
    kernel_assert_close("din", din, is_din, n_din, 1e-5);
    kernel_assert_close("dweight", dweight, is_dweight, n_weight, 1e-5);
    kernel_assert_close("dbias", dbias, is_dbias, f->n_out, 1e-5);
    for (size_t i = 0; i < n_din; i++) {
        is_din[i] *= 2;
    }
    linear.add_din = true;
    linear.dweight = NULL;
    linear.dbias = NULL;
    KERNEL_RUN(ops, linear_backward, &linear);
    kernel_assert_close("din twice", din, is_din, n_din, 1e-5);
    kernel_assert_close("dweight untouched", dweight, is_dweight, n_weight, 1e-5);
    free(din);
    free(dweight);
    free(dbias);
    free(is_din);
    free(is_dweight);
    free(is_dbias);
}

static void test_linear__every_size(void **state)
{
    static const uint32_t sizes[][3] = {{1, 1, 1},    {4, 16, 16},  {5, 17, 15}, {3, 300, 2},
                                        {9, 513, 30}, {2, 20, 270}, {0, 4, 4},   {63, 65, 33},
                                        {300, 7, 5},  {7, 256, 256}};

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct fixture f;

        fixture_init(&f, sizes[i][0], sizes[i][1], sizes[i][2]);
        KERNEL_FOR_BACKENDS(ops)
        {
            hold_forward(ops, &f);
            hold_backward(ops, &f);
        }
        fixture_deinit(&f);
    }
}

/* However tokens are split over ranks, a token's row is the same, bit for bit. */
static void test_linear_forward__a_row_depends_on_itself_alone(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f, 13, 300, 50);
    KERNEL_FOR_BACKENDS(ops)
    {
        float all[13 * 50], one[50];
        struct skrull_linear linear = {.dtype = SKRULL_DTYPE_F32,
                                       .n_rows = 13,
                                       .n_in = 300,
                                       .n_out = 50,
                                       .in = f.in,
                                       .weight = f.weight,
                                       .out = all};

        KERNEL_RUN(ops, linear_forward, &linear);
        linear.n_rows = 1;
        linear.out = one;
        for (size_t row = 0; row < 13; row++) {
            linear.in = f.in + row * 300;
            KERNEL_RUN(ops, linear_forward, &linear);
            assert_memory_equal(one, all + row * 50, sizeof(one));
        }
    }
    fixture_deinit(&f);
}

/* Parts of wider rows, as of one tensor for queries, keys and values. */
static void test_linear__strides(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f, 6, 20, 10);
    KERNEL_FOR_BACKENDS(ops)
    {
        float wide[6 * 25] = {0}, dwide[6 * 25] = {0}, dense[60], ddense[120];
        struct skrull_linear linear = {.dtype = SKRULL_DTYPE_F32,
                                       .n_rows = 6,
                                       .n_in = 20,
                                       .n_out = 10,
                                       .in = f.in,
                                       .weight = f.weight,
                                       .out = dense};
        struct skrull_linear_backward backward = {.dtype = SKRULL_DTYPE_F32,
                                                  .n_rows = 6,
                                                  .n_in = 20,
                                                  .n_out = 10,
                                                  .in = f.in,
                                                  .weight = f.weight,
                                                  .dout = f.dout,
                                                  .din = ddense};

        KERNEL_RUN(ops, linear_forward, &linear);
        linear.out = wide + 3;
        linear.out_stride = 25;
        KERNEL_RUN(ops, linear_forward, &linear);
        KERNEL_RUN(ops, linear_backward, &backward);
        backward.din = dwide + 5;
        backward.din_stride = 25;
        KERNEL_RUN(ops, linear_backward, &backward);
        for (size_t row = 0; row < 6; row++) {
            assert_memory_equal(wide + row * 25 + 3, dense + row * 10, 10 * sizeof(float));
            assert_memory_equal(dwide + row * 25 + 5, ddense + row * 20, 20 * sizeof(float));
        }
    }
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear__every_size),
        cmocka_unit_test(test_linear_forward__a_row_depends_on_itself_alone),
        cmocka_unit_test(test_linear__strides),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
