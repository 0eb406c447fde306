/* Merging by log-sum-exp as kernels, against double. */
#include <math.h>

#include "kernels/typed.h"

/* Three parts in every dtype, of which some have seen no key; gradients of each by itself. */
struct typed_merge {
    uint32_t n_rows, heads, head_dim;
    bool has_dlse;
};

enum { PARTS = 3 };

struct merge_doubles {
    double *part[PARTS], *part_lse[PARTS], *dout, *dlse;
    double *out, *lse, *dpart[PARTS], *dpart_lse[PARTS];
};

static void merge_doubles_init(struct merge_doubles *d, struct typed *t,
                               const struct typed_merge *c)
{
    size_t n = (size_t)c->n_rows * c->heads, size = n * c->head_dim;
    uint64_t seed = 23;

    for (size_t p = 0; p < PARTS; p++) {
        d->part[p] = typed_random(t, &seed, size, 1);
        d->part_lse[p] = typed_random_floats(&seed, n, 6);
        d->dpart[p] = kernel_zeros_double(size);
        d->dpart_lse[p] = kernel_zeros_double(n);
        for (size_t i = 0; i < n; i++) {
            if ((i + p) % 4 == 3 || i % 5 == 4) {
                d->part_lse[p][i] = -HUGE_VAL;
            }
        }
    }
    d->dout = typed_random_floats(&seed, size, 1);
    d->dlse = typed_random_floats(&seed, n, 1);
    d->out = kernel_zeros_double(size);
    d->lse = kernel_zeros_double(n);
}

static void merge_doubles_deinit(struct merge_doubles *d)
{
    for (size_t p = 0; p < PARTS; p++) {
        free(d->part[p]);
        free(d->part_lse[p]);
        free(d->dpart[p]);
        free(d->dpart_lse[p]);
    }
    free(d->dout);
    free(d->dlse);
    free(d->out);
    free(d->lse);
}

/* Item i from its weights. */
static void merge_item(struct merge_doubles *d, const struct typed_merge *c, size_t i)
{
    size_t dim = c->head_dim;
    double total = 0;

    for (size_t p = 0; p < PARTS; p++) {
        total += exp(d->part_lse[p][i]);
    }
    d->lse[i] = log(total);
    for (size_t p = 0; p < PARTS && total > 0; p++) {
        for (size_t e = i * dim; e < (i + 1) * dim; e++) {
            d->out[e] += exp(d->part_lse[p][i]) / total * d->part[p][e];
        }
    }
    for (size_t p = 0; p < PARTS && total > 0; p++) {
        double w = exp(d->part_lse[p][i]) / total, gain = c->has_dlse ? d->dlse[i] : 0.0;

        for (size_t e = i * dim; e < (i + 1) * dim; e++) {
            d->dpart[p][e] = w * d->dout[e];
            gain += d->dout[e] * (d->part[p][e] - d->out[e]);
        }
        d->dpart_lse[p][i] = w * gain;
    }
}

static void hold_merge_gradients(struct typed *t, const struct typed_merge *c,
                                 const struct merge_doubles *d, struct skrull_merge *merge)
{
    size_t n = (size_t)c->n_rows * c->heads, size = n * c->head_dim;
    struct skrull_merge_backward backward = {.dtype = t->dtype,
                                             .n_rows = c->n_rows,
                                             .heads = c->heads,
                                             .head_dim = c->head_dim,
                                             .out = merge->out,
                                             .lse = merge->lse,
                                             .dout = typed_floats(t, d->dout, size),
                                             .dlse =
                                                 c->has_dlse ? typed_floats(t, d->dlse, n) : NULL};

    for (size_t p = 0; p < PARTS; p++) {
        backward.part_out = typed_tensor(t, d->part[p], size);
        backward.part_lse = typed_floats(t, d->part_lse[p], n);
        backward.dpart_out = typed_tensor(t, NULL, size);
        backward.dpart_lse = typed_floats(t, NULL, n);
        TYPED_RUN(t, merge_backward, &backward);
        typed_assert(t, "dpart", backward.dpart_out, d->dpart[p], size);
        typed_assert_floats(t, "dpart_lse", backward.dpart_lse, d->dpart_lse[p], n);
    }
}

static void hold_merged(struct typed *t, const void *arg)
{
    const struct typed_merge *c = arg;
    size_t n = (size_t)c->n_rows * c->heads, size = n * c->head_dim;
    struct merge_doubles d;
    struct skrull_merge merge = {
        .dtype = t->dtype, .n_rows = c->n_rows, .heads = c->heads, .head_dim = c->head_dim};

    merge_doubles_init(&d, t, c);
    merge.out = typed_floats(t, d.out, size);
    for (size_t i = 0; i < n; i++) {
        d.lse[i] = -HUGE_VAL;
    }
    merge.lse = typed_floats(t, d.lse, n);
    for (size_t p = 0; p < PARTS; p++) {
        merge.part_out = typed_tensor(t, d.part[p], size);
        merge.part_lse = typed_floats(t, d.part_lse[p], n);
        TYPED_RUN(t, merge_forward, &merge);
    }
    for (size_t i = 0; i < n; i++) {
        merge_item(&d, c, i);
    }
    t->tolerance = 1e-5; /* parts are given; all else is float */
    typed_assert_floats(t, "out", merge.out, d.out, size);
    typed_assert_floats(t, "lse", merge.lse, d.lse, n);
    t->tolerance = t->dtype == SKRULL_DTYPE_BF16 ? 1e-2 : 2e-3;
    hold_merge_gradients(t, c, &d, &merge);
    merge_doubles_deinit(&d);
}

static void test_merge__every_dtype_and_shape(void **state)
{
    static const struct typed_merge cases[] = {
        {0, 2, 64, true},   {1, 1, 1, false},  {3, 3, 7, true},
        {5, 2, 64, true},   {7, 5, 80, true},  {9, 2, 96, false},
        {33, 3, 128, true}, {2, 2, 257, true}, {3, 1, 512, true}};

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        typed_hold("merge", hold_merged, &cases[i], false);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_merge__every_dtype_and_shape),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
