/* Attention backward against its definition in double, which is itself held against slopes. */
#include <math.h>

#include "kernels/attention_case.h"

static const struct attention_rows mixed[] = {
    {1, SIDE_WHOLE, SIDE_WHOLE},   {70, SIDE_WHOLE, SIDE_WHOLE},  {100, SIDE_BEGIN, SIDE_END},
    {100, SIDE_END, SIDE_BEGIN},   {90, SIDE_FIRST, SIDE_SECOND}, {61, SIDE_SECOND, SIDE_SECOND},
    {40, SIDE_NONE, SIDE_WHOLE},   {40, SIDE_WHOLE, SIDE_NONE},   {9, SIDE_PADDING, SIDE_WHOLE},
    {9, SIDE_WHOLE, SIDE_PADDING}, {3, SIDE_FIRST, SIDE_WHOLE},
};
#define N_MIXED ((uint32_t)(sizeof(mixed) / sizeof(mixed[0])))

static void clear(struct attention_case *c)
{
    size_t q = c->n_q * c->shape.heads * c->shape.head_dim;
    size_t k = c->n_k * c->shape.kv_heads * c->shape.head_dim;

    memset(c->dq, 0, q * sizeof(float));
    memset(c->dk, 0, k * sizeof(float));
    memset(c->dv, 0, k * sizeof(float));
}

static void hold(const struct ops *ops, struct attention_case *c)
{
    struct skrull_attention forward = attention_case_forward(c);
    struct skrull_attention_backward backward = attention_case_backward(c);
    size_t q = c->n_q * c->shape.heads * c->shape.head_dim;
    size_t k = c->n_k * c->shape.kv_heads * c->shape.head_dim;

    clear(c);
    KERNEL_RUN(ops, attention_forward, &forward);
    KERNEL_RUN(ops, attention_backward, &backward);
    kernel_assert_close("dq", c->dq, c->true_dq, q, 1e-5);
    kernel_assert_close("dk", c->dk, c->true_dk, k, 1e-5);
    kernel_assert_close("dv", c->dv, c->true_dv, k, 1e-5);
}

static void test_attention_backward__every_mask_ratio_and_head_dim(void **state)
{
    static const uint32_t dims[] = {64, 96, 128};
    static const uint32_t heads[][2] = {{1, 1}, {2, 1}, {6, 2}, {4, 1}, {7, 1}, {8, 1}};
    static const struct {
        bool causal;
        uint32_t window;
    } masks[] = {{true, 0}, {false, 0}, {true, 17}, {false, 9}};

    (void)state;
    for (size_t d = 0; d < 3; d++) {
        for (size_t h = 0; h < 6; h++) {
            for (size_t m = 0; m < 4; m++) {
                struct attention_shape shape = {heads[h][0], heads[h][1], dims[d], masks[m].causal,
                                                masks[m].window};
                struct attention_case c;

                attention_case_init(&c, &shape, mixed, N_MIXED, 77 + 1000 * d + 10 * h + m);
                KERNEL_FOR_BACKENDS(ops)
                {
                    hold(ops, &c);
                }
                attention_case_deinit(&c);
            }
        }
    }
}

/* What is differentiated: out . dout + lse . dlse over queries that see a key. */
static double objective(void *arg)
{
    const struct attention_doubles *d = arg;
    const struct attention_case *c = d->c;
    double sum = 0;

    attention_naive_forward(d);
    for (size_t i = 0; i < c->n_q * c->shape.heads; i++) {
        if (isinf(d->lse[i])) {
            continue;
        }
        sum += d->lse[i] * (double)c->dlse[i];
        for (size_t e = 0; e < c->shape.head_dim; e++) {
            size_t at = i * c->shape.head_dim + e;

            sum += d->out[at] * (double)c->dout[at];
        }
    }
    return sum;
}

static void test_attention_backward__is_the_slope(void **state)
{
    static const struct attention_rows rows[] = {
        {5, SIDE_WHOLE, SIDE_WHOLE}, {9, SIDE_FIRST, SIDE_SECOND}, {6, SIDE_BEGIN, SIDE_END}};
    struct attention_shape shape = {4, 2, 6, true, 4};
    struct attention_case c;
    struct attention_doubles d = {.c = &c};
    size_t q, k;

    (void)state;
    attention_case_init(&c, &shape, rows, 3, 3);
    q = c.n_q * shape.heads * shape.head_dim;
    k = c.n_k * shape.kv_heads * shape.head_dim;
    d.q = kernel_double(c.q, q);
    d.k = kernel_double(c.k, k);
    d.v = kernel_double(c.v, k);
    d.out = kernel_zeros_double(q);
    d.lse = kernel_zeros_double(c.n_q * shape.heads);
    KERNEL_FOR_BACKENDS(ops)
    {
        hold(ops, &c);
        /* Padding is NaN: its slope is that of nothing, zero, as nothing reads it. */
        kernel_assert_slopes("dq", objective, &d, d.q, c.dq, q, 1e-5);
        kernel_assert_slopes("dk", objective, &d, d.k, c.dk, k, 1e-5);
        kernel_assert_slopes("dv", objective, &d, d.v, c.dv, k, 1e-5);
    }
    free(d.q);
    free(d.k);
    free(d.v);
    free(d.out);
    free(d.lse);
    attention_case_deinit(&c);
}

static void test_attention_backward__adds(void **state)
{
    static const struct attention_rows rows[] = {{30, SIDE_WHOLE, SIDE_WHOLE}};
    struct attention_shape shape = {2, 1, 16, true, 0};
    struct attention_case c;

    (void)state;
    attention_case_init(&c, &shape, rows, 1, 3);
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_attention_backward backward = attention_case_backward(&c);

        hold(ops, &c);
        KERNEL_RUN(ops, attention_backward, &backward);
        for (size_t i = 0; i < c.n_k * 16; i++) {
            double twice = 2 * c.true_dv[i];

            kernel_assert_close("dv", &c.dv[i], &twice, 1, 1e-5);
        }
    }
    attention_case_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_backward__every_mask_ratio_and_head_dim),
        cmocka_unit_test(test_attention_backward__is_the_slope),
        cmocka_unit_test(test_attention_backward__adds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
