/* Attention forward against its definition in double. */
#include <math.h>

#include "kernels/attention_case.h"

/* All that a plan can put on the two sides. */
static const struct attention_rows mixed[] = {
    {1, SIDE_WHOLE, SIDE_WHOLE},    {70, SIDE_WHOLE, SIDE_WHOLE},  {100, SIDE_BEGIN, SIDE_END},
    {100, SIDE_END, SIDE_BEGIN},    {90, SIDE_FIRST, SIDE_SECOND}, {90, SIDE_SECOND, SIDE_FIRST},
    {61, SIDE_SECOND, SIDE_SECOND}, {40, SIDE_NONE, SIDE_WHOLE},   {40, SIDE_WHOLE, SIDE_NONE},
    {9, SIDE_PADDING, SIDE_WHOLE},  {9, SIDE_WHOLE, SIDE_PADDING}, {3, SIDE_FIRST, SIDE_WHOLE},
    {1, SIDE_FIRST, SIDE_SECOND},
};
#define N_MIXED ((uint32_t)(sizeof(mixed) / sizeof(mixed[0])))

static const struct {
    const char *name;
    bool causal;
    uint32_t window;
} masks[] = {{"causal", true, 0},
             {"full", false, 0},
             {"causal window", true, 17},
             {"window to both sides", false, 9},
             {"window 1", true, 1}};

static void hold(const struct ops *ops, const struct attention_case *c)
{
    struct skrull_attention forward = attention_case_forward(c);

    KERNEL_RUN(ops, attention_forward, &forward);
    kernel_assert_close("out", c->out, c->true_out, c->n_q * c->shape.heads * c->shape.head_dim,
                        1e-5);
    kernel_assert_close("lse", c->lse, c->true_lse, c->n_q * c->shape.heads, 1e-5);
}

static void test_attention_forward__every_mask_ratio_and_head_dim(void **state)
{
    static const uint32_t dims[] = {64, 96, 128};
    static const uint32_t heads[][2] = {{1, 1}, {2, 1}, {6, 2}, {4, 1}, {7, 1}, {8, 1}};

    (void)state;
    for (size_t d = 0; d < 3; d++) {
        for (size_t h = 0; h < 6; h++) {
            for (size_t m = 0; m < 5; m++) {
                struct attention_shape shape = {heads[h][0], heads[h][1], dims[d], masks[m].causal,
                                                masks[m].window};
                struct attention_case c;

                attention_case_init(&c, &shape, mixed, N_MIXED, 1000 * d + 10 * h + m);
                KERNEL_FOR_BACKENDS(ops)
                {
                    hold(ops, &c);
                }
                attention_case_deinit(&c);
            }
        }
    }
}

static void test_attention_forward__odd_head_dims(void **state)
{
    static const uint32_t dims[] = {1, 8, 20, 33};

    (void)state;
    for (size_t d = 0; d < 4; d++) {
        struct attention_shape shape = {4, 2, dims[d], true, 0};
        struct attention_case c;

        attention_case_init(&c, &shape, mixed, N_MIXED, d);
        KERNEL_FOR_BACKENDS(ops)
        {
            hold(ops, &c);
        }
        attention_case_deinit(&c);
    }
}

static void test_attention_forward__long_tail_of_keys(void **state)
{
    static const struct attention_rows rows[] = {{900, SIDE_FIRST, SIDE_WHOLE}};
    struct attention_shape shape = {2, 1, 64, true, 0};
    struct attention_case c;

    (void)state;
    attention_case_init(&c, &shape, rows, 1, 5);
    KERNEL_FOR_BACKENDS(ops)
    {
        hold(ops, &c);
    }
    attention_case_deinit(&c);
}

static void test_attention_forward__no_sequences(void **state)
{
    struct attention_shape shape = {2, 1, 64, true, 0};
    struct attention_case c;

    (void)state;
    attention_case_init(&c, &shape, mixed, 0, 5);
    KERNEL_FOR_BACKENDS(ops)
    {
        hold(ops, &c);
    }
    attention_case_deinit(&c);
}

/* Rows of q, k, v and out may lie in wider ones, as after one product for all three. */
static void test_attention_forward__strides(void **state)
{
    static const struct attention_rows rows[] = {{40, SIDE_WHOLE, SIDE_WHOLE},
                                                 {5, SIDE_WHOLE, SIDE_WHOLE}};
    struct attention_shape shape = {4, 2, 16, true, 0};
    size_t q_width = 64, k_width = 32, width = q_width + 2 * k_width;
    struct attention_case c;
    float *fused, *wide;

    (void)state;
    attention_case_init(&c, &shape, rows, 2, 9);
    fused = kernel_zeros(c.n_q * width);
    wide = kernel_zeros(c.n_q * width);
    for (size_t i = 0; i < c.n_q; i++) {
        memcpy(fused + i * width, c.q + i * q_width, q_width * sizeof(float));
        memcpy(fused + i * width + q_width, c.k + i * k_width, k_width * sizeof(float));
        memcpy(fused + i * width + q_width + k_width, c.v + i * k_width, k_width * sizeof(float));
    }
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_attention forward = attention_case_forward(&c);

        forward.q = fused;
        forward.k = fused + q_width;
        forward.v = fused + q_width + k_width;
        forward.out = wide;
        forward.q_stride = forward.k_stride = forward.v_stride = forward.out_stride = width;
        KERNEL_RUN(ops, attention_forward, &forward);
        for (size_t i = 0; i < c.n_q; i++) {
            kernel_assert_close("out", wide + i * width, c.true_out + i * q_width, q_width, 1e-5);
        }
    }
    free(fused);
    free(wide);
    attention_case_deinit(&c);
}

static void test_attention_forward__refuses(void **state)
{
    static const struct attention_rows rows[] = {{4, SIDE_WHOLE, SIDE_WHOLE}};
    struct attention_shape shape = {4, 2, 16, true, 0};
    struct attention_case c;

    (void)state;
    attention_case_init(&c, &shape, rows, 1, 9);
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_attention forward = attention_case_forward(&c);

        forward.dtype = SKRULL_DTYPE_BF16;
        assert_int_equal(ops->attention_forward(&forward, NULL, NULL), SKRULL_ERR_UNIMPLEMENTED);
        forward = attention_case_forward(&c);
        forward.kv_heads = 3;
        assert_int_equal(ops->attention_forward(&forward, NULL, NULL), SKRULL_ERR_INVALID_ARGUMENT);
        forward.kv_heads = 0;
        assert_int_equal(ops->attention_forward(&forward, NULL, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    }
    attention_case_deinit(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attention_forward__every_mask_ratio_and_head_dim),
        cmocka_unit_test(test_attention_forward__odd_head_dims),
        cmocka_unit_test(test_attention_forward__long_tail_of_keys),
        cmocka_unit_test(test_attention_forward__no_sequences),
        cmocka_unit_test(test_attention_forward__strides),
        cmocka_unit_test(test_attention_forward__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
