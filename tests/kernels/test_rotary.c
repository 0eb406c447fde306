/* Rotary embedding against complex numbers in double, at positions near and far. */
#include <math.h>

#include "kernels/kernel.h"

#define ROWS 7
#define HEADS 3
#define DIM 16
#define WIDTH ((size_t)HEADS * DIM)

static const int32_t positions[ROWS] = {0, 1, 2, 4095, -1, 131071, 2000000000};

struct fixture {
    float frequency[DIM / 2];
    float *in, *out;
    double *should;
};

/* Each pair (x[i], x[i + half]) as a complex number times e^(i position frequency). */
static void answer(struct fixture *f)
{
    for (size_t at = 0; at < ROWS * WIDTH; at++) {
        size_t row = at / WIDTH, e = at % DIM, i = e % (DIM / 2);
        double angle = (double)positions[row] * (double)f->frequency[i];
        double x = (double)f->in[at - e + i], y = (double)f->in[at - e + i + DIM / 2];

        f->should[at] =
            e < DIM / 2 ? x * cos(angle) - y * sin(angle) : x * sin(angle) + y * cos(angle);
        if (positions[row] < 0) {
            f->should[at] = (double)f->in[at];
        }
    }
}

static void fixture_init(struct fixture *f)
{
    uint64_t seed = 8;

    for (size_t i = 0; i < DIM / 2; i++) {
        f->frequency[i] = (float)pow(10000.0, -2.0 * (double)i / DIM);
    }
    f->in = kernel_random(&seed, ROWS * WIDTH);
    f->out = kernel_zeros(ROWS * WIDTH);
    f->should = kernel_zeros_double(ROWS * WIDTH);
    answer(f);
}

static void fixture_deinit(struct fixture *f)
{
    free(f->in);
    free(f->out);
    free(f->should);
}

static struct skrull_rotary rotary_of(const struct fixture *f)
{
    return (struct skrull_rotary){.dtype = SKRULL_DTYPE_F32,
                                  .n_rows = ROWS,
                                  .heads = HEADS,
                                  .head_dim = DIM,
                                  .position = positions,
                                  .frequency = f->frequency,
                                  .in = f->in,
                                  .out = f->out};
}

static void test_rotary_forward__turns_pairs(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f);
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_rotary rotary = rotary_of(&f);

        KERNEL_RUN(ops, rotary_forward, &rotary);
        kernel_assert_close("out", f.out, f.should, ROWS * WIDTH, 1e-6);
    }
    fixture_deinit(&f);
}

/* A rotation's transpose is its inverse: turning back, here in place, gives what was. */
static void test_rotary_backward__is_the_transpose(void **state)
{
    struct fixture f;
    double *was;

    (void)state;
    fixture_init(&f);
    was = kernel_double(f.in, ROWS * WIDTH);
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_rotary rotary = rotary_of(&f);

        KERNEL_RUN(ops, rotary_forward, &rotary);
        rotary.in = f.out;
        KERNEL_RUN(ops, rotary_backward, &rotary);
        kernel_assert_close("in", f.out, was, ROWS * WIDTH, 1e-6);
    }
    free(was);
    fixture_deinit(&f);
}

static void test_rotary_forward__refuses_odd_dims(void **state)
{
    struct fixture f;

    (void)state;
    fixture_init(&f);
    KERNEL_FOR_BACKENDS(ops)
    {
        struct skrull_rotary rotary = rotary_of(&f);

        rotary.head_dim = 15;
        assert_int_equal(ops->rotary_forward(&rotary, NULL, NULL), SKRULL_ERR_INVALID_ARGUMENT);
    }
    fixture_deinit(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rotary_forward__turns_pairs),
        cmocka_unit_test(test_rotary_backward__is_the_transpose),
        cmocka_unit_test(test_rotary_forward__refuses_odd_dims),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
