/* Head and weighted cross-entropy as kernels, against double. */
#include <math.h>

#include "kernels/typed.h"

/* Every dtype; chunks that divide the vocabulary and not, around vectors and blocks. */
struct typed_loss {
    uint32_t n_rows, width, vocabulary, chunk;
    bool has_sum;
};

struct loss_doubles {
    double *in, *head, *weight, *dhead; /* dhead: before, then after */
    int32_t *target;
    double *lse, *din, loss;
};

static void loss_doubles_init(struct loss_doubles *d, struct typed *t, const struct typed_loss *c)
{
    size_t n = (size_t)c->n_rows * c->width, n_head = (size_t)c->vocabulary * c->width;
    uint64_t seed = 18;

    *d = (struct loss_doubles){.in = typed_random(t, &seed, n, 3),
                               .head = typed_random(t, &seed, n_head, 1),
                               .weight = typed_random_floats(&seed, c->n_rows, 1),
                               .dhead = typed_random_floats(&seed, n_head, 0.1),
                               .target = calloc(c->n_rows + 1, sizeof(int32_t)),
                               .lse = kernel_zeros_double(c->n_rows),
                               .din = kernel_zeros_double(n),
                               .loss = -3.0};
    assert_non_null(d->target);
    for (uint32_t row = 0; row < c->n_rows; row++) {
        d->target[row] = (int32_t)kernel_below(&seed, c->vocabulary);
        if (row % 4 == 1) {
            d->weight[row] = 0.0;
            d->target[row] = -1;
        }
    }
}

static void loss_doubles_deinit(struct loss_doubles *d)
{
    free(d->in);
    free(d->head);
    free(d->weight);
    free(d->dhead);
    free(d->target);
    free(d->lse);
    free(d->din);
}

/* One row's loss and gradients. */
static void loss_of_row(struct loss_doubles *d, const struct typed_loss *c, size_t row)
{
    const double *in = d->in + row * c->width;
    double *din = d->din + row * c->width, most = -HUGE_VAL, sum = 0;
    double *logits = kernel_zeros_double(c->vocabulary);

    for (size_t v = 0; v < c->vocabulary; v++) {
        for (size_t i = 0; i < c->width; i++) {
            logits[v] += in[i] * d->head[v * c->width + i];
        }
        most = logits[v] > most ? logits[v] : most;
    }
    for (size_t v = 0; v < c->vocabulary; v++) {
        sum += exp(logits[v] - most);
    }
    d->lse[row] = most + log(sum);
    for (size_t v = 0; v < c->vocabulary && d->target[row] >= 0; v++) {
        double is_target = (int32_t)v == d->target[row] ? 1 : 0;
        double dlogit = d->weight[row] * (exp(logits[v] - d->lse[row]) - is_target);

        d->loss += is_target * d->weight[row] * (d->lse[row] - logits[v]);
        for (size_t i = 0; i < c->width; i++) {
            din[i] += dlogit * d->head[v * c->width + i];
            d->dhead[v * c->width + i] += dlogit * in[i];
        }
    }
    free(logits);
}

static void hold_loss(struct typed *t, const void *arg)
{
    const struct typed_loss *c = arg;
    size_t n = (size_t)c->n_rows * c->width, n_head = (size_t)c->vocabulary * c->width;
    struct loss_doubles d;
    struct skrull_cross_entropy_backward backward;
    double loss;

    loss_doubles_init(&d, t, c);
    backward.forward =
        (struct skrull_cross_entropy){.dtype = t->dtype,
                                      .n_rows = c->n_rows,
                                      .width = c->width,
                                      .vocabulary = c->vocabulary,
                                      .chunk = c->chunk,
                                      .in = typed_tensor(t, d.in, n),
                                      .head = typed_tensor(t, d.head, n_head),
                                      .target = typed_ints(t, d.target, c->n_rows),
                                      .loss_weight = typed_floats(t, d.weight, c->n_rows),
                                      .logits = typed_floats(t, NULL, (size_t)c->n_rows * c->chunk),
                                      .lse = typed_floats(t, NULL, c->n_rows),
                                      .loss = typed_doubles(t, &d.loss, 1)};
    backward.din = typed_tensor(t, NULL, n);
    backward.din_sum = c->has_sum ? typed_floats(t, NULL, n) : NULL;
    backward.dhead = typed_floats(t, d.dhead, n_head);
    TYPED_RUN(t, cross_entropy_forward, &backward.forward);
    TYPED_RUN(t, cross_entropy_backward, &backward);
    for (size_t row = 0; row < c->n_rows; row++) {
        loss_of_row(&d, c, row);
    }
    typed_assert(t, "din", backward.din, d.din, n);
    typed_assert_floats(t, "dhead", backward.dhead, d.dhead, n_head);
    t->tolerance = 1e-5; /* of what is given, in float and double */
    typed_assert_floats(t, "lse", backward.forward.lse, d.lse, c->n_rows);
    typed_read_double(t, backward.forward.loss, &loss);
    if (!(fabs(loss - d.loss) <= 1e-5 * (1 + fabs(d.loss)))) {
        fail_msg("loss %.9g, not %.9g", loss, d.loss);
    }
    loss_doubles_deinit(&d);
}

