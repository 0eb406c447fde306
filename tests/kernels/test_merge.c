/*
 * Merging by log-sum-exp: attention over parts of the keys, merged, is attention over all of them,
 * and gradients by parts sum to the gradients of the whole; backward of a merge against slopes.
 */
#include <math.h>

#include "kernels/attention_case.h"

/* The whole, and the same queries over the first and the second half of its keys. */
struct split {
    struct attention_case whole;
    int32_t cu[2][2]; /* of each half */
};

static struct skrull_attention half_of(const struct split *split, size_t half, float *out,
                                       float *lse)
{
    const struct attention_case *c = &split->whole;
    struct skrull_attention forward = attention_case_forward(c);
    size_t first = half == 0 ? 0 : (size_t)split->cu[0][1];
    size_t width = (size_t)c->shape.kv_heads * c->shape.head_dim;

    forward.k_cu_rows = split->cu[half];
    forward.k_position = c->k_position + first;
    forward.max_k_rows = (uint32_t)split->cu[half][1];
    forward.k = c->k + first * width;
    forward.v = c->v + first * width;
    forward.out = out;
    forward.lse = lse;
    return forward;
}

static void split_init(struct split *split, uint32_t window)
{
    static const struct attention_rows rows[] = {{170, SIDE_SECOND, SIDE_WHOLE}};
    struct attention_shape shape = {4, 2, 64, true, window};

    attention_case_init(&split->whole, &shape, rows, 1, 21);
    split->cu[0][0] = split->cu[1][0] = 0;
    split->cu[0][1] = 101;
    split->cu[1][1] = (int32_t)split->whole.n_k - 101;
}

static void hold_split(const struct ops *ops, struct split *split)
{
    struct attention_case *c = &split->whole;
    size_t n = c->n_q * c->shape.heads, q_size = n * c->shape.head_dim;
    size_t k_width = (size_t)c->shape.kv_heads * c->shape.head_dim;
    float *part = kernel_zeros(q_size), *part_lse = kernel_zeros(n);

    memset(c->out, 0, q_size * sizeof(float));
    for (size_t i = 0; i < n; i++) {
        c->lse[i] = -INFINITY;
    }
    for (size_t half = 0; half < 2; half++) {
        struct skrull_attention forward = half_of(split, half, part, part_lse);
        struct skrull_merge merge = {.dtype = SKRULL_DTYPE_F32,
                                     .n_rows = (uint32_t)c->n_q,
                                     .heads = c->shape.heads,
                                     .head_dim = c->shape.head_dim,
                                     .part_out = part,
                                     .part_lse = part_lse,
                                     .out = c->out,
                                     .lse = c->lse};

        KERNEL_RUN(ops, attention_forward, &forward);
        KERNEL_RUN(ops, merge_forward, &merge);
    }
    kernel_assert_close("out", c->out, c->true_out, q_size, 1e-5);
    kernel_assert_close("lse", c->lse, c->true_lse, n, 1e-5);
    memset(c->dq, 0, q_size * sizeof(float));
    memset(c->dk, 0, c->n_k * k_width * sizeof(float));
    memset(c->dv, 0, c->n_k * k_width * sizeof(float));
    for (size_t half = 0; half < 2; half++) {
        struct skrull_attention_backward backward = attention_case_backward(c);
        size_t first = half == 0 ? 0 : (size_t)split->cu[0][1];

        backward.forward = half_of(split, half, c->out, c->lse);
        backward.dk += first * k_width;
        backward.dv += first * k_width;
        KERNEL_RUN(ops, attention_backward, &backward);
    }
    kernel_assert_close("dq", c->dq, c->true_dq, q_size, 1e-5);
    kernel_assert_close("dk", c->dk, c->true_dk, c->n_k * k_width, 1e-5);
    kernel_assert_close("dv", c->dv, c->true_dv, c->n_k * k_width, 1e-5);
    free(part);
    free(part_lse);
}

static void test_merge_forward__parts_are_the_whole(void **state)
{
    static const uint32_t windows[] = {0, 30};

    (void)state;
    for (size_t w = 0; w < 2; w++) {
        struct split split;

        split_init(&split, windows[w]);
        KERNEL_FOR_BACKENDS(ops)
        {
            hold_split(ops, &split);
        }
        attention_case_deinit(&split.whole);
    }
}

/* Two parts of 3 rows, 2 heads, 4 dims, and what their merge is weighed by. */
#define ROWS 3
#define HEADS 2
#define DIM 4
#define SIZE (ROWS * HEADS * DIM)

struct merged {
    double part[2][SIZE], part_lse[2][ROWS * HEADS];
    float dout[SIZE], dlse[ROWS * HEADS];
};

