/* Rotary embedding as a kernel, against complex numbers in double. */
#include <math.h>

#include "kernels/typed.h"

/* Every shape of heads, packed and as parts of wider rows. */
struct typed_rotary {
    uint32_t n_rows, heads, head_dim;
    size_t in_stride, out_stride;
};

static double *turned(const struct typed_rotary *c, const int32_t *position,
                      const double *frequency, const double *in, double side)
{
    size_t dim = c->head_dim, dense = c->heads * dim, half = dim / 2;
    size_t in_stride = c->in_stride ? c->in_stride : dense;
    size_t out_stride = c->out_stride ? c->out_stride : dense;
    double *out = kernel_zeros_double(c->n_rows * out_stride);

    for (size_t i = 0; i < c->n_rows * out_stride; i++) {
        out[i] = (double)NAN;
    }
    for (size_t at = 0; at < c->n_rows * dense; at++) {
        size_t row = at / dense, i = at % dense % dim, column = at % dense - i;
        double angle = side * (double)position[row] * frequency[i % half];
        double x = in[row * in_stride + column + i % half];
        double y = in[row * in_stride + column + i % half + half];
        double turn = i < half ? x * cos(angle) - y * sin(angle) : x * sin(angle) + y * cos(angle);

        out[row * out_stride + column + i] = position[row] >= 0 ? turn : i < half ? x : y;
    }
    return out;
}

static void hold_turns(struct typed *t, const void *arg)
{
    static const int32_t some[] = {0, 1, -1, 4095, 131071, 77, 2000000000};
    const struct typed_rotary *c = arg;
    size_t dense = (size_t)c->heads * c->head_dim;
    size_t n_in = c->n_rows * (c->in_stride ? c->in_stride : dense);
    size_t n_out = c->n_rows * (c->out_stride ? c->out_stride : dense);
    uint64_t seed = 6;
    double *in = typed_random(t, &seed, n_in, 1), *should;
    double *frequency = typed_random_floats(&seed, c->head_dim / 2, 1);
    int32_t *position = calloc(c->n_rows + 1, sizeof(*position));
    void *out = typed_tensor(t, NULL, n_out), *back = typed_tensor(t, NULL, n_out);
    struct skrull_rotary rotary = {.dtype = t->dtype,
                                   .n_rows = c->n_rows,
                                   .heads = c->heads,
                                   .head_dim = c->head_dim,
                                   .frequency = typed_floats(t, frequency, c->head_dim / 2),
                                   .in = typed_tensor(t, in, n_in),
                                   .out = out,
                                   .in_stride = c->in_stride,
                                   .out_stride = c->out_stride};

    assert_non_null(position);
    for (uint32_t i = 0; i < c->n_rows; i++) {
        position[i] = some[i % 7];
    }
    rotary.position = typed_ints(t, position, c->n_rows);
    TYPED_RUN(t, rotary_forward, &rotary);
    should = turned(c, position, frequency, in, 1);
    typed_assert(t, "forward", out, should, n_out);
    free(should);
    rotary.out = back;
    TYPED_RUN(t, rotary_backward, &rotary);
    should = turned(c, position, frequency, in, -1);
    typed_assert(t, "backward", back, should, n_out);
    free(should);
    free(in);
    free(frequency);
    free(position);
}

static void test_rotary__every_dtype_and_shape(void **state)
{
    static const struct typed_rotary cases[] = {
        {0, 2, 64, 0, 0},  {1, 1, 2, 0, 0},    {3, 1, 64, 0, 0},     {5, 28, 128, 0, 0},
        {33, 3, 96, 0, 0}, {9, 2, 64, 136, 0}, {9, 5, 24, 121, 130}, {65, 4, 16, 64, 192},
        {7, 40, 6, 0, 0},  {2, 1, 1100, 0, 0}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("rotary", hold_turns, &cases[i], false);
    }
}

static void hold_in_place(struct typed *t, const void *arg)
{
    static const int32_t position[] = {5, -1, 300};
    const struct typed_rotary *c = arg;
    size_t n = 3 * (size_t)c->heads * c->head_dim;
    uint64_t seed = 7;
    double *in = typed_random(t, &seed, n, 1);
    double *frequency = typed_random_floats(&seed, c->head_dim / 2, 1);
    double *should = turned(c, position, frequency, in, 1);
    void *tensor = typed_tensor(t, in, n);
    struct skrull_rotary rotary = {.dtype = t->dtype,
                                   .n_rows = 3,
                                   .heads = c->heads,
                                   .head_dim = c->head_dim,
                                   .position = typed_ints(t, position, 3),
                                   .frequency = typed_floats(t, frequency, c->head_dim / 2),
                                   .in = tensor,
                                   .out = tensor};

    TYPED_RUN(t, rotary_forward, &rotary);
    typed_assert(t, "in place", tensor, should, n);
    free(in);
    free(frequency);
    free(should);
}

static void test_rotary__in_place(void **state)
{
    static const struct typed_rotary wide = {3, 6, 128, 0, 0}, odd = {3, 2, 18, 0, 0};

    (void)state;
    typed_hold("rotary in place", hold_in_place, &wide, false);
    typed_hold("rotary in place", hold_in_place, &odd, false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotary__every_dtype_and_shape),
        cmocka_unit_test(test_rotary__in_place),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