static void test_cross_entropy__every_dtype_and_chunk(void **state)
{
    static const struct typed_loss cases[] = {
        {0, 8, 5, 5, true},        {1, 1, 1, 1, false},      {5, 7, 41, 16, true},
        {5, 16, 41, 64, false},    {9, 24, 256, 64, true},   {6, 7, 41, 17, false},
        {3, 8, 2049, 2048, false}, {3, 8, 4100, 2049, true}, {33, 40, 300, 104, false},
        {2, 64, 150, 7, true},     {2, 64, 150, 7, false}};
    size_t n = kernel_is_quick() ? 5 : sizeof(cases) / sizeof(cases[0]);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        typed_hold(cases[i].has_sum ? "cross_entropy, din_sum" : "cross_entropy", hold_loss,
                   &cases[i], false);
    }
}

static void test_cross_entropy__vocabulary_of_a_model(void **state)
{
    static const struct typed_loss big = {3, 8, 152064, 32768, true};

    (void)state;
    typed_hold("vocabulary 152064", hold_loss, &big, true);
}

/* More than the threads that add losses up. */
static void test_cross_entropy__many_rows(void **state)
{
    static const struct typed_loss many = {1030, 8, 16, 16, false};

    (void)state;
    typed_hold("many rows", hold_loss, &many, true);
}

/* Nobody waits for a device to hear that a target is unknown: the loss says so. */
static void hold_unknown(struct typed *t, const void *arg)
{
    struct typed_loss c = {4, 8, 20, 8, false};
    struct loss_doubles d;
    double loss;
    struct skrull_cross_entropy forward;

    (void)arg;
    loss_doubles_init(&d, t, &c);
    d.target[2] = 20;
    d.weight[2] = 0.5;
    forward = (struct skrull_cross_entropy){.dtype = t->dtype,
                                            .n_rows = 4,
                                            .width = 8,
                                            .vocabulary = 20,
                                            .chunk = 8,
                                            .in = typed_tensor(t, d.in, 32),
                                            .head = typed_tensor(t, d.head, 160),
                                            .target = typed_ints(t, d.target, 4),
                                            .loss_weight = typed_floats(t, d.weight, 4),
                                            .logits = typed_floats(t, NULL, 32),
                                            .lse = typed_floats(t, NULL, 4),
                                            .loss = typed_doubles(t, &d.loss, 1)};
    TYPED_RUN(t, cross_entropy_forward, &forward);
    typed_read_double(t, forward.loss, &loss);
    assert_true(isnan(loss));
    forward.chunk = 0;
    assert_int_equal(t->device->ops->cross_entropy_forward(&forward, NULL, NULL),
                     SKRULL_ERR_INVALID_ARGUMENT);
    loss_doubles_deinit(&d);
}

static void test_cross_entropy_forward__unknown_target_is_nan(void **state)
{
    (void)state;
    typed_hold("unknown target", hold_unknown, NULL, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cross_entropy__every_dtype_and_chunk),
        cmocka_unit_test(test_cross_entropy__vocabulary_of_a_model),
        cmocka_unit_test(test_cross_entropy__many_rows),
        cmocka_unit_test(test_cross_entropy_forward__unknown_target_is_nan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