static double objective(void *arg)
{
    const struct merged *m = arg;
    double sum = 0;

    for (size_t i = 0; i < (size_t)ROWS * HEADS; i++) {
        double a = exp(m->part_lse[0][i]), b = exp(m->part_lse[1][i]);

        sum += a + b > 0 ? log(a + b) * (double)m->dlse[i] : 0;
        for (size_t d = 0; d < DIM && a + b > 0; d++) {
            size_t at = i * DIM + d;

            sum += (a * m->part[0][at] + b * m->part[1][at]) / (a + b) * (double)m->dout[at];
        }
    }
    return sum;
}

static void merged_init(struct merged *m)
{
    uint64_t seed = 4;
    float *values = kernel_random(&seed, (size_t)3 * SIZE + 3 * ROWS * HEADS), *at = values;

    for (size_t i = 0; i < SIZE; i++) {
        m->part[0][i] = (double)*at++;
        m->part[1][i] = (double)*at++;
        m->dout[i] = *at++;
    }
    for (size_t i = 0; i < (size_t)ROWS * HEADS; i++) {
        m->part_lse[0][i] = (double)(*at++ * 3);
        m->part_lse[1][i] = (double)(*at++ * 3);
        m->dlse[i] = *at++;
    }
    m->part_lse[1][2] = -HUGE_VAL;
    free(values);
}

static void narrow(const double *from, float *to, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        to[i] = (float)from[i];
    }
}

static void hold_backward(const struct ops *ops, struct merged *m)
{
    float part[2][SIZE], part_lse[2][ROWS * HEADS], out[SIZE] = {0}, lse[ROWS * HEADS];

    for (size_t i = 0; i < (size_t)ROWS * HEADS; i++) {
        lse[i] = -INFINITY;
    }
    for (size_t p = 0; p < 2; p++) {
        struct skrull_merge merge = {.dtype = SKRULL_DTYPE_F32,
                                     .n_rows = ROWS,
                                     .heads = HEADS,
                                     .head_dim = DIM,
                                     .part_out = part[p],
                                     .part_lse = part_lse[p],
                                     .out = out,
                                     .lse = lse};

        narrow(m->part[p], part[p], SIZE);
        narrow(m->part_lse[p], part_lse[p], (size_t)ROWS * HEADS);
        KERNEL_RUN(ops, merge_forward, &merge);
    }
    for (size_t p = 0; p < 2; p++) {
        float dpart[SIZE], dpart_lse[ROWS * HEADS];
        struct skrull_merge_backward backward = {.dtype = SKRULL_DTYPE_F32,
                                                 .n_rows = ROWS,
                                                 .heads = HEADS,
                                                 .head_dim = DIM,
                                                 .part_out = part[p],
                                                 .part_lse = part_lse[p],
                                                 .out = out,
                                                 .lse = lse,
                                                 .dout = m->dout,
                                                 .dlse = m->dlse,
                                                 .dpart_out = dpart,
                                                 .dpart_lse = dpart_lse};

        KERNEL_RUN(ops, merge_backward, &backward);
        kernel_assert_slopes("dpart", objective, m, m->part[p], dpart, SIZE, 1e-5);
        for (size_t i = 0; i < (size_t)ROWS * HEADS; i++) {
            if (isinf(m->part_lse[p][i])) {
                assert_true(fabsf(dpart_lse[i]) <= 0.0F);
                continue;
            }
            kernel_assert_slopes("dpart_lse", objective, m, &m->part_lse[p][i], &dpart_lse[i], 1,
                                 1e-5);
        }
    }
}

static void test_merge_backward__is_the_slope(void **state)
{
    struct merged m;

    (void)state;
    merged_init(&m);
    KERNEL_FOR_BACKENDS(ops)
    {
        hold_backward(ops, &m);
    }
}

static void test_merge_forward__nothing_and_nothing(void **state)
{
    (void)state;
    KERNEL_FOR_BACKENDS(ops)
    {
        float out[2] = {0}, lse[1] = {-INFINITY}, part[2] = {0}, part_lse[1] = {-INFINITY};
        struct skrull_merge merge = {.dtype = SKRULL_DTYPE_F32,
                                     .n_rows = 1,
                                     .heads = 1,
                                     .head_dim = 2,
                                     .part_out = part,
                                     .part_lse = part_lse,
                                     .out = out,
                                     .lse = lse};

        KERNEL_RUN(ops, merge_forward, &merge);
        assert_true(isinf(lse[0]) && lse[0] < 0);
        assert_true(fabsf(out[0]) <= 0.0F && fabsf(out[1]) <= 0.0F);
        part[1] = 3;
        part_lse[0] = -2;
        KERNEL_RUN(ops, merge_forward, &merge);
        assert_true(fabsf(lse[0] + 2) < 1e-6F && fabsf(out[1] - 3) < 1e-6F);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge_forward__parts_are_the_whole),
        cmocka_unit_test(test_merge_forward__nothing_and_nothing),
        cmocka_unit_test(test_merge_backward__is_the_slope),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
