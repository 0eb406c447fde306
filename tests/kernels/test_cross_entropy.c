/* Head and weighted cross-entropy against double and slopes, in chunks of every size. */
#include <math.h>

#include "kernels/kernel.h"

#define ROWS 5
#define WIDTH 7
#define VOCABULARY 41

struct fixture {
    float in[ROWS * WIDTH], head[VOCABULARY * WIDTH], weight[ROWS];
    int32_t target[ROWS];
    double x[ROWS * WIDTH], w[VOCABULARY * WIDTH];
};

static double objective(void *arg)
{
    const struct fixture *f = arg;
    double loss = 0;

    for (size_t row = 0; row < ROWS; row++) {
        double logits[VOCABULARY] = {0}, max = -HUGE_VAL, total = 0;

        for (size_t v = 0; v < VOCABULARY; v++) {
            for (size_t i = 0; i < WIDTH; i++) {
                logits[v] += f->x[row * WIDTH + i] * f->w[v * WIDTH + i];
            }
            max = logits[v] > max ? logits[v] : max;
        }
        for (size_t v = 0; v < VOCABULARY; v++) {
            total += exp(logits[v] - max);
        }
        if (f->target[row] >= 0) {
            loss += (double)f->weight[row] * (max + log(total) - logits[f->target[row]]);
        }
    }
    return loss;
}

static void fixture_init(struct fixture *f)
{
    static const int32_t target[ROWS] = {0, 40, -1, 17, 16};
    static const float weight[ROWS] = {0.25F, 0.5F, 0, 0.125F, 1};
    uint64_t seed = 33;
    float *in = kernel_random(&seed, ROWS * WIDTH),
          *head = kernel_random(&seed, VOCABULARY * WIDTH);

    memcpy(f->target, target, sizeof(target));
    memcpy(f->weight, weight, sizeof(weight));
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        f->in[i] = in[i] * 3;
        f->x[i] = (double)f->in[i];
    }
    for (size_t i = 0; i < VOCABULARY * WIDTH; i++) {
        f->head[i] = head[i];
        f->w[i] = (double)head[i];
    }
    free(in);
    free(head);
}

static struct skrull_cross_entropy loss_of(const struct fixture *f, uint32_t chunk)
{
    return (struct skrull_cross_entropy){.dtype = SKRULL_DTYPE_F32,
                                         .n_rows = ROWS,
                                         .width = WIDTH,
                                         .vocabulary = VOCABULARY,
                                         .chunk = chunk,
                                         .in = f->in,
                                         .head = f->head,
                                         .target = f->target,
                                         .loss_weight = f->weight};
}

static void hold(const struct ops *ops, struct fixture *f, uint32_t chunk)
{
    float *logits = kernel_zeros((size_t)ROWS * chunk), lse[ROWS], din[ROWS * WIDTH];
    float *dhead = kernel_zeros(VOCABULARY * WIDTH);
    double loss = 10;
    struct skrull_cross_entropy_backward backward = {
        .forward = loss_of(f, chunk), .din = din, .dhead = dhead};

    backward.forward.logits = logits;
    backward.forward.lse = lse;
    backward.forward.loss = &loss;
    KERNEL_RUN(ops, cross_entropy_forward, &backward.forward);
    assert_true(fabs(loss - 10 - objective(f)) < 2e-6);
    KERNEL_RUN(ops, cross_entropy_backward, &backward);
    kernel_assert_slopes("din", objective, f, f->x, din, ROWS * WIDTH, 1e-5);
    kernel_assert_slopes("dhead", objective, f, f->w, dhead, VOCABULARY * WIDTH, 1e-5);
    KERNEL_RUN(ops, cross_entropy_backward, &backward);
    for (size_t i = 0; i < VOCABULARY * WIDTH; i++) {
        dhead[i] /= 2; /* added to, while din is written */
    }
    kernel_assert_slopes("din again", objective, f, f->x, din, ROWS * WIDTH, 1e-5);
    kernel_assert_slopes("dhead twice", objective, f, f->w, dhead, VOCABULARY * WIDTH, 1e-5);
    free(logits);
    free(dhead);
}

static void test_cross_entropy__every_chunk(void **state)
{
    static const uint32_t chunks[] = {1, 16, 17, 40, 41, 64};
    struct fixture f;

    (void)state;
    fixture_init(&f);
    for (size_t i = 0; i < sizeof(chunks) / sizeof(chunks[0]); i++) {
        KERNEL_FOR_BACKENDS(ops)
        {
            hold(ops, &f, chunks[i]);
        }
    }
}

/* Logits of hundreds must neither overflow nor lose the loss. */
static void test_cross_entropy_forward__large_logits(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f);
    for (size_t i = 0; i < ROWS * WIDTH; i++) {
        f.in[i] *= 100;
        f.x[i] *= 100;
    }
    KERNEL_FOR_BACKENDS(ops)
    {
        float logits[ROWS * 16], lse[ROWS];
        double loss = 0, should = objective(&f);
        struct skrull_cross_entropy forward = loss_of(&f, 16);

        forward.logits = logits;
        forward.lse = lse;
        forward.loss = &loss;
        KERNEL_RUN(ops, cross_entropy_forward, &forward);
        assert_true(fabs(loss - should) < 1e-5 * fabs(should));
    }
}

static void test_cross_entropy__refuses(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f);
    KERNEL_FOR_BACKENDS(ops)
    {
        float logits[ROWS * 16], lse[ROWS];
        double loss = 7;
        struct skrull_cross_entropy forward = loss_of(&f, 16);
        struct skrull_error err = {0};

        forward.logits = logits;
        forward.lse = lse;
        forward.loss = &loss;
        f.target[3] = VOCABULARY;
        assert_int_equal(ops->cross_entropy_forward(&forward, NULL, &err),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(err.message, "target 41 in a vocabulary of 41"));
        f.target[3] = 17;
        forward.chunk = 0;
        assert_int_equal(ops->cross_entropy_forward(&forward, NULL, NULL),
                         SKRULL_ERR_INVALID_ARGUMENT);
        assert_true(fabs(loss - 7) <= 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cross_entropy__every_chunk),
        cmocka_unit_test(test_cross_entropy_forward__large_logits),
        cmocka_unit_test(test_cross_entropy__refuses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
